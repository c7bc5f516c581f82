//! Writer of PE32+ files: linked sections as a DLL on disk.

use super::shape::CallingConvention;
use object::endian::{LittleEndian as LE, U16, U32};
use object::pe;
use object::pod::{bytes_of, bytes_of_slice};
use object::write::pe::{NtHeaders, Writer};
use thiserror::Error;

/// Alignment of loaded sections in bytes.
pub(super) const SECTION_ALIGNMENT: u32 = 0x1000;

/// Alignment of sections in the file in bytes.
const FILE_ALIGNMENT: u32 = 0x200;

/// Alignment of image bases in bytes, required by Windows.
const BASE_ALIGNMENT: u64 = 0x1_0000;

/// Number that the Machine field of ready-to-run images for Linux is XORed with.
const LINUX: u16 = 0x7B79;

/// Number of data directories.
const DIRECTORIES: usize = 16;

/// Maximum number of exports: an ordinal is 16 bits wide, and the first one is 1.
const MAX_EXPORTS: usize = u16::MAX as usize;

/// A section of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeSection<'a> {
    /// Name of at most 8 bytes.
    pub name: &'static str,
    /// Load address (RVA), a multiple of [`SECTION_ALIGNMENT`].
    pub rva: u32,
    /// Content. A section without content is left out of the file.
    pub bytes: &'a [u8],
    /// Access rights.
    pub kind: SectionKind,
}

/// The access rights of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// Executable and readable code.
    Code,
    /// Read-only data.
    ReadOnly,
    /// Readable and writable data.
    ReadWrite,
}

impl SectionKind {
    fn flags(self) -> pe::SectionFlags {
        let flags = match self {
            Self::Code => pe::IMAGE_SCN_CNT_CODE | pe::IMAGE_SCN_MEM_EXECUTE,
            Self::ReadOnly => pe::IMAGE_SCN_CNT_INITIALIZED_DATA,
            Self::ReadWrite => pe::IMAGE_SCN_CNT_INITIALIZED_DATA | pe::IMAGE_SCN_MEM_WRITE,
        };
        flags | pe::IMAGE_SCN_MEM_READ
    }
}

/// A DLL for x86-64 without base relocations, so that it must be loaded at its preferred base.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeFile<'a> {
    /// Name of the DLL in the export directory.
    pub name: &'a str,
    /// Calling convention of the code. The Machine field names the system that has it.
    pub convention: CallingConvention,
    /// Preferred base (VA), a multiple of 64 KiB.
    pub base: u64,
    /// Sections ascending by RVA, above the page of the headers.
    pub sections: &'a [PeSection<'a>],
    /// RVA and size in bytes of the function table; the size is 0 without a table.
    pub exception_directory: (u32, u32),
    /// Names and RVAs of the exports, in any order.
    pub exports: &'a [(&'a str, u32)],
}

/// The reason why a file cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum PeError {
    /// The base is not aligned, or the image would wrap.
    #[error("an image of {size:#x} bytes cannot be at {base:#x}: 64 KiB alignment, no wrapping")]
    Base {
        /// Base (VA).
        base: u64,
        /// `SizeOfImage`.
        size: u32,
    },
    /// A section's name is too long for the header.
    #[error("the name of the section at RVA {rva:#x} has more than 8 bytes")]
    SectionName {
        /// RVA of the section.
        rva: u32,
    },
    /// A section is out of order, not aligned, overlaps the section before it, or exceeds the RVA
    /// space.
    #[error("the section at RVA {rva:#x} is not aligned, not after the previous one, or too large")]
    SectionRange {
        /// RVA of the section.
        rva: u32,
    },
    /// The exception directory is not a whole number of entries within one section.
    #[error("the exception directory at RVA {rva:#x}, {size:#x} bytes, is not in one section")]
    ExceptionDirectory {
        /// RVA of the directory.
        rva: u32,
        /// Size in bytes.
        size: u32,
    },
    /// There are more exports than ordinals.
    #[error("{count} exports: there are 65535 ordinals")]
    ExportCount {
        /// Number of exports.
        count: usize,
    },
    /// An export's name is empty or not unique, or has a zero byte.
    #[error("the name of export {index} is empty or not unique, or has a zero byte")]
    ExportName {
        /// Index in the list.
        index: usize,
    },
    /// An export is in no section.
    #[error("export {index} is in no section")]
    ExportAddress {
        /// Index in the list.
        index: usize,
    },
    /// The DLL's name has a zero byte.
    #[error("the name of the DLL has a zero byte")]
    Name,
}

impl PeFile<'_> {
    /// Returns the bytes of the file. The export section, `.edata`, takes the first free pages
    /// after the other sections.
    ///
    /// The file contains only the given data: it has no time stamp and no checksum.
    ///
    /// # Errors
    /// Returns [`PeError`] if the parts do not form an image that can be loaded.
    pub(super) fn write(&self) -> Result<Vec<u8>, PeError> {
        self.check_exception_directory()?;
        let mut bytes = Vec::new();
        let mut writer = Writer::new(true, SECTION_ALIGNMENT, FILE_ALIGNMENT, &mut bytes);
        let mut sections: Vec<_> =
            self.sections.iter().filter(|section| !section.bytes.is_empty()).copied().collect();

        // The size of the headers depends on the number of sections, including `.edata`.
        let last = sections.last().map_or(SECTION_ALIGNMENT, |section| section.rva);
        let count = u16::try_from(sections.len() + 1);
        let count = count.map_err(|_| PeError::SectionRange { rva: last })?;
        writer.reserve_dos_header_and_stub();
        writer.reserve_nt_headers(DIRECTORIES);
        writer.reserve_section_headers(count);

        let mut offsets = Vec::with_capacity(usize::from(count));
        for section in &sections {
            offsets.push(reserve(&mut writer, section)?);
        }
        let rva = writer.virtual_len();
        let exports = self.export_section(rva)?;
        let edata = PeSection { name: ".edata", rva, bytes: &exports, kind: SectionKind::ReadOnly };
        offsets.push(reserve(&mut writer, &edata)?);
        sections.push(edata);

        let size = writer.virtual_len();
        let wraps = self.base.checked_add(u64::from(size)).is_none();
        if wraps || !self.base.is_multiple_of(BASE_ALIGNMENT) {
            return Err(PeError::Base { base: self.base, size });
        }

        let (table, table_size) = self.exception_directory;
        writer.set_data_directory(pe::IMAGE_DIRECTORY_ENTRY_EXPORT, rva, exports.len() as u32);
        if table_size > 0 {
            writer.set_data_directory(pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION, table, table_size);
        }
        // Writing fails only if the buffer cannot grow; a Vec never reports that.
        writer.write_dos_header_and_stub().map_err(|_| PeError::SectionRange { rva })?;
        writer.write_nt_headers(self.nt_headers());
        writer.write_section_headers();
        for (section, offset) in sections.iter().zip(offsets) {
            writer.write_section(offset, section.bytes);
        }
        Ok(bytes)
    }

    fn nt_headers(&self) -> NtHeaders {
        NtHeaders {
            machine: machine(self.convention),
            time_date_stamp: 0,
            characteristics: pe::IMAGE_FILE_RELOCS_STRIPPED
                | pe::IMAGE_FILE_EXECUTABLE_IMAGE
                | pe::IMAGE_FILE_LARGE_ADDRESS_AWARE
                | pe::IMAGE_FILE_DLL,
            major_linker_version: 0,
            minor_linker_version: 0,
            address_of_entry_point: 0,
            image_base: self.base,
            // 6.0, the oldest version that current linkers name for x86-64.
            major_operating_system_version: 6,
            minor_operating_system_version: 0,
            major_image_version: 0,
            minor_image_version: 0,
            major_subsystem_version: 6,
            minor_subsystem_version: 0,
            subsystem: pe::IMAGE_SUBSYSTEM_WINDOWS_CUI,
            // Not DYNAMIC_BASE: without base relocations the image cannot be moved.
            dll_characteristics: pe::IMAGE_DLLCHARACTERISTICS_NX_COMPAT,
            // A DLL uses the stacks and the heap of its process.
            size_of_stack_reserve: 0,
            size_of_stack_commit: 0,
            size_of_heap_reserve: 0,
            size_of_heap_commit: 0,
        }
    }

    fn section_of(&self, rva: u32) -> Option<&PeSection<'_>> {
        self.sections.iter().find(|section| {
            rva.checked_sub(section.rva).is_some_and(|at| (at as usize) < section.bytes.len())
        })
    }

    fn check_exception_directory(&self) -> Result<(), PeError> {
        let (rva, size) = self.exception_directory;
        let entry = clr_unwind::SIZE_OF_RUNTIME_FUNCTION as u32;
        let fits = size == 0
            || self.section_of(rva).is_some_and(|section| {
                u64::from(rva - section.rva) + u64::from(size) <= section.bytes.len() as u64
            });
        if fits && size.is_multiple_of(entry) {
            Ok(())
        } else {
            Err(PeError::ExceptionDirectory { rva, size })
        }
    }

    /// Returns the export directory and its tables, for an export section at `rva`. Ordinals count
    /// from 1 in the order of the names, regardless of the order in which the exports are given.
    fn export_section(&self, rva: u32) -> Result<Vec<u8>, PeError> {
        let count = self.exports.len();
        if count > MAX_EXPORTS {
            return Err(PeError::ExportCount { count });
        }
        if self.name.contains('\0') {
            return Err(PeError::Name);
        }
        let mut exports: Vec<_> = self.exports.iter().copied().zip(0..).collect();
        exports.sort_by_key(|((name, _), index)| (*name, *index));
        let mut previous = "";
        for ((name, address), index) in &exports {
            if name.is_empty() || *name == previous || name.contains('\0') {
                return Err(PeError::ExportName { index: *index });
            }
            if self.section_of(*address).is_none() {
                return Err(PeError::ExportAddress { index: *index });
            }
            previous = name;
        }

        let size_of_directory = size_of::<pe::ImageExportDirectory>();
        let [addresses, names, ordinals, strings] =
            [0, 4, 8, 10].map(|size| size_of_directory + size * count);
        // RVA of a table. An offset that cannot be represented is too large for `reserve` as well.
        let at = |offset: usize| U32::new(LE, rva.wrapping_add(offset as u32));

        let mut string_bytes = Vec::new();
        let mut add_string = |string: &str| {
            let offset = strings + string_bytes.len();
            string_bytes.extend(string.bytes().chain([0]));
            at(offset)
        };
        let directory = pe::ImageExportDirectory {
            characteristics: U32::new(LE, 0),
            time_date_stamp: U32::new(LE, 0),
            major_version: U16::new(LE, 0),
            minor_version: U16::new(LE, 0),
            name: add_string(self.name),
            base: U32::new(LE, 1),
            number_of_functions: U32::new(LE, count as u32),
            number_of_names: U32::new(LE, count as u32),
            address_of_functions: at(addresses),
            address_of_names: at(names),
            address_of_name_ordinals: at(ordinals),
        };
        let addresses: Vec<_> =
            exports.iter().map(|((_, address), _)| U32::new(LE, *address)).collect();
        let names: Vec<_> = exports.iter().map(|((name, _), _)| add_string(name)).collect();
        let ordinals: Vec<_> = (0..count as u16).map(|index| U16::new(LE, index)).collect();

        let mut bytes = bytes_of(&directory).to_vec();
        bytes.extend(bytes_of_slice(&addresses));
        bytes.extend(bytes_of_slice(&names));
        bytes.extend(bytes_of_slice(&ordinals));
        bytes.extend(string_bytes);
        Ok(bytes)
    }
}

/// Returns the Machine field of an image for x86-64 whose code has this calling convention.
///
/// Ready-to-run images of Unix are PE files, in which crossgen XORs the field with a number of the
/// system, so that no other system loads the code (`MachineOSOverride`, dotnet/runtime
/// `src/coreclr/tools/aot/ILCompiler.ReadyToRun/ObjectWriter/TargetExtensions.cs` at 697790c). Programs of
/// the System V convention are those of Linux, where the simulated runtimes of Unix were recorded.
fn machine(convention: CallingConvention) -> pe::Machine {
    match convention {
        CallingConvention::WindowsX64 => pe::IMAGE_FILE_MACHINE_AMD64,
        CallingConvention::SystemV => pe::Machine(pe::IMAGE_FILE_MACHINE_AMD64.0 ^ LINUX),
    }
}

/// Reserves a section's place in the file and in the loaded image, and returns its file offset.
fn reserve(writer: &mut Writer<'_>, section: &PeSection<'_>) -> Result<u32, PeError> {
    let PeSection { rva, bytes, .. } = *section;
    let error = PeError::SectionRange { rva };
    let end = u64::from(rva) + bytes.len() as u64;
    // The size of the image is a whole number of pages in a 32-bit field.
    let fits = end <= u64::from(u32::MAX - (SECTION_ALIGNMENT - 1));
    if !fits || rva < writer.virtual_len() || !rva.is_multiple_of(SECTION_ALIGNMENT) {
        return Err(error);
    }
    let mut name = [0; pe::IMAGE_SIZEOF_SHORT_NAME];
    name.get_mut(..section.name.len())
        .ok_or(PeError::SectionName { rva })?
        .copy_from_slice(section.name.as_bytes());
    writer.reserve_virtual_until(rva);
    let size = bytes.len() as u32;
    Ok(writer.reserve_section(name, section.kind.flags(), size, size).file_offset)
}

#[cfg(test)]
mod tests;
