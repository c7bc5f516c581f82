//! The state of a runtime that a stack walk can see.

pub mod frame;
pub mod method;

pub use frame::{ExplicitFrame, FrameKind};
pub use method::{Code, CodeManager, Funclet, FunctionId, MethodKind};

/// A target thread as `DoStackSnapshot` finds it (contract §2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct Thread {
    /// What the thread argument leads to.
    pub existence: Existence,
    /// `m_fPreemptiveGCDisabled`.
    pub cooperative: bool,
    /// Another walk of it is in progress: `m_hijackLock` is taken.
    pub hijack_locked: bool,
    /// It is in a forbid-suspend region.
    pub forbids_suspension: bool,
    /// Its context is not safe to redirect: it is in a system call.
    pub in_system_call: bool,
    /// Its explicit Frames, topmost first.
    pub frames: Vec<ExplicitFrame>,
    /// The bounds of its stack: lowest address, and the one behind the highest (VA).
    pub stack: (u64, u64),
    /// The exception in progress on it.
    pub exception: ExceptionState,
}

/// What a thread argument leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existence {
    /// A thread with a Thread object.
    #[default]
    Live,
    /// None: the calling thread has no Thread object.
    None,
    /// A thread that is destroyed, or has not started.
    Dead,
}

/// What is known of the exception in progress (contract §3.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionState {
    /// The second pass has begun, and no managed handler has been entered.
    pub second_pass_native: bool,
    /// Stack that is unwound already: a frame whose caller SP, or a Frame whose address, is above
    /// the first and not above the second is hidden.
    pub unwound: Vec<(u64, u64)>,
    /// Handler funclets that run, with the caller SP of the method that owns each; `None` if no
    /// tracker knows it.
    pub funclets: Vec<(u64, Option<u64>)>,
}

impl ExceptionState {
    /// Whether stack at `sp` is unwound already.
    #[must_use]
    pub fn is_unwound(&self, sp: u64) -> bool {
        self.unwound.iter().any(|(lower, upper)| *lower < sp && sp <= *upper)
    }
}

/// The state of the process that the entry path reads (contract §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct Process {
    /// `g_fEEStarted`.
    pub started: bool,
    /// COR_PRF_ENABLE_STACK_SNAPSHOT is in the event mask.
    pub snapshot_enabled: bool,
    /// A suspension of the runtime is in its suspending phase.
    pub suspending: bool,
    /// The profiler has suspended the runtime.
    pub suspended_by_profiler: bool,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            started: true,
            snapshot_enabled: true,
            suspending: false,
            suspended_by_profiler: false,
        }
    }
}
