//! The process, as its profiler sees it.

use crate::code::{Code, Log};
use crate::lock::lock;
use crate::threads::Threads;
use clr_com::{IUnknown, RuntimeInfo};
use clr_walker::profiling::HResult;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The runtime, its code and its threads, as callbacks describe them.
#[derive(Debug)]
pub struct Process {
    /// The runtime.
    pub info: RuntimeInfo,
    /// Major, minor and build number, as the runtime says.
    pub version: [u16; 3],
    /// The code in the process.
    pub code: Code,
    /// The threads of the runtime.
    pub threads: Threads,
    pub(crate) log: Log,
    walking: Mutex<()>,
    is_suspending: AtomicBool,
}

impl Process {
    /// Describes the process, in `Initialize`.
    ///
    /// # Errors
    /// The answer of a runtime without `ICorProfilerInfo2`.
    pub fn new(info: &IUnknown, log: Log) -> Result<Self, HResult> {
        let info = RuntimeInfo::new(info)?;
        let version = info.get_runtime_version().unwrap_or_default();
        Ok(Self {
            info,
            version,
            code: Code::new(version, log),
            threads: Threads::new(),
            log,
            walking: Mutex::new(()),
            is_suspending: AtomicBool::new(false),
        })
    }

    /// Begins a walk: while the result lives no thread ends.
    pub fn walking(&self) -> MutexGuard<'_, ()> {
        lock(&self.walking)
    }

    /// Returns true from RuntimeSuspendStarted to RuntimeResumeFinished.
    pub fn is_suspending(&self) -> bool {
        self.is_suspending.load(Ordering::SeqCst)
    }

    pub(crate) const fn suspending(&self) -> &AtomicBool {
        &self.is_suspending
    }
}
