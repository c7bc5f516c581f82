//! Calls that wait for the recorder's own thread to write them.

use super::walk::Walk;
use clr_sampler::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The calls, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    walks: Mutex<Vec<Walk>>,
    has_come: Condvar,
}

impl Waiting {
    /// Adds a call.
    pub(super) fn push(&self, walk: Walk) {
        lock(&self.walks).push(walk);
        self.has_come.notify_one();
    }

    /// Takes all calls. Waits for some, but not longer than this.
    pub(super) fn take(&self, time: Duration) -> Vec<Walk> {
        let walks = lock(&self.walks);
        let waited = self.has_come.wait_timeout_while(walks, time, |walks| walks.is_empty());
        let (mut walks, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *walks)
    }
}
