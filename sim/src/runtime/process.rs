//! The state of the process that profiling methods look at (contract §2.1).

use super::OsThreadId;
use clr_walker::profiling::EventMask;

/// Where a profiler is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProfilerStatus {
    /// There is none.
    None,
    /// It is being detached (C-001).
    Detaching,
    /// It is in `Initialize`.
    InitializingForStartup,
    /// It is in `InitializeForAttach`.
    InitializingForAttach,
    /// It works.
    #[default]
    Active,
    /// It is being loaded.
    PreInitializing,
}

/// How far the runtime is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Suspension {
    /// It runs.
    #[default]
    None,
    /// Threads are being stopped by this thread (C-017).
    Suspending(OsThreadId),
    /// All are stopped, on behalf of this thread.
    Suspended(OsThreadId),
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct Process {
    /// Where the profiler is in its life.
    pub profiler: ProfilerStatus,
    /// The profiler was attached to the running process.
    pub attached: bool,
    /// What it is told, and may ask.
    pub event_mask: EventMask,
    /// `g_fEEStarted` (C-002).
    pub started: bool,
    /// The GC is fully initialized (C-012).
    pub gc_initialized: bool,
    /// How far the runtime is suspended.
    pub suspension: Suspension,
    /// `fProfilerRequestedRuntimeSuspend` (contract §2.4).
    pub suspended_by_profiler: bool,
    /// How many suspensions of the profiler have not been resumed.
    pub profiler_suspensions: u32,
    /// Who writes to the code manager's tables.
    pub code_manager_writer: Option<OsThreadId>,
    /// The process's GS cookie; `None` if cookies are not looked at.
    pub gs_cookie: Option<u64>,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            profiler: ProfilerStatus::Active,
            attached: false,
            event_mask: EventMask::ENABLE_STACK_SNAPSHOT,
            started: true,
            gc_initialized: true,
            suspension: Suspension::None,
            suspended_by_profiler: false,
            profiler_suspensions: 0,
            code_manager_writer: None,
            gs_cookie: None,
        }
    }
}

impl Process {
    /// Whether `DoStackSnapshot` is allowed: a profiler is loaded or being loaded, and asked for it
    /// (contract §1.3).
    #[must_use]
    pub fn enables_stack_snapshot(&self) -> bool {
        self.profiler != ProfilerStatus::None
            && self.event_mask.contains(EventMask::ENABLE_STACK_SNAPSHOT)
    }
}
