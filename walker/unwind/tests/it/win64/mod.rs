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
use clr_unwind::compat::Rules;
use clr_unwind::win64::{Operation, UnwindInfo, UnwindInfoV3};
use clr_unwind::{
    Cache, CodeMap, CodeRegion, Convention, Frame, FunctionTable,
    Gpr::{self, R12, R13, R15, Rax, Rbp, Rbx, Rcx, Rdi, Rsi, Rsp},
    Handler, Memory, Position, RegisterSet, Registers, Run, RuntimeFunction, Segment, Step, Trust,
    Unreadable, UnwindError, Unwinder,
};
use std::cell::Cell;
