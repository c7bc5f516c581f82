//! The process, as its profiler sees it.

use crate::code::{Code, Log};
use crate::lock::lock;
use crate::threads::Threads;
use clr_com::{IUnknown, RuntimeInfo};
use clr_walker::profiling::HResult;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

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
    asking: RwLock<()>,
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
            asking: RwLock::new(()),
            is_suspending: AtomicBool::new(false),
        })
    }

    /// Begins a walk: while the result lives no thread ends.
    pub fn walking(&self) -> MutexGuard<'_, ()> {
        lock(&self.walking)
    }

    /// Begins questions by id or address on a thread of the profiler: while the result lives, no method and no module
    /// ends that has not [ended before](Code::has_ended).
    ///
    /// The runtime does not check ids. Asked for the module of a method whose module it has freed, it crashes: .NET 9.0.23 in
    /// GetModuleInfo, in one of ten processes that loaded and dropped assemblies while their methods were named.
    /// A thread that has such a result must not ask for another one.
    pub fn asking(&self) -> RwLockReadGuard<'_, ()> {
        self.asking.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the same if no end is under way: for threads that must not wait.
    pub fn try_asking(&self) -> Option<RwLockReadGuard<'_, ()>> {
        match self.asking.try_read() {
            Ok(asking) => Some(asking),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Begins the end of methods and modules, in the callback that announces it.
    pub(crate) fn ending(&self) -> RwLockWriteGuard<'_, ()> {
        self.asking.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true from RuntimeSuspendStarted to RuntimeResumeFinished.
    pub fn is_suspending(&self) -> bool {
        self.is_suspending.load(Ordering::SeqCst)
    }

    pub(crate) const fn suspending(&self) -> &AtomicBool {
        &self.is_suspending
    }
}
