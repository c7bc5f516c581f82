//! .NET 8.0.34 for Linux x64.

use super::Layout;

pub(super) const LAYOUT: Layout = Layout {
    build_id: "d2529b38862d9b522a8367dd2c7ad146ba135ec8",
    fields: &[
        // ClrMD: all threads of a dump, and the list's links and counts. What the counts after the first are is the order in
        // threads.h: threads, their maximum, unstarted, background, pending, dead.
        ("ThreadStore", "FirstThreadLink", 160),
        ("ThreadStore", "ThreadCount", 184),
        ("ThreadStore", "UnstartedCount", 192),
        ("ThreadStore", "BackgroundCount", 196),
        ("ThreadStore", "PendingCount", 200),
        ("ThreadStore", "DeadCount", 204),
        ("Thread", "State", 8),
        ("Thread", "PreemptiveGCDisabled", 12),
        ("Thread", "Frame", 16),
        ("Thread", "Id", 32),
        ("Thread", "LinkNext", 232),
        ("Thread", "OSId", 424),
        // ClrMD: the entry of a method is found in the map, with the method's MethodDesc.
        ("Module", "ReadyToRunInfo", 1152),
        // ClrMD: token, module and path of methods, also of generic ones over another module's structure.
        ("MethodDesc", "Flags3AndTokenRemainder", 0),
        ("MethodDesc", "ChunkIndex", 2),
        ("MethodDesc", "Flags", 6),
        ("MethodDescChunk", "!", 24),
        ("MethodDescChunk", "MethodTable", 0),
        ("MethodDescChunk", "FlagsAndTokenRange", 18),
        ("MethodTable", "Module", 24),
        ("Module", "PEAssembly", 272),
        ("PEImage", "Path", 16),
        // ClrMD: the name of a stub for a P/Invoke.
        ("DynamicMethodDesc", "MethodName", 24),
    ],
    values: &[
        // ClrMD: tokens. 10: the alignment.
        ("MethodDescTokenRemainderBitCount", 12),
        ("MethodDescAlignment", 8),
    ],
    // Table: entries 16, 17, 18 and 0.
    variables: &[
        ("ThreadStore", 0x6A_1A18),
        ("FinalizerThread", 0x6A_1FA8),
        ("GCThread", 0x6A_1FB0),
        ("ExecutionManagerCodeRangeMapAddress", 0x6B_07B8),
    ],
    // Table: entries 123 to 147. ClrMD: a Frame of a dump that begins with the entry has the name. It says nothing of PrestubMethodFrame
    // and the four from StubDispatchFrame on, which stand between the others as in the list, and in memory as those of .NET 9.
    frames: &[
        ("DebuggerClassInitMarkFrameIdentifier", 0x66_0AD8),
        ("DebuggerSecurityCodeMarkFrameIdentifier", 0x66_2680),
        ("DebuggerExitFrameIdentifier", 0x66_2730),
        ("DebuggerU2MCatchHandlerFrameIdentifier", 0x66_27E0),
        ("FaultingExceptionFrameIdentifier", 0x67_2190),
        ("FuncEvalFrameIdentifier", 0x67_50A8),
        ("HelperMethodFrameIdentifier", 0x66_2190),
        ("HelperMethodFrame_1OBJIdentifier", 0x66_2520),
        ("HelperMethodFrame_2OBJIdentifier", 0x66_1028),
        ("HelperMethodFrame_3OBJIdentifier", 0x66_25D0),
        ("HelperMethodFrame_PROTECTOBJIdentifier", 0x66_10D8),
        ("HijackFrameIdentifier", 0x67_2240),
        ("InlinedCallFrameIdentifier", 0x67_22F8),
        ("MulticastFrameIdentifier", 0x66_2240),
        ("PInvokeCalliFrameIdentifier", 0x66_2460),
        ("PrestubMethodFrameIdentifier", 0x66_1DD0),
        ("ProtectByRefsFrameIdentifier", 0x66_2300),
        ("ProtectValueClassFrameIdentifier", 0x66_23B0),
        ("ResumableFrameIdentifier", 0x67_2020),
        ("RedirectedThreadFrameIdentifier", 0x67_1DA8),
        ("StubDispatchFrameIdentifier", 0x66_1E90),
        ("CallCountingHelperFrameIdentifier", 0x66_1F50),
        ("ExternalMethodFrameIdentifier", 0x66_2010),
        ("DynamicHelperFrameIdentifier", 0x66_20D0),
        ("ExceptionFilterFrameIdentifier", 0x66_2890),
    ],
    contracts: &[
        ("Thread", 1),
        ("ExecutionManager", 1),
        ("RuntimeTypeSystem", 1),
        ("Loader", 1),
        ("EcmaMetadata", 1),
    ],
    is_whole: true,
};
