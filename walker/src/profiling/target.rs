//! The operating system's part of a walk: stopping a thread, reading its registers and memory, and
//! finding the code in its process.

use crate::profiling::ThreadId;
use clr_unwind::{CodeMap, Memory, Registers};
use core::fmt::{Debug, Display};
use core::ops::Deref;

/// The registers of a stopped thread, with the flags that the system returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadContext {
    /// The registers.
    pub registers: Registers,
    /// `ContextFlags` as `GetThreadContext` returns them for a request with `CONTEXT_FULL` and
    /// `CONTEXT_EXCEPTION_REQUEST`. For a signal's ucontext, only `CONTEXT_FULL`.
    pub flags: u32,
}

impl ThreadContext {
    /// `CONTEXT_FULL` of x64.
    pub const FULL: u32 = 0x0010_000B;
    /// `CONTEXT_EXCEPTION_REPORTING`: the two flags below are valid.
    pub const EXCEPTION_REPORTING: u32 = 0x8000_0000;
    /// `CONTEXT_SERVICE_ACTIVE`: the thread is in a system call.
    pub const SERVICE_ACTIVE: u32 = 0x1000_0000;
    /// `CONTEXT_EXCEPTION_ACTIVE`: the kernel is dispatching an exception on the thread.
    pub const EXCEPTION_ACTIVE: u32 = 0x0800_0000;

    /// Returns true if the registers may be older than the stack, because the kernel is about to
    /// send the thread elsewhere (H-14). A system call alone leaves them unchanged.
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
    /// The address after the highest one (VA).
    pub base: u64,
    /// The end of a complete walk.
    pub root: StackRoot,
}

/// The mark of a thread's first function, where a complete walk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackRoot {
    /// The first function's return address is undefined by its call frame information, as that of
    /// `_start` and `clone3` is in glibc. Nothing on the stack counts as the root: on Unix any
    /// number may lie where unwind data name a return address, for instance a method's return value
    /// while the GC has hijacked its return (contract §2.4).
    Undefined,
    /// The first function returns to this address (VA), which lies within the highest
    /// [`ROOM`](Self::ROOM) bytes of the stack. 0 on Windows. On Unix, the address after the call
    /// of a start routine in a C library whose call frame information does not end there.
    ReturnAddress(u64),
}

impl StackRoot {
    /// Maximum distance in bytes of the first function's caller from the stack's base: two pages.
    /// The system and the C library keep data of the thread there. Assumed: how much is not
    /// documented.
    pub const ROOM: u64 = 0x2000;
}

impl StackBounds {
    /// Returns true if a frame is the thread's first: it returns to `rip` (VA), and its caller's
    /// stack pointer would be `caller_sp` (VA).
    pub const fn end_at(&self, rip: u64, caller_sp: u64) -> bool {
        match self.root {
            StackRoot::Undefined => false,
            StackRoot::ReturnAddress(root) => {
                rip == root && self.base.wrapping_sub(caller_sp) <= StackRoot::ROOM
            }
        }
    }

    /// Returns true if `sp` can be the stack pointer of a frame.
    pub const fn contain(&self, sp: u64) -> bool {
        self.limit <= sp && sp < self.base
    }
}

/// A thread whose stack can be walked. Its [`Memory`] is read only while the thread is stopped, or
/// while the runtime is suspended, and then only in frames that wait for a callee.
///
/// | | Windows | Unix |
/// |---|---|---|
/// | `suspend`, `resume` | `SuspendThread` followed by `GetThreadContext`, without which the thread may still run; `ResumeThread` | a signal whose handler waits |
/// | `context` | `GetThreadContext` | the handler's ucontext |
/// | memory | the process's own, each read guarded (`ReadProcessMemory`) | the same (`process_vm_readv`) |
///
/// Between `suspend` and `resume` the caller takes no lock that the thread may own: it allocates
/// nothing, logs nothing, loads nothing (H-03, H-08, H-11 to H-13). The caller is a thread that has
/// never run managed code (H-02), and the only one that suspends others (H-01).
pub trait TargetThread: Memory {
    /// The system's error: `GetLastError`, `errno`.
    type Error: Copy + Debug + Display + PartialEq;

    /// Returns the runtime's id of the thread, which must be alive for as long as this value
    /// exists: block in `ThreadDestroyed` until walks of it are over (H-04).
    fn id(&self) -> ThreadId;

    /// Returns the bounds of the stack, which do not change while the thread lives.
    fn stack(&self) -> StackBounds;

    /// Stops the thread. Suspensions nest.
    ///
    /// # Errors
    /// The system's error; the thread then runs on.
    fn suspend(&self) -> Result<(), Self::Error>;

    /// Undoes one [`suspend`](Self::suspend).
    ///
    /// # Errors
    /// The system's error.
    fn resume(&self) -> Result<(), Self::Error>;

    /// Returns the registers of the stopped thread. For the calling thread, these are the registers
    /// at the place where the walk shall start: in a signal handler the interrupted ones, else its
    /// own (`RtlCaptureContext`).
    ///
    /// # Errors
    /// The system's error.
    fn context(&self) -> Result<ThreadContext, Self::Error>;
}

/// The code in the process.
pub trait ModuleSource {
    /// Returns the loaded native images, and all other code that the profiler knows unwind data of.
    /// On Windows, `RtlInstallFunctionTableCallback` makes the heaps of jitted code known to
    /// everybody; images of ready-to-run code are PE files everywhere.
    ///
    /// The map is made from notifications of loads and unloads (`LdrRegisterDllNotification`,
    /// `ModuleLoadFinished`, `dl_iterate_phdr`) while no thread is stopped: a walk that asks the
    /// loader in its middle may hang (H-11, H-12).
    ///
    /// A walk keeps what this returns until it ends, and signal handlers call it: it takes no lock
    /// and allocates nothing. [`SharedCodeMap`](clr_unwind::SharedCodeMap) does that while
    /// other threads change the map.
    fn code_map(&self) -> impl Deref<Target = CodeMap<'_>>;
}

impl ModuleSource for CodeMap<'_> {
    fn code_map(&self) -> impl Deref<Target = CodeMap<'_>> {
        self
    }
}

#[cfg(feature = "std")]
impl ModuleSource for clr_unwind::SharedCodeMap<'_> {
    fn code_map(&self) -> impl Deref<Target = CodeMap<'_>> {
        self.read()
    }
}
