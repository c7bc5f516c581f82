//! The table of words.

use super::Synonym;

macro_rules! synonyms {
    ($($($word:literal)|+ => $here:literal, [$($find:literal),*];)+) => {
        /// All words of the field that have another name here, by theme.
        pub const SYNONYMS: &[Synonym] =
            &[$(Synonym { words: &[$($word),+], here: $here, find: &[$($find),*] },)+];
    };
}

synonyms! {
    // Hooks.
    "ELT" | "ELT2" | "ELT3" | "enter/leave" | "enter leave hooks" | "FunctionEnter" | "FunctionEnter2" | "FunctionEnter3"
        | "FunctionEnter3WithInfo" | "FunctionLeave" | "FunctionLeave2" | "FunctionLeave3" | "FunctionLeave3WithInfo"
        | "FunctionTailcall" | "FunctionTailcall2" | "FunctionTailcall3" | "FunctionTailcall3WithInfo"
        | "SetEnterLeaveFunctionHooks" | "SetEnterLeaveFunctionHooks2" | "SetEnterLeaveFunctionHooks3"
        | "SetEnterLeaveFunctionHooks3WithInfo" | "COR_PRF_MONITOR_ENTERLEAVE" =>
        "hooks are set by `hooks \"slow\"`, and are called as the callback `EnterLeaveSlow`; by `hooks \"fast\"` code calls the \
         profiler directly: `on-hook`",
        ["EnterLeaveSlow", "hooks", "hook"];
    "FunctionIDMapper" | "FunctionIDMapper2" | "SetFunctionIDMapper" | "SetFunctionIDMapper2" =>
        "texts have no mapper of functions: each method has hooks; a profiler in `clrsim host` sets one", ["hooks"];

    // What code does.
    "Thread.Sleep" | "Sleep" | "SleepEx" | "usleep" | "nanosleep" =>
        "a managed thread sleeps by the statement `sleep` in a `body`, native code by `p-invoke` of a function with `work`, a profiler \
         by the action `sleep` with its microseconds", ["sleep"];
    "throw" | "throw new" | "exception" | "managed exception" | "RaiseException" | "_CxxThrowException" =>
        "`raise` throws an exception of the CLR in a `body`; `guarded`, `on-catch`, `on-filter`, `on-finally`, and `on-fault` handle \
         it; `throw` is for programs without a runtime", ["exception", "raise"];
    "catch" | "except" => "`on-catch` directly after `guarded { … }` catches what `raise` throws", ["on-catch", "catch"];
    "finally" => "`on-finally` directly after `guarded { … }`", ["on-finally", "finally"];
    "filter" | "when" | "exception filter" => "`on-filter` directly after `guarded { … }`, and `on-catch` after it", ["on-filter", "filter"];
    "malloc" | "calloc" | "free" | "HeapAlloc" | "HeapFree" | "RtlAllocateHeap" | "operator new" =>
        "native code allocates by the statement `malloc` in a `body`, a profiler by the action `allocate`: both take the heap's lock \
         (H-13)", ["malloc", "allocate", "heap"];
    "alloc" | "allocation" | "newobj" | "JIT_New" | "gcnew" =>
        "`new` in a `body` allocates an object", ["ObjectAllocated", "new"];
    "LoadLibrary" | "LoadLibraryEx" | "LdrLoadDll" | "dlopen" | "loader lock" =>
        "`load-library` takes the loader lock: a statement of native code, and an action of a profiler (H-11, H-12)", ["load-library", "loader"];
    "Monitor.Enter" | "lock statement" | "mutex" | "CRITICAL_SECTION" | "EnterCriticalSection" | "pthread_mutex_lock" =>
        "managed code takes a monitor by `monitor-enter`; a profiler has `lock \"name\"`, around actions or as `acquire` and `release`",
        ["lock"];
    "Monitor.Wait" | "WaitForSingleObject" | "WaitOne" | "pthread_cond_wait" =>
        "managed code waits by `monitor-wait`; a profiler has an `event`, and `wait`", ["wait"];
    "SetEvent" | "ManualResetEvent" | "condition variable" => "a profiler has an `event`, `set`, `reset`, and `wait`", ["event"];
    "QueueUserAPC" | "APC" | "special user APC" | "QueueUserAPC2" =>
        "APCs are no word of a text: .NET on Windows stops threads by them as by `stop-threads \"redirection\"`", ["suspension", "redirect"];
    "hijack" | "return address hijack" | "return address hijacking" | "OnHijackTripThread" =>
        "`stop-threads \"hijack\"` stops threads at the return of their function; a `stack` has `hijacked`", ["hijack"];
    "redirect" | "redirection" | "RedirectedHandledJITCase" => "`stop-threads \"redirection\"` stops threads at their instruction", ["redirect"];
    "P/Invoke" | "DllImport" | "LibraryImport" | "native call" | "NDirect" =>
        "`p-invoke \"Lib.Function\"` in a `body` calls unmanaged code; other forms are `p-invoke-stub`, `p-invoke-calli`, and more",
        ["p-invoke"];
    "reverse P/Invoke" | "UnmanagedCallersOnly" | "GetFunctionPointerForDelegate" | "UMThunk" | "native callback" =>
        "`reverse-p-invoke` in the `body` of native code calls a managed method; `method=\"unmanaged-callers-only\"` is a kind of method",
        ["reverse-p-invoke"];
    "calli" => "`p-invoke-calli` calls unmanaged code by a pointer", ["p-invoke-calli"];
    "COM" | "COM interop" | "RCW" | "CCW" | "IUnknown" => "`com-call` calls a COM method, `com-method` a managed one by COM", ["com"];
    "delegate" | "multicast" => "`open-delegate`, `multicast-delegate`, and `wrapper-delegate` in a `body` call by a delegate", ["delegate"];
    "reflection" | "MethodInfo.Invoke" | "MethodBase.Invoke" => "`reflection-call` in a `body` calls a method by reflection", ["reflection"];
    "cctor" | "static constructor" | "type initializer" => "`class-constructor` in a `body` runs one", ["class-constructor"];
    "VSD" | "virtual stub dispatch" | "callvirt" => "`virtual-call` and `interface-call` in a `body` call through stubs", ["virtual-call", "stubs"];
    "GC" | "GC.Collect" | "garbage collection" | "garbage collector" =>
        "`collect` in a `body` triggers a GC; a profiler calls `ForceGC`", ["gc", "collect"];
    "Environment.Exit" => "`exit` in a `body` ends the process", ["exit", "Shutdown"];
    "Environment.FailFast" | "FailFast" => "`fail-fast` in a `body` ends the process at once", ["fail-fast"];
    "StackOverflow" | "StackOverflowException" => "`exhaust-stack` in a `body`", [];
    "NullReferenceException" | "null reference" => "`null-dereference` in a `body`", ["null-dereference"];
    "Thread.Start" | "CreateThread" | "pthread_create" => "`start-thread` in a `body` starts a `thread` with `by-program=#true`", ["start-thread"];
    "ThreadPool" | "worker thread" => "a `thread` with `pool=#true`", ["pool"];
    "Thread.Join" => "`join-thread` in a `body` waits for the end of a thread, and the action `join`", ["join-thread"];
    "if" | "for" | "while" | "foreach" | "goto" =>
        "a `body` has `if #true { … }` and `loop 3 { … }`: what a program does is known before it runs", ["loop"];
    "int" | "var" | "let" | "void" | "class" | "public" | "static" | "namespace" | "using" | "#include" =>
        "a text is no source code: a method is `function \"App.Main\" kind=\"jit\" { body { new } }`", [];
    "main" | "entry point" => "the first `function` of a program is where its thread starts, or `thread \"main\" start=\"App.Main\"`", [];

    // Kinds of code.
    "R2R" | "ReadyToRun" | "crossgen" | "crossgen2" | "NGEN" | "precompiled" =>
        "methods compiled ahead of time are `kind=\"ready-to-run\"`, in a `stack` `ready-to-run`", ["ready-to-run"];
    "jitted" | "RyuJIT" | "clrjit" | "just in time" | "managed" => "jitted code is `kind=\"jit\"`, in a `stack` `jit`", ["jit"];
    "C++" | "C" | "cpp" | "unmanaged" | "unmanaged code" => "unmanaged code is `kind=\"native\"`, the default of a `function`", ["native"];
    "tiered compilation" | "tier0" | "tier1" | "tiering" | "OSR" | "on-stack replacement" =>
        "a `thread` with `tiering=#true` and `tier-up` compile a method again; `replace-on-stack` does so while it runs", ["tiers"];
    "IL stub" | "marshalling stub" => "`method=\"il-stub\"`, in a `stack` `il-stub`", ["il-stub"];
    "DynamicMethod" | "LCG" | "lightweight codegen" | "Reflection.Emit" => "`method=\"dynamic\"`, in a `stack` `dynamic`", ["dynamic"];
    "prestub" | "precode" | "ThePreStub" => "`first-call` in a `body` goes through the precode", ["prestub", "first-call"];
    "tail call" | ".tail" => "`tail-call` leaves a function for another, `tail-call-by-helper` by the helper", ["tail-call"];
    "inline" | "inlining" | "AggressiveInlining" => "`inlines \"Method\"` in a `function`", [];
    "finalizer" | "Finalize" | "destructor" => "`new-finalizable` allocates an object with one; a `thread` with `finalizer=#true` runs it", ["finalizer"];
    "AppDomain" => "each session has one application domain: texts do not create others", [];
    "async" | "await" | "Task" | "coroutine" => "tasks are no part of the simulation: what a runtime runs of them are methods and threads", [];
    "ReJIT" | "instrumentation" | "IL rewriting" => "a profiler in `clrsim host` calls `RequestReJIT`; in texts methods are compiled once, or by tiers", [];

    // Stops and walks.
    "SuspendThread" | "NtSuspendThread" | "thread_suspend" => "the action `suspend \"thread\"` of a profiler", ["suspend"];
    "ResumeThread" => "the action `resume \"thread\"` of a profiler", ["resume"];
    "GetThreadContext" => "the action `context \"thread\"` of a profiler", ["context"];
    "SetThreadContext" => "the action `set-context \"thread\"` of a profiler", ["set-context"];
    "SuspendRuntime" => "the action `suspend-runtime` of a profiler", ["suspend-runtime"];
    "ResumeRuntime" => "the action `resume-runtime` of a profiler", ["suspend-runtime"];
    "RequestProfilerDetach" | "detach profiler" => "the action `detach` of a profiler", ["detach"];
    "SuspendEE" | "RestartEE" | "SuspendAllThreads" | "stop the world" =>
        "the runtime stops its threads for a GC (`collect`), and for a profiler by `suspend-runtime`", ["suspension"];
    "SIGUSR1" | "SIGUSR2" | "SIGPROF" | "SIGRTMIN" | "SIGALRM" | "SIGVTALRM" | "tgkill" | "pthread_kill" | "sigaction" | "signal handler"
        | "signal" | "timer_create" =>
        "a profiler sends a signal by the action `signal \"thread\"`, and handles it in `on-signal` (Unix)", ["signal"];
    "SIGSEGV" | "SIGBUS" | "segfault" | "segmentation fault" | "AV" | "access violation" | "0xC0000005" | "crash" =>
        "a call that faults has the outcome `access-violation`; what happens in the handler of a crash is `on-crash`", ["access-violation", "crash"];
    "hang" | "freeze" | "stuck" | "deadlocked" | "deadlock" =>
        "a search expects `deadlock`; a call that waits for ever has the outcome `blocked`; `clrsim diagnose` reads a process that hangs",
        ["deadlock", "lock"];
    "race" | "race condition" | "data race" => "`explore` searches the interleavings of a `profiler` and the program", ["hazard"];
    "DSS" | "StackSnapshot" | "stack trace" | "backtrace" | "callstack" | "stack walk" =>
        "`snapshot` calls DoStackSnapshot; `mixed-walk` walks managed and native frames; `expect` of a `stop` unwinds", ["walk", "snapshot"];
    "DoStackSnapshot" =>
        "`snapshot` in a `stop`, on a `stack`, or among the actions of a profiler calls it", ["snapshot"];
    "StackSnapshotCallback" => "the callbacks of a `snapshot` are the `frame` and `marker` of its `expect`", ["marker"];
    "unmanaged frame" | "native frame" | "FunctionID 0" | "zero FunctionID" =>
        "the callback for a run of unmanaged frames is `marker` in the `expect` of a `snapshot`", ["marker"];
    "explicit frame" | "helper frame" | "HelperMethodFrame_1OBJ" | "InlinedCall" | "transition frame" =>
        "an explicit Frame of the runtime is `frame` in a `stack`, with its kind", ["frames", "helper-frame"];
    "CONTEXT" | "seed context" | "initial context" | "pbContext" => "the CONTEXT of a call is its `seed=`", ["seed"];
    "StackWalk64" | "StackWalkEx" | "RtlVirtualUnwind" | "RtlLookupFunctionEntry" | "libunwind" | "unw_step" | "_Unwind_Backtrace"
        | "unwind" | "unwinder" =>
        "a profiler has the actions `unwind` and `look-up-function-entry`; walks by unwind data are `mixed-walk`", ["unwinding"];
    "frame pointer" | "frame pointers" | "rbp chain" | "fp unwinding" =>
        "`mixed-walk policy=\"frame-pointers\"`; a function with one has `frame \"rbp\"`", ["frame-pointers"];
    "eh_frame" | "DWARF" | "CFI" | ".pdata" | ".xdata" | "UNWIND_INFO" | "RUNTIME_FUNCTION" =>
        "`unwind` in a `function` says its unwind data; `clrsim show` prints those of an image, `clrsim lint` judges them", ["unwinding"];
    "sample" | "sampling" | "sampler" | "sampling profiler" => "a `profiler` with a `thread` that walks others, and `explore`", ["sampler"];
    "cooperative" | "preemptive" | "GC mode" | "PreemptiveGCDisabled" =>
        "a thread on a `stack` has `mode \"cooperative\"` or `mode \"preemptive\"`", ["preemptive"];
    "safepoint" | "GC safe point" => "`stop at=\"App.Main\" instruction=3` stops at an instruction, safe or not", ["suspension"];
    "ThreadStore" | "ThreadStoreLock" => "`lock \"ThreadStore\"` in the `waits` of an expectation", ["lock"];
    "breakpoint" | "int3" => "`stop` is a place where threads are examined; `trap` executes int3", ["stop"];

    // Expectations, and the rest of a text.
    "assert" | "should" | "expected" | "result" => "`expect { result \"S_OK\" }` in the block of a `snapshot` says what must come", ["result"];
    "timeout" | "ms" | "milliseconds" | "seconds" | "us" | "usec" => "times are in microseconds: `micros=5000`, `sleep 5000`", [];
    "on" | "platform" | "os" | "target" | "version" | "tfm" => "`on=\"net8-windows unix\"` names runtimes", [];
    "Windows 64" | "win" | "win64" | "win-x64" | "windows-x64" => "runtimes for Windows are `on=\"windows\"`", ["windows"];
    "linux-x64" | "linux-musl" | "musl" | "alpine" | "ubuntu" | "debian" => "runtimes for Linux are `on=\"unix\"`, or `linux`", ["unix"];
    "osx" | "macos" | "darwin" | "mac" => "macOS is not simulated: the runtimes for Unix are those of Linux", ["unix"];
    "arm64" | "aarch64" | "arm" | "x86" | "i386" => "x64 alone is simulated", [];
    "mono" | "NativeAOT" | "IL2CPP" | "unity" => "the CLR alone is simulated: CoreCLR, and .NET Framework", [];
    "desktop" | "netfx" | "net48" | "net472" | ".NET Framework" | "framework" => ".NET Framework is `framework` among runtimes", ["framework"];
    "netcore" | "netcoreapp3.1" | "coreclr" => ".NET Core is `core` among runtimes, its version 3.1 `coreclr-3.1`", ["coreclr"];
    "attach" | "AttachProfiler" | "dotnet-trace" | "diagnostic port" => "`attach` in a native `function` attaches the profiler", ["attach"];
    "EventPipe" | "ETW" | "LTTng" | "event tracing" => "sessions of EventPipe are opened by a profiler in `clrsim host`", [];
    "dump" | "core dump" | "minidump" | "procdump" => "`clrsim inspect` and `clrsim diagnose` read core dumps, `clrsim import` makes a text of one", [];
    "search" => "`clrsim explore` searches interleavings; `clrsim list WORD` finds texts", [];
}
