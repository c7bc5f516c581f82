//! Names and lines of native code, by the symbols and the DWARF data of the files that a process had mapped.

use addr2line::{Context, Frame, demangle_auto, gimli};
use clr_dump::{CoreDump, ModuleKind, StoppedProcess as _};
use clr_unwind::{CodeMap, ElfImage, Position, Symbols};
use gimli::{Dwarf, EndianSlice, LittleEndian};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _};
use std::borrow::Cow;
use std::collections::BTreeMap;

type Bytes<'p> = EndianSlice<'p, LittleEndian>;

/// Beginnings of the paths of code that comes with a language: templates and inlined functions, which stand for nothing that the
/// authors of a module have written.
const OF_LANGUAGES: [&str; 3] = ["/usr/include/", "/usr/lib/", "/rustc/"];

/// What the file of a module says of its code.
struct Named<'p> {
    symbols: Symbols<'p>,
    /// The lowest address in the file's terms.
    first: u64,
    lines: Option<Context<Bytes<'p>>>,
}

/// Names and lines of a process's native code. Files are read when a frame is in them.
pub(crate) struct NativeNames<'p> {
    process: &'p CoreDump<'p>,
    map: CodeMap<'p>,
    /// By the module's first address.
    modules: BTreeMap<u64, Option<Named<'p>>>,
}

impl<'p> NativeNames<'p> {
    pub(crate) fn new(process: &'p CoreDump<'p>) -> Self {
        Self { process, map: process.code_map(), modules: BTreeMap::new() }
    }

    /// Returns the function at an address (VA), and its line, as far as the module's file has them: `name at file:line`.
    pub(crate) fn at(&mut self, rip: u64, position: Position) -> Option<String> {
        // A return address may lie after the last instruction of its function.
        let address = rip.wrapping_sub(u64::from(position == Position::ReturnAddress));
        let module = self.process.module_at(address)?;
        let start = module.range.start;
        let file = module.file.as_deref().ok().filter(|_| module.kind == ModuleKind::Elf);
        let named = self.modules.entry(start).or_insert_with(|| Named::read(file?)).as_ref()?;
        let rva = address - start;
        if let Some(found) = named.line(rva) {
            return Some(found);
        }
        let (name, distance) = named.symbols.find(u32::try_from(rva).ok()?)?;
        // Functions of stripped files have no names: the name before is another function's.
        let (region, in_region) = self.map.find(address)?;
        let function = region.cfi()?.function(in_region)?;
        (distance <= in_region - function.start)
            .then(|| demangle_auto(Cow::from(name), None).into_owned())
    }
}

impl<'p> Named<'p> {
    fn read(file: &'p [u8]) -> Option<Self> {
        let image = ElfImage::parse(file).ok()?;
        let parsed = ElfFile64::<object::LittleEndian>::parse(file).ok()?;
        let section = |id: gimli::SectionId| {
            let found = parsed.section_by_name(id.name());
            // Compressed ones are left out.
            let found = found.and_then(|it| it.uncompressed_data().ok());
            let bytes = match found {
                Some(Cow::Borrowed(bytes)) => bytes,
                Some(Cow::Owned(_)) | None => &[],
            };
            Ok::<_, gimli::Error>(EndianSlice::new(bytes, LittleEndian))
        };
        let lines = Dwarf::load(section).and_then(Context::from_dwarf).ok();
        Some(Self { symbols: image.symbols(), first: image.preferred_base(), lines })
    }

    /// Returns the innermost function at an address that is no language's own, with its line.
    fn line(&self, rva: u64) -> Option<String> {
        let frames = self.lines.as_ref()?.find_frames(self.first.wrapping_add(rva));
        let mut frames = frames.skip_all_loads().ok()?;
        let mut found = None;
        while let Ok(Some(frame)) = frames.next() {
            let is_languages = frame
                .location
                .as_ref()
                .and_then(|it| it.file)
                .is_none_or(|file| OF_LANGUAGES.iter().any(|folder| file.starts_with(folder)));
            found = text(&frame).or(found);
            if !is_languages {
                break;
            }
        }
        found
    }
}

/// Returns a function with its line.
fn text(frame: &Frame<'_, Bytes<'_>>) -> Option<String> {
    let name = frame.function.as_ref()?.demangle().ok()?;
    let place = frame.location.as_ref().and_then(|it| Some((it.file?, it.line?)));
    Some(match place {
        Some((file, line)) => format!("{name} at {file}:{line}"),
        None => name.into_owned(),
    })
}
