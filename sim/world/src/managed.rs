//! Exceptions that managed code handles: `System.Runtime.EH` calls a sequence of native helpers
//! (.NET 9 and newer; from the public source of its `ExceptionHandling.cs` and of the helpers, and
//! observed on U9).
//!
//! The helpers make the callbacks. The callback on leaving a frame is made when the next frame has been
//! found. So the last frame of a first pass that finds no handler is reported
//! as left in the second pass (C-166).

use super::World;
use super::step::Action;
use super::step::{About, Handler, Step};
use crate::stubs::{Shared, method_id};
use clr_codegen::{FuncletKind, HandlerKind};
use clr_runtime::Pass;
use clr_runtime::profiling::CallbackKind;
use clr_walker::profiling::FunctionId;

impl World<'_> {
    /// Begins a pass (`SfiInit`).
    pub(super) fn begin_pass(&mut self, thread: usize) -> Vec<Step> {
        let by = self.call_of_handling(thread);
        let transition = |kind, returns| {
            let about = |function| About { function, returns, ..About::default() };
            by.map(|function| Step::CallbackAbout(kind, about(function)))
        };
        let mut steps = match self.current(thread) {
            Some(dispatch)
                if dispatch.pass == Pass::First
                    && dispatch.target.is_some()
                    && !dispatch.notifies =>
            {
                let catches = dispatch.target.and_then(|target| target.clause_at(&dispatch.at));
                let mut steps = Vec::new();
                steps.extend(transition(CallbackKind::ManagedToUnmanagedTransition, true));
                if catches.is_some() {
                    dispatch.to_leave = None;
                    if dispatch.at.has_metadata {
                        steps.push(Step::Callback(CallbackKind::ExceptionSearchCatcherFound));
                        steps.push(Step::Callback(CallbackKind::ExceptionSearchFunctionLeave));
                    }
                }
                steps.push(Step::Exception(Action::Second));
                steps
            }
            _ => {
                if !self.throw(thread) {
                    return vec![Step::Exception(Action::Unhandled)];
                }
                let mut steps = self.unwinding_natively();
                steps.extend(transition(CallbackKind::UnmanagedToManagedTransition, false));
                steps.push(Step::Callback(CallbackKind::ExceptionThrown));
                let begun = self.threads.get(thread).and_then(|one| one.dispatches.last());
                if begun.is_some_and(|dispatch| self.notifies(dispatch)) {
                    steps.extend([
                        Step::Exception(Action::Look),
                        Step::Notify(Handler::FirstChance),
                    ]);
                    return steps;
                }
                steps
            }
        };
        steps.push(Step::Exception(Action::Look));
        steps.push(Step::Return(0));
        steps
    }

    /// Returns the method of the class library that handles the current exception, if the profiler is notified of its call.
    fn call_of_handling(&self, thread: usize) -> Option<FunctionId> {
        if !self.runtime.generation.tells_of_calls_of_handling() {
            return None;
        }
        let entries = [Shared::RhThrowEx, Shared::RhThrowHwEx, Shared::RhRethrow];
        let entries = entries.map(|shared| self.expanded.shared.get(&shared));
        let mut functions = self.activations(thread).into_iter().filter_map(|one| one.function);
        let entry = functions.find(|function| entries.contains(&Some(function)));
        entry.map(|entry| FunctionId(method_id(entry)))
    }

    /// Advances a pass (`SfiNext`): returns 1 if there is another frame, 0 if the pass has ended.
    pub(super) fn next_of_pass(&mut self, thread: usize) -> Vec<Step> {
        let Some(dispatch) = self.current(thread) else { return vec![Step::Return(0)] };
        let clause = dispatch.target.and_then(|target| target.clause_at(&dispatch.at));
        match dispatch.pass {
            Pass::First if dispatch.target.is_some() => vec![Step::Return(0)],
            Pass::First => vec![Step::Exception(Action::Next), Step::Return(1)],
            Pass::Second => {
                if let Some(clause) = clause {
                    dispatch.funclet = Some((clause, FuncletKind::Handler));
                    return vec![Step::Return(0)];
                }
                vec![Step::Exception(Action::Next), Step::Return(1)]
            }
        }
    }

    /// Advances to the next EH clause (`EHEnumNext`): returns 1 if its funclet is to be called, 0
    /// if there is none.
    pub(super) fn next_clause(&mut self, thread: usize) -> Vec<Step> {
        let rest = self.dispatch(thread);
        if rest.is_empty() { vec![Step::Return(0)] } else { rest }
    }

    /// Enters a frame in a pass: makes the callbacks, and collects the actions of the frame's EH
    /// clauses.
    pub(super) fn look_by_managed_code(&mut self, thread: usize) -> Vec<Step> {
        let Some(at) = self.current(thread).map(|dispatch| dispatch.at) else { return Vec::new() };
        let clauses = self.clauses_for(&at);
        let Some(dispatch) = self.current(thread) else { return Vec::new() };
        let target = dispatch.target.and_then(|target| target.clause_at(&at));
        let mut rest = Vec::new();
        for &(clause, kind) in &clauses {
            match (dispatch.pass, kind) {
                (Pass::First, HandlerKind::Catch) => {
                    rest.push(Action::Found(clause));
                    break;
                }
                (Pass::First, HandlerKind::Filtered) => {
                    rest.push(Action::Call(clause, FuncletKind::Filter));
                    rest.push(Action::Decide(clause));
                }
                (Pass::Second, _) if Some(clause) == target => break,
                (Pass::Second, HandlerKind::Finally | HandlerKind::Fault) => {
                    rest.push(Action::Call(clause, FuncletKind::Handler));
                }
                (Pass::First | Pass::Second, _) => {}
            }
        }
        dispatch.rest = rest.into_iter().map(Step::Exception).chain([Step::Return(0)]).collect();
        let (enter, leave) = match dispatch.pass {
            Pass::First => (
                CallbackKind::ExceptionSearchFunctionEnter,
                CallbackKind::ExceptionSearchFunctionLeave,
            ),
            Pass::Second => (
                CallbackKind::ExceptionUnwindFunctionEnter,
                CallbackKind::ExceptionUnwindFunctionLeave,
            ),
        };
        let mut steps = Vec::new();
        if let Some(left) = dispatch.to_leave.replace(at) {
            let is_reported = left.has_metadata && left.is_last_of_method();
            steps.extend(is_reported.then_some(Step::Callback(leave)));
            if dispatch.pass == Pass::Second && left.caller_sp() < at.caller_sp() {
                steps.push(Step::Exception(Action::LeftUpTo(at.registers.rsp())));
            }
        }
        let is_reported = at.has_metadata && at.is_first_of_method();
        steps.extend(is_reported.then_some(Step::Callback(enter)));
        steps
    }

    /// Prepares the call of a funclet. Managed code counts as entered in the callbacks around the
    /// funclet, too (C-164). Without a funclet, execution resumes where the exception ends.
    pub(super) fn call_funclet(&mut self, thread: usize) -> Vec<Step> {
        let Some(dispatch) = self.current(thread) else { return vec![Step::Return(0)] };
        let Some((clause, kind)) = dispatch.funclet else {
            return [Action::Forget, Action::Resume].map(Step::Exception).into();
        };
        let is_reported = dispatch.at.has_metadata;
        // The frame that catches is not reported as left (recorded on 9.0.7).
        if self.catches_by(clause, kind)
            && let Some(dispatch) = self.current(thread)
        {
            dispatch.to_leave = None;
        }
        let mut steps = Vec::new();
        if kind == FuncletKind::Handler {
            steps.push(Step::Exception(Action::Entered(true)));
        }
        if is_reported {
            steps.push(Step::Callback(match kind {
                FuncletKind::Filter => CallbackKind::ExceptionSearchFilterEnter,
                _ if self.catches_by(clause, kind) => CallbackKind::ExceptionCatcherEnter,
                FuncletKind::Handler => CallbackKind::ExceptionUnwindFinallyEnter,
            }));
        }
        steps.push(Step::Return(self.enter_funclet(thread)));
        steps
    }

    /// Completes a funclet that has returned.
    pub(super) fn funclet_returned(&mut self, thread: usize) -> Vec<Step> {
        let Some(dispatch) = self.current(thread) else { return vec![Step::Return(0)] };
        let (is_reported, called) = (dispatch.at.has_metadata, dispatch.funclet);
        self.leave_funclet(thread);
        let Some((clause, kind)) = called else { return vec![Step::Return(0)] };
        let catches = self.catches_by(clause, kind);
        let mut steps = Vec::new();
        if is_reported {
            steps.push(Step::Callback(match kind {
                FuncletKind::Filter => CallbackKind::ExceptionSearchFilterLeave,
                _ if catches => CallbackKind::ExceptionCatcherLeave,
                FuncletKind::Handler => CallbackKind::ExceptionUnwindFinallyLeave,
            }));
        }
        if kind == FuncletKind::Handler {
            steps.push(Step::Exception(Action::Entered(false)));
        }
        if catches {
            steps.extend([Action::Forget, Action::Resume].map(Step::Exception));
        } else {
            steps.push(Step::Return(0));
        }
        steps
    }

    /// Returns true if a funclet is the one that ends the exception.
    fn catches_by(&self, clause: usize, kind: FuncletKind) -> bool {
        let found = self.linked.clauses.get(clause);
        kind == FuncletKind::Handler && found.is_some_and(|clause| clause.kind.catches())
    }
}
