//! Exceptions: a handler is searched, then the stack is unwound down to it (contract §3.9).
//!
//! The runtime's code asks for one part after the other ([`Service::Dispatch`](crate::stubs::Service));
//! funclets are called by it. So what it is doing stands on the stack of the thread.

use super::frames::{Frame, Next};
use super::passes::Steps;
use super::services::Step;
use super::{Event, World};
use crate::code::FuncletKind;
use crate::profiling::CallbackKind;
use crate::runtime::frame::layout;
use crate::runtime::thread::{ThreadObject, offset};
use crate::runtime::{ExceptionTracker, FRAME_TOP, Pass, RunningFunclet};
use crate::stubs::{RuntimeFunction, Shared};
use clr_walker::memory::Memory as _;
use clr_walker::registers::Gpr;
use std::collections::VecDeque;

/// A part of the handling of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A pass looks at the frame that it is at.
    Look,
    /// It goes on to the next one.
    Next,
    /// A clause is the one that catches.
    Found(usize),
    /// The second pass begins.
    Second,
    /// If its filter has accepted the exception.
    Decide(usize),
    /// The second pass is in managed code, as far as others can tell, or not.
    Entered(bool),
    /// A funclet of a clause is called.
    Call(usize, FuncletKind),
    /// The second pass has left the frame.
    Left,
    /// The exception is forgotten.
    Forget,
    /// Execution goes on.
    Resume,
}

/// Where an exception ends.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// Caller SP of the frame (VA).
    caller_sp: u64,
    /// The clause; `None` for what a filter has thrown.
    clause: Option<usize>,
}

/// An exception on its way.
#[derive(Clone, Debug)]
pub(super) struct Dispatch {
    /// rsp where its handling began (VA).
    sp: u64,
    origin: Frame,
    at: Frame,
    target: Option<Target>,
    /// What is to be done once the funclet that runs has returned.
    rest: VecDeque<Step>,
    /// The funclet that is called.
    funclet: Option<(usize, FuncletKind)>,
    /// What it has returned.
    result: u64,
    tracker: ExceptionTracker,
    /// Others do not see it any more.
    is_over: bool,
}

impl World<'_> {
    /// The parts of throwing an exception.
    pub(super) fn raise(&mut self, thread: usize) -> Vec<Step> {
        let sp = self.runtime.memory.borrow().cpu().rsp();
        let Some(origin) = self.throwing_frame() else { return vec![Step::Return(0)] };
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.dispatches.push(Dispatch {
                sp,
                origin,
                at: origin,
                target: None,
                rest: VecDeque::from([Step::Exception(Action::Look)]),
                funclet: None,
                result: 0,
                tracker: ExceptionTracker::default(),
                is_over: false,
            });
        }
        self.publish(thread);
        vec![Step::Callback(CallbackKind::ExceptionThrown), Step::Return(0)]
    }

    /// What comes next of the current exception.
    pub(super) fn dispatch(&mut self, thread: usize) -> Vec<Step> {
        let rest = self.current(thread).map(|dispatch| core::mem::take(&mut dispatch.rest));
        rest.unwrap_or_default().into()
    }

    fn current(&mut self, thread: usize) -> Option<&mut Dispatch> {
        self.threads.get_mut(thread)?.dispatches.last_mut()
    }

    /// Does a part.
    pub(super) fn exception_step(&mut self, thread: usize, action: Action) -> Event {
        let Some(dispatch) = self.current(thread) else { return Event::Stepped };
        let mut next = Vec::new();
        match action {
            Action::Look => next = self.look(thread),
            Action::Next => {
                let Some(steps) = self.go_on(thread) else { return self.end_unhandled(thread) };
                next = steps;
            }
            Action::Found(clause) => {
                let (at, told) = (dispatch.at.caller_sp(), dispatch.at.has_metadata);
                dispatch.target = Some(Target { caller_sp: at, clause: Some(clause) });
                self.clear(thread);
                if told {
                    next.push(Step::Callback(CallbackKind::ExceptionSearchCatcherFound));
                    next.push(Step::Callback(CallbackKind::ExceptionSearchFunctionLeave));
                }
                next.push(Step::Exception(Action::Second));
            }
            Action::Decide(clause) => {
                // eax, as the filter has left it.
                if dispatch.result as u32 != 0 {
                    next.push(Step::Exception(Action::Found(clause)));
                }
            }
            Action::Second => {
                dispatch.at = dispatch.origin;
                dispatch.tracker.pass = Pass::Second;
                next.push(Step::Exception(Action::Look));
            }
            Action::Entered(entered) => dispatch.tracker.entered_managed_code = entered,
            Action::Call(clause, kind) => {
                dispatch.funclet = Some((clause, kind));
                self.leave_for_funclet(thread, clause, kind);
            }
            Action::Left => {
                let lower = dispatch.origin.registers.rsp();
                dispatch.tracker.unwound = Some((lower, dispatch.at.caller_sp()));
            }
            Action::Forget => self.forget(thread),
            Action::Resume => self.resume(thread),
        }
        if let Some(executed) = self.threads.get_mut(thread) {
            for step in next.into_iter().rev() {
                executed.pending.push_front(step);
            }
        }
        self.publish(thread);
        Event::Stepped
    }

    fn clear(&mut self, thread: usize) {
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.clear();
        }
    }

    /// What a pass does at the frame that it is at.
    fn look(&mut self, thread: usize) -> Vec<Step> {
        let managed = self.runtime.generation.hides_exception_handling();
        let Some(dispatch) = self.threads.get(thread).and_then(|t| t.dispatches.last()) else {
            return Vec::new();
        };
        let clauses = self.clauses_for(&dispatch.at);
        let mut steps = Steps::new(dispatch.at.has_metadata, managed);
        match dispatch.tracker.pass {
            Pass::First => steps.search(&clauses),
            Pass::Second => {
                let here = |target: &Target| target.caller_sp == dispatch.at.caller_sp();
                let target = dispatch.target.filter(here).and_then(|target| target.clause);
                steps.unwind(&clauses, target);
            }
        }
        steps.finish()
    }

    /// Goes on to the next frame; `None` if nothing handles the exception.
    fn go_on(&mut self, thread: usize) -> Option<Vec<Step>> {
        let at = self.current(thread)?.at;
        let next = self.next_frame(thread, &at);
        let dispatch = self.current(thread)?;
        match (next, dispatch.tracker.pass) {
            (Next::Frame(frame), _) => {
                dispatch.at = *frame;
                Some(vec![Step::Exception(Action::Look)])
            }
            (Next::FilterCaller, Pass::First) => {
                dispatch.target = Some(Target { caller_sp: at.caller_sp(), clause: None });
                Some(vec![Step::Exception(Action::Second)])
            }
            (Next::FilterCaller, Pass::Second) => {
                Some([Action::Forget, Action::Resume].map(Step::Exception).into())
            }
            (Next::Nothing, _) => None,
        }
    }

    fn end_unhandled(&mut self, thread: usize) -> Event {
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.clear();
            executed.ended = true;
            executed.unhandled = true;
        }
        Event::Ended
    }

    /// Returns to the runtime's code, which calls a funclet; what is left waits for it.
    fn leave_for_funclet(&mut self, thread: usize, clause: usize, kind: FuncletKind) {
        let managed = self.runtime.generation.hides_exception_handling();
        let catches = self.linked.clauses.get(clause).is_some_and(|clause| clause.kind.catches());
        let helper = match (managed, kind) {
            (false, FuncletKind::Filter) => Shared::CallFilter,
            (false, FuncletKind::Handler) => Shared::CallFunclet,
            (true, FuncletKind::Filter) => Shared::CallFilterFunclet,
            (true, FuncletKind::Handler) if catches => Shared::CallCatchFunclet,
            (true, FuncletKind::Handler) => Shared::CallFinallyFunclet,
        };
        let helper = self.expanded.find(RuntimeFunction::Shared(helper)).unwrap_or_default();
        let entry = self.linked.entries.get(helper.index()).copied().unwrap_or_default();
        if let Some(executed) = self.threads.get_mut(thread) {
            let rest = core::mem::take(&mut executed.pending);
            if let Some(dispatch) = executed.dispatches.last_mut() {
                dispatch.rest = rest;
            }
            executed.pending.push_back(Step::Return(entry));
        }
    }

    /// A funclet is about to be called: its argument is set, and its address given (VA).
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
                // It is called from where the service is called from.
                let caller_sp = rsp.wrapping_add(8);
                let parent_caller_sp = Some(parent);
                dispatch.tracker.funclet = Some(RunningFunclet { caller_sp, parent_caller_sp });
                clause.handler
            }
        };
        self.runtime.memory.get_mut().cpu_mut().set(argument, establisher);
        self.publish(thread);
        address
    }

    /// A funclet has returned.
    pub(super) fn leave_funclet(&mut self, thread: usize) {
        let result = self.runtime.memory.borrow().cpu().get(Gpr::Rbx);
        if let Some(dispatch) = self.current(thread) {
            dispatch.result = result;
            dispatch.tracker.funclet = None;
        }
        self.publish(thread);
    }

    /// Others do not see the exception any more, nor those that it has left; the thread does not go
    /// on yet (C-050).
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

    /// Cuts the stack: execution goes on behind the catch, or where a filter was called that has
    /// thrown.
    fn resume(&mut self, thread: usize) {
        let Some(dispatch) = self.current(thread) else { return };
        let (at, result) = (dispatch.at, dispatch.result);
        let is_catch = dispatch.target.is_some_and(|target| target.clause.is_some());
        let mut registers = at.caller;
        if is_catch {
            registers = at.registers;
            registers.rip = result;
        } else {
            // It counts as having refused.
            registers.set(Gpr::Rax, 0);
        }
        let caller_sp = at.caller_sp();
        let sp = registers.rsp();
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.clear();
            executed.dispatches.retain(|dispatch| dispatch.sp >= sp);
            let callers = executed.truth.callers();
            let own = callers.iter().rposition(|caller| caller.registers.rsp() == caller_sp);
            if let Some(own) = own {
                executed.truth.cut(if is_catch { own + 1 } else { own });
            }
        }
        self.runtime.memory.get_mut().cpu_mut().set_registers(&registers);
        self.pop_frames(thread, caller_sp);
        self.set_cooperative(thread, true);
    }

    /// Takes the Frames off the chain that lie on stack which is gone.
    fn pop_frames(&mut self, thread: usize, limit: u64) {
        let Some(object) = self.object(thread) else { return };
        let memory = self.runtime.memory.get_mut();
        let top = object.0.wrapping_add(offset::TOP_FRAME);
        let Ok(first) = ThreadObject(object).top_frame(memory) else { return };
        let mut frame = first;
        while frame != FRAME_TOP && frame < limit {
            let Ok(next) = memory.read_u64(frame.wrapping_add(layout::NEXT)) else { return };
            frame = next;
        }
        if frame != first {
            // A Thread object of the world is always there.
            let _ = memory.write(top, &frame.to_le_bytes());
        }
    }

    /// Lets walks know of the exceptions.
    fn publish(&self, thread: usize) {
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
    /// rsp where execution goes on (VA).
    fn destination(&self) -> Option<u64> {
        Some(match self.target?.clause {
            Some(_) => self.at.registers.rsp(),
            None => self.at.caller_sp(),
        })
    }
}
