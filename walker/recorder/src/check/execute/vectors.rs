//! The vector registers of the interrupted thread. A leaf may have pointers in them, and the handler has used them since;
//! the kernel has put them on the stack.

use super::Copy;
use clr_unwind::{Gpr, Registers};
use std::ffi::c_void;

/// Size in bytes of the part of the stack below the interrupted stack pointer that has the kernel's frame: with all of AVX-512
/// and AMX it has 12 KiB.
const FRAME: usize = 16 << 10;
/// The order of the registers in a `ucontext_t` (`sys/ucontext.h`), before rip.
const ORDER: [Gpr; 16] = {
    use Gpr::{R8, R9, R10, R11, R12, R13, R14, R15, Rax, Rbp, Rbx, Rcx, Rdi, Rdx, Rsi, Rsp};
    [R8, R9, R10, R11, R12, R13, R14, R15, Rdi, Rsi, Rbp, Rbx, Rdx, Rax, Rcx, Rsp]
};
/// Number of words from the first register to the address of the vector registers.
const STATE: usize = 23;
/// Offset of `struct _fpx_sw_bytes` in them, and its first field (`asm/sigcontext.h`).
const SOFTWARE: u64 = 464;
const MAGIC: u32 = 0x4650_5853;
/// Maximum size of them in bytes.
const MOST: usize = 64 << 10;
/// `NT_X86_XSTATE` of `linux/elf.h`.
const XSTATE: usize = 0x202;

impl Copy {
    /// Gives the copy the vector registers of the thread that was interrupted with these registers, if the kernel's frame has
    /// them.
    pub(super) fn restore_vectors(&self, registers: &Registers) {
        let Some(mut state) = self.vectors(registers) else { return };
        let part =
            libc::iovec { iov_base: state.as_mut_ptr().cast::<c_void>(), iov_len: state.len() };
        // Without them the leaf may fault, and is not judged.
        let _ = self.ask(libc::PTRACE_SETREGSET, XSTATE, (&raw const part) as usize);
    }

    /// Returns the thread's vector registers as `xsave` has written them.
    fn vectors(&self, registers: &Registers) -> Option<Vec<u8>> {
        let at = self.word(self.context(registers)? + 8 * STATE as u64);
        let [magic, _, _, _, size, ..] = self.halves(at + SOFTWARE);
        let size = usize::try_from(size).ok().filter(|size| *size <= MOST)?;
        let mut state = vec![0; size];
        self.read(at, &mut state);
        (magic == MAGIC).then_some(state)
    }

    /// Returns the address (VA) of the first register in the kernel's frame.
    fn context(&self, registers: &Registers) -> Option<u64> {
        let words = ORDER.map(|register| registers.get(register));
        let expected: Vec<u8> =
            words.iter().chain([&registers.rip]).flat_map(|word| word.to_le_bytes()).collect();
        let top = registers.rsp() & !7;
        let from = top.checked_sub(FRAME as u64)?;
        let mut stack = vec![0; FRAME];
        for (address, part) in (from..).step_by(4096).zip(stack.chunks_mut(4096)) {
            self.read(address, part);
        }
        let mut places = stack.windows(expected.len()).step_by(8);
        Some(from + 8 * places.position(|place| place == expected)? as u64)
    }

    fn word(&self, address: u64) -> u64 {
        let mut word = [0; 8];
        self.read(address, &mut word);
        u64::from_le_bytes(word)
    }

    /// Returns the fields of `struct _fpx_sw_bytes`.
    fn halves(&self, address: u64) -> [u32; 12] {
        let mut bytes = [0; 48];
        self.read(address, &mut bytes);
        std::array::from_fn(|at| {
            bytes.as_chunks::<4>().0.get(at).map_or(0, |half| u32::from_le_bytes(*half))
        })
    }
}
