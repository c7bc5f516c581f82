//! Explicit Frames: objects in the target's stack memory that are linked from the thread, and the
//! registers they lead to (contract §3.5).
//!
//! Frames are stored only in that memory, so a walk sees its current contents.

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
