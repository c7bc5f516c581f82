//! A world: a program that is executed together with a runtime.
//!
//! Threads are executed one instruction at a time, whichever the caller chooses; each has a stack and a
//! Thread object of its own in the one memory. Where the runtime's code asks for a [`Service`], the
//! world does it. Callbacks of the profiler come up one by one, so that a profiler can act in each.
//!
//! ```
//! use clr_runtime::generation::Generation;
//! use clr_world::{Build, Event, Start};
//! use std::collections::BTreeMap;
//! # use clr_codegen::*;
//!
//! // App.Main allocates an object.
//! let new = Statement::Runtime(RuntimeCall { kind: RuntimeCallKind::New, target: None });
//! let main = Function {
//!     name: "App.Main".to_owned(),
//!     kind: CodeKind::Jit,
//!     shape: FunctionShape::default(),
//!     body: vec![new],
//!     end: Some(Exit::Return(ReturnForm::Ret)),
//! };
//! let program = Program { functions: vec![main], ..Program::default() };
//! let build = Build::new(&program, &BTreeMap::new(), Generation::CoreClr31Windows)?;
//! let mut world = build.world(&[Start::Managed(FunctionId(0))])?;
//! let callback = loop {
//!     if let Event::Callback(kind) = world.step(0)? {
//!         break kind;
//!     }
//! };
//! assert_eq!(callback.name(), "ThreadCreated");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod exceptions;
mod fault;
mod frames;
mod managed;
mod passes;
pub mod reference;
mod services;
mod signal;
pub mod stubs;
mod suspension;
pub mod synthetic;
mod thread;
mod unloading;
mod waiting;

pub use build::{Build, BuildError};
pub use services::ALL_EVENTS;
pub use signal::{SIGNAL_FRAME_SIZE, Signal, SignalError, SignalStack};
pub use suspension::StopBy;
pub use thread::{Activation, Start};
pub use waiting::Waiting;

use crate::stubs::{Expanded, Shared};
use clr_codegen::LinkedProgram;
use clr_codegen::Service;
use clr_codegen::shadow_stack::{Broken, Truth};
use clr_machine::{Snapshot, Stop};
use clr_runtime::Context;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{CallbackKind, CallbackMode};
use clr_runtime::thread::ThreadObject;
use clr_runtime::{OsThreadId, Process, Runtime, Thread, ThreadLife};
use clr_walker::profiling::ThreadId;
use clr_walker::registers::Gpr;
use services::Step;
use std::rc::Rc;
use thiserror::Error;
use thread::Executed;

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An instruction has been executed, or a part of a service.
    Stepped,
    /// The profiler is called back; the next step of the thread goes on behind the callback.
    Callback(CallbackKind),
    /// The thread is in a hook of the profiler that its code has called directly: the runtime does not
    /// know of it. The next step goes on behind the hook.
    Hook,
    /// The thread waits for others.
    Waits,
    /// The thread has ended.
    Ended,
}

/// Why a thread cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WorldError {
    /// There is no such thread.
    #[error("there is no thread {0}")]
    NoThread(usize),
    /// Its code cannot go on: out of stack, mostly.
    #[error("{0}")]
    Fault(#[from] Stop),
    /// It executes code that has been unloaded (VA).
    #[error("the code at {0:#x} has been unloaded")]
    Unloaded(u64),
    /// A function did not keep to the convention: a mistake of the code generator.
    #[error("{0}")]
    Broken(Broken),
    /// The program lacks a helper that it goes on with: a mistake of the code generator.
    #[error("the program has no {}", .0.name())]
    NoHelper(Shared),
}

/// How a world stood.
#[derive(Clone, Debug)]
pub struct WorldState {
    machine: Snapshot,
    process: Process,
    known: Vec<Thread>,
    threads: Vec<Executed>,
    current: usize,
    collections: u32,
    gcs_wanted: u32,
    gcs_made: u32,
    freed: usize,
    trap: bool,
}

/// A program with a runtime, being executed.
#[derive(Debug)]
pub struct World<'b> {
    expanded: &'b Expanded,
    linked: &'b LinkedProgram,
    /// Profilers have it too: what they call may be in the middle of it while threads go on.
    runtime: Rc<Runtime<'b>>,
    threads: Vec<Executed>,
    /// Whose registers the machine has.
    current: usize,
    stop_by: StopBy,
    /// How many collections there have been.
    collections: u32,
    /// How many collections were wanted of the server GC's thread, and how many it has made.
    gcs_wanted: u32,
    gcs_made: u32,
    /// Threads that come back to managed code have to wait: as its word in memory has it.
    trap: bool,
    /// The thread with which the process ends.
    exits_with: Option<usize>,
}

impl<'b> World<'b> {
    /// The runtime, with its threads as they stand.
    #[must_use]
    pub fn runtime(&mut self) -> &Runtime<'b> {
        self.sync();
        &self.runtime
    }

    /// The runtime, with its threads as they stood when it was last synchronized.
    #[must_use]
    pub fn as_synced(&self) -> &Runtime<'b> {
        &self.runtime
    }

    /// The same, to be kept: who has it sees the threads as they stand whenever the world is
    /// [synchronized](Self::sync).
    #[must_use]
    pub fn shared(&self) -> Rc<Runtime<'b>> {
        Rc::clone(&self.runtime)
    }

    /// Lets the runtime know how the threads stand.
    pub fn sync(&mut self) {
        let flags = self.runtime.generation.own_context_flags();
        // The runtime knows them in the same order, and behind them those of the profiler.
        let mut known = self.runtime.threads.borrow_mut();
        for (index, (thread, known)) in self.threads.iter().zip(known.iter_mut()).enumerate() {
            let registers = self.registers_of(index).unwrap_or_default().registers();
            known.current = Context { registers, flags };
            known.callback_state = thread.in_callback.map(CallbackKind::state).unwrap_or_default();
        }
    }

    /// Which runtime it has.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.runtime.generation
    }

    /// The program's code.
    #[must_use]
    pub const fn linked(&self) -> &'b LinkedProgram {
        self.linked
    }

    /// The program.
    #[must_use]
    pub const fn expanded(&self) -> &'b Expanded {
        self.expanded
    }

    /// How many threads the program has.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// The operating system's id of a thread.
    #[must_use]
    pub fn os(&self, thread: usize) -> Option<OsThreadId> {
        self.threads.get(thread).map(|thread| thread.os)
    }

    /// The Thread object of a thread, if the runtime knows it.
    #[must_use]
    pub fn object(&self, thread: usize) -> Option<ThreadId> {
        self.runtime.object_of(self.os(thread)?)
    }

    /// The callback that a thread is in.
    #[must_use]
    pub fn callback(&self, thread: usize) -> Option<CallbackKind> {
        self.threads.get(thread)?.in_callback
    }

    /// Whether a thread has ended because nothing caught an exception: the process ends with it.
    #[must_use]
    pub fn is_unhandled(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|thread| thread.unhandled)
    }

    /// Whether a thread is in the middle of a service.
    #[must_use]
    pub fn is_serving(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|thread| !thread.pending.is_empty())
    }

    /// Remembers how all stands.
    pub fn save(&mut self) -> WorldState {
        WorldState {
            machine: self.runtime.memory.borrow_mut().save(),
            process: self.runtime.process.get(),
            known: self.runtime.threads.borrow().clone(),
            threads: self.threads.clone(),
            current: self.current,
            collections: self.collections,
            gcs_wanted: self.gcs_wanted,
            gcs_made: self.gcs_made,
            freed: self.runtime.code.freed_count(),
            trap: self.trap,
        }
    }

    /// Goes back to what was remembered of this world. Whether that was possible: states that were
    /// saved after one that has been gone back to are gone.
    pub fn restore(&mut self, state: &WorldState) -> bool {
        if self.runtime.memory.borrow_mut().restore(&state.machine).is_err() {
            return false;
        }
        self.runtime.process.set(state.process);
        self.runtime.threads.replace(state.known.clone());
        self.threads.clone_from(&state.threads);
        self.current = state.current;
        self.collections = state.collections;
        self.gcs_wanted = state.gcs_wanted;
        self.gcs_made = state.gcs_made;
        self.runtime.code.unfree(state.freed);
        self.trap = state.trap;
        true
    }

    /// rip of a thread (VA).
    #[must_use]
    pub fn rip(&self, thread: usize) -> Option<u64> {
        if thread == self.current {
            return Some(self.runtime.memory.borrow().cpu().rip());
        }
        self.threads.get(thread).map(|thread| thread.cpu.rip())
    }

    /// How many instructions all threads together have executed.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.runtime.memory.borrow().executed()
    }

    /// Who called whom on a thread.
    #[must_use]
    pub fn truth(&self, thread: usize) -> Option<&Truth> {
        self.threads.get(thread).map(|thread| &thread.truth)
    }

    /// Executes the next instruction of a thread, or the next part of the service that it is in.
    ///
    /// # Errors
    /// [`WorldError`]; nothing has changed then but for the current thread.
    pub fn step(&mut self, thread: usize) -> Result<Event, WorldError> {
        self.switch_to(thread)?;
        let Some(executed) = self.threads.get_mut(thread) else {
            return Err(WorldError::NoThread(thread));
        };
        if executed.ended {
            return Ok(Event::Ended);
        }
        if executed.signalled.is_some()
            && let Some(event) = self.end_handler(thread)
        {
            return Ok(event);
        }
        if self.callback(thread).is_some() {
            if self.waits_to_come_back(thread).is_some() {
                return Ok(Event::Waits);
            }
            self.leave_callback(thread);
        }
        if let Some(step) = self.threads.get_mut(thread).and_then(|t| t.pending.pop_front()) {
            return self.service_step(thread, step);
        }
        self.set_trap();
        if self.threads.get(thread).is_some_and(|executed| executed.hijack.is_some()) {
            self.check_hijack(thread);
        }
        let Some(executed) = self.threads.get_mut(thread) else {
            return Err(WorldError::NoThread(thread));
        };
        let stepped = {
            let machine = &mut *self.runtime.memory.borrow_mut();
            let rip = machine.cpu().rip();
            if self.runtime.code.was_freed(rip) {
                return Err(WorldError::Unloaded(rip));
            }
            machine.step_with(&mut executed.truth)
        };
        match stepped {
            Ok(()) => match executed.truth.broken() {
                Some(broken) => Err(WorldError::Broken(broken)),
                None => Ok(Event::Stepped),
            },
            Err(Stop::Trap { id, .. }) => {
                let Some(service) = Service::from_number(id) else {
                    executed.ended = true;
                    return Ok(Event::Ended);
                };
                let steps = self.serve(thread, service);
                if let Some(executed) = self.threads.get_mut(thread) {
                    executed.pending.extend(steps);
                }
                Ok(Event::Stepped)
            }
            Err(stop @ Stop::Fault { .. }) => self.hardware_fault(thread, stop),
            Err(stop) => Err(stop.into()),
        }
    }

    /// Gives the machine the registers of a thread.
    fn switch_to(&mut self, thread: usize) -> Result<(), WorldError> {
        if thread == self.current {
            return Ok(());
        }
        let Some(next) = self.threads.get(thread).map(|next| next.cpu) else {
            return Err(WorldError::NoThread(thread));
        };
        let machine = &mut *self.runtime.memory.borrow_mut();
        if let Some(before) = self.threads.get_mut(self.current) {
            before.cpu = *machine.cpu();
        }
        *machine.cpu_mut() = next;
        self.current = thread;
        Ok(())
    }

    /// Does a part of a service.
    fn service_step(&mut self, thread: usize, step: Step) -> Result<Event, WorldError> {
        if self.waits_to_call_back(thread, step).is_some() {
            return Ok(self.wait(thread, step));
        }
        Ok(match step {
            Step::Callback(kind) | Step::CallbackIn(kind, _) if !self.wants(kind) => Event::Stepped,
            Step::Callback(kind) => {
                self.enter_callback(thread, kind, kind.mode(self.runtime.generation));
                Event::Callback(kind)
            }
            Step::CallbackIn(kind, mode) => {
                self.enter_callback(thread, kind, mode);
                Event::Callback(kind)
            }
            Step::Exception(action) => return self.exception_step(thread, action),
            Step::Propagate => return self.propagate(thread),
            Step::Return(value) => {
                self.runtime.memory.borrow_mut().cpu_mut().set(Gpr::Rax, value);
                self.come_back(thread);
                Event::Stepped
            }
            Step::Hook => Event::Hook,
            Step::Attach => {
                self.attach(thread);
                Event::Stepped
            }
            Step::ShutDown => {
                self.runtime.change_process(|process| process.shutting_down = true);
                Event::Stepped
            }
            Step::Gone => {
                if let Some(os) = self.os(thread) {
                    self.runtime.change_thread(os, |thread| thread.life = ThreadLife::Dead);
                }
                Event::Stepped
            }
            Step::Cooperative(cooperative) => {
                self.set_cooperative(thread, cooperative);
                Event::Stepped
            }
            Step::ForbidSuspension(forbid) => {
                if let Some(object) = self.object(thread) {
                    // A Thread object of the world is always there.
                    let _ = ThreadObject(object)
                        .set_forbid_suspend(&mut *self.runtime.memory.borrow_mut(), forbid.into());
                }
                Event::Stepped
            }
            Step::Wait(0) => Event::Stepped,
            Step::Wait(times) => self.wait(thread, Step::Wait(times - 1)),
            Step::Restore => self.restore_context(thread),
            Step::Acquire(lock) => self.acquire(thread, lock),
            Step::Release(lock) => self.release(thread, lock),
            Step::AwaitResume | Step::Suspend(_) | Step::StopOthers => {
                self.suspension_step(thread, step)
            }
            Step::Write(_)
            | Step::Free(_)
            | Step::AskForGc
            | Step::AwaitGc(_)
            | Step::ServeGc
            | Step::MadeGc(_) => self.unloading_step(thread, step),
        })
    }

    /// The process ends with this thread, whatever the others do: the runtime says so to itself, then to
    /// the profiler, and tells of no thread any more that ends meanwhile (G16).
    pub const fn exit_with(&mut self, thread: usize) {
        self.exits_with = Some(thread);
    }

    /// Whether the process has ended, with the thread that it ends with.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        let thread = self.exits_with.and_then(|thread| self.threads.get(thread));
        thread.is_some_and(|thread| thread.ended)
    }

    /// Tells the profiler on a thread that the process ends.
    pub fn shut_down(&mut self, thread: usize) {
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.ended = false;
            executed.pending.push_front(Step::Callback(CallbackKind::Shutdown));
        }
    }

    /// Returns from a service, as its ret would.
    fn come_back(&mut self, thread: usize) {
        let machine = &mut *self.runtime.memory.borrow_mut();
        let from = machine.cpu().rip();
        let rsp = machine.cpu().rsp();
        let to = clr_walker::memory::Memory::read_u64(machine, rsp).unwrap_or_default();
        machine.cpu_mut().set_rip(to);
        machine.cpu_mut().set(Gpr::Rsp, rsp.wrapping_add(8));
        let cpu = *machine.cpu();
        if let Some(executed) = self.threads.get_mut(thread) {
            clr_machine::Observer::on_return(&mut executed.truth, &cpu, from);
        }
    }

    /// A callback is made in a mode (contract §6).
    fn enter_callback(&mut self, thread: usize, kind: CallbackKind, mode: CallbackMode) {
        let before = self.is_cooperative(thread);
        let within = match mode {
            CallbackMode::Preemptive => false,
            CallbackMode::Cooperative => true,
            CallbackMode::Any => before,
        };
        self.set_cooperative(thread, within);
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.in_callback = Some(kind);
            executed.was_cooperative = before;
        }
    }

    fn leave_callback(&mut self, thread: usize) {
        let Some(executed) = self.threads.get_mut(thread) else { return };
        executed.in_callback = None;
        let before = executed.was_cooperative;
        self.set_cooperative(thread, before);
    }
}

#[cfg(test)]
mod tests;
