//! Explicit Frames: objects in the target's stack memory, linked from the thread, and the registers
//! they lead to (contract §3.5).
//!
//! Nothing is kept of a Frame outside of that memory, so a walk meets whatever it holds now.

mod kind;
pub mod layout;
mod lazy;
mod read;
mod write;

pub use kind::{FrameIdentities, FrameKind, FrameShape};
pub use layout::FRAME_TOP;
pub(crate) use lazy::LazyStateError;
pub use read::FrameReader;
pub use write::{FrameFields, FrameWriter, LazyFields};

#[cfg(test)]
mod tests;
