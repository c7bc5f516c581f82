//! A real processor as the oracle of the machine, `clr_machine`.
//!
//! On Linux x86-64 the same code is stepped on the machine and, under ptrace, on the host's
//! processor, and all state is compared after each instruction:
//!
//! * `external::forms`: each form of instruction that the machine knows, with registers, addresses and
//!   immediates of many kinds, and operands at the edges of their ranges;
//! * `external::sequences`: random programs, with jumps, loops and calls;
//! * `external::images`: the test functions of the compiled images.
//!
//! These are ignored without `-- --ignored`, as a system may forbid to step a process.
//!
//! On every host, `recorded` compares the machine with results recorded earlier on a processor
//! (`cargo test -p clr-tests --test code host_cpu::record -- --ignored` records new ones), and `info`
//! compares the machine with iced-x86's information about instructions.
//!
//! Not compared: results that the manuals leave undefined (`defined`); the exceptions that mxcsr
//! records; bits of rflags that are neither arithmetic nor DF. Not tested, though the machine knows
//! them:
//!
//! * `syscall`, `int`, `int3`: the processor alone does not execute them;
//! * `iretd`, which goes to 32-bit code;
//! * `movsxd` to 16 bits: AMD's processors read 4 bytes of memory for it, Intel's 2;
//! * selectors other than cs and ss, which depend on the system;
//! * branches to an address of more than 48 bits: processors differ in where they fault;
//! * bits in memory (`bt` and similar) whose number is also part of the address;
//! * `ldmxcsr` of values that the machine does not implement, and flags that would change how the
//!   process runs (TF, NT, AC), for `popfq` and `iretq`.

mod check;
mod defined;
mod encodings;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod external;
mod info;
mod random;
mod recorded;
mod samples;
mod state;

use crate::machine::host_cpu::check::{Complaints, Truth, execute, is_known};
use crate::machine::host_cpu::defined::{
    flags_of, is_undefined, undefined_between, undefined_flags,
};
use crate::machine::host_cpu::encodings::Encoding;
use crate::machine::host_cpu::random::{Elements, Random};
use crate::machine::host_cpu::state::{
    AF, CF, CODE, CONSTANT, DF, FLAGS, FS_BASE, GS_BASE, MXCSR, NOTHING, OF, Outcome, PF, SF,
    Start, State, WINDOW, WINDOW_LEN, Window, ZF, machine, window,
};
use clr_machine::{Machine, PAGE_SIZE};
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use std::fmt::Write as _;

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
#[ignore = "rewrites fixtures/host_cpu"]
fn record() {
    external::record::record();
}

/// The code of the process that is stepped: it would wait for its parent's end if it were resumed.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn tracee() {
    if std::env::var_os(external::TRACEE).is_some() {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    }
}
