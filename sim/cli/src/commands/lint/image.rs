//! Reading an image for `clrsim lint`: its code, its unwind data, and what its headers say of both.

use super::dotnet;
use crate::input::Source;
use crate::render::error::CliError;
use clr_lint::{Language, Layout};
use clr_unwind::cfi::CfiTable;
use clr_unwind::{CodeMap, CodeRegion, ElfImage, MachoImage, PeImage, Sections, Symbols};
use std::ops::Range;

/// An image of any format.
pub(super) struct Image<'a> {
    pub(super) format: &'static str,
    pub(super) map: CodeMap<'a>,
    pub(super) symbols: Symbols<'a>,
    pub(super) layout: Layout<'a>,
    /// The .NET that made it, in words.
    pub(super) dotnet: Option<String>,
}

/// Number of the directory with the RUNTIME_FUNCTIONs.
const EXCEPTIONS: usize = 3;

/// Number of the directory with the header of the CLI.
const CLI_HEADER: usize = 14;

/// Reads an image of any format. Every function's call frame information is needed, so all is compiled.
pub(super) fn read<'a>(source: &Source, bytes: &'a [u8]) -> Result<Image<'a>, CliError> {
    let mut map = CodeMap::new();
    let (format, symbols, layout, dotnet, added) = match bytes {
        [0x7F, b'E', b'L', b'F', ..] => {
            let elf = ElfImage::parse(bytes).map_err(|error| source.error(error))?;
            let table = CfiTable::new(&elf.cfi(), elf.sections());
            let base = elf.preferred_base();
            let region = CodeRegion::elf(base, &elf);
            let symbols = elf.symbols();
            let mut layout = layout(elf.sections(), elf_code(&elf), &symbols, base);
            layout.entry = elf.entry();
            layout.search_table = elf.cfi().eh_frame_hdr;
            let dotnet = dotnet::native_aot(elf.sections());
            ("ELF", symbols, layout, dotnet, region.and_then(|it| map.insert(it.with_cfi(table))))
        }
        [0xCF, 0xFA, 0xED, 0xFE, ..] | [0xCA, 0xFE, 0xBA, 0xBE, ..] => {
            let macho = MachoImage::parse(thin(bytes)).map_err(|error| source.error(error))?;
            let table = CfiTable::new(&macho.cfi(), macho.sections());
            let base = macho.preferred_base();
            let region = CodeRegion::macho(base, &macho);
            let symbols = macho.symbols();
            let mut layout = layout(macho.sections(), macho.code(), &symbols, base);
            layout.starts.extend(macho.function_starts());
            layout.starts.sort_unstable();
            layout.starts.dedup();
            let dotnet = dotnet::native_aot(macho.sections());
            (
                "Mach-O",
                symbols,
                layout,
                dotnet,
                region.and_then(|it| map.insert(it.with_cfi(table))),
            )
        }
        _ => {
            let pe = source.parse_image(bytes)?;
            let base = pe.preferred_base();
            let symbols = pe.symbols();
            let mut layout = layout(pe.sections(), pe_code(&pe), &symbols, base);
            layout.function_table = pe.directory(EXCEPTIONS).map(|range| range.start);
            let dotnet = dotnet::ready_to_run(&pe);
            let dotnet = dotnet.or_else(|| dotnet::native_aot(pe.sections()));
            ("PE", symbols, layout, dotnet, map.insert_image(base, &pe))
        }
    };
    added.map_err(|error| source.error(error))?;
    Ok(Image { format, map, symbols, layout, dotnet })
}

/// Returns the layout of an image with these ranges of code.
fn layout<'a>(
    sections: &Sections<'_>,
    code: Vec<Range<u32>>,
    symbols: &Symbols<'_>,
    base: u64,
) -> Layout<'a> {
    let is_code = |rva: u32| code.iter().any(|range| range.contains(&rva));
    let starts = symbols.as_slice().iter().map(|(rva, _)| *rva).filter(|rva| is_code(*rva));
    let starts = starts.collect();
    let languages = Language::find(sections, &code, symbols.as_slice(), base);
    let mut layout = Layout::default();
    (layout.code, layout.starts, layout.languages) = (code, starts, languages);
    layout
}

/// Returns the ranges of code of an ELF image, without the sections that linkers fill: stubs, and the
/// functions that run at the start and end of each image.
fn elf_code(image: &ElfImage<'_>) -> Vec<Range<u32>> {
    const OF_LINKERS: [&str; 6] = [".init", ".fini", ".plt", ".plt.got", ".plt.sec", ".iplt"];
    let of_linkers = OF_LINKERS.map(|name| image.section(name).map(|it| it.range()));
    let mut code = image.code();
    code.retain(|range| !of_linkers.contains(&Some(range.clone())));
    code
}

/// Returns the ranges of code of a PE image. In one with metadata their section is executable, too: machine
/// code is only where the functions with unwind data are.
fn pe_code(image: &PeImage<'_>) -> Vec<Range<u32>> {
    let mut code: Vec<_> = image.sections().code().collect();
    if image.directory(CLI_HEADER).is_some() {
        let begin = image.functions().iter().map(|it| it.begin).min().unwrap_or_default();
        let end = image.functions().iter().map(|it| it.end).max().unwrap_or_default();
        for range in &mut code {
            *range = range.start.max(begin)..range.end.min(end);
        }
        code.retain(|range| !range.is_empty());
    }
    code
}

/// Returns the x86-64 part of a universal Mach-O file, and any other file itself.
fn thin(bytes: &[u8]) -> &[u8] {
    const X86_64: u32 = 0x0100_0007;
    let word = |entry: &[u8], at: usize| {
        let bytes = entry.get(at..).and_then(<[u8]>::first_chunk::<4>);
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    };
    if !bytes.starts_with(&[0xCA, 0xFE, 0xBA, 0xBE]) {
        return bytes;
    }
    let entries = bytes.get(8..).unwrap_or_default().chunks_exact(20);
    let mut entries = entries.take(word(bytes, 4) as usize);
    entries
        .find(|entry| word(entry, 0) == X86_64)
        .and_then(|entry| {
            let (at, len) = (word(entry, 8) as usize, word(entry, 12) as usize);
            bytes.get(at..at.checked_add(len)?)
        })
        .unwrap_or(bytes)
}
