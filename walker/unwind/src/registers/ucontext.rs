//! Registers in the contexts that signal handlers get.

use super::{Gpr, Registers};
use Gpr::{R8, R9, R10, R11, R12, R13, R14, R15, Rax, Rbp, Rbx, Rcx, Rdi, Rdx, Rsi, Rsp};

impl Registers {
    /// Number of bytes of a Linux `ucontext_t` that [`from_linux_ucontext`] reads, from its start.
    ///
    /// [`from_linux_ucontext`]: Self::from_linux_ucontext
    pub const LINUX_UCONTEXT_SIZE: usize = LINUX_GREGS + 8 * (LINUX_ORDER.len() + 1);

    /// Number of bytes of a macOS `mcontext64` that [`from_macos_mcontext`] reads, from its start.
    ///
    /// [`from_macos_mcontext`]: Self::from_macos_mcontext
    pub const MACOS_MCONTEXT_SIZE: usize = MACOS_THREAD_STATE + 8 * (MACOS_ORDER.len() + 1);

    /// Returns the registers in the first bytes of a Linux x86-64 `ucontext_t`, the third argument
    /// of a signal handler. Vector registers are 0: no callee preserves them under the System V
    /// convention.
    ///
    /// Source: `uc_mcontext.gregs` in `sys/ucontext.h` of glibc 2.36, and musl's `bits/signal.h`,
    /// both of which have the kernel's layout (`struct ucontext`, `struct sigcontext_64`).
    pub fn from_linux_ucontext(bytes: &[u8; Self::LINUX_UCONTEXT_SIZE]) -> Self {
        Self::in_order(bytes.split_at(LINUX_GREGS).1, &LINUX_ORDER)
    }

    /// Returns the registers in the first bytes of a macOS x86-64 `mcontext64`, to which
    /// `uc_mcontext` of a signal handler's third argument points. Vector registers are 0.
    ///
    /// Source: `struct __darwin_mcontext64` in `bsd/i386/_mcontext.h` and
    /// `struct __darwin_x86_thread_state64` in `osfmk/mach/i386/_structs.h` of xnu. Assumed beyond
    /// that: no recording of a macOS process has been met.
    pub fn from_macos_mcontext(bytes: &[u8; Self::MACOS_MCONTEXT_SIZE]) -> Self {
        Self::in_order(bytes.split_at(MACOS_THREAD_STATE).1, &MACOS_ORDER)
    }

    /// Reads integer registers in this order, then rip.
    fn in_order(bytes: &[u8], order: &[Gpr; 16]) -> Self {
        let mut registers = Self::default();
        let (words, _) = bytes.as_chunks::<8>();
        let mut values = words.iter().map(|word| u64::from_le_bytes(*word));
        for (register, value) in order.iter().zip(values.by_ref()) {
            registers.set(*register, value);
        }
        registers.rip = values.next().unwrap_or_default();
        registers
    }
}

/// Offset of `uc_mcontext.gregs` in bytes, after `uc_flags`, `uc_link` and `uc_stack`.
const LINUX_GREGS: usize = 40;
/// The order of `gregs` before `REG_RIP`.
const LINUX_ORDER: [Gpr; 16] =
    [R8, R9, R10, R11, R12, R13, R14, R15, Rdi, Rsi, Rbp, Rbx, Rdx, Rax, Rcx, Rsp];

/// Offset of `__ss` in bytes, after the exception state `__es`.
const MACOS_THREAD_STATE: usize = 16;
/// The order of `__ss` before `__rip`.
const MACOS_ORDER: [Gpr; 16] =
    [Rax, Rbx, Rcx, Rdx, Rdi, Rsi, Rbp, Rsp, R8, R9, R10, R11, R12, R13, R14, R15];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_register_has_its_place() {
        // The value of each word is its offset.
        let mut bytes = [0; Registers::LINUX_UCONTEXT_SIZE];
        for (at, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *word = (8 * at as u64).to_le_bytes();
        }
        let linux = Registers::from_linux_ucontext(&bytes);
        assert_eq!(linux.rip, 168);
        let of = [(R8, 40), (Rdi, 104), (Rbp, 120), (Rbx, 128), (Rax, 144), (Rsp, 160)];
        for (register, offset) in of {
            assert_eq!(linux.get(register), offset, "{}", register.name());
        }
        let macos = Registers::from_macos_mcontext(bytes.first_chunk().unwrap());
        assert_eq!(macos.rip, 144);
        for (register, offset) in [(Rax, 16), (Rbx, 24), (Rbp, 64), (Rsp, 72), (R15, 136)] {
            assert_eq!(macos.get(register), offset, "{}", register.name());
        }
        for registers in [linux, macos] {
            let mut values: Vec<_> = Gpr::ALL.map(|register| registers.get(register)).into();
            values.push(registers.rip);
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), 17, "each word belongs to one register");
        }
    }
}
