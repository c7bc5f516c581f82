//! Clauses about the arguments of the callback.

use super::ClauseEntry;
use super::sets::{ALL, CONTEXT_4D0, LARGE_CONTEXT};

clauses! {
    Arguments:
    89: ALL,
        "docs: StackSnapshotCallback; proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback",
        "The callback gets the clientData of the call.";
    90: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "The ip of a frame that has called something is the return address itself; nothing is \
         subtracted.";
    91: ALL, "stackwalk.cpp: PostProcessingForManagedFrames; recordings",
        "The ip of a marker is the address in native code that the managed frame before it returns \
         to.";
    92: ALL,
        "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; docs: StackSnapshotCallback; \
         recordings",
        "Unless COR_PRF_SNAPSHOT_REGISTER_CONTEXT was passed, contextSize is 0 and context is \
         NULL in every callback.";
    93: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "Under COR_PRF_SNAPSHOT_REGISTER_CONTEXT every callback, for a marker too, has a context, \
         and contextSize is sizeof(CONTEXT).";
    94: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "Rip in the context is the ip.";
    95: ALL, "docs: StackSnapshotCallback; stackwalk.cpp; recordings",
        "The context of a marker belongs to the newest of its native frames: Rsp is the caller SP \
         of the managed frame before the marker.";
    96: ALL, "docs: StackSnapshotCallback; stackwalk.cpp; recordings",
        "The callee-saved registers of a marker are the result of unwinding that managed frame.";
    97: ALL, "stackwalk.cpp: StackWalkFrames; recordings",
        "ContextFlags in the context are those of the seed, or 0 if the walk began without one. A \
         resumable or faulting Frame, which has a full CONTEXT, brings its own.";
    98: ALL, "cgenamd64.cpp: InlinedCallFrame::UpdateRegDisplay; recordings",
        "In the frame that an InlinedCallFrame leads to, only Rip, Rsp and Rbp are valid. The \
         other callee-saved registers keep their previous values, which are zero if the walk began \
         there without a seed.";
    99: ALL, "codegencommon.cpp; recordings",
        "If an InlinedCallFrame has led to a frame with invalid callee-saved registers (C-098), \
         they are valid again from the caller of that frame on.";
    100: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "frameInfo is never NULL, not even for a marker. It repeats the funcId and the ip, and its \
         two argument pointers are NULL.";
    101: ALL, "docs: StackSnapshotCallback",
        "frameInfo and context may be used until the callback returns, not later.";
    102: CONTEXT_4D0, "pal.h; winnt.h; recordings",
        "sizeof(CONTEXT) is 0x4D0 on Windows and in .NET Core 3.1 on Unix. Rsp is at 0x98, Rbp at \
         0xA0, and Rip at 0xF8.";
    103: LARGE_CONTEXT, "dotnet/runtime pal.h; recordings",
        "sizeof(CONTEXT) is 0xC20 on Unix in .NET 8 and 9, and 0xCA0 in .NET 10. Its first 0x4D0 \
         bytes have the layout of C-102.";
}
