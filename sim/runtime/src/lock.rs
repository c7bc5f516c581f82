//! The locks of the runtime and the process that threads take on the way (contract §2.4, §2.6, §6, §7).

use super::OsThreadId;

/// A lock is an enum variant, and its name.
macro_rules! locks {
    ($($(#[doc = $doc:literal])* $lock:ident $name:literal,)*) => {
        /// A lock that the simulated process has one of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Lock {
            $($(#[doc = $doc])* $lock,)*
        }

        impl Lock {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$lock,)*];

            /// What it is called where it is told of.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$lock => $name,)* }
            }
        }
    };
}

locks! {
    /// The process's heap: malloc (H-08, H-13).
    ProcessHeap "process heap",
    /// The system's loader lock (H-12).
    Loader "loader lock",
    /// The system's table of function tables on Windows: `RtlLookupFunctionEntry` reads it (H-11).
    FunctionTables "inverted function table",
    /// The heaps that classes and code are allocated in (G14).
    LoaderHeap "loader heap",
    /// The runtime's list of threads: threads are not made, destroyed or suspended meanwhile (H-05).
    ThreadStore "thread store",
    /// The stress log (contract §2.4, H-03).
    StressLog "stress log",
    /// Who writes to the code manager's tables (H-09).
    CodeManager "code manager's writer lock",
    /// Who makes a collection.
    Gc "GC lock",
    /// What the runtime makes for a thread at its first call (H-03).
    ThreadInit "per-thread initialization",
}

impl Lock {
    /// Whether who owns it may take it again.
    #[must_use]
    pub const fn is_reentrant(self) -> bool {
        matches!(self, Self::ProcessHeap | Self::Loader | Self::ThreadStore)
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// Who has a lock, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    owner: OsThreadId,
    /// 0 if it is free.
    count: u32,
}

/// Who has the locks of a process, but for the code manager's: [`Process`](super::Process) knows of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locks {
    held: [Held; Lock::ALL.len()],
}

impl Locks {
    /// Who has a lock.
    pub(super) fn owner(&self, lock: Lock) -> Option<OsThreadId> {
        let held = self.held.get(lock.index())?;
        (held.count > 0).then_some(held.owner)
    }

    /// A thread takes a lock, once more if it has it.
    pub(super) fn take(&mut self, lock: Lock, thread: OsThreadId) {
        if let Some(held) = self.held.get_mut(lock.index()) {
            *held = Held { owner: thread, count: held.count.saturating_add(1) };
        }
    }

    /// Who has a lock gives it back once.
    pub(super) fn give_back(&mut self, lock: Lock) {
        if let Some(held) = self.held.get_mut(lock.index()) {
            held.count = held.count.saturating_sub(1);
            if held.count == 0 {
                // Nobody tells from a free lock who had it last.
                *held = Held::default();
            }
        }
    }
}
