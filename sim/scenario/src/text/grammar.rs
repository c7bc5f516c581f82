//! The grammar: the nodes of each level with their arguments and properties, as the codecs list
//! them (`codec/list.rs`). The reader, the mutator and the tools take all names from here.

use crate::text::suggest::list;
use clr_runtime::generation::Generations;
use thiserror::Error;

/// Maximum length of a text in bytes.
pub const MAX_TEXT: usize = 1 << 20;

/// Maximum nesting of blocks. A valid program needs less.
pub(crate) const MAX_BLOCKS: u32 = 16;

/// Maximum number of nodes in a stack placed by hand.
pub(crate) const MAX_STACK_NODES: usize = 4096;

/// Maximum number of words that are written over a stack placed by hand.
pub(crate) const MAX_WORDS: u32 = 4096;

/// Maximum number of frames in the buffer of a mixed walk.
pub(crate) const MAX_CAPACITY: u32 = 4096;

/// The kind of a value. `Display` prints what is expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Kind {
    /// A name that is defined here.
    #[error("expected a name, as in \"main\"")]
    Name,
    /// The name of a function.
    #[error("expected the name of a function")]
    Function,
    /// The name of a function of the program or of the runtime.
    #[error("expected the name of a function")]
    Code,
    /// The name of a thread.
    #[error("expected the name of a thread")]
    Thread,
    /// A whole number between these two, inclusive.
    #[error("expected a whole number from {0} to {1}, decimal or hexadecimal")]
    Number(u64, u64, Style),
    /// `#true` or `#false`.
    #[error("expected `#true` or `#false`")]
    Flag,
    /// One of several words.
    #[error("expected one of: {}", list(.0))]
    Word(&'static [&'static str]),
    /// A word for searching: letters, digits and `-`.
    #[error("expected a word of letters, digits and `-`")]
    Tag,
    /// A position in a function: `App.Foo+0x40`.
    #[error("expected a function and an offset, as in \"App.Foo+0x40\"")]
    Label,
    /// A label or an address.
    #[error("expected a function and an offset, as in \"App.Foo+0x40\", or an address")]
    Address,
    /// Names of generations and of sets of generations, separated by blanks.
    #[error("expected one or more of these, separated by blanks: {}", list(&all_generations()))]
    Generations,
    /// The thread that makes a call.
    #[error("expected `self`, `native-walker`, `managed-walker` or the name of a thread")]
    Caller,
    /// The `thread` of a call.
    #[error("expected `own`, `null`, a number or the name of a thread")]
    Target,
    /// The source of a seed.
    #[error("expected a function, or one of: `leaf`, `top-managed`, `stale`, `bytes`")]
    Seed,
    /// The name of an HRESULT, or its number.
    #[error("expected the name of an HRESULT, as in \"E_FAIL\", or its number")]
    HResult,
    /// An HRESULT, or another outcome of a call.
    #[error(
        "expected the name of an HRESULT, as in \"E_FAIL\", its number, or one of: `killed`, \
         `access-violation`, `blocked`, `endless`"
    )]
    Outcome,
    /// ContextFlags, or the word `own`.
    #[error("expected a number of 32 bits, or `own`")]
    Flags,
    /// A truth value, or the names of integer registers separated by blanks.
    #[error("expected `#true`, `#false` or registers separated by blanks, as in \"rbx rsi\"")]
    Stale,
    /// The number of a clause: `C-014`.
    #[error("expected the number of a clause, as in \"C-014\"")]
    Clause,
    /// The name of a thread of the program or the profiler, or `own`.
    #[error("expected `own`, or the name of a thread of the program or the profiler")]
    Party,
    /// The name of a lock of the profiler.
    #[error("expected the name of a lock of the profiler")]
    Lock,
    /// The name of a lock of the profiler, of the runtime or of the process.
    #[error("expected the name of a lock of the profiler, the runtime or the process")]
    AnyLock,
    /// The name of an event of the profiler.
    #[error("expected the name of an event of the profiler")]
    Event,
    /// The name of a buffer for exports.
    #[error("expected the name of a buffer")]
    Buffer,
    /// An argument of an export.
    #[error(
        "expected a number, the name of a buffer, or `*` and the name: the number that it holds"
    )]
    ExportArgument,
    /// The number of a hazard: `H-06`.
    #[error("expected the number of a hazard, as in \"H-06\"")]
    Hazard,
    /// Failures of calls: methods, or methods and results.
    #[error(
        "expected methods of the runtime that may fail, separated by commas, as in \"EnumThreads,DoStackSnapshot=E_FAIL\", or \"all\""
    )]
    Faults,
    /// The schedule string of an interleaving.
    #[error("expected the schedule string of an interleaving, as in \"clr1:14b3a\"")]
    Schedule,
}

impl Kind {
    /// Returns true if the value is a number or else a text.
    #[must_use]
    pub const fn is_text_or_number(self) -> bool {
        matches!(
            self,
            Self::Address
                | Self::Target
                | Self::HResult
                | Self::Outcome
                | Self::Flags
                | Self::ExportArgument
        )
    }
}

/// Returns the names of all generations and sets.
pub(crate) fn all_generations() -> Vec<&'static str> {
    Generations::all_words().collect()
}

/// The form in which numbers are printed. All are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Decimal: a count.
    Decimal,
    /// Decimal below 0x40, which is easier to read, and hexadecimal from there: a size.
    Size,
    /// Hexadecimal: an address.
    Hex,
}

/// The arguments of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Args {
    /// No arguments.
    None,
    /// Exactly one argument.
    One(Kind),
    /// At most one argument.
    Optional(Kind),
    /// Any number of arguments up to a limit.
    Many(Kind, usize),
    /// A name, and any number of arguments up to a limit.
    Named(Kind, usize),
}

/// A property of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PropertyRule {
    /// Name of the property.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: Kind,
    /// The property must be present.
    pub required: bool,
}

/// A node of the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeRule {
    /// Name of the node.
    pub name: &'static str,
    pub(crate) args: Args,
    /// Properties.
    pub properties: Vec<PropertyRule>,
    /// Level of the nodes in the node's block; `None` if the node has no block.
    pub block: Option<Level>,
    /// The node appears at most once in a block.
    pub once: bool,
    /// Index of the blank value whose codec has the node, if it is one of a list of items.
    pub(crate) item: Option<usize>,
}

/// Defines the levels, outermost first, with their names for tools and their descriptions for
/// messages.
macro_rules! levels {
    ($($level:ident $name:literal $place:literal,)+) => {
        /// The places where nodes appear: outside all blocks, or in a kind of block.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Level {
            $(#[doc = concat!("Nodes ", $place, ".")] $level,)+
        }

        impl Level {
            /// All levels, outermost first.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$level),+];

            /// Returns the name of the level for tools.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$level => $name,)+ }
            }

            /// Returns the description of the level for messages.
            pub(crate) const fn place(self) -> &'static str {
                match self { $(Self::$level => $place,)+ }
            }
        }
    };
}

levels! {
    Text "text" "at the outermost level",
    Module "module" "in a module",
    Type "type" "in a type",
    Method "method" "in a method of a type",
    Function "function" "in a function",
    Export "export" "in an export",
    Body "body" "in a body",
    Stop "stop" "in a stop",
    Expect "expect" "in an expectation",
    Stack "stack" "in a stack",
    Activation "activation" "in an activation of a stack",
    Snapshot "snapshot" "in a snapshot",
    Seed "seed" "in a seed",
    Report "snapshot-expect" "in the expectation of a snapshot",
    MixedWalk "mixed-walk" "in a mixed walk",
    MixedReport "mixed-walk-expect" "in the expectation of a mixed walk",
    Profiler "profiler" "in a profiler",
    Action "action" "among actions",
    Coverage "coverage" "in a demand on coverage",
    Explore "explore" "in a search of interleavings",
    History "explore-expect" "in the expectation of a search of interleavings",
}

impl NodeRule {
    /// Returns the smallest and the largest number of arguments.
    #[must_use]
    pub const fn arity(&self) -> (usize, usize) {
        match self.args {
            Args::None => (0, 0),
            Args::One(_) => (1, 1),
            Args::Optional(_) => (0, 1),
            Args::Many(_, limit) => (0, limit),
            Args::Named(_, limit) => (1, 1 + limit),
        }
    }

    /// Returns the kind of an argument by its index, if the node may have so many.
    #[must_use]
    pub const fn kind_of_arg(&self, index: usize) -> Option<Kind> {
        match self.args {
            _ if index >= self.arity().1 => None,
            Args::None => None,
            Args::Named(..) if index == 0 => Some(Kind::Name),
            Args::One(kind) | Args::Optional(kind) | Args::Many(kind, _) | Args::Named(kind, _) => {
                Some(kind)
            }
        }
    }

    /// Returns the kind of a property.
    pub(crate) fn kind_of(&self, property: &str) -> Option<Kind> {
        Some(self.properties.iter().find(|rule| rule.name == property)?.kind)
    }
}
