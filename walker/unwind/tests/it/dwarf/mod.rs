//! The rules of DWARF call frame information, one hand-made case after the other.
//!
//! A step is written as the changes that it made: `rbx=[-2] rip=[0] rsp=1` took rbx from stack slot
//! −2, rip from slot 0, and left rsp at slot 1. rsp is at slot 0 before the step unless the case
//! says otherwise.

mod below;
mod caches;
mod case;
mod entries;
mod expressions;
mod glibc;
mod images;
mod known;
mod lazy;
mod leaving;
mod mixed;
mod rules;
mod steps;
mod tables;

use crate::dwarf::case::{
    BASE, CODE, CODE_SIZE, Case, Cfi, Cie, EH_FRAME, EH_FRAME_HDR, Frames, PREFERRED, at, held,
    number, sleb, slot, uleb, word,
};
use clr_unwind::cfi::{
    CfaRule, CfiError, CfiProblem, CfiTable, Column, FrameSection, RegisterRule,
};
use clr_unwind::compat::Rules;
use clr_unwind::{
    Cache, CfiSections, CodeMap, CodeRegion, Convention, Frame, FunctionTable,
    Gpr::{self, R12, R15, Rax, Rbp, Rbx, Rcx, Rdi, Rsp},
    Guesses, Memory, Position, RegionKind, RegisterSet, Registers, Section, Sections, Segment,
    Step, Trust, Unreadable, UnwindError, Unwinder,
};
