//! Address space of the machine: pages with permissions, copied on the first write after a save.

mod access;
mod pages;
mod undo;

pub(super) use access::Refused;
pub use access::{AccessKind, MemoryAccess};
pub use pages::{MapError, Protection, Region};
pub use undo::StaleSavePoint;
pub(super) use undo::UndoMark;

use access::Translation;
use pages::{Frames, Page};
use std::collections::BTreeMap;
use undo::Undo;

/// Size of a page in bytes.
pub const PAGE_SIZE: u64 = 0x1000;

/// Maximum number of pages that are mapped at the same time. Also the maximum number of written
/// pages together with the copies kept for save points: 1 GiB.
pub const MAX_PAGES: u64 = 1 << 18;

/// A 64-bit address space, mapped by pages of [`PAGE_SIZE`] bytes.
///
/// Pages are initially zero and take host memory only after the first write.
#[derive(Debug)]
pub(super) struct AddressSpace {
    /// Indexed by page number: address divided by [`PAGE_SIZE`].
    pages: BTreeMap<u64, Page>,
    frames: Frames,
    /// Recently used pages, by the low bits of their number.
    translations: Box<[Translation; access::TRANSLATIONS]>,
    /// Previous states of changed pages since the first live save point, in order.
    undo: Vec<Undo>,
    /// Live save points, in order.
    saves: Vec<UndoMark>,
    /// Incremented by every save and restore. Page frames of earlier generations also belong to
    /// save points.
    generation: u64,
    log: Option<Vec<MemoryAccess>>,
}

impl AddressSpace {
    pub(super) fn new() -> Self {
        Self {
            pages: BTreeMap::new(),
            frames: Frames::new(),
            translations: Box::new([Translation::NONE; access::TRANSLATIONS]),
            undo: Vec::new(),
            saves: Vec::new(),
            generation: 0,
            log: None,
        }
    }

    /// Changes the state of a page, and remembers the previous state if a save point may need it.
    fn set_page(&mut self, number: u64, page: Option<Page>) {
        let before = match page {
            Some(page) => self.pages.insert(number, page),
            None => self.pages.remove(&number),
        };
        if before == page {
            return;
        }
        if self.saves.is_empty() {
            if let Some(before) =
                before.filter(|before| Some(before.frame) != page.map(|p| p.frame))
            {
                self.frames.release(before.frame);
            }
        } else {
            self.undo.push(Undo { number, before });
        }
        self.forget_translation(number);
    }
}
