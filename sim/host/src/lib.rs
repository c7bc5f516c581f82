//! `libclrsim`: an `ICorProfilerInfo` of a simulated CLR, for tests of profilers in C and C++.
//!
//! A [`Session`] is a text on one runtime. Its threads are run up to a stop; there `DoStackSnapshot` and the
//! methods that profilers call with it answer as that runtime does. Each mistake of the profiler is a
//! [`Finding`] of the session's [`Report`], never undefined behaviour here.
//!
//! ```
//! use clr_com::{ICorProfilerInfo4, IUnknown, Interface};
//! use clr_walker::profiling::{HResult, ProfilerInfo};
//! use clr_runtime::generation::Generation;
//! use clrsim::Session;
//!
//! let text = r#"
//! function "Prog.Main" kind="jit" { body { p-invoke "Lib.Sleep" } }
//! function "Lib.Sleep" { body { work 3 } }
//! stop at="Lib.Sleep"
//! "#;
//! let session = Session::open(text, Generation::Net8Windows)?;
//! session.run_to_stop(0)?;
//! // SAFETY: the session outlives the pointer, which is not counted.
//! let info = std::mem::ManuallyDrop::new(unsafe { IUnknown::from_raw(session.info()) }.unwrap());
//! let info = clr_com::RuntimeInfo::new(&info).unwrap();
//! assert_eq!(info.enum_threads().unwrap(), [session.stopped_thread().unwrap()]);
//! # Ok::<(), clrsim::SessionError>(())
//! ```
//!
//! | module | content |
//! |---|---|
//! | `session` | a text on a runtime: its threads, the calling thread, what was found |
//! | `process` | the process of a session, up to a stop |
//! | `report`, `coverage` | findings, and calls with their results |
//! | `object` | COM objects that outlive their references |
//! | `info` | `ICorProfilerInfo` to 15 |
//! | `threads` | enumerators |
//! | `import`, `enumeration` | `IMetaDataImport2` |
//! | `images` | images of modules in the profiler's memory |
//! | `heap`, `non_gc_heap` | objects |
//! | `refusals` | reasons of HRESULTs |
//! | `start` | the start of a profiler, and the modules that a process has from its start |
//! | `raise`, `receiver` | the program's execution, and methods of the runtime, with callbacks into the profiler |
//! | `callbacks` | the program's callbacks, with their arguments |
//! | `target` | the object that callbacks are raised into |
//! | `elt`, `profiler_hooks` | enter, leave and tailcall hooks |
//! | `heap`, `objects` | objects, and the heaps that they are in |
//! | `events`, `event_state` | EventPipe: sessions, providers, events |
//! | `exports`, `buffers` | exports of the library that the program calls, and the memory that they get pointers to |
//! | `attach`, `detach` | a profiler that comes to a running process; the end of profiling |
//! | `walks` | walks and their explanations |
//! | `journal` | events, as they happen |
//! | `lookup` | ids as names, for traces |
//! | `out` | pointers of the profiler |
//! | `inner` | the state of a session, and the thread that has the turn |
//! | `shared` | its part that other threads may touch |
//! | `turns` | threads of interleavings, which `clr-guest` has |
//! | `hosting` | what `clr-guest` needs of a session |
//! | `c` | the functions of `clrsim.h` |
//! | `probe` | a profiler that makes any call, for tests and fuzzing |
//!
//! # Unsafe code
//!
//! Pointers come from the profiler: that they are NULL or point to what the documentation of the
//! method demands is the profiler's promise. Everything else is checked: ids, tokens, handles of
//! enumerations, sizes of buffers, counts of references, threads.
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

mod attach;
mod buffers;
pub mod c;
mod callbacks;
mod coverage;
mod detach;
mod elt;
mod enumeration;
mod environment;
mod event_state;
mod events;
mod exports;
mod function_control;
mod heap;
#[doc(hidden)]
pub mod hosting;
mod images;
mod import;
mod info;
mod inner;
mod journal;
mod lookup;
mod non_gc_heap;
mod object;
mod objects;
mod out;
#[cfg(feature = "probe")]
pub mod probe;
mod process;
mod profiler_hooks;
mod raise;
mod receiver;
mod refusals;
mod report;
pub mod results;
mod session;
mod shared;
mod start;
mod target;
mod threads;
mod turns;
mod walks;

pub use clr_com::Guid;
pub use coverage::{CallKind, Coverage, CoveredCall};
pub use journal::{Entry, Journal};
pub use refusals::reason;
pub use report::{Finding, Report};
pub use session::{Role, Session, SessionError};
pub use walks::{Walk, WalkedFrame};
