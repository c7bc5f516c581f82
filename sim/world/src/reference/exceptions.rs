//! What exceptions do to a report (contract §3.9): how far each has come is state, where its handlers
//! are and whose they are is the truth.

use super::rows::Row;
use clr_codegen::FuncletKind;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::{ExceptionState, Pass};

/// Those whose exception handling is managed code (C-087, C-163).
const HANDLES_IN_MANAGED_CODE: Generations =
    Generations::of(&[Generation::Net9Unix, Generation::Net10Windows, Generation::Net10Unix]);

/// Whether exceptions are handled by managed code.
pub(super) const fn handles_in_managed_code(generation: Generation) -> bool {
    HANDLES_IN_MANAGED_CODE.contains(generation)
}

/// The exceptions on their way on a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exceptions {
    /// How many there are.
    pub count: usize,
    /// The last one is in its second pass, and no handler has been entered (C-048, C-164).
    pub unwinds_natively: bool,
    /// The last one has been forgotten, but the thread does not go on yet (C-050).
    pub inconsistent: bool,
    /// The stack that second passes have left: each behind its first address, and up to its second
    /// (VA).
    left: Vec<(u64, u64)>,
}

impl Exceptions {
    pub(super) fn new(state: &ExceptionState) -> Self {
        let second = || state.trackers.iter().filter(|tracker| tracker.pass == Pass::Second);
        let last = state.trackers.first();
        Self {
            count: state.trackers.len(),
            unwinds_natively: last
                .is_some_and(|last| last.pass == Pass::Second && !last.entered_managed_code),
            inconsistent: state.inconsistent,
            left: second().filter_map(|tracker| tracker.unwound).collect(),
        }
    }

    /// Whether a second pass has left what is at `sp` (VA): it is not told of any more, though it is
    /// still there (C-086).
    #[must_use]
    pub fn have_left(&self, sp: u64) -> bool {
        self.left.iter().any(|(above, up_to)| (above + 1..=*up_to).contains(&sp))
    }
}

/// A handler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Handler {
    /// Its method has called it, which stands for it (C-084).
    OutOfLine,
    /// Exceptions have: the row with this index stands for it, and for all on the way (C-081, C-083).
    Of(usize),
}

/// Whose handler a row is, if it is one's. Filters are not (C-085).
pub(super) fn handler(rows: &[Row], index: usize) -> Option<Handler> {
    let row = rows.get(index).filter(|row| row.funclet == Some(FuncletKind::Handler))?;
    let is_of = |other: &Row| other.code == row.code;
    if rows.get(index + 1).is_some_and(is_of) {
        return Some(Handler::OutOfLine);
    }
    // A method is never entered again before it has returned; but a handler may be in another one,
    // or in a filter.
    let outer = rows.iter().enumerate().skip(index + 1);
    let mut own = outer.filter(|(_, other)| is_of(other));
    let stands = own.find(|(_, other)| other.funclet != Some(FuncletKind::Handler));
    stands.map(|(parent, _)| Handler::Of(parent))
}
