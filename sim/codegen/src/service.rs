//! What the runtime's code asks of the world outside the program.

/// A kind is an enum variant; its number is its place.
macro_rules! services {
    ($($(#[doc = $doc:literal])* $service:ident,)*) => {
        /// A service.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Service {
            $($(#[doc = $doc])* $service,)*
        }

        impl Service {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$service,)*];
        }
    };
}

services! {
    /// A thread of the runtime begins: gives the address of what it executes.
    ThreadStart,
    /// A thread of the runtime is about to end.
    ThreadEnd,
    /// A thread that the runtime does not know comes to it from unmanaged code.
    AttachThread,
    /// A thread wants to be cooperative while others wait for all to stop.
    RareDisable,
    /// Compiles the method that r10 names. Gives 1 if its code is still to be told to the code manager.
    Compile,
    /// Gives the address of the code of the method that r10 names.
    FindCode,
    /// Compiles an IL stub.
    CompileStub,
    /// Loads a class.
    LoadClass,
    /// Loads an assembly.
    LoadAssembly,
    /// Unloads the assembly of the method that rbx names: tells of it, and stops all other threads for
    /// the freeing of its code. Gives 0 if a thread executes the method.
    Unload,
    /// The other threads go on behind that.
    Unloaded,
    /// Destroys the dynamic method that rbx names.
    DestroyMethod,
    /// Frees the code of the method that rbx names.
    FreeCode,
    /// Begins to write to the code manager's tables.
    BeginWrite,
    /// Has written.
    EndWrite,
    /// The method that was compiled has code.
    Compiled,
    /// Creates a handle.
    CreateHandle,
    /// Destroys a handle.
    DestroyHandle,
    /// Collects for others whenever they want it.
    ServeGc,
    /// The thread gets a name.
    NameThread,
    /// Waits for something outside the program.
    Wait,
    /// Collects: all other threads are stopped meanwhile.
    Collect,
    /// Gives a thread that was redirected its registers back.
    RestoreContext,
    /// A hook that the runtime calls.
    SlowHook,
    /// A hook of the profiler that code calls directly.
    FastHook,
    /// An object has been allocated.
    Allocated,
    /// A P/Invoke begins.
    ManagedToUnmanagedCall,
    /// A P/Invoke ends.
    UnmanagedToManagedReturn,
    /// A reverse P/Invoke begins.
    UnmanagedToManagedCall,
    /// A reverse P/Invoke ends.
    ManagedToUnmanagedReturn,
    /// Writes the registers of a hardware fault as the CONTEXT at the address in r10.
    CaptureFault,
    /// An exception is thrown; where managed code handles it, a pass begins.
    Raise,
    /// Goes on with an exception. In native code, gives the address of the helper that calls the next
    /// funclet, or goes on elsewhere; for managed code, whether there is another frame in the pass.
    Dispatch,
    /// Says whether a frame has another clause whose funclet is to be called now.
    NextClause,
    /// An exception goes on in native code, which ends where something catches it.
    Propagate,
    /// Gives the address of a funclet that is about to be called, and its argument; without a funclet,
    /// goes on where the exception ends.
    EnterFunclet,
    /// A funclet has returned what is in rbx.
    LeaveFunclet,
    /// Takes memory from the process's heap.
    Malloc,
    /// Loads a library.
    LoadLibrary,
}

impl Service {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The one with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}
