//! The threads that explore functions side by side.

use core::num::NonZeroUsize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Number of results that threads may have ready before one is taken.
const READY: usize = 64;

/// Explores the functions at `entries` (RVAs) on `jobs` threads, each with a function that `explorer`
/// makes, and calls `take` with each result in the order of `entries`, whatever the number of threads.
pub fn explore_all<E, T>(
    entries: &[u32],
    jobs: NonZeroUsize,
    explorer: impl Fn() -> E + Sync,
    mut take: impl FnMut(u32, T),
) where
    E: FnMut(u32) -> T,
    T: Send,
{
    let next = AtomicUsize::new(0);
    let work = |sender: mpsc::SyncSender<(usize, T)>| {
        let mut explore = explorer();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(entry) = entries.get(at)
            && sender.send((at, explore(*entry))).is_ok()
        {}
    };
    let mut in_order = entries.iter().copied().enumerate().peekable();
    thread::scope(|scope| {
        let (sender, results) = mpsc::sync_channel(READY);
        for _ in 0..jobs.get().min(entries.len()) {
            // One thread alone is this one.
            if jobs.get() > 1 {
                let sender = sender.clone();
                // Where the system cannot start another thread, fewer do the work.
                let _ = thread::Builder::new().spawn_scoped(scope, || work(sender));
            }
        }
        drop(sender);
        let mut pending = BTreeMap::new();
        for (at, explored) in results {
            pending.insert(at, explored);
            while let Some((at, entry)) = in_order.peek().copied()
                && let Some(explored) = pending.remove(&at)
            {
                take(entry, explored);
                in_order.next();
            }
        }
    });
    let mut explore = explorer();
    for (_, entry) in in_order {
        take(entry, explore(entry));
    }
}
