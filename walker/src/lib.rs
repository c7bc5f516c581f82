//! Stack walks for .NET profilers: the part that a profiler ships.
//!
//! A thread of a CLR has managed and native frames on one stack. The unwinder ([`clr_unwind`]) steps
//! through code that has unwind data, and `DoStackSnapshot` reports the managed frames, if it gets the
//! right seed. This crate joins both:
//!
//! - [`mixed`]: walks of a live thread, by a policy: suspended, in a signal handler, synchronous;
//! - [`jitted`]: methods that the JIT compiler made, read where the runtime keeps them, so that the
//!   unwinder knows them without a question to the runtime;
//! - [`profiling`]: the part of `ICorProfilerInfo` that walks need, as traits.
//!
//! Input is never trusted: what is malformed gives errors with the place of the fault, every loop has
//! a limit, and a walk allocates nothing. Without default features the crate is `no_std` and needs only
//! `alloc`.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod jitted;
pub mod mixed;
pub mod profiling;

pub use clr_unwind;
