//! Calls of the system that take locks of the process: of its heap, its loader and its tables of functions.

use super::footprint::Footprint;
use super::history::TurnEvent;
use super::ids::LockName;
use super::state::Waiting;
use super::thread::CurrentThread;
use super::verdict::ProfilerRule;
use clr_runtime::{Lock, Wait};

impl CurrentThread<'_, '_> {
    /// Allocates and frees memory: takes the lock of the process's heap (H-13).
    #[track_caller]
    pub fn allocate(&self) {
        self.allocate_by("allocates memory");
    }

    /// Allocates or frees memory by a function that the words name.
    #[track_caller]
    pub fn allocate_by(&self, words: &'static str) {
        self.use_heap(words, ProfilerRule::AllocationWhileSuspended);
    }

    /// Logs a message with a logger that allocates.
    #[track_caller]
    pub fn log(&self) {
        self.log_by("logs");
    }

    /// Logs by a function that the words name.
    #[track_caller]
    pub fn log_by(&self, words: &'static str) {
        self.use_heap(words, ProfilerRule::LogWhileSuspended);
    }

    /// Makes a call that takes the lock of the heap, which the rule is about and the words name.
    #[track_caller]
    fn use_heap(&self, words: &'static str, rule: ProfilerRule) {
        self.begin_call(words, rule);
        self.with(&[Lock::ProcessHeap]);
    }

    /// Loads a library or looks up symbols: takes the loader lock (H-12), and under it the lock of the table of function
    /// tables on Windows, and of the heap on Unix: `_dl_open` allocates (`_dl_new_object` of glibc's elf/dl-object.c).
    #[track_caller]
    pub fn load_library(&self) {
        self.load_library_by("loads a library");
    }

    /// Loads or unloads a library by a function that the words name.
    #[track_caller]
    pub fn load_library_by(&self, words: &'static str) {
        self.begin_call(words, ProfilerRule::LoadingWhileSuspended);
        let unix = self.kernel.runtime.generation.is_unix();
        let within = if unix { Lock::ProcessHeap } else { Lock::FunctionTables };
        self.with(&[Lock::Loader, within]);
    }

    /// Looks up unwind data: `RtlLookupFunctionEntry` on Windows, which takes the lock of the
    /// inverted function table (H-11), and `dl_iterate_phdr` on Unix, which takes the loader lock.
    #[track_caller]
    pub fn look_up_function_entry(&self) {
        self.look_up_by("looks up unwind data");
    }

    /// Asks the loader by a function that the words name: as [`look_up_function_entry`](Self::look_up_function_entry).
    #[track_caller]
    pub fn look_up_by(&self, words: &'static str) {
        self.begin_call(words, ProfilerRule::LoadingWhileSuspended);
        let unix = self.kernel.runtime.generation.is_unix();
        let lock = if unix { Lock::Loader } else { Lock::FunctionTables };
        self.with(&[lock]);
    }

    /// Takes the loader lock while `body` executes code of the profiler: `dl_iterate_phdr` calls its function with the lock (H-12).
    #[track_caller]
    pub fn in_loader(&self, body: impl FnOnce()) {
        self.begin_call("calls dl_iterate_phdr", ProfilerRule::LoadingWhileSuspended);
        self.take(Lock::Loader);
        body();
        self.give_back(Lock::Loader);
    }

    /// Takes the lock of the heap while `body` is executed.
    #[track_caller]
    pub fn in_heap(&self, body: impl FnOnce()) {
        self.comes_from_caller();
        self.take(Lock::ProcessHeap);
        body();
        self.give_back(Lock::ProcessHeap);
    }

    /// Begins a call of the system, which the rule is about and the words name.
    #[track_caller]
    fn begin_call(&self, words: &'static str, rule: ProfilerRule) {
        self.comes_from_caller();
        self.does(rule);
        self.record(TurnEvent::System(words));
    }

    /// Takes locks of the process one after the other, and releases them.
    pub(super) fn with(&self, locks: &[Lock]) {
        for lock in locks {
            self.take(*lock);
        }
        self.switch();
        for lock in locks.iter().rev() {
            self.give_back(*lock);
        }
    }

    fn take(&self, lock: Lock) {
        let waiting = Waiting::Runtime(Wait::Lock(lock));
        self.switch_before(waiting, false);
        let name = LockName::Runtime(lock);
        loop {
            self.kernel.touch(Footprint::lock(name));
            let mut process = self.kernel.runtime.process.get();
            if process.try_acquire(lock, self.os) || self.is_over() {
                self.kernel.runtime.process.set(process);
                break;
            }
            self.pause(Some(waiting), None);
        }
        self.record(TurnEvent::Acquired(name));
    }

    fn give_back(&self, lock: Lock) {
        let name = LockName::Runtime(lock);
        self.kernel.touch(Footprint::lock(name));
        self.kernel.runtime.change_process(|process| {
            process.release(lock, self.os);
        });
        self.record(TurnEvent::Released(name));
    }
}
