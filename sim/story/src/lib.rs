//! Failed interleavings, explained: the hazard behind a verdict, the story of its threads, and drawings.
//!
//! * [`Hazard`]: the known ways in which sampling fails, and which of them a verdict is.
//! * [`failure_story`]: the message of a test whose profiler fails; [`story`] has the same as rows.
//! * [`timeline`]: drawings for the terminal and as a page.

mod hazard;
mod story;
pub mod timeline;

pub use hazard::{Hazard, NoHazard};
pub use story::{failure_story, story};

#[cfg(test)]
mod tests;
