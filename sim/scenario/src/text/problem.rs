//! Problems of texts.

use crate::model::RaisedBy;
use crate::text::grammar::{Kind, MAX_BLOCKS, MAX_STACK_NODES, MAX_TEXT, MAX_WORDS};
use clr_codegen::ProgramRule;
use clr_explore::ScheduleStringError;
use clr_runtime::FrameKind;
use clr_runtime::generation::{Generation, Generations};
use clr_world::synthetic::SyntheticError;
use std::sync::Arc;
use thiserror::Error;

/// Words and properties that were renamed: before, now. One is renamed where the new one is allowed and the old one is not.
const RENAMED: [(&str, &str); 3] = [
    // `complete` and `gap`: a thread that was not stopped.
    ("running", "not-stopped"),
    // `rules`: Windows has others by now, `ntdll`.
    ("windows", "coreclr"),
    // `mixed-walk`: the number of frames that its buffer holds.
    ("room", "capacity"),
];

/// The kind of a problem at a position of a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The text has none of the nodes of scenarios.
    #[error("this file has no node of a scenario, such as `function` or `stack`")]
    Foreign,
    /// The text has no node at all.
    #[error("the text is empty, or has only comments")]
    Empty,
    /// Two functions have the same name.
    #[error("there is a function `{name}` already")]
    FunctionTwice {
        /// The name.
        name: String,
        /// Offset of the first one in bytes.
        first: usize,
    },
    /// A name of a function has a character that is not allowed.
    #[error("{} is not allowed in the name of a function", character(*.found))]
    FunctionCharacter {
        /// The character.
        found: char,
    },
    /// The text is not valid KDL.
    #[error("{0}")]
    Syntax(#[from] SyntaxError),
    /// The KDL parser rejects what the syntax check accepted.
    #[error("{0}")]
    Kdl(String),
    /// The node does not exist in this place.
    #[error("there is no node `{found}` {place}")]
    UnknownNode {
        /// Name of the node.
        found: String,
        /// Description of the place.
        place: &'static str,
        /// Nodes that are allowed there.
        allowed: Vec<String>,
    },
    /// The node is already in the block.
    #[error("`{0}` is already present: it is allowed only once")]
    DuplicateNode(&'static str),
    /// The profiler already has an `on` for the callback.
    #[error("the profiler already has an `on` for the callback `{0}`")]
    DuplicateCallback(&'static str),
    /// Nothing in the text raises the callback.
    #[error("nothing in this text raises the callback `{callback}`")]
    NeverRaised {
        /// Name of the callback.
        callback: &'static str,
        /// The part of a text that would raise it.
        needed: RaisedBy,
    },
    /// The expectation decides on no generation.
    #[error("no runtime is left for this `expect`: those before it are used")]
    DeadExpectation,
    /// The node excludes another one.
    #[error("`{0}` and `{1}` exclude each other")]
    Excluded(&'static str, &'static str),
    /// The property does not exist.
    #[error("`{node}` has no property `{found}`")]
    UnknownProperty {
        /// Name of the node.
        node: &'static str,
        /// Name of the property.
        found: String,
        /// Properties that the node has.
        allowed: Vec<String>,
    },
    /// The property is written twice.
    #[error("the property `{0}` is written twice")]
    DuplicateProperty(String),
    /// A property is missing.
    #[error("`{node}` needs the property `{property}`")]
    MissingProperty {
        /// Name of the node.
        node: &'static str,
        /// Name of the property.
        property: &'static str,
        /// Expected values.
        expected: Kind,
    },
    /// An argument is missing.
    #[error("`{node}` needs an argument")]
    MissingArgument {
        /// Name of the node.
        node: &'static str,
        /// Expected values.
        expected: Kind,
    },
    /// There are too many arguments.
    #[error("`{node}` takes {}", arguments(*.limit))]
    ExtraArgument {
        /// Name of the node.
        node: &'static str,
        /// Maximum number of arguments.
        limit: usize,
    },
    /// The node has no block.
    #[error("`{0}` has no block")]
    ExtraBlock(&'static str),
    /// The value has the wrong type.
    #[error("a {found} is not allowed here")]
    WrongType {
        /// Type of the value.
        found: &'static str,
        /// Expected values.
        expected: Kind,
    },
    /// The word is not one of those allowed here.
    #[error("`{found}` is not allowed here")]
    UnknownWord {
        /// The word.
        found: String,
        /// Expected values.
        expected: Kind,
    },
    /// The number is too small or too large.
    #[error("{found} is out of range")]
    OutOfRange {
        /// The number.
        found: i128,
        /// Expected values.
        expected: Kind,
    },
    /// The function does not exist.
    #[error("there is no function `{found}`")]
    UnknownFunction {
        /// Name in the text.
        found: String,
        /// Existing functions.
        allowed: Arc<[String]>,
    },
    /// The thread does not exist.
    #[error("there is no thread `{found}`")]
    UnknownThread {
        /// Name in the text.
        found: String,
        /// Existing threads.
        allowed: Arc<[String]>,
    },
    /// The profiler has no such lock or event.
    #[error("the profiler has no {what} `{found}`")]
    UnknownOfProfiler {
        /// The word "lock" or "event".
        what: &'static str,
        /// Name in the text.
        found: String,
        /// Existing names.
        allowed: Arc<[String]>,
    },
    /// The buffer does not exist.
    #[error("there is no buffer `{found}`")]
    UnknownBuffer {
        /// Name in the text.
        found: String,
        /// Existing buffers.
        allowed: Arc<[String]>,
    },
    /// The name of a buffer is empty, already used, or begins like an argument.
    #[error("the name of a buffer must be unique and not empty, and not begin with `*`")]
    BufferName,
    /// A buffer is too small.
    #[error("a buffer of {0} bytes cannot hold this")]
    SmallBuffer(u32),
    /// A name of the profiler is empty or already used.
    #[error("the names of locks and events, and those of threads, must be unique and not empty")]
    ProfilerName,
    /// An `else` that does not follow a node with alternatives.
    #[error("`else` must directly follow a `try-lock`, or a `wait` with `micros=`")]
    ElseOfNothing,
    /// The text is not a schedule string.
    #[error("{0}")]
    Schedule(ScheduleStringError),
    /// The name of the thread is empty or already used.
    #[error("the name of a thread must be unique and not empty")]
    ThreadName,
    /// The thread starts in a function that cannot be called.
    #[error("a thread must start in a function with the entry `call`")]
    ThreadStart,
    /// An export, or a request to attach, that no call can reach through the transition of a P/Invoke.
    #[error(
        "`export` and `attach` belong to a function of unmanaged code in which no thread starts"
    )]
    ExportPlace,
    /// A function that some generations lack, and that cannot be part of its callers.
    #[error(
        "a function with `on` is managed, leaves its body only at the end, and is named by `call` alone: elsewhere its callers contain it"
    )]
    InlinedExit,
    /// A `catch` without a `try`.
    #[error("`catch` must directly follow a `try`")]
    CatchWithoutTry,
    /// An EH clause without a guarded statement.
    #[error("`{0}` must directly follow a `guarded`, or a clause that belongs to one")]
    ClauseWithoutGuarded(&'static str),
    /// A filter without its handler.
    #[error("`on-filter` needs a handler directly after it")]
    FilterWithoutCatch,
    /// A stop with several positions, or with none.
    #[error("a stop needs exactly one position")]
    StopPlace,
    /// A node is missing.
    #[error("`{node}` needs a node `{missing}`")]
    MissingNode {
        /// Name of the node.
        node: &'static str,
        /// Name of the node that is missing in its block.
        missing: &'static str,
    },
    /// A snapshot or a walk without a thread.
    #[error("a snapshot or a walk needs a `stack`, or must be in a `stop`")]
    SnapshotOfNothing,
    /// A seed of the registers at a previous stop, of a thread that has none.
    #[error("`stale` is the registers at the walked thread's previous stop, and it has none")]
    NoPreviousStop,
    /// A stop at an instruction that the function does not have.
    #[error("`{function}` has no such instruction")]
    NoInstruction {
        /// Name of the function.
        function: String,
        /// Number of its instructions, on the generation where it has most.
        count: u32,
    },
    /// A node of a stack is present twice on a generation.
    #[error("`{node}` is already present on {generation}")]
    Again {
        /// Name of the node.
        node: &'static str,
        /// First generation that has it twice.
        generation: Generation,
    },
    /// A generation has no such Frames.
    #[error("there is no {kind} on {}", .missing_on.words().join(", "))]
    NoSuchFrame {
        /// Kind of the Frame.
        kind: FrameKind,
        /// Generations without this kind.
        missing_on: Generations,
    },
    /// A part has no meaning without another one.
    #[error("`{0}` makes no sense without `{1}`")]
    Without(&'static str, &'static str),
    /// A walk claims to be complete although it has gaps.
    #[error("with a `gap`, `complete` must give the reason of the first one")]
    CompleteWithGap,
    /// A stack placed by hand has no such part.
    #[error("a stack placed by hand has no {0}")]
    NotOnStack(&'static str),
    /// A stack is inconsistent.
    #[error("{error} (on {generation})")]
    Synthetic {
        /// Reason.
        error: SyntheticError,
        /// First generation on which the stack is inconsistent.
        generation: Generation,
    },
    /// A stack has too many parts.
    #[error("a stack has at most {MAX_STACK_NODES} nodes and {MAX_WORDS} overwritten words")]
    LargeStack,
    /// The named function, or the named position in a function, is not on the stack.
    #[error("there is no `{found}` on the stack (on {generation})")]
    NotOnThisStack {
        /// Name in the text.
        found: String,
        /// First generation on which it is missing.
        generation: Generation,
        /// Functions on the stack.
        allowed: Arc<[String]>,
    },
    /// The program is not valid.
    #[error("{0}")]
    Rule(ProgramRule),
}

/// A violation of the syntax of KDL or of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SyntaxError {
    /// The text is too long.
    #[error("the text is longer than {MAX_TEXT} bytes")]
    TooLong,
    /// Blocks or comments are nested too deeply.
    #[error("blocks or comments are nested more than {MAX_BLOCKS} deep")]
    Nesting,
    /// A string does not end on its line.
    #[error("the string does not end in its line")]
    UnclosedString,
    /// A comment does not end.
    #[error("the comment does not end")]
    UnclosedComment,
    /// A block does not end.
    #[error("the block does not end")]
    UnclosedBlock,
    /// A `}` without a block.
    #[error("there is no block to end here")]
    StrayBrace,
    /// An escape in a string does not exist.
    #[error("there is no such escape in strings")]
    Escape,
    /// A character that is not allowed in the place.
    #[error("the character {0:?} is not allowed here")]
    Character(char),
    /// A number that is invalid, not whole, or has too many digits.
    #[error("this is not a whole number")]
    Number,
    /// A keyword that does not exist, or is not used in this format.
    #[error("there is no such keyword here")]
    Keyword,
    /// A word that KDL 2 reserves.
    #[error("this word must be a keyword or be in quotes")]
    ReservedWord,
    /// A node does not begin with a name.
    #[error("a node must begin with its name")]
    NodeName,
    /// A part that cannot follow in a node.
    #[error("the node cannot go on like this")]
    Entry,
    /// Two parts of a node without a space between them.
    #[error("a space is missing before this")]
    Space,
    /// `=` without a name before it or a value after it.
    #[error("a property is a name, `=` and a value")]
    Property,
    /// A part after a block on the same line.
    #[error("a node ends with its block")]
    BehindBlock,
    /// `/-` before a part that cannot be left out.
    #[error("`/-` leaves out the node, argument or property that follows it")]
    Slashdash,
    /// `/-` inside a part that another one leaves out.
    #[error("`/-` is inside a part that another `/-` leaves out")]
    NestedSlashdash,
    /// `;` after a node that is left out: the KDL parser takes it for a node.
    #[error("a node that is left out ends with its line, not with `;`")]
    SlashdashSemicolon,
}

impl ProblemKind {
    /// Returns the label to print beside the source range.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::UnknownNode { .. }
            | Self::UnknownProperty { .. }
            | Self::UnknownWord { .. }
            | Self::UnknownFunction { .. }
            | Self::UnknownThread { .. }
            | Self::UnknownBuffer { .. }
            | Self::UnknownOfProfiler { .. }
            | Self::NotOnThisStack { .. } => "unknown",
            Self::DuplicateNode(_)
            | Self::DuplicateCallback(_)
            | Self::DuplicateProperty(_)
            | Self::Again { .. } => "duplicate",
            Self::MissingProperty { .. }
            | Self::MissingArgument { .. }
            | Self::MissingNode { .. } => "something is missing",
            Self::Synthetic { .. } => "inconsistent",
            Self::Rule(_) => "violates a rule of programs",
            _ => "here",
        }
    }
}

/// Returns a character in quotes, with its number if it looks like another one.
pub(crate) fn character(c: char) -> String {
    if c.is_ascii() { format!("`{c}`") } else { format!("`{c}` (U+{:04X})", u32::from(c)) }
}

fn arguments(limit: usize) -> String {
    match limit {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        _ => format!("at most {limit} arguments"),
    }
}

/// Returns the word before and now, if a problem is that it was renamed.
pub(crate) fn renamed(problem: &ProblemKind) -> Option<(&'static str, &'static str)> {
    let is_allowed = |now: &str| match problem {
        ProblemKind::UnknownWord { expected: Kind::Word(words), .. } => words.contains(&now),
        ProblemKind::UnknownProperty { allowed, .. } => allowed.iter().any(|name| name == now),
        _ => false,
    };
    let (ProblemKind::UnknownWord { found, .. } | ProblemKind::UnknownProperty { found, .. }) =
        problem
    else {
        return None;
    };
    RENAMED.into_iter().find(|(before, now)| found == before && is_allowed(now))
}
