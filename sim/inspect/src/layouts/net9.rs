//! .NET 9.0.23 for Linux x64: what its descriptor lacks.

use super::Layout;

pub(super) const LAYOUT: Layout = Layout {
    build_id: "ea2417846f6e65e39f48c6d7442f409cc97a7f36",
    fields: &[
        // ClrMD: the entries of ten methods are found in the map, with the methods' MethodDescs.
        ("Module", "ReadyToRunInfo", 984),
        // ClrMD: the images of methods.
        ("Module", "PEAssembly", 280),
    ],
    values: &[],
    // Table: entry 0.
    variables: &[("ExecutionManagerCodeRangeMapAddress", 0x72_9760)],
    // Table: entries 125 to 148. ClrMD: a Frame of a dump that begins with the entry has the name.
    frames: &[
        ("DebuggerClassInitMarkFrameIdentifier", 0x6C_44B0),
        ("DebuggerSecurityCodeMarkFrameIdentifier", 0x6C_5FA0),
        ("DebuggerExitFrameIdentifier", 0x6C_6050),
        ("DebuggerU2MCatchHandlerFrameIdentifier", 0x6C_6100),
        ("FaultingExceptionFrameIdentifier", 0x6D_5750),
        ("FuncEvalFrameIdentifier", 0x6D_8648),
        ("HelperMethodFrameIdentifier", 0x6C_5B70),
        ("HelperMethodFrame_1OBJIdentifier", 0x6C_5E40),
        ("HelperMethodFrame_2OBJIdentifier", 0x6C_49C8),
        ("HelperMethodFrame_3OBJIdentifier", 0x6C_5EF0),
        ("HelperMethodFrame_PROTECTOBJIdentifier", 0x6C_4A78),
        ("HijackFrameIdentifier", 0x6D_5800),
        ("InlinedCallFrameIdentifier", 0x6D_58B8),
        ("PInvokeCalliFrameIdentifier", 0x6C_5D80),
        ("PrestubMethodFrameIdentifier", 0x6C_57B0),
        ("ProtectByRefsFrameIdentifier", 0x6C_5C20),
        ("ProtectValueClassFrameIdentifier", 0x6C_5CD0),
        ("ResumableFrameIdentifier", 0x6D_55E0),
        ("RedirectedThreadFrameIdentifier", 0x6D_5508),
        ("StubDispatchFrameIdentifier", 0x6C_5870),
        ("CallCountingHelperFrameIdentifier", 0x6C_5930),
        ("ExternalMethodFrameIdentifier", 0x6C_59F0),
        ("DynamicHelperFrameIdentifier", 0x6C_5AB0),
        ("ExceptionFilterFrameIdentifier", 0x6C_61B0),
    ],
    // .NET 10 has another map of code headers, which its version 2 is.
    contracts: &[("ExecutionManager", 1)],
    is_whole: false,
};
