//! Copies of the process, made by its threads in signal handlers: what a copy executes finds memory as it was then.

use super::super::shared_memory;
use super::{PATIENCE, set_mask};
use clr_sampler::Sample;
use clr_unwind::Registers;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Maximum length in bytes of the text of a process's mappings.
const MAPPINGS: usize = 1 << 20;
/// The time that a copy waits for its execution, in seconds. A copy that nobody executes ends then.
const LIFETIME: i64 = 10;

/// The copies: at most one at a time.
#[derive(Debug)]
pub(super) struct Forks {
    /// One of so many requests makes a copy.
    every: u32,
    requests: AtomicU32,
    /// The copy of the last request that has made one; 0 if it was taken.
    pid: AtomicI32,
    rip: AtomicU64,
    rsp: AtomicU64,
    /// 1 in the copy when it is ready for its execution.
    is_ready: AtomicU32,
    /// Number of copies that no sample came for.
    pub(super) unused: AtomicU64,
    /// The file with the runtime's code. It is there before profilers are.
    code: Option<i32>,
    /// Room of the copy for the text of its mappings (VA): a handler allocates nothing.
    room: usize,
}

/// A copy. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Fork<'f> {
    pub(super) pid: i32,
    forks: &'f Forks,
}

impl Fork<'_> {
    /// Returns the address (VA) of the word that is 1 in the copy when it is ready.
    pub(super) fn is_ready(&self) -> u64 {
        self.forks.is_ready.as_ptr() as u64
    }

    /// Returns the copy's file with code, if it has one.
    pub(super) fn code(&self) -> Option<i32> {
        self.forks.code
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        // SAFETY: the process is this one's child, and nobody else waits for it: it sends no signal when it ends.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, null_mut(), libc::__WALL);
        }
    }
}

impl Forks {
    /// Makes the room for copies of one of `every` requests; 0: of none.
    pub(super) fn new(every: u32) -> Self {
        // Handlers may run until the process ends.
        let room = Box::leak(vec![0_u8; MAPPINGS].into_boxed_slice());
        Self {
            every,
            requests: AtomicU32::new(0),
            pid: AtomicI32::new(0),
            rip: AtomicU64::new(0),
            rsp: AtomicU64::new(0),
            is_ready: AtomicU32::new(0),
            unused: AtomicU64::new(0),
            code: if every == 0 { None } else { shared_memory::code_file() },
            room: room.as_mut_ptr() as usize,
        }
    }

    /// Copies the process if it is this request's turn, in the signal handler that has interrupted the calling thread with
    /// these registers. The copy has this thread alone, and waits.
    pub(super) fn make(&self, registers: &Registers) {
        if self.every == 0
            || !self.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.every)
        {
            return;
        }
        if self.any().is_some() {
            self.unused.fetch_add(1, Ordering::Relaxed);
        }
        self.rip.store(registers.rip, Ordering::Relaxed);
        self.rsp.store(registers.rsp(), Ordering::Relaxed);
        // No signal to this process when the copy ends: the runtime has a handler of SIGCHLD.
        // SAFETY: the copy leaves `wait` never. A plain call makes no other preparations of a library.
        match unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } as i32 {
            0 => self.wait(),
            pid if pid > 0 => self.pid.store(pid, Ordering::Release),
            _ => {}
        }
    }

    /// Returns the copy that was made for a sample, if there is one.
    pub(super) fn of(&self, sample: &Sample) -> Option<Fork<'_>> {
        let registers = &sample.registers;
        let made_for = (self.rip.load(Ordering::Relaxed), self.rsp.load(Ordering::Relaxed));
        if made_for == (registers.rip, registers.rsp()) { self.any() } else { None }
    }

    /// Returns the copy of the last request, if it has made one.
    pub(super) fn any(&self) -> Option<Fork<'_>> {
        let pid = self.pid.swap(0, Ordering::Acquire);
        (pid != 0).then(|| Fork { pid, forks: self })
    }

    /// Waits for the execution, in the copy. The handlers are the runtime's: none may run here.
    fn wait(&self) -> ! {
        set_mask(!0);
        let limit = libc::timeval { tv_sec: 0, tv_usec: PATIENCE };
        let time = libc::timespec { tv_sec: LIFETIME, tv_nsec: 0 };
        // SAFETY: no other thread exists in this process, and the room is used by copies alone, each of which has its own.
        unsafe {
            let room = std::slice::from_raw_parts_mut(self.room as *mut u8, MAPPINGS);
            if shared_memory::make_private(self.code, room) {
                let once = libc::itimerval { it_interval: zeroed(), it_value: limit };
                libc::syscall(libc::SYS_setitimer, libc::ITIMER_PROF, &raw const once, 0_usize);
                // The process that executes this is no ancestor, but a sister.
                libc::syscall(
                    libc::SYS_prctl,
                    libc::PR_SET_PTRACER,
                    libc::PR_SET_PTRACER_ANY,
                    0,
                    0,
                    0,
                );
                self.is_ready.store(1, Ordering::Release);
                libc::syscall(libc::SYS_nanosleep, &raw const time, 0_usize);
            }
            loop {
                libc::syscall(libc::SYS_exit_group, 1);
            }
        }
    }
}
