//! What a profiler has of a thread beside the runtime's interface: to stop it, to read its registers and
//! memory, and to know the code in its process.

use crate::code_map::CodeMap;
use crate::memory::Memory;
use crate::profiling::ThreadId;
use crate::registers::Registers;
use core::fmt::{Debug, Display};

/// The registers of a stopped thread, with what the system says of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadContext {
    /// The registers.
    pub registers: Registers,
    /// `ContextFlags` as `GetThreadContext` returns them; ask with `CONTEXT_FULL` and
    /// `CONTEXT_EXCEPTION_REQUEST`. From a signal's ucontext, `CONTEXT_FULL` alone.
    pub flags: u32,
}

impl ThreadContext {
    /// `CONTEXT_FULL` of x64.
    pub const FULL: u32 = 0x0010_000B;
    /// `CONTEXT_EXCEPTION_REPORTING`: the two flags below say something.
    pub const EXCEPTION_REPORTING: u32 = 0x8000_0000;
    /// `CONTEXT_SERVICE_ACTIVE`: the thread is in a system call.
    pub const SERVICE_ACTIVE: u32 = 0x1000_0000;
    /// `CONTEXT_EXCEPTION_ACTIVE`: the kernel is dispatching an exception on the thread.
    pub const EXCEPTION_ACTIVE: u32 = 0x0800_0000;

    /// Whether the registers may be older than the stack, because the kernel is about to send the
    /// thread elsewhere (H-14). A system call alone leaves them as they are.
    #[must_use]
    pub const fn may_be_stale(&self) -> bool {
        let active = Self::EXCEPTION_REPORTING | Self::EXCEPTION_ACTIVE;
        self.flags & active == active
    }
}

/// The bounds of a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackBounds {
    /// The lowest address that may be in use (VA).
    pub limit: u64,
    /// The address behind the highest one (VA).
    pub base: u64,
    /// The return address of the thread's first function: what a walk that is complete comes to. 0 on
    /// Windows.
    pub root: u64,
}

impl StackBounds {
    /// Whether `sp` can be the stack pointer of a frame.
    #[must_use]
    pub const fn contain(&self, sp: u64) -> bool {
        self.limit <= sp && sp < self.base
    }
}

/// A thread whose stack can be walked. Reads of its [`Memory`] are made only while it stands still, or
/// while the runtime is suspended, of frames that wait for others.
///
/// | | Windows | Unix |
/// |---|---|---|
/// | `suspend`, `resume` | `SuspendThread` followed by `GetThreadContext`, without which the thread may still run; `ResumeThread` | a signal whose handler waits |
/// | `context` | `GetThreadContext` | the handler's ucontext |
/// | memory | the process's own, each read guarded (`ReadProcessMemory`) | the same (`process_vm_readv`) |
///
/// Between `suspend` and `resume` the caller takes no lock that the thread may own: it allocates
/// nothing, logs nothing, loads nothing (H-03, H-08, H-11 to H-13). It is a thread that has never run
/// managed code (H-02), and the only one that suspends others (H-01).
pub trait TargetThread: Memory {
    /// What can go wrong: `GetLastError`, `errno`.
    type Error: Copy + Debug + Display + PartialEq;

    /// The id by which the runtime knows it. It must be alive for as long as this exists: block in
    /// `ThreadDestroyed` until walks of it are over (H-04).
    fn id(&self) -> ThreadId;

    /// The bounds of its stack; they do not change while it lives.
    fn stack(&self) -> StackBounds;

    /// Stops it. Suspensions nest.
    ///
    /// # Errors
    /// The system's; it runs on then.
    fn suspend(&self) -> Result<(), Self::Error>;

    /// Undoes one [`suspend`](Self::suspend).
    ///
    /// # Errors
    /// The system's.
    fn resume(&self) -> Result<(), Self::Error>;

    /// Its registers, while it stands still. Of the calling thread, those that it had where the walk
    /// shall start: in a signal handler the interrupted ones, else its own (`RtlCaptureContext`).
    ///
    /// # Errors
    /// The system's.
    fn context(&self) -> Result<ThreadContext, Self::Error>;
}

/// The code in the process.
pub trait ModuleSource {
    /// The native images that are loaded, and whatever else the profiler knows unwind data of. On
    /// Windows, `RtlInstallFunctionTableCallback` makes the heaps of jitted code known to everybody;
    /// images of ready-to-run code are PE files everywhere.
    ///
    /// The map is made from notifications of loads and unloads (`LdrRegisterDllNotification`,
    /// `ModuleLoadFinished`, `dl_iterate_phdr`) while no thread stands still: to ask the loader in the
    /// middle of a walk is how walks hang (H-11, H-12).
    fn code_map(&self) -> &CodeMap<'_>;
}

impl ModuleSource for CodeMap<'_> {
    fn code_map(&self) -> &CodeMap<'_> {
        self
    }
}
