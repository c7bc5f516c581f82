//! Stopped threads and suspended runtimes, with lifetimes that bound the stop.

use crate::profiling::{CallError, ProfilerInfo, TargetThread, ThreadContext};

/// A thread that is stopped for as long as this value lives: suspended, and resumed on drop; or the
/// calling thread itself.
#[derive(Debug)]
pub struct Stopped<'t, T: TargetThread> {
    target: &'t T,
    suspended: bool,
}

impl<'t, T: TargetThread> Stopped<'t, T> {
    /// Suspends a thread.
    ///
    /// # Errors
    /// The system's error.
    pub fn suspend(target: &'t T) -> Result<Self, T::Error> {
        target.suspend()?;
        Ok(Self { target, suspended: true })
    }

    /// Wraps the calling thread, which does nothing else while it walks its own stack.
    #[must_use]
    pub const fn itself(target: &'t T) -> Self {
        Self { target, suspended: false }
    }

    /// Returns the thread.
    pub const fn target(&self) -> &'t T {
        self.target
    }

    /// Returns true if the thread is suspended, and false for the calling thread.
    pub(super) const fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// Returns the thread's registers.
    ///
    /// # Errors
    /// The system's error.
    pub fn context(&self) -> Result<ThreadContext, T::Error> {
        self.target.context()
    }

    /// Resumes the thread, as dropping does, and returns an error if that fails.
    ///
    /// # Errors
    /// The system's error; the thread stays suspended.
    pub fn resume(mut self) -> Result<(), T::Error> {
        if core::mem::take(&mut self.suspended) { self.target.resume() } else { Ok(()) }
    }
}

impl<T: TargetThread> Drop for Stopped<'_, T> {
    fn drop(&mut self) {
        if self.suspended {
            // An error cannot be returned from here.
            let _ = self.target.resume();
        }
    }
}

/// A suspension of the runtime by the profiler, for as long as this value lives.
#[derive(Debug)]
pub struct RuntimeSuspension<'i, I: ProfilerInfo> {
    info: &'i I,
    lasts: bool,
}

impl<'i, I: ProfilerInfo> RuntimeSuspension<'i, I> {
    /// Suspends the runtime. The caller must hold no lock that managed threads take (H-23).
    ///
    /// # Errors
    /// The errors of `SuspendRuntime` (C-126, C-167).
    pub fn new(info: &'i I) -> Result<Self, CallError<I::Fatal>> {
        info.suspend_runtime()?;
        Ok(Self { info, lasts: true })
    }

    /// Resumes the runtime, as dropping does, and returns an error if that fails.
    ///
    /// # Errors
    /// The errors of `ResumeRuntime` (C-127).
    pub fn resume(mut self) -> Result<(), CallError<I::Fatal>> {
        self.lasts = false;
        self.info.resume_runtime()
    }
}

impl<I: ProfilerInfo> Drop for RuntimeSuspension<'_, I> {
    fn drop(&mut self) {
        if self.lasts {
            // An error cannot be returned from here.
            let _ = self.info.resume_runtime();
        }
    }
}
