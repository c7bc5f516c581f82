//! The code map: finds the image or code-heap block, and the function entry, of an address.

use crate::cfi::CfiTable;
use crate::image::elf::ElfImage;
use crate::image::macho::MachoImage;
use crate::image::pe::PeImage;
use crate::image::{CfiSections, FunctionTable, ImageError, RuntimeFunction, Section, Sections};
use crate::registers::Convention;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// An image at its load address, or a block of a code heap, with the unwind data of its functions.
#[derive(Clone, Debug)]
pub struct CodeRegion<'a> {
    base: u64,
    size: u32,
    kind: RegionKind,
    sections: Sections<'a>,
    functions: FunctionTable<'a>,
    /// True for an image whose code follows the System V convention.
    is_system_v: bool,
    /// The section with the first function's unwind data, which holds nearly all of the rest too.
    unwind_section: Section<'a>,
    /// The call frame information of native code on Unix. Shared, because it is large and the
    /// region may be cloned.
    cfi: Option<Arc<CfiTable<'a>>>,
}

/// The kind of code in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Code of an image file, which the OS loader mapped.
    Image,
    /// A block of generated code.
    CodeHeap,
}

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

impl<'a> CodeRegion<'a> {
    /// Creates the region of the PE image at load address `base` (VA).
    ///
    /// # Errors
    /// [`CodeMapError::Range`] if the region would be empty or wrap.
    pub fn image(base: u64, image: &PeImage<'a>) -> Result<Self, CodeMapError> {
        let (sections, functions) = (image.sections().clone(), image.functions());
        let region =
            Self::from_sections(base, image.size(), RegionKind::Image, sections, functions)?;
        let is_system_v = image.target_os().convention() == Convention::SystemV;
        Ok(Self { is_system_v, ..region })
    }

    /// Creates the region of the ELF image at load address `base` (VA), the address of its lowest
    /// segment, and compiles its call frame information.
    ///
    /// # Errors
    /// [`CodeMapError::Range`] if the region would be empty or wrap.
    pub fn elf(base: u64, image: &ElfImage<'a>) -> Result<Self, CodeMapError> {
        Self::native(base, image.size(), image.sections(), &image.cfi())
    }

    /// Creates the region of the Mach-O image at load address `base` (VA), the address of its
    /// header, and compiles its call frame information.
    ///
    /// # Errors
    /// [`CodeMapError::Range`] if the region would be empty or wrap.
    pub fn macho(base: u64, image: &MachoImage<'a>) -> Result<Self, CodeMapError> {
        Self::native(base, image.size(), image.sections(), &image.cfi())
    }

    fn native(
        base: u64,
        size: u32,
        sections: &Sections<'a>,
        cfi: &CfiSections<'a>,
    ) -> Result<Self, CodeMapError> {
        let (kind, functions) = (RegionKind::Image, FunctionTable::default());
        let region = Self::from_sections(base, size, kind, sections.clone(), functions)?;
        Ok(region.with_cfi(CfiTable::new(cfi, sections)))
    }

    /// Returns the region with `table` as its only unwind data. RVAs in the table count from the
    /// region's base.
    #[must_use]
    pub fn with_cfi(self, table: CfiTable<'a>) -> Self {
        Self { cfi: Some(Arc::new(table)), is_system_v: true, ..self }
    }

    /// Creates the region of a code-heap block whose low address is `base` (VA), with a copy of its
    /// `bytes` and the RUNTIME_FUNCTION entries `functions`, ascending by begin. RVAs in entries
    /// and unwind data count from `base`, as for the CLR's code heaps (contract §8.1).
    ///
    /// # Errors
    /// [`CodeMapError::Range`] if `bytes` is empty, is larger than 4 GiB, or wraps.
    pub fn heap(
        base: u64,
        bytes: &'a [u8],
        functions: FunctionTable<'a>,
    ) -> Result<Self, CodeMapError> {
        let range = CodeMapError::Range { base, size: bytes.len() as u64 };
        let size = u32::try_from(bytes.len()).map_err(|_| range)?;
        let section = Section { rva: 0, bytes, executable: true };
        let sections = Sections::new(alloc::vec![section]).map_err(|_: ImageError| range)?;
        Self::from_sections(base, size, RegionKind::CodeHeap, sections, functions)
    }

    /// Creates the region of `size` bytes at `base` (VA). `sections` holds the known bytes and, at
    /// any RVA, the unwind data.
    ///
    /// # Errors
    /// [`CodeMapError::Range`] if the region is empty or wraps.
    pub fn from_sections(
        base: u64,
        size: u32,
        kind: RegionKind,
        sections: Sections<'a>,
        functions: FunctionTable<'a>,
    ) -> Result<Self, CodeMapError> {
        if size == 0 || base.checked_add(u64::from(size) - 1).is_none() {
            return Err(CodeMapError::Range { base, size: u64::from(size) });
        }
        let first = functions.iter().next().map_or(0, |function| function.unwind_info & !1);
        let empty = Section { rva: 0, bytes: &[], executable: false };
        let unwind_section = sections.find(first).copied().unwrap_or(empty);
        Ok(Self {
            base,
            size,
            kind,
            sections,
            functions,
            is_system_v: false,
            unwind_section,
            cfi: None,
        })
    }

    /// Returns the load address of an image or the low address of a heap block (VA). RVAs count
    /// from it.
    #[inline]
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Returns the size of the region in bytes.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Returns the kind of code in the region.
    #[must_use]
    pub const fn kind(&self) -> RegionKind {
        self.kind
    }

    /// Returns the RVA of `address` (VA), or `None` if it is outside the region.
    #[inline]
    #[must_use]
    pub const fn rva(&self, address: u64) -> Option<u32> {
        let offset = address.wrapping_sub(self.base);
        if offset < self.size as u64 { Some(offset as u32) } else { None }
    }

    /// Returns the RUNTIME_FUNCTION entries.
    #[inline]
    #[must_use]
    pub const fn functions(&self) -> FunctionTable<'a> {
        self.functions
    }

    /// Returns the call frame information; `None` for code that is unwound by RUNTIME_FUNCTION
    /// entries.
    #[inline]
    #[must_use]
    pub fn cfi(&self) -> Option<&CfiTable<'a>> {
        self.cfi.as_deref()
    }

    /// Returns the code bytes from `rva` to the end of their section.
    #[inline]
    #[must_use]
    pub fn bytes_from(&self, rva: u32) -> Option<&'a [u8]> {
        self.sections.bytes_from(rva)
    }

    /// Returns the unwind data from `rva` to the end of its section.
    #[inline]
    pub(crate) fn unwind_data(&self, rva: u32) -> Option<&'a [u8]> {
        let offset = rva.wrapping_sub(self.unwind_section.rva) as usize;
        match self.unwind_section.bytes.get(offset..) {
            Some(bytes) if !bytes.is_empty() => Some(bytes),
            _ => self.sections.bytes_from(rva),
        }
    }

    /// Returns true if code at `rva` may be executed.
    #[must_use]
    pub fn is_executable(&self, rva: u32) -> bool {
        self.sections.find(rva).is_some_and(|section| section.executable)
    }
}

/// All code that a walk may meet, by address.
///
/// Look-ups take O(log n) and allocate nothing; only adding and removing regions allocates.
#[derive(Clone, Debug)]
pub struct CodeMap<'a> {
    /// Base of each region, ascending; `regions[i]` is at `bases[i]`.
    bases: Vec<u64>,
    regions: Vec<CodeRegion<'a>>,
    /// Number of regions with call frame information.
    with_cfi: usize,
    /// Number of regions with code of Unix.
    system_v: usize,
    version: u64,
}

impl Default for CodeMap<'_> {
    fn default() -> Self {
        Self {
            bases: Vec::new(),
            regions: Vec::new(),
            with_cfi: 0,
            system_v: 0,
            version: next_version(),
        }
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
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a region.
    ///
    /// # Errors
    /// [`CodeMapError::Overlap`] if the region shares an address with one in the map.
    pub fn insert(&mut self, region: CodeRegion<'a>) -> Result<(), CodeMapError> {
        let base = region.base;
        let last = base + (u64::from(region.size) - 1);
        let after = self.bases.partition_point(|&start| start <= last);
        if let Some(before) = after.checked_sub(1).and_then(|i| self.regions.get(i))
            && before.base + (u64::from(before.size) - 1) >= base
        {
            return Err(CodeMapError::Overlap { base, other: before.base });
        }
        self.with_cfi += usize::from(region.cfi.is_some());
        self.system_v += usize::from(region.is_system_v);
        self.bases.insert(after, base);
        self.regions.insert(after, region);
        self.version = next_version();
        Ok(())
    }

    /// Adds the image at load address `base` (VA).
    ///
    /// # Errors
    /// [`CodeMapError`] if the region is empty, wraps, or shares an address with one in the map.
    pub fn insert_image(&mut self, base: u64, image: &PeImage<'a>) -> Result<(), CodeMapError> {
        self.insert(CodeRegion::image(base, image)?)
    }

    /// Adds the ELF image at load address `base` (VA).
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
    pub fn insert_macho(&mut self, base: u64, image: &MachoImage<'a>) -> Result<(), CodeMapError> {
        self.insert(CodeRegion::macho(base, image)?)
    }

    /// Removes and returns the region at `base` (VA), after its image was unloaded or its heap
    /// freed.
    pub fn remove(&mut self, base: u64) -> Option<CodeRegion<'a>> {
        let at = self.bases.binary_search(&base).ok()?;
        self.bases.remove(at);
        self.version = next_version();
        let region = self.regions.remove(at);
        self.with_cfi -= usize::from(region.cfi.is_some());
        self.system_v -= usize::from(region.is_system_v);
        Some(region)
    }

    /// Returns the regions, ascending by address.
    #[must_use]
    pub fn regions(&self) -> &[CodeRegion<'a>] {
        &self.regions
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
    #[must_use]
    pub fn find(&self, address: u64) -> Option<(&CodeRegion<'a>, u32)> {
        // Branches instead of `partition_point`: a predicted look-up costs no latency.
        let (mut after, mut end) = (0, self.bases.len());
        while after < end {
            let middle = after + (end - after) / 2;
            match self.bases.get(middle) {
                Some(&base) if base <= address => after = middle + 1,
                _ => end = middle,
            }
        }
        let region = self.regions.get(after.checked_sub(1)?)?;
        Some((region, region.rva(address)?))
    }

    /// Returns the function entry that covers `address` (VA), as stored in its region's table.
    #[must_use]
    pub fn find_function(&self, address: u64) -> Option<(&CodeRegion<'a>, RuntimeFunction)> {
        let (region, rva) = self.find(address)?;
        Some((region, region.functions.find(rva)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(map.regions().len(), 3);
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
