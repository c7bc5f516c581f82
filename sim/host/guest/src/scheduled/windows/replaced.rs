//! The functions that the guest's imports lead to.

use super::{
    addresses, ends, exit, handles, heap, loader, locks, pool, pool_timers, posix, random, refused,
    suspension, threads, time, timers, waits,
};
use crate::scheduled::Replacement;

/// Returns the functions that the guest's imports are to lead to.
pub(in crate::scheduled) fn replacements() -> Vec<Replacement> {
    let mut all = Vec::new();
    all.extend(locks::replaced());
    all.extend(handles::replaced());
    all.extend(waits::replaced());
    all.extend(heap::replaced());
    all.extend(posix::replaced());
    all.extend(addresses::replaced());
    all.extend(threads::replaced());
    all.extend(suspension::replaced());
    all.extend(pool::replaced());
    all.extend(pool_timers::replaced());
    all.extend(exit::replaced());
    all.extend(time::replaced());
    all.extend(timers::replaced());
    all.extend(random::replaced());
    all.extend(ends::replaced());
    all.extend(loader::replaced());
    all.extend(refused::replaced());
    all
}
