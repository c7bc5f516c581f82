//! The code map: finds the image or code-heap block, and the function entry, of an address.
//!
//! A profiler changes its map while signal handlers read it: [`SharedCodeMap`] gives them whole
//! generations of it. Generations share what they have in common, so one that differs by a method
//! from a map of 100,000 costs about a microsecond and a few kilobytes.

mod region;
#[cfg(feature = "std")]
mod shared;
mod tree;

pub use region::{CodeRegion, RegionKind, Run};
#[cfg(feature = "std")]
pub use shared::{CodeMapRef, SharedCodeMap};

use crate::image::ElfImage;
#[cfg(feature = "macho")]
use crate::image::MachoImage;
use crate::image::PeImage;
use crate::image::RuntimeFunction;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;
use tree::Tree;

/// An error in making a region or adding one to a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeMapError {
    /// The region shares an address with another one.
    #[error("the code region at {base:#x} overlaps the one at {other:#x}")]
    Overlap {
        /// Base of the new region (VA).
        base: u64,
        /// Base of the region in the map (VA).
        other: u64,
    },
    /// The region is empty, or goes beyond the end of the address space.
    #[error("the code region at {base:#x} of {size:#x} bytes is empty or wraps")]
    Range {
        /// Base of the region (VA).
        base: u64,
        /// Size of the region in bytes.
        size: u64,
    },
}

/// All code that a walk may meet, by address.
///
/// Look-ups take O(log n) and allocate nothing. A clone shares everything with its original and
/// takes O(1); adding or removing a region takes O(log n), and copies at most what is on the way to
/// it.
#[derive(Clone, Debug)]
pub struct CodeMap<'a> {
    /// The regions by their lowest addresses.
    regions: Tree<Arc<CodeRegion<'a>>>,
    /// Number of regions with call frame information.
    with_cfi: usize,
    /// Number of regions with code of Unix.
    system_v: usize,
    version: u64,
}

impl Default for CodeMap<'_> {
    fn default() -> Self {
        Self { regions: Tree::default(), with_cfi: 0, system_v: 0, version: next_version() }
    }
}

/// Returns a number that was not returned before in this process. It influences no result: caches
/// compare versions for equality to notice another or a changed map.
fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<'a> CodeMap<'a> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a region.
    ///
    /// # Errors
    /// [`CodeMapError::Overlap`] if the region shares an address with one in the map.
    pub fn insert(&mut self, region: CodeRegion<'a>) -> Result<(), CodeMapError> {
        if let Some(other) = self.overlapping(&region) {
            return Err(CodeMapError::Overlap { base: region.start(), other: other.start() });
        }
        self.count(&region, true);
        self.regions.insert(region.start(), Arc::new(region));
        self.version = next_version();
        Ok(())
    }

    /// Adds a region in place of all those that share an address with it, and returns these. Memory
    /// of a code heap is used again, and not every removal is announced: a dynamic method's only to
    /// a profiler that asks for `DynamicMethodUnloaded`.
    pub fn replace(&mut self, region: CodeRegion<'a>) -> Vec<Arc<CodeRegion<'a>>> {
        let mut replaced = Vec::new();
        while let Some(start) = self.overlapping(&region).map(CodeRegion::start) {
            replaced.extend(self.remove(start));
        }
        // Nothing overlaps any more.
        let _ = self.insert(region);
        replaced
    }

    /// Returns the highest region that shares an address with `region`.
    fn overlapping(&self, region: &CodeRegion<'a>) -> Option<&CodeRegion<'a>> {
        let before = self.regions.last_up_to(region.last())?;
        (before.last() >= region.start()).then_some(&**before)
    }

    /// Counts a region that is added or removed.
    fn count(&mut self, region: &CodeRegion<'a>, is_added: bool) {
        let change = |count: &mut usize, has: bool| {
            *count = if is_added { *count + usize::from(has) } else { *count - usize::from(has) };
        };
        change(&mut self.with_cfi, region.cfi().is_some());
        change(&mut self.system_v, region.is_system_v());
    }

    /// Adds the image at load address `base` (VA).
    ///
    /// # Errors
    /// [`CodeMapError`] if the region is empty, wraps, or shares an address with one in the map.
    pub fn insert_image(&mut self, base: u64, image: &PeImage<'a>) -> Result<(), CodeMapError> {
        self.insert(CodeRegion::image(base, image)?)
    }

    /// Adds the ELF image at load address `base` (VA): the address of the page with its lowest segment, which
    /// `/proc/PID/maps` lists first. `dl_iterate_phdr` gives a bias: `dlpi_addr`, to which the page of the lowest `p_vaddr` of
    /// the PT_LOAD headers is to be added. That is 0 in most images, but not in programs at fixed addresses.
    ///
    /// # Errors
    /// [`CodeMapError`] if the region is empty, wraps, or shares an address with one in the map.
    pub fn insert_elf(&mut self, base: u64, image: &ElfImage<'a>) -> Result<(), CodeMapError> {
        self.insert(CodeRegion::elf(base, image)?)
    }

    /// Adds the Mach-O image at load address `base` (VA).
    ///
    /// # Errors
    /// [`CodeMapError`] if the region is empty, wraps, or shares an address with one in the map.
    #[cfg(feature = "macho")]
    pub fn insert_macho(&mut self, base: u64, image: &MachoImage<'a>) -> Result<(), CodeMapError> {
        self.insert(CodeRegion::macho(base, image)?)
    }

    /// Removes and returns the region whose lowest address is `start` (VA), after its image was
    /// unloaded or its heap or method freed.
    pub fn remove(&mut self, start: u64) -> Option<Arc<CodeRegion<'a>>> {
        let region = self.regions.remove(start)?;
        self.count(&region, false);
        self.version = next_version();
        Some(region)
    }

    /// Returns the number of regions.
    pub const fn len(&self) -> usize {
        self.regions.len()
    }

    /// Returns true if there are no regions.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the regions, ascending by address.
    pub fn regions(&self) -> impl Iterator<Item = &CodeRegion<'a>> {
        self.regions.iter().map(|region| &**region)
    }

    /// Returns true if any region has call frame information, which native code on Unix has.
    pub(crate) const fn has_cfi(&self) -> bool {
        self.with_cfi > 0
    }

    /// Returns true if any region has code of Unix: native code, or a ready-to-run image.
    pub(crate) const fn has_system_v(&self) -> bool {
        self.system_v > 0
    }

    /// Returns the version, which changes with every change of the map and differs between maps.
    #[inline]
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// Returns the region that contains `address` (VA), and the RVA of `address` there.
    #[inline]
    pub fn find(&self, address: u64) -> Option<(&CodeRegion<'a>, u32)> {
        let region = self.regions.last_up_to(address)?;
        Some((region, region.rva(address)?))
    }

    /// Returns the function entry that covers `address` (VA), as stored in its region's table.
    pub fn find_function(&self, address: u64) -> Option<(&CodeRegion<'a>, RuntimeFunction)> {
        let (region, rva) = self.find(address)?;
        Some((region, region.functions().find(rva)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfi::CfiTable;
    use crate::image::FunctionTable;
    use crate::registers::Convention;

    fn heap(base: u64, bytes: &[u8]) -> CodeRegion<'_> {
        CodeRegion::heap(base, bytes, FunctionTable::default()).unwrap()
    }

    #[test]
    fn regions_are_found_by_address() {
        let bytes = [0x90; 0x20];
        let mut map = CodeMap::new();
        for base in [0x3000, 0x1000, 0x1020] {
            map.insert(heap(base, &bytes)).unwrap();
        }
        let base = |address| map.find(address).map(|(region, rva)| (region.base(), rva));
        assert_eq!(base(0xFFF), None);
        assert_eq!(base(0x1000), Some((0x1000, 0)));
        assert_eq!(base(0x101F), Some((0x1000, 0x1F)));
        assert_eq!(base(0x1020), Some((0x1020, 0)));
        assert_eq!(base(0x1040), None);
        assert_eq!(base(0x301F), Some((0x3000, 0x1F)));
        assert_eq!(base(u64::MAX), None);
        assert!(map.regions().all(|region| region.size() == 0x20));
        assert!(!map.is_empty() && CodeMap::new().is_empty());
        let version = map.version();
        assert_eq!(map.remove(0x1020).unwrap().base(), 0x1020);
        assert!(map.remove(0x1021).is_none());
        assert!(map.find(0x1020).is_none());
        assert_ne!(map.version(), version);
    }

    #[test]
    fn overlaps_are_refused_on_both_sides() {
        let bytes = [0x90; 0x20];
        let mut map = CodeMap::new();
        map.insert(heap(0x1000, &bytes)).unwrap();
        for base in [0xFE1, 0x1000, 0x101F] {
            let error = map.insert(heap(base, &bytes)).unwrap_err();
            assert_eq!(error, CodeMapError::Overlap { base, other: 0x1000 });
        }
        map.insert(heap(0xFE0, &bytes)).unwrap();
        map.insert(heap(0x1020, &bytes)).unwrap();
        assert_eq!(map.len(), 3);
    }

    #[test]
    fn empty_and_wrapping_regions_are_refused() {
        let heap = |base, bytes| CodeRegion::heap(base, bytes, FunctionTable::default());
        let range = |base, size| CodeMapError::Range { base, size };
        assert_eq!(heap(5, &[]).unwrap_err(), range(5, 0));
        assert_eq!(heap(u64::MAX, &[0; 2]).unwrap_err(), range(u64::MAX, 2));
        let last = heap(u64::MAX, &[0]).unwrap();
        let mut map = CodeMap::new();
        map.insert(last).unwrap();
        assert!(map.find(u64::MAX).is_some());
        assert!(map.find(0).is_none());
    }

    #[test]
    fn generated_code_shares_a_base_with_other_code() {
        const HEAP: u64 = 0x7F00_0000_0000;
        let entry = |begin| RuntimeFunction { begin, end: begin + 0x10, unwind_info: begin + 0x40 };
        let region = |begin: u32, byte| {
            let start = HEAP + u64::from(begin);
            let runs = alloc::vec![
                Run { rva: begin + 0x40, bytes: alloc::vec![1, 0, 0, 0] },
                Run { rva: begin, bytes: alloc::vec![byte; 0x10] },
            ];
            CodeRegion::generated(start..start + 0x10, HEAP, &[entry(begin)], runs).unwrap()
        };
        let mut map = CodeMap::new();
        map.insert(region(0x2000, 0x90)).unwrap();
        map.insert(region(0x1000, 0xCC)).unwrap();
        let (found, rva) = map.find(HEAP + 0x2004).unwrap();
        assert_eq!(
            [found.base(), found.start(), found.last()],
            [HEAP, HEAP + 0x2000, HEAP + 0x200F]
        );
        assert_eq!(rva, 0x2004);
        assert_eq!(found.bytes_from(rva), Some(&[0x90; 12][..]));
        assert_eq!(found.unwind_data(0x2040), Some(&[1, 0, 0, 0][..]));
        assert_eq!([0x1000, 0x2010, 0x2044].map(|rva| found.bytes_from(rva)), [None; 3]);
        assert_eq!(
            [0x1FFF, 0x2000, 0x200F, 0x2010].map(|rva| found.is_executable(rva)),
            [false, true, true, false]
        );
        assert_eq!(map.find_function(HEAP + 0x100F).unwrap().1, entry(0x1000));
        for outside in [HEAP, HEAP + 0xFFF, HEAP + 0x1010, HEAP + 0x2010] {
            assert!(map.find(outside).is_none(), "{outside:#x}");
        }
        for (start, end, base) in [(5, 5, 0), (5, 4, 0), (5, 6, 6), (5, 6 + (1 << 32), 5)] {
            let size = u64::wrapping_sub(end, start);
            let error = CodeRegion::generated(start..end, base, &[], Vec::new()).unwrap_err();
            assert_eq!(error, CodeMapError::Range { base: 5, size });
        }
    }

    #[test]
    fn generated_code_keeps_the_rules_of_its_calls() {
        use crate::memory::Segment;
        use crate::registers::Registers;
        use crate::unwinder::{Position, Unwinder};
        const HEAP: u64 = 0x7F00_0000_0000;
        // nop…; call rax; nop…
        let mut code = alloc::vec![0x90; 0x40];
        code[0x20..0x22].copy_from_slice(&[0xFF, 0xD0]);
        let runs = alloc::vec![
            Run { rva: 0x1000, bytes: code },
            Run { rva: 0x1080, bytes: alloc::vec![1, 0, 0, 0] },
        ];
        let function = RuntimeFunction { begin: 0x1000, end: 0x1040, unwind_info: 0x1080 };
        let start = HEAP + 0x1000;
        let region = CodeRegion::generated(start..start + 0x40, HEAP, &[function], runs).unwrap();
        let mut map = CodeMap::new();
        map.insert(region).unwrap();
        let stack = [0; 64];
        let memory = Segment::new(0x1_0000, &stack);
        for (rva, is_call) in [(0x1022, true), (0x1021, false), (0x1030, false)] {
            let (region, at) = map.find(HEAP + rva - 1).unwrap();
            assert_eq!(u64::from(at), rva - 1);
            assert_eq!(region.is_call(at), is_call, "{rva:#x}");
            assert!(!region.is_known_call(at));
            let mut registers = Registers { rip: HEAP + rva, ..Registers::default() };
            registers.set(crate::registers::Gpr::Rsp, 0x1_0000);
            Unwinder::new(&map).step(&mut registers, Position::ReturnAddress, &memory).unwrap();
            assert_eq!(region.is_known_call(at), is_call, "{rva:#x}");
        }
        let kept = [0x1021, 0x1020, 0x102F].map(crate::rule_slots::CodePlace::called);
        let (region, _) = map.find(start).unwrap();
        assert!(kept.iter().all(|place| region.rules().get(*place).is_some()));
    }

    #[test]
    fn a_part_of_a_region_is_found_by_its_own_addresses() {
        let bytes: Vec<u8> = (0..0x40).collect();
        let whole = heap(0x1000, &bytes);
        let part = whole.part(0x10..0x20).unwrap();
        assert_eq!([part.base(), part.start(), part.last()], [0x1000, 0x1010, 0x101F]);
        assert_eq!(
            [0x100F, 0x1010, 0x101F, 0x1020].map(|at| part.rva(at)),
            [None, Some(0x10), Some(0x1F), None]
        );
        assert_eq!(part.bytes_from(0x30), Some(&bytes[0x30..]), "unwind data may lie outside");
        assert!(part.part(0x18..0x20).is_some());
        for (start, end) in [(0xF, 0x11), (0x18, 0x21), (0x12, 0x12), (0x14, 0x12)] {
            assert!(part.part(start..end).is_none(), "{start:#x} to {end:#x}");
        }
    }

    #[test]
    fn a_region_takes_the_place_of_all_that_it_overlaps() {
        let bytes = [0x90; 0x40];
        let mut map = CodeMap::new();
        for base in [0x1000, 0x1010, 0x1020, 0x1030] {
            map.insert(heap(base, &bytes[..0x10])).unwrap();
        }
        let replaced = map.replace(heap(0x1018, &bytes[..0x10]));
        let starts: Vec<_> = replaced.iter().map(|region| region.start()).collect();
        assert_eq!(starts, [0x1020, 0x1010]);
        let starts: Vec<_> = map.regions().map(CodeRegion::start).collect();
        assert_eq!(starts, [0x1000, 0x1018, 0x1030]);
        assert!(map.replace(heap(0x2000, &bytes)).is_empty());
        assert_eq!(map.len(), 4);
    }

    #[test]
    fn a_map_knows_the_conventions_of_its_code() {
        let bytes = [0x90; 0x10];
        let unix = heap(0x1000, &bytes).with_convention(Convention::SystemV);
        let mut map = CodeMap::new();
        map.insert(heap(0x2000, &bytes)).unwrap();
        assert!(!map.has_system_v());
        map.insert(unix).unwrap();
        let copy = map.clone();
        assert!(map.has_system_v());
        map.remove(0x1000).unwrap();
        assert!(!map.has_system_v());
        assert!(copy.has_system_v(), "a copy does not change");
        // With call frame information code is of Unix; without it, it may be.
        assert!(!copy.has_cfi());
        for base in [0x3000, 0x4000] {
            map.insert(heap(base, &bytes).with_cfi(CfiTable::default())).unwrap();
            assert!(map.has_cfi() && map.has_system_v());
        }
        for (base, is_left) in [(0x3000, true), (0x4000, false)] {
            map.remove(base).unwrap();
            assert_eq!(map.has_cfi(), is_left);
        }
    }

    /// In a region with few functions the slots suffice for all calls.
    #[test]
    fn slots_for_rules_are_as_many_as_the_code_needs_within_limits() {
        let size = |functions: &[RuntimeFunction], len: u64| {
            CodeRegion::generated(0x1000..0x1000 + len, 0, functions, Vec::new())
                .unwrap()
                .rules()
                .size()
        };
        let function = RuntimeFunction { begin: 0x1000, end: 0x1010, unwind_info: 0x1080 };
        assert_eq!(size(&[], 0x1_0000), 0, "there is nothing to compile");
        let slot = size(&[function], 1) / 4;
        for (len, slots) in [(0x100, 4), (0x400, 16), (0x1000, 64), (0x1_0000, 64)] {
            assert_eq!(size(&[function], len), slots * slot, "{len:#x} bytes");
        }
        for (count, slots) in [(1, 16), (64, 1024), (1500, 1024), (4096, 2048), (40_000, 8192)] {
            let table: Vec<u8> = (0..count)
                .map(|n| RuntimeFunction { begin: 16 * n, end: 16 * n + 16, unwind_info: 0 })
                .flat_map(|function| function.to_bytes())
                .collect();
            let region = CodeRegion::heap(0x1000, &[0x90; 16], FunctionTable::new(&table)).unwrap();
            assert_eq!(region.rules().size(), slots * slot, "{count} functions");
        }
    }

    #[test]
    fn unwind_data_may_lie_outside_the_usual_section() {
        let table: Vec<u8> = [0u32, 4, 8].iter().flat_map(|field| field.to_le_bytes()).collect();
        let bytes: Vec<u8> = (0..32).collect();
        let region = CodeRegion::heap(0x1000, &bytes, FunctionTable::new(&table)).unwrap();
        assert_eq!(region.unwind_data(8), Some(&bytes[8..]));
        assert_eq!(region.unwind_data(31), Some(&bytes[31..]));
        assert_eq!(region.unwind_data(32), None);
        assert_eq!(region.unwind_data(u32::MAX), None);
    }
}
