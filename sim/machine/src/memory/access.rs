//! Reads and writes of memory, by instructions and by the host.

use super::pages::Page;
use super::{AddressSpace, PAGE_SIZE, Protection};
use crate::stop::{Access, Cause, Fault};
use clr_unwind::{Memory, Unreadable};

/// Number of pages that are found without a search.
pub(super) const TRANSLATIONS: usize = 256;

/// The page frame of a recently used page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Translation {
    /// Address of the page if it may be read, otherwise an odd number.
    read: u64,
    /// Address of the page if it may be written without further action, otherwise an odd number.
    write: u64,
    frame: u32,
}

impl Translation {
    pub(super) const NONE: Self = Self { read: 1, write: 1, frame: 0 };
}

/// An access to memory by an instruction, or by the host on its behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// First address (VA).
    pub address: u64,
    /// Number of bytes: 1 to 16.
    pub size: u8,
    /// Kind of the access.
    pub kind: AccessKind,
    /// Bytes read or written, the first in the lowest bits.
    pub value: u128,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// A read.
    Read,
    /// A write.
    Write,
}

/// Error of the fast path: the page is not in the translations, so the slow path must check the
/// access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

const OFFSET: u64 = PAGE_SIZE - 1;

/// Splits `address..address + len` at the ends of pages, and returns the address and the length of
/// each part.
fn parts(address: u64, len: usize) -> impl Iterator<Item = (u64, usize)> {
    let mut left = len;
    let mut at = address;
    core::iter::from_fn(move || {
        let here = ((PAGE_SIZE - (at & OFFSET)) as usize).min(left);
        let part = (here > 0).then_some((at, here));
        left -= here;
        at = at.wrapping_add(here as u64);
        part
    })
}

impl AddressSpace {
    #[inline(always)]
    fn translation(&self, address: u64) -> Translation {
        self.translations[(address / PAGE_SIZE) as usize % TRANSLATIONS]
    }

    /// Returns the bytes at `address` if they are in one recently read page.
    #[inline(always)]
    pub(crate) fn load<const N: usize>(&self, address: u64) -> Result<[u8; N], Refused> {
        let entry = self.translation(address);
        let offset = (address & OFFSET) as usize;
        if entry.read == address & !OFFSET
            && let Some(frame) = self.frames.get(entry.frame)
            && let Some(bytes) = frame[offset..].first_chunk()
        {
            return Ok(*bytes);
        }
        Err(Refused)
    }

    /// Writes the bytes at `address` if they are in one recently written page.
    #[inline(always)]
    pub(crate) fn store<const N: usize>(
        &mut self,
        address: u64,
        bytes: [u8; N],
    ) -> Result<(), Refused> {
        let entry = self.translation(address);
        let offset = (address & OFFSET) as usize;
        if entry.write == address & !OFFSET
            && let Some(frame) = self.frames.get_mut(entry.frame)
            && let Some(place) = frame[offset..].first_chunk_mut()
        {
            *place = bytes;
            return Ok(());
        }
        Err(Refused)
    }

    pub(super) fn forget_translation(&mut self, number: u64) {
        self.translations[number as usize % TRANSLATIONS] = Translation::NONE;
    }

    pub(super) fn forget_translations(&mut self) {
        self.translations.fill(Translation::NONE);
    }

    /// Forgets that pages may be written without further action.
    pub(super) fn forget_writes(&mut self) {
        for entry in self.translations.iter_mut() {
            entry.write = Translation::NONE.write;
        }
    }

    /// Returns the page of `address` if it permits the access.
    fn page(&self, address: u64, access: Access) -> Result<Page, Fault> {
        let fault = |cause| Fault { address, access, cause };
        let page = self.pages.get(&(address / PAGE_SIZE)).ok_or(fault(Cause::Unmapped))?;
        let wanted = match access {
            Access::Read => Protection::READ,
            Access::Write => Protection::WRITE,
            Access::Execute => Protection::EXECUTE,
        };
        if page.protection.permits(wanted) {
            Ok(*page)
        } else if page.protection.contains(Protection::GUARD) {
            Err(fault(Cause::Guard))
        } else {
            Err(fault(Cause::Protected))
        }
    }

    /// Checks that all the bytes may be accessed.
    pub(crate) fn check(&self, address: u64, len: usize, access: Access) -> Result<(), Fault> {
        parts(address, len).try_for_each(|(at, _)| self.page(at, access).map(|_| ()))
    }

    fn copy_out(&self, frame: u32, address: u64, into: &mut [u8]) {
        let offset = (address & OFFSET) as usize;
        let bytes = self.frames.get(frame).and_then(|frame| frame.get(offset..offset + into.len()));
        if let Some(bytes) = bytes {
            into.copy_from_slice(bytes);
        }
    }

    /// Reads for an instruction, and remembers the page frame unless accesses are logged.
    pub(crate) fn load_slowly(
        &mut self,
        address: u64,
        into: &mut [u8],
        access: Access,
    ) -> Result<(), Fault> {
        self.check(address, into.len(), access)?;
        let mut done = 0;
        for (at, len) in parts(address, into.len()) {
            let page = self.page(at, access)?;
            self.copy_out(page.frame, at, &mut into[done..done + len]);
            done += len;
            if self.log.is_none() && access == Access::Read {
                self.remember(at, page, false);
            }
        }
        if access == Access::Read {
            self.record(address, into, AccessKind::Read);
        }
        Ok(())
    }

    /// Remembers the page frame of the page of `address`, if it can be read and accesses are not logged.
    pub(crate) fn expect_reads(&mut self, address: u64) {
        if self.log.is_none()
            && self.translation(address).read != address & !OFFSET
            && let Ok(page) = self.page(address, Access::Read)
        {
            self.remember(address, page, false);
        }
    }

    /// Remembers the page frame of a page. A page that holds decoded code must not be written
    /// without notice.
    fn remember(&mut self, address: u64, page: Page, may_write: bool) {
        let start = address & !OFFSET;
        let entry = &mut self.translations[(address / PAGE_SIZE) as usize % TRANSLATIONS];
        // A page with both translations keeps both.
        let write = if may_write || entry.write == start { start } else { 1 };
        let read = if page.protection.permits(Protection::READ) { start } else { 1 };
        *entry = Translation { read, write, frame: page.frame };
    }

    /// Writes for an instruction. `is_code` returns true for the number of a page whose writes must
    /// keep taking the slow path.
    pub(crate) fn store_slowly(
        &mut self,
        address: u64,
        bytes: &[u8],
        is_code: impl Fn(u64) -> bool,
    ) -> Result<(), Fault> {
        self.check(address, bytes.len(), Access::Write)?;
        self.make_writable(address, bytes.len())?;
        let mut rest = bytes;
        for (at, len) in parts(address, bytes.len()) {
            let (here, after) = rest.split_at(len);
            rest = after;
            let page = self.page(at, Access::Write)?;
            self.copy_in(page.frame, at, here);
            if self.log.is_none() {
                let may_write = !is_code(at / PAGE_SIZE);
                self.remember(at, page, may_write);
            }
        }
        self.record(address, bytes, AccessKind::Write);
        Ok(())
    }

    fn copy_in(&mut self, frame: u32, address: u64, bytes: &[u8]) {
        let offset = (address & OFFSET) as usize;
        let place = self.frames.get_mut(frame);
        if let Some(place) = place.and_then(|frame| frame.get_mut(offset..offset + bytes.len())) {
            place.copy_from_slice(bytes);
        }
    }

    /// Gives the mapped pages page frames of their own.
    fn make_writable(&mut self, address: u64, len: usize) -> Result<(), Fault> {
        for (at, _) in parts(address, len) {
            let fault = |cause| Fault { address: at, access: Access::Write, cause };
            let number = at / PAGE_SIZE;
            let page = *self.pages.get(&number).ok_or(fault(Cause::Unmapped))?;
            if !self.frames.is_of(page.frame, self.generation) {
                let copy = self.frames.copy(page.frame, self.generation);
                let frame = copy.ok_or(fault(Cause::Exhausted))?;
                self.set_page(number, Some(Page { frame, ..page }));
            }
        }
        Ok(())
    }

    /// Writes the bytes at `address` if they are in one recently written page, which has no code. Returns true if they are.
    pub(crate) fn poke_quickly(&mut self, address: u64, bytes: &[u8]) -> bool {
        let entry = self.translation(address);
        let offset = (address & OFFSET) as usize;
        if entry.write == address & !OFFSET
            && let Some(frame) = self.frames.get_mut(entry.frame)
            && let Some(place) = frame.get_mut(offset..offset.saturating_add(bytes.len()))
        {
            place.copy_from_slice(bytes);
            return true;
        }
        false
    }

    /// Writes for the host, regardless of the pages' permissions.
    pub(crate) fn poke(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        for (at, _) in parts(address, bytes.len()) {
            if !self.pages.contains_key(&(at / PAGE_SIZE)) {
                return Err(Fault { address: at, access: Access::Write, cause: Cause::Unmapped });
            }
        }
        self.make_writable(address, bytes.len())?;
        let mut rest = bytes;
        for (at, len) in parts(address, bytes.len()) {
            let (here, after) = rest.split_at(len);
            rest = after;
            let Some(page) = self.pages.get(&(at / PAGE_SIZE)).copied() else { continue };
            self.copy_in(page.frame, at, here);
            if self.log.is_none() {
                // The page is likely to be read soon.
                self.remember(at, page, false);
            }
        }
        Ok(())
    }

    /// Records that the page with this number now holds decoded code.
    pub(crate) fn watch(&mut self, number: u64) {
        self.forget_translation(number);
    }

    fn record(&mut self, address: u64, bytes: &[u8], kind: AccessKind) {
        if let Some(log) = &mut self.log {
            let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u128::from(*byte));
            log.push(MemoryAccess { address, size: bytes.len() as u8, kind, value });
        }
    }

    /// Begins or ends the log. While there is a log, every access takes the slow path.
    pub(crate) fn set_log(&mut self, on: bool) {
        self.log = on.then(Vec::new);
        self.forget_translations();
    }

    pub(crate) fn take_log(&mut self) -> Vec<MemoryAccess> {
        self.log.as_mut().map(core::mem::take).unwrap_or_default()
    }
}

impl Memory for AddressSpace {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        if let Some(bytes) = self.window(address, buffer.len()) {
            buffer.copy_from_slice(bytes);
            return Ok(());
        }
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        self.check(address, buffer.len(), Access::Read).map_err(|_| unreadable)?;
        let mut done = 0;
        for (at, len) in parts(address, buffer.len()) {
            let page = self.page(at, Access::Read).map_err(|_| unreadable)?;
            self.copy_out(page.frame, at, &mut buffer[done..done + len]);
            done += len;
        }
        Ok(())
    }

    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        if let Ok(bytes) = self.load(address) {
            return Ok(u64::from_le_bytes(bytes));
        }
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    #[inline]
    fn read_u128(&self, address: u64) -> Result<u128, Unreadable> {
        if let Ok(bytes) = self.load(address) {
            return Ok(u128::from_le_bytes(bytes));
        }
        let mut bytes = [0; 16];
        self.read(address, &mut bytes)?;
        Ok(u128::from_le_bytes(bytes))
    }

    #[inline]
    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        let entry = self.translation(address);
        let offset = (address & OFFSET) as usize;
        if entry.read != address & !OFFSET {
            return None;
        }
        self.frames.get(entry.frame)?.get(offset..offset.checked_add(len)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> AddressSpace {
        let mut space = AddressSpace::new();
        space.map(0x1000, 2, Protection::READ_WRITE).unwrap();
        space.map(0x3000, 1, Protection::READ).unwrap();
        space.map(0x5000, 1, Protection::READ_WRITE | Protection::GUARD).unwrap();
        space
    }

    #[test]
    fn accesses_go_over_the_end_of_a_page() {
        let mut space = space();
        space.store_slowly(0x1FFD, &[1, 2, 3, 4, 5], |_| false).unwrap();
        let mut bytes = [0; 7];
        space.load_slowly(0x1FFC, &mut bytes, Access::Read).unwrap();
        assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 0]);
        assert_eq!(space.load(0x1FFD), Ok([1, 2, 3]));
        assert_eq!(space.load::<4>(0x1FFD), Err(Refused));
        assert_eq!(space.store(0x2000, [9]), Ok(()));
        assert_eq!(space.read_u64(0x1FFD), Ok(0x05_0903_0201));
    }

    #[test]
    fn refused_writes_change_nothing() {
        let mut space = space();
        let fault = |address, cause| Err(Fault { address, access: Access::Write, cause });
        let mut write = |address| space.store_slowly(address, &[0xEE; 8], |_| false);
        assert_eq!(write(0x2FFC), fault(0x3000, Cause::Protected));
        assert_eq!(write(0x4FFC), fault(0x4FFC, Cause::Unmapped));
        assert_eq!(write(0x5800), fault(0x5800, Cause::Guard));
        assert_eq!(write(u64::MAX - 3), fault(u64::MAX - 3, Cause::Unmapped));
        assert_eq!(space.read_u64(0x2FF8), Ok(0));
        assert_eq!(space.store(0x3000, [1]), Err(Refused));
        assert!(space.read_u64(0x5000).is_err(), "a guard page is not readable");
        assert!(space.read_u64(0x3FF9).is_err());
        assert_eq!(space.poke(0x3FF8, &[7]), Ok(()), "the host may write");
        assert_eq!(space.read_u64(0x3FF8), Ok(7));
        assert_eq!(space.poke(0x3FFF, &[7, 7]), fault(0x4000, Cause::Unmapped));
        assert_eq!(space.read_u64(0x3FF8), Ok(7));
    }

    #[test]
    fn pages_of_code_are_never_written_to_unnoticed() {
        let mut space = space();
        space.store_slowly(0x1000, &[1], |number| number == 1).unwrap();
        assert_eq!(space.store(0x1000, [2]), Err(Refused));
        space.store_slowly(0x2000, &[1], |number| number == 1).unwrap();
        assert_eq!(space.store(0x2000, [2]), Ok(()));
        space.watch(2);
        assert_eq!(space.store(0x2000, [2]), Err(Refused));
    }

    #[test]
    fn reads_that_are_expected_are_quick_where_pages_can_be_read() {
        let mut space = space();
        assert_eq!(space.load::<1>(0x3000), Err(Refused));
        space.expect_reads(0x3123);
        assert_eq!(space.load(0x3000), Ok([0]));
        assert_eq!(space.store(0x3000, [1]), Err(Refused), "the page is read-only");
        let before = space.save();
        space.poke(0x3000, &[7]).unwrap();
        assert_eq!(space.load(0x3000), Ok([7]));
        space.restore(before, |_| ()).unwrap();
        assert_eq!(space.read_u64(0x3000), Ok(0));
        space.expect_reads(0x3000);
        assert_eq!(space.load(0x3000), Ok([0]));
        space.protect(0x3000, 1, Protection::NONE).unwrap();
        for address in [0x3000, 0x5000, 0x9000] {
            space.expect_reads(address);
            assert_eq!(space.load::<1>(address), Err(Refused), "{address:#x} cannot be read");
        }
        space.set_log(true);
        space.expect_reads(0x1000);
        assert_eq!(space.load::<1>(0x1000), Err(Refused), "the log has every read");
    }

    #[test]
    fn the_log_has_every_access() {
        let mut space = space();
        space.store_slowly(0x1000, &[1, 2], |_| false).unwrap();
        space.set_log(true);
        assert_eq!(space.store(0x1000, [2]), Err(Refused), "the write must be noticed");
        let mut bytes = [0; 2];
        space.load_slowly(0x1000, &mut bytes, Access::Read).unwrap();
        space.store_slowly(0x1001, &[4, 5], |_| false).unwrap();
        assert_eq!(space.load::<2>(0x1000), Err(Refused), "still on the slow path");
        let entry = |address, kind, value| MemoryAccess { address, size: 2, kind, value };
        let log = [entry(0x1000, AccessKind::Read, 0x201), entry(0x1001, AccessKind::Write, 0x504)];
        assert_eq!(space.take_log(), log);
        assert_eq!(space.take_log(), []);
        space.set_log(false);
        space.load_slowly(0x1000, &mut bytes, Access::Read).unwrap();
        assert_eq!(space.take_log(), []);
    }
}
