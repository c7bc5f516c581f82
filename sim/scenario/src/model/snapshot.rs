//! Calls of `DoStackSnapshot` in texts, and their expected results.

use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult};
use clr_unwind::Gpr;
use clr_walker::profiling::SnapshotFlags;
use core::fmt;

/// A call of `DoStackSnapshot`, and its expected result on each generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotCall {
    /// Title of the call.
    pub title: Option<String>,
    /// Calling thread.
    pub by: SnapshotCaller,
    /// Profiler callback that the call is made in.
    pub in_callback: Option<CallbackKind>,
    /// Argument `thread`.
    pub thread: SnapshotThread,
    /// Argument `infoFlags`.
    pub flags: SnapshotFlags,
    /// Seed of the call.
    pub seed: Option<SnapshotSeed>,
    /// `callback` is NULL.
    pub null_callback: bool,
    /// Callback that ends the walk.
    pub stop_at: Option<LastCallback>,
    /// The caller has suspended the runtime with SuspendRuntime.
    pub suspended: bool,
    /// Calls that are made in every callback.
    pub nested: Vec<NestedCall>,
    /// Expectations. For each generation the first matching one is used.
    pub expect: Vec<ExpectedSnapshot>,
}

impl Default for SnapshotCall {
    fn default() -> Self {
        Self {
            title: None,
            by: SnapshotCaller::default(),
            in_callback: None,
            thread: SnapshotThread::default(),
            flags: SnapshotFlags::REGISTER_CONTEXT,
            seed: None,
            null_callback: false,
            stop_at: None,
            suspended: false,
            nested: Vec::new(),
            expect: Vec::new(),
        }
    }
}

impl SnapshotCall {
    /// Returns the expectation for a generation, with its index.
    #[must_use]
    pub fn expected_on(&self, generation: Generation) -> Option<(usize, &ExpectedSnapshot)> {
        self.expect.iter().enumerate().find(|(_, expect)| expect.on.contains(generation))
    }

    /// Makes the call one that is made on no generation.
    pub(crate) fn never(&mut self) {
        self.expect.truncate(1);
        self.expect.resize_with(1, || ExpectedSnapshot::nothing_on(Generations::NONE));
        self.expect.iter_mut().for_each(|expect| expect.on = Generations::NONE);
    }

    /// Returns true if the call is made on a generation: one with an expectation, or every one if
    /// the call has no expectations.
    #[must_use]
    pub fn applies_to(&self, generation: Generation) -> bool {
        self.expect.is_empty() || self.expected_on(generation).is_some()
    }
}

/// The thread that makes a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SnapshotCaller {
    /// The thread with the stack.
    #[default]
    Own,
    /// A thread that the runtime does not know.
    NativeWalker,
    /// A thread that the runtime knows, in preemptive mode.
    ManagedWalker,
    /// Another thread of the program, by its index.
    Thread(u32),
}

/// The `thread` argument of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SnapshotThread {
    /// The id of the thread with the stack.
    #[default]
    Own,
    /// The value 0.
    Null,
    /// Any value.
    Value(u64),
    /// The id of another thread of the program, by its index.
    Thread(u32),
}

/// The callback that ends a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LastCallback {
    /// Number of the callback; 1 is the first.
    pub callback: u32,
    /// Return value of the callback.
    pub returns: HResult,
}

/// A call made in a callback, which is not expected to make callbacks itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NestedCall {
    /// Calling thread.
    pub by: SnapshotCaller,
    /// Argument `thread`.
    pub thread: SnapshotThread,
}

/// A seed of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSeed {
    /// Source of the seed.
    pub from: SeedSource,
    /// Changed value of rip.
    pub rip: Option<SeedAddress>,
    /// Changed values of registers, ascending by register.
    pub registers: Vec<(Gpr, u64)>,
    /// ContextFlags, if they differ from [`SEED_FLAGS`].
    pub flags: Option<u32>,
    /// XStateFeaturesMask.
    pub features: u64,
    /// Number of readable bytes; `None` if all are readable.
    pub cut: Option<u32>,
}

/// The source of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedSource {
    /// The registers of the first activation of a function, as a profiler gets them by unwinding.
    Function(String),
    /// The thread's own registers.
    Leaf,
    /// The registers of the first managed activation.
    TopManaged,
    /// The registers that the thread had at its previous stop.
    Stale,
    /// A repeated byte.
    Bytes(u8),
}

/// Prints the source in words that follow "the" or "no".
impl fmt::Display for SeedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(function) => write!(f, "activation of {function}"),
            Self::Leaf => f.write_str("leaf"),
            Self::TopManaged => f.write_str("managed activation"),
            Self::Stale => f.write_str("managed activation at its previous stop"),
            Self::Bytes(_) => f.write_str("bytes"),
        }
    }
}

/// The value of rip in a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedAddress {
    /// A position in a function: `App.Foo+0x17`.
    Label(String),
    /// An address (VA).
    Address(u64),
}

/// ContextFlags of seeds: `CONTEXT_FULL`.
pub const SEED_FLAGS: u32 = 0x10_000B;
/// rax of seeds that are made from registers. Nothing on a walk sets it, so every context has this
/// value (C-158).
pub const SEED_RAX: u64 = 0x5EED;
/// The largest sizeof(CONTEXT), and the length of seeds in bytes.
pub const SEED_SIZE: u32 = 0xCA0;

impl SnapshotSeed {
    /// Creates a seed from a source without changes.
    #[must_use]
    pub const fn new(from: SeedSource) -> Self {
        Self { from, rip: None, registers: Vec::new(), flags: None, features: 0, cut: None }
    }

    /// Returns true if the seed was changed by hand.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        *self != Self::new(self.from.clone())
    }
}

/// The provenance of an expectation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// Nothing but the rules, which are known to a different degree on each runtime
    /// ([`Support::of`](clr_runtime::clause::Support::of)).
    #[default]
    Rules,
    /// The source code of a runtime.
    Source,
    /// The documentation.
    Documentation,
    /// A public report of somebody whose profiler met it.
    Reported,
    /// Observations of real runtimes: the number of times, if known.
    Observed(Option<u64>),
}

/// The expected result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedSnapshot {
    /// Generations that the expectation is for.
    pub on: Generations,
    /// Provenance of the expectation.
    pub from: Provenance,
    /// Other callbacks are allowed between these.
    pub others: bool,
    /// ContextFlags of all contexts, if they are not those of the seed (C-097).
    pub context_flags: Option<ExpectedFlags>,
    /// Callbacks, in order.
    pub frames: Vec<ExpectedFrameReport>,
    /// Outcomes of the nested calls.
    pub nested: Vec<ExpectedOutcome>,
    /// Outcome of the call.
    pub result: ExpectedOutcome,
    /// Clauses that state the rule.
    pub clauses: Vec<Clause>,
}

impl ExpectedSnapshot {
    /// Creates the expectation of a call that makes no callbacks and returns S_OK.
    pub(crate) fn nothing_on(on: Generations) -> Self {
        Self {
            on,
            from: Provenance::default(),
            others: false,
            context_flags: None,
            frames: Vec::new(),
            nested: Vec::new(),
            result: ExpectedOutcome::default(),
            clauses: Vec::new(),
        }
    }
}

/// An expected callback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedFrameReport {
    /// The callback is a marker.
    pub marker: bool,
    /// Function that contains the ip, or with an offset the exact position; `None` if it is not
    /// checked.
    pub label: Option<String>,
    /// Values of some registers, ascending by register.
    pub registers: Vec<(Gpr, u64)>,
    /// Registers that still have the values that the walk started with (C-098, C-158).
    pub stale: Stale,
    /// ContextFlags, if they differ from those of the other callbacks.
    pub context_flags: Option<ExpectedFlags>,
}

/// The registers in a callback's context that have the values that the walk started with, instead
/// of the activation's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stale {
    /// No registers: the nonvolatile ones are the activation's.
    #[default]
    None,
    /// All nonvolatile registers except rbp.
    All,
    /// These registers, ascending. The other nonvolatile ones are the activation's.
    Only(Vec<Gpr>),
}

impl Stale {
    /// Returns true if a register is stale. With [`All`](Self::All), the register must be a
    /// nonvolatile one.
    #[must_use]
    pub fn contains(&self, register: Gpr) -> bool {
        match self {
            Self::None => false,
            Self::All => register != Gpr::Rbp,
            Self::Only(registers) => registers.contains(&register),
        }
    }
}

/// The expected ContextFlags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpectedFlags {
    /// The flags of the context that the runtime takes of a stopped thread.
    Own,
    /// A value.
    Value(u32),
}

/// The expected outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpectedOutcome {
    /// The call returns.
    Returned(HResult),
    /// The runtime ends the process.
    Killed {
        /// Exit code; `None` if it is not checked.
        code: Option<HResult>,
    },
    /// An unhandled fault ends the process.
    AccessViolation {
        /// Unreadable address (VA); `None` if it is not checked.
        at: Option<u64>,
    },
    /// The caller waits for the code manager's lock for ever.
    Blocked,
    /// The walk never ends.
    Endless,
}

impl Default for ExpectedOutcome {
    fn default() -> Self {
        Self::Returned(HResult::OK)
    }
}

impl From<Outcome> for ExpectedOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Returned(result) => Self::Returned(result),
            Outcome::ProcessKilled { code } => Self::Killed { code: Some(HResult(code)) },
            Outcome::AccessViolation { at } => Self::AccessViolation { at: Some(at) },
            Outcome::Blocked => Self::Blocked,
            Outcome::Endless => Self::Endless,
        }
    }
}

impl ExpectedOutcome {
    /// Returns true if the outcome of a call is as expected.
    #[must_use]
    pub fn is(self, outcome: Outcome) -> bool {
        match (self, outcome) {
            (Self::Killed { code: None }, Outcome::ProcessKilled { .. })
            | (Self::AccessViolation { at: None }, Outcome::AccessViolation { .. }) => true,
            _ => self == Self::from(outcome),
        }
    }
}

/// Prints the outcome like [`Outcome`].
impl fmt::Display for ExpectedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Returned(result) => fmt::Display::fmt(&result, f),
            Self::Killed { code: Some(code) } => Outcome::ProcessKilled { code: code.0 }.fmt(f),
            Self::Killed { code: None } => f.write_str("the process is killed"),
            Self::AccessViolation { at: Some(at) } => Outcome::AccessViolation { at }.fmt(f),
            Self::AccessViolation { at: None } => {
                f.write_str("the process dies of an access violation")
            }
            Self::Blocked => Outcome::Blocked.fmt(f),
            Self::Endless => Outcome::Endless.fmt(f),
        }
    }
}
