//! Services that the runtime's code requests from the world outside the program.

/// Each service is an enum variant; its number is its index.
macro_rules! services {
    ($($(#[doc = $doc:literal])* $service:ident,)*) => {
        /// A service of the world, requested by the runtime's code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Service {
            $($(#[doc = $doc])* $service,)*
        }

        impl Service {
            /// All services, by number.
            pub const ALL: &[Self] = &[$(Self::$service,)*];
        }
    };
}

services! {
    /// Begins a thread of the runtime. Returns the address of the thread's start function.
    ThreadStart,
    /// Ends a thread of the runtime.
    ThreadEnd,
    /// Attaches a thread that came from unmanaged code and is unknown to the runtime.
    AttachThread,
    /// Makes the thread cooperative while another one is stopping all threads.
    RareDisable,
    /// Compiles the method that r10 names. Returns 1 if the code manager has still to be notified
    /// of the code.
    Compile,
    /// Returns the address of the code of the method that r10 names.
    FindCode,
    /// Compiles an IL stub.
    CompileStub,
    /// Loads a class.
    LoadClass,
    /// Loads an assembly.
    LoadAssembly,
    /// Unloads the assembly of the method that rbx names: makes the callbacks, and stops all other
    /// threads for the freeing of its code. Returns 0 if a thread executes the method.
    Unload,
    /// Resumes the other threads after an unloading.
    Unloaded,
    /// Destroys the dynamic method that rbx names.
    DestroyMethod,
    /// Frees the code of the method that rbx names.
    FreeCode,
    /// Begins to write to the code manager's tables.
    BeginWrite,
    /// Ends writing to the code manager's tables.
    EndWrite,
    /// Reports that the compiled method has code.
    Compiled,
    /// Compiles the method of the innermost frame again. Returns 1 if the code manager has still to be notified of the
    /// code.
    ReplaceOnStack,
    /// Queues the method that r10 names for the thread of tiered compilation.
    TierUp,
    /// Waits for a method to compile again. Returns 1, and names it in r10.
    ServeTiers,
    /// Creates a handle, of no object if rbx says so.
    CreateHandle,
    /// Destroys a handle.
    DestroyHandle,
    /// Makes GCs for other threads on request.
    ServeGc,
    /// Sets the name of the thread.
    NameThread,
    /// Sleeps.
    Sleep,
    /// Waits until a monitor's lock is free.
    AwaitMonitor,
    /// Makes a GC: all other threads are stopped meanwhile.
    Collect,
    /// Restores the registers of a thread that was redirected.
    RestoreContext,
    /// Reports a hook that the runtime calls.
    SlowHook,
    /// Reports a hook of the profiler that code calls directly.
    FastHook,
    /// Reports an allocated object.
    Allocated,
    /// Begins a P/Invoke.
    ManagedToUnmanagedCall,
    /// Ends a P/Invoke.
    UnmanagedToManagedReturn,
    /// Begins a reverse P/Invoke.
    UnmanagedToManagedCall,
    /// Ends a reverse P/Invoke.
    ManagedToUnmanagedReturn,
    /// Writes the registers of a hardware fault as the CONTEXT at the address in r10.
    CaptureFault,
    /// Throws an exception; where managed code handles it, begins a pass.
    Raise,
    /// Advances an exception. In native code, returns the address of the helper that calls the next
    /// funclet, or continues elsewhere; for managed code, returns 1 if there is another frame in
    /// the pass.
    Dispatch,
    /// Returns 1 if a frame has another EH clause whose funclet is to be called now.
    NextClause,
    /// Propagates an exception in native code, up to the frame that catches it.
    Propagate,
    /// Returns the address of a funclet that is about to be called, and sets its argument; without
    /// a funclet, continues where the exception ends.
    EnterFunclet,
    /// Ends a funclet whose result is in rbx.
    LeaveFunclet,
    /// Starts the thread that begins with the method that r10 names.
    StartThread,
    /// Waits for the end of the thread that begins with the method that r10 names.
    JoinThread,
    /// Returns 1 if the service is called the first time with the method that r10 names.
    CallOnce,
    /// Has the method that r10 names called for each exception.
    HandleFirstChance,
    /// The handler of exceptions that nothing catches has returned. Returns 0.
    UnhandledHandled,
    /// Registers the method that r10 names as the handler of exceptions that nothing catches.
    HandleUnhandled,
    /// Has the method that r10 names called at the end of the process.
    HandleProcessExit,
    /// Makes the method that r10 names the finalizer of the object that was allocated last.
    MakeFinalizable,
    /// Waits until the finalizer's thread has run all methods.
    AwaitFinalizers,
    /// Returns the address of the next method that the finalizer's thread has to run.
    ServeFinalizer,
    /// Ends a method of the finalizer's thread.
    Finalized,
    /// Ends the process on request.
    Exit,
    /// Ends the process at once.
    Die,
    /// Returns the address of the handler of first-chance exceptions.
    TakeHandler,
    /// Takes memory from the process's heap.
    Malloc,
    /// Loads a library.
    LoadLibrary,
}

impl Service {
    /// Returns the number of the service.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the service with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}
