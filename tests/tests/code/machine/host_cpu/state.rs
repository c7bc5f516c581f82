//! The compared state: the registers of a processor, and the outcome of an instruction. Memory has
//! the same layout on the machine and on the host.

use super::*;
use clr_machine::{Cpu, Protection, StopReason};
use clr_unwind::{Gpr, Memory as _};
use core::fmt;

/// Address of the code (VA): two pages. Bit 31 is set, so that a wrong sign extension becomes
/// visible.
pub(crate) const CODE: u64 = 0xF000_0000;
pub(crate) const CODE_PAGES: u64 = 2;
/// Address of two readable and writable pages (VA). They are below 2 GiB, within reach of a
/// displacement.
pub(crate) const DATA: u64 = 0x7FFE_0000;
pub(crate) const DATA_PAGES: u64 = 2;
/// Start of unmapped memory (VA).
pub(crate) const NOTHING: u64 = DATA + DATA_PAGES * PAGE_SIZE;
/// Address of a read-only page of zeroes (VA).
pub(crate) const CONSTANT: u64 = NOTHING + PAGE_SIZE;
/// Address of the part of the data that instructions work on (VA); the rest is 0 and stays so. A
/// quarter of the window is before the border of the two pages.
pub(crate) const WINDOW: u64 = DATA + PAGE_SIZE - 0x80;
pub(crate) const WINDOW_LEN: usize = 0x200;
/// Bases of the segments fs and gs (VA).
pub(crate) const FS_BASE: u64 = WINDOW + 0x48;
pub(crate) const GS_BASE: u64 = WINDOW + 0x64;

pub(crate) type Window = [u8; WINDOW_LEN];

pub(crate) const CF: u64 = 1;
pub(crate) const PF: u64 = 1 << 2;
pub(crate) const AF: u64 = 1 << 4;
pub(crate) const ZF: u64 = 1 << 6;
pub(crate) const SF: u64 = 1 << 7;
pub(crate) const DF: u64 = 1 << 10;
pub(crate) const OF: u64 = 1 << 11;
/// The flags that are compared.
pub(crate) const FLAGS: u64 = CF | PF | AF | ZF | SF | DF | OF;

/// The value of mxcsr with which threads start.
pub(crate) const MXCSR: u32 = 0x1F80;
/// The exceptions that mxcsr records. The machine does not record them.
pub(crate) const MXCSR_STICKY: u32 = 0x3F;

/// The registers of a processor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) rip: u64,
    pub(crate) gpr: [u64; 16],
    /// Flags, restricted to [`FLAGS`].
    pub(crate) flags: u64,
    pub(crate) xmm: [u128; 16],
    /// mxcsr without [`MXCSR_STICKY`].
    pub(crate) mxcsr: u32,
}

impl State {
    /// Returns the registers of the machine.
    pub(crate) fn of(machine: &Machine) -> Self {
        let cpu = machine.cpu();
        Self {
            rip: cpu.rip(),
            gpr: Gpr::ALL.map(|register| cpu.get(register)),
            flags: cpu.rflags() & FLAGS,
            xmm: core::array::from_fn(|n| cpu.xmm(n as u8)),
            mxcsr: cpu.mxcsr() & !MXCSR_STICKY,
        }
    }

    /// Sets the machine's registers; mxcsr gets the value with which threads start.
    pub(crate) fn load_into(&self, machine: &mut Machine) {
        let cpu = machine.cpu_mut();
        *cpu = Cpu::default();
        cpu.set_fs_base(FS_BASE);
        cpu.set_gs_base(GS_BASE);
        cpu.set_rip(self.rip);
        for (register, value) in Gpr::ALL.into_iter().zip(self.gpr) {
            cpu.set(register, value);
        }
        cpu.set_rflags(self.flags);
        for (n, value) in (0..).zip(self.xmm) {
            cpu.set_xmm(n, value);
        }
    }

    /// Formats the registers in which two states differ.
    pub(crate) fn differences(&self, other: &Self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, a: u128, b: u128| {
            if a != b {
                writeln!(text, "  {name}: {a:#x} and {b:#x}").unwrap();
            }
        };
        line("rip", self.rip.into(), other.rip.into());
        for n in 0..16 {
            line(&format!("{:?}", Gpr::ALL[n]), self.gpr[n].into(), other.gpr[n].into());
        }
        line("flags", self.flags.into(), other.flags.into());
        for n in 0..16 {
            line(&format!("xmm{n}"), self.xmm[n], other.xmm[n]);
        }
        line("mxcsr", self.mxcsr.into(), other.mxcsr.into());
        text
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rip {:#x}, flags {:#x}, mxcsr {:#x}", self.rip, self.flags, self.mxcsr)?;
        for (register, value) in Gpr::ALL.into_iter().zip(self.gpr) {
            writeln!(f, "{register:?} {value:#x}")?;
        }
        self.xmm.iter().enumerate().try_for_each(|(n, value)| writeln!(f, "xmm{n} {value:#x}"))
    }
}

/// Outcome of an instruction. Except for [`Done`](Self::Done), the instruction has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// A page is not mapped, or does not permit the access (#PF).
    Fault,
    /// #GP, or #SS.
    Protection,
    /// #DE.
    Divide,
    /// #UD.
    Invalid,
}

impl Outcome {
    /// Converts the result of a step of the machine; `None` if the machine does not know the
    /// instruction, or the instruction needs an operating system.
    pub(crate) fn of(step: Result<(), StopReason>) -> Option<Self> {
        match step {
            Ok(()) => Some(Self::Done),
            // Processors have 48 bits of address and refuse other addresses by a different
            // exception; the machine has all 64.
            Err(StopReason::Fault { fault, .. }) if !is_canonical(fault.address) => {
                Some(Self::Protection)
            }
            Err(StopReason::Fault { .. }) => Some(Self::Fault),
            Err(StopReason::GeneralProtection { .. }) => Some(Self::Protection),
            Err(StopReason::DivideError { .. }) => Some(Self::Divide),
            Err(StopReason::InvalidInstruction { .. }) => Some(Self::Invalid),
            Err(_) => None,
        }
    }
}

fn is_canonical(address: u64) -> bool {
    matches!(address.cast_signed() >> 47, 0 | -1)
}

/// Returns a machine with everything mapped.
pub(crate) fn machine() -> Machine {
    let mut machine = Machine::new();
    machine.map(CODE, CODE_PAGES, Protection::READ_EXECUTE).unwrap();
    machine.map(DATA, DATA_PAGES, Protection::READ_WRITE).unwrap();
    machine.map(CONSTANT, 1, Protection::READ).unwrap();
    machine
}

/// Returns the content of the machine's window.
pub(crate) fn window(machine: &Machine) -> Window {
    let mut window = [0; WINDOW_LEN];
    machine.read(WINDOW, &mut window).unwrap();
    window
}

/// Initial state of a case.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) state: State,
    pub(crate) window: Window,
}
