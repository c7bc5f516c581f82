//! What is checked before a walk begins, and in which order.

use super::Entry;
use super::Evidence::{Observed, Read};
use super::sets::{ALL, CLR4, F2, UNIX, WHOLE_SEED};

clauses! {
    EntryChecks:
    1: CLR4, Read, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "While the profiler is being detached, every call gets CORPROF_E_PROFILER_DETACHING, and \
         nothing else about it is looked at.";
    2: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; ceemain.cpp; recordings",
        "Until the EE has started, every call gets CORPROF_E_STACKSNAPSHOT_UNSAFE. A call from \
         Initialize always comes that early.";
    3: CLR4, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A call gets CORPROF_E_INCONSISTENT_WITH_FLAGS if the event mask lacks \
         COR_PRF_ENABLE_STACK_SNAPSHOT at that moment.";
    4: F2, Read, "sscli2 proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "A call gets E_INVALIDARG if the event mask lacks COR_PRF_ENABLE_STACK_SNAPSHOT at that \
         moment.";
    5: ALL, Read, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE",
        "COR_PRF_ENABLE_STACK_SNAPSHOT can be switched on and off whenever the runtime is \
         running. A change counts from the next call on.";
    6: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "First comes the question whether the EE has started, then the event mask, and only then \
         the arguments.";
    7: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "On x64 bit 0 is the only one that infoFlags may have: any other gives E_INVALIDARG, \
         COR_PRF_SNAPSHOT_X86_OPTIMIZED (2) too.";
    8: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "infoFlags are checked before the thread. Wrong flags therefore give E_INVALIDARG even \
         where there is no managed thread to walk.";
    9: ALL, Observed,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; docs: DoStackSnapshot; recordings",
        "A thread of 0 stands for the thread that makes the call.";
    10: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "If thread is 0 and the runtime has no Thread object for the caller, the answer is S_OK \
         without a single callback.";
    11: CLR4, Read, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "A GC-special thread is not walked: as a target it gives S_OK without callbacks.";
    12: ALL, Read, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "Should the GC not be initialized yet, the answer is S_OK without callbacks. In 3.1 it is \
         up before the EE counts as started, so nobody can see this.";
    13: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "It makes no difference whether a thread names itself by its ThreadID or by 0.";
    14: ALL, Observed,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; threads.h: EnterHijackLock; recordings",
        "A call takes the hijack lock of its target, in one attempt. Where somebody else has it, \
         the call gets CORPROF_E_STACKSNAPSHOT_UNSAFE.";
    15: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "StackSnapshotCallback cannot walk the thread that is just being walked: such a nested \
         call gets CORPROF_E_STACKSNAPSHOT_UNSAFE, and the outer walk goes on as if nothing had \
         happened.";
    16: ALL, Read, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "When two threads want to walk the same target at once, one of them does, and the other \
         gets CORPROF_E_STACKSNAPSHOT_UNSAFE.";
    17: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "While the runtime is being suspended, a caller with a Thread object gets \
         CORPROF_E_STACKSNAPSHOT_UNSAFE for every thread but itself; a native thread is not \
         concerned. On .NET 9 neither RuntimeSuspendStarted nor RuntimeSuspendFinished lies in \
         that phase: there the answer is E_NOTIMPL (C-168).";
    18: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A target inside a forbid-suspend region gives CORPROF_E_STACKSNAPSHOT_UNSAFE, even if it \
         is the caller.";
    19: UNIX, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; switches.h; recordings",
        "Unix has no suspension of single threads. If all earlier checks have passed, a call for \
         another thread gets E_NOTIMPL, unless the profiler has suspended the runtime.";
    20: UNIX, Read, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "On Unix no cooperative thread can be walked from another one: E_NOTIMPL is the answer \
         also between SuspendRuntime and ResumeRuntime.";
    21: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A call may come from any thread, from inside a callback or from anywhere else: the \
         callback-state bits are not looked at.";
    22: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "Nothing reads contextSize. With the same seed, every value of it leads to the same walk.";
    23: WHOLE_SEED, Observed,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; stackwalk.cpp: StackWalkFrames; recordings",
        "Nothing reads the ContextFlags of a seed. Newer runtimes on Unix do not check them \
         either, but .NET 9 reads more or less of the seed by them (C-162).";
    24: ALL, Observed, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "No check refuses a NULL callback. Only where there is something to report does it do \
         harm: E_UNEXPECTED on Windows, SIGSEGV on Unix.";
    25: ALL, Read, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; DoStackSnapshotHelper",
        "However a call ends, afterwards the hijack lock is free, no profiler filter context is \
         left, and a target that the call suspended runs again.";
}
