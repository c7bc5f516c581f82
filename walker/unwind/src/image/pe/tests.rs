//! Tests of reading PE files.

use super::*;
use crate::code_map::{CodeMap, CodeRegion};
use crate::compat::Rules;
use crate::memory::Segment;
use crate::registers::{Convention, Gpr, Registers};
use crate::unwinder::win64::UnwindInfo;
use crate::unwinder::{Position, UnwindError, Unwinder};

fn fixture(name: &str) -> &'static [u8] {
    clr_fixtures::get(&alloc::format!("win64/img/{name}.dll")).unwrap()
}

#[test]
fn the_fixtures_have_functions_with_unwind_data() {
    for (name, base, size, functions) in [
        ("asm_raw", 0x1_A700_0000, 0x1_A000, 894),
        ("clang_O2", 0x1_A100_0000, 0xC000, 72),
        ("clang_O2_lld", 0x1_AB00_0000, 0x8000, 72),
        ("cpp_gcc_O2", 0x1_C200_0000, 0xE000, 74),
        ("gcc_O2", 0x1_9200_0000, 0xC000, 91),
    ] {
        let image = PeImage::parse(fixture(name)).unwrap();
        assert_eq!((image.preferred_base(), image.size()), (base, size), "{name}");
        assert_eq!(image.functions().len(), functions, "{name}");
        let region = CodeRegion::image(base, &image).unwrap();
        for function in image.functions().iter() {
            assert!(region.is_executable(function.begin), "{name} {function:x?}");
            let info = UnwindInfo::read(&region, function.unwind_info).unwrap();
            assert!(matches!(info.version(), 1 | 2), "{name} {function:x?}");
            assert!(info.codes().all(|code| code.is_ok()), "{name} {function:x?}");
        }
    }
}

#[test]
fn unwind_data_is_found_in_whatever_section() {
    // GNU ld keeps .xdata; lld puts it into .rdata, among other data.
    for (name, section) in [("clang_O2", ".xdata"), ("clang_O2_lld", ".rdata")] {
        let image = PeImage::parse(fixture(name)).unwrap();
        let rva = image.functions().iter().next().unwrap().unwind_info;
        let header = image.section_headers.section_containing(rva).unwrap();
        assert_eq!(header.raw_name(), section.as_bytes());
    }
}

#[test]
fn exports_are_named() {
    for name in ["asm_raw", "clang_O2", "clang_O2_lld", "cpp_gcc_O2", "gcc_O2"] {
        let tests = clr_fixtures::get(&alloc::format!("win64/vec/{name}.tests")).unwrap();
        let image = PeImage::parse(fixture(name)).unwrap();
        let symbols = image.symbols();
        let mut named: Vec<_> = symbols
            .as_slice()
            .iter()
            .map(|(_, name)| *name)
            .filter(|name| name.starts_with("t_"))
            .collect();
        named.sort_unstable();
        let mut expected: Vec<_> = str::from_utf8(tests).unwrap().lines().collect();
        expected.sort_unstable();
        assert_eq!(named, expected, "{name}");
    }
    let image = PeImage::parse(fixture("gcc_O2")).unwrap();
    let symbols = image.symbols();
    assert_eq!(symbols.as_slice()[0], (0x11C0, "t_leafcall"));
    assert_eq!(symbols.find(0x11BF), None);
    assert_eq!(symbols.find(0x11C0), Some(("t_leafcall", 0)));
    assert_eq!(symbols.find(0x11EF), Some(("t_leafcall", 0x2F)));
    assert_eq!(symbols.find(0x11F0), Some(("t_manyargs", 0)));
}

#[test]
fn an_image_may_lie_at_any_host_address() {
    let image = fixture("gcc_O2");
    let mut shifted = vec![0xEE];
    shifted.extend_from_slice(image);
    let (image, shifted) = (PeImage::parse(image).unwrap(), PeImage::parse(&shifted[1..]).unwrap());
    assert_eq!(shifted.symbols().as_slice(), image.symbols().as_slice());
    assert!(shifted.functions().iter().eq(image.functions().iter()));
}

// Offsets in a small image made by hand.
const NT_HEADERS: usize = 0x40;
const FILE_HEADER: usize = NT_HEADERS + 4;
const OPTIONAL_HEADER: usize = FILE_HEADER + 20;
const SIZE_OF_HEADERS: usize = OPTIONAL_HEADER + 60;
const EXPORTS: usize = OPTIONAL_HEADER + 112;
const EXCEPTIONS: usize = EXPORTS + 3 * 8;
const SECTION_TABLE: usize = EXPORTS + 16 * 8;
const SECOND_SECTION: usize = SECTION_TABLE + 40;
const SECTION_TABLE_END: usize = SECOND_SECTION + 40;
const TEXT: usize = 0x200;
const DATA: usize = TEXT + 0x40;
const END: usize = DATA + 0x80;
// Fields of a section header.
const VIRTUAL_SIZE: usize = 8;
const VIRTUAL_ADDRESS: usize = 12;
const RAW_SIZE: usize = 16;
const RAW_POINTER: usize = 20;
const CHARACTERISTICS: usize = 36;

fn put(bytes: &mut [u8], at: usize, fields: &[u32]) {
    let fields: Vec<_> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    bytes[at..at + fields.len()].copy_from_slice(&fields);
}

/// Returns an image with .text of 0x40 bytes at RVA 0x1000, and data of 0x80 bytes at 0x2000
/// that begins with two RUNTIME_FUNCTIONs.
fn small_image() -> Vec<u8> {
    let mut bytes = vec![0; END];
    bytes[..2].copy_from_slice(b"MZ");
    put(&mut bytes, 0x3C, &[NT_HEADERS as u32]);
    bytes[NT_HEADERS..][..4].copy_from_slice(b"PE\0\0");
    put(&mut bytes, FILE_HEADER, &[2 << 16 | 0x8664]);
    put(&mut bytes, FILE_HEADER + 16, &[0x2022 << 16 | (112 + 16 * 8)]);
    put(&mut bytes, OPTIONAL_HEADER, &[0x20B]);
    put(&mut bytes, OPTIONAL_HEADER + 24, &[0x4000_0000, 1]);
    put(&mut bytes, OPTIONAL_HEADER + 56, &[0x3000, TEXT as u32]);
    put(&mut bytes, OPTIONAL_HEADER + 108, &[16]);
    put(&mut bytes, EXCEPTIONS, &[0x2000, 24]);
    for (at, rva, raw, len, characteristics) in [
        (SECTION_TABLE, 0x1000, TEXT, DATA - TEXT, 0x6000_0020),
        (SECOND_SECTION, 0x2000, DATA, END - DATA, 0x4000_0040),
    ] {
        put(&mut bytes, at + VIRTUAL_SIZE, &[len as u32, rva, len as u32, raw as u32]);
        put(&mut bytes, at + CHARACTERISTICS, &[characteristics]);
    }
    put(&mut bytes, DATA, &[0x1000, 0x1020, 0x2040, 0x1020, 0x1040, 0x2048]);
    bytes
}

/// Returns the small image with fields written over it.
fn patched(patches: &[(usize, u32)]) -> Vec<u8> {
    let mut bytes = small_image();
    for (at, field) in patches {
        put(&mut bytes, *at, &[*field]);
    }
    bytes
}

/// Returns the RVA and length of each section, or why there are none.
fn parse(bytes: &[u8]) -> Result<Vec<(u32, usize)>, ImageError> {
    let image = PeImage::parse(bytes)?;
    let sections = image.sections().as_slice().iter();
    Ok(sections.map(|section| (section.rva, section.bytes.len())).collect())
}

#[test]
fn the_small_image_is_whole() {
    let bytes = small_image();
    let image = PeImage::parse(&bytes).unwrap();
    assert_eq!((image.preferred_base(), image.size()), (0x1_4000_0000, 0x3000));
    assert_eq!(image.functions().find(0x1020).unwrap().unwind_info, 0x2048);
    let executable: Vec<_> =
        image.sections().as_slice().iter().map(|section| section.executable).collect();
    assert_eq!(executable, [false, true, false]);
    assert_eq!(parse(&bytes), Ok(vec![(0, 0x200), (0x1000, 0x40), (0x2000, 0x80)]));
    assert!(image.symbols().as_slice().is_empty());
    assert_eq!(image.symbols().find(0x1000), None);
}

#[test]
fn other_files_are_refused() {
    let cases = [
        (0, u32::from_le_bytes(*b"ZM\0\0"), ImageError::Headers),
        (0x3C, 0xFFFF_FFF0, ImageError::Headers),
        (0x3C, END as u32 - 8, ImageError::Headers),
        (NT_HEADERS, u32::from_le_bytes(*b"NE\0\0"), ImageError::Headers),
        // PE32.
        (OPTIONAL_HEADER, 0x10B, ImageError::Headers),
        (FILE_HEADER, 2 << 16 | 0xAA64, ImageError::Machine { machine: 0xAA64 }),
        (FILE_HEADER, 2 << 16 | 0x014C, ImageError::Machine { machine: 0x014C }),
        // ARM64 of Linux, and x86-64 of no known system.
        (FILE_HEADER, 2 << 16 | 0xD11D, ImageError::Machine { machine: 0xD11D }),
        (FILE_HEADER, 2 << 16 | 0x8665, ImageError::Machine { machine: 0x8665 }),
        (FILE_HEADER, 0xFFFF << 16 | 0x8664, ImageError::SectionTable),
        (SIZE_OF_HEADERS, END as u32 + 1, ImageError::SectionData { rva: 0 }),
    ];
    for (at, field, error) in cases {
        assert_eq!(parse(&patched(&[(at, field)])), Err(error), "{field:#x} at {at:#x}");
    }
}

#[test]
fn ready_to_run_images_of_all_systems_are_read() {
    for (machine, target_os, convention) in [
        (0x8664, TargetOs::Windows, Convention::WindowsX64),
        (0xFD1D, TargetOs::Linux, Convention::SystemV),
        (0xC020, TargetOs::Apple, Convention::SystemV),
        (0x2BA0, TargetOs::FreeBsd, Convention::SystemV),
        (0x9FF7, TargetOs::NetBsd, Convention::SystemV),
        (0x9FF6, TargetOs::SunOs, Convention::SystemV),
    ] {
        let bytes = patched(&[(FILE_HEADER, 2 << 16 | machine)]);
        let image = PeImage::parse(&bytes).unwrap();
        assert_eq!(image.target_os(), target_os);
        assert_eq!(image.functions().find(0x1020).unwrap().unwind_info, 0x2048);
        let mut map = CodeMap::new();
        map.insert_image(0x7000_0000, &image).unwrap();
        assert_eq!(Unwinder::new(&map).convention(), convention, "{target_os:?}");
        map.remove(0x7000_0000).unwrap();
        assert_eq!(Unwinder::new(&map).convention(), Convention::WindowsX64);
    }
}

/// Intel's compiler has put codes with operation 11 into DLLs for Windows, where it is none.
#[test]
fn operation_11_is_read_in_images_of_unix_alone() {
    // Version 1; rbp is rsp + 0x21 * 16.
    let info = [0xF503_0001, 0x0021_0B00, 0];
    let windows = patched(&[(DATA + 0x40, info[0]), (DATA + 0x44, info[1])]);
    let mut linux = windows.clone();
    put(&mut linux, FILE_HEADER, &[2 << 16 | 0xFD1D]);
    let [windows, linux] = [&windows, &linux].map(|bytes| PeImage::parse(bytes).unwrap());
    // A process of Unix may have both.
    let mut map = CodeMap::new();
    map.insert_image(0x7000_0000, &windows).unwrap();
    map.insert_image(0x8000_0000, &linux).unwrap();
    let stack = [0; 0x100];
    let memory = Segment::new(0x1000, &stack);
    let step = |base: u64, rules| {
        let mut registers = Registers { rip: base + 0x1010, ..Registers::default() };
        registers.set(Gpr::Rsp, 0x1000);
        registers.set(Gpr::Rbp, 0x1000 + 0x210 + 8);
        let unwinder = Unwinder::new(&map).with_rules(rules);
        unwinder.step(&mut registers, Position::Interrupted, &memory)?;
        Ok(registers.rsp())
    };
    let invalid = Err(UnwindError::InvalidOperation { operation: 11, rva: 0x2044 });
    assert_eq!(step(0x8000_0000, Rules::Precise), Ok(0x1010));
    assert_eq!(step(0x7000_0000, Rules::Precise), invalid);
    for rules in [Rules::CoreClr, Rules::Ntdll] {
        assert_eq!(step(0x7000_0000, rules), invalid);
        assert_eq!(step(0x8000_0000, rules), invalid);
    }
    assert_eq!(step(0x7000_0000, Rules::CoreClrUnix), Ok(0x1010));
}

#[test]
fn an_image_that_is_cut_off_is_refused() {
    let bytes = small_image();
    for len in 0..END {
        let expected = match len {
            0..SECTION_TABLE => ImageError::Headers,
            SECTION_TABLE..SECTION_TABLE_END => ImageError::SectionTable,
            SECTION_TABLE_END..TEXT => ImageError::SectionData { rva: 0 },
            TEXT..DATA => ImageError::SectionData { rva: 0x1000 },
            _ => ImageError::SectionData { rva: 0x2000 },
        };
        assert_eq!(parse(&bytes[..len]), Err(expected), "{len:#x} bytes");
    }
}

#[test]
fn sections_that_cannot_be_are_refused() {
    let second = |field, value| patched(&[(SECOND_SECTION + field, value)]);
    let overlap = |rva| Err(ImageError::SectionOverlap { rva });
    assert_eq!(parse(&second(VIRTUAL_ADDRESS, 0x103F)), overlap(0x103F));
    assert_eq!(parse(&second(VIRTUAL_ADDRESS, 0x1000)), overlap(0x1000));
    assert_eq!(parse(&second(VIRTUAL_ADDRESS, 0x0FFF)), overlap(0x1000));
    assert_eq!(parse(&second(VIRTUAL_ADDRESS, 0x01FF)), overlap(0x01FF), "in the headers");
    assert_eq!(parse(&second(VIRTUAL_ADDRESS, 0xFFFF_FFF0)), overlap(0xFFFF_FFF0));
    let outside = Err(ImageError::SectionData { rva: 0x2000 });
    assert_eq!(parse(&second(RAW_POINTER, DATA as u32 + 1)), outside);
    assert_eq!(parse(&second(RAW_POINTER, u32::MAX)), outside);
    let longer = [(VIRTUAL_SIZE, 0x81), (RAW_SIZE, 0x81)];
    let longer = longer.map(|(field, value)| (SECOND_SECTION + field, value));
    assert_eq!(parse(&patched(&longer)), outside);
}

#[test]
fn a_section_has_the_bytes_that_are_both_in_file_and_memory() {
    let len = |patches: [(usize, u32); 2]| {
        let patches = patches.map(|(field, value)| (SECTION_TABLE + field, value));
        let sections = parse(&patched(&patches)).unwrap();
        sections.iter().find(|(rva, _)| *rva == 0x1000).map(|(_, len)| *len)
    };
    assert_eq!(len([(VIRTUAL_SIZE, 0x30), (RAW_SIZE, 0x40)]), Some(0x30), "padding");
    assert_eq!(len([(VIRTUAL_SIZE, 0x800), (RAW_SIZE, 0x40)]), Some(0x40), "zeroes after it");
    assert_eq!(len([(VIRTUAL_SIZE, 0), (RAW_SIZE, 0x40)]), Some(0x40), "old linkers");
    assert_eq!(len([(VIRTUAL_SIZE, 0x800), (RAW_SIZE, 0)]), None, ".bss");
    assert_eq!(len([(RAW_SIZE, 0), (RAW_POINTER, u32::MAX)]), None, ".bss anywhere");
}

#[test]
fn the_exception_directory_lies_in_one_section() {
    let functions = |rva, size| {
        let bytes = patched(&[(EXCEPTIONS, rva), (EXCEPTIONS + 4, size)]);
        PeImage::parse(&bytes).map(|image| image.functions().len())
    };
    assert_eq!(functions(0x2000, 24), Ok(2));
    assert_eq!(functions(0x2000, 23), Ok(1));
    assert_eq!(functions(0x2000, 0x80), Ok(10));
    // None: an image with leaf functions only.
    assert_eq!(functions(0, 0), Ok(0));
    assert_eq!(functions(0x9000, 0), Ok(0));
    for (rva, size) in
        [(0x2000, 0x81), (0x207F, 12), (0x3000, 12), (0x1FF8, 24), (0x2000, u32::MAX)]
    {
        let error = ImageError::ExceptionDirectory { rva, size };
        assert_eq!(functions(rva, size), Err(error), "{rva:#x}");
    }
    // Fewer directories than that.
    let bytes = patched(&[(OPTIONAL_HEADER + 108, 3)]);
    assert_eq!(PeImage::parse(&bytes).unwrap().functions().len(), 0);
}

/// Returns a COFF symbol: its name or the offset of a long one, value, section, class, number
/// of auxiliaries.
fn coff_symbol(name: [u8; 8], value: u32, section: u16, class: u8, auxiliaries: u8) -> Vec<u8> {
    let mut symbol = name.to_vec();
    symbol.extend(value.to_le_bytes());
    symbol.extend(section.to_le_bytes());
    symbol.extend([0x20, 0, class, auxiliaries]);
    symbol
}

#[test]
fn coff_symbols_of_code_are_named() {
    const EXTERNAL: u8 = 2;
    const STATIC: u8 = 3;
    const LABEL: u8 = 6;
    let symbols = [
        coff_symbol(*b"main\0\0\0\0", 8, 1, EXTERNAL, 0),
        // A name of its 8 bytes, with an auxiliary that is no symbol.
        coff_symbol(*b"__helper", 0x10, 1, STATIC, 1),
        vec![0; 18],
        coff_symbol([0, 0, 0, 0, 4, 0, 0, 0], 0x20, 1, EXTERNAL, 0),
        // The start of a section, a label, data, an absolute value, no such section, no such
        // name, an empty name.
        coff_symbol(*b".text\0\0\0", 0, 1, STATIC, 0),
        coff_symbol(*b"label\0\0\0", 0x11, 1, LABEL, 0),
        coff_symbol(*b"data\0\0\0\0", 0, 2, EXTERNAL, 0),
        coff_symbol(*b"absolute", 0x12, 0xFFFF, EXTERNAL, 0),
        coff_symbol(*b"nowhere\0", 0x13, 9, EXTERNAL, 0),
        coff_symbol([0, 0, 0, 0, 0xFF, 0, 0, 0], 0x14, 1, EXTERNAL, 0),
        coff_symbol([0, 0, 0, 0, 16, 0, 0, 0], 0x15, 1, EXTERNAL, 0),
        // Not UTF-8.
        coff_symbol([0xFF; 8], 0x16, 1, EXTERNAL, 0),
    ]
    .concat();
    let count = (symbols.len() / 18) as u32;
    let mut bytes = patched(&[(FILE_HEADER + 8, END as u32), (FILE_HEADER + 12, count)]);
    bytes.extend(symbols);
    let strings = b"___chkstk_ms\0";
    bytes.extend((4 + strings.len() as u32).to_le_bytes());
    bytes.extend(strings);
    let image = PeImage::parse(&bytes).unwrap();
    let symbols = image.symbols();
    let expected = [(0x1008, "main"), (0x1010, "__helper"), (0x1020, "___chkstk_ms")];
    assert_eq!(symbols.as_slice(), expected);
    assert_eq!(symbols.find(0x101F), Some(("__helper", 0xF)));
    // A table that is cut off counts as none.
    let cut = &bytes[..END + 20];
    assert!(PeImage::parse(cut).unwrap().symbols().as_slice().is_empty());
}

#[test]
fn the_length_of_the_string_table_is_no_name() {
    let offsets = 0..6;
    let symbol = |at: u8| coff_symbol([0, 0, 0, 0, at, 0, 0, 0], at.into(), 1, 2, 0);
    let count = offsets.len() as u32;
    let mut bytes = patched(&[(FILE_HEADER + 8, END as u32), (FILE_HEADER + 12, count)]);
    bytes.extend(offsets.flat_map(symbol));
    // A length without a 0 byte, so that a name would start at each of its bytes.
    let strings = bytes.len();
    let len = 0x0101_4141_u32;
    bytes.extend(len.to_le_bytes());
    bytes.extend(b"ab\0");
    bytes.resize(strings + len as usize, 0);
    let image = PeImage::parse(&bytes).unwrap();
    assert_eq!(image.symbols().as_slice(), [(0x1004, "ab"), (0x1005, "b")]);
}

/// Returns the small image with two exports: `out` at 0x1008, and a forwarder.
fn exporting_image() -> Vec<u8> {
    let at = 0x2020;
    let mut bytes = patched(&[(EXPORTS, at), (EXPORTS + 4, 0x60)]);
    // Ordinal base, functions, names; then where the tables are.
    let tables = [at + 40, at + 48, at + 56];
    let directory = [0, 0, 0, 0, 1, 2, 2, tables[0], tables[1], tables[2]];
    put(&mut bytes, DATA + 0x20, &directory);
    put(&mut bytes, DATA + 0x20 + 40, &[0x1008, at + 0x44]);
    put(&mut bytes, DATA + 0x20 + 48, &[at + 0x3C, at + 0x40]);
    put(&mut bytes, DATA + 0x20 + 56, &[1 << 16]);
    bytes[DATA + 0x20 + 0x3C..][..16].copy_from_slice(b"out\0fwd\0lib.fun\0");
    bytes
}

#[test]
fn forwarders_are_not_in_this_image() {
    let bytes = exporting_image();
    let image = PeImage::parse(&bytes).unwrap();
    assert_eq!(image.symbols().as_slice(), [(0x1008, "out")]);
}

#[test]
fn of_several_names_the_exported_one_is_kept() {
    let mut bytes = exporting_image();
    put(&mut bytes, FILE_HEADER + 8, &[END as u32, 2]);
    bytes.extend(coff_symbol(*b"a_static", 8, 1, 3, 0));
    bytes.extend(coff_symbol(*b"other\0\0\0", 0x30, 1, 3, 0));
    bytes.extend(4_u32.to_le_bytes());
    let image = PeImage::parse(&bytes).unwrap();
    assert_eq!(image.symbols().as_slice(), [(0x1008, "out"), (0x1030, "other")]);
}

#[test]
fn exports_that_cannot_be_read_are_left_out() {
    for (at, field) in [
        // The directory, the number of names, the pointers to a name and to the tables.
        (EXPORTS, 0x9000),
        (EXPORTS, 0x2078),
        (DATA + 0x20 + 24, u32::MAX),
        (DATA + 0x20 + 48, 0x9000),
        (DATA + 0x20 + 28, 0x9000),
        (DATA + 0x20 + 32, 0x9000),
        (DATA + 0x20 + 36, 0x9000),
        // Ordinals without a function.
        (DATA + 0x20 + 56, 2 << 16 | 2),
    ] {
        let mut bytes = exporting_image();
        put(&mut bytes, at, &[field]);
        let image = PeImage::parse(&bytes).unwrap();
        assert!(image.symbols().as_slice().is_empty(), "{field:#x} at {at:#x}");
    }
}

/// Returns the small image with exports at 0x1000, 0x1001 and so on, whose names begin at these
/// offsets of `strings`.
fn image_with_exports(names: &[u32], strings: &[u8]) -> Vec<u8> {
    let at = 0x2000 + (END - DATA) as u32;
    let count = names.len() as u32;
    let [functions, pointers] = [at + 40, at + 40 + 4 * count];
    let ordinals = pointers + 4 * count;
    let text = ordinals + 2 * count;
    let mut fields = vec![0, 0, 0, 0, 1, count, count, functions, pointers, ordinals];
    fields.extend(0x1000..0x1000 + count);
    fields.extend(names.iter().map(|name| text + name));
    let mut exports: Vec<_> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    exports.extend((0..count as u16).flat_map(u16::to_le_bytes));
    exports.extend(strings);
    let size = exports.len() as u32;
    let data = (END - DATA) as u32 + size;
    let mut bytes = patched(&[
        (EXPORTS, at),
        (EXPORTS + 4, size),
        (SECOND_SECTION + VIRTUAL_SIZE, data),
        (SECOND_SECTION + RAW_SIZE, data),
    ]);
    bytes.extend(exports);
    bytes
}

/// Returns the number of names, and their total length.
fn names_of(bytes: &[u8]) -> (usize, usize) {
    let symbols = PeImage::parse(bytes).unwrap().symbols();
    let names = symbols.as_slice();
    (names.len(), names.iter().map(|(_, name)| name.len()).sum())
}

#[test]
fn ordinary_exports_are_all_named() {
    // Little but names: 1,000 of them, each 100 bytes long.
    let strings: Vec<_> =
        (0..1000).flat_map(|n| alloc::format!("{n:0>100}\0").into_bytes()).collect();
    let names: Vec<_> = (0..1000).map(|n| 101 * n).collect();
    let bytes = image_with_exports(&names, &strings);
    assert_eq!(names_of(&bytes), (1000, 100_000));
    let image = PeImage::parse(&bytes).unwrap();
    let last = alloc::format!("{:0>100}", 999);
    assert_eq!(image.symbols().find(0x1000 + 999), Some((&last[..], 0)));
}

#[test]
fn names_that_share_a_long_string_are_read_up_to_the_files_size() {
    let mut string = vec![b'x'; 10_000];
    string.push(0);
    let names: Vec<_> = (0..1000).collect();
    let mut bytes = image_with_exports(&names, &string);
    let (count, len) = names_of(&bytes);
    assert!(count > 0 && len <= bytes.len(), "{count} exports of {len} bytes");
    // As COFF symbols, without the exports.
    put(&mut bytes, EXPORTS, &[0, 0]);
    let symbols = bytes.len() as u32;
    put(&mut bytes, FILE_HEADER + 8, &[symbols, 1000]);
    for n in 0..1000_u32 {
        let [low, high, ..] = (4 + n).to_le_bytes();
        bytes.extend(coff_symbol([0, 0, 0, 0, low, high, 0, 0], n, 1, 2, 0));
    }
    bytes.extend((4 + string.len() as u32).to_le_bytes());
    bytes.extend(string);
    let (count, len) = names_of(&bytes);
    assert!(count > 0 && len <= bytes.len(), "{count} COFF symbols of {len} bytes");
}
