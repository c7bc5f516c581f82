//! Stacks placed by hand: the state of a thread and its process, node by node, each for some
//! generations. [`PlacedStack::thread`] collects the nodes of a generation.

use crate::model::mixed_walk::MixedWalk;
use crate::model::snapshot::SnapshotCall;
use clr_runtime::code_manager::StubKind;
use clr_runtime::frame::layout::FrameConvention;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::{
    ContextSafety, ExceptionTracker, OsThreadId, ProfilerStatus, Suspension, ThreadLife,
};
use clr_walker::profiling::EventMask;
use clr_world::synthetic::{
    MANAGED_WALKER, NATIVE_WALKER, SELF, SyntheticActivation, SyntheticFrame, SyntheticThread,
};

/// A thread placed by hand, and the calls that are made on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedStack {
    /// Nodes in the order of the text: activations leaf first, Frames topmost first.
    pub items: Vec<PlacedItem>,
    /// Calls, each made on a separate process.
    pub snapshots: Vec<SnapshotCall>,
    /// Mixed walks by the profiler's side, each in a separate process.
    pub mixed_walks: Vec<MixedWalk>,
}

/// A node of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedItem {
    /// Generations that the node is for.
    pub on: Generations,
    /// Content of the node.
    pub node: StackNode,
}

/// The mode of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ThreadMode {
    /// Preemptive.
    #[default]
    Preemptive,
    /// Cooperative.
    Cooperative,
}

/// The progress of a runtime suspension, without the suspending thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SuspensionState {
    /// Threads are being stopped.
    Suspending,
    /// All threads are stopped.
    Suspended,
}

/// A thread of a process placed by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlacedThread {
    /// The thread with the stack.
    Own,
    /// A thread that the runtime does not know.
    NativeWalker,
    /// A thread that the runtime knows, in preemptive mode.
    ManagedWalker,
    /// A thread without another role.
    #[default]
    Other,
}

impl PlacedThread {
    /// Returns the operating system's id of the thread.
    #[must_use]
    pub const fn os(self) -> OsThreadId {
        match self {
            Self::Own => SELF,
            Self::NativeWalker => NATIVE_WALKER,
            Self::ManagedWalker => MANAGED_WALKER,
            Self::Other => OsThreadId(9),
        }
    }
}

/// The content of a node of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackNode {
    /// An activation.
    Activation {
        /// The activation, without its saved registers if `saves_all` is set.
        activation: SyntheticActivation,
        /// The function pushes all nonvolatile registers of its system (C-099).
        saves_all: bool,
    },
    /// An explicit Frame.
    Frame(SyntheticFrame),
    /// The mode of the thread.
    Mode(ThreadMode),
    /// The bounds of the stack (VA).
    Bounds {
        /// Lowest address.
        limit: u64,
        /// End address, exclusive.
        base: u64,
    },
    /// The state that decides if the thread's context may be used.
    Safety(ContextSafety),
    /// An exception in progress, the most recent one first.
    Exception(ExceptionTracker),
    /// An exception has just ended (C-050).
    InconsistentExceptions,
    /// The number of times that the thread has forbidden its suspension.
    ForbidSuspend(u32),
    /// The hijack lock of the thread is taken.
    HijackLocked,
    /// The thread belongs to the GC.
    GcSpecial,
    /// The stage of the thread's life.
    Life(ThreadLife),
    /// Suspensions of the thread fail.
    ResistsSuspension,
    /// The thread leaves cooperative mode while it is being examined.
    LeavesCooperativeMode,
    /// A debugger has set a filter context on the thread.
    DebuggerContext,
    /// The function whose return address is hijacked.
    Hijacked(String),
    /// A block of the code heap that is not a method.
    Stub(String, StubKind),
    /// Additional memory, filled with zeros.
    Block {
        /// Start of the block (VA).
        at: u64,
        /// Size in bytes.
        size: u64,
    },
    /// Words that overwrite the memory at an address.
    Word {
        /// Address of the first word (VA).
        at: u64,
        /// Value of each word.
        value: u64,
        /// Number of words.
        count: u32,
    },
    /// The state of the profiler.
    Profiler(ProfilerStatus),
    /// The profiler was attached to the running process.
    Attached,
    /// The event mask of the profiler.
    EventMask(u32),
    /// The runtime has not started (C-002).
    NotStarted,
    /// The GC is not initialized (C-012).
    NoGc,
    /// The progress of a runtime suspension, and the suspending thread.
    Suspension(SuspensionState, PlacedThread),
    /// The profiler has the runtime suspended (contract §2.4).
    SuspendedByProfiler,
    /// The thread that writes to the code manager's tables.
    CodeManagerWriter(PlacedThread),
    /// The GS cookie of the process.
    GsCookie(u64),
}

impl StackNode {
    /// Returns true if a stack may have several nodes of this kind.
    #[must_use]
    pub const fn repeats(&self) -> bool {
        matches!(
            self,
            Self::Activation { .. }
                | Self::Frame(_)
                | Self::Exception(_)
                | Self::Stub(..)
                | Self::Block { .. }
                | Self::Word { .. }
        )
    }

    fn place(&self, target: &mut SyntheticThread) {
        let process = &mut target.process;
        match self {
            Self::Activation { activation, saves_all } => {
                let mut activation = activation.clone();
                if *saves_all {
                    activation.saves = FrameConvention::of(target.generation).callee_saved.to_vec();
                }
                target.activations.push(activation);
            }
            Self::Frame(frame) => target.frames.push(frame.clone()),
            Self::Mode(mode) => target.cooperative = *mode == ThreadMode::Cooperative,
            Self::Bounds { limit, base } => target.stack = (*limit, *base),
            Self::Safety(safety) => target.safety = *safety,
            Self::Exception(tracker) => target.exceptions.trackers.push(*tracker),
            Self::InconsistentExceptions => target.exceptions.inconsistent = true,
            Self::ForbidSuspend(count) => target.forbid_suspend = *count,
            Self::HijackLocked => target.hijack_locked = true,
            Self::GcSpecial => target.gc_special = true,
            Self::Life(life) => target.life = *life,
            Self::ResistsSuspension => target.resists_suspension = true,
            Self::LeavesCooperativeMode => target.leaves_cooperative_mode = true,
            Self::DebuggerContext => target.debugger_context = true,
            Self::Hijacked(function) => target.hijacked = Some(function.clone()),
            Self::Stub(name, kind) => target.stubs.push((name.clone(), *kind)),
            Self::Block { at, size } => target.blocks.push((*at, *size)),
            Self::Word { at, value, count } => {
                let words = (0..u64::from(*count)).map(|n| (at.wrapping_add(8 * n), *value));
                target.overwritten.extend(words);
            }
            Self::Profiler(status) => process.profiler = *status,
            Self::Attached => process.attached = true,
            Self::EventMask(mask) => process.event_mask = EventMask(*mask),
            Self::NotStarted => process.started = false,
            Self::NoGc => process.gc_initialized = false,
            Self::Suspension(how_far, by) => {
                process.suspension = match how_far {
                    SuspensionState::Suspending => Suspension::Suspending(by.os()),
                    SuspensionState::Suspended => Suspension::Suspended(by.os()),
                };
            }
            Self::SuspendedByProfiler => {
                process.suspended_by_profiler = true;
                process.profiler_suspensions = 1;
            }
            Self::CodeManagerWriter(thread) => process.code_manager_writer = Some(thread.os()),
            Self::GsCookie(cookie) => process.gs_cookie = Some(*cookie),
        }
    }
}

impl PlacedStack {
    /// Returns the synthetic thread for a generation.
    #[must_use]
    pub fn synthetic_thread(&self, generation: Generation) -> SyntheticThread {
        let mut target = SyntheticThread::new(generation);
        for item in self.items.iter().filter(|item| item.on.contains(generation)) {
            item.node.place(&mut target);
        }
        target
    }

    /// Returns the generations that the stack is for: those with an expectation, or all if there
    /// are no expectations.
    #[must_use]
    pub fn generations(&self) -> Generations {
        let snapshots = self.snapshots.iter().flat_map(|snapshot| &snapshot.expect);
        let walks = self.mixed_walks.iter().flat_map(|walk| &walk.expect);
        let on = snapshots.map(|expect| expect.on).chain(walks.map(|expect| expect.on));
        let all = on.fold(Generations::NONE, Generations::with);
        if all.is_empty() { Generations::ALL } else { all }
    }
}
