//! DWARF call frame information, compiled: `.eh_frame` and `.debug_frame`.
//!
//! The programs of an image run once, when its [`CfiTable`] is made. Steps by its rows are made by
//! [`Unwinder`](crate::unwind::Unwinder).

mod bytes;
mod compile;
mod error;
mod program;
mod row;
mod rows;
mod rule;
mod rules;
mod table;

pub use error::{CfiError, CfiProblem, FrameSection};
pub use row::{CfaRule, Column, Expression, RegisterRule, Row};
pub use table::CfiTable;

pub(crate) use rule::{GeneralRule, NONVOLATILE, Place, Rule};
pub(crate) use table::Found;
