//! pe-unwind-info as an unwinder under test.

use super::*;
use crate::unwinders::others::code::Code;
use clr_tests::peers::pe_unwind_info::State;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Catches a panic without printing its message.
fn quiet<T>(function: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                hook(info);
            }
        }));
    });
    QUIET.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(function));
    QUIET.set(false);
    result
}

/// pe-unwind-info, whose user must find the image.
pub(crate) struct PeUnwindInfo<'a>(&'a [Code<'a>]);

impl<'a> PeUnwindInfo<'a> {
    pub(crate) const fn new(all: &'a [Code<'a>]) -> Self {
        Self(all)
    }

    /// Returns the caller's registers; `None` if pe-unwind-info fails or panics.
    pub(crate) fn step(
        &self,
        frame: &Registers,
        position: Position,
        memory: &Machine,
    ) -> Option<Answer> {
        let address = match position {
            Position::Interrupted => frame.rip,
            // The call may be the last instruction of its function.
            Position::ReturnAddress => frame.rip - 1,
        };
        let (code, rva) = Code::find(self.0, address)?;
        let mut state = State::new(frame, memory);
        let pdata = code.pdata.as_deref().unwrap_or_default();
        let rip = quiet(|| state.unwind(pdata, |rva| code.bytes_from(rva), rva)).ok()??;
        Some(Answer { registers: state.registers(rip), has_xmm: true })
    }
}
