//! Loaded images: those whose segments are mapped in order.

use crate::error::MappedFileError;
use crate::headers::{ImageHeaders, page};
use crate::identity::{BuildId, Identity};
use crate::notes::Mapping;
use std::ops::Range;

/// An ELF image that is loaded: its segments are mapped where its headers say. A file that is merely mapped, as profilers
/// do to read its symbols, is none.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Module<'f> {
    /// Path on the machine of the process; of the kernel's own image, which has no file, `[vdso]`.
    pub path: String,
    /// Addresses of the image (VA), by page.
    pub range: Range<u64>,
    /// Difference between addresses in the process and those in the file.
    pub bias: u64,
    /// Build id as the memory of the process has it, or `None` if the dump lacks that page.
    pub build_id: Option<BuildId>,
    /// The file.
    pub file: ModuleFile<'f>,
    /// The dynamic section (VA).
    pub(crate) dynamic: Option<Range<u64>>,
    /// The dynamic section as the file has it, or nothing.
    pub(crate) dynamic_in_file: &'f [u8],
}

/// The file of a module.
pub type ModuleFile<'f> = Result<&'f [u8], MappedFileError>;

impl Module<'_> {
    /// Returns the last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }
}

/// Returns the distance by which the image at `base` was moved if each of its segments is mapped where its headers say: from the
/// same file, at the right offset, and not as a part of a mapping with other access.
pub(crate) fn bias_of(
    headers: &ImageHeaders,
    base: u64,
    path: &str,
    mappings: &[Mapping],
) -> Option<u64> {
    let bias = base.wrapping_sub(headers.range().start);
    let mut flags = None;
    for load in headers.loads.iter().filter(|load| load.file_size != 0) {
        let address = page(load.address).wrapping_add(bias);
        let mapping = mapping_at(mappings, address).filter(|mapping| mapping.path == path)?;
        if mapping.offset + (address - mapping.range.start) != page(load.offset) {
            return None;
        }
        if flags.is_some_and(|flags| flags != load.flags) && mapping.range.start != address {
            return None;
        }
        flags = Some(load.flags);
    }
    Some(bias)
}

/// Returns the pages of read-only segments that the process has changed, ascending (VA). The runtime does so at its start: it makes
/// a page of its constants writable, fills in a table for debuggers, and makes it read-only again.
///
/// The kernel keeps such pages in a mapping of their own, so that what was one mapping is three. Which of them is the changed
/// one is assumed: untouched and changed ones take turns, and the largest is untouched.
pub(crate) fn changed_pages(
    headers: &ImageHeaders,
    bias: u64,
    mappings: &[Mapping],
) -> Vec<Range<u64>> {
    let mut changed = Vec::new();
    for load in headers.loads.iter().filter(|load| !load.is_writable() && load.file_size != 0) {
        let (start, end) = (load.address.wrapping_add(bias), load.in_file().end.wrapping_add(bias));
        let first = mappings.partition_point(|mapping| mapping.range.end <= start);
        let parts = mappings.get(first..).unwrap_or_default();
        let count = parts.partition_point(|mapping| mapping.range.start < end);
        let parts = parts.get(..count).unwrap_or_default();
        let size = |part: &Mapping| part.range.end - part.range.start;
        let Some(largest) = (0..parts.len()).max_by_key(|index| parts.get(*index).map(size)) else {
            continue;
        };
        for (index, part) in parts.iter().enumerate() {
            if index.abs_diff(largest) % 2 == 1 {
                changed.push(part.range.start.max(page(start))..part.range.end);
            }
        }
    }
    changed
}

/// Returns the mapping with the address.
pub(crate) fn mapping_at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.range.start <= address);
    let mapping = mappings.get(after.checked_sub(1)?)?;
    mapping.range.contains(&address).then_some(mapping)
}

impl<'f> Module<'f> {
    /// Creates the module of headers that were read at `base`.
    pub(crate) fn new(
        path: &str,
        bias: u64,
        headers: &ImageHeaders,
        identity: Option<&Identity>,
        file: ModuleFile<'f>,
    ) -> Self {
        let range = headers.range();
        let moved = |range: &Range<u64>| {
            let start = range.start.wrapping_add(bias);
            start..start.saturating_add(range.end - range.start)
        };
        Self {
            path: path.into(),
            range: moved(&range),
            bias,
            build_id: identity.and_then(Identity::build_id).cloned(),
            file,
            dynamic: headers.dynamic.as_ref().map(moved),
            dynamic_in_file: file
                .ok()
                .and_then(|file| headers.dynamic_in(file))
                .unwrap_or_default(),
        }
    }
}
