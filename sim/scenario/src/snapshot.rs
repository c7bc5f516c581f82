//! Calls of `DoStackSnapshot` as a text says them, and what each must give.

use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult};
use clr_walker::profiling::SnapshotFlags;
use clr_walker::registers::Gpr;
use core::fmt;

/// A call of `DoStackSnapshot`, and what it must give on each generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotCall {
    /// What is particular about it.
    pub title: Option<String>,
    /// The calling thread.
    pub by: SnapshotCaller,
    /// The callback that it is called in.
    pub in_callback: Option<CallbackKind>,
    /// `thread`.
    pub thread: SnapshotThread,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed.
    pub seed: Option<SnapshotSeed>,
    /// `callback` is NULL.
    pub null_callback: bool,
    /// The callback that wants no more.
    pub stop_at: Option<LastCallback>,
    /// The caller has suspended the runtime by SuspendRuntime.
    pub suspended: bool,
    /// Calls that are made within every callback.
    pub nested: Vec<NestedCall>,
    /// What is expected. The first one that is for a generation counts.
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
    /// What is expected on a generation, and its place among all that is.
    #[must_use]
    pub fn expected_on(&self, generation: Generation) -> Option<(usize, &ExpectedSnapshot)> {
        self.expect.iter().enumerate().find(|(_, expect)| expect.on.contains(generation))
    }

    /// Whether it is made on a generation: where something is expected, or everywhere if nothing is.
    #[must_use]
    pub fn is_made_on(&self, generation: Generation) -> bool {
        self.expect.is_empty() || self.expected_on(generation).is_some()
    }
}

/// Who calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SnapshotCaller {
    /// The thread with the stack.
    #[default]
    Own,
    /// A thread that the runtime does not know.
    NativeWalker,
    /// A thread that it knows, in preemptive mode.
    ManagedWalker,
    /// Another thread of the program, by its index.
    Thread(u32),
}

/// The `thread` of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SnapshotThread {
    /// The id of the thread with the stack.
    #[default]
    Own,
    /// 0.
    Null,
    /// Any value.
    Value(u64),
    /// The id of another thread of the program, by its index.
    Thread(u32),
}

/// A callback that wants no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LastCallback {
    /// Which one: 1 is the first.
    pub callback: u32,
    /// What it returns.
    pub returns: HResult,
}

/// A call made within a callback, which gets no callbacks itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NestedCall {
    /// Who calls.
    pub by: SnapshotCaller,
    /// `thread`.
    pub thread: SnapshotThread,
}

/// A seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSeed {
    /// What it is made from.
    pub from: SeedSource,
    /// Its rip, if it is another one.
    pub rip: Option<SeedAddress>,
    /// Other values of registers, ascending by register.
    pub registers: Vec<(Gpr, u64)>,
    /// ContextFlags, if they are others than [`SEED_FLAGS`].
    pub flags: Option<u32>,
    /// XStateFeaturesMask.
    pub features: u64,
    /// How many of its bytes can be read, if not all.
    pub cut: Option<u32>,
}

/// What a seed is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedSource {
    /// The registers of the first activation of a function, as a profiler gets them by unwinding.
    Function(String),
    /// The thread's own registers.
    Leaf,
    /// Those of the first managed activation.
    TopManaged,
    /// Those that the thread had when it was last stopped before.
    Stale,
    /// Bytes that are all the same.
    Bytes(u8),
}

/// rip of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedAddress {
    /// A place in a function: `App.Foo+0x17`.
    Label(String),
    /// An address (VA).
    Address(u64),
}

/// ContextFlags of seeds: `CONTEXT_FULL`.
pub const SEED_FLAGS: u32 = 0x10_000B;
/// rax of seeds that are made from registers. Nothing on a walk sets it, so every context has it
/// (C-158).
pub const SEED_RAX: u64 = 0x5EED;
/// sizeof(CONTEXT) where it is largest, and the length of seeds.
pub const SEED_SIZE: u32 = 0xC20;

impl SnapshotSeed {
    /// A seed that is what it is made from.
    #[must_use]
    pub const fn new(from: SeedSource) -> Self {
        Self { from, rip: None, registers: Vec::new(), flags: None, features: 0, cut: None }
    }

    /// Whether it is changed by hand.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        *self != Self::new(self.from.clone())
    }
}

/// Where an expectation comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// The source of a runtime says so.
    #[default]
    Source,
    /// The documentation says so.
    Documentation,
    /// Real runtimes were seen to do so: how often, if that is known.
    Observed(Option<u64>),
}

/// What a call must give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedSnapshot {
    /// On which generations.
    pub on: Generations,
    /// How that is known.
    pub from: Provenance,
    /// Other callbacks may come between these.
    pub others: bool,
    /// ContextFlags of all contexts, if they are not what the seed suggests (C-097).
    pub context_flags: Option<ExpectedFlags>,
    /// The callbacks, in order.
    pub frames: Vec<ExpectedShot>,
    /// How each of the nested calls ends.
    pub nested: Vec<ExpectedOutcome>,
    /// How it ends.
    pub result: ExpectedOutcome,
    /// The clauses that say so.
    pub clauses: Vec<Clause>,
}

/// A callback that is expected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedShot {
    /// It is a marker.
    pub marker: bool,
    /// Where its ip is: in a function, or with an offset exactly there.
    pub label: Option<String>,
    /// Values of some registers, ascending by register.
    pub registers: Vec<(Gpr, u64)>,
    /// Which registers are still those that the walk started with (C-098, C-158).
    pub stale: Stale,
    /// ContextFlags, if they are not those of the others.
    pub context_flags: Option<ExpectedFlags>,
}

/// Registers of a callback that are not its row's but still those that the walk started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stale {
    /// None: the nonvolatile ones are the row's.
    #[default]
    None,
    /// All nonvolatile ones but rbp.
    All,
    /// These, ascending. Other nonvolatile ones are the row's.
    Only(Vec<Gpr>),
}

impl Stale {
    /// Whether a register is; of [`All`](Self::All) a nonvolatile one is meant.
    #[must_use]
    pub fn contains(&self, register: Gpr) -> bool {
        match self {
            Self::None => false,
            Self::All => register != Gpr::Rbp,
            Self::Only(registers) => registers.contains(&register),
        }
    }
}

/// ContextFlags that are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpectedFlags {
    /// Those of the context that the runtime takes of a stopped thread.
    Own,
    /// These.
    Value(u32),
}

/// How a call is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpectedOutcome {
    /// It returns.
    Returned(HResult),
    /// The runtime ends the process.
    Killed {
        /// The exit code, if it matters.
        code: Option<HResult>,
    },
    /// A fault that nobody handles ends the process.
    AccessViolation {
        /// What cannot be read, if it matters.
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
    /// Whether a call that ended so is as expected.
    #[must_use]
    pub fn is(self, outcome: Outcome) -> bool {
        match (self, outcome) {
            (Self::Killed { code: None }, Outcome::ProcessKilled { .. })
            | (Self::AccessViolation { at: None }, Outcome::AccessViolation { .. }) => true,
            _ => self == Self::from(outcome),
        }
    }
}

/// As [`Outcome`] tells it.
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
