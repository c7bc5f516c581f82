//! The text form of scenarios: KDL, a codec for each node, errors with places, and changes of texts.

pub(crate) mod codec;
mod correction;
mod digest;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod grammar;
pub(crate) mod keywords;
mod layout;
mod meaning;
pub(crate) mod mutate;
mod names;
pub(crate) mod nodes;
mod outline;
pub(crate) mod parse;
pub(crate) mod problem;
mod problem_code;
mod shrink;
pub(crate) mod source_map;
pub(crate) mod suggest;
mod upgrade;

pub use correction::Correction;
pub use digest::{TextDigest, TextDigestError};
pub use error::{LineColumn, Problem, ScenarioError, Span};
pub use grammar::{Kind, Level, MAX_TEXT, NodeRule, PropertyRule};
pub use keywords::Keyword;
pub use layout::{comment_count, format_text};
pub use mutate::Parent;
pub use names::{NameKind, NameUse, RenameError, names_of, rename};
pub use outline::{OutlineNode, outline_of};
pub use problem::{ProblemKind, SyntaxError};
pub use shrink::ScenarioStep;
pub use source_map::{NodePlaces, SourceMap};
pub use suggest::nearest;
pub use upgrade::{RenamedWord, upgrade_text};
