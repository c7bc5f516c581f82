//! The rules of Windows x64 unwinding, one hand-made case after the other.
//!
//! A step is written as the changes that it made: `Body rbx=[0] rip=[1] rsp=2` was found by the
//! codes of the body, took rbx from stack slot 0 and rip from slot 1, and left rsp at slot 2. rsp
//! is at slot 0 before the step unless the case says otherwise; `frame=` is the establisher frame
//! where that is not rsp before the step.

mod caches;
mod case;
mod chains;
mod epilogues;
mod errors;
mod infos;
mod known;
mod lookups;
mod ntdll;
mod prologues;
mod version3;
mod versions;
mod walks;

use crate::win64::case::{Answer, BASE, Case, Info, Op, SIZE, bytes_of, registers, slot, word};
use Op::{
    Epilog, Large, LargeFar, MachineFrame, MachineFrameWithError, Push, Raw, Save, SaveFar,
    SetFrame, Small, Xmm, XmmFar,
};
use clr_walker::code_map::{CodeMap, CodeRegion, Run};
use clr_walker::image::{FunctionTable, RuntimeFunction};
use clr_walker::memory::{Memory, Segment, Unreadable};
use clr_walker::registers::Gpr::{self, R12, R13, R15, Rax, Rbp, Rbx, Rcx, Rdi, Rsi, Rsp};
use clr_walker::registers::{Convention, RegisterSet, Registers};
use clr_walker::unwind::win64::{Operation, UnwindInfo, UnwindInfoV3};
use clr_walker::unwind::{
    Cache, Frame, Handler, Position, Rules, Step, Trust, UnwindError, Unwinder,
};
use std::cell::Cell;
