//! The truth about a leaf: what its code returns to when it is executed.
//!
//! A copy of the process, which the interrupted thread has made of itself (`fork.rs`), goes on from the interrupted instruction
//! under `ptrace`, one instruction after the other, until the frame has returned. What it calls runs to its end at
//! once; what takes longer runs from exit to exit (`exits.rs`). Nothing that the copy does leaves it: system calls that
//! reach further are not made, and get a result with which waits end; memory that is shared with other processes, as the
//! code of .NET is, becomes private. No unwind data is read, so no belief about them is shared with a walk.
//!
//! A helper process, which shares the memory of this one and is waited for, as the child of `vfork` is, traces the copy: so
//! stops send no signal to the runtime.

mod executions;
mod exits;
mod fork;
mod vectors;

use clr_sampler::Sample;
use clr_unwind::{Gpr, Registers};
pub(super) use executions::{Executions, Found};
use fork::{Fork, Forks};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::ffi::{c_int, c_long, c_void};
use std::mem::{offset_of, zeroed};
use std::ptr::null_mut;

/// Number of instructions of the leaf that are executed one by one. Each takes 10 to 50 µs in a virtual machine.
const STEPS: u32 = 100;
/// Maximum number of system calls.
const MOST_SYSTEM_CALLS: u32 = 10_000;
/// Maximum number of system calls that are not made.
const MOST_WAITS: u32 = 64;
/// Maximum number of faults that the process's own handlers get.
const MOST_FAULTS: u32 = 16;
/// The processor time that a leaf has, in microseconds: how busy the machine is does not matter.
const PATIENCE: i64 = 100_000;
/// Size of the helper's stack in bytes.
const STACK: usize = 256 << 10;
/// Number of times that a copy is asked whether it is ready, and the pause between them in nanoseconds.
const QUESTIONS: u32 = 2_000;
const PAUSE: i64 = 50_000;
/// `PTRACE_SYSEMU` of `sys/ptrace.h`: goes on to the next system call, and does not make it.
const SYSEMU: u32 = 31;
/// `PTRACE_SETSIGMASK` of `linux/ptrace.h`.
const SET_MASK: u32 = 0x420B;
/// Offset of the debug registers in `struct user` (`sys/user.h`).
const DEBUG_REGISTERS: usize = offset_of!(libc::user, u_debugreg);
/// Enables the first debug register, locally, for executed instructions.
const ENABLE_FIRST: u64 = 1;

/// The reason why a leaf was not executed to its return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unjudged {
    /// The system has no `ptrace`, or no debug registers.
    NotPossible,
    /// Too much time: the leaf spins, or is a long loop.
    Long,
    /// What the leaf has called did not come back.
    CalledForEver,
    /// It waits in the kernel, again and again.
    Waits,
    /// A signal: memory has changed since, or the leaf throws.
    Faults,
    /// The leaf ends the thread or the process.
    Exits,
}

impl Unjudged {
    /// Returns the name in results.
    const fn name(self) -> &'static str {
        match self {
            Self::NotPossible => "not possible",
            Self::Long => "long",
            Self::CalledForEver => "called for ever",
            Self::Waits => "waits",
            Self::Faults => "faults",
            Self::Exits => "exits",
        }
    }
}

/// The caller that a leaf has returned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Returned {
    ip: u64,
    /// The registers in the order of machine code.
    registers: [u64; 16],
    /// True if each instruction of the leaf was executed on its own, no exception passed, none took rsp from memory, and they led to an address that the
    /// leaf has not written: what restores a context does both, and goes on elsewhere.
    is_certain: bool,
}

/// The work of the helper process, and its result.
struct Work<'s> {
    registers: &'s Registers,
    /// The thread's own segment base (VA); 0 if it is not known.
    thread_pointer: u64,
    stack: &'s [u8],
    stack_from: u64,
    /// The copy that executes it.
    fork: &'s Fork<'s>,
    result: Result<Returned, Unjudged>,
}

impl Work<'_> {
    /// Returns a word of the recorded stack.
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.stack_from)?).ok()?;
        Some(u64::from_le_bytes(*self.stack.get(at..)?.first_chunk()?))
    }
}

/// Executes the leaf of a sample to its return, in the copy that was made for it.
fn leaf(sample: &Sample, fork: &Fork<'_>) -> Result<Returned, Unjudged> {
    let mut work = Work {
        registers: &sample.registers,
        thread_pointer: sample.thread_pointer,
        stack: &sample.copy,
        stack_from: sample.copy_from,
        fork,
        result: Err(Unjudged::NotPossible),
    };
    let mut stack = vec![0_u128; STACK / 16];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: the helper has a stack of its own, and this thread waits until it has ended; `help` touches nothing of
    // this process but `work`.
    unsafe {
        let top = stack.as_mut_ptr_range().end.cast::<c_void>();
        let helper = libc::clone(help, top, flags, (&raw mut work).cast());
        if helper > 0 {
            libc::waitpid(helper, null_mut(), libc::__WALL);
        }
    }
    work.result
}

/// Runs in the helper process.
extern "C" fn help(work: *mut c_void) -> c_int {
    // SAFETY: `leaf` passes this, and waits.
    let work = unsafe { &mut *work.cast::<Work<'_>>() };
    // The handlers are the runtime's: none may run in this process.
    set_mask(!0);
    let mut copy =
        Copy { pid: work.fork.pid, code: work.fork.code(), system_calls: 0, waits: 0, faults: 0 };
    work.result = copy.run(work);
    // SAFETY: the process is a copy, which has no other use.
    unsafe {
        libc::kill(copy.pid, libc::SIGKILL);
        libc::waitpid(copy.pid, null_mut(), libc::__WALL);
    }
    // The C library's part of a process's end is not for a helper.
    // SAFETY: this ends the helper alone.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    0
}

/// Blocks these signals of the calling thread, in the kernel's form.
fn set_mask(mask: u64) {
    // SAFETY: the kernel reads 8 bytes.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            0_usize,
            8_usize,
        )
    };
}

/// A kind of instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Call,
    Return,
    SystemCall,
    Other,
}

/// Returns the kind of an instruction.
fn kind(instruction: &Instruction) -> Kind {
    match instruction.flow_control() {
        _ if instruction.mnemonic() == Mnemonic::Syscall => Kind::SystemCall,
        FlowControl::Call | FlowControl::IndirectCall => Kind::Call,
        FlowControl::Return => Kind::Return,
        _ => Kind::Other,
    }
}

/// Returns true for `mov rsp, [...]`, and for `iretq`, with which CoreCLR 3.1 restores contexts.
fn restores_rsp(instruction: &Instruction) -> bool {
    let loads =
        instruction.op0_register() == Register::RSP && instruction.op1_kind() == OpKind::Memory;
    match instruction.mnemonic() {
        Mnemonic::Mov => loads,
        mnemonic => mnemonic == Mnemonic::Iretq,
    }
}

/// The copy of the process.
struct Copy {
    pid: i32,
    /// Its own file with code.
    code: Option<i32>,
    system_calls: u32,
    /// Number of those that were not made.
    waits: u32,
    /// Number of faults that the runtime's handlers got.
    faults: u32,
}

impl Copy {
    /// Executes the leaf to its return.
    fn run(&mut self, work: &Work<'_>) -> Result<Returned, Unjudged> {
        self.seize(work.fork)?;
        let mut now = self.registers()?;
        put(&mut now, work);
        self.set_registers(&now)?;
        self.restore_vectors(work.registers);
        let start = work.registers.rsp();
        let mut is_restored = false;
        for _ in 0..STEPS {
            let instruction = self.decode(now.rip);
            let before = now;
            is_restored |= restores_rsp(&instruction);
            match kind(&instruction) {
                Kind::SystemCall => {
                    now.rip += 2;
                    self.system_call(&mut now, before.rax)?;
                }
                // A word that the leaf itself has pushed is no return address: the return is a jump.
                Kind::Return if before.rsp >= start => {
                    now = self.step()?;
                    let registers = in_order(&now);
                    let is_written = work.word(before.rsp) != Some(now.rip);
                    let is_certain = !is_restored && !is_written && self.faults == 0;
                    return Ok(Returned { ip: now.rip, registers, is_certain });
                }
                Kind::Call => {
                    now = self.step()?;
                    if now.rsp == before.rsp.wrapping_sub(8) {
                        now = self.run_call(&now)?;
                    }
                }
                _ => now = self.step()?,
            }
        }
        self.run_to_exit(&now, start)
    }

    /// Begins to trace the copy, when it is ready, and stops it.
    fn seize(&self, fork: &Fork<'_>) -> Result<(), Unjudged> {
        let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE };
        let is_ready = (0..QUESTIONS).any(|_| {
            let mut word = [0; 4];
            self.read(fork.is_ready(), &mut word);
            let is_ready = u32::from_ne_bytes(word) == 1;
            if !is_ready {
                // SAFETY: the time outlives the call.
                unsafe { libc::syscall(libc::SYS_nanosleep, &raw const pause, 0_usize) };
            }
            is_ready
        });
        if !is_ready {
            return Err(Unjudged::NotPossible);
        }
        self.ask(libc::PTRACE_SEIZE, 0, libc::PTRACE_O_EXITKILL as usize)?;
        self.ask(libc::PTRACE_INTERRUPT, 0, 0)?;
        self.wait()?;
        let none = 0_u64;
        self.ask(SET_MASK, size_of_val(&none), (&raw const none) as usize)
    }

    /// Runs what was called right now to its return.
    fn run_call(
        &mut self,
        entered: &libc::user_regs_struct,
    ) -> Result<libc::user_regs_struct, Unjudged> {
        let mut word = [0; 8];
        self.read(entered.rsp, &mut word);
        let (address, above) = (u64::from_le_bytes(word), entered.rsp);
        self.ask(libc::PTRACE_POKEUSER, DEBUG_REGISTERS, address as usize)?;
        self.ask(libc::PTRACE_POKEUSER, DEBUG_REGISTERS + 7 * 8, ENABLE_FIRST as usize)?;
        let mut delivered = 0;
        loop {
            let signal = self.go_on(delivered)?;
            delivered = 0;
            let mut now = self.registers()?;
            // The stop is at a system call if the kernel has noted one.
            if signal == libc::SIGTRAP && now.orig_rax.cast_signed() >= 0 {
                let number = now.orig_rax;
                self.system_call(&mut now, number)?;
            } else if signal == libc::SIGTRAP && now.rip == address {
                if now.rsp > above {
                    self.ask(libc::PTRACE_POKEUSER, DEBUG_REGISTERS + 7 * 8, 0)?;
                    return Ok(now);
                }
                // A deeper call of the same function: this instruction is executed without the stop.
                self.step()?;
            } else {
                delivered = self.fault(signal)?;
            }
        }
    }

    /// Goes on at full speed to the next system call or signal, which is returned. `delivered` is a signal to deliver, or 0.
    fn go_on(&self, delivered: c_int) -> Result<c_int, Unjudged> {
        self.ask(SYSEMU, 0, delivered.unsigned_abs() as usize)?;
        self.wait()
    }

    /// Returns a signal that the process's handler gets, as what the leaf has called may catch the exception.
    fn fault(&mut self, signal: c_int) -> Result<c_int, Unjudged> {
        self.faults += 1;
        match signal {
            libc::SIGSEGV | libc::SIGFPE if self.faults <= MOST_FAULTS => Ok(signal),
            _ => Err(stopped_by(signal)),
        }
    }

    /// Makes a system call that stays in the copy, or gives it a result with which a wait ends. `now.rip` is after
    /// the instruction.
    fn system_call(
        &mut self,
        now: &mut libc::user_regs_struct,
        number: u64,
    ) -> Result<(), Unjudged> {
        self.system_calls += 1;
        if self.system_calls > MOST_SYSTEM_CALLS {
            return Err(Unjudged::Long);
        }
        now.orig_rax = u64::MAX;
        if number.cast_signed() == libc::SYS_mmap && Some(now.r8 as i32) != self.code {
            const TYPE: u64 = libc::MAP_TYPE as u64;
            now.r10 = now.r10 & !TYPE | libc::MAP_PRIVATE as u64;
        }
        match number.cast_signed() {
            libc::SYS_exit | libc::SYS_exit_group => return Err(Unjudged::Exits),
            libc::SYS_rt_sigreturn if self.faults == 0 => return Err(Unjudged::Exits),
            libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_madvise
            | libc::SYS_brk
            | libc::SYS_gettid
            | libc::SYS_getpid
            | libc::SYS_clock_gettime
            | libc::SYS_getcpu
            | libc::SYS_rt_sigprocmask
            | libc::SYS_rt_sigreturn => {
                now.rip -= 2;
                now.rax = number;
                let at = now.rip;
                self.set_registers(now)?;
                *now = self.step()?;
                if now.rip == at {
                    // That was the end of the call that was not made.
                    *now = self.step()?;
                }
                return Ok(());
            }
            libc::SYS_futex => now.rax = self.futex(now),
            libc::SYS_write | libc::SYS_pwrite64 => now.rax = now.rdx,
            _ => now.rax = 0,
        }
        self.waits += 1;
        if self.waits > MOST_WAITS {
            return Err(Unjudged::Waits);
        }
        // The instruction overwrites these.
        (now.rcx, now.r11) = (now.rip, now.eflags);
        self.set_registers(now)
    }

    /// Returns what a call of `futex` gets with which waits end: the time is over, or the word is one of a free lock
    /// or of a signalled condition.
    fn futex(&self, now: &libc::user_regs_struct) -> u64 {
        /// `FUTEX_WAIT` and `FUTEX_WAIT_BITSET` without flags.
        const WAITS: [u64; 2] = [0, 9];
        if !WAITS.contains(&(now.rsi & 0x7F)) {
            return 0;
        }
        let word: u32 = match self.waits % 3 {
            0 => return (-i64::from(libc::ETIMEDOUT)).cast_unsigned(),
            1 => 0,
            _ => 2,
        };
        self.write(now.rdi, &word.to_le_bytes());
        0
    }

    /// Executes one instruction.
    fn step(&self) -> Result<libc::user_regs_struct, Unjudged> {
        self.ask(libc::PTRACE_SINGLESTEP, 0, 0)?;
        match self.wait()? {
            libc::SIGTRAP => self.registers(),
            libc::SIGPROF => Err(Unjudged::Long),
            signal => Err(stopped_by(signal)),
        }
    }

    /// Waits for the next stop, and returns its signal.
    fn wait(&self) -> Result<c_int, Unjudged> {
        let mut status = 0;
        // SAFETY: the pointer is to a local.
        let waited = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
        if waited == self.pid && libc::WIFSTOPPED(status) {
            Ok(libc::WSTOPSIG(status))
        } else {
            Err(Unjudged::Exits)
        }
    }

    fn registers(&self) -> Result<libc::user_regs_struct, Unjudged> {
        // SAFETY: a structure of numbers.
        let mut registers: libc::user_regs_struct = unsafe { zeroed() };
        self.ask(libc::PTRACE_GETREGS, 0, (&raw mut registers) as usize)?;
        Ok(registers)
    }

    fn set_registers(&self, registers: &libc::user_regs_struct) -> Result<(), Unjudged> {
        self.ask(libc::PTRACE_SETREGS, 0, (&raw const *registers) as usize)
    }

    fn ask(&self, request: u32, address: usize, data: usize) -> Result<(), Unjudged> {
        // SAFETY: the requests above read and write the structures that they are given, and else the child alone.
        let result: c_long = unsafe { libc::ptrace(request, self.pid, address, data) };
        if result < 0 { Err(Unjudged::NotPossible) } else { Ok(()) }
    }

    /// Decodes the instruction at `ip` (VA).
    fn decode(&self, ip: u64) -> Instruction {
        let mut code = [0; 15];
        self.read(ip, &mut code);
        Decoder::with_ip(64, &code, ip, DecoderOptions::NONE).decode()
    }

    /// Reads memory of the copy; what cannot be read stays 0.
    fn read(&self, address: u64, to: &mut [u8]) {
        let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: to.len() };
        // SAFETY: the kernel checks the other process's addresses.
        unsafe { libc::process_vm_readv(self.pid, &raw const local, 1, &raw const remote, 1, 0) };
    }

    /// Writes data of the copy, if they can be written.
    fn write(&self, address: u64, from: &[u8]) {
        let local = libc::iovec { iov_base: from.as_ptr() as *mut c_void, iov_len: from.len() };
        let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: from.len() };
        // SAFETY: the kernel reads `from`, and checks the other process's addresses.
        unsafe { libc::process_vm_writev(self.pid, &raw const local, 1, &raw const remote, 1, 0) };
    }
}

const fn stopped_by(signal: c_int) -> Unjudged {
    if signal == libc::SIGPROF { Unjudged::CalledForEver } else { Unjudged::Faults }
}

/// Puts the recorded registers in.
fn put(to: &mut libc::user_regs_struct, work: &Work<'_>) {
    let gpr = |register| work.registers.get(register);
    to.rip = work.registers.rip;
    for (to, register) in [
        (&mut to.rax, Gpr::Rax),
        (&mut to.rcx, Gpr::Rcx),
        (&mut to.rdx, Gpr::Rdx),
        (&mut to.rbx, Gpr::Rbx),
        (&mut to.rsp, Gpr::Rsp),
        (&mut to.rbp, Gpr::Rbp),
        (&mut to.rsi, Gpr::Rsi),
        (&mut to.rdi, Gpr::Rdi),
        (&mut to.r8, Gpr::R8),
        (&mut to.r9, Gpr::R9),
        (&mut to.r10, Gpr::R10),
        (&mut to.r11, Gpr::R11),
        (&mut to.r12, Gpr::R12),
        (&mut to.r13, Gpr::R13),
        (&mut to.r14, Gpr::R14),
        (&mut to.r15, Gpr::R15),
    ] {
        *to = gpr(register);
    }
    // No system call is under way.
    to.orig_rax = u64::MAX;
    if work.thread_pointer != 0 {
        to.fs_base = work.thread_pointer;
    }
}

const fn in_order(from: &libc::user_regs_struct) -> [u64; 16] {
    [
        from.rax, from.rcx, from.rdx, from.rbx, from.rsp, from.rbp, from.rsi, from.rdi, from.r8,
        from.r9, from.r10, from.r11, from.r12, from.r13, from.r14, from.r15,
    ]
}

#[cfg(test)]
mod tests;
