//! Stacks placed by hand: what a text says of a thread and its process, node by node, each for some
//! generations. [`PlacedStack::stage`] puts together what a generation has.

use super::mixed::MixedWalk;
use super::snapshot::SnapshotCall;
use clr_runtime::code_manager::StubKind;
use clr_runtime::frame::layout::Convention;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::{
    ContextSafety, ExceptionTracker, OsThreadId, ProfilerStatus, Suspension, ThreadLife,
};
use clr_walker::profiling::EventMask;
use clr_world::synthetic::{FrameRow, MANAGED_WALKER, NATIVE_WALKER, Row, SELF, Stage};

/// A thread placed by hand, and the calls that are made on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedStack {
    /// What there is, in the order of the text: rows leaf first, Frames topmost first.
    pub items: Vec<PlacedItem>,
    /// The calls, each made on a process of its own.
    pub snapshots: Vec<SnapshotCall>,
    /// Walks of the whole stack by the profiler's side, each in a process of its own.
    pub mixed_walks: Vec<MixedWalk>,
}

/// A node of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedItem {
    /// The generations that it is for.
    pub on: Generations,
    /// What it says.
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

/// How far a process is suspended, without by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SuspensionState {
    /// Threads are being stopped.
    Suspending,
    /// All are stopped.
    Suspended,
}

/// A thread of a process placed by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlacedThread {
    /// The one with the stack.
    Own,
    /// One that the runtime does not know.
    NativeWalker,
    /// One that it knows, in preemptive mode.
    ManagedWalker,
    /// One that plays no other part.
    #[default]
    Other,
}

impl PlacedThread {
    /// Its number.
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

/// What a node of a stack says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackNode {
    /// An activation.
    Row {
        /// It, without what it saves if that is all.
        row: Row,
        /// Its function pushes all nonvolatile registers of its system (C-099).
        saves_all: bool,
    },
    /// An explicit Frame.
    Frame(FrameRow),
    /// The thread's mode.
    Mode(ThreadMode),
    /// The stack's bounds (VA).
    Bounds {
        /// The lowest address.
        limit: u64,
        /// The end.
        base: u64,
    },
    /// Whether its context may be used.
    Safety(ContextSafety),
    /// An exception in progress, the most recent one first.
    Exception(ExceptionTracker),
    /// An exception has just ended (C-050).
    InconsistentExceptions,
    /// How often the thread has forbidden to be suspended.
    ForbidSuspend(u32),
    /// Its hijack lock is taken.
    HijackLocked,
    /// It belongs to the GC.
    GcSpecial,
    /// Where it is in its life.
    Life(ThreadLife),
    /// Suspending it does not work.
    ResistsSuspension,
    /// It leaves cooperative mode while it is being looked at.
    LeavesCooperativeMode,
    /// A debugger has a filter context on it.
    DebuggerContext,
    /// The function whose return address is hijacked.
    Hijacked(String),
    /// A block of the code heap that is no method.
    Stub(String, StubKind),
    /// More memory, which holds zeros.
    Block {
        /// Where (VA).
        at: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// Words written over whatever lies there.
    Word {
        /// Where the first one lies (VA).
        at: u64,
        /// What each holds.
        value: u64,
        /// How many there are.
        count: u32,
    },
    /// Where the profiler is in its life.
    Profiler(ProfilerStatus),
    /// The profiler was attached to the running process.
    Attached,
    /// The profiler's event mask.
    EventMask(u32),
    /// The runtime has not started (C-002).
    NotStarted,
    /// The GC is not initialized (C-012).
    NoGc,
    /// How far the runtime is suspended, and by whom.
    Suspension(SuspensionState, PlacedThread),
    /// The profiler has the runtime suspended (contract §2.4).
    SuspendedByProfiler,
    /// Who writes to the code manager's tables.
    CodeManagerWriter(PlacedThread),
    /// The process's GS cookie.
    GsCookie(u64),
}

impl StackNode {
    /// Whether there may be several.
    #[must_use]
    pub const fn repeats(&self) -> bool {
        matches!(
            self,
            Self::Row { .. }
                | Self::Frame(_)
                | Self::Exception(_)
                | Self::Stub(..)
                | Self::Block { .. }
                | Self::Word { .. }
        )
    }

    fn place(&self, stage: &mut Stage) {
        let process = &mut stage.process;
        match self {
            Self::Row { row, saves_all } => {
                let mut row = row.clone();
                if *saves_all {
                    row.saves = Convention::of(stage.generation).callee_saved.to_vec();
                }
                stage.rows.push(row);
            }
            Self::Frame(frame) => stage.frames.push(frame.clone()),
            Self::Mode(mode) => stage.cooperative = *mode == ThreadMode::Cooperative,
            Self::Bounds { limit, base } => stage.stack = (*limit, *base),
            Self::Safety(safety) => stage.safety = *safety,
            Self::Exception(tracker) => stage.exceptions.trackers.push(*tracker),
            Self::InconsistentExceptions => stage.exceptions.inconsistent = true,
            Self::ForbidSuspend(count) => stage.forbid_suspend = *count,
            Self::HijackLocked => stage.hijack_locked = true,
            Self::GcSpecial => stage.gc_special = true,
            Self::Life(life) => stage.life = *life,
            Self::ResistsSuspension => stage.resists_suspension = true,
            Self::LeavesCooperativeMode => stage.leaves_cooperative_mode = true,
            Self::DebuggerContext => stage.debugger_context = true,
            Self::Hijacked(function) => stage.hijacked = Some(function.clone()),
            Self::Stub(name, kind) => stage.stubs.push((name.clone(), *kind)),
            Self::Block { at, size } => stage.blocks.push((*at, *size)),
            Self::Word { at, value, count } => {
                let words = (0..u64::from(*count)).map(|n| (at.wrapping_add(8 * n), *value));
                stage.overwritten.extend(words);
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
    /// What a generation has of it.
    #[must_use]
    pub fn stage(&self, generation: Generation) -> Stage {
        let mut stage = Stage::new(generation);
        for item in self.items.iter().filter(|item| item.on.contains(generation)) {
            item.node.place(&mut stage);
        }
        stage
    }

    /// The generations that it is for: those that something is expected on, or all if nothing is.
    #[must_use]
    pub fn generations(&self) -> Generations {
        let snapshots = self.snapshots.iter().flat_map(|snapshot| &snapshot.expect);
        let walks = self.mixed_walks.iter().flat_map(|walk| &walk.expect);
        let on = snapshots.map(|expect| expect.on).chain(walks.map(|expect| expect.on));
        let all = on.fold(Generations::NONE, Generations::with);
        if all.is_empty() { Generations::ALL } else { all }
    }
}
