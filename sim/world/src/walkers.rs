//! Threads that execute nothing in the world: those that only walk others, and those of the profiler.

use super::World;
use super::build::{BuildError, THREAD_PITCH, THREADS};
use clr_codegen::FunctionIndex;
use clr_codegen::execution::ProgramLoadError;
use clr_machine::{PAGE_SIZE, Protection};
use clr_runtime::{OsThreadId, THREAD_OBJECT_SIZE, Thread, ThreadFields};
use clr_walker::profiling::ThreadId;

/// The Thread object of a thread that only walks others (VA).
const WALKER_OBJECT: u64 = THREADS + 0x100 * THREAD_PITCH;
/// A thread that only walks others, and that the runtime does not know.
const NATIVE_WALKER: OsThreadId = OsThreadId(0x1001);
/// A thread that only walks others, and that the runtime knows.
const MANAGED_WALKER: OsThreadId = OsThreadId(0x1002);
/// First id of the profiler's threads.
const PROFILERS_THREADS: u32 = 0x2000;

impl World<'_> {
    /// Adds two threads that only walk others: one that the runtime does not know, and one that it
    /// knows, in preemptive mode.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the threads were added before.
    pub fn add_walkers(&mut self) -> Result<[OsThreadId; 2], BuildError> {
        let machine = &mut *self.runtime.memory.borrow_mut();
        machine.map(WALKER_OBJECT, 1, Protection::READ_WRITE)?;
        let object = ThreadId(WALKER_OBJECT);
        let unwritable = |_| ProgramLoadError::Start(FunctionIndex(0));
        ThreadFields::default().write(machine, object).map_err(unwritable)?;
        let native = Thread { os: NATIVE_WALKER, handle: 0x1108, ..Thread::default() };
        let (os, object) = (MANAGED_WALKER, Some(object));
        let managed = Thread { os, object, handle: 0x110C, ..Thread::default() };
        self.runtime.threads.borrow_mut().extend([native, managed]);
        Ok([NATIVE_WALKER, MANAGED_WALKER])
    }

    /// Adds thread `number` of the profiler, which executes nothing in the world. A thread that has
    /// run managed code is known to the runtime, and in preemptive mode.
    pub fn add_profilers_thread(&mut self, number: u32, managed: bool) -> OsThreadId {
        let os = OsThreadId(PROFILERS_THREADS + number);
        let handle = 0x2000 + 4 * u64::from(number);
        let thread = Thread { os, handle, ..Thread::default() };
        self.runtime.threads.borrow_mut().push(thread);
        if managed {
            self.attach_walker(os);
        }
        os
    }

    /// Gives a thread a Thread object, which makes it known to the runtime, in preemptive mode.
    pub fn attach_thread(&mut self, os: OsThreadId) {
        match self.threads.iter().position(|executed| executed.os == os) {
            Some(thread) => self.attach(thread),
            None => self.attach_walker(os),
        }
    }

    fn attach_walker(&self, os: OsThreadId) {
        let offset = match os.0.checked_sub(PROFILERS_THREADS) {
            Some(number) => (1 + u64::from(number)) * PAGE_SIZE,
            // The object of the other walker is before it, in the same page.
            None if os == NATIVE_WALKER => THREAD_OBJECT_SIZE,
            None => return,
        };
        let object = ThreadId(WALKER_OBJECT + offset);
        let mut memory = self.runtime.memory.borrow_mut();
        // The page may be mapped already: interleavings are executed one after another in the same world.
        let _ = memory.map(object.0, 1, Protection::READ_WRITE);
        let _ = ThreadFields::default().write(&mut *memory, object);
        drop(memory);
        self.runtime.change_thread(os, |thread| thread.object = Some(object));
    }
}
