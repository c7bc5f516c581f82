//! Stack walking for .NET profilers.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod code_map;
pub mod image;
pub mod memory;
pub mod registers;
pub mod unwind;
