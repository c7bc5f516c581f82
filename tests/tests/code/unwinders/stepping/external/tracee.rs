//! A process that is stepped by ptrace.

use super::*;
use nix::libc::user_regs_struct;
use nix::sys::ptrace;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::cell::RefCell;
use std::os::unix::fs::FileExt;

/// System call number of `rt_sigreturn`.
const SIGNAL_RETURN: u64 = 15;

/// A stopped process. It ends when this value is dropped, or with the test process.
pub(super) struct Tracee {
    child: Child,
    pid: Pid,
    pub memory: TargetMemory,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// One instruction was executed.
    Done,
    /// A signal is pending, and the next step delivers it.
    Pending(Signal),
    /// The breakpoint instruction was executed.
    Breakpoint,
}

impl Tracee {
    /// Starts the program, and runs it to its first breakpoint.
    pub(super) fn start(program: &Path) -> io::Result<Self> {
        let mut child = Command::new(program).stdin(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take();
        let id = child.id();
        let pid = Pid::from_raw(id.cast_signed());
        let attached = ptrace::seize(pid, ptrace::Options::PTRACE_O_EXITKILL);
        let memory = File::open(format!("/proc/{id}/mem"));
        let (Ok(()), Ok(file)) = (attached, memory) else {
            // Errors cannot be handled here.
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other("no process may be traced"));
        };
        let memory = TargetMemory {
            file,
            read: RefCell::default(),
            code: RefCell::default(),
            window: RefCell::default(),
        };
        let tracee = Self { child, pid, memory };
        if let Some(stdin) = &mut stdin {
            stdin.write_all(b"x")?;
        }
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => Ok(tracee),
            other => Err(io::Error::other(format!("{other:?} before the first breakpoint"))),
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn registers(&self) -> Registers {
        let regs: user_regs_struct = ptrace::getregs(self.pid).unwrap();
        Registers {
            rip: regs.rip,
            gpr: [
                regs.rax, regs.rcx, regs.rdx, regs.rbx, regs.rsp, regs.rbp, regs.rsi, regs.rdi,
                regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
            ],
            ..Registers::default()
        }
    }

    /// Executes the instruction at rip, or enters the handler of a signal.
    pub(super) fn step(&self, before: &Registers, signal: Option<Signal>) -> Stepped {
        self.memory.window.take();
        ptrace::step(self.pid, signal).unwrap();
        match waitpid(self.pid, None).unwrap() {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let is_breakpoint = signal.is_none() && self.memory.code(before.rip)[0] == 0xCC;
                if is_breakpoint { Stepped::Breakpoint } else { Stepped::Done }
            }
            WaitStatus::Stopped(_, signal) => Stepped::Pending(signal),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the effect of the instruction at rip, and its length in bytes.
    pub(super) fn does(&self, registers: &Registers) -> (Does, u64) {
        use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
        let code = self.memory.code(registers.rip);
        let instruction = Decoder::new(64, &code, DecoderOptions::NONE).decode();
        let does = match instruction.flow_control() {
            _ if instruction.mnemonic() == Mnemonic::Syscall => {
                let returns = registers.gpr[0] == SIGNAL_RETURN;
                if returns { Does::SignalReturn } else { Does::Other }
            }
            FlowControl::Call | FlowControl::IndirectCall => Does::Call,
            FlowControl::Return => Does::Return,
            _ => Does::Other,
        };
        (does, instruction.len() as u64)
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The memory of the process, which records the words that are read.
#[derive(Debug)]
pub(super) struct TargetMemory {
    file: File,
    read: RefCell<BTreeMap<u64, u64>>,
    /// Instructions that were executed, by address (VA): no code changes after the start.
    code: RefCell<BTreeMap<u64, [u8; 15]>>,
    /// Address (VA) and bytes of the memory read last, until the process goes on.
    window: RefCell<(u64, Vec<u8>)>,
}

/// Size in bytes of what is read at once: system calls take most of a step's time.
const WINDOW: usize = 0x400;

impl TargetMemory {
    /// Returns the words read since the last call, by address (VA).
    pub(super) fn take_read(&self) -> BTreeMap<u64, u64> {
        self.read.take()
    }

    fn code(&self, address: u64) -> [u8; 15] {
        *self.code.borrow_mut().entry(address).or_insert_with(|| {
            let mut code = [0; 15];
            // Fewer bytes may be mapped.
            let _ = self.file.read_at(&mut code, address);
            code
        })
    }

    /// Copies memory from the window, and moves the window first if it is elsewhere.
    fn copy(&self, address: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut window = self.window.borrow_mut();
        let inside = |window: &(u64, Vec<u8>)| {
            let start = usize::try_from(address.checked_sub(window.0)?).ok()?;
            Some(start..start.checked_add(buffer.len())?).filter(|at| at.end <= window.1.len())
        };
        if inside(&window).is_none() {
            let mut bytes = vec![0; WINDOW];
            let length = self.file.read_at(&mut bytes, address)?;
            bytes.truncate(length);
            *window = (address, bytes);
        }
        let inside = inside(&window).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(&window.1[inside]);
        Ok(())
    }

    /// Reads N bytes from an address (VA).
    pub(super) fn bytes(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }
}

impl Memory for TargetMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        self.copy(address, buffer).map_err(|_| unreadable)?;
        let mut read = self.read.borrow_mut();
        for (chunk, at) in buffer.chunks(8).zip((address..).step_by(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            read.insert(at, u64::from_le_bytes(word));
        }
        Ok(())
    }
}
