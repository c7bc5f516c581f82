//! Clauses about other methods of ICorProfilerInfo that a stack profiler calls.

use super::ClauseEntry;
use super::sets::{ALL, BEFORE_NEW, CLR4, CORE};

clauses! {
    Companions:
    114: ALL, "proftoeeinterfaceimpl.cpp: GetFunctionFromIP",
        "GetFunctionFromIP gives E_FAIL for an address that is not in managed code, and writes \
         nothing to its output, not even 0.";
    115: ALL, "GetFunctionFromIPInternal",
        "GetFunctionFromIP gives E_FAIL for an address in a dynamic method or an IL stub. In .NET 11 a \
         P/Invoke with marshalling has no stub: its code is that of the method, which is found.";
    116: ALL,
        "proftoeeinterfaceimpl.cpp: FAIL_IF_IN_FORBID_SUSPEND_REGION, GetFunctionFromIP, \
         GetCodeInfo",
        "GetFunctionFromIP and GetCodeInfo give CORPROF_E_ASYNCHRONOUS_UNSAFE on a managed thread \
         that is inside a forbid-suspend region. No other method checks that, but GetCodeInfo2 in \
         Framework 2 (sscli2 GetCodeInfo2Helper).";
    117: ALL, "GetFunctionFromIP",
        "GetFunctionFromIP takes any address of a method, including a return address after its \
         last call. It may be called asynchronously.";
    118: CLR4, "GetFunctionFromIP3",
        "GetFunctionFromIP3 finds dynamic methods, too.";
    119: BEFORE_NEW,
        "proftoeeinterfaceimpl.cpp: kP2EETriggers, GetFunctionFromIP2, GetCodeInfo3",
        "GetFunctionFromIP2 and 3 and GetCodeInfo3 and 4 give CORPROF_E_UNSUPPORTED_CALL_SEQUENCE \
         on a managed thread that is not in a callback where a GC may be triggered. So they do on \
         .NET 9 (C-173); on .NET 10 any callback will do.";
    120: ALL, "GetCurrentThreadID",
        "GetCurrentThreadID gives CORPROF_E_NOT_MANAGED_THREAD on a thread for which there is no \
         Thread object.";
    121: CLR4, "GetThreadInfo; GetHandleFromThread",
        "GetThreadInfo and GetHandleFromThread give E_INVALIDARG for thread 0. Framework 2 reads a \
         Thread there, at address 0 (sscli2 GetThreadInfo).";
    122: ALL, "PROFILER_TO_CLR_ENTRYPOINT_SYNC_EX; AreCallbackStateFlagsSet",
        "Synchronous methods can be called on native threads at any time. On managed threads they \
         need a callback around them, and give CORPROF_E_UNSUPPORTED_CALL_SEQUENCE without one. A \
         thread that has forced a GC needs none (C-175), nor do SuspendRuntime and ResumeRuntime from \
         .NET 9 on (C-167).";
    123: ALL, "GetFunctionInfo2",
        "GetFunctionInfo2 gives E_INVALIDARG if the frameInfo is that of another function.";
    124: ALL, "GetFunctionInfo2; proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback",
        "For generic code that instantiations share, the frameInfo of a walk gives \
         GetFunctionInfo2 no more information about type arguments than NULL does.";
    125: ALL, "proftoeeinterfaceimpl.cpp: GetCodeInfo2, GetCodeInfoFromCodeStart",
        "GetCodeInfo2 returns the total number of regions of code, even if the array has room for \
         fewer. Like all methods of its family it looks the start of the code up as \
         GetFunctionFromIP does: it may wait for the writer of the code manager or, where C-036 \
         holds, be refused.";
    126: CORE, "SuspendRuntime; recordings",
        "SuspendRuntime gives CORPROF_E_RUNTIME_UNINITIALIZED before the EE has started and \
         CORPROF_E_SUSPENSION_IN_PROGRESS during a suspension, also to the thread that holds the \
         runtime suspended. But a holder without a Thread object gets S_OK for a second call, and \
         then nothing resumes the runtime.";
    127: CORE, "ResumeRuntime",
        "ResumeRuntime gives CORPROF_E_UNSUPPORTED_CALL_SEQUENCE unless the profiler has \
         suspended the runtime.";
    128: CORE, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "Between SuspendRuntime and ResumeRuntime all preemptive threads can be walked, on \
         Windows and on Unix, and the OS suspends none of them.";
}
