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
mod mixed;
mod rules;
mod steps;
mod tables;
