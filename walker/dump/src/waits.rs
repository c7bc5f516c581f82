//! What a thread waits for, by its registers and memory: no symbol is needed.

use crate::process::StoppedProcess;
use crate::threads::Thread;
use clr_unwind::Gpr;

/// The system call futex (arch/x86/entry/syscalls/syscall_64.tbl of Linux).
const FUTEX: u64 = 202;
/// Operations of futex(2), without their flags: for a word, and for a word with a mask or a time of its own.
const WAIT: u64 = 0;
const WAIT_BITSET: u64 = 9;
const OPERATION: u64 = 0x7F;
/// The value of a lock of glibc that somebody waits for (`lll_lock` in sysdeps/nptl/lowlevellock.h of glibc).
const CONTENDED: u32 = 2;
/// Offsets in `struct __pthread_mutex_s` (sysdeps/x86/nptl/bits/struct_mutex.h of glibc) in bytes, after the lock's word.
const OWNER: u64 = 8;
const USERS: u64 = 12;
const KIND: u64 = 16;
/// Kinds of mutexes: normal, recursive, error-checking and adaptive, with the flags for robust, inheriting, protecting, shared and
/// elided ones.
const KINDS: u32 = 0x3FF;
/// Size of a thread's control block at most (`struct pthread` of glibc has 0x900 bytes).
const CONTROL_BLOCK: u64 = 0x1000;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A mutex of glibc that another thread, or itself, owns.
    Mutex {
        /// Address of the mutex (VA).
        address: u64,
        /// Id of the owner.
        owner: u32,
    },
    /// The end of a thread: `pthread_join`.
    Thread {
        /// Id of the thread that has to end.
        id: u32,
    },
    /// A word of memory: a condition, an event, or a lock that does not say who owns it.
    Word {
        /// Address of the word (VA).
        address: u64,
        /// Its value, or `None` if the dump lacks it.
        value: Option<u32>,
    },
    /// The kernel, in another system call.
    Call {
        /// Number of the system call.
        number: u64,
    },
}

impl Wait {
    /// Returns what a thread waits for, or `None` if it was not in a system call.
    ///
    /// An owner is named only if everything fits: the lock's word says that somebody waits, the mutex's other words are those of a
    /// mutex, and the owner is a thread of the process. A thread that has to end is named only if the word lies in its control block.
    pub fn of<P: StoppedProcess + ?Sized>(process: &P, thread: &Thread) -> Option<Self> {
        let number = thread.system_call?;
        let operation = thread.registers.get(Gpr::Rsi) & OPERATION;
        if number != FUTEX || !matches!(operation, WAIT | WAIT_BITSET) {
            return Some(Self::Call { number });
        }
        let address = thread.registers.get(Gpr::Rdi);
        let value = process.read_u32(address).ok();
        // The kernel has let it wait because the word had this value; since then it may have another one.
        let expected = thread.registers.get(Gpr::Rdx) as u32;
        let known = value.filter(|value| *value == expected);
        let owner = known.and_then(|value| owner(process, address, value));
        let ends = known.and_then(|value| ends(process, address, value));
        Some(match (owner, ends) {
            (Some(owner), _) => Self::Mutex { address, owner },
            (None, Some(id)) => Self::Thread { id },
            (None, None) => Self::Word { address, value },
        })
    }

    /// Returns the thread that has to go on before the waiting one does, if the process says which.
    pub const fn on(self) -> Option<u32> {
        match self {
            Self::Mutex { owner, .. } => Some(owner),
            Self::Thread { id } => Some(id),
            Self::Word { .. } | Self::Call { .. } => None,
        }
    }
}

/// Returns the owner of a mutex that somebody waits for.
fn owner<P: StoppedProcess + ?Sized>(process: &P, address: u64, value: u32) -> Option<u32> {
    if value != CONTENDED {
        return None;
    }
    let word = |offset| process.read_u32(address.checked_add(offset)?).ok();
    let (owner, users, kind) = (word(OWNER)?, word(USERS)?, word(KIND)?);
    let is_count = (1..=process.threads().len()).contains(&(users as usize));
    (is_count && kind & !KINDS == 0 && process.thread(owner).is_some()).then_some(owner)
}

/// Returns the thread in whose control block its own id is at `address`.
fn ends<P: StoppedProcess + ?Sized>(process: &P, address: u64, value: u32) -> Option<u32> {
    let thread = process.thread(value)?;
    let offset = address.checked_sub(thread.fs_base)?;
    (offset < CONTROL_BLOCK).then_some(value)
}
