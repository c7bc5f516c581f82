//! The grammar as tables: which nodes stand where, with which arguments and properties. The reader
//! and the tests of the grammar's document know no other names.

mod nodes;

use nodes::{
    ACTION, BODY, EXPECT, EXPLORE, FUNCTION, HISTORY, MIXED_REPORT, MIXED_WALK, PROFILER, REPORT,
    ROW, SEED, SNAPSHOT, STACK, STOP, TEXT,
};

/// The longest text that is read, in bytes.
pub(super) const MAX_TEXT: usize = 1 << 20;

/// The deepest nesting of blocks that is read: more than a valid program needs.
pub(super) const MAX_BLOCKS: u32 = 16;

/// The most nodes that a stack placed by hand has.
pub(super) const MAX_STACK_NODES: usize = 4096;

/// The most words that are written over a stack placed by hand.
pub(super) const MAX_WORDS: u32 = 4096;

/// The most frames that a walk of a whole stack has room for.
pub(super) const MAX_ROOM: u32 = 4096;

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name that is defined here.
    Name,
    /// The name of a function.
    Function,
    /// The name of a function, or of one of the runtime's.
    Code,
    /// The name of a thread.
    Thread,
    /// A whole number between these two.
    Number(u64, u64),
    /// `#true` or `#false`.
    Flag,
    /// One of some words.
    Word(&'static [&'static str]),
    /// An integer register.
    Gpr,
    /// An integer register, or `none` where a slot stays free.
    Slot,
    /// An integer or a vector register.
    Register,
    /// An integer register, or `all` for the nonvolatile ones.
    Saved,
    /// A word that others look for: letters, digits and `-`.
    Tag,
    /// A place in a function: `App.Foo+0x40`.
    Label,
    /// The same, or an address.
    Address,
    /// Names of generations and of sets of them, with blanks between them.
    Generations,
    /// A thread that calls.
    Caller,
    /// The `thread` of a call.
    Target,
    /// What a seed is made from.
    Seed,
    /// The name of an HRESULT, or its number.
    HResult,
    /// The same, or another way to end.
    Outcome,
    /// ContextFlags, or the word `own`.
    Flags,
    /// A truth value, or the names of integer registers with blanks between them.
    Stale,
    /// The number of a clause: `C-014`.
    Clause,
    /// The name of a thread of the program or the profiler, or `own`.
    Party,
    /// The name of a lock of the profiler.
    Lock,
    /// The same, or the name of one of the runtime and the process.
    AnyLock,
    /// The name of an event of the profiler.
    Event,
    /// The number of a hazard: `H-06`.
    Hazard,
    /// The replay string of a history.
    Trail,
}

/// The arguments of a node, all of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Args {
    /// None.
    None,
    /// Exactly one.
    One(Kind),
    /// One that may be left out.
    Optional(Kind),
    /// As many as wanted, up to a limit.
    Many(Kind, usize),
}

/// A property of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PropertyRule {
    /// Its name.
    pub(super) name: &'static str,
    /// What its value may be.
    pub(super) kind: Kind,
    /// Whether it must be there.
    pub(super) required: bool,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeRule {
    /// Its name.
    pub(super) name: &'static str,
    /// Its arguments.
    pub(super) args: Args,
    /// Its properties.
    pub(super) properties: &'static [PropertyRule],
    /// What stands in its block, if it has one.
    pub(super) block: Option<Level>,
    /// Whether it stands at most once in a block.
    pub(super) once: bool,
}

/// Where nodes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Level {
    /// In no block.
    Text,
    /// In the block of a function.
    Function,
    /// In a body, or in the block of a statement.
    Body,
    /// In the block of a stop.
    Stop,
    /// In the block of an expectation.
    Expect,
    /// In the block of a stack placed by hand.
    Stack,
    /// In the block of a row of it.
    Row,
    /// In the block of a snapshot.
    Snapshot,
    /// In the block of a seed.
    Seed,
    /// In the block of an expectation of a snapshot.
    Report,
    /// In the block of a walk of a whole stack.
    MixedWalk,
    /// In the block of an expectation of one.
    MixedReport,
    /// In the block of a profiler.
    Profiler,
    /// In the block of a thread of the profiler, or in that of an action.
    Action,
    /// In the block of a search of histories.
    Explore,
    /// In the block of an expectation of one.
    History,
}

impl Level {
    /// All levels, outermost first.
    #[cfg(test)]
    pub(super) const ALL: [Self; 16] = [
        Self::Text,
        Self::Function,
        Self::Body,
        Self::Stop,
        Self::Expect,
        Self::Stack,
        Self::Row,
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

    /// The nodes that may stand there.
    #[must_use]
    pub(super) const fn nodes(self) -> &'static [NodeRule] {
        match self {
            Self::Text => TEXT,
            Self::Function => FUNCTION,
            Self::Body => BODY,
            Self::Stop => STOP,
            Self::Expect => EXPECT,
            Self::Stack => STACK,
            Self::Row => ROW,
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

    /// Where it is, for messages.
    pub(super) const fn place(self) -> &'static str {
        match self {
            Self::Text => "at the outermost level",
            Self::Function => "in a function",
            Self::Body => "in a body",
            Self::Stop => "in a stop",
            Self::Expect => "in an expectation",
            Self::Stack => "in a stack",
            Self::Row => "in a row of a stack",
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
