//! What a recording needs to know of a runtime's own structures, by version.
//!
//! | fact | source |
//! |---|---|
//! | fields of a Thread object | `OFFSETOF__Thread__*` in asmconstants.h, dotnet/coreclr v3.1.23; the same in a process of .NET 8.0.4, 8 bytes lower in one of 9.0.7. Each chain that is read is held against the bounds of its stack |
//! | order of the Frames' vtables | vptr_list.h, v3.1.23; of .NET 8 and 9 by the kinds of Frames in the recordings of `fixtures/clr` |
//! | fields of Frames | contract §3.5 |

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
    /// The table of addresses that the runtime has for debuggers.
    pub(super) table: Table,
}

/// The runtime's table for debuggers, `DacGlobals`: among others the addresses of vtables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// True if its entries are addresses of 8 bytes, false if they are RVAs of 4 bytes.
    pub(super) is_wide: bool,
    /// The Frames with a vtable in the table, from HelperMethodFrame on, in its order.
    pub(super) frames: &'static [Kind],
    /// Number of vtables of other classes after the last Frame.
    pub(super) behind: usize,
}

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

const fn kind(name: &'static str, shape: Shape) -> Kind {
    Kind { name, shape }
}

/// The Frames before HelperMethodFrame, the last one first: the same in all versions.
pub(super) const BEFORE: &[Kind] = &[
    kind("FuncEvalFrame", Shape::Mark),
    kind("FaultingExceptionFrame", Shape::Faulting),
    kind("DebuggerU2MCatchHandlerFrame", Shape::Mark),
    kind("DebuggerExitFrame", Shape::Mark),
    kind("DebuggerSecurityCodeMarkFrame", Shape::Mark),
    kind("DebuggerClassInitMarkFrame", Shape::Mark),
];

/// The same in CoreCLR 3.1, which has a GCFrame and a ContextTransitionFrame, too.
pub(super) const BEFORE_3_1: &[Kind] = &[
    kind("GCFrame", Shape::Mark),
    BEFORE[0],
    BEFORE[1],
    BEFORE[2],
    BEFORE[3],
    BEFORE[4],
    BEFORE[5],
    kind("ContextTransitionFrame", Shape::Mark),
];

const HELPERS: [Kind; 5] = [
    kind("HelperMethodFrame", Shape::Helper),
    kind("HelperMethodFrame_1OBJ", Shape::Helper),
    kind("HelperMethodFrame_2OBJ", Shape::Helper),
    kind("HelperMethodFrame_3OBJ", Shape::Helper),
    kind("HelperMethodFrame_PROTECTOBJ", Shape::Helper),
];
const HIJACK: Kind = kind("HijackFrame", Shape::Hijack);
const INLINED: Kind = kind("InlinedCallFrame", Shape::InlinedCall);
const MULTICAST: Kind = kind("MulticastFrame", Shape::Transition);
const CALLI: Kind = kind("PInvokeCalliFrame", Shape::Transition);
const PRESTUB: Kind = kind("PrestubMethodFrame", Shape::Transition);
const BY_REFS: Kind = kind("ProtectByRefsFrame", Shape::Mark);
const VALUE_CLASS: Kind = kind("ProtectValueClassFrame", Shape::Mark);
const RESUMABLE: Kind = kind("ResumableFrame", Shape::Resumable);
const REDIRECTED: Kind = kind("RedirectedThreadFrame", Shape::Resumable);
const DISPATCH: Kind = kind("StubDispatchFrame", Shape::Transition);
const COUNTING: Kind = kind("CallCountingHelperFrame", Shape::Transition);
const EXTERNAL: Kind = kind("ExternalMethodFrame", Shape::Transition);
const DYNAMIC: Kind = kind("DynamicHelperFrame", Shape::Transition);
const FILTER: Kind = kind("ExceptionFilterFrame", Shape::Mark);

const FRAMES_3_1: [Kind; 21] = [
    HELPERS[0],
    HELPERS[1],
    HELPERS[2],
    HELPERS[3],
    HELPERS[4],
    HIJACK,
    INLINED,
    kind("SecureDelegateFrame", Shape::Transition),
    MULTICAST,
    CALLI,
    PRESTUB,
    BY_REFS,
    VALUE_CLASS,
    RESUMABLE,
    REDIRECTED,
    DISPATCH,
    EXTERNAL,
    DYNAMIC,
    kind("StubHelperFrame", Shape::Transition),
    kind("TailCallFrame", Shape::TailCall),
    FILTER,
];

const FRAMES_8: [Kind; 19] = [
    HELPERS[0],
    HELPERS[1],
    HELPERS[2],
    HELPERS[3],
    HELPERS[4],
    HIJACK,
    INLINED,
    MULTICAST,
    CALLI,
    PRESTUB,
    BY_REFS,
    VALUE_CLASS,
    RESUMABLE,
    REDIRECTED,
    DISPATCH,
    COUNTING,
    EXTERNAL,
    DYNAMIC,
    FILTER,
];

const FRAMES_9: [Kind; 18] = [
    HELPERS[0],
    HELPERS[1],
    HELPERS[2],
    HELPERS[3],
    HELPERS[4],
    HIJACK,
    INLINED,
    CALLI,
    PRESTUB,
    BY_REFS,
    VALUE_CLASS,
    RESUMABLE,
    REDIRECTED,
    DISPATCH,
    COUNTING,
    EXTERNAL,
    DYNAMIC,
    FILTER,
];

impl Layout {
    /// Returns the layout of the runtime with this version, as `GetRuntimeInformation` says it;
    /// `None` if its calls could not be replayed.
    pub(super) const fn of([major, minor, _]: [u16; 3]) -> Option<Self> {
        let core_3_1 = Self {
            generation: "coreclr-3.1-unix",
            cooperative: 0xC,
            top_frame: 0x10,
            call_site_sp: 0x20,
            table: Table { is_wide: false, frames: &FRAMES_3_1, behind: 9 },
        };
        match (major, minor) {
            // 3.1 says 4.0, as .NET Framework 4 does.
            (4, 0) | (3, 1) => Some(core_3_1),
            (8, _) => Some(Self {
                generation: "net8-unix",
                table: Table { is_wide: true, frames: &FRAMES_8, behind: 9 },
                ..core_3_1
            }),
            (9, _) => Some(Self {
                generation: "net9-unix",
                cooperative: 4,
                top_frame: 8,
                call_site_sp: 0x18,
                table: Table { is_wide: true, frames: &FRAMES_9, behind: 9 },
            }),
            _ => None,
        }
    }

    /// Returns the Frames before HelperMethodFrame, the last one first.
    pub(super) const fn before(&self) -> &'static [Kind] {
        if self.table.is_wide { BEFORE } else { BEFORE_3_1 }
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
    /// Size of a TransitionBlock, whose last word is the return address.
    pub(in crate::record) const TRANSITION_BLOCK: u64 = 0x68;
    /// Rip and Rsp in the MachState of a HelperMethodFrame.
    pub(in crate::record) const MACHINE_RIP: u64 = 0x30;
    pub(in crate::record) const MACHINE_RSP: u64 = 0x38;
    /// Pointers to the saved registers there, and the values of those whose pointer is NULL.
    pub(in crate::record) const MACHINE_POINTERS: u64 = 0x70;
    pub(in crate::record) const MACHINE_VALUES: u64 = 0xA8;
    /// `m_pRetAddr`: 0 until the MachState is complete.
    pub(in crate::record) const MACHINE_RETURN: u64 = 0xA0;
    /// Registers and return address in HijackArgs.
    pub(in crate::record) const HIJACKED_REGISTERS: u64 = 0x10;
    pub(in crate::record) const HIJACKED_RETURN: u64 = 0x40;
    /// ContextFlags, rax and rip in a CONTEXT.
    pub(in crate::record) const CONTEXT_FLAGS: u64 = 0x30;
    pub(in crate::record) const CONTEXT_RAX: u64 = 0x78;
    pub(in crate::record) const CONTEXT_RIP: u64 = 0xF8;
}
