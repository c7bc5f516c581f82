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

/// Returns the share of the search space on the left of a path, in millionths: less than all of them.
pub(super) fn millionths(path: &[Node]) -> u32 {
    // At each choice on the path, the alternatives tried before count as their share.
    const WHOLE: u64 = 1 << 40;
    let (mut share, mut seen) = (WHOLE, 0);
    for node in path {
        let all = u64::from(node.all.max(1));
        let left = node.left.as_ref().map_or(0, |left| left.len() as u64);
        let tried = all.saturating_sub(left + 1);
        seen += share / all * tried;
        share /= all;
    }
    (seen.min(WHOLE - 1) * 1_000_000 / WHOLE) as u32
}
