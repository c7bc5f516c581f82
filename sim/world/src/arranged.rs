//! Arrangements of a program with the runtime: handlers of events, threads that it starts, objects with finalizers, and
//! the end of the process.
//!
//! Observed on 3.1.3, 8.0.34, 9.0.23, 10.0.15 and 11.0.0: handlers of `ProcessExit` are called on the finalizer's thread,
//! those of `FirstChanceException` at the first frame of an exception's first pass. `Environment.Exit` calls the profiler
//! back on its own thread; `Environment.FailFast` and an exhausted stack do not.

use super::arrangement::{Arranged, Awaited};
use super::step::Handler;
use super::step::Step;
use super::thread::Executed;
use super::{ProcessEnd, StepEvent, World, WorldError};
use crate::stubs::{Shared, method_id, method_of};
use clr_codegen::Service;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::thread::offset;
use clr_unwind::Gpr;

impl World<'_> {
    /// Returns the steps of a service by which the program arranges something.
    pub(super) fn arrange(&mut self, thread: usize, service: Service) -> Vec<Step> {
        let method = self.runtime.memory.borrow().cpu().get(Gpr::R10);
        self.made.arranged.changes += 1;
        let arranged = &mut self.made.arranged;
        let mut result = 0;
        match service {
            Service::StartThread => {
                let next =
                    self.thread_from(method, |arranged, index| !arranged.started.contains(&index));
                self.made.arranged.started.extend(next);
            }
            Service::JoinThread => {
                let joined = self.thread_from(method, |_, _| true);
                let waits = joined.map(|joined| Step::AwaitProgram(Awaited::End(joined)));
                return waits.into_iter().chain([Step::Return(0)]).collect();
            }
            Service::CallOnce => result = arranged.once.insert(method).into(),
            Service::HandleFirstChance => arranged.first_chance = Some(method),
            Service::HandleUnhandled => arranged.unhandled = Some(method),
            Service::UnhandledHandled => {
                if let Some(dispatch) = self.current(thread) {
                    dispatch.notifies = false;
                }
            }
            Service::HandleProcessExit => arranged.process_exit = Some(method),
            Service::MakeFinalizable => {
                arranged.finalizable.push(method);
                // Its finalizer needs it.
                let object = self.threads.get(thread).map_or(0, |executed| executed.object);
                self.made.mortal.keep(object);
            }
            Service::AwaitFinalizers => {
                return vec![Step::AwaitProgram(Awaited::Finalizers), Step::Return(0)];
            }
            Service::ServeFinalizer => {
                return vec![Step::AwaitProgram(Awaited::Finalizable), Step::TakeFinalizer];
            }
            Service::Finalized => {
                arranged.is_finalizing = false;
                return vec![Step::Return(1)];
            }
            Service::Exit => {
                let steps = [Step::Cooperative(false)].into_iter().chain(self.process_exit());
                let end = [Step::ShutDown, Step::Callback(Kind::Shutdown), Step::Die(false)];
                return steps.chain(end).collect();
            }
            Service::Die => return vec![Step::Die(true)],
            Service::TakeHandler => result = self.entry_of_method(self.made.arranged.called),
            _ => {}
        }
        vec![Step::Return(result)]
    }

    /// Returns the thread of the program that begins with a method, and meets a condition.
    fn thread_from(&self, method: u64, wanted: impl Fn(&Arranged, usize) -> bool) -> Option<usize> {
        let mut threads = self.threads.iter().enumerate();
        let is_it = |start| self.expanded.placed.get(start).copied().map(method_id) == Some(method);
        let found = threads.find(|(index, executed)| {
            executed.by_program
                && is_it(executed.start.index())
                && wanted(&self.made.arranged, *index)
        });
        found.map(|(index, _)| index)
    }

    /// Returns the thread that the method is the first one of that a thread names in r10.
    pub(super) fn named_thread(&self, thread: usize) -> Option<usize> {
        let method = self.registers_of(thread)?.get(Gpr::R10);
        self.thread_from(method, |_, _| true)
    }

    /// Returns true if the program has a handler of first-chance exceptions.
    pub(super) fn notifies_of_first_chances(&self) -> bool {
        self.made.arranged.first_chance.is_some()
    }

    /// Returns true if the program has a handler of exceptions that nothing catches, which was not called yet.
    pub(super) const fn notifies_of_unhandled(&self) -> bool {
        self.made.arranged.unhandled.is_some()
    }

    /// Notes which handler is called now. Exceptions that leave a handler of unhandled ones are not handled again.
    pub(super) fn take_handler(&mut self, handler: Handler) {
        let arranged = &mut self.made.arranged;
        arranged.changes += 1;
        let method = match handler {
            Handler::FirstChance => arranged.first_chance,
            Handler::Unhandled => arranged.unhandled.take(),
        };
        arranged.called = method.unwrap_or_default();
    }

    /// Returns the entry of a method (VA).
    fn entry_of_method(&self, method: u64) -> u64 {
        let id = method_of(method);
        id.and_then(|id| self.linked.entries.get(id.index())).copied().unwrap_or_default()
    }

    /// Returns the steps by which the handler of the process's end is called.
    pub(super) fn process_exit(&self) -> Vec<Step> {
        if self.made.arranged.process_exit.is_none() || !self.has_finalizer() {
            return Vec::new();
        }
        vec![Step::RaiseProcessExit, Step::AwaitProgram(Awaited::Finalizers)]
    }

    /// Queues the objects with finalizers for the finalizer's thread; returns true if there are any.
    pub(super) fn queue_finalizers(&mut self) -> bool {
        let arranged = &mut self.made.arranged;
        let queued = core::mem::take(&mut arranged.finalizable);
        let any = !queued.is_empty();
        arranged.finalizing.extend(queued);
        any
    }

    /// Performs one part of what a program has arranged.
    pub(super) fn arranged_step(
        &mut self,
        thread: usize,
        step: Step,
    ) -> Result<StepEvent, WorldError> {
        match step {
            Step::AwaitProgram(awaited) if self.awaits(thread, awaited) => {
                return Ok(self.wait(thread, step));
            }
            Step::AwaitProgram(Awaited::Start) if !self.made.arranged.started.contains(&thread) => {
                return Ok(self.end_quietly(thread));
            }
            Step::RaiseProcessExit => {
                let arranged = &mut self.made.arranged;
                arranged.changes += 1;
                arranged.finalizing.extend(arranged.process_exit);
            }
            Step::TakeFinalizer if !self.made.arranged.detached.is_empty() => {
                self.remove_detached(thread);
            }
            Step::StartEnds => {
                self.made.arranged.changes += 1;
                self.made.is_starting = false;
            }
            Step::Removed => {
                self.made.arranged.changes += 1;
                self.made.arranged.is_finalizing = false;
            }
            Step::TakeFinalizer => {
                let Some(method) = self.made.arranged.finalizing.pop_front() else {
                    return Ok(self.end_quietly(thread));
                };
                self.made.arranged.changes += 1;
                self.made.arranged.is_finalizing = true;
                let is_exit = self.made.arranged.process_exit == Some(method);
                let runner = if is_exit { Shared::OnProcessExit } else { Shared::RunFinalizers };
                let runner = self.expanded.shared.get(&runner).copied();
                let target = self.entry_of_method(method);
                let entry = match runner {
                    Some(runner) => {
                        self.set_start(thread, target);
                        self.entry_of_method(method_id(runner))
                    }
                    None => target,
                };
                if let Some(executed) = self.threads.get_mut(thread) {
                    executed.pending.push_front(Step::Return(entry));
                }
            }
            Step::TakeTier => {
                if !self.has_tier_for(thread) || !self.take_tier() {
                    return Ok(self.end_quietly(thread));
                }
                if let Some(executed) = self.threads.get_mut(thread) {
                    executed.pending.push_front(Step::Return(1));
                }
            }
            Step::Die(crashes) => {
                self.made.arranged.changes += 1;
                self.made.arranged.exited = true;
                if let Some(executed) = self.threads.get_mut(thread) {
                    executed.pending.clear();
                    executed.ended = true;
                    executed.unhandled = crashes;
                }
                return Ok(StepEvent::Ended);
            }
            Step::Notify(handler) => {
                self.take_handler(handler);
                self.call_instead(thread, handler.caller())?;
            }
            _ => {}
        }
        Ok(StepEvent::Stepped)
    }

    /// Returns true if a thread has to wait for others of the program.
    pub(super) fn awaits(&self, thread: usize, awaited: Awaited) -> bool {
        let arranged = &self.made.arranged;
        match awaited {
            Awaited::Runtime => self.made.is_starting,
            Awaited::Start => !arranged.started.contains(&thread) && self.has_others(thread),
            Awaited::End(other) => self.threads.get(other).is_some_and(|other| !other.ended),
            Awaited::Tiers => !self.has_tier_for(thread) && self.has_others(thread),
            Awaited::Finalizable => arranged.is_idle() && self.has_others(thread),
            Awaited::Finalizers => {
                self.has_finalizer() && (arranged.is_finalizing || !arranged.is_idle())
            }
        }
    }

    /// Returns true if a thread is one of the runtime, not of the program.
    pub(super) fn serves(&self, thread: usize) -> bool {
        let served = |one: &Executed| one.serves_gc || one.is_finalizer || one.serves_tiers;
        self.threads.get(thread).is_some_and(served)
    }

    /// Returns the first thread that begins with a method as the process starts.
    pub(super) fn first_managed(&self) -> Option<usize> {
        let mut all = self.threads.iter().enumerate().filter(|(_, one)| !one.by_program);
        let first = all.find(|(index, _)| !self.serves(*index) && self.object(*index).is_some());
        first.map(|(index, _)| index)
    }

    /// Returns true if the program has threads that have begun and not ended, besides a thread.
    fn has_others(&self, thread: usize) -> bool {
        let has_begun = |index: &usize, other: &Executed| {
            !other.by_program || self.made.arranged.started.contains(index)
        };
        let mut others = self.threads.iter().enumerate().filter(|(index, other)| {
            *index != thread && !self.serves(*index) && has_begun(index, other)
        });
        others.any(|(_, other)| !other.ended)
    }

    /// Ends a thread that waits for others of which there are none.
    fn end_quietly(&mut self, thread: usize) -> StepEvent {
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.clear();
            executed.ended = true;
        }
        StepEvent::Ended
    }

    /// Names the method that the class library calls on a thread (VA).
    pub(super) fn set_start(&self, thread: usize, entry: u64) {
        if let Some(object) = self.object(thread) {
            let at = object.0.wrapping_add(offset::START);
            // A Thread object of the world is always mapped.
            let _ = self.runtime.memory.borrow_mut().write(at, &entry.to_le_bytes());
        }
    }

    /// Calls a helper in place of the service that a thread has called.
    fn call_instead(&mut self, thread: usize, helper: Shared) -> Result<(), WorldError> {
        let entry = self.entry_of(helper)?;
        self.come_back(thread);
        let machine = &mut *self.runtime.memory.borrow_mut();
        let registers = machine.cpu().registers();
        let rsp = registers.rsp().wrapping_sub(8);
        // The slot is that of the service's return address.
        let _ = machine.write(rsp, &registers.rip.to_le_bytes());
        machine.cpu_mut().set(Gpr::Rsp, rsp);
        machine.cpu_mut().set_rip(entry);
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.clear();
            executed.shadow_stack.call(registers);
        }
        Ok(())
    }

    /// Returns true if the process has ended: with its thread, or by the program's request.
    pub fn has_exited(&self) -> bool {
        let thread = self.process_end.map(ProcessEnd::thread);
        let ends = thread.and_then(|thread| self.threads.get(thread));
        self.made.arranged.exited || ends.is_some_and(|thread| thread.ended)
    }
}
