//! Calls that are not written yet: any thread pushes, one takes.
//!
//! A place is claimed by its number. Only who has claimed it writes there, and only the thread that takes reads it, after it is
//! marked as full: its lock is never held when somebody asks for it.

use clr_com::Moment;
use clr_sampler::lock;
use clr_walker::profiling::ThreadId;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Number of places.
const PLACES: u64 = 0x4000;
/// Places that are kept free for threads that look at the same time.
const SPARE: u64 = 0x100;
/// Number of looks for a place, and the time between two.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_micros(100);

/// A moment of a call, with its thread.
pub(super) struct Entry {
    pub(super) thread: ThreadId,
    pub(super) os_thread: u64,
    pub(super) moment: Moment,
}

#[derive(Default)]
struct Place {
    is_full: AtomicBool,
    entry: Mutex<Option<Entry>>,
}

/// The calls.
pub(super) struct Ring {
    places: Box<[Place]>,
    /// Numbers of the next place to fill and to take, and of those that are written.
    next: AtomicU64,
    taken: AtomicU64,
    written: AtomicU64,
    lost: AtomicU64,
}

impl Ring {
    pub(super) fn new() -> Self {
        Self {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            next: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    fn place(&self, number: u64) -> Option<&Place> {
        self.places.get((number % PLACES) as usize)
    }

    /// Adds an entry, and returns its number. If there is no place for some time, the entry is lost.
    pub(super) fn push(&self, entry: Entry) -> Option<u64> {
        for _ in 0..TRIES {
            // In this order: what is taken later has a larger number than what is claimed now.
            let taken = self.taken.load(Ordering::Acquire);
            let used = self.next.load(Ordering::Relaxed) - taken;
            if used < PLACES - SPARE {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let place = self.place(number)?;
                *lock(&place.entry) = Some(entry);
                place.is_full.store(true, Ordering::Release);
                return Some(number);
            }
            thread::sleep(PAUSE);
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Takes the next entry, in the order in which their places were claimed.
    pub(super) fn next(&self) -> Option<Entry> {
        let number = self.taken.load(Ordering::Relaxed);
        let place = self.place(number)?;
        if !place.is_full.load(Ordering::Acquire) {
            return None;
        }
        let entry = lock(&place.entry).take();
        place.is_full.store(false, Ordering::Relaxed);
        self.taken.store(number + 1, Ordering::Release);
        entry
    }

    /// Returns the number of entries that were lost, and forgets it.
    pub(super) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// Notes that all that was taken is written.
    pub(super) fn set_written(&self) {
        self.written.store(self.taken.load(Ordering::Relaxed), Ordering::Release);
    }

    /// Returns true if the entry with this number is written.
    pub(super) fn has_written(&self, number: u64) -> bool {
        self.written.load(Ordering::Acquire) > number
    }

    /// Returns true if all that was pushed is written.
    pub(super) fn is_written(&self) -> bool {
        self.written.load(Ordering::Acquire) == self.next.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_walker::profiling::{FunctionId, HResult};
    use std::sync::Arc;

    fn entry(number: u64) -> Entry {
        let moment = Moment::Frame(FunctionId(number), HResult::OK);
        Entry { thread: ThreadId(0), os_thread: number, moment }
    }

    #[test]
    fn all_entries_of_all_threads_arrive_in_order() {
        let ring = Arc::new(Ring::new());
        let pushers: Vec<_> = (0..4)
            .map(|thread| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    let mut refused = 0;
                    for number in 0..10_000 {
                        // The thread that takes may stand still for longer than a push waits.
                        while ring.push(entry(thread << 32 | number)).is_none() {
                            refused += 1;
                        }
                    }
                    refused
                })
            })
            .collect();
        let mut next = [0_u64; 4];
        loop {
            let is_over = pushers.iter().all(thread::JoinHandle::is_finished);
            let entry = match ring.next() {
                Some(entry) => entry,
                None if is_over => break,
                None => continue,
            };
            let thread = (entry.os_thread >> 32) as usize;
            assert_eq!(entry.os_thread & 0xFFFF_FFFF, next[thread]);
            next[thread] += 1;
        }
        let refused: u64 = pushers.into_iter().map(|pusher| pusher.join().unwrap()).sum();
        assert_eq!((next, ring.take_lost()), ([10_000; 4], refused));
        assert!(!ring.is_written());
        ring.set_written();
        assert!(ring.is_written());
    }

    #[test]
    fn entries_without_a_place_are_counted() {
        let ring = Ring::new();
        let pushed: Vec<_> =
            (0..PLACES - SPARE + 2).map(|number| ring.push(entry(number))).collect();
        assert_eq!((pushed[0], pushed[pushed.len() - 1]), (Some(0), None));
        assert!(!ring.has_written(0));
        assert_eq!(ring.take_lost(), 2);
        assert_eq!(ring.next().unwrap().os_thread, 0);
        assert!(!ring.has_written(0));
        ring.set_written();
        assert!(ring.has_written(0) && !ring.has_written(1));
    }
}
