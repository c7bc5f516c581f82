//! Loaded images: those whose segments are mapped in order.

use crate::error::MappedFileError;
use crate::headers::{ImageHeaders, page};
use crate::minidump::LoadedImage;
use crate::notes::Mapping;
use clr_unwind::{BuildId, ImageIdentity};
use std::borrow::Cow;
use std::ops::Range;

/// The format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleKind {
    /// ELF: a shared object or an executable.
    Elf,
    /// PE: an image of Windows, or on Linux one that .NET has mapped.
    Pe,
}

/// An image that is loaded: its segments or sections are mapped where its headers say. A file that is merely mapped, as profilers
/// do to read its symbols, is none.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Module<'f> {
    /// Path on the machine of the process; of the kernel's own image, which has no file, `[vdso]`.
    pub path: String,
    /// The version of the file that its resources name, most significant number first. `None` on Linux, and if the dump has none.
    pub version: Option<[u16; 4]>,
    /// The format.
    pub kind: ModuleKind,
    /// Addresses of the image (VA), by page.
    pub range: Range<u64>,
    /// Which file it is, as the memory of the process has it. If the dump lacks the page that says it, of a PE image the file
    /// that was found, provided that other pages of the dump have its contents; else `None`.
    pub identity: Option<ImageIdentity>,
    /// The file.
    pub file: ModuleFile<'f>,
    /// Difference between addresses in the process and those in an ELF file.
    pub(crate) bias: u64,
    /// Whether the system has loaded it, which separates parts of paths by `\`.
    is_of_windows: bool,
    /// The dynamic section (VA).
    pub(crate) dynamic: Option<Range<u64>>,
    /// Offsets in the file of the dynamic section.
    dynamic_in_file: Option<Range<usize>>,
}

/// The file of a module.
pub type ModuleFile<'f> = Result<Cow<'f, [u8]>, MappedFileError>;

impl Module<'_> {
    /// Returns the last part of the path.
    pub fn name(&self) -> &str {
        let separator = if self.is_of_windows { '\\' } else { '/' };
        self.path.rsplit_once(separator).map_or(&self.path, |(_, name)| name)
    }

    /// Returns true if Windows has loaded the image.
    pub(crate) const fn is_of_windows(&self) -> bool {
        self.is_of_windows
    }

    /// Returns the dynamic section as the file has it, or nothing.
    pub(crate) fn dynamic_in_file(&self) -> &[u8] {
        let range = self.dynamic_in_file.clone();
        let bytes = self.file.as_deref().ok().and_then(|file| file.get(range?));
        bytes.unwrap_or_default()
    }

    /// Returns the build id, of an ELF image.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.identity.as_ref()?.build_id()
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
    /// Creates the module of an ELF image that was moved by `bias`.
    pub(crate) fn elf(
        path: &str,
        bias: u64,
        headers: &ImageHeaders,
        identity: Option<ImageIdentity>,
        file: ModuleFile<'f>,
    ) -> Self {
        let moved = |range: &Range<u64>| {
            let start = range.start.wrapping_add(bias);
            start..start.saturating_add(range.end - range.start)
        };
        Self {
            path: path.into(),
            version: None,
            kind: ModuleKind::Elf,
            range: moved(&headers.range()),
            identity,
            file,
            bias,
            is_of_windows: false,
            dynamic: headers.dynamic.as_ref().map(moved),
            dynamic_in_file: headers.dynamic_in_file(),
        }
    }

    /// Creates the module of a PE image.
    pub(crate) fn pe(
        path: &str,
        range: Range<u64>,
        identity: Option<ImageIdentity>,
        file: ModuleFile<'f>,
    ) -> Self {
        Self {
            path: path.into(),
            version: None,
            kind: ModuleKind::Pe,
            range,
            identity,
            file,
            bias: 0,
            is_of_windows: false,
            dynamic: None,
            dynamic_in_file: None,
        }
    }

    /// Creates the module of an image that Windows has loaded.
    pub(crate) fn of_windows(image: &LoadedImage, file: ModuleFile<'f>) -> Self {
        let identity = Some(ImageIdentity::Pe(image.identity));
        let pe = Self::pe(&image.path, image.range.clone(), identity, file);
        Self { version: image.version, is_of_windows: true, ..pe }
    }
}
