//! pe-unwind-info as an unwinder under test.

use crate::unwinders::others::Answer;
use crate::unwinders::others::code::Code;
use clr_machine::Machine;
use clr_walker::memory::Memory as _;
use clr_walker::registers::Registers;
use clr_walker::unwind::Position;
use pe_unwind_info::x86_64::{FunctionTableEntries, Register, UnwindState, XmmRegister};
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

/// The registers and the memory, which pe-unwind-info leaves to its user.
struct State<'m> {
    gpr: [u64; 16],
    xmm: [u128; 16],
    memory: &'m Machine,
}

impl UnwindState for State<'_> {
    fn read_register(&mut self, register: Register) -> u64 {
        self.gpr[register as usize]
    }

    fn read_stack(&mut self, address: u64) -> Option<u64> {
        self.memory.read_u64(address).ok()
    }

    fn write_register(&mut self, register: Register, value: u64) {
        self.gpr[register as usize] = value;
    }

    fn write_xmm_register(&mut self, register: XmmRegister, value: u128) {
        self.xmm[register as usize] = value;
    }
}

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
        let mut state = State { gpr: frame.gpr, xmm: [0; 16], memory };
        state.xmm[6..].copy_from_slice(&frame.xmm);
        let entries = FunctionTableEntries::parse(code.pdata.as_deref().unwrap_or_default());
        let unwind = || entries.unwind_frame(&mut state, |rva| code.bytes_from(rva), rva);
        let rip = quiet(unwind).ok()??;
        let mut registers = Registers { rip, gpr: state.gpr, xmm: [0; 10] };
        registers.xmm.copy_from_slice(&state.xmm[6..]);
        Some(Answer { registers, has_xmm: true })
    }
}
