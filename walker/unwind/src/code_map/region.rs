//! Regions of code: images and generated code, with their unwind data.

use super::CodeMapError;
use crate::cfi::CfiTable;
#[cfg(feature = "macho")]
use crate::compact::CompactTable;
use crate::image::ElfImage;
#[cfg(feature = "macho")]
use crate::image::MachoImage;
use crate::image::PeImage;
use crate::image::{CfiSections, FunctionTable, ImageError, RuntimeFunction, Section, Sections};
use crate::registers::Convention;
use crate::rule_slots::{CodePlace, RuleSlots};
use crate::unwinder::Rule;
use crate::x64::ends_in_call;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// An image at its load address, or a block of a code heap, with the unwind data of its functions.
///
/// Slots in the region keep the rules that steps compile from RUNTIME_FUNCTION entries: at most 16 for
/// each function, and from 64 KiB to 512 KiB where there are many. They are made with the region and
/// written once, so a walk in a signal handler takes no lock and does not allocate. When the slots of an address are
/// taken, its unwind data is read each time. [Generated](Self::generated) code has a slot for 64 bytes.
#[derive(Clone, Debug)]
pub struct CodeRegion<'a> {
    /// The address that RVAs count from (VA).
    base: u64,
    /// RVA of the first byte: 0 except for code that shares its base with other code.
    first: u32,
    size: u32,
    kind: RegionKind,
    bytes: Bytes<'a>,
    /// True for code that follows the System V convention.
    is_system_v: bool,
    /// The call frame information of native code on Unix. Shared, because it is large and the
    /// region may be cloned.
    cfi: Option<Arc<CfiTable<'a>>>,
    /// The compact unwind information of a Mach-O image.
    #[cfg(feature = "macho")]
    compact: Option<Arc<CompactTable<'a>>>,
    /// The rules that steps have compiled from RUNTIME_FUNCTION entries so far.
    rules: Arc<Rules>,
}

/// Slots for the rules of steps.
type Rules = RuleSlots<{ Rule::WORDS }>;

/// Number of slots for the rules of each function, as long as there are few functions.
const SLOTS_PER_FUNCTION: usize = 16;

/// Limits of the number of slots in a region with many functions: from 64 KiB to 512 KiB.
const SLOTS: Range<usize> = 1024..8192;

/// Number of bytes of generated code for each slot: as much as there is from one call to the next, about.
const BYTES_PER_SLOT: usize = 64;

/// Limits of the number of slots in such a region: from 256 bytes to 4 KiB.
const SLOTS_OF_GENERATED: Range<usize> = 4..64;

/// Creates free slots for the rules of `functions` functions.
fn rules_of(functions: usize) -> Arc<Rules> {
    let all = functions.saturating_mul(SLOTS_PER_FUNCTION);
    Arc::new(Rules::new(all.min((functions / 2).clamp(SLOTS.start, SLOTS.end))))
}

/// The bytes of a region.
#[derive(Clone, Debug)]
enum Bytes<'a> {
    Borrowed {
        sections: Sections<'a>,
        functions: FunctionTable<'a>,
        /// The section with the first function's unwind data, which holds nearly all of the rest
        /// too.
        unwind_section: Section<'a>,
    },
    Owned(Arc<OwnedBytes>),
}

/// Copies of code and unwind data.
#[derive(Debug)]
struct OwnedBytes {
    /// Ascending by RVA. Where they overlap, the run that begins last has the bytes.
    runs: Box<[Run]>,
    /// RUNTIME_FUNCTION entries.
    functions: Box<[u8]>,
}

/// A copy of the bytes at an RVA: of code, or of unwind data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// RVA of the first byte.
    pub rva: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl OwnedBytes {
    /// Returns the bytes from `rva` to the end of their run.
    fn from(&self, rva: u32) -> Option<&[u8]> {
        let after = self.runs.partition_point(|run| run.rva <= rva);
        let run = self.runs.get(after.checked_sub(1)?)?;
        run.bytes.get((rva - run.rva) as usize..).filter(|bytes| !bytes.is_empty())
    }
}

/// The kind of code in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Code of an image file, which the OS loader mapped.
    Image,
    /// A block of generated code.
    CodeHeap,
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
    /// segment. Steps compile its call frame information when they first need it
    /// ([`CfiTable::lazy`]).
    ///
    /// # Errors
    /// [`CodeMapError::Range`] if the region would be empty or wrap.
    pub fn elf(base: u64, image: &ElfImage<'a>) -> Result<Self, CodeMapError> {
        Self::native(base, image.size(), image.sections(), &image.cfi())
    }

    /// Creates the region of the Mach-O image at load address `base` (VA), the address of its
    /// header. Steps compile its call frame information when they first need it
    /// ([`CfiTable::lazy`]).
    ///
    /// # Errors
    /// [`CodeMapError::Range`] if the region would be empty or wrap.
    #[cfg(feature = "macho")]
    pub fn macho(base: u64, image: &MachoImage<'a>) -> Result<Self, CodeMapError> {
        let region = Self::native(base, image.size(), image.sections(), &image.cfi())?;
        let compact = image.compact_unwind();
        Ok(if compact.is_empty() { region } else { region.with_compact(compact) })
    }

    fn native(
        base: u64,
        size: u32,
        sections: &Sections<'a>,
        cfi: &CfiSections<'a>,
    ) -> Result<Self, CodeMapError> {
        let (kind, functions) = (RegionKind::Image, FunctionTable::default());
        let region = Self::from_sections(base, size, kind, sections.clone(), functions)?;
        Ok(region.with_cfi(CfiTable::lazy(cfi, sections)))
    }

    /// Returns the region with compact unwind information, which counts before its call frame
    /// information. It has no effect without a table of the latter, even an empty one.
    #[cfg(feature = "macho")]
    #[must_use]
    pub fn with_compact(self, table: CompactTable<'a>) -> Self {
        Self { compact: Some(Arc::new(table)), ..self }
    }

    /// Returns the region with `table` as its only unwind data. RVAs in the table count from the
    /// region's base.
    #[must_use]
    pub fn with_cfi(self, table: CfiTable<'a>) -> Self {
        let table = match &self.bytes {
            Bytes::Borrowed { sections, .. } => table.with_bytes(sections.clone()),
            Bytes::Owned(_) => table,
        };
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
        let info = functions.iter().next().map_or(0, |function| function.unwind_info & !1);
        let empty = Section { rva: 0, bytes: &[], executable: false };
        let unwind_section = sections.find(info).copied().unwrap_or(empty);
        let rules = rules_of(functions.len());
        let bytes = Bytes::Borrowed { sections, functions, unwind_section };
        Ok(Self::new(base, 0..size, kind, bytes, rules))
    }

    /// Creates a region of Windows' code, with function entries alone.
    const fn new(
        base: u64,
        rvas: Range<u32>,
        kind: RegionKind,
        bytes: Bytes<'a>,
        rules: Arc<Rules>,
    ) -> Self {
        Self {
            base,
            first: rvas.start,
            size: rvas.end - rvas.start,
            kind,
            bytes,
            is_system_v: false,
            cfi: None,
            #[cfg(feature = "macho")]
            compact: None,
            rules,
        }
    }

    /// Returns the part of the region with these RVAs, which a profiler adds if it gets the methods
    /// of a code heap one by one. `None` if the region does not have all of them, or there is none.
    pub fn part(&self, rvas: Range<u32>) -> Option<Self> {
        let end = u64::from(self.first) + u64::from(self.size);
        let is_in = self.first <= rvas.start && u64::from(rvas.end) <= end;
        let size = rvas.end.checked_sub(rvas.start).filter(|size| *size > 0 && is_in)?;
        Some(Self { first: rvas.start, size, ..self.clone() })
    }

    /// Returns the region as code of `convention`. Regions of images know theirs; generated code is
    /// taken for code of Windows.
    #[must_use]
    pub fn with_convention(self, convention: Convention) -> Self {
        let is_system_v = convention == Convention::SystemV;
        if is_system_v == self.is_system_v {
            return self;
        }
        // Operation 11 depends on it.
        let rules = Arc::new(Rules::clone(&self.rules));
        Self { is_system_v, rules, ..self }
    }

    /// Returns the lowest address of the region (VA).
    #[inline]
    pub const fn start(&self) -> u64 {
        self.base.wrapping_add(self.first as u64)
    }

    /// Returns the highest address of the region (VA).
    #[inline]
    pub const fn last(&self) -> u64 {
        self.start().wrapping_add(self.size as u64 - 1)
    }

    /// Returns the address that RVAs count from (VA): the load address of an image, the low address
    /// of a heap block, or for one method's generated code an address below it.
    #[inline]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Returns the size of the region in bytes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Returns the kind of code in the region.
    pub const fn kind(&self) -> RegionKind {
        self.kind
    }

    /// Returns the RVA of `address` (VA), or `None` if it is outside the region.
    #[inline]
    pub const fn rva(&self, address: u64) -> Option<u32> {
        let offset = address.wrapping_sub(self.start());
        if offset < self.size as u64 { Some(self.first.wrapping_add(offset as u32)) } else { None }
    }

    /// Returns the RUNTIME_FUNCTION entries.
    #[inline]
    pub fn functions(&self) -> FunctionTable<'_> {
        match &self.bytes {
            Bytes::Borrowed { functions, .. } => *functions,
            Bytes::Owned(owned) => FunctionTable::new(&owned.functions),
        }
    }

    /// Returns the call frame information; `None` for code that is unwound by RUNTIME_FUNCTION
    /// entries.
    #[inline]
    pub fn cfi(&self) -> Option<&CfiTable<'a>> {
        self.cfi.as_deref()
    }

    /// Returns the compact unwind information of a Mach-O image.
    #[inline]
    #[cfg(feature = "macho")]
    pub fn compact(&self) -> Option<&CompactTable<'a>> {
        self.compact.as_deref()
    }

    /// Returns the rules that steps have compiled from RUNTIME_FUNCTION entries so far.
    #[inline]
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns true if a step from a return address behind the byte at `rva` was made before, and a call
    /// comes before it. False says nothing. To know it from the rule, which the next step needs anyway,
    /// costs less than to read the code.
    #[inline]
    #[doc(hidden)]
    pub fn is_known_call(&self, rva: u32) -> bool {
        match self.cfi() {
            Some(table) => table.is_known_call(rva),
            None => self.rules.get(CodePlace::called(rva)).is_some_and(Rule::is_after_call),
        }
    }

    /// Returns true if the bytes up to the one at `rva` end in a call.
    pub(crate) fn is_call(&self, rva: u32) -> bool {
        let start = rva.checked_sub(6).and_then(|start| self.bytes_from(start));
        start.and_then(<[u8]>::first_chunk).is_some_and(|bytes| ends_in_call(*bytes))
    }

    /// Returns the code bytes from `rva` to the end of their section.
    #[inline]
    pub fn bytes_from(&self, rva: u32) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::Borrowed { sections, .. } => sections.bytes_from(rva),
            Bytes::Owned(owned) => owned.from(rva),
        }
    }

    /// Returns the unwind data from `rva` to the end of its section.
    #[inline]
    #[doc(hidden)]
    pub fn unwind_data(&self, rva: u32) -> Option<&[u8]> {
        let Bytes::Borrowed { unwind_section, .. } = &self.bytes else {
            return self.bytes_from(rva);
        };
        let offset = rva.wrapping_sub(unwind_section.rva) as usize;
        match unwind_section.bytes.get(offset..) {
            Some(bytes) if !bytes.is_empty() => Some(bytes),
            _ => self.bytes_from(rva),
        }
    }

    /// Returns true if code at `rva` may be executed.
    pub fn is_executable(&self, rva: u32) -> bool {
        match &self.bytes {
            Bytes::Borrowed { sections, .. } => {
                sections.find(rva).is_some_and(|section| section.executable)
            }
            Bytes::Owned(_) => rva.wrapping_sub(self.first) < self.size,
        }
    }

    /// Returns true if the code follows the System V convention.
    #[inline]
    pub(crate) const fn is_system_v(&self) -> bool {
        self.is_system_v
    }
}

impl CodeRegion<'static> {
    /// Creates the region of generated code at `code` (VAs), for instance of one method, with
    /// copies of its bytes and of its unwind data. RVAs count from `base` (VA), which the code may
    /// share with other code; `functions` are ascending by begin. Where `runs` overlap, the one that
    /// begins last has the bytes.
    ///
    /// # Errors
    /// [`CodeMapError::Range`] if `code` is empty, is below `base`, or does not lie within the
    /// 4 GiB above it.
    pub fn generated(
        code: Range<u64>,
        base: u64,
        functions: &[RuntimeFunction],
        mut runs: Vec<Run>,
    ) -> Result<Self, CodeMapError> {
        let range = || {
            let first = u32::try_from(code.start.checked_sub(base)?).ok()?;
            let end = u32::try_from(code.end.checked_sub(base)?).ok()?;
            Some((first, end.checked_sub(first).filter(|size| *size > 0)?))
        };
        let size = code.end.wrapping_sub(code.start);
        let (first, size) = range().ok_or(CodeMapError::Range { base: code.start, size })?;
        runs.sort_by_key(|run| run.rva);
        let entries = functions.iter().flat_map(RuntimeFunction::to_bytes);
        let owned = OwnedBytes { runs: runs.into(), functions: entries.collect() };
        let (kind, bytes) = (RegionKind::CodeHeap, Bytes::Owned(Arc::new(owned)));
        // There are very many such regions, of a function each.
        let slots = (size as usize / BYTES_PER_SLOT)
            .clamp(SLOTS_OF_GENERATED.start, SLOTS_OF_GENERATED.end);
        let rules = Arc::new(Rules::new(if functions.is_empty() { 0 } else { slots }));
        Ok(Self::new(base, first..first + size, kind, bytes, rules))
    }
}
