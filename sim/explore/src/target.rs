//! Other threads, as seen by a profiler under a schedule.

use super::footprint::Footprint;
use super::history::{ThreadKind, TurnEvent};
use super::ids::ThreadIndex;
use super::thread::CurrentThread;
use super::verdict::{ProfilerRule, Verdict};
use clr_codegen::execution::BASE;
use clr_machine::Machine;
use clr_runtime::OsThreadId;
use clr_runtime::profiling::{SimulatedThread, ThreadError};
use clr_unwind::{Memory, Registers, Unreadable};
use clr_walker::profiling::{StackBounds, StackRoot, TargetThread, ThreadContext, ThreadId};

/// A thread that can be suspended and examined.
#[derive(Debug)]
pub struct ExaminedThread<'g, 't, 'b> {
    by: &'g CurrentThread<'t, 'b>,
    index: ThreadIndex,
    os: OsThreadId,
    /// The thread as known to the runtime.
    known: Option<SimulatedThread<'t, 'b, Machine>>,
    /// The root that the profiler believes in, if it is another than the true one.
    root: Option<StackRoot>,
}

impl<'t, 'b> CurrentThread<'t, 'b> {
    /// Returns another thread, or this one, as seen by a profiler; `None` if there is none with
    /// this index.
    #[must_use]
    pub fn target(&self, thread: ThreadIndex) -> Option<ExaminedThread<'_, 't, 'b>> {
        ExaminedThread::new(self, thread)
    }
}

impl<'g, 't, 'b> ExaminedThread<'g, 't, 'b> {
    pub(super) fn new(by: &'g CurrentThread<'t, 'b>, index: ThreadIndex) -> Option<Self> {
        let os = by.kernel.state.borrow().threads.get(index.index())?.os;
        // The runtime may know the thread later, or no more.
        by.kernel.touch(Footprint::THREADS.read());
        let known = SimulatedThread::new(&*by.kernel.runtime, os, BASE);
        Some(Self { by, index, os, known, root: None })
    }

    /// Makes the profiler take `root` (VA) for the return address of the thread's first function.
    #[must_use]
    pub fn with_root(mut self, root: Option<u64>) -> Self {
        self.root = root.map(StackRoot::ReturnAddress);
        self
    }

    /// Returns true if the first function of the thread is the one with this `ip` (VA).
    #[must_use]
    pub fn begins_at(&self, ip: u64) -> bool {
        self.by.kernel.touch(Footprint::thread(self.index).read());
        let activations = self.by.kernel.world.borrow().activations(self.index.index());
        activations.last().is_some_and(|first| first.registers.rip == ip)
    }

    /// Returns the registers of the first managed frame, as correct unwinding finds them, or `None`
    /// if there is none or the thread does not belong to the program.
    #[must_use]
    pub fn top_managed(&self) -> Option<Registers> {
        self.by.kernel.touch(Footprint::thread(self.index).read());
        let world = self.by.kernel.world.borrow();
        let is_app = self.index.0 < self.by.kernel.apps;
        world.top_managed(self.index.index()).filter(|_| is_app && !self.is_gone())
    }

    /// Performs the suspension in the system call.
    fn suspend_now(&self) -> Result<(), ThreadError> {
        let by = self.by;
        if by.kernel.kind(by.me) != ThreadKind::Profiler {
            by.kernel.broke(by.me, ProfilerRule::SuspenderRanManagedCode);
        }
        by.kernel.touch(Footprint::thread(self.index));
        if self.is_gone() {
            return Err(ThreadError::NoThread(self.os));
        }
        match &self.known {
            Some(known) => known.suspend()?,
            None => by.kernel.runtime.change_thread(self.os, |thread| thread.suspended += 1),
        }
        let mut state = by.kernel.state.borrow_mut();
        if let Some(thread) = state.threads.get_mut(self.index.index()) {
            thread.suspended_by.push(by.me);
        }
        drop(state);
        by.record(TurnEvent::Suspended(self.index));
        Ok(())
    }

    /// Returns true if a walk may report this `ip` (VA) for an activation on the stack.
    #[must_use]
    pub fn is_on_stack(&self, ip: u64) -> bool {
        self.by.kernel.touch(Footprint::thread(self.index).read());
        self.by.kernel.world.borrow().is_on_stack(self.index.index(), ip)
    }

    /// Writes registers that were read before: the thread continues there. The system does not
    /// check if the thread has been redirected since (H-16): in that case the interleaving ends as
    /// failed.
    pub fn set_context(&self, registers: &Registers) {
        let by = self.by;
        by.switch();
        by.kernel.touch(Footprint::thread(self.index));
        by.record(TurnEvent::REDIRECTS);
        let now = by.kernel.runtime.thread(self.os, |thread| thread.current.registers);
        let place = |registers: &Registers| (registers.rip, registers.rsp());
        if !self.is_gone() && now.is_some_and(|now| place(&now) != place(registers)) {
            by.fail("a thread continues at a place that it had already left");
        }
    }

    fn is_gone(&self) -> bool {
        let state = self.by.kernel.state.borrow();
        state.threads.get(self.index.index()).is_none_or(|thread| thread.ended)
    }
}

impl Memory for ExaminedThread<'_, '_, '_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.by.kernel.touch(Footprint::thread(self.index).read());
        self.by.kernel.runtime.memory.borrow().read(address, buffer)
    }
}

impl TargetThread for ExaminedThread<'_, '_, '_> {
    type Error = ThreadError;

    fn id(&self) -> ThreadId {
        self.known.as_ref().map_or(ThreadId(0), TargetThread::id)
    }

    fn stack(&self) -> StackBounds {
        let anywhere =
            StackBounds { limit: 0, base: u64::MAX, root: StackRoot::ReturnAddress(BASE) };
        let stack = self.known.as_ref().map_or(anywhere, TargetThread::stack);
        StackBounds { root: self.root.unwrap_or(stack.root), ..stack }
    }

    fn suspend(&self) -> Result<(), ThreadError> {
        let by = self.by;
        by.in_system(true);
        by.switch();
        by.in_system(false);
        let suspended = self.suspend_now();
        if by.kernel.suspensions(by.me) > 0 {
            // The call returns from the system here.
            by.switch();
        }
        suspended
    }

    fn resume(&self) -> Result<(), ThreadError> {
        let by = self.by;
        by.switch();
        by.kernel.touch(Footprint::thread(self.index));
        let mut state = by.kernel.state.borrow_mut();
        let Some(thread) = state.threads.get_mut(self.index.index()) else {
            return Err(ThreadError::NoThread(self.os));
        };
        // Any thread may resume it: the system only counts.
        let mine = thread.suspended_by.iter().rposition(|who| *who == by.me);
        let Some(place) = mine.or_else(|| thread.suspended_by.len().checked_sub(1)) else {
            drop(state);
            by.kernel.broke(by.me, ProfilerRule::ResumeDoubled);
            return Err(ThreadError::NotResumed(self.os));
        };
        let suspender = thread.suspended_by.remove(place);
        drop(state);
        // What its suspender may do depends on it.
        by.kernel.touch(Footprint::thread(suspender));
        by.kernel.runtime.change_thread(self.os, |thread| {
            thread.suspended = thread.suspended.saturating_sub(1);
        });
        by.record(TurnEvent::Resumed(self.index));
        Ok(())
    }

    fn context(&self) -> Result<ThreadContext, ThreadError> {
        let by = self.by;
        by.switch();
        by.kernel.touch(Footprint::thread(self.index).read());
        by.record(TurnEvent::Context(self.index));
        if self.is_gone() {
            by.end(Verdict::DestroyedThread { by: by.me });
        }
        // In its own signal handler a thread has the registers that were interrupted.
        let interrupted = {
            let state = by.kernel.state.borrow();
            let own = state.threads.get(self.index.index()).filter(|_| self.index == by.me);
            own.and_then(|own| own.interrupted.as_deref().copied())
        };
        if let Some(registers) = interrupted {
            return Ok(ThreadContext { registers, flags: ThreadContext::FULL });
        }
        match &self.known {
            Some(known) => known.context(),
            None => Err(ThreadError::NoContext(self.os)),
        }
    }
}
