//! Offsets (in bytes) of the fields of Frames, for each generation (contract §3.5).

use crate::generation::Generation;
use clr_unwind::Gpr;

/// `FRAME_TOP`: `m_Next` of the last Frame, and the start of an empty chain.
pub const FRAME_TOP: u64 = u64::MAX;

/// `m_Next`; the vtable or number precedes it.
pub const NEXT: u64 = 8;
/// The GS cookie, before the Frame itself.
pub const COOKIE: u64 = 0_u64.wrapping_sub(8);

/// `m_Datum` of an InlinedCallFrame: a method, unless bit 0 is set.
pub const DATUM: u64 = 0x10;
/// Bits of the datum that belong to no method: they mark calls of exception handling and of stubs.
pub const DATUM_MARKS: u64 = 7;
/// `m_pTransitionBlock` of a transition Frame.
pub const TRANSITION_BLOCK: u64 = 0x10;
/// `m_pMD` of a FramedMethodFrame.
pub const METHOD: u64 = 0x18;
/// `m_pMD` of a HelperMethodFrame: 0 for a JIT helper, and for an FCall whose method has not been
/// looked up.
pub const HELPER_METHOD: u64 = 0x10;
/// The attributes of a HelperMethodFrame.
pub const HELPER_ATTRIBUTES: u64 = 0x18;
/// `m_FCallEntry` of a HelperMethodFrame: 0 for a JIT helper.
pub const FCALL_ENTRY: u64 = 0x28;
/// `m_ReturnAddress` of a HijackFrame. (In a TailCallFrame it follows the registers.)
pub const RETURN_ADDRESS: u64 = 0x10;
/// `m_Args` of a HijackFrame: pointer to the HijackArgs.
pub const HIJACK_ARGS: u64 = 0x20;
/// `m_Regs` of a ResumableFrame: pointer to a CONTEXT. The simulated FuncEvalFrame has the same
/// field.
pub const REGS: u64 = 0x10;
/// `m_ctx` of a FaultingExceptionFrame: a CONTEXT.
pub const FAULTING_CONTEXT: u64 = 0x20;
/// The CONTEXT in a SoftwareExceptionFrame.
pub const SOFTWARE_CONTEXT: u64 = 0x120;
/// The saved registers of a TailCallFrame; the return address follows them.
pub const TAIL_CALL_REGISTERS: u64 = 0x18;
/// The saved return address of the simulated UnmanagedToManagedFrame.
pub const UNMANAGED_CALLER: u64 = 0x18;

/// Attribute of a HelperMethodFrame: there are two native frames between it and managed code.
pub const CAPTURE_DEPTH_2: u32 = 0x10;
/// Attribute of a HelperMethodFrame: there are no more native frames than its kind implies.
pub const EXACT_DEPTH: u32 = 0x20;

/// `ContextFlags` in a CONTEXT.
pub const CONTEXT_FLAGS: u64 = 0x30;
/// rax in a CONTEXT; the other registers follow by number.
pub const CONTEXT_RAX: u64 = 0x78;
/// rip in a CONTEXT.
pub const CONTEXT_RIP: u64 = 0xF8;
/// xmm6 in a CONTEXT; the other registers follow by number.
pub const CONTEXT_XMM6: u64 = 0x200;

/// CalleeSavedRegisters in memory order (contract §1.7).
const CALLEE_SAVED_WINDOWS: &[Gpr] =
    &[Gpr::Rdi, Gpr::Rsi, Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];
const CALLEE_SAVED_UNIX: &[Gpr] = &[Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15, Gpr::Rbx, Gpr::Rbp];

/// Layout properties that depend on the calling convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameConvention {
    /// The callee-saved registers, in the order of the runtime's structures.
    pub callee_saved: &'static [Gpr],
    /// Size in bytes of a TransitionBlock. Its last word is the return address; the callee-saved
    /// registers precede it.
    pub transition_block_size: u64,
    /// The MachState of a HelperMethodFrame.
    pub machine_state: MachineStateLayout,
}

/// Offsets of the fields of a HelperMethodFrame's MachState, relative to the Frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineStateLayout {
    /// Rip after completion.
    pub rip: u64,
    /// Rsp after completion.
    pub rsp: u64,
    /// The callee-saved registers as captured.
    pub captured: u64,
    /// Pointers to the save locations of the callee-saved registers.
    pub pointers: u64,
    /// `m_pRetAddr`: 0 before completion.
    pub return_slot: u64,
    /// Values of registers whose pointer is null, on Unix.
    pub unwound: Option<u64>,
    /// Rip as captured: a return address into the helper.
    pub captured_rip: u64,
    /// Rsp as captured.
    pub captured_rsp: u64,
}

const WINDOWS: FrameConvention = FrameConvention {
    callee_saved: CALLEE_SAVED_WINDOWS,
    transition_block_size: 0x48,
    machine_state: MachineStateLayout {
        rip: 0x30,
        rsp: 0x38,
        captured: 0x40,
        pointers: 0x80,
        return_slot: 0xC0,
        unwound: None,
        captured_rip: 0xC8,
        captured_rsp: 0xD0,
    },
};

const UNIX: FrameConvention = FrameConvention {
    callee_saved: CALLEE_SAVED_UNIX,
    transition_block_size: 0x68,
    machine_state: MachineStateLayout {
        rip: 0x30,
        rsp: 0x38,
        captured: 0x40,
        pointers: 0x70,
        return_slot: 0xA0,
        unwound: Some(0xA8),
        captured_rip: 0xD8,
        captured_rsp: 0xE0,
    },
};

impl FrameConvention {
    /// Returns the convention of a generation.
    pub const fn of(generation: Generation) -> Self {
        if generation.is_unix() { UNIX } else { WINDOWS }
    }

    /// Returns the size in bytes of the saved registers.
    pub const fn saved_size(&self) -> u64 {
        8 * self.callee_saved.len() as u64
    }
}
