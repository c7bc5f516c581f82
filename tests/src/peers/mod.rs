//! Unwinders of other projects, on our registers, memory and code.

pub mod framehop;
pub mod pe_unwind_info;
