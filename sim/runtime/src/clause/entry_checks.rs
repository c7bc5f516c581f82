//! Clauses about the checks before a walk begins, and their order.

use super::ClauseEntry;
use super::sets::{ALL, CLR4, F2, UNIX, WHOLE_SEED};

clauses! {
    EntryChecks:
    1: CLR4, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "While the profiler is being detached, every call gets CORPROF_E_PROFILER_DETACHING \
         without any further check.";
    2: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; ceemain.cpp; recordings",
        "Until the EE has started, every call gets CORPROF_E_STACKSNAPSHOT_UNSAFE. A call from \
         Initialize always comes that early.";
    3: CLR4, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A call gets CORPROF_E_INCONSISTENT_WITH_FLAGS if the event mask lacks \
         COR_PRF_ENABLE_STACK_SNAPSHOT at that moment.";
    4: F2, "sscli2 proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "A call gets E_INVALIDARG if the event mask lacks COR_PRF_ENABLE_STACK_SNAPSHOT at that \
         moment.";
    5: CLR4, "corprof.idl: COR_PRF_MONITOR_IMMUTABLE",
        "COR_PRF_ENABLE_STACK_SNAPSHOT can be switched on and off whenever the runtime is \
         running. A change counts from the next call on. Framework 2 lets it be chosen at startup \
         alone (sscli2 corprof.idl).";
    6: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A call first checks if the EE has started, then the event mask, and only then the \
         arguments.";
    7: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "On x64 bit 0 is the only one that infoFlags may have: any other gives E_INVALIDARG, \
         COR_PRF_SNAPSHOT_X86_OPTIMIZED (2) too.";
    8: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "infoFlags are checked before the thread. Wrong flags therefore give E_INVALIDARG even \
         where there is no managed thread to walk.";
    9: ALL,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; docs: DoStackSnapshot; recordings",
        "A thread of 0 stands for the thread that makes the call.";
    10: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "If thread is 0 and the runtime has no Thread object for the caller, the answer is S_OK \
         without a single callback.";
    11: CLR4, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "A GC-special thread is not walked: as a target it gives S_OK without callbacks.";
    12: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "If the GC is not initialized yet, the answer is S_OK without callbacks. In 3.1 it is \
         initialized before the EE counts as started, so this cannot be observed.";
    13: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "It makes no difference whether a thread names itself by its ThreadID or by 0.";
    14: ALL,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; threads.h: EnterHijackLock; recordings",
        "A call takes the hijack lock of its target, in one attempt. If the lock is already taken, \
         the call gets CORPROF_E_STACKSNAPSHOT_UNSAFE.";
    15: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "StackSnapshotCallback cannot walk the thread that is being walked: such a nested call \
         gets CORPROF_E_STACKSNAPSHOT_UNSAFE, and the outer walk continues unaffected.";
    16: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "If two threads call for the same target at once, one of them walks it, and the other gets \
         CORPROF_E_STACKSNAPSHOT_UNSAFE.";
    17: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "While the runtime is being suspended, a caller with a Thread object gets \
         CORPROF_E_STACKSNAPSHOT_UNSAFE for every thread but itself; a native thread is not \
         affected. On .NET 9 neither RuntimeSuspendStarted nor RuntimeSuspendFinished is part of \
         that phase: there the answer is E_NOTIMPL (C-168).";
    18: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A target inside a forbid-suspend region gives CORPROF_E_STACKSNAPSHOT_UNSAFE, even if it \
         is the caller.";
    19: UNIX, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; switches.h; recordings",
        "Unix has no suspension of single threads. If all earlier checks have passed, a call for \
         another thread gets E_NOTIMPL, unless the profiler has suspended the runtime.";
    20: UNIX, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "On Unix no cooperative thread can be walked from another one: E_NOTIMPL is the answer \
         also between SuspendRuntime and ResumeRuntime.";
    21: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A call may come from any thread, from inside a callback or from anywhere else: the \
         callback-state bits are not checked.";
    22: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "contextSize is never read: with the same seed, every value of it leads to the same walk.";
    23: WHOLE_SEED,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; stackwalk.cpp: StackWalkFrames; recordings",
        "The ContextFlags of a seed are never read. Newer runtimes on Unix do not check them \
         either, but on .NET 9 they determine how much of the seed is read (C-162).";
    24: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "No check refuses a NULL callback. The call fails only if there is something to report: \
         with E_UNEXPECTED on Windows, with SIGSEGV on Unix.";
    25: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; DoStackSnapshotHelper",
        "However a call ends, afterwards the hijack lock is free, no profiler filter context is \
         left, and a target that the call suspended runs again.";
}
