//! DWARF call frame information, compiled: `.eh_frame` and `.debug_frame`.
//!
//! [`Unwinder`](crate::unwinder::Unwinder) makes steps by the rows of a [`CfiTable`], of which there are
//! two kinds.
//!
//! [`CfiTable::lazy`] is what [`CodeRegion::elf`](crate::code_map::CodeRegion::elf) makes. It finds a
//! function by the linker's index in `.eh_frame_hdr`, or by one that it makes if there is none,
//! and runs the function's program up to the address. A simple rule, and nearly all are, is then
//! kept in one of a fixed number of slots, made with the table: so a walk does not allocate, and may be
//! the first user in a signal handler. Slots are atomics that are written once; nobody waits. When the
//! slots of an address are taken, its program runs each time, and a [`Cache`](crate::unwinder::Cache)
//! still makes later walks fast.
//!
//! [`CfiTable::new`] runs all programs beforehand: for those who can pay for it and want the first step
//! to be as fast as the second.
//!
//! Rejected: compiling all functions of a page of code at once (programs would run that nobody needs, inside the
//! handler), slots that are replaced when full (readers could see half of a rule, so each would have to
//! check twice), and a table that each walker compiles for itself (many threads walk).

mod bytes;
mod compile;
mod entry;
mod error;
mod index;
mod lazy;
mod program;
mod row;
mod rows;
mod rule;
mod rules;
mod scan;
mod table;

pub use error::{CfiError, CfiProblem, FrameSection};
pub use row::{CfaRule, Column, Expression, RegisterRule, Row};
pub use table::{CfiTable, Functions};

pub(crate) use rule::{General, NONVOLATILE, Place, Rule};
pub(crate) use table::Found;
