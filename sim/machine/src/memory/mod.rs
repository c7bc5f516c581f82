//! The address space of the machine: pages with permissions, copied when written to after a save.

mod access;
mod pages;
mod undo;

pub(super) use access::Refused;
pub use access::{AccessKind, MemoryAccess};
pub use pages::{MapError, Protection, Region};
pub(super) use undo::SavePoint;
pub use undo::StaleSnapshot;

use access::Translation;
use pages::{Frames, Page};
use std::collections::BTreeMap;
use undo::Undo;

/// Size of a page in bytes.
pub const PAGE_SIZE: u64 = 0x1000;

/// How many pages may be mapped at once; and how many of them written to, together with those that
/// are kept for snapshots: 1 GiB.
pub const MAX_PAGES: u64 = 1 << 18;

/// Addresses of 64 bits, mapped by pages of [`PAGE_SIZE`] bytes.
///
/// Pages begin as zeroes and take host memory only once they are written to.
#[derive(Debug)]
pub(super) struct AddressSpace {
    /// By page number: address divided by [`PAGE_SIZE`].
    pages: BTreeMap<u64, Page>,
    frames: Frames,
    /// The last pages used, by the low bits of their number.
    translations: Box<[Translation; access::TRANSLATIONS]>,
    /// What the pages were since the first snapshot that is still alive, in order.
    undo: Vec<Undo>,
    /// The snapshots that are alive, in order.
    saves: Vec<SavePoint>,
    /// Goes up with every save and restore. Frames of earlier generations belong to snapshots too.
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

    /// Gives the page another state, and remembers the one that it had if a snapshot may need it.
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
