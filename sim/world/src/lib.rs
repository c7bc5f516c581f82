//! A world: a program executed together with a runtime.
//!
//! The caller chooses which thread executes its next instruction. Each thread has its own stack and
//! its own Thread object in the shared memory. Where the runtime's code requests a [`Service`], the
//! world performs it. Profiler callbacks are delivered one at a time, so that a profiler can act in
//! each.
//!
//! ```
//! use clr_runtime::generation::Generation;
//! use clr_world::{Build, StepEvent, ThreadStart};
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
//! let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))])?;
//! let callback = loop {
//!     if let StepEvent::Callback(kind) = world.step(0)? {
//!         break kind;
//!     }
//! };
//! assert_eq!(callback.name(), "ThreadCreated");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allocated;
mod arguments;
mod arranged;
mod arrangement;
mod build;
mod calls;
mod collected;
mod collection;
mod common;
mod compilation;
pub mod content;
mod detached;
mod exception_class;
mod exceptions;
mod fault;
mod frames;
mod hooks;
mod landing;
mod managed;
mod mortal;
mod passes;
mod process_end;
mod service_step;
mod services;
mod signal;
mod start;
mod step;
pub mod stubs;
mod suspension;
pub mod synthetic;
mod thread;
mod thrown;
mod unfinished;
mod unloading;
mod wait_place;
mod waiting;
mod walkers;

pub use arguments::CallbackArguments;
pub use build::ALL_EVENTS;
pub use build::{Build, BuildError};
pub use collection::Collection;
pub use common::{CommonRuntime, CommonState, Listed};
pub use exception_class::ExceptionClass;
pub use hooks::HookKind;
pub use process_end::ProcessEnd;
pub use signal::{SIGNAL_FRAME_SIZE, Signal, SignalError, SignalStack};
pub use suspension::StopBy;
pub use thread::{Activation, ThreadStart};
pub use wait_place::WaitPlace;
pub use waiting::Waiting;

use crate::stubs::{Expanded, Shared};
use arguments::Made;
use clr_codegen::shadow_stack::{Broken, ShadowStack};
use clr_codegen::{FunctionIndex, LinkedProgram, Service, THROW};
use clr_machine::{SavePoint, StopReason};
use clr_runtime::code_manager::IlVersions;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{Objects, OsThreadId, Process, Runtime, Thread, Unfinished};
use clr_walker::profiling::ThreadId;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use thiserror::Error;
use thread::Executed;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEvent {
    /// An instruction, or one part of a service, has been executed.
    Stepped,
    /// The profiler is called back; the next step of the thread continues after the callback.
    Callback(CallbackKind),
    /// The thread is in a profiler hook that its code has called directly, without the knowledge of
    /// the runtime. The next step continues after the hook.
    Hook,
    /// The thread has entered a function whose [entries are reported](World::report_entries): the next step
    /// executes its first instruction.
    Entered(FunctionIndex),
    /// The thread waits for others.
    Waits,
    /// The thread has ended.
    Ended,
}

/// The reason why a thread cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorldError {
    /// There is no such thread.
    #[error("there is no thread {0}")]
    NoThread(usize),
    /// The code faults, mostly because the stack is exhausted.
    #[error("{0}")]
    Fault(#[from] StopReason),
    /// The thread throws as programs do that are executed without a runtime.
    #[error("`throw` is for programs without a runtime: `raise` throws a managed exception")]
    Thrown,
    /// The thread executes code that has been unloaded (VA).
    #[error("the code at {0:#x} has been unloaded")]
    Unloaded(u64),
    /// A function broke the calling convention: a bug in the code generator.
    #[error("{0}")]
    Broken(Broken),
    /// The program lacks a helper that execution continues with: a bug in the code generator.
    #[error("the program has no {}", .0.name())]
    NoHelper(Shared),
}

/// A saved state of a world.
#[derive(Clone, Debug)]
pub struct WorldState {
    machine: SavePoint,
    process: Process,
    known: Vec<Thread>,
    threads: Vec<Executed>,
    current: usize,
    collections: u32,
    gcs_wanted: u32,
    gcs_made: u32,
    made: Made,
    freed: usize,
    il_versions: IlVersions,
    unfinished: Unfinished,
    objects: Objects,
    trap: bool,
    process_end: Option<ProcessEnd>,
}

/// A program under execution together with a runtime.
#[derive(Debug)]
pub struct World<'b> {
    expanded: &'b Expanded,
    linked: &'b LinkedProgram,
    /// Shared with profilers: a thread may be inside one of their calls while others go on.
    runtime: Rc<Runtime<'b>>,
    threads: Vec<Executed>,
    /// The thread whose registers the machine has.
    current: usize,
    stop_by: StopBy,
    /// Number of GCs so far.
    collections: u32,
    /// The numbers of GCs requested from the server GC's thread, and made by it.
    gcs_wanted: u32,
    gcs_made: u32,
    /// The objects and handles of the program.
    made: Made,
    /// Threads that return to managed code have to wait: a copy of the word in memory.
    trap: bool,
    process_end: Option<ProcessEnd>,
    /// Functions whose entries are reported, by entry (VA).
    reported: Vec<(u64, FunctionIndex)>,
    /// The methods that the JIT inlines into others, by their ids, each with the word that says whether it is called instead (VA).
    inlines: BTreeMap<u64, Vec<(u64, u64)>>,
    /// The modules that the start does not load (`ModuleID`s): a statement does, or the JIT.
    late: BTreeSet<u64>,
}

impl<'b> World<'b> {
    /// Returns the runtime, with the current state of its threads.
    pub fn runtime(&mut self) -> &Runtime<'b> {
        self.sync();
        &self.runtime
    }

    /// Returns the runtime, with the state that its threads had when it was last synchronized.
    pub fn as_synced(&self) -> &Runtime<'b> {
        &self.runtime
    }

    /// Returns a shared reference to the runtime. Its threads are up to date whenever the world is
    /// [synchronized](Self::sync).
    pub fn shared(&self) -> Rc<Runtime<'b>> {
        Rc::clone(&self.runtime)
    }

    /// Updates the runtime's view of the threads.
    pub fn sync(&mut self) {
        let flags = self.runtime.generation.own_context_flags();
        // The runtime has the threads in the same order, followed by those of the profiler.
        let mut known = self.runtime.threads.borrow_mut();
        let machine = self.runtime.memory.borrow();
        for (index, (thread, known)) in self.threads.iter_mut().zip(known.iter_mut()).enumerate() {
            let is_current = index == self.current;
            if is_current || !thread.is_synced {
                thread.cpu_in(&machine, is_current).copy_registers(&mut known.current.registers);
                known.current.flags = flags;
                thread.is_synced = !is_current;
            }
            known.callback_state = thread.in_callback.map(CallbackKind::state).unwrap_or_default();
        }
    }

    /// Returns the generation of the runtime.
    pub fn generation(&self) -> Generation {
        self.runtime.generation
    }

    /// Returns the linked code of the program.
    pub const fn linked(&self) -> &'b LinkedProgram {
        self.linked
    }

    /// Returns the program with the runtime's code.
    pub const fn expanded(&self) -> &'b Expanded {
        self.expanded
    }

    /// Returns the number of threads of the program.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// Returns the operating system's id of a thread.
    pub fn os(&self, thread: usize) -> Option<OsThreadId> {
        self.threads.get(thread).map(|thread| thread.os)
    }

    /// Returns the Thread object of a thread, if the runtime knows the thread.
    pub fn object(&self, thread: usize) -> Option<ThreadId> {
        self.runtime.object_of(self.os(thread)?)
    }

    /// Returns the callback that a thread is in.
    pub fn callback(&self, thread: usize) -> Option<CallbackKind> {
        self.threads.get(thread)?.in_callback
    }

    /// Returns true if a thread has ended with an uncaught exception, which ends the process.
    pub fn is_unhandled(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|thread| thread.unhandled)
    }

    /// Returns true if a thread is in the middle of a service.
    pub fn is_serving(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|thread| !thread.pending.is_empty())
    }

    /// Saves the state of the world.
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
            made: self.made.clone(),
            freed: self.runtime.code.freed_count(),
            il_versions: self.runtime.code.il_versions.borrow().clone(),
            unfinished: self.runtime.unfinished.borrow().clone(),
            objects: self.runtime.objects.borrow().clone(),
            trap: self.trap,
            process_end: self.process_end,
        }
    }

    /// Restores a saved state of this world. Returns false if that was not possible: restoring a
    /// state discards all states saved after it.
    pub fn restore(&mut self, state: &WorldState) -> bool {
        if self.runtime.memory.borrow_mut().restore(&state.machine).is_err() {
            return false;
        }
        self.runtime.process.set(state.process);
        self.runtime.threads.borrow_mut().clone_from(&state.known);
        self.threads.clone_from(&state.threads);
        self.current = state.current;
        self.collections = state.collections;
        self.gcs_wanted = state.gcs_wanted;
        self.gcs_made = state.gcs_made;
        self.made.clone_from(&state.made);
        self.runtime.code.unfree(state.freed);
        self.runtime.code.il_versions.borrow_mut().clone_from(&state.il_versions);
        self.runtime.unfinished.borrow_mut().clone_from(&state.unfinished);
        self.runtime.objects.borrow_mut().clone_from(&state.objects);
        self.trap = state.trap;
        self.process_end = state.process_end;
        true
    }

    /// Returns rip of a thread (VA).
    pub fn rip(&self, thread: usize) -> Option<u64> {
        if thread == self.current {
            return Some(self.runtime.memory.borrow().cpu().rip());
        }
        self.threads.get(thread).map(|thread| thread.cpu.rip())
    }

    /// Returns the number of instructions that all threads together have executed.
    pub fn executed(&self) -> u64 {
        self.runtime.memory.borrow().executed()
    }

    /// Returns the shadow stack of a thread.
    pub fn shadow_stack(&self, thread: usize) -> Option<&ShadowStack> {
        self.threads.get(thread).map(|thread| &thread.shadow_stack)
    }

    /// Reports from now on when a thread enters one of these functions of the program. Functions do not jump to
    /// their own first instruction.
    pub fn report_entries(&mut self, functions: impl IntoIterator<Item = FunctionIndex>) {
        let entry = |function: FunctionIndex| {
            let placed = self.expanded.placed.get(function.index())?;
            Some((*self.linked.entries.get(placed.index())?, function))
        };
        self.reported = functions.into_iter().filter_map(entry).collect();
    }

    /// Returns the reported function that the current thread has entered.
    fn entered(&self) -> Option<FunctionIndex> {
        let rip = self.runtime.memory.borrow().cpu().rip();
        self.reported.iter().find(|(entry, _)| *entry == rip).map(|(_, function)| *function)
    }

    /// Executes the next instruction of a thread, or the next part of its current service.
    ///
    /// # Errors
    /// Returns [`WorldError`] if the thread cannot go on; nothing but the current thread has
    /// changed then.
    pub fn step(&mut self, thread: usize) -> Result<StepEvent, WorldError> {
        let event = self.execute(thread)?;
        let rsp = self.runtime.memory.borrow().cpu().rsp();
        self.note_depth(thread, rsp);
        Ok(event)
    }

    fn execute(&mut self, thread: usize) -> Result<StepEvent, WorldError> {
        self.switch_to(thread)?;
        let Some(executed) = self.threads.get_mut(thread) else {
            return Err(WorldError::NoThread(thread));
        };
        if executed.ended {
            return Ok(StepEvent::Ended);
        }
        if executed.signalled.is_some()
            && let Some(event) = self.end_handler(thread)
        {
            return Ok(event);
        }
        if self.callback(thread).is_some() {
            if self.waits_to_come_back(thread).is_some() {
                return Ok(StepEvent::Waits);
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
            machine.step_with(&mut executed.shadow_stack)
        };
        match stepped {
            Ok(()) => match executed.shadow_stack.broken() {
                Some(broken) => Err(WorldError::Broken(broken)),
                None if self.reported.is_empty() => Ok(StepEvent::Stepped),
                None => Ok(self.entered().map_or(StepEvent::Stepped, StepEvent::Entered)),
            },
            Err(StopReason::Trap { id, .. }) => {
                let Some(service) = Service::from_number(id) else {
                    executed.ended = true;
                    self.detach_if_native(thread);
                    return Ok(StepEvent::Ended);
                };
                let steps = self.serve(thread, service);
                if let Some(executed) = self.threads.get_mut(thread) {
                    executed.pending.extend(steps);
                }
                Ok(StepEvent::Stepped)
            }
            Err(StopReason::Fault { at: THROW, .. }) => Err(WorldError::Thrown),
            Err(stop @ StopReason::Fault { .. }) => self.hardware_fault(thread, stop),
            Err(stop) => Err(stop.into()),
        }
    }

    /// Loads the registers of a thread into the machine.
    fn switch_to(&mut self, thread: usize) -> Result<(), WorldError> {
        if thread == self.current {
            return Ok(());
        }
        let machine = &mut *self.runtime.memory.borrow_mut();
        let before = *machine.cpu();
        let Some(next) = self.threads.get(thread) else { return Err(WorldError::NoThread(thread)) };
        *machine.cpu_mut() = next.cpu;
        if let Some(last) = self.threads.get_mut(self.current) {
            last.cpu = before;
            last.is_synced = false;
        }
        self.current = thread;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
