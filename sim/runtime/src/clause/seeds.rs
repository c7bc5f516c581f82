//! Clauses about the context argument.

use super::ClauseEntry;
use super::sets::{ALL, CLR4, WHOLE_SEED, WINDOWS};

clauses! {
    Seeds:
    37: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A seed for a preemptive target is ignored: good, bad or at an unreadable address, it \
         changes nothing.";
    38: ALL,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; docs: DoStackSnapshot; recordings",
        "For a cooperative target the Rip of the seed must be in managed code. Otherwise the call \
         gets CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX without callbacks.";
    39: ALL, "codeman.cpp: IsManagedCodeWorker; recordings",
        "Stubs, precodes, jump stubs, assembly helpers and native modules are not managed code, so \
         no seed may point there. Framework 2 was read to accept stubs in heaps of the JIT, as it \
         asks for the range alone (sscli2 FindJitManNonZero); that is not simulated.";
    40: ALL, "codeman.cpp: IsManagedCodeWorker; docs: DoStackSnapshot; recordings",
        "JIT, NGen and ReadyToRun code of every tier is managed code. A seed may point there, even \
         into an IL stub or a dynamic method.";
    41: ALL, "codeman.cpp: FindMethodCode; recordings",
        "Padding after the body of a jitted method counts as managed code of that method. From .NET 10 \
         on it does so up to the end of the 256 bytes (aligned) after the last ones in which the \
         method begins or which it covers wholly (C-147).";
    42: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A CONTEXT full of zeros is a seed, whose Rip is 0 and thus unmanaged. It is not the same \
         as no seed.";
    43: WINDOWS, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "If another thread is cooperative and there is no seed, its own context serves as one. If \
         the thread is in managed code, the walk is complete.";
    44: WINDOWS, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "If another thread is cooperative and in unmanaged code, a call without a seed gets \
         CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, even if the Frames of the thread could have led to \
         managed code.";
    45: ALL,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; stackwalk.cpp: StackWalkFrames; recordings",
        "A thread that walks itself without a seed begins at its topmost Frame. Its ip does not \
         matter.";
    46: ALL,
        "proftoeeinterfaceimpl.cpp: DoStackSnapshot; docs: DoStackSnapshot; recordings",
        "If a cooperative thread walks itself without a seed outside all callbacks, the walk lacks \
         the managed frames newer than the first Frame that leads anywhere. Nothing indicates that \
         they are missing.";
    47: ALL, "docs: DoStackSnapshot; stackwalk.cpp; recordings",
        "With a seed at its newest managed frame, a stack that would be walked as in C-046 gives \
         all its managed frames, the newest first.";
    48: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "Without a seed a call gets CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX while an exception of \
         the target is in its second pass, native code is dispatching it, and no handler has been \
         entered. Where managed code dispatches exceptions, this was observed only in \
         ExceptionUnwindFunctionEnter and Leave (C-164).";
    49: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A cooperative target with a seed is not refused by C-048. For a preemptive one the seed \
         is ignored, so the refusal remains: in 3.1 in ExceptionUnwindFunctionEnter.";
    50: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; exceptionhandling.cpp; recordings",
        "After a catch there is a moment when the exception tracker is gone and the thread has \
         not been resumed yet. A call then gets CORPROF_E_STACKSNAPSHOT_UNSAFE, with or without a \
         seed.";
    51: ALL,
        "stackwalk.cpp: StackWalkFrames; proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; \
         recordings",
        "The first managed frame that a seeded walk reports has the Rip of the seed as its ip \
         and, under COR_PRF_SNAPSHOT_REGISTER_CONTEXT, the Rsp of the seed in its context.";
    52: ALL, "proftoeeinterfaceimpl.cpp: DoStackSnapshot; recordings",
        "A seed works with and without COR_PRF_SNAPSHOT_REGISTER_CONTEXT.";
    53: WHOLE_SEED, "regdisp.h: FillRegDisplay",
        "A whole CONTEXT is read of a seed, regardless of contextSize. On newer Unix runtimes less \
         may be read, as was observed on .NET 9 (C-162).";
    54: WINDOWS,
        "stackwalk.cpp: CheckForSkippedFrames; DoStackSnapshotHelper; recordings",
        "A seed in managed code whose Rsp cannot be read gives E_UNEXPECTED without a callback. \
         On Unix the same seed kills the process with SIGSEGV.";
    55: CLR4, "stackwalk.cpp: NextRaw; recordings",
        "A seed in managed code whose Rsp can be read but is not on the stack of the target gives \
         one callback, for the frame of the seed, and then E_FAIL. C-109 has an exception.";
    56: ALL, "stackwalk.cpp: CheckForSkippedFrames; recordings",
        "Frames at addresses below the caller SP of the first managed frame are dropped without a \
         report.";
}
