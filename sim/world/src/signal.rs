//! Unix signals: a thread is interrupted at any instruction, or while it waits for the end of a
//! suspension, and a handler of the profiler runs on it.
//!
//! The caller provides the handler: it runs between [`World::signal`] and the next step of the
//! thread, which restores the thread's registers.

use super::step::Step;
use super::{StepEvent, World};
use clr_codegen::shadow_stack::CallerState;
use clr_codegen::{Service, service_address};
use clr_machine::{Cpu, Observer as _};
use clr_runtime::{Context, Lock};
use clr_unwind::{CONTEXT_SIZE, Gpr, Memory as _, Registers};
use std::collections::VecDeque;
use thiserror::Error;

/// Bytes below rsp that belong to the interrupted function.
pub(super) const RED_ZONE: u64 = 128;
/// Bytes on the stack while a handler runs: the interrupted registers, and the handler's return
/// address.
pub const SIGNAL_FRAME_SIZE: u64 = CONTEXT_SIZE as u64 + 16;

/// The stack that a handler runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SignalStack {
    /// The thread's own stack.
    #[default]
    Own,
    /// An alternate stack of the thread (`sigaltstack`) of this number of bytes.
    Alternate(u32),
}

/// A thread in a signal handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The interrupted registers.
    pub registers: Registers,
    /// Address of the CONTEXT with these registers (VA).
    pub context: u64,
    /// Bytes of stack left to the handler.
    pub room: u64,
}

/// The reason why no handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SignalError {
    /// There is no such thread.
    #[error("there is no thread {0}")]
    NoThread(usize),
    /// Only Unix has signals.
    #[error("there are no signals on Windows")]
    NoSignals,
    /// The thread has ended, or its first function has returned.
    #[error("the thread has ended")]
    Ended,
    /// The thread is in the middle of a service, or in a callback: it can be interrupted later.
    #[error("the thread executes no instructions now")]
    Busy,
    /// The thread is in a handler already: the signal is blocked meanwhile.
    #[error("the thread is in a handler already")]
    InHandler,
    /// The stack has no room for the registers: the process dies of that (G30).
    #[error("the handler's stack has {room} bytes, not {SIGNAL_FRAME_SIZE}")]
    NoRoom {
        /// Size of the stack in bytes.
        room: u64,
    },
}

/// The state that a handler has interrupted.
#[derive(Clone, Debug, Hash)]
pub(super) struct Interrupted {
    cpu: Cpu,
    /// The service that was interrupted, if the thread was in one.
    service: Option<InterruptedService>,
}

/// A service of the world in which a signal has found the thread.
#[derive(Clone, Debug, Hash)]
struct InterruptedService {
    /// Registers at the start of the service.
    cpu: Cpu,
    /// Caller of the service.
    caller: CallerState,
    /// Remaining steps of the service.
    pending: VecDeque<Step>,
}

impl World<'_> {
    /// Returns true if a thread waits for the end of a suspension, on the condition variable of
    /// which each thread has one for all its waits. Signals interrupt it there. In CoreCLR 3.1 to
    /// .NET 10 `Thread::RareDisablePreemptiveGC` (vm/threadsuspend.cpp) ends in
    /// `CPalSynchronizationManager::ThreadNativeWait` (pal/src/synchmgr/synchmanager.cpp).
    pub fn waits_on_condition(&self, thread: usize) -> bool {
        let address = service_address(Service::RareDisable.number());
        self.runtime.generation.is_unix()
            && self.rip(thread) == Some(address)
            && self.threads.get(thread).is_some_and(|executed| {
                executed.in_callback.is_none()
                    && executed.pending.front() == Some(&Step::AwaitResume)
            })
            && self.waits_for(thread).is_some()
    }

    /// Returns true if a thread unwinds native code of the runtime, under the lock of the unwinder's
    /// cache, which blocks no signals (H-28).
    fn unwinds_natively(&self, thread: usize) -> bool {
        let within = Some(&Step::Release(Lock::NativeUnwinder));
        self.threads.get(thread).is_some_and(|executed| executed.pending.front() == within)
    }

    /// Returns true if a thread is in `malloc` or in the loader, where it owns a lock or waits for one. Neither blocks
    /// signals: glibc's arena lock and `_dl_load_lock` are plain futexes (malloc/malloc.c, elf/dl-open.c).
    fn is_in_system(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|executed| match executed.pending.front() {
            Some(Step::Acquire(lock) | Step::Release(lock)) => {
                executed.in_callback.is_none() && matches!(lock, Lock::ProcessHeap | Lock::Loader)
            }
            _ => false,
        })
    }

    /// Returns true if a signal can interrupt the service that a thread is in.
    pub fn is_interruptible(&self, thread: usize) -> bool {
        self.waits_on_condition(thread)
            || self.unwinds_natively(thread)
            || self.is_in_system(thread)
    }

    /// Returns the registers that a signal finds: those of the next instruction, or in a service
    /// those after its call.
    fn interruptible_registers(&self, thread: usize) -> Option<Cpu> {
        let mut cpu = self.registers_of(thread)?;
        if self.is_interruptible(thread) {
            let rsp = cpu.rsp();
            cpu.set_rip(self.runtime.memory.borrow().read_u64(rsp).ok()?);
            cpu.set(Gpr::Rsp, rsp.wrapping_add(8));
        }
        Some(cpu)
    }

    /// Takes a thread out of the service that a signal interrupts.
    fn leave_service(&mut self, thread: usize) -> Option<InterruptedService> {
        if !self.is_interruptible(thread) {
            return None;
        }
        let waits = self.waits_on_condition(thread);
        let cpu = self.registers_of(thread)?;
        let executed = self.threads.get_mut(thread)?;
        let caller = *executed.shadow_stack.callers().last()?;
        executed.shadow_stack.cut(executed.shadow_stack.callers().len().saturating_sub(1));
        let pending = core::mem::take(&mut executed.pending);
        self.runtime.change_thread(executed.os, |thread| thread.waits_interrupted = waits);
        Some(InterruptedService { cpu, caller, pending })
    }

    /// Interrupts a thread before its next instruction, in a [wait](Self::waits_on_condition), in
    /// the native unwinder, in `malloc`, or in the loader. The caller then runs the handler, in which
    /// profiling methods are called on the thread; the thread's next step ends the handler.
    ///
    /// # Errors
    /// Returns [`SignalError`] if no handler can run; nothing has changed then.
    pub fn signal(&mut self, thread: usize, stack: SignalStack) -> Result<Signal, SignalError> {
        let saved = self.interruptible_registers(thread).ok_or(SignalError::NoThread(thread))?;
        let executed = self.threads.get(thread).ok_or(SignalError::NoThread(thread))?;
        if !self.runtime.generation.is_unix() {
            return Err(SignalError::NoSignals);
        } else if executed.ended || executed.shadow_stack.callers().is_empty() {
            return Err(SignalError::Ended);
        } else if executed.is_busy() && !self.is_interruptible(thread) {
            return Err(SignalError::Busy);
        } else if executed.signalled.is_some() {
            return Err(SignalError::InHandler);
        }
        let registers = saved.registers();
        let (top, size) = match stack {
            SignalStack::Own => {
                let top = registers.rsp().saturating_sub(RED_ZONE);
                (top, top.saturating_sub(executed.stack.0))
            }
            // Only the top is ever written to: it is the end of the thread's own memory.
            SignalStack::Alternate(size) => {
                (executed.own + super::build::THREAD_PITCH, u64::from(size))
            }
        };
        let no_room = SignalError::NoRoom { room: size };
        let room = size.checked_sub(SIGNAL_FRAME_SIZE).ok_or(no_room)?;
        let context = (top - CONTEXT_SIZE as u64) & !0xF;
        let rsp = context - 8;
        let flags = self.runtime.generation.own_context_flags();
        let bytes = Context { registers, flags }.to_bytes();
        let handler = service_address(Service::FastHook.number());
        {
            let machine = &mut *self.runtime.memory.borrow_mut();
            let written = machine.write(context, &bytes).is_ok()
                && machine.write(rsp, &registers.rip.to_le_bytes()).is_ok();
            if !written {
                return Err(no_room);
            }
        }
        let service = self.leave_service(thread);
        let mut cpu = saved;
        cpu.set_rip(handler);
        cpu.set(Gpr::Rsp, rsp);
        self.set_registers(thread, &cpu);
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.signalled = Some(Interrupted { cpu: saved, service });
            executed.shadow_stack.interrupt(registers, None);
        }
        Ok(Signal { registers, context, room })
    }

    /// Returns true if a thread is in a signal handler.
    pub fn is_in_handler(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|executed| executed.signalled.is_some())
    }

    /// Ends the current thread's handler: the thread continues where it was interrupted.
    pub(super) fn end_handler(&mut self, thread: usize) -> Option<StepEvent> {
        let executed = self.threads.get_mut(thread)?;
        let Interrupted { cpu, service } = executed.signalled.take()?;
        let machine = &mut *self.runtime.memory.borrow_mut();
        let from = machine.cpu().rip();
        *machine.cpu_mut() = cpu;
        executed.shadow_stack.on_interrupt_return(&cpu, from);
        if let Some(InterruptedService { cpu, caller, pending }) = service {
            *machine.cpu_mut() = cpu;
            executed.shadow_stack.call_again(caller);
            executed.pending = pending;
            self.runtime.change_thread(executed.os, |thread| thread.waits_interrupted = false);
        }
        Some(StepEvent::Stepped)
    }
}
