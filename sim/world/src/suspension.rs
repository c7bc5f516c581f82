//! Suspension: a thread that collects stops all others, which wait (contract §2.4).

use super::signal::RED_ZONE;
use super::step::{Phase, Step};
use super::{StepEvent, World};
use crate::stubs::{Shared, TRAP_RETURNING_THREADS};
use clr_machine::Observer as _;
use clr_runtime::profiling::{CallbackKind as Kind, CallbackMode, GcRequest};
use clr_runtime::thread::ThreadObject;
use clr_runtime::{Context, Lock, OsThreadId, Suspension};
use clr_unwind::{CONTEXT_SIZE, Gpr, Memory as _, Position};

/// The mechanism that stops threads in managed code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StopBy {
    /// Threads are redirected: interrupted at their current instruction.
    #[default]
    Redirection,
    /// Return addresses are hijacked: threads run on to the end of their function.
    Hijack,
}

/// Progress in stopping all other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    /// All are preemptive.
    Done,
    /// A thread was stopped just now.
    Stopped,
    /// The remaining threads have to run on for now.
    Waits,
}

/// Offset of the CONTEXT in a thread's own memory, on Windows.
const OWN_CONTEXT: u64 = 0x2000;

impl World<'_> {
    /// Sets the mechanism that stops threads in managed code from now on.
    pub const fn stop_threads_by(&mut self, way: StopBy) {
        self.stop_by = way;
    }

    /// Returns the steps of a thread that needs a GC: it collects, or has the server GC collect.
    pub(super) fn collect(&mut self, thread: usize) -> Vec<Step> {
        let induced = self.is_induced(thread);
        let wanted = self.wanted_collection(thread).unwrap_or_default();
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.induced = induced;
            executed.collection = induced.then_some(wanted);
        }
        let mut steps = if self.has_server_gc() {
            vec![Step::Cooperative(false), Step::AskForGc]
        } else {
            let mut steps = vec![Step::Cooperative(false), Step::Acquire(Lock::Gc)];
            steps.extend(self.collection(thread));
            steps.push(Step::Release(Lock::Gc));
            steps
        };
        steps.extend([Step::AwaitResume, Step::Return(0)]);
        steps
    }

    fn has_server_gc(&self) -> bool {
        self.threads.iter().any(|thread| thread.serves_gc)
    }

    /// Counts a GC. Returns true if it moves objects: each second one does (assumed).
    pub(super) const fn next_gc_moves(&mut self) -> bool {
        self.collections += 1;
        self.collections % 2 == 1
    }

    /// Begins a GC that a thread of the profiler forces. Returns the thread that performs it.
    pub fn request_gc(&mut self) -> GcRequest {
        if self.has_server_gc() {
            GcRequest::Server(self.ask_for_gc(true))
        } else {
            GcRequest::Caller { moves: self.next_gc_moves() }
        }
    }

    /// Returns the steps of a GC (contract §6): threads are stopped in preemptive mode, memory is
    /// collected in cooperative mode. The roots are reported after the GC (`DiagGCEnd` of src/vm/gcenv.ee.cpp
    /// of CoreCLR 3.1.23).
    pub(super) fn collection(&mut self, thread: usize) -> Vec<Step> {
        let mut steps = self.stopping(CallbackMode::Any);
        steps.extend(self.collected(thread));
        steps.extend(self.resuming(CallbackMode::Any));
        steps
    }

    /// Returns the steps that stop all other threads, with callbacks in this mode; the thread is cooperative afterwards. The
    /// thread store stays locked until the threads are resumed. Only for a thread that the runtime
    /// knows, the callback about its own suspension is made.
    pub(super) fn stopping(&self, mode: CallbackMode) -> Vec<Step> {
        let mut steps = vec![
            Step::Cooperative(false),
            Step::Acquire(Lock::ThreadStore),
            Step::CallbackIn(Kind::RuntimeSuspendStarted, mode),
            Step::Suspend(Phase::Suspending),
        ];
        if self.object(self.current).is_some() {
            steps.extend([
                Step::ForbidSuspension(true),
                Step::CallbackIn(Kind::RuntimeThreadSuspended, mode),
                Step::ForbidSuspension(false),
            ]);
        }
        steps.push(Step::StopOthers);
        // In newer runtimes the last callback is no longer in the suspending phase (C-017, C-168).
        let done = Step::Suspend(Phase::Suspended);
        let finished = Step::CallbackIn(Kind::RuntimeSuspendFinished, mode);
        let is_over = self.runtime.generation.suspends_before_finished();
        steps.extend(if is_over { [done, finished] } else { [finished, done] });
        steps.push(Step::AwaitResume);
        steps
    }

    /// Returns the steps that resume the threads, with callbacks in this mode.
    pub(super) fn resuming(&self, mode: CallbackMode) -> Vec<Step> {
        let mut steps = vec![Step::CallbackIn(Kind::RuntimeResumeStarted, mode)];
        if self.object(self.current).is_some() {
            steps.push(Step::CallbackIn(Kind::RuntimeThreadResumed, mode));
        }
        steps.extend([
            Step::Suspend(Phase::Running),
            Step::Cooperative(false),
            Step::Release(Lock::ThreadStore),
            Step::CallbackIn(Kind::RuntimeResumeFinished, mode),
        ]);
        steps
    }

    /// Stops all threads, or all but one. Returns true once all are preemptive. A suspending thread
    /// calls this repeatedly while the others go on, and so must the caller after a profiler's
    /// `SuspendRuntime`.
    pub fn stop_others(&mut self, but: Option<usize>) -> bool {
        self.stop_all(but) == Stopping::Done
    }

    fn stop_all(&mut self, but: Option<usize>) -> Stopping {
        let mut come = Stopping::Done;
        for thread in 0..self.threads.len() {
            if but != Some(thread) && self.is_to_stop(thread) {
                if self.stop(thread) {
                    come = Stopping::Stopped;
                } else if come == Stopping::Done {
                    come = Stopping::Waits;
                }
            }
        }
        come
    }

    /// Performs one step of a suspension.
    pub(super) fn suspension_step(&mut self, thread: usize, step: Step) -> StepEvent {
        match step {
            Step::AwaitResume if self.waits_for_runtime(thread).is_some() => {
                let waits = self.wait(thread, step);
                // `Thread::RareEnablePreemptiveGC` removes a hijack (vm/threadsuspend.cpp of
                // CoreCLR 3.1.23).
                self.unhijack(thread);
                // A suspender stops waiting for this thread as soon as it is preemptive.
                if self.is_cooperative(thread) {
                    self.set_cooperative(thread, false);
                    return StepEvent::Stepped;
                }
                waits
            }
            Step::AwaitResume => {
                self.set_cooperative(thread, true);
                StepEvent::Stepped
            }
            Step::StopOthers => match self.stop_all(Some(thread)) {
                Stopping::Done => StepEvent::Stepped,
                Stopping::Stopped => {
                    self.wait(thread, step);
                    StepEvent::Stepped
                }
                Stopping::Waits => self.wait(thread, step),
            },
            Step::Suspend(phase) => {
                let Some(os) = self.os(thread) else { return StepEvent::Stepped };
                let suspension = match phase {
                    Phase::Running => Suspension::None,
                    Phase::Suspending => Suspension::Suspending(os),
                    Phase::Suspended => Suspension::Suspended(os),
                };
                self.runtime.change_process(|process| process.suspension = suspension);
                StepEvent::Stepped
            }
            _ => StepEvent::Stepped,
        }
    }

    /// Makes the thread wait; `step` is tried again.
    pub(super) fn wait(&mut self, thread: usize, step: Step) -> StepEvent {
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.push_front(step);
        }
        StepEvent::Waits
    }

    /// Returns the thread that keeps a thread from becoming cooperative: another one that has
    /// suspended the runtime, or the thread itself if the runtime no longer knows that it is the
    /// suspender (G17).
    pub(super) fn waits_for_runtime(&self, thread: usize) -> Option<OsThreadId> {
        let process = self.runtime.process.get();
        let by = process.suspension.by()?;
        let own = self.os(thread) == Some(by);
        let goes_on = own && !(process.thread_store_forgotten && self.object(thread).is_some());
        (!goes_on).then_some(by)
    }

    /// Does the same for a thread that returns from a callback.
    pub(super) fn waits_to_come_back(&self, thread: usize) -> Option<OsThreadId> {
        let executed = self.threads.get(thread)?;
        let comes_back = executed.in_callback.is_some()
            && executed.was_cooperative
            && !self.is_cooperative(thread);
        if comes_back { self.waits_for_runtime(thread) } else { None }
    }

    /// Does the same for a thread that becomes cooperative for a callback.
    pub(super) fn waits_to_call_back(&self, thread: usize, step: Step) -> Option<OsThreadId> {
        let (kind, mode) = match step {
            Step::Callback(kind) | Step::CallbackAbout(kind, _) => {
                (kind, kind.mode(self.runtime.generation))
            }
            Step::CallbackIn(kind, mode) => (kind, mode),
            _ => return None,
        };
        let becomes = mode == CallbackMode::Cooperative
            && self.wants(kind)
            && self.object(thread).is_some()
            && !self.is_cooperative(thread);
        if becomes { self.waits_for_runtime(thread) } else { None }
    }

    /// Updates the word by which the runtime's code sees that threads have to wait.
    pub(super) fn set_trap(&mut self) {
        let set = self.runtime.process.get().suspension != Suspension::None;
        if set != self.trap {
            self.trap = set;
            // The word was mapped when the world was built.
            let _ = self
                .runtime
                .memory
                .borrow_mut()
                .write(TRAP_RETURNING_THREADS, &u64::from(set).to_le_bytes());
        }
    }

    fn entry(&self, shared: Shared) -> Option<u64> {
        let id = self.expanded.shared.get(&shared)?;
        self.linked.entries.get(id.index()).copied()
    }

    /// Stops a thread that is in managed code. Returns true if it was stopped. Any other thread
    /// runs on until it is in managed code, or finds out on its own.
    fn stop(&mut self, thread: usize) -> bool {
        if !self.can_be_stopped(thread) {
            return false;
        }
        let done = match self.stop_by {
            StopBy::Redirection => self.redirect(thread),
            StopBy::Hijack => self.hijack(thread),
        };
        done.is_some()
    }

    /// Returns true if a thread is at a place where it can be stopped now.
    pub(super) fn can_be_stopped(&self, thread: usize) -> bool {
        let Some(executed) = self.threads.get(thread) else { return false };
        let busy = executed.is_busy() || executed.ended;
        let is_managed = |rip| self.runtime.code.find(rip).is_some();
        if busy || !self.rip(thread).is_some_and(is_managed) {
            return false;
        }
        match self.stop_by {
            StopBy::Redirection => true,
            StopBy::Hijack => self.hijackable(thread).is_some(),
        }
    }

    /// Makes a thread continue in the stub that puts its CONTEXT on the Frame chain (contract
    /// §2.4).
    fn redirect(&mut self, thread: usize) -> Option<()> {
        let to = self.entry(Shared::RedirectedHandledJitCase)?;
        let unix = self.runtime.generation.is_unix();
        let saved = self.registers_of(thread)?;
        let registers = saved.registers();
        let own = self.threads.get(thread)?.own;
        let (context_at, below) = if unix {
            let size = CONTEXT_SIZE as u64;
            let at = (registers.rsp().checked_sub(RED_ZONE + size)?) & !0xF;
            (at, at)
        } else {
            (own + OWN_CONTEXT, registers.rsp() & !0xF)
        };
        let flags = self.runtime.generation.redirected_context_flags();
        let bytes = Context { registers, flags }.to_bytes();
        let rsp = below.checked_sub(8)?;
        {
            let machine = &mut *self.runtime.memory.borrow_mut();
            machine.write(context_at, &bytes).ok()?;
            machine.write(rsp, &registers.rip.to_le_bytes()).ok()?;
        }
        let mut cpu = saved;
        cpu.set_rip(to);
        cpu.set(Gpr::Rsp, rsp);
        cpu.set(if unix { Gpr::Rdi } else { Gpr::Rcx }, context_at);
        self.set_registers(thread, &cpu);
        let executed = self.threads.get_mut(thread)?;
        executed.interrupted = Some(saved);
        executed.shadow_stack.interrupt(registers, None);
        Some(())
    }

    /// Restores the registers of a redirected thread.
    pub(super) fn restore_context(&mut self, thread: usize) -> StepEvent {
        let Some(executed) = self.threads.get_mut(thread) else { return StepEvent::Stepped };
        if let Some(cpu) = executed.interrupted.take() {
            let machine = &mut *self.runtime.memory.borrow_mut();
            let from = machine.cpu().rip();
            // The call of the service never returns.
            executed.shadow_stack.cut(executed.shadow_stack.callers().len().saturating_sub(1));
            *machine.cpu_mut() = cpu;
            executed.shadow_stack.on_interrupt_return(&cpu, from);
        }
        StepEvent::Stepped
    }

    /// Returns the slot of the return address of a thread's innermost function (VA), and its
    /// content. None is hijacked while a walk of the thread has its hijack lock
    /// (`Thread::HijackThread` in vm/threadsuspend.cpp of CoreCLR 3.1.23; H-22).
    fn hijackable(&self, thread: usize) -> Option<(u64, u64)> {
        let object = ThreadObject(self.object(thread)?);
        if object.is_hijack_locked(&*self.runtime.memory.borrow()).unwrap_or(true) {
            return None;
        }
        let executed = self.threads.get(thread).filter(|executed| executed.hijack.is_none())?;
        let caller = executed.shadow_stack.callers().last()?;
        let slot = caller.registers.rsp().checked_sub(8)?;
        let address = caller.registers.rip;
        let is_there = self.runtime.memory.borrow().read_u64(slot) == Ok(address);
        (caller.position == Position::ReturnAddress && is_there).then_some((slot, address))
    }

    /// Replaces the return address of a thread's innermost function.
    fn hijack(&mut self, thread: usize) -> Option<()> {
        let to = self.entry(Shared::OnHijackTripThread)?;
        let object = ThreadObject(self.object(thread)?);
        let (slot, address) = self.hijackable(thread)?;
        let executed = self.threads.get_mut(thread)?;
        let index = executed.shadow_stack.callers().len();
        let machine = &mut *self.runtime.memory.borrow_mut();
        object.hijack(machine, slot, address, to).ok()?;
        executed.shadow_stack.divert(to);
        executed.hijack = Some(index);
        Some(())
    }

    /// Undoes a hijack: exceptions bypass returns, and would leave it in place.
    pub(super) fn unhijack(&mut self, thread: usize) {
        if let Some(object) = self.object(thread).map(ThreadObject) {
            // The slot has been written to before.
            let _ = object.unhijack(&mut *self.runtime.memory.borrow_mut());
            self.check_hijack(thread);
        }
    }

    /// Checks whether a hijack has been undone by a walk (C-077), or has taken effect.
    pub(super) fn check_hijack(&mut self, thread: usize) {
        let Some(object) = self.object(thread).map(ThreadObject) else { return };
        let Some(executed) = self.threads.get_mut(thread) else { return };
        let Some(index) = executed.hijack else { return };
        let machine = &mut *self.runtime.memory.borrow_mut();
        if executed.shadow_stack.callers().len() <= index {
            executed.hijack = None;
        } else if !object.is_hijacked(machine).unwrap_or_default() {
            executed.shadow_stack.undivert(index);
            executed.hijack = None;
        }
    }
}
