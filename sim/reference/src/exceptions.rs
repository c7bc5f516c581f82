//! The effect of exceptions on the report (contract §3.9). The progress of an exception is state;
//! the position of its handlers and their methods come from the shadow stack.

use super::activations::ReferenceActivation;
use clr_codegen::FuncletKind;
use clr_runtime::{ExceptionState, ExceptionTracker, Pass};

/// The exceptions in flight on a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exceptions {
    /// Number of exceptions.
    pub count: usize,
    /// The most recent exception is in its second pass, and no handler has been entered (C-048,
    /// C-164).
    pub unwinds_natively: bool,
    /// The most recent exception has been forgotten, but the thread has not resumed yet (C-050).
    pub inconsistent: bool,
    /// Stack that the second pass of the most recent exception has left, without its first address
    /// and with its second (VA).
    pub left: Option<(u64, u64)>,
}

impl Exceptions {
    /// Describes the exceptions of a thread.
    pub fn new(state: &ExceptionState) -> Self {
        let last = state.trackers.first();
        Self {
            count: state.trackers.len(),
            unwinds_natively: last
                .is_some_and(|last| last.pass == Pass::Second && !last.entered_managed_code),
            inconsistent: state.inconsistent,
            left: match last {
                Some(ExceptionTracker { pass: Pass::Second, unwound, .. }) => *unwound,
                _ => None,
            },
        }
    }

    /// Returns true if the most recent exception has left the frame at `sp` (VA): it is no longer
    /// reported, though it is still on the stack (C-086).
    pub fn have_left(&self, sp: u64) -> bool {
        self.left.is_some_and(|(above, up_to)| (above + 1..=up_to).contains(&sp))
    }
}

/// The activation that is reported in place of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// The method of the handler has called it: that activation is reported (C-084).
    OutOfLine,
    /// Exception handling has called the handler: the activation with this index is reported, and
    /// those in between are not (C-081, C-083).
    Of(usize),
    /// The reference model does not cover the case.
    Beyond,
}

/// Fills in what kinds of handlers activations are.
pub(crate) fn find_handlers(activations: &mut [ReferenceActivation]) {
    let found: Vec<_> = (0..activations.len()).map(|index| handler(activations, index)).collect();
    for (activation, handler) in activations.iter_mut().zip(found) {
        activation.handler = handler;
    }
}

/// Returns the kind of handler that an activation is, or `None`. Filters do not count (C-085).
fn handler(activations: &[ReferenceActivation], index: usize) -> Option<Handler> {
    let activation = activations
        .get(index)
        .filter(|activation| activation.funclet == Some(FuncletKind::Handler))?;
    let is_of = |other: &ReferenceActivation| other.code == activation.code;
    if activations.get(index + 1).is_some_and(is_of) {
        return Some(Handler::OutOfLine);
    }
    // A method is never entered again before it has returned; but a handler may be called from
    // another handler of the method, or from a filter.
    let outer = activations.iter().enumerate().skip(index + 1);
    let mut own = outer.filter(|(_, other)| is_of(other));
    let stands = own.find(|(_, other)| other.funclet != Some(FuncletKind::Handler));
    stands.map(|(parent, _)| Handler::Of(parent))
}
