//! PE32+ images for x86-64, read through `object`.

use super::symbols::Symbols;
use super::target_os::TargetOs;

use super::symbols::NameBudget;
use super::{FunctionTable, ImageError, Section, Sections};
use alloc::vec::Vec;
use core::ops::Range;
use object::LittleEndian as LE;
use object::pe;
use object::read::ReadRef as _;
use object::read::coff::{CoffHeader as _, Symbol as _};
use object::read::pe::{DataDirectories, ImageNtHeaders as _, ImageOptionalHeader as _};

/// A PE32+ image in the layout of its file.
#[derive(Clone, Debug)]
pub struct PeImage<'a> {
    data: &'a [u8],
    target_os: TargetOs,
    headers: &'a pe::ImageNtHeaders64,
    directories: DataDirectories<'a>,
    section_headers: object::read::coff::SectionTable<'a>,
    sections: Sections<'a>,
    functions: FunctionTable<'a>,
}

impl<'a> PeImage<'a> {
    /// Reads the headers, and finds the sections and the exception directory of the image file
    /// `data`. The entries of the function table and the symbols are not read.
    ///
    /// # Errors
    /// [`ImageError`] if `data` is no x86-64 PE32+ image or is cut off, or if its section table
    /// contradicts itself.
    pub fn parse(data: &'a [u8]) -> Result<Self, ImageError> {
        let dos = pe::ImageDosHeader::parse(data).map_err(|_| ImageError::Headers)?;
        let mut offset = u64::from(dos.nt_headers_offset());
        let (headers, directories) =
            pe::ImageNtHeaders64::parse(data, &mut offset).map_err(|_| ImageError::Headers)?;
        let machine = headers.file_header().machine.get(LE);
        let target_os =
            TargetOs::of_machine(machine.0).ok_or(ImageError::Machine { machine: machine.0 })?;
        let section_headers =
            headers.sections(data, offset).map_err(|_| ImageError::SectionTable)?;
        let sections = sections(data, headers, &section_headers)?;
        let functions = function_table(&directories, &sections)?;
        Ok(Self { data, target_os, headers, directories, section_headers, sections, functions })
    }

    /// Returns the operating system that the code was compiled for.
    pub const fn target_os(&self) -> TargetOs {
        self.target_os
    }

    /// Returns the preferred load address (VA).
    #[doc(alias = "image_base")]
    pub fn preferred_base(&self) -> u64 {
        self.headers.optional_header().image_base()
    }

    /// Returns `SizeOfImage`, the size of the loaded image in bytes.
    pub fn size(&self) -> u32 {
        self.headers.optional_header().size_of_image()
    }

    /// Returns the bytes of the file by RVA. The first section holds the headers.
    pub const fn sections(&self) -> &Sections<'a> {
        &self.sections
    }

    /// Returns the entries of the exception directory.
    pub const fn functions(&self) -> FunctionTable<'a> {
        self.functions
    }

    /// Returns the range of a data directory (RVAs), wherever it is; `None` if it is empty or there is none
    /// with this number (`IMAGE_DIRECTORY_ENTRY_…`).
    pub fn directory(&self, number: usize) -> Option<Range<u32>> {
        let (rva, size) = self.directories.get(number)?.address_range();
        (size > 0).then(|| rva..rva.saturating_add(size))
    }

    /// Returns the names of the code: exports, and the COFF symbols that linkers like GNU ld leave
    /// in. Symbols that cannot be read are left out.
    pub fn symbols(&self) -> Symbols<'a> {
        let mut names: Vec<(u32, Origin, &'a str)> = Vec::new();
        self.collect_exports(&mut names);
        self.collect_coff_symbols(&mut names);
        // Other modules see an export's name, so it comes first where there are several.
        names.sort_unstable();
        names.dedup_by_key(|(rva, ..)| *rva);
        Symbols::ascending(names.into_iter().map(|(rva, _, name)| (rva, name)).collect())
    }

    fn collect_exports(&self, names: &mut Vec<(u32, Origin, &'a str)>) {
        let Ok(Some(exports)) = self.directories.export_table(self.data, &self.section_headers)
        else {
            return;
        };
        let mut budget = NameBudget::new(self.data);
        for (pointer, index) in exports.name_iter() {
            let Ok(rva) = exports.address_by_index(index) else { continue };
            let name = exports.name_from_pointer(pointer);
            if !budget.pay_for(name.ok()) {
                break;
            }
            let Ok(name) = name else { continue };
            if exports.is_forward(rva) {
                continue;
            }
            if let Ok(name) = core::str::from_utf8(name) {
                names.push((rva, Origin::Export, name));
            }
        }
    }

    fn collect_coff_symbols(&self, names: &mut Vec<(u32, Origin, &'a str)>) {
        let Ok(symbols) = self.headers.file_header().symbols(self.data) else { return };
        let mut budget = NameBudget::new(self.data);
        for (_, symbol) in symbols.iter() {
            let Some(section) = symbol.section() else { continue };
            let Ok(header) = self.section_headers.section(section) else { continue };
            let kept = symbol.storage_class() == pe::IMAGE_SYM_CLASS_EXTERNAL
                || symbol.storage_class() == pe::IMAGE_SYM_CLASS_STATIC;
            if !kept || !is_executable(header) {
                continue;
            }
            // The string table begins with its own length, which is no name.
            if let [0, 0, 0, 0, 0..4, 0, 0, 0] = symbol.raw_name() {
                continue;
            }
            let name = symbol.name(symbols.strings());
            if !budget.pay_for(name.ok()) {
                break;
            }
            let Ok(name) = name else { continue };
            let Ok(name) = core::str::from_utf8(name) else { continue };
            // ".text" and the like name a section's start, not a function.
            if name.is_empty() || name.starts_with('.') {
                continue;
            }
            let rva = header.virtual_address.get(LE).wrapping_add(symbol.value());
            names.push((rva, Origin::Coff, name));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Export,
    Coff,
}

fn is_executable(header: &pe::ImageSectionHeader) -> bool {
    header.characteristics.get(LE).contains(pe::IMAGE_SCN_MEM_EXECUTE)
}

fn sections<'a>(
    data: &'a [u8],
    headers: &pe::ImageNtHeaders64,
    table: &object::read::coff::SectionTable<'a>,
) -> Result<Sections<'a>, ImageError> {
    let header_size = headers.optional_header().size_of_headers();
    let header_bytes = data.read_bytes_at(0, u64::from(header_size));
    let mut sections = alloc::vec![Section {
        rva: 0,
        bytes: header_bytes.map_err(|()| ImageError::SectionData { rva: 0 })?,
        executable: false,
    }];
    for header in table.iter() {
        let rva = header.virtual_address.get(LE);
        // A virtual size of 0 means the raw size; raw data after the virtual size is padding.
        let raw = header.size_of_raw_data.get(LE);
        let size = match header.virtual_size.get(LE) {
            0 => raw,
            size => size.min(raw),
        };
        let offset = u64::from(header.pointer_to_raw_data.get(LE));
        let bytes = if size == 0 {
            &[][..]
        } else {
            let bytes = data.read_bytes_at(offset, u64::from(size));
            bytes.map_err(|()| ImageError::SectionData { rva })?
        };
        sections.push(Section { rva, bytes, executable: is_executable(header) });
    }
    Sections::new(sections)
}

fn function_table<'a>(
    directories: &DataDirectories<'a>,
    sections: &Sections<'a>,
) -> Result<FunctionTable<'a>, ImageError> {
    let Some(directory) = directories.get(pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION) else {
        return Ok(FunctionTable::default());
    };
    let (rva, size) = directory.address_range();
    if size == 0 {
        return Ok(FunctionTable::default());
    }
    sections
        .bytes_from(rva)
        .and_then(|bytes| bytes.get(..size as usize))
        .map(FunctionTable::new)
        .ok_or(ImageError::ExceptionDirectory { rva, size })
}

#[cfg(test)]
mod tests;
