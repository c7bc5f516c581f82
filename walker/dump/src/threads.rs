//! A thread and its registers.

use crate::error::DumpError;
use crate::fields::Fields;
use clr_unwind::{Gpr, Registers};

/// A thread of a stopped process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// Id of the operating system (the "LWP").
    pub id: u32,
    /// The signal that stopped the thread, or 0.
    pub signal: u16,
    /// The registers where it stopped.
    pub registers: Registers,
    /// Flags of the processor (rflags).
    pub flags: u64,
    /// Base of the segment fs: the thread's control block, whose first word is this address again (VA).
    pub fs_base: u64,
    /// Base of the segment gs (VA).
    pub gs_base: u64,
    /// The system call that the thread is in, by number, or `None` if it was stopped outside of one. Numbers of Windows differ between
    /// its versions.
    pub system_call: Option<u64>,
}

/// Offset of `pr_cursig` in `struct elf_prstatus` of Linux (include/linux/elfcore.h), in bytes.
const SIGNAL: usize = 12;
/// Offset of `pr_pid`.
const ID: usize = 32;
/// Offset of `pr_reg`, a `struct user_regs_struct` (arch/x86/include/asm/user_64.h).
const REGISTERS: usize = 112;
/// The order of `user_regs_struct`, without the fields of other names, which have `None`.
const ORDER: [Option<Gpr>; 20] = [
    Some(Gpr::R15),
    Some(Gpr::R14),
    Some(Gpr::R13),
    Some(Gpr::R12),
    Some(Gpr::Rbp),
    Some(Gpr::Rbx),
    Some(Gpr::R11),
    Some(Gpr::R10),
    Some(Gpr::R9),
    Some(Gpr::R8),
    Some(Gpr::Rax),
    Some(Gpr::Rcx),
    Some(Gpr::Rdx),
    Some(Gpr::Rsi),
    Some(Gpr::Rdi),
    None, // orig_rax
    None, // rip
    None, // cs
    None, // eflags
    Some(Gpr::Rsp),
];
const ORIGINAL_RAX: usize = REGISTERS + 15 * 8;
const RIP: usize = REGISTERS + 16 * 8;
const FLAGS: usize = REGISTERS + 18 * 8;
const FS_BASE: usize = REGISTERS + 21 * 8;
const GS_BASE: usize = REGISTERS + 22 * 8;
/// Offset of xmm6 in `struct user_i387_struct`, which is the image of FXSAVE.
const XMM6: usize = 160 + 6 * 16;

/// Offsets in `CONTEXT` for x64 (winnt.h of the Windows SDK), in bytes: eflags, rax and the other registers in the order of their numbers,
/// rip, xmm6.
const CONTEXT_FLAGS: usize = 0x44;
const CONTEXT_RAX: usize = 0x78;
const CONTEXT_RIP: usize = 0xF8;
const CONTEXT_XMM6: usize = 0x200;

impl Thread {
    /// Reads a note of kind NT_PRSTATUS.
    pub(crate) fn read(status: Fields<'_>) -> Result<Self, DumpError> {
        let mut registers = Registers { rip: status.u64(RIP)?, ..Registers::default() };
        for (index, register) in ORDER.iter().enumerate() {
            if let Some(register) = register {
                registers.set(*register, status.u64(REGISTERS + index * 8)?);
            }
        }
        let original = status.u64(ORIGINAL_RAX)?;
        Ok(Self {
            id: status.u32(ID)?,
            signal: status.u16(SIGNAL)?,
            registers,
            flags: status.u64(FLAGS)?,
            fs_base: status.u64(FS_BASE)?,
            gs_base: status.u64(GS_BASE)?,
            // The kernel's mark of "no system call" is -1.
            system_call: (original.cast_signed() >= 0).then_some(original),
        })
    }

    /// Reads a `CONTEXT` of Windows, without the system call. `block`: the thread's environment block (VA).
    pub(crate) fn of_context(id: u32, block: u64, context: Fields<'_>) -> Result<Self, DumpError> {
        let rip = context.u64(CONTEXT_RIP)?;
        let mut registers = Registers { rip, ..Registers::default() };
        for (index, register) in Gpr::ALL.into_iter().enumerate() {
            registers.set(register, context.u64(CONTEXT_RAX + index * 8)?);
        }
        for (index, value) in registers.xmm.iter_mut().enumerate() {
            *value = context.u128(CONTEXT_XMM6 + index * 16)?;
        }
        Ok(Self {
            id,
            signal: 0,
            registers,
            flags: context.u32(CONTEXT_FLAGS)?.into(),
            fs_base: 0,
            gs_base: block,
            system_call: None,
        })
    }

    /// Adds the vector registers of a note of kind NT_FPREGSET.
    pub(crate) fn add_vectors(&mut self, vectors: Fields<'_>) -> Result<(), DumpError> {
        for (index, value) in self.registers.xmm.iter_mut().enumerate() {
            *value = vectors.u128(XMM6 + index * 16)?;
        }
        Ok(())
    }
}
