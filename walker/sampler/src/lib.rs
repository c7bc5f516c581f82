//! A sampling profiler of a CLR, to copy or to use: what each of them needs of its system, for Linux and Windows on
//! x64. (Elsewhere the crate is empty.)
//!
//! [`clr_walker`] walks a stopped thread. Here is what comes before and after: a list of threads with the bounds of
//! their stacks, a code map that callbacks and the loader's list keep up to date, a signal handler that waits for
//! nothing, threads that the profiler suspends, names, files of profiles, and a watchdog.
//!
//! A profiler makes a [`Mode`], which gets the samples, and [`Callbacks`], the object that the runtime loads; in its
//! `Initialize` it starts the [`Sampler`]. `examples/sampler.rs` is a whole profiler of this kind, and `clr-recorder`
//! is one with more modes.
//!
//! ```text
//! Sampler: choose a thread ─► signal ─────────────────────────► wait ─► stitch ─► Mode::on_sample
//! thread:                      └─► handler: Walker::take, copy ───┘
//! ```
//!
//! | module | content |
//! |---|---|
//! | `sampler` | the thread that samples, and the modes that get its samples |
//! | `callbacks` | the object that the runtime loads |
//! | `process` | what a profiler knows of its process |
//! | [`threads`] | the threads that can be sampled, with the bounds of their stacks |
//! | `native_images` | the code map of a process without a runtime |
//! | `code` | the code map: native images, ready-to-run images, jitted methods |
//! | `no_runtime` | walks that ask no runtime |
//! | `request` | one sample at a time: taken in a signal handler, or while the thread is suspended |
//! | `target` | an interrupted thread, as the walker sees it in its signal handler |
//! | `suspended` | a suspended thread, as the walker sees it |
//! | `retry` | walks that are made again, over a copy, when the code map has more |
//! | `used_stack` | the part of a stack that such a thread uses, read directly |
//! | `watchdog` | the thread that sees hangs, and the stacks of all threads |
//! | [`allocations`] | allocations that are made where none is allowed |
//! | `lifetimes` | which method had an id, or was at an address, at a time |
//! | `at_time` | the runtime as it was when a sample was taken |
//! | [`names`] | names of methods |
//! | `named` | a profile by these names |
//! | [`profile`] | stacks and counts, and the formats of files |
//! | [`os`] | the operating system: signals, memory, images. Nearly all `unsafe` is there |
//!
//! # Features
//!
//! `snapshots`: DoStackSnapshot is asked beside a walk, for tests of walks. A profiler that ships does not need it.
//!
//! # Unsafe code
//!
//! The crate has `unsafe`, each use with its reason: a signal handler reads the stack that it interrupts, calls of
//! the system have pointers, and the runtime is called through vtables.
#![cfg(all(any(target_os = "linux", windows), target_arch = "x86_64"))]

pub mod allocations;
mod at_time;
mod callbacks;
mod code;
mod lifetimes;
mod lock;
mod named;
pub mod names;
mod native_images;
mod no_runtime;
pub mod os;
mod process;
pub mod profile;
mod request;
#[cfg(target_os = "linux")]
mod retry;
mod sampler;
#[cfg(windows)]
mod suspended;
#[cfg(target_os = "linux")]
mod target;
pub mod threads;
mod used_stack;
mod watchdog;

pub use callbacks::Callbacks;
pub use code::{Code, Log};
pub use lock::lock;
pub use named::NamedProfile;
pub use native_images::NativeImages;
pub use no_runtime::NoRuntime;
pub use process::Process;
#[cfg(feature = "snapshots")]
pub use request::Report;
#[cfg(target_os = "linux")]
pub use request::Slot;
pub use request::{Answer, Missed, Request, RuntimeSuspended, Sample, Walks};
#[cfg(target_os = "linux")]
pub use retry::{CopiedStack, Retry};
pub use sampler::{EVENTS, Mode, Options, Sampler};
#[cfg(windows)]
pub use suspended::Suspended;
#[cfg(target_os = "linux")]
pub use target::{Interrupted, RED_ZONE};
pub use used_stack::UsedStack;
