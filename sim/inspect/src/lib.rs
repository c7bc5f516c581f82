//! The .NET runtime in a stopped process: threads with their modes and Frames, and stacks of managed and native frames.
//!
//! All is read by the runtime's own data contracts (`clr_walker::jitted::contracts`), so no debugger's library is needed. .NET 10
//! and 11 have all that are asked for, .NET 9 that of threads, and .NET 8 none: what lacks is known of two builds, 8.0.34 and 9.0.23
//! for Linux x64. Of another build of .NET 9, threads are read, but no managed code; another one of .NET 8 is refused. On Windows the
//! same contracts count.
//!
//! ```no_run
//! # fn print(process: &clr_dump::CoreDump<'_>) -> Result<(), clr_inspect::InspectError> {
//! let runtime = clr_inspect::Runtime::find(process)?;
//! for thread in runtime.threads(process)?.threads {
//!     println!("{} {:?} {:?}", thread.os_id, thread.mode, thread.frames);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | content |
//! |---|---|
//! | `runtime` | where the runtime is, and its descriptor |
//! | `layouts` | what the descriptor lacks, of builds that are known |
//! | `threads` | the threads that the runtime knows |
//! | `frames` | the Frames of a thread |
//! | `hijacks` | return addresses that the runtime has replaced |
//! | `stack` | managed and native frames in one stack |
//! | `hang` | who waits for whom, and whether they wait in a circle |
//! | `methods` | names of methods |
//! | `exceptions` | exceptions as objects |
//! | `profiler` | what profilers have asked for |
//! | `ready_to_run`, `hash_map` | methods of ready-to-run images, by address |
//!
//! Nothing is guessed: what cannot be read is an error with its address, and a list that breaks off says where.

mod error;
mod exceptions;
mod frames;
mod hang;
mod hash_map;
mod hijacks;
mod layouts;
mod methods;
mod profiler;
mod ready_to_run;
mod runtime;
mod stack;
#[cfg(test)]
mod tests;
mod threads;

pub use error::InspectError;
pub use exceptions::Exception;
pub use frames::{ExplicitFrame, FrameKind};
pub use hang::{Cause, Circle, Diagnosis, Doubt, Edge, Evidence, Unknown, Verdict, is_in_call};
pub use methods::{MethodName, MethodNames};
pub use runtime::{Runtime, is_runtime};
pub use stack::{CodeKind, Stack, StackEnd, StackFrame, StackWalker};
pub use threads::{ManagedThread, Mode, ThreadList, ThreadState, ThreadStore};
