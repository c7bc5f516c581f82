//! A profiler's library in a simulated CLR: loaded, called and unloaded as a CLR does, its threads under a scheduler.
//!
//! A [`Visit`] loads a profiler's library and calls it while a text's program is executed: `clrsim host`. In
//! `scheduled`, the same is done in interleavings, where the library's threads are under the scheduler of `clr-explore`.
//!
//! | module | content |
//! |---|---|
//! | `load` | the steps in which a CLR makes a profiler's object, and gives it up |
//! | `visit` | a profiler's life over a text |
//! | `thread_count` | threads that a profiler starts meanwhile |
//! | `tracing` | traces of all calls |
//! | `runtime_library` | the library of the runtime, as far as profilers look it up |
//! | `limits`, `confined` | limits of a guest's process, and its end with all that it has started |
//! | `coverage`, `search_coverage` | what runs and searches cover, and what was not looked at |
//! | `scheduled` | threads under the scheduler (x86-64: Linux with glibc, Windows) |
//!
//! The crate is for 64-bit targets, as the interfaces are: elsewhere it is empty.
#![cfg(target_pointer_width = "64")]
// A panic would end the profiler's process.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]
// Interfaces and methods have the names of the documentation.
#![allow(non_snake_case, reason = "names of the profiling interfaces")]

mod confined;
mod coverage;
mod limits;
mod load;
mod runtime_library;
#[cfg(scheduled)]
pub mod scheduled;
mod search_coverage;
mod thread_count;
mod tracing;
mod visit;

pub use confined::{Watched, guard, spawn, wait};
pub use coverage::{CountedCall, GuestCoverage, ThreadCoverage};
pub use limits::{Beyond, GuestLimits, MIB};
pub use runtime_library::{RUNTIME_LIBRARY, load_runtime_library, runtime_library};
pub use search_coverage::{CoveredName, CoveredThread, SearchCoverage, Unseen};
pub use tracing::Sink;
pub use visit::Visit;
