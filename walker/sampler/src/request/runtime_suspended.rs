//! Samples that the sampler takes of other threads while the runtime is suspended.

use super::{Answer, MOST_BYTES, Request, Sample};
use crate::os::{self, OwnProcess};
use crate::process::Process;
use crate::threads::Thread;
use clr_com::RuntimeInfo;
use clr_unwind::{Memory, Unreadable};
use clr_walker::mixed::{RuntimeSuspension, Walker};
use clr_walker::profiling::{
    CallError, HResult, StackBounds, TargetThread, ThreadContext, ThreadId,
};

/// Maximum number of threads that are walked during one suspension.
const MOST_THREADS: usize = 16;

/// Room for the walks of one suspension.
#[derive(Debug)]
pub struct RuntimeSuspended {
    samples: Vec<Sample>,
}

impl RuntimeSuspended {
    /// Makes room for many threads; for one if its stack is copied, too.
    pub fn new(copies: bool) -> Self {
        let (threads, room) = if copies { (1, MOST_BYTES) } else { (MOST_THREADS, 0) };
        Self { samples: (0..threads).map(|_| Sample::new(room)).collect() }
    }

    /// Suspends the runtime, walks threads after the one at the index `last`, which is set to that of
    /// the last one, and resumes the runtime. Returns nothing if the runtime refuses.
    ///
    /// # Safety
    /// As of [`Request::ask`], by which copies are made.
    pub unsafe fn take(
        &mut self,
        process: &Process,
        request: &Request,
        walker: &Walker<'_, RuntimeInfo, crate::code::Code>,
        last: &mut usize,
    ) -> Option<&[Sample]> {
        // No lock is held: managed threads that wait for one could not stop (H-23).
        let suspension = RuntimeSuspension::new(&process.info).ok()?;
        let mut taken = 0;
        {
            let _walking = process.walking();
            let first = process.threads.after(*last);
            while let (Some(index), Some(sample)) =
                (process.threads.after(*last), self.samples.get_mut(taken))
            {
                if taken > 0 && Some(index) == first {
                    break;
                }
                *last = index;
                let Some(thread) = process.threads.get(index) else { continue };
                let target = Other(thread);
                sample.taken_at = os::now();
                let Ok(()) = walker.take_suspended(&suspension, &target, &mut sample.buffer);
                sample.nanoseconds = os::now().saturating_sub(sample.taken_at);
                // SAFETY: the caller's promise.
                unsafe { sample.copy_other(process, request, thread, index) };
                taken += 1;
            }
        }
        if let Err(CallError::Failed(result)) = suspension.resume() {
            (process.log)(format_args!("ResumeRuntime: {result}"));
        }
        self.samples.get(..taken)
    }
}

impl Sample {
    /// Copies the registers and the stack of another thread, if there is room: by a signal, whose
    /// handler walks, too. The thread may run native code, but its frames rootward of that stay.
    ///
    /// # Safety
    /// As of [`Request::ask`].
    unsafe fn copy_other(
        &mut self,
        process: &Process,
        request: &Request,
        thread: &Thread,
        index: usize,
    ) {
        self.thread = thread.id();
        self.has_thrown = thread.has_thrown();
        self.copy.clear();
        if self.copy.capacity() == 0 {
            return;
        }
        // SAFETY: the caller's promise.
        if let Answer::Taken(own) = unsafe { request.ask(process, thread, index) } {
            self.stack = own.stack;
            self.registers = own.registers;
            self.copy_from = own.copy_from;
            std::mem::swap(&mut self.copy, &mut own.copy);
        }
    }
}

/// Another thread while the runtime is suspended: its managed frames stay, and so do the native ones
/// rootward of them.
#[derive(Debug)]
struct Other<'t>(&'t Thread);

impl Memory for Other<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        OwnProcess.read(address, buffer)
    }
}

/// The walk needs the thread's id, stack and memory only.
impl TargetThread for Other<'_> {
    type Error = HResult;

    fn id(&self) -> ThreadId {
        self.0.id()
    }

    fn stack(&self) -> StackBounds {
        self.0.stack()
    }

    fn suspend(&self) -> Result<(), HResult> {
        Err(HResult::NOT_IMPLEMENTED)
    }

    fn resume(&self) -> Result<(), HResult> {
        Err(HResult::NOT_IMPLEMENTED)
    }

    fn context(&self) -> Result<ThreadContext, HResult> {
        Err(HResult::NOT_IMPLEMENTED)
    }
}
