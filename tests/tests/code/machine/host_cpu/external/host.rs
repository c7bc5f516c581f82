//! A process on the host's processor, stepped by ptrace.

use super::*;
use nix::errno::Errno;
use nix::libc::{self, user_fpregs_struct, user_regs_struct};
use nix::sys::ptrace;
use nix::sys::ptrace::regset::NT_PRFPREG;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

/// The environment variable that makes the test `tracee` wait as a traced process.
pub(crate) const TRACEE: &str = "CLR_TRACEE";

/// The kernel's `si_code` for signals that are not caused by a page.
const SI_KERNEL: i32 = 0x80;
const SYSCALL: [u8; 2] = [0x0F, 0x05];

pub(crate) const READ: u64 = 1;
pub(crate) const WRITE: u64 = 2;
pub(crate) const EXECUTE: u64 = 4;

/// A process that serves only to have registers and memory. Its first thread is stopped before it
/// executes any code of its own. The process ends when this value is dropped, or with the test
/// process.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    pid: Pid,
    memory: File,
    integers: user_regs_struct,
    floats: user_fpregs_struct,
    /// True if registers must be written before the next step.
    changed: bool,
}

/// Kills the process on drop, unless the process has been taken out.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

fn end(child: &mut Child) {
    // Errors cannot be handled here.
    let _ = child.kill();
    let _ = child.wait();
}

impl Host {
    /// Starts a process.
    ///
    /// # Errors
    /// The system's error if it does not permit this.
    pub(crate) fn start() -> io::Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .args(["--exact", "machine::host_cpu::tracee", "--nocapture"])
            .env(TRACEE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut guard = Guard(Some(child));
        let id = guard.0.as_ref().map_or(0, Child::id);
        let pid = Pid::from_raw(id.cast_signed());
        ptrace::seize(pid, ptrace::Options::PTRACE_O_EXITKILL)?;
        ptrace::interrupt(pid)?;
        match waitpid(pid, None)? {
            WaitStatus::PtraceEvent(..) => {}
            other => return Err(io::Error::other(format!("{other:?}"))),
        }
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{id}/mem"))?;
        let integers = ptrace::getregs(pid)?;
        let floats = ptrace::getregset::<NT_PRFPREG>(pid)?;
        let child = guard.0.take().ok_or(Errno::ESRCH)?;
        let mut host = Self { child, pid, memory, integers, floats, changed: true };
        // The process must not continue a system call that it was interrupted in.
        host.integers.orig_rax = u64::MAX;
        Ok(host)
    }

    /// Makes the process execute a system call, and returns the result.
    ///
    /// # Errors
    /// The error of the system call, or of ptrace.
    fn system_call(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        let saved = self.integers;
        let mut code = [0; SYSCALL.len()];
        self.memory.read_exact_at(&mut code, saved.rip)?;
        self.memory.write_all_at(&SYSCALL, saved.rip)?;
        let regs = &mut self.integers;
        regs.rax = number.cast_unsigned();
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = arguments;
        self.changed = true;
        let outcome = self.step();
        let result = self.integers.rax.cast_signed();
        self.memory.write_all_at(&code, saved.rip)?;
        self.integers = saved;
        self.changed = true;
        if outcome != Outcome::Done {
            return Err(io::Error::other(format!("{outcome:?} in a system call")));
        }
        match i32::try_from(result) {
            Ok(error @ -4095..=-1) => Err(io::Error::from_raw_os_error(-error)),
            _ => Ok(result.cast_unsigned()),
        }
    }

    /// Maps pages of zeroes at addresses (VA) that must be free.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn map(&mut self, start: u64, pages: u64, protection: u64) -> io::Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let arguments =
            [start, pages * PAGE_SIZE, protection, u64::from(flags.cast_unsigned()), u64::MAX, 0];
        let address = self.system_call(libc::SYS_mmap, arguments)?;
        // Old kernels treat the address as a hint.
        if address == start { Ok(()) } else { Err(Errno::EEXIST.into()) }
    }

    /// Changes the protection of pages.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn protect(&mut self, start: u64, pages: u64, protection: u64) -> io::Result<()> {
        let arguments = [start, pages * PAGE_SIZE, protection, 0, 0, 0];
        self.system_call(libc::SYS_mprotect, arguments).map(|_| ())
    }

    /// Writes to memory, regardless of the pages' protection.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, address).unwrap();
    }

    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) {
        self.memory.read_exact_at(buffer, address).unwrap();
    }

    /// Sets all registers; mxcsr gets the value with which threads start.
    pub(crate) fn set(&mut self, state: &State) {
        let regs = &mut self.integers;
        regs.rip = state.rip;
        [
            regs.rax, regs.rcx, regs.rdx, regs.rbx, regs.rsp, regs.rbp, regs.rsi, regs.rdi,
            regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
        ] = state.gpr;
        regs.eflags = state.flags | 0x202;
        regs.fs_base = FS_BASE;
        regs.gs_base = GS_BASE;
        for (words, value) in self.floats.xmm_space.chunks_exact_mut(4).zip(state.xmm) {
            for (n, word) in words.iter_mut().enumerate() {
                *word = (value >> (32 * n)) as u32;
            }
        }
        self.floats.mxcsr = MXCSR;
        self.changed = true;
    }

    /// Returns the registers after the last step.
    pub(crate) fn state(&self) -> State {
        let regs = &self.integers;
        let word = |n: usize| u128::from(self.floats.xmm_space[n]);
        let xmm = |n: usize| (0..4).map(|part| word(4 * n + part) << (32 * part)).sum();
        State {
            rip: regs.rip,
            gpr: [
                regs.rax, regs.rcx, regs.rdx, regs.rbx, regs.rsp, regs.rbp, regs.rsi, regs.rdi,
                regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
            ],
            flags: regs.eflags & FLAGS,
            xmm: core::array::from_fn(xmm),
            mxcsr: self.floats.mxcsr & !MXCSR_STICKY,
        }
    }

    pub(crate) fn step(&mut self) -> Outcome {
        if self.changed {
            ptrace::setregs(self.pid, self.integers).unwrap();
            ptrace::setregset::<NT_PRFPREG>(self.pid, self.floats).unwrap();
            self.changed = false;
        }
        ptrace::step(self.pid, None).unwrap();
        let status = waitpid(self.pid, None).unwrap();
        let code = || ptrace::getsiginfo(self.pid).unwrap().si_code;
        let outcome = match status {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => Outcome::Done,
            WaitStatus::Stopped(_, Signal::SIGSEGV) if code() != SI_KERNEL => Outcome::Fault,
            WaitStatus::Stopped(_, Signal::SIGSEGV | Signal::SIGBUS) => Outcome::Protection,
            WaitStatus::Stopped(_, Signal::SIGFPE) => Outcome::Divide,
            WaitStatus::Stopped(_, Signal::SIGILL) => Outcome::Invalid,
            other => panic!("{other:?} at {:#x}", self.integers.rip),
        };
        self.integers = ptrace::getregs(self.pid).unwrap();
        self.floats = ptrace::getregset::<NT_PRFPREG>(self.pid).unwrap();
        // After a fault the kernel would treat the value as that of a system call.
        self.integers.orig_rax = u64::MAX;
        outcome
    }
}

impl Host {
    /// Clears TF, which the single step has set, in the flags that a `pushfq` has just pushed.
    pub(crate) fn hide_trap_flag(&self) {
        const TF: u8 = 1;
        let at = self.integers.rsp + 1;
        let mut byte = [0];
        self.read(at, &mut byte);
        self.write(at, &[byte[0] & !TF]);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
