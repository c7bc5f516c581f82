//! The parts of services, one at a time, and the callbacks in them.

use super::step::{About, Step};
use super::{StepEvent, World, WorldError};
use clr_runtime::ThreadLife;
use clr_runtime::profiling::{CallbackKind, CallbackMode};
use clr_runtime::thread::ThreadObject;
use clr_unwind::Gpr;

impl World<'_> {
    /// Performs one part of a service.
    pub(super) fn service_step(
        &mut self,
        thread: usize,
        step: Step,
    ) -> Result<StepEvent, WorldError> {
        if self.waits_to_call_back(thread, step).is_some() {
            return Ok(self.wait(thread, step));
        }
        let callback = match step {
            Step::Callback(kind) | Step::CallbackIn(kind, _) => Some((kind, None)),
            Step::CallbackAbout(kind, about) => Some((kind, Some(about))),
            _ => None,
        };
        if let Some((kind, about)) = callback {
            self.sweep_before(kind);
            self.note_unfinished(thread, kind, about);
        }
        Ok(match step {
            Step::Callback(kind) | Step::CallbackIn(kind, _) | Step::CallbackAbout(kind, _)
                if !self.wants(kind) =>
            {
                StepEvent::Stepped
            }
            Step::Callback(kind) => {
                self.enter_callback(thread, kind, kind.mode(self.runtime.generation), None);
                StepEvent::Callback(kind)
            }
            Step::CallbackIn(kind, mode) => {
                self.enter_callback(thread, kind, mode, None);
                StepEvent::Callback(kind)
            }
            Step::CallbackAbout(kind, about) => {
                let mode = kind.mode(self.runtime.generation);
                self.enter_callback(thread, kind, mode, Some(about));
                StepEvent::Callback(kind)
            }
            Step::AwaitProgram(_)
            | Step::RaiseProcessExit
            | Step::StartEnds
            | Step::TakeFinalizer
            | Step::Removed
            | Step::TakeTier
            | Step::Die(_)
            | Step::Notify(_) => return self.arranged_step(thread, step),
            Step::Exception(action) => return self.exception_step(thread, action),
            Step::Propagate => return self.propagate(thread),
            Step::Return(value) => {
                self.runtime.memory.borrow_mut().cpu_mut().set(Gpr::Rax, value);
                self.come_back(thread);
                StepEvent::Stepped
            }
            Step::Inline(inlining) => self.inline_or_call(inlining),
            Step::Hook => StepEvent::Hook,
            Step::Attach => {
                self.attach(thread);
                StepEvent::Stepped
            }
            Step::Started => {
                self.runtime.change_process(|process| process.started = true);
                StepEvent::Stepped
            }
            Step::ShutDown => {
                self.runtime.change_process(|process| process.shutting_down = true);
                StepEvent::Stepped
            }
            Step::IdOver => {
                if let Some(os) = self.os(thread) {
                    self.runtime.change_thread(os, |thread| thread.id_is_over = true);
                }
                StepEvent::Stepped
            }
            Step::Gone => {
                if let Some(os) = self.os(thread) {
                    self.runtime.change_thread(os, |thread| thread.life = ThreadLife::Dead);
                }
                StepEvent::Stepped
            }
            Step::Cooperative(cooperative) => {
                self.set_cooperative(thread, cooperative);
                StepEvent::Stepped
            }
            Step::ForbidSuspension(forbid) => {
                if let Some(object) = self.object(thread) {
                    // A Thread object of the world is always mapped.
                    let _ = ThreadObject(object)
                        .set_forbid_suspend(&mut *self.runtime.memory.borrow_mut(), forbid.into());
                }
                StepEvent::Stepped
            }
            Step::Wait(0) => StepEvent::Stepped,
            Step::Wait(times) => self.wait(thread, Step::Wait(times - 1)),
            Step::Restore => self.restore_context(thread),
            Step::Acquire(lock) => self.acquire(thread, lock),
            Step::Release(lock) => self.release(thread, lock),
            Step::AwaitResume | Step::Suspend(_) | Step::StopOthers => {
                self.suspension_step(thread, step)
            }
            Step::AwaitForeground => self.await_foreground(thread),
            Step::Write(_)
            | Step::Free(_)
            | Step::AskForGc
            | Step::AwaitGc(_)
            | Step::ServeGc
            | Step::MadeGc(_) => self.unloading_step(thread, step),
        })
    }

    /// Returns from a service, as its ret would.
    pub(super) fn come_back(&mut self, thread: usize) {
        let machine = &mut *self.runtime.memory.borrow_mut();
        let from = machine.cpu().rip();
        let rsp = machine.cpu().rsp();
        let to = clr_unwind::Memory::read_u64(machine, rsp).unwrap_or_default();
        machine.cpu_mut().set_rip(to);
        machine.cpu_mut().set(Gpr::Rsp, rsp.wrapping_add(8));
        let cpu = *machine.cpu();
        if let Some(executed) = self.threads.get_mut(thread) {
            clr_machine::Observer::on_return(&mut executed.shadow_stack, &cpu, from);
        }
    }

    /// Begins a callback in the mode that the runtime makes it in (contract §6).
    fn enter_callback(
        &mut self,
        thread: usize,
        kind: CallbackKind,
        mode: CallbackMode,
        about: Option<About>,
    ) {
        let before = self.is_cooperative(thread);
        let within = match mode {
            CallbackMode::Preemptive => false,
            CallbackMode::Cooperative => true,
            CallbackMode::Any => before,
        };
        self.set_cooperative(thread, within);
        // A thread that another one reports is no longer listed.
        if kind == CallbackKind::ThreadDestroyed
            && about.is_none()
            && let Some(os) = self.os(thread)
        {
            self.runtime.change_thread(os, |thread| thread.reported_dead = true);
        }
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.in_callback = Some(kind);
            executed.about = about;
            executed.was_cooperative = before;
        }
    }

    /// Ends a callback: the thread has its mode from before.
    pub(super) fn leave_callback(&mut self, thread: usize) {
        if let Some(kind @ CallbackKind::AssemblyLoadFinished) = self.callback(thread) {
            let module = self.callback_arguments(thread).module;
            self.runtime.unfinished.borrow_mut().note_end(kind, module);
        }
        let Some(executed) = self.threads.get_mut(thread) else { return };
        executed.in_callback = None;
        executed.about = None;
        let before = executed.was_cooperative;
        self.set_cooperative(thread, before);
    }
}
