//! Whole stacks of a hand-made thread, through a runtime that answers as the test sets it up.

mod advice;
mod bare_epilogue;
mod cold_end;
mod hijacked;
mod image;
mod leaf;
mod mock;
mod popped;
mod redirected;
mod refusals;
mod signals;
mod stack_need;
mod unaided;
mod unreadable;
mod walks;
