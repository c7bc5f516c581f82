//! Exceptions: a handler is searched, then the stack is unwound down to it (contract §3.9).
//!
//! The runtime's code requests one part after another
//! ([`Service::Dispatch`](crate::stubs::Service)) and calls the funclets. So the progress of the
//! handling is visible on the stack of the thread. This module has the native handling, and the
//! parts that it shares with managed handling, which [`managed`](super::managed) adds.
//!
//! An exception may leave managed code for the native code of the runtime that has called it, by
//! reflection or as a class constructor (C-166). That code catches the exception and throws it
//! again. Managed handling always ends there, and unwinds the part above in a second pass that
//! walks do not recognise as one; native handling finds the native catch in its first pass, and its
//! second pass is like any other. Observed on U9 and U31; on Windows derived from the same sources.
//! With legacy handling, .NET 9 passes through a call by reflection (observed).

use super::frames::{Frame, Next};
use super::passes::Steps;
use super::step::{Action, Handler, Step};
use super::{ExceptionClass, StepEvent, World, WorldError};
use crate::stubs::{RuntimeFunction, Shared};
use clr_codegen::FuncletKind;
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{ExceptionTracker, Pass, RunningFunclet};
use clr_unwind::{Gpr, Position, Registers};
use std::collections::VecDeque;

/// The place where an exception ends.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Target {
    /// Caller SP of the last frame that is unwound, or that catches (VA).
    pub caller_sp: u64,
    /// The way in which the exception ends there.
    pub end: End,
}

/// The way in which an exception ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// An EH clause catches the exception.
    Clause(usize),
    /// A filter threw the exception: the filter counts as having refused.
    FilterCaller,
    /// The exception continues in the native code that has called the frame.
    Native,
}

impl Target {
    /// Returns the EH clause that catches in a frame.
    pub(super) fn clause_at(self, frame: &Frame) -> Option<usize> {
        match self.end {
            End::Clause(clause) if self.caller_sp == frame.caller_sp() => Some(clause),
            _ => None,
        }
    }
}

/// An exception in flight.
#[derive(Clone, Debug, Hash)]
pub(super) struct Dispatch {
    /// Stack address of the exception's data, below the throwing frame (VA).
    pub sp: u64,
    /// Number of the object that was thrown.
    pub object: u64,
    /// Class of that object.
    pub class: ExceptionClass,
    /// A helper or a fault has thrown it in place of a `throw`.
    by_runtime: bool,
    pub origin: Frame,
    pub at: Frame,
    pub pass: Pass,
    pub target: Option<Target>,
    /// Steps to perform after the running funclet has returned; under managed handling, at the
    /// frame.
    pub rest: VecDeque<Step>,
    /// The funclet that is called.
    pub funclet: Option<(usize, FuncletKind)>,
    /// The result of the funclet.
    result: u64,
    /// The frame that is still to be reported as left: managed handling reports that when it has
    /// found the next frame.
    pub to_leave: Option<Frame>,
    pub tracker: ExceptionTracker,
    /// The handler of exceptions that nothing catches runs: what is thrown now is another exception.
    pub notifies: bool,
    /// Other threads no longer see the exception.
    is_over: bool,
}

impl World<'_> {
    /// Returns the steps of throwing an exception.
    pub(super) fn raise(&mut self, thread: usize) -> Vec<Step> {
        if !self.throw(thread) {
            return vec![Step::Exception(Action::Unhandled)];
        }
        let thrown = [Step::Callback(CallbackKind::ExceptionThrown), Step::Return(0)];
        self.unwinding_natively().into_iter().chain(thrown).collect()
    }

    /// Begins an exception. Returns false if no frame of managed code throws.
    pub(super) fn throw(&mut self, thread: usize) -> bool {
        self.unhijack(thread);
        let Some(origin) = self.throwing_frame() else { return false };
        let sp = origin.registers.rsp().wrapping_sub(1);
        let by_runtime = self.thrower(thread).is_some_and(|thrower| {
            !matches!(thrower, Shared::Throw | Shared::Rethrow | Shared::RethrowHelper)
        });
        let (object, class) = self.thrown_object(thread);
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.dispatches.push(Dispatch {
                sp,
                object,
                class,
                by_runtime,
                origin,
                at: origin,
                pass: Pass::First,
                target: None,
                rest: VecDeque::from([Step::Exception(Action::Look)]),
                funclet: None,
                result: 0,
                to_leave: None,
                tracker: ExceptionTracker::default(),
                notifies: false,
                is_over: false,
            });
        }
        self.publish(thread);
        true
    }

    /// Returns the next steps of the current exception.
    pub(super) fn dispatch(&mut self, thread: usize) -> Vec<Step> {
        let rest = self.current(thread).map(|dispatch| core::mem::take(&mut dispatch.rest));
        rest.unwrap_or_default().into()
    }

    pub(super) fn current(&mut self, thread: usize) -> Option<&mut Dispatch> {
        self.threads.get_mut(thread)?.dispatches.last_mut()
    }

    /// Performs one action of the handling.
    pub(super) fn exception_step(
        &mut self,
        thread: usize,
        action: Action,
    ) -> Result<StepEvent, WorldError> {
        let managed = self.runtime.generation.hides_exception_handling();
        let Some(dispatch) = self.current(thread).filter(|_| action != Action::Unhandled) else {
            return Ok(self.end_unhandled(thread));
        };
        let mut next = Vec::new();
        match action {
            Action::Look if managed => next = self.look_by_managed_code(thread),
            Action::Look => next = self.look(thread),
            Action::Next => match self.go_on(thread) {
                Some(steps) => next = steps,
                None if !managed && self.notifies_of_unhandled() => {
                    next.push(Step::Exception(Action::Notify(Handler::Unhandled)));
                    next.push(Step::Exception(Action::Unhandled));
                }
                None => return Ok(self.end_unhandled(thread)),
            },
            Action::Found(clause) => {
                let (caller_sp, is_reported) = (dispatch.at.caller_sp(), dispatch.at.has_metadata);
                dispatch.target = Some(Target { caller_sp, end: End::Clause(clause) });
                self.clear(thread);
                if managed {
                    next.push(Step::Return(0));
                } else {
                    if is_reported {
                        next.push(Step::Callback(CallbackKind::ExceptionSearchCatcherFound));
                        next.push(Step::Callback(CallbackKind::ExceptionSearchFunctionLeave));
                    }
                    next.extend([Action::Second, Action::Look].map(Step::Exception));
                }
            }
            Action::Decide(clause) => {
                // eax, as the filter has left it.
                if dispatch.result as u32 != 0 {
                    next.push(Step::Exception(Action::Found(clause)));
                }
            }
            Action::Second => {
                dispatch.at = dispatch.origin;
                dispatch.pass = Pass::Second;
                let catches = |target: Target| matches!(target.end, End::Clause(_));
                // Managed handling makes no callbacks when it unwinds for an exception that
                // continues elsewhere (C-166).
                if !managed || dispatch.target.is_some_and(catches) {
                    dispatch.tracker.pass = Pass::Second;
                }
            }
            Action::Entered(entered) => dispatch.tracker.entered_managed_code = entered,
            Action::Notify(handler) => {
                let entry = self.entry_of(handler.caller())?;
                self.take_handler(handler);
                self.leave_for(thread, entry);
            }
            Action::Call(clause, kind) => {
                dispatch.funclet = Some((clause, kind));
                self.leave_for_funclet(thread, kind)?;
            }
            Action::LeftUpTo(sp) => dispatch.leave(sp),
            Action::Forget => self.forget(thread),
            Action::Resume => self.resume(thread)?,
            Action::Unhandled => {}
        }
        if let Some(executed) = self.threads.get_mut(thread) {
            for step in next.into_iter().rev() {
                executed.pending.push_front(step);
            }
        }
        self.publish(thread);
        Ok(StepEvent::Stepped)
    }

    pub(super) fn clear(&mut self, thread: usize) {
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.clear();
        }
    }

    /// Returns the steps of a native pass at its current frame.
    fn look(&self, thread: usize) -> Vec<Step> {
        let generation = self.runtime.generation;
        let Some(dispatch) = self.threads.get(thread).and_then(|t| t.dispatches.last()) else {
            return Vec::new();
        };
        let clauses = self.clauses_for(&dispatch.at);
        let mut steps = Steps::new(&dispatch.at);
        match dispatch.pass {
            Pass::First => steps.search(&clauses, self.notifies(dispatch)),
            Pass::Second => {
                let target = dispatch.target.and_then(|target| target.clause_at(&dispatch.at));
                let thrower = dispatch.origin.caller_sp() == dispatch.at.caller_sp();
                let cooperative = thrower
                    && dispatch.by_runtime
                    && target.is_some()
                    && generation.enters_a_catching_thrower_cooperatively();
                steps.unwind(&clauses, target, cooperative);
            }
        }
        steps.finish()
    }

    /// Advances to the next frame; returns `None` if nothing handles the exception.
    fn go_on(&mut self, thread: usize) -> Option<Vec<Step>> {
        let managed = self.runtime.generation.hides_exception_handling();
        let (at, pass) = self.current(thread).map(|dispatch| (dispatch.at, dispatch.pass))?;
        let next = self.next_frame(thread, &at, pass);
        let ends_here = managed && pass == Pass::Second && matches!(next, Next::NativeCaller);
        if ends_here && self.native_catcher(at.caller, Position::ReturnAddress).is_none() {
            return None;
        }
        let dispatch = self.current(thread)?;
        let end = match next {
            Next::Frame(frame) => {
                dispatch.at = *frame;
                if !managed && dispatch.pass == Pass::Second {
                    dispatch.leave(frame.registers.rsp());
                }
                return Some(vec![Step::Exception(Action::Look)]);
            }
            Next::FilterCaller => End::FilterCaller,
            Next::NativeCaller => End::Native,
            Next::Nothing => return None,
        };
        if pass == Pass::First {
            dispatch.target = Some(Target { caller_sp: at.caller_sp(), end });
        }
        if managed {
            dispatch.funclet = None;
            self.clear(thread);
            let notifies = pass == Pass::First
                && end == End::Native
                && self.notifies_of_unhandled()
                && self.native_catcher(at.caller, Position::ReturnAddress).is_none();
            if notifies && let Some(dispatch) = self.current(thread) {
                dispatch.notifies = true;
                return Some(vec![Step::Notify(Handler::Unhandled)]);
            }
            return Some(vec![Step::Return(0)]);
        }
        Some(match pass {
            Pass::First => [Action::Second, Action::Look].map(Step::Exception).into(),
            Pass::Second => [Action::Forget, Action::Resume].map(Step::Exception).into(),
        })
    }

    fn end_unhandled(&mut self, thread: usize) -> StepEvent {
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.clear();
            executed.ended = true;
            executed.unhandled = true;
        }
        StepEvent::Ended
    }

    /// Returns the entry point of a helper that execution continues with (VA).
    pub(super) fn entry_of(&self, helper: Shared) -> Result<u64, WorldError> {
        let function = self.expanded.find(RuntimeFunction::Shared(helper));
        let entry = function.and_then(|function| self.linked.entries.get(function.index()));
        entry.copied().ok_or(WorldError::NoHelper(helper))
    }

    /// Returns to the runtime's code, which calls a funclet; the remaining steps are kept for
    /// later.
    fn leave_for_funclet(&mut self, thread: usize, kind: FuncletKind) -> Result<(), WorldError> {
        let managed = self.runtime.generation.hides_exception_handling();
        let result = match kind {
            // The managed code knows the function to call.
            _ if managed => 1,
            FuncletKind::Filter => self.entry_of(Shared::CallFilter)?,
            FuncletKind::Handler => self.entry_of(Shared::CallFunclet)?,
        };
        self.leave_for(thread, result);
        Ok(())
    }

    /// Returns a value to the runtime's code, which calls something; the remaining steps are kept for later.
    fn leave_for(&mut self, thread: usize, result: u64) {
        if let Some(executed) = self.threads.get_mut(thread) {
            let rest = core::mem::take(&mut executed.pending);
            if let Some(dispatch) = executed.dispatches.last_mut() {
                dispatch.rest = rest;
            }
            executed.pending.push_back(Step::Return(result));
        }
    }

    /// Returns true if the program is to be notified of an exception now: at its first frame.
    pub(super) fn notifies(&self, dispatch: &Dispatch) -> bool {
        dispatch.pass == Pass::First
            && dispatch.at.caller_sp() == dispatch.origin.caller_sp()
            && self.notifies_of_first_chances()
    }

    /// Prepares the call of a funclet: sets its argument and returns its address (VA).
    pub(super) fn enter_funclet(&mut self, thread: usize) -> u64 {
        let argument = if self.runtime.generation.is_unix() { Gpr::Rdi } else { Gpr::Rcx };
        let linked = self.linked;
        let rsp = self.runtime.memory.borrow().cpu().rsp();
        let Some(dispatch) = self.current(thread) else { return 0 };
        let Some((clause, kind)) = dispatch.funclet else { return 0 };
        let Some(clause) = linked.clauses.get(clause) else { return 0 };
        let (establisher, parent) = (dispatch.at.establisher, dispatch.at.caller_sp());
        let address = match kind {
            FuncletKind::Filter => clause.filter.unwrap_or_default(),
            FuncletKind::Handler => {
                // The funclet is called from the caller of the service.
                let caller_sp = rsp.wrapping_add(8);
                let parent_caller_sp = Some(parent);
                dispatch.tracker.funclet = Some(RunningFunclet { caller_sp, parent_caller_sp });
                clause.handler
            }
        };
        self.runtime.memory.borrow_mut().cpu_mut().set(argument, establisher);
        self.publish(thread);
        address
    }

    /// Records the result of a funclet that has returned.
    pub(super) fn leave_funclet(&mut self, thread: usize) {
        let result = self.runtime.memory.borrow().cpu().get(Gpr::Rbx);
        if let Some(dispatch) = self.current(thread) {
            dispatch.result = result;
            dispatch.funclet = None;
            dispatch.tracker.funclet = None;
        }
        self.publish(thread);
    }

    /// Hides the exception, and those that it has replaced, from others; the thread has not resumed
    /// yet (C-050).
    fn forget(&mut self, thread: usize) {
        let Some(sp) = self.current(thread).and_then(|dispatch| dispatch.destination()) else {
            return;
        };
        if let Some(executed) = self.threads.get_mut(thread) {
            for dispatch in &mut executed.dispatches {
                dispatch.is_over |= dispatch.sp < sp;
            }
        }
    }

    /// Cuts the stack: execution continues after the catch, at the call of a filter that has
    /// thrown, or in native code.
    fn resume(&mut self, thread: usize) -> Result<(), WorldError> {
        self.unhijack(thread);
        let managed = self.runtime.generation.hides_exception_handling();
        let Some(dispatch) = self.current(thread) else { return Ok(()) };
        let (at, result) = (dispatch.at, dispatch.result);
        let thrown = (dispatch.object, dispatch.class);
        let caller_sp = at.caller_sp();
        let mut registers = at.caller;
        let end = dispatch.target.map(|target| target.end);
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.carried = (end == Some(End::Native)).then_some(thrown);
        }
        match end {
            Some(End::Native) if managed => {
                let entry = self.entry_of(Shared::Propagate)?;
                self.cut(thread, caller_sp, 1);
                self.call_from(thread, &registers, entry);
            }
            Some(End::Native) => {
                let position = Position::ReturnAddress;
                let Some(catcher) = self.native_catcher(registers, position) else { return Ok(()) };
                self.rethrow_from(thread, &catcher)?;
            }
            Some(End::Clause(_)) => {
                registers = at.registers;
                registers.rip = result;
                self.cut(thread, caller_sp, 1);
                self.go_on_with(thread, &registers, caller_sp);
            }
            Some(End::FilterCaller) | None => {
                // The filter counts as having refused.
                registers.set(Gpr::Rax, 0);
                self.cut(thread, caller_sp, 0);
                self.go_on_with(thread, &registers, caller_sp);
            }
        }
        Ok(())
    }

    /// Propagates an exception that has reached native code: the code that catches it throws it
    /// again.
    pub(super) fn propagate(&mut self, thread: usize) -> Result<StepEvent, WorldError> {
        let catcher = self
            .service_caller()
            .and_then(|registers| self.native_catcher(registers, Position::ReturnAddress));
        let Some(catcher) = catcher else { return Ok(self.end_unhandled(thread)) };
        self.rethrow_from(thread, &catcher)?;
        Ok(StepEvent::Stepped)
    }

    /// Throws an exception again from the frame that has caught it, which has these registers. One that has left a handler of
    /// unhandled exceptions is forgotten there (recorded on 3.1.23, 8.0.34 and 9.0.23).
    fn rethrow_from(&mut self, thread: usize, catcher: &Registers) -> Result<(), WorldError> {
        if self.returns_to(Shared::CallUnhandledHandler, catcher.rip) {
            self.cut(thread, catcher.rsp(), 0);
            self.go_on_with(thread, catcher, catcher.rsp());
            return Ok(());
        }
        let entry = self.entry_of(Shared::RethrowHelper)?;
        self.wrap_exception(thread, catcher.rip);
        self.cut(thread, catcher.rsp(), 1);
        self.call_from(thread, catcher, entry);
        Ok(())
    }

    /// Returns true if a return address (VA) is in a helper of the program.
    fn returns_to(&self, shared: Shared, rip: u64) -> bool {
        let function = self.linked.function_of(rip, Position::ReturnAddress);
        function.is_some() && self.expanded.shared.get(&shared) == function.as_ref()
    }

    /// Has native code at `rip` (VA) throw an exception of its own in place of the one that it has caught: class
    /// constructors and calls by reflection do (recorded on 3.1.3, 8.0.34 and 9.0.23).
    fn wrap_exception(&mut self, thread: usize, rip: u64) {
        let class = if self.returns_to(Shared::ClassInit, rip) {
            ExceptionClass::TypeInitialization
        } else if self.returns_to(Shared::InvokeMethod, rip)
            && self.runtime.generation.catches_in_reflection()
        {
            ExceptionClass::TargetInvocation
        } else {
            return;
        };
        let object = self.make_object();
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.carried = Some((object, class));
        }
    }

    /// Publishes the exceptions to stack walks.
    pub(super) fn publish(&self, thread: usize) {
        let Some(executed) = self.threads.get(thread) else { return };
        let seen = executed.dispatches.iter().rev().filter(|dispatch| !dispatch.is_over);
        let trackers: Vec<_> = seen.map(|dispatch| dispatch.tracker).collect();
        let inconsistent = executed.dispatches.last().is_some_and(|dispatch| dispatch.is_over);
        self.runtime.change_thread(executed.os, |thread| {
            thread.exceptions.trackers = trackers;
            thread.exceptions.inconsistent = inconsistent;
        });
    }
}

impl Dispatch {
    /// Records that the second pass has reached a frame with this rsp (VA): it has left the stack
    /// below, with all that earlier exceptions have left there (C-086).
    const fn leave(&mut self, sp: u64) {
        self.tracker.unwound = Some((self.origin.registers.rsp(), sp));
    }

    /// Returns rsp at the place where execution resumes (VA).
    fn destination(&self) -> Option<u64> {
        Some(match self.target?.end {
            End::Clause(_) => self.at.registers.rsp(),
            End::FilterCaller | End::Native => self.at.caller_sp(),
        })
    }
}
