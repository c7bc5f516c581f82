//! Clauses about calls that are made from a callback of the profiler.

use super::ClauseEntry;
use super::sets::ALL;

clauses! {
    Callbacks:
    129: ALL, "docs: DoStackSnapshot; stackwalk.cpp; recordings",
        "In ObjectAllocated a walk with neither thread nor seed begins at the method that \
         allocates. No thread has to be suspended.";
    130: ALL, "stackwalk.cpp; frames.h; recordings",
        "In JITCompilationStarted the walk begins at the method that called the one to be \
         compiled.";
    131: ALL, "stackwalk.cpp; recordings",
        "In ThreadCreated a new thread that walks itself gets E_FAIL and no callback: it has no \
         Frames yet.";
    132: ALL, "eetoprofinterfaceimpl.cpp: RuntimeThreadSuspended; recordings",
        "In RuntimeThreadSuspended for itself a thread gets CORPROF_E_STACKSNAPSHOT_UNSAFE.";
    133: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "In callbacks of the GC a managed thread can walk itself. A thread of the server GC gets \
         S_OK and no callback.";
    134: ALL,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; exceptionhandling.cpp; recordings",
        "In the callbacks of the second pass a thread that walks itself without a seed gets \
         CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX. Where managed code dispatches exceptions, this was \
         observed only in ExceptionUnwindFunctionEnter and Leave, and not where the exception is \
         about to leave managed code (C-164, C-166).";
    135: ALL, "Broman's article on ELT hooks; stackwalk.cpp; recordings",
        "A fast hook of Enter, Leave or Tailcall leaves no Frame for the method that it was \
         called from: a call there is asynchronous.";
    136: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback",
        "The methods that are allowed inside StackSnapshotCallback depend on the call itself: the \
         callback-state bits are the same as around the call.";
}
