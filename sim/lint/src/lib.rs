//! Checks the unwind data of an image against its code.
//!
//! Every function is executed from its entry, along both sides of each branch, with a return address and
//! nonvolatile registers that are known. At each instruction the answer of `clr-unwind` is compared with
//! what the execution knows of the caller.

mod bits;
mod coverage;
mod execute;
mod extent;
mod finding;
mod gaps;
mod judge;
mod language;
mod layout;
mod paths;
mod point;
mod report;
mod state;
mod steps;
mod sweep;
mod tables;
mod value;
mod workers;

pub use coverage::Coverage;
pub use finding::{Blame, Cause, Finding, Found, Subject, Where};
pub use language::Language;
pub use layout::Layout;
pub use report::{Linter, Report, Totals, Undecided};
pub use value::Shown;
#[doc(hidden)]
pub use workers::explore_all;
