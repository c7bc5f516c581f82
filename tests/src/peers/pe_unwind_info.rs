//! pe-unwind-info, whose user must find the image.

use clr_unwind::{Memory, Registers};
use pe_unwind_info::x86_64::{FunctionTableEntries, Register, UnwindState, XmmRegister};

/// The registers and the memory, which pe-unwind-info leaves to its user.
#[derive(Debug)]
pub struct State<'m, M: ?Sized> {
    gpr: [u64; 16],
    xmm: [u128; 16],
    memory: &'m M,
}

impl<'m, M: Memory + ?Sized> State<'m, M> {
    /// Creates the state of a frame.
    #[must_use]
    pub fn new(frame: &Registers, memory: &'m M) -> Self {
        let mut state = Self { gpr: frame.gpr, xmm: [0; 16], memory };
        state.xmm[6..].copy_from_slice(&frame.xmm);
        state
    }

    /// Unwinds the frame with this RVA, in an image with this function table. Returns the caller's rip.
    pub fn unwind<'a>(
        &mut self,
        pdata: &[u8],
        bytes_from: impl Fn(u32) -> Option<&'a [u8]> + 'a,
        rva: u32,
    ) -> Option<u64> {
        FunctionTableEntries::parse(pdata).unwind_frame(self, bytes_from, rva)
    }

    /// Returns rsp.
    #[must_use]
    pub const fn rsp(&self) -> u64 {
        self.gpr[Register::RSP as usize]
    }

    /// Returns the registers, with this rip.
    #[must_use]
    pub fn registers(&self, rip: u64) -> Registers {
        let mut registers = Registers { rip, gpr: self.gpr, xmm: [0; 10] };
        registers.xmm.copy_from_slice(&self.xmm[6..]);
        registers
    }
}

impl<M: Memory + ?Sized> UnwindState for State<'_, M> {
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
