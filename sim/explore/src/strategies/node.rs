//! A state of an exhaustive search, while it is on the path that is being tried.

use super::signature::Signature;
use crate::ids::ThreadIndex;

/// A state on the current path.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) order: Signature,
    /// The thread of the last turn.
    pub(super) last: Option<ThreadIndex>,
    pub(super) preemptions: u32,
    /// The threads left to be tried, the next one last; `None` before it is known which can run.
    pub(super) left: Option<Vec<ThreadIndex>>,
    /// Total number of alternatives.
    pub(super) all: u32,
    /// The thread that is being tried.
    pub(super) chosen: ThreadIndex,
}

impl Node {
    /// Creates the node of a state, before anything is known about it.
    pub(super) fn new(order: Signature) -> Self {
        let (last, left, chosen) = (None, None, ThreadIndex::default());
        Self { order, last, preemptions: 0, left, all: 0, chosen }
    }
}
