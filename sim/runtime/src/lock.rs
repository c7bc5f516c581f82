//! Locks of the runtime and the process that profiling calls and profilers take (contract §2.4,
//! §2.6, §6, §7).

use super::OsThreadId;

/// Defines each lock as an enum variant with a name.
macro_rules! locks {
    ($($(#[doc = $doc:literal])* $lock:ident $name:literal,)*) => {
        /// A lock of the simulated process, which has one of each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Lock {
            $($(#[doc = $doc])* $lock,)*
        }

        impl Lock {
            /// All locks.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$lock,)*];

            /// Returns the name used in messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$lock => $name,)* }
            }
        }
    };
}

locks! {
    /// Lock of the process's heap: malloc (H-08, H-13).
    ProcessHeap "process heap",
    /// The system's loader lock (H-12).
    Loader "loader lock",
    /// Lock of the system's table of function tables on Windows: `RtlLookupFunctionEntry` reads it
    /// (H-11).
    FunctionTables "inverted function table",
    /// Lock of the heaps that classes and code are allocated in (G14).
    LoaderHeap "loader heap",
    /// Lock of the runtime's list of threads: no thread is created, removed or suspended while it
    /// is held. An ending thread takes it after ThreadDestroyed (contract §6).
    ThreadStore "thread store",
    /// Lock of the stress log (contract §2.4, H-03).
    StressLog "stress log",
    /// Writer lock of the code manager's tables (H-09).
    CodeManager "code manager's writer lock",
    /// Lock of the thread that performs a GC.
    Gc "GC lock",
    /// Lock for the per-thread state that the runtime creates at a thread's first call (H-03).
    ThreadInit "per-thread initialization",
    /// Lock of the cache of libunwind's `local_addr_space`, with which the runtime unwinds native
    /// code on Unix. Signals are not blocked while it is held: the runtime's build of libunwind
    /// leaves `CONFIG_BLOCK_SIGNALS` undefined (dwarf/Gparser.c `get_rs_cache`; CoreCLR 3.1.23;
    /// H-28).
    NativeUnwinder "native unwinder's cache",
}

impl Lock {
    /// Returns true if the owner may take the lock again. The heap's is a plain lock in the C libraries of Unix. On Windows it
    /// is a critical section, but nothing leads a thread from there into the heap again: no signal interrupts it.
    pub const fn is_reentrant(self) -> bool {
        matches!(self, Self::Loader | Self::ThreadStore)
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// Owner of a lock and its acquisition count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Held {
    owner: OsThreadId,
    /// 0 if the lock is free.
    count: u32,
}

/// Owners of the locks of a process, except the code manager's; [`Process`](super::Process) covers
/// all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Locks {
    held: [Held; Lock::ALL.len()],
}

impl Locks {
    /// Returns the owner of a lock.
    pub(super) fn owner(&self, lock: Lock) -> Option<OsThreadId> {
        let held = self.held.get(lock.index())?;
        (held.count > 0).then_some(held.owner)
    }

    /// Returns the number of times that the owner of a lock has taken it.
    pub fn count(&self, lock: Lock) -> u32 {
        self.held.get(lock.index()).map_or(0, |held| held.count)
    }

    /// Takes a lock for a thread, once more if the thread has it.
    pub(super) fn take(&mut self, lock: Lock, thread: OsThreadId) {
        if let Some(held) = self.held.get_mut(lock.index()) {
            *held = Held { owner: thread, count: held.count.saturating_add(1) };
        }
    }

    /// Releases a lock once.
    pub(super) fn give_back(&mut self, lock: Lock) {
        if let Some(held) = self.held.get_mut(lock.index()) {
            held.count = held.count.saturating_sub(1);
            if held.count == 0 {
                // A free lock does not remember its last owner.
                *held = Held::default();
            }
        }
    }
}
