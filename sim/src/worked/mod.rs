//! Worked stacks: threads set up by hand, the calls made on them, and what each must give.
//!
//! Examples with an id like `E-6` are the worked stacks of the contract (§4.2), in all variants that
//! it spells out; those with a clause's number reach what these do not. What is expected was written
//! from the contract's rules, for every generation, and not from what this library does.
//!
//! ```
//! use clr_sim::generation::Generation;
//! use clr_sim::worked::examples;
//!
//! for example in examples(Generation::Net9Unix) {
//!     let set = example.stage.set_up()?;
//!     for call in &example.calls {
//!         assert_eq!(call.make(&set).to_string(), call.expected, "{}: {}", example.id, call.title);
//!     }
//! }
//! # Ok::<(), clr_sim::stage::StageError>(())
//! ```

mod checks;
mod ending;
mod exceptions;
mod frames;
mod helpers;
mod order;
mod sandwiches;
mod seeds;
mod suspension;
mod transitions;

use crate::generation::{Generation, Generations};
use crate::profiling::{CallbackKind, Context, HResult, Outcome};
use crate::runtime::{FrameKind, OsThreadId, Runtime, Suspension};
use crate::stage::{NATIVE_WALKER, SELF, Set, Snapshot, Stage};
use clr_walker::profiling::{SnapshotFlags, ThreadId};
use clr_walker::registers::Gpr;

/// A thread, and calls of `DoStackSnapshot` on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The worked stack or the clause that it is for. Variants of a stack share its id.
    pub id: &'static str,
    /// What the thread is doing.
    pub title: &'static str,
    /// The thread.
    pub stage: Stage,
    /// The calls, each made on a process of its own.
    pub calls: Vec<ExampleCall>,
}

/// The `thread` of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The id of the thread that is set up.
    Own,
    /// 0.
    Null,
    /// Any value.
    Value(u64),
}

/// The seed of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seed {
    /// None.
    None,
    /// The registers of the first row of a function.
    Row(&'static str),
    /// The same, with another rip (a label) and rsp (VA).
    At {
        /// The function.
        row: &'static str,
        /// rip.
        ip: &'static str,
        /// rsp.
        rsp: u64,
    },
    /// That of a row, of which not all can be read.
    Cut {
        /// The function.
        row: &'static str,
        /// ContextFlags.
        flags: u32,
        /// XStateFeaturesMask.
        features: u64,
        /// How many bytes can be read.
        readable: usize,
    },
    /// These bytes.
    Bytes(Vec<u8>),
}

/// A call, and what it must give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleCall {
    /// What is particular about it.
    pub title: &'static str,
    /// The calling thread.
    pub caller: OsThreadId,
    /// The callback that it is called in.
    pub in_callback: Option<CallbackKind>,
    /// `thread`.
    pub thread: Target,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed.
    pub seed: Seed,
    /// `callback` is NULL.
    pub null_callback: bool,
    /// The callback, counted from 0, that returns `S_FALSE`.
    pub stop_at: Option<usize>,
    /// The caller has suspended the runtime by SuspendRuntime.
    pub runtime_suspended: bool,
    /// The callbacks with their ip and rsp, and how it ends: see [`Snapshot`].
    pub expected: String,
    /// The callbacks, counted from 0, whose callee-saved registers but rbp are still those that the
    /// walk started with (C-098, C-158). Those of all others are their rows'.
    pub stale: Vec<usize>,
    /// ContextFlags of all contexts that callbacks get (C-097).
    pub context_flags: u32,
}

/// ContextFlags of seeds: `CONTEXT_FULL`.
pub const SEED_FLAGS: u32 = 0x10_000B;
/// rax of seeds. Nothing on a walk sets it, so every context has it (C-158).
pub const SEED_RAX: u64 = 0x5EED;
/// sizeof(CONTEXT) where it is largest, and the length of seeds.
const SEED_SIZE: usize = 0xC20;

impl Seed {
    /// Its bytes, as far as they can be read.
    #[must_use]
    pub fn bytes(&self, set: &Set) -> Option<Vec<u8>> {
        let row = |function: &str| {
            let mut context = set.seed(function).unwrap_or_default();
            context.registers.set(Gpr::Rax, SEED_RAX);
            context.flags = SEED_FLAGS;
            context
        };
        let padded = |context: Context, features: u64| {
            let mut bytes = context.to_bytes().to_vec();
            bytes.extend(features.to_le_bytes());
            bytes.resize(SEED_SIZE, 0);
            bytes
        };
        match self {
            Self::None => None,
            Self::Row(function) => Some(padded(row(function), 0)),
            Self::At { row: function, ip, rsp } => {
                let mut context = row(function);
                context.registers.rip = set.address(ip).unwrap_or_default();
                context.registers.set(Gpr::Rsp, *rsp);
                Some(padded(context, 0))
            }
            Self::Cut { row: function, flags, features, readable } => {
                let mut bytes = padded(Context { flags: *flags, ..row(function) }, *features);
                bytes.truncate(*readable);
                Some(bytes)
            }
            Self::Bytes(bytes) => Some(bytes.clone()),
        }
    }
}

impl ExampleCall {
    /// Makes the call on a new process.
    #[must_use]
    pub fn make(&self, set: &Set) -> Snapshot {
        self.make_on(set, &self.process(set))
    }

    /// A process for the call.
    #[must_use]
    pub fn process<'s>(&self, set: &'s Set) -> Runtime<'s> {
        let runtime = set.runtime();
        if self.runtime_suspended {
            runtime.change_process(|process| {
                process.suspension = Suspension::Suspended(self.caller);
                process.suspended_by_profiler = true;
                process.profiler_suspensions = 1;
            });
        }
        runtime
    }

    /// Makes the call on a process.
    #[must_use]
    pub fn make_on(&self, set: &Set, runtime: &Runtime<'_>) -> Snapshot {
        let seed = self.seed.bytes(set);
        let call = crate::profiling::Call {
            thread: match self.thread {
                Target::Own => set.thread(),
                Target::Null => ThreadId(0),
                Target::Value(value) => ThreadId(value),
            },
            flags: self.flags,
            seed: seed.as_deref(),
            ..set.call()
        };
        let make = || {
            if self.null_callback {
                let outcome = runtime.on(self.caller).do_stack_snapshot(&call, None);
                return Snapshot { shots: Vec::new(), outcome };
            }
            set.snapshot_until(runtime, self.caller, &call, self.stop_at.unwrap_or(usize::MAX))
        };
        match self.in_callback {
            Some(kind) => runtime.on(self.caller).in_callback(kind, |_| make()),
            None => make(),
        }
    }

    fn by(caller: OsThreadId, title: &'static str) -> Self {
        Self {
            title,
            caller,
            in_callback: None,
            thread: Target::Own,
            flags: SnapshotFlags::REGISTER_CONTEXT,
            seed: Seed::None,
            null_callback: false,
            stop_at: None,
            runtime_suspended: false,
            expected: String::new(),
            stale: Vec::new(),
            context_flags: 0,
        }
    }

    /// A call by the thread itself.
    fn own(title: &'static str) -> Self {
        Self::by(SELF, title)
    }

    /// A call by a thread that the runtime does not know.
    fn other(title: &'static str) -> Self {
        Self::by(NATIVE_WALKER, title)
    }

    fn within(mut self, callback: CallbackKind) -> Self {
        self.in_callback = Some(callback);
        self
    }

    fn on(mut self, thread: Target) -> Self {
        self.thread = thread;
        self
    }

    fn flags(mut self, flags: u32) -> Self {
        self.flags = SnapshotFlags(flags);
        self
    }

    /// With a seed; a walk that starts from one has its ContextFlags.
    fn seed(mut self, seed: Seed) -> Self {
        self.context_flags = match &seed {
            Seed::None | Seed::Bytes(_) => 0,
            Seed::Row(_) | Seed::At { .. } => SEED_FLAGS,
            Seed::Cut { flags, .. } => *flags,
        };
        self.seed = seed;
        self
    }

    fn seeded(self, function: &'static str) -> Self {
        self.seed(Seed::Row(function))
    }

    fn without_callback(mut self) -> Self {
        self.null_callback = true;
        self
    }

    fn stop_at(mut self, callback: usize) -> Self {
        self.stop_at = Some(callback);
        self
    }

    fn suspended(mut self) -> Self {
        self.runtime_suspended = true;
        self
    }

    fn stale(mut self, callback: usize) -> Self {
        self.stale.push(callback);
        self
    }

    fn context_flags(mut self, flags: u32) -> Self {
        self.context_flags = flags;
        self
    }

    /// What it gives: the callbacks, and how it ends.
    fn gives(mut self, callbacks: &str, outcome: impl Into<Outcome>) -> Self {
        self.expected = format!("{callbacks}{}\n", outcome.into());
        self
    }

    /// The same of another thread without SuspendRuntime, which Unix refuses (C-019).
    fn gives_on_windows(
        self,
        generation: Generation,
        callbacks: &str,
        outcome: impl Into<Outcome>,
    ) -> Self {
        if is_unix(generation) {
            self.gives("", HResult::NOT_IMPLEMENTED)
        } else {
            self.gives(callbacks, outcome)
        }
    }
}

/// All examples of a generation.
#[must_use]
pub fn examples(generation: Generation) -> Vec<Example> {
    [
        helpers::examples(generation),
        transitions::examples(generation),
        sandwiches::examples(generation),
        exceptions::examples(generation),
        seeds::examples(generation),
        checks::examples(generation),
        order::examples(generation),
        suspension::examples(generation),
        frames::examples(generation),
        ending::examples(generation),
    ]
    .concat()
}

// What generations have in common is said here once more, and not asked of `Generation`: answers of
// its questions are among what the examples are to check.

const fn is_unix(generation: Generation) -> bool {
    Generations::UNIX.contains(generation)
}

const fn is_framework_2(generation: Generation) -> bool {
    matches!(generation, Generation::Framework2)
}

const fn is_new(generation: Generation) -> bool {
    Generations::NEW.contains(generation)
}

/// Managed code handles exceptions (C-163); .NET 9 may be told to do without (C-172).
const fn handles_exceptions_in_managed_code(generation: Generation) -> bool {
    is_new(generation) && !matches!(generation, Generation::Net9UnixLegacyExceptions)
}

/// ICorProfilerInfo10.
const fn has_suspend_runtime(generation: Generation) -> bool {
    !matches!(generation, Generation::Framework2 | Generation::Framework4)
}

/// The newest runtime has DynamicHelperFrames in place of HelperMethodFrames.
const fn helper_frame(generation: Generation) -> FrameKind {
    match generation {
        Generation::Net10Windows | Generation::Net10Unix => FrameKind::DynamicHelper,
        _ => FrameKind::HelperMethod,
    }
}

/// What a throwing method's Frame is.
const fn throw_frame(generation: Generation) -> FrameKind {
    match generation {
        Generation::Net10Windows | Generation::Net10Unix => FrameKind::SoftwareException,
        _ => FrameKind::HelperMethod,
    }
}

/// ContextFlags of the context that the runtime takes of a thread that it suspends: observed on
/// CoreCLR 3.1 and .NET 10. Framework 2 asks for no more than `CONTEXT_FULL`.
const fn own_context_flags(generation: Generation) -> u32 {
    if is_framework_2(generation) { 0x10_000B } else { 0xC010_000B }
}

/// A fault within the walk (C-111): E_UNEXPECTED, or the end of the process.
fn fault(generation: Generation, at: u64) -> Outcome {
    if is_unix(generation) { Outcome::AccessViolation { at } } else { HResult::UNEXPECTED.into() }
}

/// The root of the usual stack.
const CALL_DESCR_WORKER: &str = "CallDescrWorkerInternal+0x7c";
