//! Steps of the two native exception passes at a frame, with their callbacks (contract §6).

use super::frames::Frame;
use super::step::{Action, Handler, Step};
use clr_codegen::{FuncletKind, HandlerKind};
use clr_runtime::profiling::{CallbackKind, CallbackMode};

/// A collector of the steps of a pass at a frame.
pub(super) struct Steps<'f> {
    frame: &'f Frame,
    parts: Vec<Step>,
}

impl<'f> Steps<'f> {
    pub(super) const fn new(frame: &'f Frame) -> Self {
        Self { frame, parts: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<Step> {
        self.parts
    }

    fn callback(&mut self, kind: CallbackKind) {
        if self.frame.has_metadata {
            self.parts.push(Step::Callback(kind));
        }
    }

    fn action(&mut self, action: Action) {
        self.parts.push(Step::Exception(action));
    }

    /// Performs the first pass: filters are asked, up to the EH clause that catches.
    /// The program may be notified of the exception first.
    pub(super) fn search(&mut self, clauses: &[(usize, HandlerKind)], notifies: bool) {
        if self.frame.is_first_of_method() {
            self.callback(CallbackKind::ExceptionSearchFunctionEnter);
        }
        if notifies {
            self.action(Action::Notify(Handler::FirstChance));
        }
        for &(clause, kind) in clauses {
            match kind {
                HandlerKind::Catch => {
                    self.action(Action::Found(clause));
                    return;
                }
                HandlerKind::Filtered => {
                    self.callback(CallbackKind::ExceptionSearchFilterEnter);
                    self.action(Action::Call(clause, FuncletKind::Filter));
                    self.callback(CallbackKind::ExceptionSearchFilterLeave);
                    self.action(Action::Decide(clause));
                }
                HandlerKind::Unmatched | HandlerKind::Finally | HandlerKind::Fault => {}
            }
        }
        if self.frame.is_last_of_method() {
            self.callback(CallbackKind::ExceptionSearchFunctionLeave);
        }
        self.action(Action::Next);
    }

    /// Performs the second pass: finally and fault handlers run, up to the EH clause that catches.
    /// The callback on entering a frame may be made in cooperative mode.
    pub(super) fn unwind(
        &mut self,
        clauses: &[(usize, HandlerKind)],
        target: Option<usize>,
        cooperative: bool,
    ) {
        if !self.frame.is_first_of_method() {
            // The funclet of the method has been reported.
        } else if cooperative && self.frame.has_metadata {
            let mode = CallbackMode::Cooperative;
            self.parts.push(Step::CallbackIn(CallbackKind::ExceptionUnwindFunctionEnter, mode));
        } else {
            self.callback(CallbackKind::ExceptionUnwindFunctionEnter);
        }
        for &(clause, kind) in clauses.iter().take_while(|(clause, _)| Some(*clause) != target) {
            if !kind.catches() {
                self.handler(
                    clause,
                    CallbackKind::ExceptionUnwindFinallyEnter,
                    CallbackKind::ExceptionUnwindFinallyLeave,
                );
            }
        }
        // The frame that catches is not reported as left (`ExceptionTracker::ProcessManagedCallFrame` in
        // src/vm/exceptionhandling.cpp of 3.1: only while the unwinding has not finished).
        if let Some(clause) = target {
            self.handler(
                clause,
                CallbackKind::ExceptionCatcherEnter,
                CallbackKind::ExceptionCatcherLeave,
            );
            self.action(Action::Forget);
            self.action(Action::Resume);
        } else {
            if self.frame.is_last_of_method() {
                self.callback(CallbackKind::ExceptionUnwindFunctionLeave);
            }
            self.action(Action::Next);
        }
    }

    /// Calls a handler. Managed code counts as entered only during that call (C-048).
    fn handler(&mut self, clause: usize, enter: CallbackKind, leave: CallbackKind) {
        self.callback(enter);
        self.action(Action::Entered(true));
        self.action(Action::Call(clause, FuncletKind::Handler));
        self.action(Action::Entered(false));
        self.callback(leave);
    }
}
