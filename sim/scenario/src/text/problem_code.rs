//! Stable codes of problems, for tools and for the book.

use crate::text::problem::ProblemKind;

/// Defines the codes, with the kinds of problems that each stands for.
macro_rules! codes {
    ($($code:literal: $($kind:ident)+,)+) => {
        impl ProblemKind {
            /// All codes. A code keeps its meaning; new kinds of problems get new codes.
            pub const CODES: [&'static str; [$($code),+].len()] = [$($code),+];

            /// Returns the code of the problem, one of [`CODES`](Self::CODES).
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self { $($(Self::$kind { .. })|+ => $code,)+ }
            }
        }
    };
}

codes! {
    "foreign": Foreign,
    "empty": Empty,
    "function-name": FunctionTwice FunctionCharacter,
    "syntax": Syntax Kdl,
    "unknown-node": UnknownNode,
    "duplicate-node": DuplicateNode,
    "duplicate-callback": DuplicateCallback,
    "never-raised": NeverRaised,
    "dead-expectation": DeadExpectation,
    "excluded": Excluded,
    "unknown-property": UnknownProperty,
    "duplicate-property": DuplicateProperty,
    "missing-property": MissingProperty,
    "missing-argument": MissingArgument,
    "extra-argument": ExtraArgument,
    "extra-block": ExtraBlock,
    "wrong-type": WrongType,
    "unknown-word": UnknownWord,
    "out-of-range": OutOfRange,
    "unknown-function": UnknownFunction,
    "unknown-thread": UnknownThread,
    "unknown-lock-or-event": UnknownOfProfiler,
    "profiler-name": ProfilerName,
    "else-of-nothing": ElseOfNothing,
    "schedule": Schedule,
    "thread-name": ThreadName,
    "thread-start": ThreadStart,
    "export-place": ExportPlace,
    "unknown-buffer": UnknownBuffer,
    "buffer-name": BufferName,
    "small-buffer": SmallBuffer,
    "inlined-exit": InlinedExit,
    "catch-without-try": CatchWithoutTry,
    "clause-without-guarded": ClauseWithoutGuarded,
    "filter-without-catch": FilterWithoutCatch,
    "stop-place": StopPlace,
    "missing-node": MissingNode,
    "snapshot-of-nothing": SnapshotOfNothing,
    "no-previous-stop": NoPreviousStop,
    "no-instruction": NoInstruction,
    "duplicate-on-runtime": Again,
    "no-such-frame": NoSuchFrame,
    "without": Without,
    "complete-with-gap": CompleteWithGap,
    "not-on-stacks": NotOnStack,
    "inconsistent-stack": Synthetic,
    "large-stack": LargeStack,
    "not-on-this-stack": NotOnThisStack,
    "program-rule": Rule,
}
