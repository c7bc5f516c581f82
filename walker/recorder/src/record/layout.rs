//! Layouts of a runtime's own structures that a recording reads, by version.
//!
//! | fact | source |
//! |---|---|
//! | fields of a Thread object | `OFFSETOF__Thread__*` in asmconstants.h, dotnet/coreclr v3.1.23; the same in a process of .NET 8.0.4, 8 bytes lower in one of 9.0.7. Each chain that is read is held against the bounds of its stack |
//! | order of the Frames' vtables | vptr_list.h, v3.1.23; of .NET 8 and 9 by the kinds of Frames in the recordings of `fixtures/clr` |
//! | fields of Frames and of a Thread object of .NET 10 and 11, numbers of their Frames | stated by the runtime: its data contracts. Read in each process; those of 10.0.9 for Linux and of 11.0.0 for Windows are in the tests |
//! | fields of other Frames | contract §3.5 |
//! | stack pointer in HijackArgs on Windows | .NET 8: its recordings in `fixtures/clr`; 10 and 11 state it; 9: between them |

use clr_unwind::compat::Rules;
use clr_unwind::{Convention, Gpr};
use clr_walker::jitted::contracts::ContractDescriptor;

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
    /// The bit of the version in [`FRAMES`].
    version: u8,
    /// The places of saved registers.
    pub(super) saved: &'static SavedRegisters,
    /// True if the stack pointer follows the registers in HijackArgs.
    pub(super) has_hijacked_sp: bool,
    /// Offset of the CONTEXT in a SoftwareExceptionFrame, in bytes.
    pub(super) software_context: u64,
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

const UNIX_10: SavedRegisters = SavedRegisters { hijacked: 0x18, ..UNIX };

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

const WINDOWS_10: SavedRegisters = SavedRegisters { hijacked: 0x10, ..WINDOWS };

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
    /// By some registers of a CONTEXT in the Frame.
    Software,
    /// By saved registers and a return address in the Frame.
    TailCall,
    /// Not at all.
    Mark,
}

/// CoreCLR 3.1, .NET 6 to 8, .NET 9.
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

/// The Frames of .NET 10 and 11, which have a number in place of a vtable: the name of the global value in the
/// runtime's data contracts, which begins with that of the Frame. Numbers differ by version and by system.
const NUMBERED: [(&str, Shape); 19] = [
    ("InlinedCallFrameIdentifier", Shape::InlinedCall),
    ("ResumableFrameIdentifier", Shape::Resumable),
    ("RedirectedThreadFrameIdentifier", Shape::Resumable),
    ("FaultingExceptionFrameIdentifier", Shape::Faulting),
    ("SoftwareExceptionFrameIdentifier", Shape::Software),
    ("FuncEvalFrameIdentifier", Shape::Mark),
    ("PInvokeCalliFrameIdentifier", Shape::Transition),
    ("HijackFrameIdentifier", Shape::Hijack),
    ("PrestubMethodFrameIdentifier", Shape::Transition),
    ("CallCountingHelperFrameIdentifier", Shape::Transition),
    ("StubDispatchFrameIdentifier", Shape::Transition),
    // .NET 11 for Windows alone.
    ("ResolveHelperFrameIdentifier", Shape::Transition),
    ("ExternalMethodFrameIdentifier", Shape::Transition),
    ("DynamicHelperFrameIdentifier", Shape::Transition),
    ("ProtectValueClassFrameIdentifier", Shape::Mark),
    ("DebuggerClassInitMarkFrameIdentifier", Shape::Mark),
    ("DebuggerExitFrameIdentifier", Shape::Mark),
    ("DebuggerU2MCatchHandlerFrameIdentifier", Shape::Mark),
    ("ExceptionFilterFrameIdentifier", Shape::Mark),
];

/// Returns the name of a saved register in the data contracts.
const fn stated_name(register: Gpr) -> Option<&'static str> {
    Some(match register {
        Gpr::Rdi => "Rdi",
        Gpr::Rsi => "Rsi",
        Gpr::Rbx => "Rbx",
        Gpr::Rbp => "Rbp",
        Gpr::R12 => "R12",
        Gpr::R13 => "R13",
        Gpr::R14 => "R14",
        Gpr::R15 => "R15",
        _ => return None,
    })
}

/// Number of vtables of other classes after those of Frames.
pub(super) const BEHIND: usize = 9;

impl Layout {
    /// Returns the layout of the runtime with this version, as `GetRuntimeInformation` says it, and
    /// calling convention; `None` if its calls could not be replayed. `stated`: what it says itself, from
    /// .NET 9 on.
    pub(super) fn of(
        version: [u16; 3],
        convention: Convention,
        stated: Option<&ContractDescriptor>,
    ) -> Option<Self> {
        let known = Self::of_version(version, convention)?;
        match stated {
            Some(stated) => known.as_stated(stated),
            None => Some(known).filter(|known| !known.is_numbered()),
        }
    }

    const fn of_version([major, minor, _]: [u16; 3], convention: Convention) -> Option<Self> {
        let is_windows = matches!(convention, Convention::WindowsX64);
        let core_3_1 = Self {
            generation: if is_windows { "coreclr-3.1-windows" } else { "coreclr-3.1-unix" },
            cooperative: 0xC,
            top_frame: 0x10,
            call_site_sp: 0x20,
            version: C31,
            saved: if is_windows { &WINDOWS } else { &UNIX },
            has_hijacked_sp: false,
            software_context: 0,
        };
        match (major, minor) {
            // 3.1 says 4.0, as .NET Framework 4 does.
            (4, 0) | (3, 1) => Some(core_3_1),
            // Calls of .NET 6 are replayed as those of .NET 8.
            (6 | 8, _) => Some(Self {
                generation: if is_windows { "net8-windows" } else { "net8-unix" },
                version: N8,
                has_hijacked_sp: is_windows,
                ..core_3_1
            }),
            (9, _) => Some(Self {
                generation: if is_windows { "net9-windows" } else { "net9-unix" },
                cooperative: 4,
                top_frame: 8,
                call_site_sp: 0x18,
                version: N9,
                has_hijacked_sp: is_windows,
                ..core_3_1
            }),
            (10 | 11, 0) => Some(Self {
                generation: match (major, is_windows) {
                    (10, true) => "net10-windows",
                    (10, false) => "net10-unix",
                    (_, true) => "net11-windows",
                    (_, false) => "net11-unix",
                },
                version: 0,
                saved: if is_windows { &WINDOWS_10 } else { &UNIX_10 },
                has_hijacked_sp: is_windows,
                ..core_3_1
            }),
            _ => None,
        }
    }

    /// Returns true if Frames have numbers in place of vtables, which only the runtime itself states.
    pub(super) const fn is_numbered(&self) -> bool {
        self.version == 0
    }

    /// Returns the layout with the offsets that the runtime states, where it does. `None` if it states
    /// others than its version has where all versions have had the same.
    fn as_stated(self, stated: &ContractDescriptor) -> Option<Self> {
        let at = |type_name, field| stated.field(type_name, field).ok().map(u64::from);
        let mut layout = self;
        // .NET 9 states these two alone.
        layout.cooperative = at("Thread", "PreemptiveGCDisabled")?;
        layout.top_frame = at("Thread", "Frame")?;
        if !self.is_numbered() {
            return Some(layout);
        }
        layout.call_site_sp = at("InlinedCallFrame", "CallSiteSP")?;
        layout.software_context = at("SoftwareExceptionFrame", "TargetContext")?;
        let SavedRegisters { transition_block, hijacked, registers, .. } = *self.saved;
        let size = 8 * registers.len() as u64;
        let hijacked_sp = hijacked + size;
        let args_end = hijacked_sp + 8 + if self.has_hijacked_sp { 8 } else { 0 };
        let is_as_known = [
            ("Frame", "Next", field::NEXT),
            ("InlinedCallFrame", "CallerReturnAddress", layout.call_site_sp + 8),
            ("InlinedCallFrame", "CalleeSavedFP", layout.call_site_sp + 16),
            ("FramedMethodFrame", "TransitionBlockPtr", field::FIRST),
            ("TransitionBlock", "!", transition_block),
            ("TransitionBlock", "ReturnAddress", transition_block - 8),
            ("TransitionBlock", "CalleeSavedRegisters", transition_block - 8 - size),
            ("HijackFrame", "ReturnAddress", field::FIRST),
            ("HijackFrame", "HijackArgsPtr", field::ARGUMENTS),
            ("HijackArgs", "CalleeSavedRegisters", hijacked),
            ("HijackArgs", "!", args_end),
            ("ResumableFrame", "TargetContextPtr", field::FIRST),
            ("FaultingExceptionFrame", "TargetContext", field::ARGUMENTS),
            ("CalleeSavedRegisters", "!", size),
        ]
        .into_iter()
        .all(|(type_name, field, known)| at(type_name, field) == Some(known));
        let has_sp = at("HijackArgs", "Rsp") == self.has_hijacked_sp.then_some(hijacked_sp);
        let are_in_order = registers.iter().zip((0..).step_by(8)).all(|(register, known)| {
            let field = stated_name(*register);
            field.and_then(|field| at("CalleeSavedRegisters", field)) == Some(known)
        });
        (is_as_known && has_sp && are_in_order).then_some(layout)
    }

    /// Returns the numbers of Frames, and their kinds. Those that the runtime does not state are left out.
    pub(super) fn numbered(stated: &ContractDescriptor) -> impl Iterator<Item = (u64, Kind)> + '_ {
        NUMBERED.into_iter().filter_map(|(global, shape)| {
            let name = global.strip_suffix("Identifier")?;
            Some((stated.global(global).ok()?, Kind { name, shape }))
        })
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
    pub(crate) const NEXT: u64 = 8;
    /// `m_Datum` of an InlinedCallFrame, `m_pTransitionBlock`, the method of a HelperMethodFrame,
    /// the return address of a HijackFrame, the CONTEXT of a ResumableFrame.
    pub(crate) const FIRST: u64 = 0x10;
    /// `m_pMD` of a FramedMethodFrame.
    pub(crate) const METHOD: u64 = 0x18;
    /// The saved registers of a TailCallFrame, which the return address follows.
    pub(crate) const TAIL_CALL: u64 = 0x18;
    /// `m_Args` of a HijackFrame; the CONTEXT in a FaultingExceptionFrame.
    pub(crate) const ARGUMENTS: u64 = 0x20;
    /// Rip and Rsp in the MachState of a HelperMethodFrame.
    pub(crate) const MACHINE_RIP: u64 = 0x30;
    pub(crate) const MACHINE_RSP: u64 = 0x38;
    /// ContextFlags, rax and rip in a CONTEXT.
    pub(crate) const CONTEXT_FLAGS: u64 = 0x30;
    pub(crate) const CONTEXT_RAX: u64 = 0x78;
    pub(crate) const CONTEXT_RIP: u64 = 0xF8;
}

/// Returns a descriptor with this text.
#[cfg(test)]
pub(super) fn stated(text: &str) -> ContractDescriptor {
    use clr_unwind::{Segment, Segments};
    const AT: u64 = 0x1000;
    let text_at: u64 = 0x2000;
    let len = text.len() as u32;
    let bytes = [
        &b"DNCCDAC\0"[..],
        &1_u32.to_le_bytes(),
        &len.to_le_bytes(),
        &text_at.to_le_bytes(),
        &0_u64.to_le_bytes(),
        &0_u64.to_le_bytes(),
    ]
    .concat();
    let parts = [Segment::new(AT, &bytes), Segment::new(text_at, text.as_bytes())];
    ContractDescriptor::read(&Segments::new(parts).unwrap(), AT).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of the data contracts of .NET 10.0.9 on Linux that are read here.
    const STATED_10: &str = r#"{"version":0,"baseline":"empty","types":{
        "Thread":{"PreemptiveGCDisabled":4,"Frame":8,"LastThrownObject":[336,"GCHandle"]},
        "Frame":{"Next":8},
        "InlinedCallFrame":{"!":56,"CallSiteSP":24,"CallerReturnAddress":32,"CalleeSavedFP":40},
        "SoftwareExceptionFrame":{"!":3520,"TargetContext":288,"ReturnAddress":16},
        "FramedMethodFrame":{"!":32,"TransitionBlockPtr":16},
        "TransitionBlock":{"!":104,"ReturnAddress":96,"CalleeSavedRegisters":48},
        "ResumableFrame":{"!":24,"TargetContextPtr":16},
        "HijackFrame":{"!":40,"ReturnAddress":16,"HijackArgsPtr":32},
        "HijackArgs":{"!":80,"CalleeSavedRegisters":24},
        "FaultingExceptionFrame":{"!":3280,"TargetContext":32},
        "CalleeSavedRegisters":{"!":48,"R12":0,"R13":8,"R14":16,"R15":24,"Rbx":32,"Rbp":40}},
        "globals":{"InlinedCallFrameIdentifier":["0x1","nuint"],
        "SoftwareExceptionFrameIdentifier":["0x5","nuint"],"PInvokeCalliFrameIdentifier":["0x7","nuint"]},
        "contracts":{"Thread":1}}"#;

    /// The same parts of .NET 11.0.0 for Windows.
    const STATED_11_WINDOWS: &str = r#"{"version":2,"baseline":"empty","types":{
        "Thread":{"PreemptiveGCDisabled":4,"Frame":8,"LastThrownObject":264},
        "Frame":{"Next":8},
        "InlinedCallFrame":{"!":56,"CallSiteSP":24,"CallerReturnAddress":32,"CalleeSavedFP":40,"Datum":16},
        "SoftwareExceptionFrame":{"!":1520,"TargetContext":288,"ReturnAddress":16},
        "FramedMethodFrame":{"!":32,"TransitionBlockPtr":16,"MethodDescPtr":24},
        "TransitionBlock":{"!":72,"ReturnAddress":64,"CalleeSavedRegisters":0,"ArgumentRegisters":72},
        "ResumableFrame":{"!":24,"TargetContextPtr":16},
        "HijackFrame":{"!":40,"ReturnAddress":16,"HijackArgsPtr":32},
        "HijackArgs":{"!":96,"CalleeSavedRegisters":16,"Rsp":80},
        "FaultingExceptionFrame":{"!":1280,"TargetContext":32},
        "CalleeSavedRegisters":{"!":64,"Rdi":0,"Rsi":8,"Rbx":16,"Rbp":24,"R12":32,"R13":40,"R14":48,"R15":56}},
        "globals":{"StubDispatchFrameIdentifier":"0xb","ResolveHelperFrameIdentifier":"0xc",
        "ExternalMethodFrameIdentifier":"0xd"},
        "subDescriptors":{"GC":[[0],"pointer"]},"contracts":{"Thread":"c1"}}"#;

    /// The part of these data contracts that .NET 9.0.7 has.
    const STATED_9: &str = r#"{"version":0,"baseline":"empty","types":{
        "Thread":{"PreemptiveGCDisabled":4,"Frame":8}},"globals":{},"contracts":{"Thread":1}}"#;

    #[test]
    fn net_10_is_read_as_it_states_itself() {
        let unix = Convention::SystemV;
        let of = |text: &str| Layout::of([10, 0, 9], unix, Some(&stated(text)));
        let layout = of(STATED_10).unwrap();
        assert_eq!((layout.generation, layout.cooperative, layout.top_frame), ("net10-unix", 4, 8));
        assert_eq!((layout.call_site_sp, layout.software_context), (0x18, 0x120));
        let moved = STATED_10.replace("\"Frame\":8,", "\"Frame\":24,");
        assert_eq!(of(&moved).unwrap().top_frame, 24);
        for (known, other) in [
            ("\"Next\":8", "\"Next\":16"),
            ("\"CalleeSavedFP\":40", "\"CalleeSavedFP\":48"),
            ("\"HijackArgs\":{\"!\":80", "\"HijackArgs\":{\"!\":88"),
            ("\"Rbx\":32", "\"Rbx\":40"),
            ("\"PreemptiveGCDisabled\":4,", ""),
        ] {
            let changed = STATED_10.replace(known, other);
            assert_ne!(changed, STATED_10);
            assert_eq!(of(&changed), None, "{other}");
        }
        let stated = stated(STATED_10);
        let numbers: Vec<_> =
            Layout::numbered(&stated).map(|(number, kind)| (number, kind.name)).collect();
        let expected =
            [(1, "InlinedCallFrame"), (5, "SoftwareExceptionFrame"), (7, "PInvokeCalliFrame")];
        assert_eq!(numbers, expected, "in the order of the list");
    }

    #[test]
    fn net_11_for_windows_has_a_stack_pointer_in_hijack_args_and_a_frame_more() {
        let windows = Convention::WindowsX64;
        let of = |text: &str| Layout::of([11, 0, 0], windows, Some(&stated(text)));
        let layout = of(STATED_11_WINDOWS).unwrap();
        assert_eq!((layout.generation, layout.saved.hijacked), ("net11-windows", 0x10));
        assert!(layout.has_hijacked_sp);
        for (known, other) in
            [("\"Rsp\":80", "\"Rsp\":88"), (",\"Rsp\":80", ""), ("\"Rdi\":0", "\"Rdi\":8")]
        {
            let changed = STATED_11_WINDOWS.replace(known, other);
            assert_ne!(changed, STATED_11_WINDOWS);
            assert_eq!(of(&changed), None, "{other}");
        }
        let stated = stated(STATED_11_WINDOWS);
        let numbers: Vec<_> =
            Layout::numbered(&stated).map(|(number, kind)| (number, kind.name)).collect();
        let expected =
            [(11, "StubDispatchFrame"), (12, "ResolveHelperFrame"), (13, "ExternalMethodFrame")];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn runtimes_that_are_not_known_are_refused() {
        let (unix, windows) = (Convention::SystemV, Convention::WindowsX64);
        let (nine, ten) = (stated(STATED_9), stated(STATED_10));
        let generation = |version, convention, stated| {
            Layout::of(version, convention, stated).map(|layout| layout.generation)
        };
        assert_eq!(generation([10, 0, 9], unix, None), None, "it states nothing");
        assert_eq!(generation([10, 0, 9], unix, Some(&nine)), None, "it states too little");
        assert_eq!(generation([10, 0, 9], windows, Some(&ten)), None, "it is not for Windows");
        assert_eq!(generation([11, 0, 0], unix, Some(&ten)), Some("net11-unix"));
        assert_eq!(generation([12, 0, 0], unix, Some(&ten)), None);
        assert_eq!(generation([5, 0, 0], unix, None), None);
        assert_eq!(generation([9, 0, 1], unix, Some(&nine)), Some("net9-unix"));
        assert_eq!(generation([9, 0, 1], unix, None), Some("net9-unix"));
        assert_eq!(generation([9, 0, 1], windows, Some(&nine)), Some("net9-windows"));
        assert_eq!(generation([8, 0, 99], windows, None), Some("net8-windows"));
        assert_eq!(generation([6, 0, 13], windows, None), Some("net8-windows"));
    }
}
