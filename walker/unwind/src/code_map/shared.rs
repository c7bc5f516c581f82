//! A code map that signal handlers read while it is changed.

use super::CodeMap;
use core::ops::Deref;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, TryLockError};

/// Number of generations that may be read at the same time: the newest, and older ones for which
/// readers have not left yet.
const SLOTS: usize = 4;

/// A code map shared between threads: readers see whole generations of it, and never wait.
///
/// A reader may interrupt any thread at any instruction, one that is making the next generation
/// included. Reading takes no lock that a writer of the newest generation holds, and allocates and
/// frees nothing. Only a writer frees regions, after the last reader has left their generation.
///
/// ```
/// use clr_unwind::{CodeMap, CodeRegion, FunctionTable, SharedCodeMap};
///
/// let code = [0xC3; 16];
/// let shared = SharedCodeMap::new(CodeMap::new());
/// let before = shared.read();
/// shared.update(|map| map.insert(CodeRegion::heap(0x1000, &code, FunctionTable::default())?))?;
/// assert!(before.find(0x1000).is_none(), "the reader keeps its generation");
/// assert!(shared.read().find(0x1000).is_some());
/// # Ok::<(), clr_unwind::CodeMapError>(())
/// ```
#[derive(Debug)]
pub struct SharedCodeMap<'a> {
    slots: [RwLock<CodeMap<'a>>; SLOTS],
    /// Index of the slot with the newest generation. No writer waits for that slot.
    newest: AtomicUsize,
    /// Held while a generation is made, so that none is lost.
    writer: Mutex<()>,
}

/// A generation of a [`SharedCodeMap`], for as long as it is being read.
///
/// Leave it before a call that may lead to [`update`](SharedCodeMap::update) on the same thread. For
/// long use, clone the map: that takes O(1).
#[derive(Debug)]
pub struct CodeMapRef<'r, 'a>(RwLockReadGuard<'r, CodeMap<'a>>);

impl<'a> Deref for CodeMapRef<'_, 'a> {
    type Target = CodeMap<'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Default for SharedCodeMap<'_> {
    fn default() -> Self {
        Self::new(CodeMap::new())
    }
}

impl<'a> SharedCodeMap<'a> {
    /// Shares a map.
    pub fn new(map: CodeMap<'a>) -> Self {
        let slots = [map.clone(), map.clone(), map.clone(), map].map(RwLock::new);
        Self { slots, newest: AtomicUsize::new(0), writer: Mutex::new(()) }
    }

    /// Returns the newest generation.
    ///
    /// This never waits: it begins again only if another thread has finished a change since it
    /// began.
    pub fn read(&self) -> CodeMapRef<'_, 'a> {
        loop {
            let newest = self.newest.load(Ordering::SeqCst);
            let Some(slot) = self.slots.get(newest) else { continue };
            match slot.try_read() {
                Ok(map) => return CodeMapRef(map),
                // A panic while a generation was dropped: the new one had replaced it.
                Err(TryLockError::Poisoned(poisoned)) => return CodeMapRef(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }

    /// Makes the next generation: a copy of the newest one, changed by `change`. All changes in one
    /// call become visible together. Returns the result of `change`.
    ///
    /// Waits for other writers, and for readers of the oldest generations; not in a signal handler.
    pub fn update<R>(&self, change: impl FnOnce(&mut CodeMap<'a>) -> R) -> R {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = self.newest.load(Ordering::SeqCst);
        let mut map = CodeMap::clone(&self.read());
        let result = change(&mut map);
        let others = || (1..SLOTS).map(|after| (newest + after) % SLOTS);
        let free = others().find(|&at| {
            let slot = self.slots.get(at).map(RwLock::try_write);
            slot.is_some_and(|slot| !matches!(slot, Err(TryLockError::WouldBlock)))
        });
        let next = free.or_else(|| others().next()).unwrap_or_default();
        if let Some(slot) = self.slots.get(next) {
            let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
            *slot = map.clone();
        }
        self.newest.store(next, Ordering::SeqCst);
        // Generations that nobody reads any more free what only they have.
        for at in others().filter(|at| *at != next).chain([newest]) {
            if let Some(slot) = self.slots.get(at)
                && let Ok(mut slot) = slot.try_write()
            {
                *slot = map.clone();
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CodeRegion, Run};
    use super::*;
    use alloc::sync::Arc;
    use core::sync::atomic::AtomicBool;
    use std::thread;

    /// Returns a region of 16 bytes at `start` (VA) with these bytes.
    fn region(start: u64, byte: u8) -> CodeRegion<'static> {
        let runs = alloc::vec![Run { rva: 0, bytes: alloc::vec![byte; 16] }];
        CodeRegion::generated(start..start + 16, start, &[], runs).unwrap()
    }

    #[test]
    fn a_reader_sees_one_generation_and_newer_readers_the_newest() {
        let shared = SharedCodeMap::default();
        let mut readers = alloc::vec![shared.read()];
        for count in 1..SLOTS as u64 {
            shared.update(|map| map.insert(region(count * 16, 1)).unwrap());
            readers.push(shared.read());
        }
        for (count, reader) in readers.iter().enumerate() {
            assert_eq!(reader.len(), count);
        }
        // All generations are being read: the next change waits until one of them is left.
        let is_changed = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                shared.update(|map| map.remove(16));
                is_changed.store(true, Ordering::SeqCst);
            });
            thread::sleep(core::time::Duration::from_millis(50));
            assert!(!is_changed.load(Ordering::SeqCst), "a generation changed under a reader");
            assert_eq!(shared.read().len(), SLOTS - 1, "a waiting writer holds up no reader");
            readers.clear();
        });
        assert_eq!(shared.read().len(), SLOTS - 2);
    }

    #[test]
    fn what_is_removed_is_freed_when_its_last_reader_has_left() {
        let shared = SharedCodeMap::default();
        shared.update(|map| map.insert(region(16, 1)).unwrap());
        let reader = shared.read();
        let removed = shared.update(|map| map.remove(16)).unwrap();
        assert_eq!(Arc::strong_count(&removed), 2, "the reader's generation has it");
        assert!(reader.find(16).is_some());
        drop(reader);
        assert_eq!(Arc::strong_count(&removed), 2, "a reader frees nothing");
        shared.update(|_| ());
        assert_eq!(Arc::strong_count(&removed), 1);
    }

    #[test]
    fn readers_never_see_half_of_a_change() {
        const REGIONS: u64 = if cfg!(miri) { 5 } else { 100 };
        let shared = SharedCodeMap::default();
        let is_over = AtomicBool::new(false);
        let fill = |map: &mut CodeMap<'static>, byte: u8| {
            for start in (1..=REGIONS).map(|at| at * 16) {
                map.replace(region(start, byte));
            }
        };
        shared.update(|map| fill(map, 0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        let map = shared.read();
                        assert_eq!(map.len() as u64, REGIONS);
                        let byte = |region: &CodeRegion<'_>| region.bytes_from(0).unwrap()[0];
                        let first = byte(map.regions().next().unwrap());
                        assert!(map.regions().all(|region| byte(region) == first));
                    }
                });
            }
            for change in 0..if cfg!(miri) { 3 } else { 200 } {
                shared.update(|map| fill(map, change));
            }
            is_over.store(true, Ordering::SeqCst);
        });
    }
}
