//! Stacks of real .NET processes as scenarios, in which the simulated runtime answers for them.
//!
//! A source gives an [`Observation`]: the stack of a thread, the mode, and notes of what the source does not have. It becomes a
//! scenario with the stack placed by hand, at small addresses, whose calls expect what the runtimes of the observation give.
//!
//! | module | content |
//! |---|---|
//! | `observation` | a thread's stack as a scenario |
//! | `note` | what a source does not have, and what is assumed in its place |
//! | `version` | the simulated runtime of a version |
//! | `dump` | the threads of a dump |
//! | `hang` | a hang as a scenario |
//! | `paste` | stacks as debuggers print them |
//!
//! Nothing is guessed: what is not in a source is a note in the scenario's comment, or an error.

mod dump;
mod error;
mod hang;
mod note;
mod observation;
mod paste;
#[cfg(test)]
mod tests;
mod version;

pub use dump::ThreadReader;
pub use error::ImportError;
pub use hang::HangScenario;
pub use note::Note;
pub use observation::Observation;
pub use paste::{Paste, PasteFormat, PastedThread};
pub use version::{generation_of, generation_of_process};
