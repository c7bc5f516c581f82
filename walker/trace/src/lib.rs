//! Traces: the calls between a runtime and a profiler, in their order, by thread.
//!
//! A real CLR and a simulated one are traced by the same code, so that a difference is one of the runtimes. Objects of
//! `clr-com` stand between the two sides and pass each call on; [`Writer`] turns what they capture into [`Line`]s.
//!
//! | module | content |
//! |---|---|
//! | `line` | the lines of a trace, as JSON |
//! | `ids` | ids of the runtime as names |
//! | `writer` | calls as lines |
//! | `trace` | a trace that was read: calls by thread, with names |
//! | `text` | a trace as text |
//! | `program` | the program of a trace, as a text of the simulator |
//! | `filter` | the calls that are compared |
//! | `compare`, `difference` | the first difference of two traces |
//!
//! Values are texts. An id is `function#3`: the third function that the trace names, until a line says its name. Numbers
//! are decimal, tokens hexadecimal, texts in quotes, pointers `null` or `pointer`.
#![cfg(target_pointer_width = "64")]

mod compare;
mod difference;
mod filter;
mod ids;
mod line;
mod program;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod writer;

pub use compare::{Comparison, compare};
pub use difference::{Difference, Place};
pub use filter::{IsNamed, LeftOut};
pub use ids::{IdKind, Names};
pub use line::{Arguments, Line};
pub use program::Program;
pub use text::as_text;
pub use trace::{Call, CallKind, Frame, Trace, TraceError, TraceProblem, TraceThread};
pub use writer::Writer;
