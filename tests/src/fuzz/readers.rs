//! What the fuzz targets of the linter and of traces do with a file.

use clr_lint::{Language, Layout, Linter};
use clr_unwind::{CodeMap, ElfImage, MachoImage, PeImage, Sections, Symbols};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Number of the directory with the RUNTIME_FUNCTIONs.
const EXCEPTIONS: usize = 3;
/// Size of an image at most, in bytes: each byte of code takes time.
const IMAGE_LIMIT: usize = 1 << 16;

/// Judges the unwind data of an image.
pub(super) fn lint_images(data: &[u8]) {
    let data = data.get(..IMAGE_LIMIT).unwrap_or(data);
    let mut map = CodeMap::new();
    if let Ok(image) = PeImage::parse(data) {
        let base = image.preferred_base();
        let code = image.sections().code().collect();
        let mut layout = layout(image.sections(), code, &image.symbols(), base);
        layout.function_table = image.directory(EXCEPTIONS).map(|range| range.start);
        if map.insert_image(base, &image).is_ok() {
            lint(&map, &layout);
        }
    } else if let Ok(image) = ElfImage::parse(data) {
        let base = image.preferred_base();
        let mut layout = layout(image.sections(), image.code(), &image.symbols(), base);
        layout.entry = image.entry();
        layout.search_table = image.cfi().eh_frame_hdr;
        if map.insert_elf(base, &image).is_ok() {
            lint(&map, &layout);
        }
    } else if let Ok(image) = MachoImage::parse(data) {
        let base = image.preferred_base();
        let mut layout = layout(image.sections(), image.code(), &image.symbols(), base);
        layout.starts.extend(image.function_starts());
        layout.starts.sort_unstable();
        if map.insert_macho(base, &image).is_ok() {
            lint(&map, &layout);
        }
    }
}

fn layout<'a>(
    sections: &Sections<'_>,
    code: Vec<Range<u32>>,
    symbols: &Symbols<'_>,
    base: u64,
) -> Layout<'a> {
    let mut layout = Layout::default();
    layout.languages = Language::find(sections, &code, symbols.as_slice(), base);
    layout.starts = symbols.as_slice().iter().map(|(rva, _)| *rva).collect();
    layout.code = code;
    layout
}

fn lint(map: &CodeMap<'_>, layout: &Layout<'_>) {
    let Some(region) = map.regions().next() else { return };
    let [one, two] = [1, 2].map(|jobs| {
        let jobs = NonZeroUsize::new(jobs).expect("it is not 0");
        let linter = Linter::new(map, region).with_layout(layout.clone());
        linter.run(&(0..u32::MAX), jobs, &mut |_| ())
    });
    assert_eq!(one, two, "assertion failed: the report depends on the number of threads");
}

/// Prints a trace, compares it with itself, and makes its program.
#[cfg(target_pointer_width = "64")]
pub(super) fn read_trace(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // What is printed need not be whole: a call may end that has not begun.
    let printed = clr_trace::as_text(text);
    let Ok(trace) = clr_trace::Trace::read(text) else { return };
    assert_eq!(printed.err(), None, "assertion failed: what can be read cannot be printed");
    let same = clr_trace::compare(&trace, &trace, &|_, _| true);
    assert_eq!(same.differences, [], "assertion failed: a trace differs from itself");
    if let Some(program) = clr_trace::Program::of(&trace) {
        let _ = clr_scenario::Scenario::parse(&program.text("a trace"));
    }
}

/// Does nothing: traces are of 64-bit processes.
#[cfg(not(target_pointer_width = "64"))]
pub(super) fn read_trace(_: &[u8]) {}
