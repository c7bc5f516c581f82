//! Threads of a world.

use super::exceptions::Dispatch;
use super::signal::Interrupted;
use super::step::{About, Step};
use super::{Collection, ExceptionClass, World};
use crate::stubs::Identity;
use clr_codegen::shadow_stack::{CallerState, ShadowStack};
use clr_codegen::{FunctionIndex, Service};
use clr_machine::{Cpu, Machine};
use clr_runtime::frame::layout;
use clr_runtime::profiling::CallbackKind;
use clr_runtime::thread::ThreadObject;
use clr_runtime::{FrameKind, OsThreadId};
use clr_unwind::{Memory as _, Position, Registers};
use clr_walker::profiling::ThreadId;
use core::hash::{Hash, Hasher};
use std::collections::VecDeque;

/// The kind of a thread, and the function that it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStart {
    /// A thread of the runtime that begins with a managed function of the source.
    Managed(FunctionIndex),
    /// A native thread unknown to the runtime, which begins with a native function of the source.
    Native(FunctionIndex),
    /// A thread of the runtime that the program starts, with a managed function of the source.
    ByProgram(FunctionIndex),
    /// A thread of the runtime's pool, which the program causes to start, with a managed function of the source.
    OfPool(FunctionIndex),
    /// The finalizer's thread, which the runtime has started.
    Finalizer,
    /// A thread of tiered compilation, which the runtime has started.
    Tiering,
    /// The thread of a server GC, which performs all GCs: the runtime has no Thread object for it
    /// (C-133). It ends when all other threads have ended.
    ServerGc,
}

/// The execution state of a thread.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub(super) struct Executed {
    pub os: OsThreadId,
    /// Start function in the source.
    pub start: FunctionIndex,
    /// Registers of the thread while another thread is the current one.
    pub cpu: Cpu,
    /// The runtime has these registers.
    pub is_synced: bool,
    pub shadow_stack: ShadowStack,
    /// Remaining steps of the current service.
    pub pending: VecDeque<Step>,
    pub in_callback: Option<CallbackKind>,
    /// The subject of that callback, if its step says so.
    pub about: Option<About>,
    /// The last service that the thread's code has called.
    pub served: Option<Service>,
    /// The GC that the thread makes was induced by the program.
    pub induced: bool,
    /// The extent of the GC that the thread makes, if the program has asked for it.
    pub collection: Option<Collection>,
    /// Number of the object that the thread has made last, from 1; 0 if it has made none.
    pub object: u64,
    /// Number of the handle that the thread has made or destroyed last, from 1.
    pub handle: u64,
    /// Number and class of the exception's object that native code has caught and is about to throw again.
    pub carried: Option<(u64, ExceptionClass)>,
    /// Number and class of the exception's object that the thread has thrown last.
    pub thrown: (u64, ExceptionClass),
    /// Memory of the thread (VA): contains the Thread object, if it has one.
    pub own: u64,
    /// Bounds of the stack (VA).
    pub stack: (u64, u64),
    /// Nothing has been written below (VA) since the memory below rsp was last cleared.
    pub lowest: u64,
    /// Registers before the thread was redirected.
    pub interrupted: Option<Cpu>,
    /// State interrupted by the signal handler that runs.
    pub signalled: Option<Interrupted>,
    /// Index of the shadow-stack entry for a hijacked return address.
    pub hijack: Option<usize>,
    /// Mode before the callback.
    pub was_cooperative: bool,
    pub ended: bool,
    /// Exceptions in flight, the most recent one last.
    pub dispatches: Vec<Dispatch>,
    /// Registers at the last hardware fault.
    pub fault: Registers,
    /// The last exception was not caught.
    pub unhandled: bool,
    /// This is the thread of a server GC.
    pub serves_gc: bool,
    /// The program starts the thread.
    pub by_program: bool,
    /// The thread is one of the runtime's pool.
    pub of_pool: bool,
    /// This is the finalizer's thread.
    pub is_finalizer: bool,
    /// This is a thread of tiered compilation.
    pub serves_tiers: bool,
    /// The process waits for this thread's end before its own.
    pub foreground: bool,
}

impl Executed {
    /// Returns the callers of the thread's functions, innermost first. No function has called the stub that a
    /// hijacked return address leads to.
    fn callers(&self) -> impl Iterator<Item = &CallerState> {
        let callers = self.shadow_stack.callers().iter().enumerate().rev();
        callers.filter(|(index, _)| self.hijack != Some(*index)).map(|(_, caller)| caller)
    }

    /// Returns the registers: the machine has those of the current thread.
    pub(super) const fn cpu_in<'c>(&'c self, machine: &'c Machine, is_current: bool) -> &'c Cpu {
        if is_current { machine.cpu() } else { &self.cpu }
    }

    /// Hashes all but the registers, which the machine may have.
    pub(super) fn hash_without_registers(&self, hasher: &mut impl Hasher) {
        let Self {
            os: _,
            start,
            cpu: _,
            is_synced: _,
            shadow_stack,
            pending,
            in_callback,
            about,
            served,
            induced,
            collection,
            object,
            handle,
            carried,
            thrown,
            own: _,
            stack: _,
            lowest: _,
            interrupted,
            signalled,
            hijack,
            was_cooperative,
            ended,
            dispatches,
            fault,
            unhandled,
            serves_gc,
            by_program: _,
            of_pool: _,
            is_finalizer: _,
            serves_tiers: _,
            foreground,
        } = self;
        (start, shadow_stack, pending, in_callback, about, served).hash(hasher);
        (object, handle, carried).hash(hasher);
        (interrupted, signalled, hijack, dispatches, fault, thrown, collection).hash(hasher);
        [induced, was_cooperative, ended, unhandled, serves_gc, foreground].hash(hasher);
    }

    /// Returns true if the thread is in the middle of a service, or in a callback.
    pub(super) fn is_busy(&self) -> bool {
        self.in_callback.is_some() || !self.pending.is_empty()
    }
}

/// A function activation, taken from the shadow stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// Registers of the activation.
    pub registers: Registers,
    /// Position of rip in the activation.
    pub position: Position,
    /// Function in the expanded program; `None` in a service.
    pub function: Option<FunctionIndex>,
    /// Caller's rsp after the function has returned (VA).
    pub caller_sp: u64,
}

impl World<'_> {
    /// Returns the activations of a thread, innermost first, including services. The caller of the
    /// thread's first function is not included.
    pub fn activations(&self, thread: usize) -> Vec<Activation> {
        let Some(executed) = self.threads.get(thread) else { return Vec::new() };
        let mut registers = self.registers_of(thread).unwrap_or_default().registers();
        let mut position = Position::Interrupted;
        let mut activations = Vec::new();
        for caller in executed.callers() {
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

    /// Returns the functions of a thread's [activations](Self::activations), innermost first; `None`
    /// for code that belongs to no function.
    pub fn functions(&self, thread: usize) -> impl Iterator<Item = Option<FunctionIndex>> {
        let rip = self.rip(thread).unwrap_or_default();
        let mut at = (rip, Position::Interrupted);
        let callers = self.threads.get(thread).into_iter().flat_map(Executed::callers);
        callers.map(move |caller| {
            let next = (caller.registers.rip, caller.position);
            let (rip, position) = core::mem::replace(&mut at, next);
            self.linked.function_of(rip, position)
        })
    }

    /// Returns true if a walk of a thread may report this `ip` (VA): it is that of an activation, or
    /// the return address that an InlinedCallFrame in the activation records. In ready-to-run code
    /// the latter is not the address to which the native call returns (C-156).
    pub fn is_on_stack(&self, thread: usize, ip: u64) -> bool {
        let activations = self.activations(thread);
        let records_ip = |activation: &Activation| {
            let function = self.linked.function_of(ip, Position::ReturnAddress);
            activation.function.is_some()
                && activation.function == function
                && self.recorded_call(thread, activation) == Some(ip)
        };
        activations
            .iter()
            .any(|activation| activation.registers.rip == ip || records_ip(activation))
    }

    /// Returns the return address (VA) in the first Frame of the chain that lies in an activation's
    /// part of the stack, if that is an InlinedCallFrame.
    fn recorded_call(&self, thread: usize, activation: &Activation) -> Option<u64> {
        let object = ThreadObject(self.object(thread)?);
        let memory = &*self.runtime.memory.borrow();
        let inside = activation.registers.rsp()..activation.caller_sp;
        let mut frame = object.top_frame(memory).ok()?;
        while frame < inside.start {
            frame = memory.read_u64(frame.wrapping_add(layout::NEXT)).ok()?;
        }
        let kind = self.runtime.identities.kind(memory.read_u64(frame).ok()?);
        let is_call = inside.contains(&frame) && kind == Some(FrameKind::InlinedCall);
        let recorded = self.runtime.generation.inlined_call_frame().return_address;
        is_call.then(|| memory.read_u64(frame.wrapping_add(recorded)).ok()).flatten()
    }

    /// Returns the registers of a thread's innermost managed activation. A stub in a code heap does
    /// not count as managed (C-039).
    pub fn top_managed(&self, thread: usize) -> Option<Registers> {
        let managed = |function: FunctionIndex| {
            let identity = self.expanded().identities.get(function.index());
            matches!(identity, Some(Identity::Method(_)))
        };
        let activations = self.activations(thread);
        let mut activations = activations.iter();
        let first = activations.find(|activation| activation.function.is_some_and(managed))?;
        Some(first.registers)
    }

    /// Returns a thread's registers and flags.
    pub(super) fn registers_of(&self, thread: usize) -> Option<Cpu> {
        if thread == self.current {
            return Some(*self.runtime.memory.borrow().cpu());
        }
        self.threads.get(thread).map(|executed| executed.cpu)
    }

    /// Sets a thread's registers and flags.
    pub(super) fn set_registers(&mut self, thread: usize, cpu: &Cpu) {
        self.note_depth(thread, cpu.rsp());
        if thread == self.current {
            *self.runtime.memory.borrow_mut().cpu_mut() = *cpu;
        } else if let Some(executed) = self.threads.get_mut(thread) {
            executed.cpu = *cpu;
            executed.is_synced = false;
        }
    }

    /// Gives a thread that came from unmanaged code a Thread object, which makes it known to the
    /// runtime.
    pub(super) fn attach(&mut self, thread: usize) {
        let Some(executed) = self.threads.get(thread) else { return };
        let (os, own, stack) = (executed.os, executed.own, executed.stack);
        let object = ThreadId(own);
        let machine = &mut *self.runtime.memory.borrow_mut();
        // The memory was mapped when the world was built.
        let _ = super::build::write_thread(machine, object, stack);
        self.runtime.change_thread(os, |thread| thread.object = Some(object));
    }

    /// Returns true if a thread has to stop before the runtime is suspended: it is in cooperative
    /// mode and has not ended.
    pub(super) fn is_to_stop(&self, thread: usize) -> bool {
        let ended = self.threads.get(thread).is_none_or(|executed| executed.ended);
        !ended && self.is_cooperative(thread)
    }

    /// Returns true if a thread is in cooperative mode according to its Thread object. A thread
    /// that was ended by an exception may still be.
    pub fn is_cooperative(&self, thread: usize) -> bool {
        let Some(object) = self.object(thread) else { return false };
        let memory = self.runtime.memory.borrow();
        ThreadObject(object).is_cooperative(&*memory).unwrap_or_default()
    }

    /// Makes [`is_cooperative`](Self::is_cooperative) quick for a thread: it remembers the page of the Thread object.
    pub fn remember_mode(&mut self, thread: usize) {
        if let Some(object) = self.object(thread) {
            self.runtime.memory.borrow_mut().expect_reads(object.0);
        }
    }

    pub(super) fn set_cooperative(&mut self, thread: usize, cooperative: bool) {
        if let Some(object) = self.object(thread) {
            // A Thread object of the world is always mapped.
            let memory = &mut *self.runtime.memory.borrow_mut();
            let _ = ThreadObject(object).set_cooperative(memory, cooperative);
        }
    }
}
