//! The dump as a stopped process.

use crate::dumped::DumpedPages;
use crate::error::{DumpError, MappedFileError};
use crate::fields::Fields;
use crate::files::Files;
use crate::headers::{ImageHeaders, PAGE};
use crate::mapped_file::{MappedFile, Writable};
use crate::modules::{Module, ModuleKind, bias_of, changed_pages, mapping_at};
use crate::notes::{Mapping, Notes};
use crate::pe_headers::PeHeaders;
use crate::process::{Missing, StoppedProcess};
use crate::threads::Thread;
use clr_unwind::{CodeMap, ElfImage, ImageIdentity, ImageLayout, Memory, PeImage, Unreadable};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use std::collections::BTreeMap;
use std::ops::Range;

/// A Linux core: a process that has stopped.
#[derive(Clone, Debug)]
pub struct CoreDump<'d> {
    dumped: DumpedPages<'d>,
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
    /// Reads the headers and notes of a dump, and finds the files of its modules.
    ///
    /// # Errors
    /// [`DumpError`] if it is not a core for x86-64, or is damaged. A file that is missing is none.
    pub fn open(dump: &'d [u8], files: &dyn Files<'d>) -> Result<Self, DumpError> {
        let header = FileHeader64::<LE>::parse(dump).map_err(|_| DumpError::NotACore)?;
        header.endian().map_err(|_| DumpError::NotACore)?;
        if header.e_type(LE) != elf::ET_CORE || header.e_machine(LE) != elf::EM_X86_64 {
            return Err(DumpError::NotACore);
        }
        let headers = header.program_headers(LE, dump);
        let cut = DumpError::ProgramHeaders { offset: header.e_phoff(LE) };
        let (mut segments, mut notes) = (Vec::new(), Notes::default());
        for header in headers.map_err(|_| cut)? {
            let (offset, size) = (header.p_offset(LE), header.p_filesz(LE));
            let part = || {
                let start = usize::try_from(offset).ok()?;
                dump.get(start..start.checked_add(usize::try_from(size).ok()?)?)
            };
            let truncated = DumpError::Truncated { offset, size, end: dump.len() as u64 };
            match header.p_type(LE) {
                elf::PT_LOAD if size != 0 => {
                    segments.push((header.p_vaddr(LE), offset, part().ok_or(truncated)?));
                }
                elf::PT_NOTE => notes.add(Fields::new(part().ok_or(truncated)?, offset))?,
                _ => {}
            }
        }
        notes.finish()?;
        let mut this = Self {
            dumped: DumpedPages::new(segments)?,
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
        !self.dumped.from(address).is_empty()
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
            let identity = self.identity(base, layout);
            let pe = PeHeaders::read(self.dumped.from(base));
            let pe = pe.filter(|it| it.are_mapped(base, &first.path, &mappings));
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

    fn file_bytes(&self, file: usize) -> Result<&'d [u8], MappedFileError> {
        match self.files.get(file) {
            Some(Ok(file)) => Ok(file.bytes),
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
                Some(identity) => match files.find(path, identity) {
                    None => Err(MappedFileError::NotFound),
                    Some(bytes) => MappedFile::read(bytes, identity),
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
        let bytes = self.dumped.from(base);
        // Its file is not named anywhere, but its memory is laid out as one.
        let file = bytes.get(..size).unwrap_or(bytes);
        let bias = base.wrapping_sub(start);
        self.modules.push(Module::elf("[vdso]", bias, &headers, identity, Ok(file)));
    }

    /// Copies the known bytes from `address` on, from the dump or from a file. Returns their number, one at least.
    fn copy(&self, address: u64, buffer: &mut [u8], is_constant: bool) -> Result<usize, Missing> {
        let dumped = self.dumped.from(address);
        if dumped.is_empty() {
            let limit = self.dumped.gap(address, buffer.len());
            let buffer = buffer.get_mut(..limit).unwrap_or_default();
            return self.copy_of_file(address, buffer, is_constant);
        }
        let len = dumped.len().min(buffer.len());
        if let (Some(buffer), Some(bytes)) = (buffer.get_mut(..len), dumped.get(..len)) {
            buffer.copy_from_slice(bytes);
        }
        Ok(len)
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
    pub fn code_map(&self) -> CodeMap<'d> {
        let mut map = CodeMap::new();
        for module in &self.modules {
            let (Ok(file), base) = (module.file, module.range.start) else { continue };
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
        self.dumped.from(address).get(..len)
    }
}

impl StoppedProcess for CoreDump<'_> {
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
