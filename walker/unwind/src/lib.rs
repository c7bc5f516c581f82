//! An unwinder for x64: one step from a frame to its caller, with every register that can be known.
//!
//! Given the registers, the memory and the images of a stopped thread, [`Unwinder::step`] computes its
//! caller's registers: the sixteen integer registers, rip, and on Windows xmm6 to xmm15. It reads
//! UNWIND_INFO of versions 1 to 3 and call frame information (`.eh_frame`, `.debug_frame`), and follows
//! the code through epilogues and stubs, which neither describes. One stack may need both formats.
//!
//! ```
//! use clr_unwind::{
//!     CodeMap, CodeRegion, FunctionTable, Gpr, Position, Registers, Segment, Trust, Unwinder,
//! };
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
//! # Scope
//!
//! The crate solves:
//!
//! - a step from any instruction of a function, prologue and epilogues included, and the walk of a
//!   whole stack ([`Unwinder::walk`]);
//! - which registers a step found, kept and lost, and by which method it found the caller ([`Step`],
//!   [`Trust`]);
//! - a map of code that changes while signal handlers read it (`SharedCodeMap`, feature `std`), with a
//!   cache in it for the rules of frequent addresses;
//! - reading of PE and ELF images, and of Mach-O images with feature `macho`.
//!
//! The caller is responsible for:
//!
//! - stopping the thread, and its registers at the stop;
//! - reading memory ([`Memory`]) in a way that survives unmapped addresses;
//! - the bytes of the images, or of generated code with its function entries, and their addresses: the
//!   crate opens no file and asks no operating system;
//! - the interpretation of frames: names, line numbers, inlined calls.
//!
//! It is not for other processors than x86-64, for stacks of 32-bit code, or for unwinding by exception
//! handlers. Code without any unwind data is guessed at only on request ([`Guesses`]).
//!
//! # Limits
//!
//! Input is never trusted: malformed images and unwind data give errors with the place of the
//! fault, every loop has a limit, and a failed step leaves the registers as they were. A walk
//! allocates nothing, and in an optimised build a step needs less than 4 KiB of stack.
//!
//! Without default features the crate is `no_std` and needs only `alloc`.
//!
//! # Modules
//!
//! All items that a walk needs are at the root. [`cfi`], `compact` (feature `macho`) and [`win64`] read the tables
//! themselves, and [`compat`] has the rules of other unwinders.
//!
//! ```text
//! registers + memory                     the stopped thread
//!        │
//!        ▼
//! CodeMap: address → CodeRegion ──► PeImage: sections, RUNTIME_FUNCTION table
//!        │                     └──► ElfImage, MachoImage: segments, .eh_frame, .debug_frame
//!        │                                    │ compiled when a step needs them; __unwind_info
//!        ▼                                    ▼
//! win64: UNWIND_INFO, epilogues            cfi: rows; compact: entries
//!        │                                    │
//!        └───────────────┬────────────────────┘
//!                        ▼
//!     caller's registers, Trust, establisher frame, handler
//! ```
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod cfi;
mod code_map;
pub mod compact;
pub mod compat;
mod image;
mod memory;
mod named;
mod registers;
mod rule_slots;
mod search;
mod unwinder;
#[doc(hidden)]
pub mod x64;

pub use code_map::{CodeMap, CodeMapError, CodeRegion, RegionKind, Run};
#[cfg(feature = "std")]
pub use code_map::{CodeMapRef, SharedCodeMap};
pub use image::{
    BuildId, CfiSections, ElfError, ElfImage, FunctionTable, ImageError, ImageIdentity,
    ImageLayout, PeIdentity, PeImage, RuntimeFunction, SIZE_OF_RUNTIME_FUNCTION, Section, Sections,
    Symbols, TargetOs,
};
#[cfg(feature = "macho")]
pub use image::{MachoError, MachoImage};
pub use memory::{Memory, Segment, Segments, SegmentsError, Unreadable};
pub use registers::{CONTEXT_SIZE, ContextError, Convention, Gpr, RegisterSet, Registers};
pub use unwinder::win64;
pub use unwinder::{
    Cache, Frame, Guesses, Handler, Position, Step, Trust, UnwindError, Unwinder, Walk,
};
