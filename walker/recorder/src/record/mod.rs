//! `mode=record`: calls of `DoStackSnapshot` in all situations, written as a file that `clrsim run`
//! replays.
//!
//! | module | content |
//! |---|---|
//! | `mode` | the recorder's mode: the recording of this process |
//! | `recording` | the recording: the calls that are wanted, and what is written of each |
//! | `callbacks` | the object that the runtime loads: each callback is a situation |
//! | `hooks` | enter, leave and tailcall hooks: situations, too |
//! | `suspended` | the recorder's own thread: calls for other threads |
//! | `signals` | calls in signal handlers |
//! | `windows` | the same for threads that it suspends |
//! | `suspensions` | whether a GC may have moved objects during a call |
//! | `waiting` | calls that the recorder's own thread writes |
//! | `capture` | calls for a stopped thread |
//! | `call` | a call and its seeds |
//! | `bad_seeds` | seeds that are wrong on purpose |
//! | `wanted` | which calls are written |
//! | `walk` | data structures: a call, the state before it, its result |
//! | `layout` | what is known of a runtime's own structures, by version |
//! | `async_methods` | which methods are thunks of async ones |
//! | `vtables` | which vtable belongs to which kind of Frame |
//! | `frames` | a thread's GC mode and its Frames |
//! | `hidden` | what exceptions hide, deduced from the result |
//! | `own_stack` | the calling thread's stack |
//! | `reads` | the words of memory that the runtime reads in a walk |
//! | `managed` | the managed code among all code |
//! | `referenced_code` | the code that a walk meets |
//! | `mask` | what the file does not show |
//! | `text`, `file` | the lines of the file, and when they are written |
//!
//! A file has no environment, no arguments of the program, and no data of its threads: of stacks only
//! the words that the runtime reads, which are return addresses, saved registers and fields of
//! Frames; and of these, as of registers, only addresses on the stack and of code. All else is
//! replaced (`mask`).

mod async_methods;
mod bad_seeds;
mod call;
mod callbacks;
mod capture;
mod file;
mod frames;
mod hidden;
mod hooks;
mod layout;
mod managed;
mod mask;
mod mode;
mod own_stack;
mod reads;
mod recording;
mod referenced_code;
#[cfg(target_os = "linux")]
mod signals;
mod suspended;
mod suspensions;
#[cfg(test)]
mod tests;
mod text;
mod vtables;
mod waiting;
mod walk;
mod wanted;
#[cfg(windows)]
mod windows;

pub(crate) use callbacks::RecordingProfiler;
pub(crate) use mode::start;
