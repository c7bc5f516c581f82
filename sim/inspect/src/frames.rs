//! The Frames of a thread: the runtime's own marks on a stack.

use crate::error::InspectError;
use clr_unwind::Memory;
use clr_walker::jitted::contracts::ContractDescriptor;

/// Frames of a thread at most. A thread of 8 MB with nothing but the smallest has a quarter of a million.
const FRAME_LIMIT: usize = 1 << 18;
/// The last Frame's link, `FRAME_TOP` in frames.h of dotnet/runtime.
const TOP: u64 = u64::MAX;
/// Offset of the link to the next Frame in bytes.
///
/// The descriptor of .NET 10 and 11 names it; .NET 9's does not, but every chain in dumps of 9.0.23 is by this what ClrMD has.
const NEXT: u32 = 8;

/// A kind of Frame, by the name of its class in the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The runtime's descriptor names the kind.
    Named(&'static str),
    /// The runtime has another kind here, or no names of kinds (a build of .NET 9 whose layout is not known). The first word of the Frame.
    Unnamed(u64),
}

/// A Frame on the stack of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplicitFrame {
    /// Address of the Frame (VA).
    pub address: u64,
    /// The kind.
    pub kind: FrameKind,
}

/// Names of the globals that identify kinds of Frames, and of the kinds. Descriptors of .NET 10 and 11 have them; before, a Frame
/// begins with its vtable, and the [layout](crate::layouts) of a build has these under such names.
const KINDS: [(&str, &str); 32] = [
    ("CallCountingHelperFrameIdentifier", "CallCountingHelperFrame"),
    ("CLRToCOMMethodFrameIdentifier", "CLRToCOMMethodFrame"),
    ("ComMethodFrameIdentifier", "ComMethodFrame"),
    ("ComPrestubMethodFrameIdentifier", "ComPrestubMethodFrame"),
    ("DebuggerClassInitMarkFrameIdentifier", "DebuggerClassInitMarkFrame"),
    ("DebuggerExitFrameIdentifier", "DebuggerExitFrame"),
    ("DebuggerSecurityCodeMarkFrameIdentifier", "DebuggerSecurityCodeMarkFrame"),
    ("DebuggerU2MCatchHandlerFrameIdentifier", "DebuggerU2MCatchHandlerFrame"),
    ("DynamicHelperFrameIdentifier", "DynamicHelperFrame"),
    ("ExceptionFilterFrameIdentifier", "ExceptionFilterFrame"),
    ("ExternalMethodFrameIdentifier", "ExternalMethodFrame"),
    ("FaultingExceptionFrameIdentifier", "FaultingExceptionFrame"),
    ("FuncEvalFrameIdentifier", "FuncEvalFrame"),
    ("HelperMethodFrameIdentifier", "HelperMethodFrame"),
    ("HelperMethodFrame_1OBJIdentifier", "HelperMethodFrame_1OBJ"),
    ("HelperMethodFrame_2OBJIdentifier", "HelperMethodFrame_2OBJ"),
    ("HelperMethodFrame_3OBJIdentifier", "HelperMethodFrame_3OBJ"),
    ("HelperMethodFrame_PROTECTOBJIdentifier", "HelperMethodFrame_PROTECTOBJ"),
    ("HijackFrameIdentifier", "HijackFrame"),
    ("InlinedCallFrameIdentifier", "InlinedCallFrame"),
    ("InterpreterFrameIdentifier", "InterpreterFrame"),
    ("MulticastFrameIdentifier", "MulticastFrame"),
    ("PInvokeCalliFrameIdentifier", "PInvokeCalliFrame"),
    ("PrestubMethodFrameIdentifier", "PrestubMethodFrame"),
    ("ProtectByRefsFrameIdentifier", "ProtectByRefsFrame"),
    ("ProtectValueClassFrameIdentifier", "ProtectValueClassFrame"),
    ("RedirectedThreadFrameIdentifier", "RedirectedThreadFrame"),
    ("ResumableFrameIdentifier", "ResumableFrame"),
    ("SoftwareExceptionFrameIdentifier", "SoftwareExceptionFrame"),
    ("StubDispatchFrameIdentifier", "StubDispatchFrame"),
    ("TailCallFrameIdentifier", "TailCallFrame"),
    ("UnmanagedToManagedFrameIdentifier", "UnmanagedToManagedFrame"),
];

/// Returns true if there is a kind of Frame that this global identifies.
#[cfg(test)]
pub(crate) fn is_kind(global: &str) -> bool {
    KINDS.iter().any(|(known, _)| *known == global)
}

/// Where a Frame has its parts.
#[derive(Clone, Debug)]
pub(crate) struct FrameLayout {
    next: u32,
    /// First words of Frames, with the kinds.
    kinds: Vec<(u64, &'static str)>,
}

impl FrameLayout {
    pub(crate) fn new(descriptor: &ContractDescriptor) -> Self {
        let kind =
            |(global, name): &(&'static str, _)| Some((descriptor.global(global).ok()?, *name));
        Self {
            next: descriptor.field("Frame", "Next").unwrap_or(NEXT),
            kinds: KINDS.iter().filter_map(kind).collect(),
        }
    }

    /// Reads the chain that begins with the Frame at `first`, leafmost first. The error is that of the first Frame which cannot
    /// be read.
    pub(crate) fn chain<M: Memory + ?Sized>(
        &self,
        memory: &M,
        first: u64,
    ) -> (Vec<ExplicitFrame>, Result<(), InspectError>) {
        let mut frames: Vec<ExplicitFrame> = Vec::new();
        let mut address = first;
        while address != TOP {
            if let Some(before) = frames.last().map(|frame| frame.address)
                && address <= before
            {
                return (frames, Err(InspectError::FrameOrder { address, before }));
            }
            if frames.len() == FRAME_LIMIT {
                return (frames, Err(InspectError::EndlessList { list: "Frames", address }));
            }
            let next = memory.read_u64(address.wrapping_add(self.next.into()));
            match memory.read_u64(address).and_then(|identifier| Ok((identifier, next?))) {
                Ok((identifier, next)) => {
                    frames.push(ExplicitFrame { address, kind: self.kind(identifier) });
                    address = next;
                }
                Err(error) => return (frames, Err(error.into())),
            }
        }
        (frames, Ok(()))
    }

    fn kind(&self, identifier: u64) -> FrameKind {
        let named = self.kinds.iter().find(|(known, _)| *known == identifier);
        named.map_or(FrameKind::Unnamed(identifier), |(_, name)| FrameKind::Named(name))
    }
}
