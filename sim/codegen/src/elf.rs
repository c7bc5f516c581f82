//! Writer of ELF files: linked sections as a shared library on disk.
//!
//! The file offset of every loaded section is its RVA.

use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, SectionIndex, Sym, Writer};
use object::{Endianness, elf};

/// Alignment of segments in bytes.
const PAGE: u64 = 0x1000;

/// A section that is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElfSection<'a> {
    pub name: &'static str,
    /// Load address (RVA). A section whose kind differs from that of the one before begins on a new
    /// page.
    pub rva: u32,
    /// Content.
    pub bytes: &'a [u8],
    /// Access rights and purpose.
    pub kind: SectionKind,
}

/// The access rights and the purpose of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// Executable and readable code.
    Code,
    /// Executable and readable entries of the procedure linkage table.
    Linkage,
    /// Read-only data.
    ReadOnly,
    /// Read-only unwind data.
    Frames,
    /// Readable and writable data.
    ReadWrite,
}

impl SectionKind {
    fn segment(self) -> elf::ProgramFlags {
        match self {
            Self::Code | Self::Linkage => elf::PF_R | elf::PF_X,
            Self::ReadOnly | Self::Frames => elf::PF_R,
            Self::ReadWrite => elf::PF_R | elf::PF_W,
        }
    }

    fn flags(self) -> elf::SectionFlags {
        match self {
            Self::Code | Self::Linkage => elf::SHF_ALLOC | elf::SHF_EXECINSTR,
            Self::ReadOnly | Self::Frames => elf::SHF_ALLOC,
            Self::ReadWrite => elf::SHF_ALLOC | elf::SHF_WRITE,
        }
    }

    fn section_type(self) -> elf::SectionType {
        match self {
            Self::Frames => elf::SHT_X86_64_UNWIND,
            Self::Code | Self::Linkage | Self::ReadOnly | Self::ReadWrite => elf::SHT_PROGBITS,
        }
    }

    /// Returns the size of an entry in bytes if all entries have one size, otherwise 0.
    const fn entry_size(self) -> u64 {
        match self {
            Self::Linkage => 16,
            Self::Code | Self::ReadOnly | Self::Frames | Self::ReadWrite => 0,
        }
    }

    const fn alignment(self) -> u64 {
        match self {
            Self::Linkage => 16,
            Self::Code | Self::ReadOnly | Self::Frames | Self::ReadWrite => 4,
        }
    }
}

/// A function's symbol.
#[derive(Clone, Debug)]
pub(super) struct ElfSymbol {
    pub name: String,
    /// RVA of the first byte.
    pub rva: u32,
    /// Size in bytes.
    pub size: u32,
    /// Other files may link to the symbol.
    pub exported: bool,
}

/// A shared library for x86-64.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElfFile<'a> {
    /// Name of the library: `DT_SONAME`.
    pub name: &'a str,
    /// Sections ascending by RVA, after the page of the headers.
    pub sections: &'a [ElfSection<'a>],
    /// RVA and size of `.eh_frame_hdr`.
    pub frame_header: (u32, u32),
    /// The functions, in any order.
    pub symbols: &'a [ElfSymbol],
}

/// Error: the sections do not follow each other, or are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unwritable;

impl From<object::write::Error> for Unwritable {
    fn from(_: object::write::Error) -> Self {
        Self
    }
}

/// A loaded range with its flags.
struct Segment {
    flags: elf::ProgramFlags,
    start: u64,
    end: u64,
}

/// The places reserved for the file's parts.
struct Reserved<'f> {
    text: SectionIndex,
    section_names: Vec<StringId>,
    /// Exported symbols with their names among the dynamic strings.
    exports: Vec<(&'f ElfSymbol, StringId)>,
    /// All symbols, local ones first, with their names.
    symbols: Vec<(&'f ElfSymbol, StringId)>,
    soname: StringId,
    dynsym: u64,
    dynstr: u64,
    hash: u64,
    dynamic: u64,
    /// End of the loaded part.
    loaded: u64,
}

impl Reserved<'_> {
    fn buckets(&self) -> u32 {
        self.exports.len().max(1) as u32
    }

    /// Returns the number of dynamic symbols, including the null symbol at index 0.
    fn chains(&self) -> u32 {
        self.exports.len() as u32 + 1
    }
}

/// Number of entries of `.dynamic` besides the name and the terminator.
const DYNAMIC_ENTRIES: usize = 5;

impl ElfFile<'_> {
    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// Returns [`Unwritable`] if the sections do not follow each other, or are too large.
    pub(super) fn write(&self) -> Result<Vec<u8>, Unwritable> {
        let segments = self.segments()?;
        let mut bytes = Vec::new();
        let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
        let reserved = self.reserve(&mut writer, &segments)?;
        writer.write_file_header(&FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type: elf::ET_DYN,
            e_machine: elf::EM_X86_64,
            e_entry: 0,
            e_flags: elf::FileFlags(0),
        })?;
        self.write_program_headers(&mut writer, &segments, &reserved);
        self.write_contents(&mut writer, &reserved)?;
        self.write_section_headers(&mut writer, &reserved);
        Ok(bytes)
    }

    /// Reserves space for the parts after the given sections: the dynamic tables in the last
    /// segment, then the sections that are not loaded.
    fn reserve<'f>(
        &'f self,
        writer: &mut Writer<'f>,
        segments: &[Segment],
    ) -> Result<Reserved<'f>, Unwritable> {
        writer.reserve_file_header();
        writer.reserve_program_headers(segments.len() as u32 + 3);
        writer.reserve_null_section_index();
        let (mut text, mut section_names) = (None, Vec::new());
        for section in self.sections {
            let rva = u64::from(section.rva);
            if writer.reserved_len() > rva {
                return Err(Unwritable);
            }
            writer.reserve_until(rva);
            writer.reserve(section.bytes.len() as u64, 1);
            section_names.push(writer.add_section_name(section.name.as_bytes()));
            let index = writer.reserve_section_index();
            if section.kind == SectionKind::Code {
                text = Some(index);
            }
        }
        let text = text.ok_or(Unwritable)?;
        writer.reserve_dynsym_section_index();
        writer.reserve_dynstr_section_index();
        writer.reserve_hash_section_index();
        writer.reserve_dynamic_section_index();
        writer.reserve_symtab_section_index();
        writer.reserve_strtab_section_index();
        writer.reserve_shstrtab_section_index();

        writer.reserve_null_dynamic_symbol_index();
        let soname = writer.add_dynamic_string(self.name.as_bytes());
        let mut exports = Vec::new();
        for symbol in self.symbols.iter().filter(|symbol| symbol.exported) {
            writer.reserve_dynamic_symbol_index();
            exports.push((symbol, writer.add_dynamic_string(symbol.name.as_bytes())));
        }
        writer.reserve_null_symbol_index();
        let mut symbols = Vec::new();
        for symbol in self.symbols {
            writer.reserve_symbol_index(Some(text));
            symbols.push((symbol, writer.add_string(symbol.name.as_bytes())));
        }
        symbols.sort_by_key(|(symbol, _)| symbol.exported);
        let mut reserved = Reserved {
            text,
            section_names,
            exports,
            symbols,
            soname,
            dynsym: writer.reserve_dynsym(),
            dynstr: writer.reserve_dynstr()?,
            hash: 0,
            dynamic: 0,
            loaded: 0,
        };
        reserved.hash = writer.reserve_hash(reserved.buckets(), reserved.chains());
        reserved.dynamic = writer.reserve_dynamic(DYNAMIC_ENTRIES + 2);
        reserved.loaded = writer.reserved_len();
        writer.reserve_symtab();
        writer.reserve_strtab()?;
        writer.reserve_shstrtab()?;
        writer.reserve_section_headers();
        Ok(reserved)
    }

    fn write_program_headers(
        &self,
        writer: &mut Writer<'_>,
        segments: &[Segment],
        reserved: &Reserved<'_>,
    ) {
        writer.write_align_program_headers();
        for (index, segment) in segments.iter().enumerate() {
            let is_last = index + 1 == segments.len();
            let end = if is_last { reserved.loaded } else { segment.end };
            let header = program_header(elf::PT_LOAD, segment.flags, segment.start, end, PAGE);
            writer.write_program_header(&header);
        }
        let (start, end) = (reserved.dynamic, reserved.loaded);
        writer.write_program_header(&program_header(elf::PT_DYNAMIC, elf::PF_R, start, end, 8));
        let start = u64::from(self.frame_header.0);
        let end = start + u64::from(self.frame_header.1);
        let header = program_header(elf::PT_GNU_EH_FRAME, elf::PF_R, start, end, 4);
        writer.write_program_header(&header);
        // The stack is not executable.
        let stack = elf::PF_R | elf::PF_W;
        writer.write_program_header(&program_header(elf::PT_GNU_STACK, stack, 0, 0, 16));
    }

    fn write_contents(
        &self,
        writer: &mut Writer<'_>,
        reserved: &Reserved<'_>,
    ) -> Result<(), Unwritable> {
        for section in self.sections {
            writer.pad_until(section.rva.into());
            writer.write(section.bytes);
        }
        writer.write_null_dynamic_symbol();
        for (symbol, name) in &reserved.exports {
            let name = writer.dynamic_string_offset(Some(*name));
            writer.write_dynamic_symbol(&sym(symbol, name, reserved.text));
        }
        writer.write_dynstr();
        writer.write_hash(reserved.buckets(), reserved.chains(), |index| {
            let (symbol, _) = reserved.exports.get((index as usize).checked_sub(1)?)?;
            Some(elf::hash(symbol.name.as_bytes()))
        });
        writer.write_align_dynamic();
        writer.write_dynamic_string(elf::DT_SONAME, reserved.soname)?;
        let entries: [(elf::DynamicTag, u64); DYNAMIC_ENTRIES] = [
            (elf::DT_HASH, reserved.hash),
            (elf::DT_STRTAB, reserved.dynstr),
            (elf::DT_SYMTAB, reserved.dynsym),
            (elf::DT_STRSZ, writer.dynstr_len().into()),
            (elf::DT_SYMENT, 24),
        ];
        for (tag, value) in entries {
            writer.write_dynamic(tag, value)?;
        }
        writer.write_dynamic(elf::DT_NULL, 0)?;
        writer.write_null_symbol();
        for (symbol, name) in &reserved.symbols {
            let name = writer.string_offset(Some(*name));
            writer.write_symbol(&sym(symbol, name, reserved.text));
        }
        writer.write_strtab();
        writer.write_shstrtab();
        Ok(())
    }

    fn write_section_headers(&self, writer: &mut Writer<'_>, reserved: &Reserved<'_>) {
        writer.write_null_section_header();
        for (section, name) in self.sections.iter().zip(&reserved.section_names) {
            let name = writer.section_name_offset(Some(*name));
            writer.write_section_header(&SectionHeader {
                sh_name: name,
                sh_type: section.kind.section_type(),
                sh_flags: section.kind.flags(),
                sh_addr: section.rva.into(),
                sh_offset: section.rva.into(),
                sh_size: section.bytes.len() as u64,
                sh_link: 0,
                sh_info: 0,
                sh_addralign: section.kind.alignment(),
                sh_entsize: section.kind.entry_size(),
            });
        }
        let locals = reserved.symbols.len() - reserved.exports.len();
        writer.write_dynsym_section_header(reserved.dynsym, 1);
        writer.write_dynstr_section_header(reserved.dynstr);
        writer.write_hash_section_header(reserved.hash);
        writer.write_dynamic_section_header(reserved.dynamic);
        writer.write_symtab_section_header(locals as u32 + 1);
        writer.write_strtab_section_header();
        writer.write_shstrtab_section_header();
    }

    /// Returns the segments: the headers, and runs of neighbouring sections with equal access
    /// rights.
    fn segments(&self) -> Result<Vec<Segment>, Unwritable> {
        let mut segments = vec![Segment { flags: elf::PF_R, start: 0, end: 0x1000 }];
        for section in self.sections {
            let flags = section.kind.segment();
            let start = u64::from(section.rva);
            let end = start + section.bytes.len() as u64;
            match segments.last_mut() {
                Some(last) if last.flags == flags && last.start > 0 => last.end = end,
                _ if start.is_multiple_of(PAGE) => segments.push(Segment { flags, start, end }),
                _ => return Err(Unwritable),
            }
        }
        // The dynamic tables are added to the last segment.
        match segments.last() {
            Some(last) if last.flags == elf::PF_R => Ok(segments),
            _ => Err(Unwritable),
        }
    }
}

fn program_header(
    p_type: elf::ProgramType,
    p_flags: elf::ProgramFlags,
    start: u64,
    end: u64,
    p_align: u64,
) -> ProgramHeader {
    let size = end.saturating_sub(start);
    ProgramHeader {
        p_type,
        p_flags,
        p_offset: start,
        p_vaddr: start,
        p_paddr: start,
        p_filesz: size,
        p_memsz: size,
        p_align,
    }
}

fn sym(symbol: &ElfSymbol, st_name: u32, text: SectionIndex) -> Sym {
    let bind = if symbol.exported { elf::STB_GLOBAL } else { elf::STB_LOCAL };
    Sym {
        section: Some(text.0),
        st_name,
        st_info: elf::SymbolInfo::new(bind, elf::STT_FUNC),
        st_other: elf::SymbolOther(0),
        st_shndx: elf::SHN_UNDEF,
        st_value: symbol.rva.into(),
        st_size: symbol.size.into(),
    }
}
