//! Save points, and restoring an earlier state of the pages.

use super::AddressSpace;
use super::pages::{Frames, Page};
use thiserror::Error;

/// The state of a page before a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) number: u64,
    pub(super) before: Option<Page>,
}

/// A state that can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndoMark {
    /// Number of live save points before this one.
    position: usize,
    /// Generation that began with the save; each generation begins once.
    generation: u64,
    /// Number of changes before the save.
    changes: usize,
}

/// The save point cannot be restored: an earlier one has been restored since, or all save points
/// have been dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the save point is no longer valid")]
pub struct StaleSavePoint;

impl AddressSpace {
    /// Saves the present state. From now on, pages are copied before they are written.
    pub(crate) fn save(&mut self) -> UndoMark {
        self.begin_generation();
        let (position, changes) = (self.saves.len(), self.undo.len());
        let save = UndoMark { position, generation: self.generation, changes };
        self.saves.push(save);
        save
    }

    /// Restores `save`, which stays live; later save points become stale. Calls `changed` with the
    /// numbers of the pages that are now different, some of them more than once.
    pub(crate) fn restore(
        &mut self,
        save: UndoMark,
        mut changed: impl FnMut(u64),
    ) -> Result<(), StaleSavePoint> {
        if self.saves.get(save.position) != Some(&save) {
            return Err(StaleSavePoint);
        }
        self.saves.truncate(save.position + 1);
        while self.undo.len() > save.changes
            && let Some(Undo { number, before }) = self.undo.pop()
        {
            let now = match before {
                Some(page) => self.pages.insert(number, page),
                None => self.pages.remove(&number),
            };
            // Going backwards, no older state refers to a page frame that a change introduced.
            if let Some(now) = now.filter(|now| Some(now.frame) != before.map(|page| page.frame)) {
                self.frames.release(now.frame);
            }
            self.forget_translation(number);
            changed(number);
        }
        self.begin_generation();
        Ok(())
    }

    /// Makes all save points stale and frees the memory kept for them.
    pub(crate) fn forget_saves(&mut self) {
        self.saves.clear();
        let changes = core::mem::take(&mut self.undo);
        let kept = |number: &u64| self.pages.get(number).map_or(Frames::ZEROES, |page| page.frame);
        let mut dead: Vec<u32> = Vec::new();
        for Undo { number, before } in &changes {
            dead.extend(before.map(|page| page.frame).filter(|frame| *frame != kept(number)));
        }
        // A page frame may have been remembered several times, with different protections.
        dead.sort_unstable();
        dead.dedup();
        for frame in dead {
            self.frames.release(frame);
        }
    }

    /// Begins a generation, in which no existing page frame may be written.
    fn begin_generation(&mut self) {
        self.generation += 1;
        self.forget_writes();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MapError, Protection};
    use super::*;
    use clr_unwind::Memory as _;

    fn write(space: &mut AddressSpace, address: u64, value: u64) {
        space.store_slowly(address, &value.to_le_bytes(), |_| false).unwrap();
    }

    fn changed(space: &mut AddressSpace, save: UndoMark) -> Result<Vec<u64>, StaleSavePoint> {
        let mut numbers = Vec::new();
        space.restore(save, |number| numbers.push(number))?;
        Ok(numbers)
    }

    #[test]
    fn any_earlier_state_comes_back() {
        let mut space = AddressSpace::new();
        space.map(0x1000, 4, Protection::READ_WRITE).unwrap();
        let mut saves = Vec::new();
        for n in 0..10 {
            saves.push(space.save());
            write(&mut space, 0x1000 + n % 4 * 0x1000, n + 1);
            write(&mut space, 0x1008 + n % 3 * 0x1000, n + 1);
        }
        let state = |space: &AddressSpace, n: u64| {
            for page in 0..4 {
                let last = (0..n).rev().find(|n| n % 4 == page).map_or(0, |n| n + 1);
                assert_eq!(space.read_u64(0x1000 + page * 0x1000), Ok(last), "page {page} of {n}");
            }
        };
        state(&space, 10);
        for n in [7, 7, 3, 0] {
            changed(&mut space, saves[n as usize]).unwrap();
            state(&space, n);
            write(&mut space, 0x1000, 99);
            write(&mut space, 0x4000, 99);
            assert_eq!(space.restore(saves[9], |_| ()), Err(StaleSavePoint));
        }
        assert_eq!(changed(&mut space, saves[0]).unwrap(), [4, 1], "only the touched pages");
        state(&space, 0);
    }

    #[test]
    fn mapping_and_protection_are_restored_too() {
        let mut space = AddressSpace::new();
        space.map(0x1000, 2, Protection::READ_WRITE).unwrap();
        write(&mut space, 0x1000, 5);
        let before = space.regions();
        let save = space.save();
        space.protect(0x1000, 1, Protection::READ).unwrap();
        space.unmap(0x2000, 1).unwrap();
        space.unmap(0x1000, 1).unwrap();
        space.map(0x1000, 1, Protection::READ_WRITE).unwrap();
        write(&mut space, 0x1000, 6);
        space.map(0x8000, 1, Protection::READ).unwrap();
        changed(&mut space, save).unwrap();
        assert_eq!(space.regions(), before);
        assert_eq!(space.read_u64(0x1000), Ok(5));
        assert_eq!(space.unmap(0x8000, 1), Err(MapError::Unmapped { address: 0x8000 }));
    }

    #[test]
    fn frames_are_used_again() {
        let mut space = AddressSpace::new();
        space.map(0x1000, 8, Protection::READ_WRITE).unwrap();
        let mut used = [None; 2];
        for round in 0..100 {
            let save = space.save();
            for page in 1..=8 {
                write(&mut space, page * 0x1000, round);
            }
            space.save();
            for page in 1..=8 {
                write(&mut space, page * 0x1000, round);
                space.protect(page * 0x1000, 1, Protection::READ).unwrap();
                space.protect(page * 0x1000, 1, Protection::READ_WRITE).unwrap();
            }
            if round % 2 == 0 {
                changed(&mut space, save).unwrap();
            } else {
                space.forget_saves();
                assert_eq!(space.restore(save, |_| ()), Err(StaleSavePoint));
            }
            let frames = space.frames.copy(Frames::ZEROES, 0);
            space.frames.release(frames.unwrap());
            used[usize::from(round > 2)].get_or_insert(frames);
            assert!(frames < Some(40), "{used:?}");
        }
        space.forget_saves();
        space.unmap(0x1000, 8).unwrap();
        assert_eq!(space.frames.unused(), Some(space.frames.len() - 1), "all but the zeroes");
    }
}
