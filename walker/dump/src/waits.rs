//! What a thread waits for, by its registers and memory. Linux needs no symbol for it.

use crate::process::{StoppedProcess, System};
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

/// Size at most of a function of ntdll.dll that enters the kernel, up to the next instruction, in bytes.
const SYSTEM_CALL_FUNCTION: u64 = 20;
/// Offset of the fifth argument from the stack pointer at the begin of a function of Windows, in bytes.
const FIFTH_ARGUMENT: u64 = 0x28;

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
        if process.system() == System::Windows {
            return Some(Self::Call { number });
        }
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

    /// Returns true if the wait of a thread may end by itself: unless the process shows that it was given no time. Of Windows that is
    /// known of `NtWaitForMultipleObjects` alone, whose time stands on the stack; other calls have it in registers that are not kept.
    pub fn may_time_out<P: StoppedProcess + ?Sized>(process: &P, thread: &Thread) -> bool {
        match process.system() {
            // The fourth argument of futex(2).
            System::Linux => thread.registers.get(Gpr::R10) != 0,
            System::Windows => !waits_forever(process, thread).unwrap_or(false),
        }
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

/// Returns true if the thread is in `NtWaitForMultipleObjects`, and the fifth argument, a pointer to the time, is null.
fn waits_forever<P: StoppedProcess + ?Sized>(process: &P, thread: &Thread) -> Option<bool> {
    let (rip, rsp) = (thread.registers.rip, thread.registers.rsp());
    thread.system_call?;
    let start = process.module_at(rip)?.symbol(process, "NtWaitForMultipleObjects").ok()??;
    let is_in = rip.checked_sub(start).is_some_and(|offset| offset <= SYSTEM_CALL_FUNCTION);
    Some(is_in && process.read_u64(rsp.checked_add(FIFTH_ARGUMENT)?).ok()? == 0)
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
