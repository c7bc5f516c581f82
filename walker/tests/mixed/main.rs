//! Whole stacks of a thread made by hand, through a runtime that answers as it is told.

mod advice;
mod mock;
mod refusals;
mod signals;
mod walks;
