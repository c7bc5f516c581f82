//! .NET 9.0.23 for Linux x64: what its descriptor lacks.

use super::Layout;

pub(super) const LAYOUT: Layout = Layout {
    build_id: "ea2417846f6e65e39f48c6d7442f409cc97a7f36",
    fields: &[
        // ClrMD: the Frames of all threads.
        ("Frame", "Next", 8),
        // ClrMD: of each HijackFrame, the address of the frame below it.
        ("HijackFrame", "ReturnAddress", 16),
        // 10: the map leads from each managed frame to its method.
        ("RangeSectionMap", "TopLevelData", 0),
        ("RangeSectionFragment", "Next", 0),
        ("RangeSectionFragment", "RangeBegin", 8),
        ("RangeSectionFragment", "RangeEndOpen", 16),
        ("RangeSectionFragment", "RangeSection", 24),
        ("RangeSection", "RangeBegin", 0),
        ("RangeSection", "RangeEndOpen", 8),
        ("RangeSection", "Flags", 16),
        ("RangeSection", "JitManager", 24),
        ("RangeSection", "R2RModule", 32),
        ("RangeSection", "HeapList", 40),
        // 10; no section was about to be deleted in the dumps that were looked at.
        ("RangeSection", "NextForDelete", 64),
        ("CodeHeapListNode", "StartAddress", 16),
        ("CodeHeapListNode", "EndAddress", 24),
        ("CodeHeapListNode", "MapBase", 32),
        ("CodeHeapListNode", "HeaderMap", 40),
        ("RealCodeHeader", "MethodDesc", 24),
        ("RealCodeHeader", "NumUnwindInfos", 32),
        ("RealCodeHeader", "UnwindInfos", 36),
        ("RuntimeFunction", "!", 12),
        ("RuntimeFunction", "BeginAddress", 0),
        ("RuntimeFunction", "EndAddress", 4),
        ("RuntimeFunction", "UnwindData", 8),
        // ClrMD: the entries of ten methods are found in the map, with the methods' MethodDescs.
        ("Module", "ReadyToRunInfo", 984),
        ("ReadyToRunInfo", "EntryPointToMethodDescMap", 432),
        // 10: a pointer to itself, a table of functions in the image, and its count.
        ("ReadyToRunInfo", "CompositeInfo", 40),
        ("ReadyToRunInfo", "RuntimeFunctions", 80),
        ("ReadyToRunInfo", "NumRuntimeFunctions", 88),
        ("ReadyToRunInfo", "NumHotColdMap", 104),
        ("ReadyToRunInfo", "DelayLoadMethodCallThunks", 112),
        ("HashMap", "Buckets", 16),
        ("Bucket", "!", 64),
        ("Bucket", "Keys", 0),
        ("Bucket", "Values", 32),
        // ClrMD: the images of methods.
        ("Module", "PEAssembly", 280),
        ("PEAssembly", "PEImage", 8),
        ("PEImage", "LoadedImageLayout", 120),
        ("PEImageLayout", "Base", 8),
        ("PEImageLayout", "Flags", 20),
    ],
    values: &[
        // 10.
        ("HashMapSlotsPerBucket", 4),
        ("HashMapValueMask", 0x7FFF_FFFF_FFFF_FFFF),
        ("StubCodeBlockLast", 15),
    ],
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
