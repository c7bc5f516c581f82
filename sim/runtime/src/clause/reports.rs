//! Clauses about what the runtime reports to a profiler: compilations, exceptions, collections and the end.

use super::ClauseEntry;
use super::sets::{CORE, EARLY_THROWERS, SEARCH_ON, TIERS};

clauses! {
    Reports:
    176: CORE, "recordings",
        "A method is compiled by its first call, on the calling thread: JITCompilationStarted and \
         JITCompilationFinished come once, and not for later calls.";
    177: CORE, "recordings",
        "A class is loaded once: ClassLoadStarted and ClassLoadFinished come when it is first \
         needed, and not when a method of it is compiled later.";
    178: CORE, "recordings",
        "The next call of a method whose ReJIT was requested compiles it again, with \
         GetReJITParameters, ReJITCompilationStarted and ReJITCompilationFinished. The calls after \
         it do not.";
    179: TIERS, "recordings",
        "Tiered compilation compiles methods again on threads that the runtime makes for it. From \
         .NET 10 on these have ThreadIDs of their own, before that of the one that has ended. This \
         was observed with threads that end at once.";
    180: CORE, "recordings",
        "ThreadAssignedToOSThread comes in cooperative mode on a thread that the program has started.";
    181: CORE, "recordings",
        "In the first pass of an exception each method from the throw on gets \
         ExceptionSearchFunctionEnter, filters are asked, and ExceptionSearchFunctionLeave follows; \
         in the one that catches ExceptionSearchCatcherFound comes before. In the second pass each \
         gets ExceptionUnwindFunctionEnter, ExceptionUnwindFinallyEnter and Leave around its \
         handlers, and ExceptionUnwindFunctionLeave; the one that catches gets ExceptionCatcherEnter \
         and Leave instead of the last. A method and its funclets count once.";
    182: EARLY_THROWERS, "recordings",
        "If the runtime throws on behalf of a method that catches the exception itself, \
         ExceptionUnwindFunctionEnter comes in cooperative mode.";
    183: CORE, "recordings",
        "Handlers of ProcessExit run at the end of the program, and Shutdown is the last callback.";
    184: CORE, "recordings",
        "After ProfilerDetachSucceeded the profiler gets no callback.";
    185: CORE, "recordings",
        "A GC of all generations that does not compact reports SurvivingReferences alone.";
    186: CORE, "recordings",
        "A thread that comes back to cooperative mode during a suspension gets \
         RuntimeThreadSuspended, waits, and gets RuntimeThreadResumed, both on itself and in \
         preemptive mode.";
    187: CORE, "recordings",
        "Enter, Leave and Tailcall hooks are not called for dynamic methods and IL stubs.";
    188: CORE, "recordings",
        "An exception that leaves a method called by reflection is caught there; another one, a \
         TargetInvocationException, is thrown to the caller.";
    189: CORE, "recordings",
        "An exception that leaves a class constructor is caught by the runtime; another one, a \
         TypeInitializationException, is thrown to the method that needed the class.";
    190: SEARCH_ON, "recordings",
        "The first pass goes on in managed code behind native code that lets no exception pass, \
         and the process ends in the second.";
}
