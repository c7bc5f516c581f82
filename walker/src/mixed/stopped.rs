//! Threads that stand still, and for how long.

use crate::profiling::{CallError, ProfilerInfo, TargetThread, ThreadContext};

/// A thread that stands still for as long as this lives: suspended, and resumed on drop; or the calling
/// thread itself.
#[derive(Debug)]
pub struct Stopped<'t, T: TargetThread> {
    target: &'t T,
    suspended: bool,
}

impl<'t, T: TargetThread> Stopped<'t, T> {
    /// Suspends a thread.
    ///
    /// # Errors
    /// The system's.
    pub fn suspend(target: &'t T) -> Result<Self, T::Error> {
        target.suspend()?;
        Ok(Self { target, suspended: true })
    }

    /// The calling thread: it does nothing else while it walks its own stack.
    #[must_use]
    pub const fn itself(target: &'t T) -> Self {
        Self { target, suspended: false }
    }

    /// The thread.
    #[must_use]
    pub const fn target(&self) -> &'t T {
        self.target
    }

    /// Its registers.
    ///
    /// # Errors
    /// The system's.
    pub fn context(&self) -> Result<ThreadContext, T::Error> {
        self.target.context()
    }

    /// Lets it run on, as dropping does, and tells whether that worked.
    ///
    /// # Errors
    /// The system's; the thread stays suspended.
    pub fn resume(mut self) -> Result<(), T::Error> {
        if core::mem::take(&mut self.suspended) { self.target.resume() } else { Ok(()) }
    }
}

impl<T: TargetThread> Drop for Stopped<'_, T> {
    fn drop(&mut self) {
        if self.suspended {
            // There is nobody to tell.
            let _ = self.target.resume();
        }
    }
}

/// The runtime suspended by the profiler, for as long as this lives.
#[derive(Debug)]
pub struct RuntimeSuspension<'i, I: ProfilerInfo> {
    info: &'i I,
    lasts: bool,
}

impl<'i, I: ProfilerInfo> RuntimeSuspension<'i, I> {
    /// Suspends it. No lock may be held that managed threads take (H-23).
    ///
    /// # Errors
    /// Those of `SuspendRuntime` (C-126, C-167).
    pub fn new(info: &'i I) -> Result<Self, CallError<I::Fatal>> {
        info.suspend_runtime()?;
        Ok(Self { info, lasts: true })
    }

    /// Lets it run on, as dropping does, and tells whether that worked.
    ///
    /// # Errors
    /// Those of `ResumeRuntime` (C-127).
    pub fn resume(mut self) -> Result<(), CallError<I::Fatal>> {
        self.lasts = false;
        self.info.resume_runtime()
    }
}

impl<I: ProfilerInfo> Drop for RuntimeSuspension<'_, I> {
    fn drop(&mut self) {
        if self.lasts {
            // There is nobody to tell.
            let _ = self.info.resume_runtime();
        }
    }
}
