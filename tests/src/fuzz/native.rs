//! Fuzz targets of native code: call frame information, ELF and Mach-O images.

use super::steps::{ALL_RULES, Memories, POSITIONS, make_registers, step, unwind};
use super::{FUNCTION_LIMIT, second};
use crate::dwarf;
use clr_recording::vectors::fuzz::IMAGE_BASE;
use clr_unwind::cfi::{CfiProblem, CfiTable, RegisterRule};
use clr_unwind::{
    Cache, CfiSections, CodeMap, CodeRegion, Convention, ElfImage, FunctionTable, Guesses,
    MachoImage, RegionKind, Registers, Section, Sections, Symbols, Unwinder,
};

/// RVAs of the code and of the `.eh_frame` in [`eh_frame`].
const NATIVE_CODE: u32 = 0x1000;
const NATIVE_EH_FRAME: u32 = 0x2000;

/// Compiles call frame information that is made from `data`, and unwinds with it:
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0, 1 | offset of the instruction in the code |
/// | 2 | high half: kind of values in the registers other than rsp |
/// | 3 | value of rsp |
/// | 4 to 7 | seed of the registers |
/// | 8, 9 | length of `.eh_frame`, which follows; after it is `.debug_frame` |
///
/// There are 4 KiB of code at RVA 0x1000, and `.eh_frame` is at 0x2000. If the length of its first entry goes beyond it,
/// it is the program of a function instead.
///
/// # Panics
/// As [`unwind_info`](super::unwind_info) does; also if the table contradicts itself or is out of
/// proportion.
pub fn eh_frame(data: &[u8]) {
    let Some((&[pc_low, pc_high, kind, stack, s0, s1, s2, s3, l0, l1], rest)) =
        data.split_first_chunk()
    else {
        return;
    };
    let len = usize::from(u16::from_le_bytes([l0, l1]));
    let Some((eh_frame, debug_frame)) = rest.split_at_checked(len) else {
        return;
    };
    if rest.len() > 1 << 16 {
        return;
    }
    let first = eh_frame.first_chunk().map(|length| u32::from_le_bytes(*length));
    let made = first.filter(|length| *length as usize > eh_frame.len()).map(|_| section(eh_frame));
    let eh_frame = made.as_deref().unwrap_or(eh_frame);
    // Code that begins with the entries of a PLT.
    let mut code = [0x90; 0x1000];
    let plt = b"\xFF\x35\x02\0\0\0\xFF\x25\x04\0\0\0\x68\0\0\0\0\xE9\0\0\0\0";
    code[..plt.len()].copy_from_slice(plt);
    let eh_frame = Section { rva: NATIVE_EH_FRAME, bytes: eh_frame, executable: false };
    let code = Section { rva: NATIVE_CODE, bytes: &code, executable: true };
    let sections = Sections::new(vec![code, eh_frame]).expect("the sections do not overlap");
    let cfi = CfiSections {
        eh_frame: Some(eh_frame),
        debug_frame: Some(debug_frame),
        text: Some(NATIVE_CODE),
        got: Some(NATIVE_EH_FRAME),
        ..CfiSections::default()
    };
    let table = CfiTable::new(&cfi, &sections);
    // The second unwinder knows nothing of the linker's choice between functions.
    let bytes = [&[0; NATIVE_EH_FRAME as usize], eh_frame.bytes, &[0; 4]].concat();
    let size = NATIVE_EH_FRAME.into();
    let second = dwarf::Unwinder::of_eh_frame(IMAGE_BASE, size, &bytes, NATIVE_EH_FRAME);
    let second = second.ok().filter(|second| {
        let starts = table.functions().map(|function| IMAGE_BASE + u64::from(function.start));
        second.functions().count() == 1 && second.functions().eq(starts)
    });
    check_lazy(&CfiTable::lazy(&cfi, &sections), &table);
    // Each byte of instructions yields at most one row, and the number of general rules is limited.
    assert!(table.size() <= (1 << 20) + 128 * rest.len(), "{} bytes", table.size());
    check_table(&table);
    let functions = FunctionTable::default();
    let size = NATIVE_EH_FRAME + (1 << 16);
    let region =
        CodeRegion::from_sections(IMAGE_BASE, size, RegionKind::Image, sections, functions);
    let starts: Vec<_> = table.functions().take(FUNCTION_LIMIT / 8).collect();
    let mut map = CodeMap::new();
    map.insert(region.expect("the region is not empty").with_cfi(table)).expect("the map is empty");

    let seed = u32::from_le_bytes([s0, s1, s2, s3]);
    let pc = NATIVE_CODE + u32::from(u16::from_le_bytes([pc_low, pc_high]));
    let memories = Memories::new(rest);
    let registers = make_registers(kind >> 4, stack, seed);
    let ends = starts.iter().flat_map(|function| {
        let middle = function.start.midpoint(function.end);
        [function.start, middle, function.end - 1, function.end]
    });
    let mut cache = Cache::new();
    for rva in core::iter::once(pc).chain(ends) {
        let registers = Registers { rip: IMAGE_BASE + u64::from(rva), ..registers };
        unwind(&map, &mut cache, &registers, &memories, &ALL_RULES);
        if let Some(second) = &second {
            second::compare_dwarf(&map, second, &registers, &memories.copied);
        }
        let guessing = Unwinder::new(&map).with_guesses(Guesses::FramePointers);
        for position in POSITIONS {
            let first = step(guessing, &registers, position, &memories.computed);
            let other = step(guessing, &registers, position, &memories.copied);
            assert_eq!(first, other, "{position:?}: guessing");
        }
    }
}

/// Returns a `.eh_frame` with one function, whose program is given. The lowest bit of its first byte says if the
/// function is the frame of a signal.
fn section(program: &[u8]) -> Vec<u8> {
    const FUNCTION: u32 = NATIVE_CODE + 0x100;
    const LEN: u32 = 0x40;
    let is_signal = program.first().is_some_and(|byte| byte & 1 == 1);
    let letters: &[u8] = if is_signal { b"zRS\0" } else { b"zR\0" };
    // Factors 1 and -8; the return address in column 16; addresses of 32 bits from their own place. At the entry, the
    // CFA is rsp + 8, and the return address is below it.
    let rules = [1, 0x78, 16, 1, 0x1B, 0x0C, 7, 8, 0x90, 1];
    let mut section = entry(&[&[0, 0, 0, 0, 1], letters, &rules].concat());
    let (back, place) = (section.len() as u32 + 4, section.len() as u32 + 8);
    let begin = FUNCTION.wrapping_sub(NATIVE_EH_FRAME + place);
    let header: Vec<u8> = [back, begin, LEN].into_iter().flat_map(u32::to_le_bytes).collect();
    section.extend(entry(&[&header[..], &[0], program].concat()));
    section
}

/// Returns an entry with its length, and with padding.
fn entry(content: &[u8]) -> Vec<u8> {
    let len = content.len().next_multiple_of(4);
    let mut entry = (len as u32).to_le_bytes().to_vec();
    entry.extend(content);
    entry.resize(4 + len, 0);
    entry
}

/// Checks that functions ascend and do not overlap, and that rows contain the addresses at which
/// they are found.
fn check_table(table: &CfiTable<'_>) {
    let mut end = 0;
    for function in table.functions() {
        assert!(end <= function.start && function.start < function.end, "{function:x?}");
        end = function.end;
    }
    for function in table.functions().take(FUNCTION_LIMIT) {
        for rva in [function.start, function.start.midpoint(function.end), function.end - 1] {
            assert_eq!(table.function(rva).as_ref(), Some(&function));
            match table.row(rva) {
                Ok(Some(row)) => assert!(row.range.contains(&rva), "{rva:#x} {row:x?}"),
                Ok(None) => panic!("no row at {rva:#x} in a function"),
                Err(_) => assert!(table.problems() > 0),
            }
        }
    }
    assert_eq!(table.problems() == 0, table.first_problem().is_none());
    assert_eq!(table.row(u32::MAX), Ok(None));
}

/// Checks that a lazy table without a header has the rows of an eager one.
fn check_lazy(lazy: &CfiTable<'_>, eager: &CfiTable<'_>) {
    assert!(lazy.functions().eq(eager.functions()));
    for function in eager.functions().take(FUNCTION_LIMIT) {
        for rva in [function.start, function.start.midpoint(function.end), function.end - 1] {
            assert_eq!(lazy.function(rva).as_ref(), Some(&function));
            match (lazy.row(rva), eager.row(rva)) {
                // Neighbouring rows with the same rules are one there.
                (Ok(Some(mut ours)), Ok(Some(mut row))) => {
                    let range = row.range.clone();
                    assert!(range.start <= ours.range.start && ours.range.end <= range.end);
                    assert!(ours.range.contains(&rva));
                    ours.range = range;
                    // A row of the usual form does not say which of these registers are kept.
                    for registers in [&mut ours.registers, &mut row.registers] {
                        for register in Convention::SystemV.nonvolatile().gprs() {
                            let rule = &mut registers[register as usize];
                            *rule = rule.filter(|rule| *rule != RegisterRule::SameValue);
                        }
                    }
                    assert_eq!(ours, row);
                }
                (Ok(Some(_)), Err(error)) => {
                    assert_eq!(error.problem, CfiProblem::TooManyRules);
                }
                (ours, row) => assert_eq!(ours, row),
            }
        }
    }
    assert_eq!(lazy.row(u32::MAX), Ok(None));
}

/// Parses `data` as an ELF image and as a Mach-O image, examines its content, and unwinds from the
/// first and last byte of its functions.
///
/// # Panics
/// As [`eh_frame`] does; also if a look-up in the image contradicts its sections or symbols.
pub(super) fn examine_images(data: &[u8]) {
    if let Ok(image) = ElfImage::parse(data) {
        native_image(data, image.sections(), &image.cfi(), &image.symbols(), |map, base| {
            map.insert_elf(base, &image).is_ok()
        });
    }
    if let Ok(image) = MachoImage::parse(data) {
        native_image(data, image.sections(), &image.cfi(), &image.symbols(), |map, base| {
            map.insert_macho(base, &image).is_ok()
        });
    }
}

fn native_image<'a>(
    data: &[u8],
    sections: &Sections<'a>,
    cfi: &CfiSections<'a>,
    symbols: &Symbols<'a>,
    insert: impl Fn(&mut CodeMap<'a>, u64) -> bool,
) {
    for section in sections.as_slice() {
        let len = section.bytes.len() as u32;
        for at in [0, len / 2, len - 1] {
            let found = sections.bytes_from(section.rva + at);
            assert_eq!(found, section.bytes.get(at as usize..));
        }
    }
    for (rva, name) in symbols.as_slice() {
        assert_eq!(symbols.find(*rva), Some((*name, 0)));
    }
    insert(&mut CodeMap::new(), u64::MAX - 0xFFFF);
    let mut map = CodeMap::new();
    if !insert(&mut map, IMAGE_BASE) {
        return;
    }
    assert!(!insert(&mut map, IMAGE_BASE), "the same base is accepted twice");
    let Some(table) = map.regions().next().and_then(CodeRegion::cfi) else {
        panic!("native images have a table");
    };
    check_table(&CfiTable::new(cfi, sections));
    let without_header = CfiSections { eh_frame_hdr: None, ..*cfi };
    check_lazy(&CfiTable::lazy(&without_header, sections), &CfiTable::new(cfi, sections));
    // The header may list anything.
    let mut end = 0;
    for function in table.functions().take(FUNCTION_LIMIT) {
        assert!(end <= function.start && function.start < function.end, "{function:x?}");
        end = function.end;
        if let Ok(Some(row)) = table.row(function.start) {
            assert!(row.range.contains(&function.start), "{function:x?} {row:x?}");
        }
    }
    let readable = data.get(..1 << 16).unwrap_or(data);
    let memories = Memories::new(readable);
    let registers = make_registers(0, 0xFF, 1);
    let mut cache = Cache::new();
    for function in table.functions().take(FUNCTION_LIMIT / 8) {
        for rva in [function.start, function.end - 1] {
            let registers = Registers { rip: IMAGE_BASE + u64::from(rva), ..registers };
            unwind(&map, &mut cache, &registers, &memories, &ALL_RULES);
        }
    }
}
