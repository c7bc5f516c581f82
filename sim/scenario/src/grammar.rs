//! The grammar as tables: the nodes of each level with their arguments and properties. The reader
//! and the tests of the grammar's document take all names from here.

mod nodes;

use nodes::{
    ACTION, ACTIVATION, BODY, EXPECT, EXPLORE, FUNCTION, HISTORY, METHOD, MIXED_REPORT, MIXED_WALK,
    MODULE, PROFILER, REPORT, SEED, SNAPSHOT, STACK, STOP, TEXT, TYPE,
};

/// Maximum length of a text in bytes.
pub(super) const MAX_TEXT: usize = 1 << 20;

/// Maximum nesting of blocks. A valid program needs less.
pub(super) const MAX_BLOCKS: u32 = 16;

/// Maximum number of nodes in a stack placed by hand.
pub(super) const MAX_STACK_NODES: usize = 4096;

/// Maximum number of words that are written over a stack placed by hand.
pub(super) const MAX_WORDS: u32 = 4096;

/// Maximum number of frames in the buffer of a mixed walk.
pub(super) const MAX_ROOM: u32 = 4096;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name that is defined here.
    Name,
    /// The name of a function.
    Function,
    /// The name of a function of the program or of the runtime.
    Code,
    /// The name of a thread.
    Thread,
    /// A whole number between these two, inclusive.
    Number(u64, u64),
    /// `#true` or `#false`.
    Flag,
    /// One of several words.
    Word(&'static [&'static str]),
    /// An integer register.
    Gpr,
    /// An integer register, or `none` for a free slot.
    Slot,
    /// An integer or a vector register.
    Register,
    /// An integer register, or `all` for the nonvolatile ones.
    Saved,
    /// A word for searching: letters, digits and `-`.
    Tag,
    /// A position in a function: `App.Foo+0x40`.
    Label,
    /// A label or an address.
    Address,
    /// Names of generations and of sets of generations, separated by blanks.
    Generations,
    /// The thread that makes a call.
    Caller,
    /// The `thread` of a call.
    Target,
    /// The source of a seed.
    Seed,
    /// The name of an HRESULT, or its number.
    HResult,
    /// An HRESULT, or another outcome of a call.
    Outcome,
    /// ContextFlags, or the word `own`.
    Flags,
    /// A truth value, or the names of integer registers separated by blanks.
    Stale,
    /// The number of a clause: `C-014`.
    Clause,
    /// The name of a thread of the program or the profiler, or `own`.
    Party,
    /// The name of a lock of the profiler.
    Lock,
    /// The name of a lock of the profiler, of the runtime or of the process.
    AnyLock,
    /// The name of an event of the profiler.
    Event,
    /// The number of a hazard: `H-06`.
    Hazard,
    /// The schedule string of a history.
    Schedule,
}

/// The arguments of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Args {
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
pub(super) struct PropertyRule {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The property must be present.
    pub(super) required: bool,
}

/// A node of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeRule {
    pub(super) name: &'static str,
    pub(super) args: Args,
    pub(super) properties: &'static [PropertyRule],
    /// Level of the nodes in the node's block; `None` if the node has no block.
    pub(super) block: Option<Level>,
    /// The node appears at most once in a block.
    pub(super) once: bool,
}

/// The places where nodes appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Level {
    /// The text, outside all blocks.
    Text,
    /// The block of a module.
    Module,
    /// The block of a type.
    Type,
    /// The block of a method's names.
    Method,
    /// The block of a function.
    Function,
    /// A body, or the block of a statement.
    Body,
    /// The block of a stop.
    Stop,
    /// The block of an expectation of a stop.
    Expect,
    /// The block of a stack placed by hand.
    Stack,
    /// The block of an activation on a stack placed by hand.
    Activation,
    /// The block of a snapshot.
    Snapshot,
    /// The block of a seed.
    Seed,
    /// The block of an expectation of a snapshot.
    Report,
    /// The block of a mixed walk.
    MixedWalk,
    /// The block of an expectation of a mixed walk.
    MixedReport,
    /// The block of a profiler.
    Profiler,
    /// The block of a thread of the profiler, or of an action.
    Action,
    /// The block of a search of histories.
    Explore,
    /// The block of an expectation of a search of histories.
    History,
}

impl Level {
    /// All levels, outermost first.
    pub(super) const ALL: [Self; 19] = [
        Self::Text,
        Self::Module,
        Self::Type,
        Self::Method,
        Self::Function,
        Self::Body,
        Self::Stop,
        Self::Expect,
        Self::Stack,
        Self::Activation,
        Self::Snapshot,
        Self::Seed,
        Self::Report,
        Self::MixedWalk,
        Self::MixedReport,
        Self::Profiler,
        Self::Action,
        Self::Explore,
        Self::History,
    ];

    /// Returns the nodes that are allowed on the level.
    #[must_use]
    pub(super) const fn nodes(self) -> &'static [NodeRule] {
        match self {
            Self::Text => TEXT,
            Self::Module => MODULE,
            Self::Type => TYPE,
            Self::Method => METHOD,
            Self::Function => FUNCTION,
            Self::Body => BODY,
            Self::Stop => STOP,
            Self::Expect => EXPECT,
            Self::Stack => STACK,
            Self::Activation => ACTIVATION,
            Self::Snapshot => SNAPSHOT,
            Self::Seed => SEED,
            Self::Report => REPORT,
            Self::MixedWalk => MIXED_WALK,
            Self::MixedReport => MIXED_REPORT,
            Self::Profiler => PROFILER,
            Self::Action => ACTION,
            Self::Explore => EXPLORE,
            Self::History => HISTORY,
        }
    }

    /// Returns the name of the level for tools.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Module => "module",
            Self::Type => "type",
            Self::Method => "method",
            Self::Function => "function",
            Self::Body => "body",
            Self::Stop => "stop",
            Self::Expect => "expect",
            Self::Stack => "stack",
            Self::Activation => "activation",
            Self::Snapshot => "snapshot",
            Self::Seed => "seed",
            Self::Report => "snapshot-expect",
            Self::MixedWalk => "mixed-walk",
            Self::MixedReport => "mixed-walk-expect",
            Self::Profiler => "profiler",
            Self::Action => "action",
            Self::Explore => "explore",
            Self::History => "explore-expect",
        }
    }

    /// Returns the description of the level for messages.
    pub(super) const fn place(self) -> &'static str {
        match self {
            Self::Text => "at the outermost level",
            Self::Module => "in a module",
            Self::Type => "in a type",
            Self::Method => "in a method of a type",
            Self::Function => "in a function",
            Self::Body => "in a body",
            Self::Stop => "in a stop",
            Self::Expect => "in an expectation",
            Self::Stack => "in a stack",
            Self::Activation => "in an activation of a stack",
            Self::Snapshot => "in a snapshot",
            Self::Seed => "in a seed",
            Self::Report => "in the expectation of a snapshot",
            Self::MixedWalk => "in a mixed walk",
            Self::MixedReport => "in the expectation of a mixed walk",
            Self::Profiler => "in a profiler",
            Self::Action => "among actions",
            Self::Explore => "in a search of histories",
            Self::History => "in the expectation of a search of histories",
        }
    }
}
