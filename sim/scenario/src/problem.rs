//! What can be wrong with a text.

use super::grammar::{MAX_BLOCKS, MAX_STACK_NODES, MAX_TEXT, MAX_WORDS};
use super::suggest::{list, suggest};
use clr_codegen::Rule;
use clr_explore::TrailError;
use clr_runtime::FrameKind;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::HResult;
use clr_world::synthetic::StageError;
use std::sync::Arc;
use thiserror::Error;

/// What is wrong at a place of a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProblemKind {
    /// The text is no KDL.
    #[error("{0}")]
    Syntax(#[from] SyntaxError),
    /// The KDL parser refuses what the syntax allows.
    #[error("{0}")]
    Kdl(String),
    /// There is no such node here.
    #[error("there is no node `{found}` {place}")]
    UnknownNode {
        /// Its name.
        found: String,
        /// Where it stands.
        place: &'static str,
        /// The nodes that may stand there.
        allowed: Vec<String>,
    },
    /// The node stands here twice.
    #[error("`{0}` stands here already: it can be written once")]
    DuplicateNode(&'static str),
    /// The node excludes another one.
    #[error("`{0}` and `{1}` exclude each other")]
    Excluded(&'static str, &'static str),
    /// There is no such property.
    #[error("`{node}` has no property `{found}`")]
    UnknownProperty {
        /// The node.
        node: &'static str,
        /// The name of the property.
        found: String,
        /// The properties that it has.
        allowed: Vec<String>,
    },
    /// The property is written twice.
    #[error("the property `{0}` is written twice")]
    DuplicateProperty(String),
    /// A property is missing.
    #[error("`{node}` needs the property `{property}`")]
    MissingProperty {
        /// The node.
        node: &'static str,
        /// The property.
        property: &'static str,
        /// What it may be.
        expected: Expected,
    },
    /// An argument is missing.
    #[error("`{node}` needs an argument")]
    MissingArgument {
        /// The node.
        node: &'static str,
        /// What it may be.
        expected: Expected,
    },
    /// An argument is too much.
    #[error("`{node}` takes {}", arguments(*.limit))]
    ExtraArgument {
        /// The node.
        node: &'static str,
        /// How many arguments it takes.
        limit: usize,
    },
    /// The node has no block.
    #[error("`{0}` has no block")]
    ExtraBlock(&'static str),
    /// The value is of another type.
    #[error("a {found} cannot stand here")]
    WrongType {
        /// Its type.
        found: &'static str,
        /// What may stand here.
        expected: Expected,
    },
    /// The word is none of those that may stand here.
    #[error("`{found}` cannot stand here")]
    UnknownWord {
        /// The word.
        found: String,
        /// What may stand here.
        expected: Expected,
    },
    /// The number is too small or too large.
    #[error("{found} is out of range")]
    OutOfRange {
        /// The number.
        found: i128,
        /// What may stand here.
        expected: Expected,
    },
    /// There is no function of that name.
    #[error("there is no function `{found}`")]
    UnknownFunction {
        /// The name.
        found: String,
        /// The functions that there are.
        allowed: Arc<[String]>,
    },
    /// There is no thread of that name.
    #[error("there is no thread `{found}`")]
    UnknownThread {
        /// The name.
        found: String,
        /// The threads that there are.
        allowed: Arc<[String]>,
    },
    /// The profiler has no lock or event of that name.
    #[error("the profiler has no {what} `{found}`")]
    UnknownOfProfiler {
        /// A lock or an event.
        what: &'static str,
        /// The name.
        found: String,
        /// Those that there are.
        allowed: Arc<[String]>,
    },
    /// A name of the profiler is empty or taken.
    #[error("names of locks and events, and those of threads, are unique and not empty")]
    ProfilerName,
    /// An `else` behind nothing that has one.
    #[error("`else` stands right behind a `try-lock`, or a `wait` with `micros=`")]
    ElseOfNothing,
    /// It is no replay string.
    #[error("{0}")]
    Trail(TrailError),
    /// The thread's name is empty or taken.
    #[error("the name of a thread is unique and not empty")]
    ThreadName,
    /// The thread starts in a function that is not called.
    #[error("a thread starts in a function with the entry `call`")]
    ThreadStart,
    /// A catch without a try.
    #[error("`catch` stands right behind a `try`")]
    CatchWithoutTry,
    /// A clause without a guarded statement.
    #[error("`{0}` stands right behind a `guarded` or another clause of one")]
    ClauseWithoutGuarded(&'static str),
    /// A filter without its handler.
    #[error("`on-filter` needs its handler right behind it")]
    FilterWithoutCatch,
    /// A stop at several places, or at none.
    #[error("a stop is at one place")]
    StopPlace,
    /// A node is missing.
    #[error("`{node}` needs a node `{missing}`")]
    MissingNode {
        /// The node.
        node: &'static str,
        /// What is missing in its block.
        missing: &'static str,
    },
    /// A snapshot or a walk of no thread.
    #[error("a snapshot or a walk is made of a `stack`, or in a `stop`")]
    SnapshotOfNothing,
    /// A node of a stack is there twice on a generation.
    #[error("`{node}` is there already on {generation}")]
    Again {
        /// The node.
        node: &'static str,
        /// The first generation that has it twice.
        generation: Generation,
    },
    /// A generation has no such Frames.
    #[error("there is no {kind} on {}", .missing_on.words().join(", "))]
    NoSuchFrame {
        /// The kind.
        kind: FrameKind,
        /// Where there is none.
        missing_on: Generations,
    },
    /// A part makes no sense without another one.
    #[error("`{0}` makes no sense without `{1}`")]
    Without(&'static str, &'static str),
    /// A walk claims to have everything, and has not.
    #[error("what has a `gap` is complete as far as its first reason says")]
    CompleteWithGap,
    /// A stack placed by hand has no such thing.
    #[error("a stack placed by hand has no {0}")]
    NotOnStack(&'static str),
    /// A stack does not fit together.
    #[error("{error} (on {generation})")]
    Stage {
        /// Why.
        error: StageError,
        /// The first generation on which it does not.
        generation: Generation,
    },
    /// A stack has too many parts.
    #[error("a stack has at most {MAX_STACK_NODES} nodes, and {MAX_WORDS} words written over it")]
    LargeStack,
    /// No row has the function, or no function the place, that is named.
    #[error("there is no `{found}` on the stack (on {generation})")]
    NotOnThisStack {
        /// What is named.
        found: String,
        /// The first generation on which it is not there.
        generation: Generation,
        /// The functions that there are.
        allowed: Arc<[String]>,
    },
    /// The program is not valid.
    #[error("{0}")]
    Rule(Rule),
}

/// What KDL does not allow, or this format not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SyntaxError {
    /// The text is too long.
    #[error("the text is longer than {MAX_TEXT} bytes")]
    TooLong,
    /// Blocks or comments stand too deep inside each other.
    #[error("more than {MAX_BLOCKS} blocks or comments stand inside each other")]
    Nesting,
    /// A string does not end in its line.
    #[error("the string does not end in its line")]
    UnclosedString,
    /// A comment does not end.
    #[error("the comment does not end")]
    UnclosedComment,
    /// A block does not end.
    #[error("the block does not end")]
    UnclosedBlock,
    /// No block starts where one ends.
    #[error("no block ends here")]
    StrayBrace,
    /// An escape in a string does not exist.
    #[error("a string has no such escape")]
    Escape,
    /// A character that has no place in the text.
    #[error("the character {0:?} cannot stand here")]
    Character(char),
    /// A number that is none, or no whole one, or one of too many digits.
    #[error("this is not a whole number")]
    Number,
    /// A keyword that does not exist, or has no use here.
    #[error("there is no such keyword here")]
    Keyword,
    /// A word that KDL 2 reserves.
    #[error("this word must be a keyword or be in quotes")]
    ReservedWord,
    /// Something else stands where a node begins.
    #[error("a node begins with its name")]
    NodeName,
    /// Something that no node goes on with.
    #[error("the node cannot go on like this")]
    Entry,
    /// Two parts of a node are not apart.
    #[error("a space is missing in front of this")]
    Space,
    /// `=` without a name before it or a value behind it.
    #[error("a property is a name, `=` and a value")]
    Property,
    /// Something behind a block in the same line.
    #[error("a node ends with its block")]
    BehindBlock,
    /// `/-` in front of nothing that can be left out.
    #[error("`/-` leaves out the node, argument or property that follows it")]
    Slashdash,
    /// `/-` inside of what another one leaves out.
    #[error("`/-` stands inside of what another `/-` leaves out")]
    NestedSlashdash,
    /// `;` behind a node that is left out: the KDL parser takes it for a node.
    #[error("a node that is left out ends with its line, not with `;`")]
    SlashdashSemicolon,
}

/// What may stand at a place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Expected {
    /// A name.
    #[error("expected a name, as in \"main\"")]
    Name,
    /// The name of a function.
    #[error("expected the name of a function")]
    Function,
    /// The name of a thread.
    #[error("expected the name of a thread")]
    Thread,
    /// A number of a range.
    #[error("expected a whole number from {0} to {1}, decimal or hexadecimal")]
    Number(u64, u64),
    /// A truth value.
    #[error("expected `#true` or `#false`")]
    Flag,
    /// One of some words.
    #[error("expected one of: {}", list(.0))]
    Word(Vec<&'static str>),
    /// A tag.
    #[error("expected a word of letters, digits and `-`")]
    Tag,
    /// A place in a function.
    #[error("expected a function and an offset, as in \"App.Foo+0x40\"")]
    Label,
    /// A place in a function or an address.
    #[error("expected a function and an offset, as in \"App.Foo+0x40\", or an address")]
    Address,
    /// Generations.
    #[error("expected one or more of these, with blanks between them: {}", list(.0))]
    Generations(Vec<&'static str>),
    /// A thread that calls.
    #[error("expected `self`, `native-walker`, `managed-walker` or the name of a thread")]
    Caller,
    /// The `thread` of a call.
    #[error("expected `own`, `null`, a number or the name of a thread")]
    Target,
    /// What a seed is made from.
    #[error("expected a function, or one of: `leaf`, `top-managed`, `stale`, `bytes`")]
    Seed,
    /// An HRESULT.
    #[error("expected the name of an HRESULT, as in \"E_FAIL\", or its number")]
    HResult,
    /// How a call ends.
    #[error(
        "expected the name of an HRESULT, as in \"E_FAIL\", its number, or one of: `killed`, \
         `access-violation`, `blocked`, `endless`"
    )]
    Outcome,
    /// ContextFlags.
    #[error("expected a number of 32 bits, or `own`")]
    Flags,
    /// Which registers are stale.
    #[error("expected `#true`, `#false` or registers with blanks between them, as in \"rbx rsi\"")]
    Stale,
    /// A clause.
    #[error("expected the number of a clause, as in \"C-014\"")]
    Clause,
    /// A thread of the program or the profiler.
    #[error("expected `own`, or the name of a thread of the program or the profiler")]
    Party,
    /// A lock of the profiler.
    #[error("expected the name of a lock of the profiler")]
    Lock,
    /// A lock.
    #[error("expected the name of a lock of the profiler, the runtime or the process")]
    AnyLock,
    /// An event of the profiler.
    #[error("expected the name of an event of the profiler")]
    Event,
    /// A hazard.
    #[error("expected the number of a hazard, as in \"H-06\"")]
    Hazard,
    /// A replay string.
    #[error("expected the replay string of a history, as in \"clr1:14b3a\"")]
    Trail,
}

impl ProblemKind {
    /// What to write beside the place.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            Self::UnknownNode { .. }
            | Self::UnknownProperty { .. }
            | Self::UnknownWord { .. }
            | Self::UnknownFunction { .. }
            | Self::UnknownThread { .. }
            | Self::UnknownOfProfiler { .. }
            | Self::NotOnThisStack { .. } => "unknown",
            Self::DuplicateNode(_) | Self::DuplicateProperty(_) | Self::Again { .. } => "again",
            Self::MissingProperty { .. }
            | Self::MissingArgument { .. }
            | Self::MissingNode { .. } => "something is missing",
            Self::Stage { .. } => "does not fit",
            Self::Rule(_) => "breaks a rule of programs",
            _ => "here",
        }
    }

    /// What would be right.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::UnknownNode { found, allowed, .. }
            | Self::UnknownProperty { found, allowed, .. } => {
                if allowed.is_empty() {
                    return Some("nothing can stand there".to_owned());
                }
                suggest(found, allowed, "one of")
            }
            Self::UnknownFunction { found, allowed } => suggest(found, allowed, "a function"),
            Self::UnknownThread { found, allowed } => suggest(found, allowed, "a thread"),
            Self::UnknownOfProfiler { found, allowed, .. } => suggest(found, allowed, "one of"),
            Self::UnknownWord {
                found,
                expected: Expected::Word(words) | Expected::Generations(words),
            } => suggest(found, words, "one of"),
            Self::UnknownWord { found, expected: Expected::HResult | Expected::Outcome } => {
                let names: Vec<_> = HResult::NAMED.iter().map(ToString::to_string).collect();
                suggest(found, &names, "one of")
            }
            Self::NotOnThisStack { found, allowed, .. } => {
                let function = found.rsplit_once("+0x").map_or(found.as_str(), |(name, _)| name);
                suggest(function, allowed, "a function")
            }
            Self::NoSuchFrame { .. } => "say by `on=` on which generations it is there".to_owned(),
            Self::MissingProperty { expected, .. }
            | Self::MissingArgument { expected, .. }
            | Self::WrongType { expected, .. }
            | Self::UnknownWord { expected, .. }
            | Self::OutOfRange { expected, .. } => expected.to_string(),
            Self::Excluded(..) => "leave one of them out".to_owned(),
            Self::ExtraBlock(_) => "expected the end of the line".to_owned(),
            Self::CatchWithoutTry => "expected `try { … }` in front of it".to_owned(),
            Self::ClauseWithoutGuarded(_) => "expected `guarded { … }` in front of it".to_owned(),
            Self::FilterWithoutCatch => "expected `on-catch { … }` behind it".to_owned(),
            Self::StopPlace => "expected one of: `after=`, `at=`, \"end\"; `instruction=` and \
                                `visit=` go with `at=`"
                .to_owned(),
            Self::Syntax(error) => error.help()?.to_owned(),
            _ => return None,
        };
        Some(help)
    }
}

impl SyntaxError {
    const fn help(self) -> Option<&'static str> {
        Some(match self {
            Self::UnclosedString => "expected `\"`",
            Self::UnclosedComment => "expected `*/`",
            Self::UnclosedBlock => "expected `}`",
            Self::Escape => r#"expected one of: \\ \" \n \r \t \b \f \s \u{1 to 6 hex digits}"#,
            Self::Number => "expected decimal digits, or 0x and hexadecimal ones",
            Self::Keyword | Self::ReservedWord => "expected one of: `#true`, `#false`",
            Self::NodeName => "expected a word or a string; numbers and blocks come behind it",
            Self::Entry => "expected an argument, a property, a block, `;`, or the line's end",
            Self::BehindBlock => "expected `;`, `}`, or the line's end",
            Self::Slashdash => "expected a node's name behind it, or a value; not a block",
            _ => return None,
        })
    }
}

fn arguments(limit: usize) -> String {
    match limit {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        _ => format!("at most {limit} arguments"),
    }
}
