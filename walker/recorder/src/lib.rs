//! A profiler that ships `clr-walker`: the walker at work in a real CLR, and the reference for its use.
//!
//! ```text
//! CORECLR_ENABLE_PROFILING=1
//! CORECLR_PROFILER={3c2a5b7e-6d0f-4f0e-9c51-0a6b9d3f2c11}
//! CORECLR_PROFILER_PATH=…/libclr_recorder.so
//! CLR_RECORDER="mode=sample rate=500 out=app.folded"
//! ```
//!
//! | module | content |
//! |---|---|
//! | `settings` | `CLR_RECORDER`: settings, or the path of a file with settings |
//! | `profiler` | the object that the runtime loads: its callbacks |
//! | `recorder` | the state that callbacks, handler and sampler share |
//! | `threads` | the threads that can be sampled, with the bounds of their stacks |
//! | `events` | groups of callbacks |
//! | `code` | the code map: native images, ready-to-run images, jitted methods |
//! | `request` | one sample at a time: taken in a signal handler, or while the thread is suspended |
//! | `target` | an interrupted thread, as the walker sees it in its signal handler |
//! | `suspended` | a suspended thread, as the walker sees it |
//! | `late` | walks that are made again, over a copy, when the code map has more |
//! | `used_stack` | the part of a stack that such a thread uses, read directly |
//! | `sampler` | the thread that samples |
//! | `watchdog` | the thread that ends hangs, and writes all stacks |
//! | `allocations` | allocations that are made where none is allowed |
//! | `names` | names of methods |
//! | `profile` | stacks and counts, and the formats of files |
//! | `check` | second opinions on each walk |
//! | `record` | calls of `DoStackSnapshot` in all situations, written as a file |
//! | `calls` | what the runtime answers in each callback, as text that a simulated runtime can repeat |
//! | `os` | the operating system: signals, memory, files. Nearly all `unsafe` is there |
//!
//! A sample goes this way:
//!
//! ```text
//! sampler: choose a thread ─► signal ─────────────────────────► wait ─► stitch ─► count
//! thread:                      └─► handler: Walker::take, copy ───┘
//! ```
//!
//! For Linux and Windows on x64; elsewhere the library is empty.
#![cfg(all(any(target_os = "linux", windows), target_arch = "x86_64"))]

mod allocations;
mod calls;
mod check;
mod code;
mod events;
#[cfg(target_os = "linux")]
mod late;
mod names;
mod os;
mod profile;
mod profiler;
mod record;
mod recorder;
mod request;
mod sampler;
mod settings;
#[cfg(windows)]
mod suspended;
#[cfg(target_os = "linux")]
mod target;
mod threads;
mod used_stack;
mod watchdog;
