//! DWARF call frame information, compiled: `.eh_frame` and `.debug_frame`.
//!
//! An image's call frame programs run once, when its [`CfiTable`] is made.
//! [`Unwinder`](crate::unwind::Unwinder) makes steps by the rows of the table.

mod bytes;
mod compile;
mod error;
mod program;
mod row;
mod rows;
mod rule;
mod rules;
mod table;

pub use error::{CfiError, CfiProblem, FrameSection};
pub use row::{CfaRule, Column, Expression, RegisterRule, Row};
pub use table::CfiTable;

pub(crate) use rule::{GeneralRule, NONVOLATILE, Place, Rule};
pub(crate) use table::Found;
