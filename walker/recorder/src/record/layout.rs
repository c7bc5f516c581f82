//! Layouts of a runtime's own structures that a recording reads, by version.
//!
//! | fact | source |
//! |---|---|
//! | fields of a Thread object | `OFFSETOF__Thread__*` in asmconstants.h, dotnet/coreclr v3.1.23; the same in a process of .NET 8.0.4, 8 bytes lower in one of 9.0.7. Each chain that is read is held against the bounds of its stack |
//! | order of the Frames' vtables | vptr_list.h, v3.1.23; of .NET 8 and 9 by the kinds of Frames in the recordings of `fixtures/clr` |
//! | fields of Frames | contract §3.5 |
//! | stack pointer in HijackArgs of .NET 8 on Windows | its recordings in `fixtures/clr` |

use clr_walker::registers::{Convention, Gpr};
use clr_walker::unwind::Rules;

/// The layout of a runtime whose calls can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The runtime's name in recordings.
    pub(super) generation: &'static str,
    /// Offset of `m_fPreemptiveGCDisabled` in a Thread object, in bytes.
    pub(super) cooperative: u64,
    /// Offset of `m_pFrame` in a Thread object, in bytes.
    pub(super) top_frame: u64,
    /// Offset of `m_pCallSiteSP` in an InlinedCallFrame, in bytes; the return address and the frame
    /// pointer follow it.
    pub(super) call_site_sp: u64,
    /// True if the entries of the runtime's table for debuggers, `DacGlobals`, are addresses of 8
    /// bytes, false if they are RVAs of 4 bytes.
    pub(super) has_wide_table: bool,
    /// The bit of the version in [`FRAMES`].
    version: u8,
    /// The places of saved registers.
    pub(super) saved: &'static SavedRegisters,
    /// True if the stack pointer follows the registers in HijackArgs.
    pub(super) has_hijacked_sp: bool,
}

/// The places of saved registers, which a calling convention determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SavedRegisters {
    pub(super) convention: Convention,
    /// The runtime's own unwinder.
    pub(super) rules: Rules,
    /// The registers in a TransitionBlock, in HijackArgs and in a MachState, in their order.
    pub(super) registers: &'static [Gpr],
    /// Size of a TransitionBlock in bytes; its last word is the return address.
    pub(super) transition_block: u64,
    /// Offset of the pointers to the saved registers in the MachState of a HelperMethodFrame, in bytes.
    pub(super) machine_pointers: u64,
    /// Offset of the values of those whose pointer is NULL.
    pub(super) machine_values: Option<u64>,
    /// Offset of `m_pRetAddr`: 0 until the MachState is complete.
    pub(super) machine_return: u64,
    /// Offset of the registers in HijackArgs.
    pub(super) hijacked: u64,
}

const UNIX: SavedRegisters = SavedRegisters {
    convention: Convention::SystemV,
    rules: Rules::CoreClrUnix,
    registers: &[Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15, Gpr::Rbx, Gpr::Rbp],
    transition_block: 0x68,
    machine_pointers: 0x70,
    machine_values: Some(0xA8),
    machine_return: 0xA0,
    hijacked: 0x10,
};

const WINDOWS: SavedRegisters = SavedRegisters {
    convention: Convention::WindowsX64,
    rules: Rules::CoreClr,
    registers: &[Gpr::Rdi, Gpr::Rsi, Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15],
    transition_block: 0x48,
    machine_pointers: 0x80,
    machine_values: None,
    machine_return: 0xC0,
    hijacked: 8,
};

/// The kind of a Frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Name of the class.
    pub(super) name: &'static str,
    pub(super) shape: Shape,
}

/// The way in which a Frame leads to a managed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    InlinedCall,
    /// By a TransitionBlock.
    Transition,
    /// By a MachState that is completed on demand.
    Helper,
    Hijack,
    /// By a pointer to a CONTEXT.
    Resumable,
    /// By a CONTEXT in the Frame.
    Faulting,
    /// By saved registers and a return address in the Frame.
    TailCall,
    /// Not at all.
    Mark,
}

/// CoreCLR 3.1, .NET 8, .NET 9.
const C31: u8 = 1;
const N8: u8 = 2;
const N9: u8 = 4;
const ALL: u8 = C31 | N8 | N9;

/// The Frames with a vtable in the runtime's table for debuggers, in its order, and the versions that
/// have them. The table has vtables of other classes before and after them.
const FRAMES: [(&str, Shape, u8); 30] = [
    ("ContextTransitionFrame", Shape::Mark, C31),
    ("DebuggerClassInitMarkFrame", Shape::Mark, ALL),
    ("DebuggerSecurityCodeMarkFrame", Shape::Mark, ALL),
    ("DebuggerExitFrame", Shape::Mark, ALL),
    ("DebuggerU2MCatchHandlerFrame", Shape::Mark, ALL),
    ("FaultingExceptionFrame", Shape::Faulting, ALL),
    ("FuncEvalFrame", Shape::Mark, ALL),
    ("GCFrame", Shape::Mark, C31),
    ("HelperMethodFrame", Shape::Helper, ALL),
    ("HelperMethodFrame_1OBJ", Shape::Helper, ALL),
    ("HelperMethodFrame_2OBJ", Shape::Helper, ALL),
    ("HelperMethodFrame_3OBJ", Shape::Helper, ALL),
    ("HelperMethodFrame_PROTECTOBJ", Shape::Helper, ALL),
    ("HijackFrame", Shape::Hijack, ALL),
    ("InlinedCallFrame", Shape::InlinedCall, ALL),
    ("SecureDelegateFrame", Shape::Transition, C31),
    ("MulticastFrame", Shape::Transition, C31 | N8),
    ("PInvokeCalliFrame", Shape::Transition, ALL),
    ("PrestubMethodFrame", Shape::Transition, ALL),
    ("ProtectByRefsFrame", Shape::Mark, ALL),
    ("ProtectValueClassFrame", Shape::Mark, ALL),
    ("ResumableFrame", Shape::Resumable, ALL),
    ("RedirectedThreadFrame", Shape::Resumable, ALL),
    ("StubDispatchFrame", Shape::Transition, ALL),
    ("CallCountingHelperFrame", Shape::Transition, N8 | N9),
    ("ExternalMethodFrame", Shape::Transition, ALL),
    ("DynamicHelperFrame", Shape::Transition, ALL),
    ("StubHelperFrame", Shape::Transition, C31),
    ("TailCallFrame", Shape::TailCall, C31),
    ("ExceptionFilterFrame", Shape::Mark, ALL),
];

/// Number of vtables of other classes after those of Frames.
pub(super) const BEHIND: usize = 9;

impl Layout {
    /// Returns the layout of the runtime with this version, as `GetRuntimeInformation` says it, and
    /// calling convention; `None` if its calls could not be replayed.
    pub(super) const fn of([major, minor, _]: [u16; 3], convention: Convention) -> Option<Self> {
        let is_windows = matches!(convention, Convention::WindowsX64);
        let core_3_1 = Self {
            generation: if is_windows { "coreclr-3.1-windows" } else { "coreclr-3.1-unix" },
            cooperative: 0xC,
            top_frame: 0x10,
            call_site_sp: 0x20,
            has_wide_table: false,
            version: C31,
            saved: if is_windows { &WINDOWS } else { &UNIX },
            has_hijacked_sp: false,
        };
        match (major, minor) {
            // 3.1 says 4.0, as .NET Framework 4 does.
            (4, 0) | (3, 1) => Some(core_3_1),
            (8, _) => Some(Self {
                generation: if is_windows { "net8-windows" } else { "net8-unix" },
                has_wide_table: true,
                version: N8,
                has_hijacked_sp: is_windows,
                ..core_3_1
            }),
            (9, _) if !is_windows => Some(Self {
                generation: "net9-unix",
                cooperative: 4,
                top_frame: 8,
                call_site_sp: 0x18,
                has_wide_table: true,
                version: N9,
                ..core_3_1
            }),
            _ => None,
        }
    }

    /// Returns the kinds of the runtime's Frames, in the order of its table.
    pub(super) fn frames(&self) -> impl DoubleEndedIterator<Item = Kind> {
        let version = self.version;
        let known = FRAMES.iter().filter(move |(_, _, versions)| versions & version != 0);
        known.map(|(name, shape, _)| Kind { name, shape: *shape })
    }
}

/// Offsets in Frames, in bytes (contract §3.5).
pub(super) mod field {
    /// `m_Next`, after the vtable.
    pub(in crate::record) const NEXT: u64 = 8;
    /// `m_Datum` of an InlinedCallFrame, `m_pTransitionBlock`, the method of a HelperMethodFrame,
    /// the return address of a HijackFrame, the CONTEXT of a ResumableFrame.
    pub(in crate::record) const FIRST: u64 = 0x10;
    /// `m_pMD` of a FramedMethodFrame.
    pub(in crate::record) const METHOD: u64 = 0x18;
    /// The saved registers of a TailCallFrame, which the return address follows.
    pub(in crate::record) const TAIL_CALL: u64 = 0x18;
    /// `m_Args` of a HijackFrame; the CONTEXT in a FaultingExceptionFrame.
    pub(in crate::record) const ARGUMENTS: u64 = 0x20;
    /// Rip and Rsp in the MachState of a HelperMethodFrame.
    pub(in crate::record) const MACHINE_RIP: u64 = 0x30;
    pub(in crate::record) const MACHINE_RSP: u64 = 0x38;
    /// ContextFlags, rax and rip in a CONTEXT.
    pub(in crate::record) const CONTEXT_FLAGS: u64 = 0x30;
    pub(in crate::record) const CONTEXT_RAX: u64 = 0x78;
    pub(in crate::record) const CONTEXT_RIP: u64 = 0xF8;
}
