//! Clauses about the suspension of a call's target, and refusals to walk it.

use super::ClauseEntry;
use super::sets::{BEFORE_NEW, F2, WINDOWS, WINDOWS_CLR4, WINDOWS_CORE};

clauses! {
    Suspension:
    26: WINDOWS,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; threadsuspend.cpp: SuspendThread; \
         recordings",
        "On Windows a call for another thread suspends it, and resumes it at the end. The \
         profiler may have suspended it as well, but need not.";
    27: WINDOWS, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "There is one attempt to suspend. If it fails, because of a forbid-suspend region, a \
         dead or unstarted thread, the stress log or the OS, or before .NET 9 a fiber switched out, \
         the call gets CORPROF_E_STACKSNAPSHOT_UNSAFE.";
    28: WINDOWS, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A target that was destroyed or never started ends the process, which exits with \
         CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD. No call ever returns that code.";
    29: WINDOWS, "threadsuspend.cpp: SuspendThread, ResumeThread",
        "Under COR_PRF_MONITOR_SUSPENDS the walker itself gets RuntimeThreadSuspended for the \
         target after suspending it, and RuntimeThreadResumed after resuming it.";
    30: WINDOWS, "threadsuspend.cpp: Thread::SuspendThread, ForbidSuspendThreadHolder",
        "A managed walker cannot be suspended while it suspends another thread. So if two walkers \
         suspend each other, at least one keeps running. A target that has entered a \
         forbid-suspend region when it stops is resumed at once, and the call gets \
         CORPROF_E_STACKSNAPSHOT_UNSAFE.";
    31: WINDOWS_CORE, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "Between SuspendRuntime and ResumeRuntime a call for another thread does not suspend it in \
         the OS and raises no RuntimeThreadSuspended.";
    32: WINDOWS_CLR4, "threadsuspend.cpp: IsContextSafeToRedirect; recordings",
        "A cooperative target that is inside a system call, or for which the kernel is \
         dispatching an exception, gives CORPROF_E_STACKSNAPSHOT_UNSAFE. A seed does not help.";
    33: WINDOWS_CLR4, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "A cooperative target whose rsp is above its topmost Frame gives \
         CORPROF_E_STACKSNAPSHOT_UNSAFE: its context must be out of date.";
    34: WINDOWS_CLR4, "proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "A target whose ip is in managed code although it has gone preemptive gives \
         CORPROF_E_STACKSNAPSHOT_UNSAFE.";
    35: F2, "sscli2 proftoeeinterfaceimpl.cpp: DoStackSnapshot",
        "If the context of another thread cannot be read, a call without a seed gets E_FAIL. The \
         context is read before the mode of the target is checked.";
    36: BEFORE_NEW, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; IsContextInManagedCode",
        "An asynchronous call never waits for the writer of the code manager: if a writer is \
         active when an ip has to be looked up, the call gets CORPROF_E_ASYNCHRONOUS_UNSAFE.";
}
