//! Stack walking for .NET profilers: the part that a profiler ships.
//!
//! Given the registers, the memory and the images of a real x64 thread, [`unwind::Unwinder`] finds
//! each frame's caller with every register that a seed for `DoStackSnapshot` needs: the sixteen
//! integer registers, rip, and on Windows xmm6 to xmm15. Managed code has UNWIND_INFO on every OS
//! and native code on Unix has call frame information, so one stack may need both.
//!
//! ```
//! use clr_walker::code_map::{CodeMap, CodeRegion};
//! use clr_walker::image::FunctionTable;
//! use clr_walker::memory::Segment;
//! use clr_walker::registers::{Gpr, Registers};
//! use clr_walker::unwind::{Position, Trust, Unwinder};
//!
//! // push rbx; cdq; pop rbx; ret — then its UNWIND_INFO: version 1, prologue of 1 byte,
//! // 1 code: after 1 byte, UWOP_PUSH_NONVOL rbx.
//! let heap = [0x53, 0x99, 0x5B, 0xC3, 0x01, 1, 1, 0, 1, 0x30];
//! let table: Vec<u8> = [0u32, 4, 4].into_iter().flat_map(u32::to_le_bytes).collect();
//! let mut map = CodeMap::new();
//! map.insert(CodeRegion::heap(0x7000, &heap, FunctionTable::new(&table))?)?;
//!
//! // Stopped at the cdq: rbx is on the stack, then the return address.
//! let stack: Vec<u8> = [0xB0B_u64, 0x1234].into_iter().flat_map(u64::to_le_bytes).collect();
//! let memory = Segment::new(0x10_0000, &stack);
//! let mut registers = Registers { rip: 0x7001, ..Registers::default() };
//! registers.set(Gpr::Rsp, 0x10_0000);
//!
//! let step = Unwinder::new(&map).step(&mut registers, Position::Interrupted, &memory)?;
//! assert_eq!(step.trust, Trust::Body);
//! assert_eq!(registers.rip, 0x1234);
//! assert_eq!(registers.get(Gpr::Rbx), 0xB0B);
//! assert_eq!(registers.rsp(), 0x10_0010);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! registers + memory                     the stopped thread
//!        │
//!        ▼
//! code_map: address → region ──► image::pe: sections, RUNTIME_FUNCTION table
//!        │                  └──► image::elf, image::macho: segments, .eh_frame, .debug_frame
//!        │                                    │ compiled when a step needs them; __unwind_info
//!        ▼                                    ▼
//! unwind::win64: UNWIND_INFO, epilogues    cfi: rows; compact: entries; unwind: their steps, stubs
//!        │                                    │
//!        └───────────────┬────────────────────┘
//!                        ▼
//!     caller's registers, Trust, establisher frame, handler
//! ```
//!
//! [`jitted`] reads what the runtime's JIT compiler made, so that it gets into the map, too.
//!
//! Input is never trusted: malformed images and unwind data give errors with the place of the
//! fault, every loop has a limit, and a failed step leaves the registers as they were. A walk
//! allocates nothing, and in an optimised build a step needs less than 4 KiB of stack.
//!
//! Without default features the crate is `no_std` and needs only `alloc`.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod call_site;
pub mod cfi;
pub mod code_map;
pub mod compact;
pub mod image;
pub mod jitted;
pub mod memory;
pub mod mixed;
mod named;
pub mod profiling;
pub mod registers;
mod rule_slots;
mod search;
pub mod unwind;
