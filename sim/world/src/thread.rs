//! Threads that are executed.

use super::World;
use super::exceptions::Dispatch;
use super::services::Step;
use super::signal::Interrupted;
use crate::stubs::Identity;
use clr_codegen::FunctionId;
use clr_codegen::shadow_stack::Truth;
use clr_machine::Cpu;
use clr_runtime::OsThreadId;
use clr_runtime::profiling::CallbackKind;
use clr_runtime::thread::ThreadObject;
use clr_walker::profiling::ThreadId;
use clr_walker::registers::Registers;
use clr_walker::unwind::Position;
use std::collections::VecDeque;

/// What a thread is, and what it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A thread of the runtime, with a managed function of the source.
    Managed(FunctionId),
    /// A native thread that the runtime does not know, with a native function of the source.
    Native(FunctionId),
    /// The thread of a server GC, which makes all collections: the runtime has no Thread object for it
    /// (C-133). It ends when all others have ended.
    ServerGc,
}

/// A thread as it is executed.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub(super) struct Executed {
    pub os: OsThreadId,
    /// Its function of the source.
    pub start: FunctionId,
    /// Its registers, while another thread is the current one.
    pub cpu: Cpu,
    pub truth: Truth,
    /// What is left of the service that it is in.
    pub pending: VecDeque<Step>,
    pub in_callback: Option<CallbackKind>,
    /// Its own memory (VA): the Thread object, if it has one, lies there.
    pub own: u64,
    /// Its stack's bounds (VA).
    pub stack: (u64, u64),
    /// Its registers before it was redirected.
    pub interrupted: Option<Cpu>,
    /// The handler of a signal runs, which has interrupted this.
    pub signalled: Option<Interrupted>,
    /// Which of the truth's callers stands for a hijacked return address.
    pub hijack: Option<usize>,
    /// Its mode before the callback.
    pub was_cooperative: bool,
    pub ended: bool,
    /// The exceptions on their way, the most recent one last.
    pub dispatches: Vec<Dispatch>,
    /// The registers of the last hardware fault.
    pub fault: Registers,
    /// Nothing has caught its last exception.
    pub unhandled: bool,
    /// It is the thread of a server GC.
    pub serves_gc: bool,
}

impl Executed {
    /// Whether it is in the middle of a service, or in a callback.
    pub(super) fn is_busy(&self) -> bool {
        self.in_callback.is_some() || !self.pending.is_empty()
    }
}

/// A frame as execution knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// Its registers.
    pub registers: Registers,
    /// What its rip is.
    pub position: Position,
    /// Its function in the expanded program; `None` in a service.
    pub function: Option<FunctionId>,
    /// rsp of its caller once it has returned (VA).
    pub caller_sp: u64,
}

impl World<'_> {
    /// The activations of a thread, innermost first, services among them. What called the thread's
    /// first function is not among them.
    #[must_use]
    pub fn activations(&self, thread: usize) -> Vec<Activation> {
        let Some(executed) = self.threads.get(thread) else { return Vec::new() };
        let mut registers = self.registers_of(thread).unwrap_or_default().registers();
        let mut position = Position::Interrupted;
        let mut activations = Vec::new();
        for (index, caller) in executed.truth.callers().iter().enumerate().rev() {
            // A hijacked return address is nobody's who has been called.
            if executed.hijack == Some(index) {
                continue;
            }
            activations.push(Activation {
                registers,
                position,
                function: self.linked.function_of(registers.rip, position),
                caller_sp: caller.registers.rsp(),
            });
            (registers, position) = (caller.registers, caller.position);
        }
        activations
    }

    /// The registers of a thread's first managed activation. A stub in a code heap is none (C-039).
    #[must_use]
    pub fn top_managed(&self, thread: usize) -> Option<Registers> {
        let managed = |function: FunctionId| {
            let identity = self.expanded().identities.get(function.index());
            matches!(identity, Some(Identity::Method(_)))
        };
        let activations = self.activations(thread);
        let mut activations = activations.iter();
        let first = activations.find(|activation| activation.function.is_some_and(managed))?;
        Some(first.registers)
    }

    /// A thread's registers and flags.
    pub(super) fn registers_of(&self, thread: usize) -> Option<Cpu> {
        if thread == self.current {
            return Some(*self.runtime.memory.borrow().cpu());
        }
        self.threads.get(thread).map(|executed| executed.cpu)
    }

    /// Gives a thread other registers.
    pub(super) fn set_registers(&mut self, thread: usize, cpu: &Cpu) {
        if thread == self.current {
            *self.runtime.memory.borrow_mut().cpu_mut() = *cpu;
        } else if let Some(executed) = self.threads.get_mut(thread) {
            executed.cpu = *cpu;
        }
    }

    /// The runtime gets to know a thread that came from unmanaged code, or forgets it.
    pub(super) fn attach(&mut self, thread: usize) {
        let Some(executed) = self.threads.get(thread) else { return };
        let (os, own, stack) = (executed.os, executed.own, executed.stack);
        let object = ThreadId(own);
        let machine = &mut *self.runtime.memory.borrow_mut();
        // The memory is mapped with the world.
        let _ = super::build::write_thread(machine, object, stack);
        self.runtime.change_thread(os, |thread| thread.object = Some(object));
    }

    /// Whether a thread has to come to a stop before the runtime is suspended: it is cooperative, and
    /// has not ended.
    pub(super) fn is_to_stop(&self, thread: usize) -> bool {
        let ended = self.threads.get(thread).is_none_or(|executed| executed.ended);
        !ended && self.is_cooperative(thread)
    }

    /// Whether a thread is in cooperative mode, as its Thread object says: also of one that has ended by
    /// an exception.
    #[must_use]
    pub fn is_cooperative(&self, thread: usize) -> bool {
        let Some(object) = self.object(thread) else { return false };
        let memory = self.runtime.memory.borrow();
        ThreadObject(object).is_cooperative(&*memory).unwrap_or_default()
    }

    pub(super) fn set_cooperative(&mut self, thread: usize, cooperative: bool) {
        if let Some(object) = self.object(thread) {
            // A Thread object of the world is always there.
            let memory = &mut *self.runtime.memory.borrow_mut();
            let _ = ThreadObject(object).set_cooperative(memory, cooperative);
        }
    }
}
