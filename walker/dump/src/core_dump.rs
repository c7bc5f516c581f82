//! The dump as a stopped process.

mod minidump_images;

use crate::bytes::{DumpBytes, Source};
use crate::dumped::{DumpedPages, Run};
use crate::error::{DumpError, MappedFileError};
use crate::fields::Fields;
use crate::files::Files;
use crate::headers::{ImageHeaders, PAGE};
use crate::mapped_file::{MappedFile, Writable};
use crate::minidump;
use crate::modules::{Module, ModuleFile, ModuleKind, bias_of, changed_pages, mapping_at};
use crate::notes::{Mapping, Notes};
use crate::pe_headers::PeHeaders;
use crate::process::{Missing, StoppedProcess, System};
use crate::segments::{Segment, read_part, segments};
use crate::threads::Thread;
use clr_unwind::{CodeMap, ElfImage, ImageIdentity, ImageLayout, Memory, PeImage, Unreadable};
use object::elf;
use std::collections::BTreeMap;
use std::ops::Range;

/// A Linux core, or a Windows minidump: a process that has stopped.
#[derive(Clone, Debug)]
pub struct CoreDump<'d> {
    system: System,
    dumped: DumpedPages<Source<'d>>,
    notes: Notes,
    modules: Vec<Module<'d>>,
    /// The files of mappings, ascending by address, without overlaps.
    backings: Vec<Backing>,
    files: Vec<Result<MappedFile<'d>, MappedFileError>>,
}

/// Addresses whose bytes may come from a file.
#[derive(Clone, Debug)]
struct Backing {
    range: Range<u64>,
    /// Index into the files.
    file: usize,
    kind: BackingKind,
}

#[derive(Clone, Copy, Debug)]
enum BackingKind {
    /// A loaded image, moved by so much.
    Loaded { bias: u64, writable: Writable },
    /// Pages that the process has changed.
    Changed,
    /// A file as it is, from this offset on.
    Raw { offset: u64 },
}

/// The identities of files: paths with what the dump says of them.
type Known<'d> = BTreeMap<(String, Option<ImageIdentity>), usize>;

impl<'d> CoreDump<'d> {
    /// Reads the headers and notes of a dump that is in memory, and finds the files of its modules.
    ///
    /// # Errors
    /// [`DumpError`] if it is neither a core nor a minidump of x86-64, or is damaged. A file that is missing is none.
    pub fn open(dump: &'d [u8], files: &dyn Files<'d>) -> Result<Self, DumpError> {
        Self::open_source(Source::Memory(dump), files)
    }

    /// Reads the headers and notes of a dump that need not be in memory, and finds the files of its modules. What is asked for
    /// later is read then; [`CachedBytes`](crate::CachedBytes) keeps that cheap.
    ///
    /// # Errors
    /// As of [`open`](Self::open), and [`DumpError::Unread`].
    pub fn open_bytes(dump: &'d dyn DumpBytes, files: &dyn Files<'d>) -> Result<Self, DumpError> {
        Self::open_source(Source::Elsewhere(dump), files)
    }

    fn open_source(source: Source<'d>, files: &dyn Files<'d>) -> Result<Self, DumpError> {
        if minidump::is_one(&source) {
            return Self::of_minidump(source, files);
        }
        let (mut runs, mut notes, mut total) = (Vec::new(), Notes::default(), 0);
        for Segment { kind, address, offset, size } in segments(&source)? {
            let end = source.size();
            let truncated = DumpError::Truncated { offset, size, end };
            if offset.checked_add(size).is_none_or(|part_end| part_end > end) {
                match kind {
                    elf::PT_LOAD if size == 0 => {}
                    elf::PT_LOAD | elf::PT_NOTE => return Err(truncated),
                    _ => {}
                }
                continue;
            }
            match kind {
                elf::PT_LOAD => runs.push(Run { address, offset, size }),
                elf::PT_NOTE => {
                    // Damaged headers may name the same notes again and again.
                    total += size;
                    if total > end {
                        return Err(truncated);
                    }
                    let part = read_part(&source, offset, size)?;
                    notes.add(Fields::new(&part, offset))?;
                }
                _ => {}
            }
        }
        notes.finish()?;
        let mut this = Self {
            system: System::Linux,
            dumped: DumpedPages::new(source, runs)?,
            notes,
            modules: Vec::new(),
            backings: Vec::new(),
            files: Vec::new(),
        };
        this.find_modules(files);
        Ok(this)
    }

    /// Returns true if the dump itself has the byte at `address` (VA).
    pub fn is_dumped(&self, address: u64) -> bool {
        self.dumped.place(address).is_some()
    }

    /// Fills `buffer` with the bytes at `address` (VA) as the mapped file has them, whatever the dump has.
    ///
    /// # Errors
    /// [`Missing`] if one of them is not known from the file.
    pub fn read_file(&self, address: u64, buffer: &mut [u8]) -> Result<(), Missing> {
        fill(address, buffer, |at, rest| self.copy_of_file(at, rest, false))
    }

    /// Returns which build of a file the image at `base` is, as the dump alone says it. Program headers do not tell builds apart
    /// well enough: what is between them would be read from another file.
    fn identity(&self, base: u64, layout: ImageLayout) -> Option<ImageIdentity> {
        let identity = ImageIdentity::of(&self.dumped, base, layout);
        identity.filter(|it| !matches!(it, ImageIdentity::ProgramHeaders(_)))
    }

    /// Finds loaded images and the files of all mappings.
    fn find_modules(&mut self, files: &dyn Files<'d>) {
        let mut known = Known::new();
        let mappings = std::mem::take(&mut self.notes.mappings);
        for (index, first) in mappings.iter().enumerate() {
            // A part of the image before, at offset 0 again: the data of a small one.
            if first.offset != 0 || self.is_in_last_module(first) {
                continue;
            }
            let base = first.range.start;
            let headers = ImageHeaders::read(&self.dumped, base);
            let bias = headers.as_ref().and_then(|it| bias_of(it, base, &first.path, &mappings));
            let layout = if bias.is_some() { ImageLayout::Loaded } else { ImageLayout::File };
            let mut identity = self.identity(base, layout);
            let pe = PeHeaders::read(&self.dumped.start(base, HEADERS_LIMIT));
            let mut pe = pe.filter(|it| it.are_mapped(base, &first.path, &mappings));
            if headers.is_none() && identity.is_none() {
                let found = files.find(&first.path, None);
                let found = found.and_then(|it| self.by_pages(it, base, &first.path, &mappings));
                (identity, pe) = found.unzip();
            }
            let file = self.file(&first.path, identity.as_ref(), files, &mut known);
            let bytes = self.file_bytes(file);
            if let (Some(headers), Some(bias)) = (headers, bias) {
                let module = Module::elf(&first.path, bias, &headers, identity, bytes);
                let changed = changed_pages(&headers, bias, &mappings);
                self.add_loaded(&module, &changed, file);
                self.modules.push(module);
                continue;
            }
            let rest = mappings.get(index..).unwrap_or_default();
            let end = if let Some(pe) = pe {
                let end = base.saturating_add(pe.size).next_multiple_of(PAGE);
                self.modules.push(Module::pe(&first.path, base..end, identity, bytes));
                rest.partition_point(|mapping| mapping.range.start < end)
            } else {
                let next = rest.iter().skip(1).position(|mapping| mapping.offset == 0);
                next.map_or(rest.len(), |next| next + 1)
            };
            let parts = rest.iter().take(end).take_while(|mapping| mapping.path == first.path);
            for mapping in parts {
                let kind = BackingKind::Raw { offset: mapping.offset };
                self.backings.push(Backing { range: mapping.range.clone(), file, kind });
            }
        }
        self.add_vdso();
        self.notes.mappings = mappings;
        self.modules.sort_by_key(|module| module.range.start);
        self.backings.sort_by_key(|backing| backing.range.start);
    }

    /// Returns which build of a PE image is loaded at `base`, of which the dump lacks the headers: that of the candidate, if its
    /// sections are mapped there, and a page of the dump has the contents of the candidate's. (gdb and the kernel write all pages
    /// of a mapping of which one was changed.)
    fn by_pages(
        &self,
        candidate: &[u8],
        base: u64,
        path: &str,
        mappings: &[Mapping],
    ) -> Option<(ImageIdentity, PeHeaders)> {
        let pe = PeHeaders::read(candidate).filter(|it| it.are_mapped(base, path, mappings))?;
        let image = base..base.saturating_add(pe.size);
        let parts = mappings.iter().filter(|it| it.path == path && image.contains(&it.range.start));
        let mut pages = parts.flat_map(|part| {
            let of_page = |address| (address, part.offset + (address - part.range.start));
            part.range.clone().step_by(PAGE as usize).map(of_page)
        });
        pages
            .any(|(address, offset)| self.is_page_of(candidate, address, offset))
            .then_some((ImageIdentity::of_file(candidate)?, pe))
    }

    /// Returns true if the dump has a page at `address` with the contents of the file at `offset`, and there is something in it.
    fn is_page_of(&self, file: &[u8], address: u64, offset: u64) -> bool {
        let mut page = [0; PAGE as usize];
        let expected = usize::try_from(offset).ok().and_then(|offset| file.get(offset..));
        let Some(expected) = expected.and_then(|rest| rest.get(..page.len())) else { return false };
        expected.iter().filter(|byte| **byte != 0).count() >= SIGNIFICANT
            && self.dumped.copy(address, &mut page) == Some(page.len())
            && page == expected
    }

    /// Adds the addresses of a loaded image, apart from those of changed pages.
    fn add_loaded(&mut self, module: &Module<'d>, changed: &[Range<u64>], file: usize) {
        // A process without a loader is one itself.
        let loader = self.notes.auxiliary(LOADER).filter(|base| *base != 0);
        let is_loader = loader.is_none_or(|loader| loader == module.range.start);
        // It writes to its own data before it makes it read-only.
        let writable = if is_loader { Writable::Unknown } else { Writable::IfSealed };
        let kind = BackingKind::Loaded { bias: module.bias, writable };
        let mut start = module.range.start;
        for changed in changed {
            self.backings.push(Backing { range: start..changed.start, file, kind });
            self.backings.push(Backing {
                range: changed.clone(),
                file,
                kind: BackingKind::Changed,
            });
            start = changed.end;
        }
        self.backings.push(Backing { range: start..module.range.end, file, kind });
    }

    fn is_in_last_module(&self, mapping: &Mapping) -> bool {
        let is_in = |module: &Module<'_>| module.range.contains(&mapping.range.start);
        self.modules.last().is_some_and(|module| module.path == mapping.path && is_in(module))
    }

    fn file_bytes(&self, file: usize) -> ModuleFile<'d> {
        match self.files.get(file) {
            Some(Ok(file)) => Ok(file.bytes.into()),
            Some(Err(error)) => Err(*error),
            None => Err(MappedFileError::NotFound),
        }
    }

    /// Returns the index of the file with this path and identity.
    fn file(
        &mut self,
        path: &str,
        identity: Option<&ImageIdentity>,
        files: &dyn Files<'d>,
        known: &mut Known<'d>,
    ) -> usize {
        let key = (path.to_owned(), identity.cloned());
        *known.entry(key).or_insert_with(|| {
            self.files.push(match identity {
                None => Err(MappedFileError::NoIdentity),
                Some(identity) => match files.find(path, Some(identity)) {
                    None => Err(MappedFileError::NotFound),
                    Some(bytes) => MappedFile::read(bytes, identity, self.system),
                },
            });
            self.files.len() - 1
        })
    }

    /// Adds the image that the kernel maps into each process.
    fn add_vdso(&mut self) {
        let Some(base) = self.notes.auxiliary(VDSO) else { return };
        let Some(headers) = ImageHeaders::read(&self.dumped, base) else { return };
        let identity = self.identity(base, ImageLayout::Loaded);
        let start = headers.range().start;
        let size = usize::try_from(headers.range().end - start).unwrap_or(usize::MAX);
        // Its file is not named anywhere, but its memory is laid out as one.
        let file = self.dumped.start(base, size.min(VDSO_LIMIT)).into();
        let bias = base.wrapping_sub(start);
        self.modules.push(Module::elf("[vdso]", bias, &headers, identity, Ok(file)));
    }

    /// Copies the known bytes from `address` on, from the dump or from a file. Returns their number, one at least.
    fn copy(&self, address: u64, buffer: &mut [u8], is_constant: bool) -> Result<usize, Missing> {
        match self.dumped.copy(address, buffer) {
            Some(0) => {
                let limit = self.dumped.gap(address, buffer.len());
                let buffer = buffer.get_mut(..limit).unwrap_or_default();
                self.copy_of_file(address, buffer, is_constant)
            }
            Some(len) => Ok(len),
            None => Err(Missing::Unread),
        }
    }

    /// Copies the bytes from `address` on that are known from a file.
    fn copy_of_file(
        &self,
        address: u64,
        buffer: &mut [u8],
        is_constant: bool,
    ) -> Result<usize, Missing> {
        let after = self.backings.partition_point(|backing| backing.range.start <= address);
        let backing = after.checked_sub(1).and_then(|index| self.backings.get(index));
        let backing = backing.filter(|backing| backing.range.contains(&address));
        let backing = backing.ok_or(Missing::NotDumped)?;
        let file = match self.files.get(backing.file) {
            Some(Ok(file)) => file,
            Some(Err(error)) => return Err(Missing::File(*error)),
            None => return Err(Missing::NotDumped),
        };
        let limit = usize::try_from(backing.range.end - address).unwrap_or(usize::MAX);
        let limit = limit.min(buffer.len());
        let buffer = buffer.get_mut(..limit).unwrap_or_default();
        match backing.kind {
            BackingKind::Loaded { bias, writable } => {
                let writable = if is_constant { Writable::AsLoaded } else { writable };
                file.loaded(bias, writable, address.wrapping_sub(bias), buffer)
            }
            BackingKind::Changed => Err(Missing::MayHaveChanged),
            BackingKind::Raw { offset } => {
                file.raw(offset + (address - backing.range.start), buffer)
            }
        }
    }

    /// Returns the code of all modules whose files are known, for an unwinder. A file that is no image for x86-64 is left out.
    pub fn code_map(&self) -> CodeMap<'_> {
        let mut map = CodeMap::new();
        for module in &self.modules {
            let (Ok(file), base) = (&module.file, module.range.start) else { continue };
            // Code that cannot be inserted is unknown to the unwinder, which says so.
            match module.kind {
                ModuleKind::Elf => {
                    let _ = ElfImage::parse(file).map(|image| map.insert_elf(base, &image));
                }
                ModuleKind::Pe => {
                    let _ = PeImage::parse(file).map(|image| map.insert_image(base, &image));
                }
            }
        }
        map
    }

    /// Returns the mapping of a file that has the address (VA).
    pub fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        mapping_at(&self.notes.mappings, address)
    }
}

/// AT_BASE of elf.h: where the kernel has loaded the loader, or 0.
const LOADER: u64 = 7;
/// AT_SYSINFO_EHDR of elf.h: where the kernel has mapped its image.
const VDSO: u64 = 33;

/// Size of the headers of a PE image at most, in bytes; those of images have two pages.
const HEADERS_LIMIT: usize = 0x1_0000;
/// Bytes of a page that are not zero, so that another file is not expected to have the same page: a sixteenth.
const SIGNIFICANT: usize = PAGE as usize / 16;
/// Size of the kernel's image at most, in bytes; it has two pages.
const VDSO_LIMIT: usize = 0x1_0000;
/// Fills a buffer piece by piece.
fn fill(
    address: u64,
    buffer: &mut [u8],
    copy: impl Fn(u64, &mut [u8]) -> Result<usize, Missing>,
) -> Result<(), Missing> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        done += copy(address.checked_add(done as u64).ok_or(Missing::NotDumped)?, rest)?;
    }
    Ok(())
}

impl Memory for CoreDump<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        fill(address, buffer, |at, rest| self.copy(at, rest, false)).map_err(|_| unreadable)
    }

    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.dumped.slice(address, len)
    }
}

impl StoppedProcess for CoreDump<'_> {
    fn system(&self) -> System {
        self.system
    }

    fn threads(&self) -> &[Thread] {
        &self.notes.threads
    }

    fn modules(&self) -> &[Module<'_>] {
        &self.modules
    }

    fn mappings(&self) -> &[Mapping] {
        &self.notes.mappings
    }

    fn auxiliary(&self, key: u64) -> Option<u64> {
        self.notes.auxiliary(key)
    }

    fn missing(&self, address: u64) -> Option<Missing> {
        self.copy(address, &mut [0], false).err()
    }

    fn read_constant(&self, address: u64, buffer: &mut [u8]) -> Result<(), Missing> {
        fill(address, buffer, |at, rest| self.copy(at, rest, true))
    }
}
