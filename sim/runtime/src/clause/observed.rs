//! Clauses known only from recordings.

use super::ClauseEntry;
use super::sets::{
    ALL, CORE31_NET9, LARGE_CONTEXT, MANAGED_EH, MARKED_LATE, NEW_TRIGGERING, U9, U9_LEGACY,
    U9_MANAGED, U31, W31, W31_U8, W31_W8,
};

clauses! {
    Observed:
    153: W31, "recordings",
        "A walk begins with a marker if its first managed frame is in the part of the stack that \
         the current exception has already unwound: only managed frames are hidden there, not \
         markers.";
    154: W31, "recordings",
        "A handler funclet is reported like a method if no exception tracker has its caller SP.";
    155: W31_U8, "recordings",
        "An address slightly below all methods of a code heap or an image can make \
         GetFunctionFromIP read unmapped memory, which kills the process. No address found on a \
         stack ever did.";
    156: W31, "recordings",
        "If ReadyToRun code has a P/Invoke inlined, the ip of its frame is after the call of \
         JIT_PInvokeBegin, not after the native call. Rsp and Rbp are valid.";
    157: W31_W8, "recordings",
        "GetFunctionFromIP and DoStackSnapshot can hang on a thread on which managed code has run, \
         when a GC waits for the target which this thread itself has suspended. They cannot hang \
         on a thread on which managed code never ran.";
    158: ALL, "recordings",
        "Integer registers and ContextFlags that the walk has not set have their initial values in \
         every context.";
    159: U31, "recordings",
        "A value that is no ThreadID is dereferenced: SIGSEGV or, if it can be read, E_NOTIMPL or \
         CORPROF_E_STACKSNAPSHOT_UNSAFE depending on its content. So is the id of a destroyed \
         thread, with any of the three results.";
    160: CORE31_NET9, "recordings",
        "If managed code faulted in hardware, the ip of the first frame is the instruction that \
         faulted, and its context the whole CONTEXT of the FaultingExceptionFrame with its \
         ContextFlags. Under legacy exception handling on .NET 9 these lack the bit of the \
         extended state, 0x40.";
    161: LARGE_CONTEXT, "recordings",
        "Under COR_PRF_SNAPSHOT_REGISTER_CONTEXT contextSize is 3104 (0xC20) in every callback, \
         in .NET 10 3232 (0xCA0), be it for a managed frame or a marker. Without the flag it is 0.";
    162: LARGE_CONTEXT, "recordings",
        "The number of bytes read of the seed for a cooperative target depends on its \
         ContextFlags: 0x4D8 without CONTEXT_XSTATE (0x100040), with it 0x5E0, or 0xC20 if the \
         XStateFeaturesMask at 0x4D0 has a bit of 0xE0. .NET 10 reads 0x4D0 of a plain seed, and \
         0xCA0 if the mask has bit 19. Regardless of contextSize, fewer readable bytes end the \
         process with SIGSEGV. Observed on a machine with AVX-512.";
    163: MANAGED_EH, "recordings",
        "Methods of System.Runtime.EH are never reported, nor is a marker for the native frames \
         that unwinding them leads to. In all other respects they are managed frames: they drop \
         Frames, end the hiding of a funclet, and keep the result from being E_FAIL. Those of the \
         nested ExInfo are reported. Those of System.Runtime.StackFrameIterator and \
         System.Runtime.ExceptionServices.InternalCalls are hidden, too: all releases from 9.0.7 to \
         11.0.0 compare a method with the same three classes.";
    164: MANAGED_EH, "recordings",
        "In ExceptionCatcherEnter and Leave and ExceptionUnwindFinallyEnter and Leave a thread \
         that walks itself without a seed is cooperative and gets S_OK, beginning at the method \
         that handles. In ExceptionUnwindFunctionEnter and Leave it is preemptive, so a seed does \
         not help against CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX. From .NET 10 on both are cooperative.";
    165: MANAGED_EH, "recordings",
        "If a catch or finally handler was left by a later exception, the native caller of its \
         funclet is reported as a marker in ExceptionCatcherEnter and Leave. Several of them are \
         several markers in a row.";
    166: U9_MANAGED, "recordings",
        "When an exception leaves managed code for native code, ExceptionUnwindFunctionLeave and \
         Enter come before there is a second pass: a walk without a seed is S_OK and begins at the \
         throw. ExceptionThrown is raised again in the managed code that the exception reaches \
         next.";
    167: U9, "recordings",
        "SuspendRuntime gives S_OK to a managed thread inside a P/Invoke, which 3.1 refuses; the \
         thread can then walk itself and others. It does so, too, in the callbacks of JIT, class \
         and module loads, thread names and transitions, in ObjectAllocated, ThreadDestroyed, \
         ExceptionThrown, those of the exception search, ExceptionCatcherLeave and Shutdown. It \
         gives CORPROF_E_UNSUPPORTED_CALL_SEQUENCE in the callbacks of GC, references and \
         handles, ThreadAssignedToOSThread, ExceptionUnwindFunctionEnter and Leave, \
         ExceptionUnwindFinallyEnter and Leave, and ExceptionCatcherEnter.";
    168: MARKED_LATE, "recordings",
        "In the callbacks RuntimeSuspendStarted and Finished, RuntimeResumeStarted and Finished, \
         and GarbageCollectionStarted another thread gives E_NOTIMPL, regardless of who suspends: \
         a suspension is marked as the profiler's only after them.";
    169: U9, "recordings",
        "A value that is no ThreadID gives S_OK without callbacks if it points to bytes of 0xFF, \
         to code or into a Thread, E_NOTIMPL if it points to zeros, and SIGSEGV if it is 1, 8, \
         0x1000, -1 or not canonical. The id of a destroyed thread gives E_NOTIMPL, and E_FAIL \
         while the profiler has the runtime suspended.";
    170: U9, "recordings",
        "Native code calls the stub of a reverse P/Invoke directly, so the ip of the marker after \
         it is in that native code. In UnmanagedToManagedTransition when a reverse P/Invoke is \
         called, and in ManagedToUnmanagedTransition when it returns, the first frame is that of \
         the P/Invoke around it; where there is none, the answer is E_FAIL.";
    171: U9_MANAGED, "recordings",
        "Enter and Leave hooks are called for the methods that dispatch exceptions. In a second \
         pass, a hook there that has frame info and no seed gets \
         CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX.";
    172: U9_LEGACY, "recordings",
        "With the setting LegacyExceptionHandling=1 a walk follows the rules of 3.1 on Unix. The \
         part of C-085 about .NET 9, C-163 to C-166 and C-171 do not hold.";
    173: NEW_TRIGGERING, "recordings",
        "GetFunctionFromIP2 and GetFunctionFromIP3 give CORPROF_E_UNSUPPORTED_CALL_SEQUENCE in a \
         P/Invoke, and in those callbacks in which SuspendRuntime gives it (C-167). On native \
         threads they give S_OK. In .NET 10 they give S_OK in all callbacks.";
}
