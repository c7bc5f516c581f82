//! Images made by hand: ELF and Mach-O, whole and damaged.

use super::*;
use clr_unwind::{ElfError, ElfImage, MachoError, MachoImage};

const PREFERRED: u64 = 0x40_0000;
const CODE: usize = 0x1000;
const EH_FRAME: usize = 0x3000;
const EH_FRAME_HDR: usize = 0x3800;
const SYMBOLS: usize = 0x3A00;
const STRINGS: usize = 0x3B00;
const NAMES: usize = 0x3C00;
const SECTION_HEADERS: usize = 0x3D00;
const END: usize = 0x4000;

fn put(bytes: &mut [u8], at: usize, fields: &[(usize, u64)]) {
    let mut at = at;
    for (size, value) in fields {
        bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..*size]);
        at += size;
    }
}

/// Returns frames with one function of 0x40 bytes at 0x1000, in the encoding of [`Cie::default`].
fn eh_frame() -> Vec<u8> {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE as u32, 0x40, &[Cfi::DefCfaOffset(24)]);
    frames.bytes.extend([0; 4]);
    frames.bytes
}

/// Returns an executable of two segments, laid out in the file as in memory: code at 0x1000;
/// .eh_frame, its header and the symbols at 0x3000.
fn elf() -> Vec<u8> {
    let mut bytes = vec![0x90; END];
    bytes[..0x200].fill(0);
    bytes[EH_FRAME..].fill(0);
    bytes[..16].copy_from_slice(b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    put(
        &mut bytes,
        16,
        &[
            (2, 2),
            (2, 62),
            (4, 1),
            (8, PREFERRED + 0x1000),
            (8, 64),
            (8, SECTION_HEADERS as u64),
            (4, 0),
            (2, 64),
            (2, 56),
            (2, 3),
            (2, 64),
            (2, 7),
            (2, 6),
        ],
    );
    let segment = |kind, flags, at: usize, len: usize| {
        let (at, len) = (at as u64, len as u64);
        let va = PREFERRED + at;
        [(4, kind), (4, flags), (8, at), (8, va), (8, va), (8, len), (8, len), (8, 0x1000)]
    };
    put(&mut bytes, 64, &segment(1, 5, 0, 0x2000));
    put(&mut bytes, 64 + 56, &segment(1, 4, EH_FRAME, END - EH_FRAME));
    put(&mut bytes, 64 + 112, &segment(0x6474_E550, 4, EH_FRAME_HDR, 12));
    let frames = eh_frame();
    bytes[EH_FRAME..EH_FRAME + frames.len()].copy_from_slice(&frames);
    // Version 1; pcrel sdata4, omit, omit; the pointer, counted from itself.
    let back = (EH_FRAME as u64).wrapping_sub(EH_FRAME_HDR as u64 + 4);
    put(
        &mut bytes,
        EH_FRAME_HDR,
        &[(1, 1), (1, 0x1B), (1, 0xFF), (1, 0xFF), (4, back & 0xFFFF_FFFF)],
    );
    let symbol = |name, info, section, value, size| {
        [(4, name), (1, info), (1, 0), (2, section), (8, value), (8, size)]
    };
    put(&mut bytes, SYMBOLS + 24, &symbol(1, 0x12, 1, PREFERRED + 0x1000, 0x40));
    put(&mut bytes, SYMBOLS + 48, &symbol(6, 0x11, 1, PREFERRED + 0x1010, 8));
    put(&mut bytes, SYMBOLS + 72, &symbol(11, 0x12, 0, 0, 0));
    bytes[STRINGS..STRINGS + 17].copy_from_slice(b"\0main\0data\0extrn\0");
    let names = b"\0.text\0.eh_frame\0.eh_frame_hdr\0.symtab\0.strtab\0.shstrtab\0";
    bytes[NAMES..NAMES + names.len()].copy_from_slice(names);
    let header = |name, kind, loaded, at: usize, len, link, entry| {
        let address = if loaded { PREFERRED + at as u64 } else { 0 };
        [
            (4, name),
            (4, kind),
            (8, u64::from(loaded) * 2),
            (8, address),
            (8, at as u64),
            (8, len),
            (4, link),
            (4, 1),
            (8, 8),
            (8, entry),
        ]
    };
    let frames = frames.len() as u64;
    for (n, fields) in [
        header(1, 1, true, CODE, 0x1000, 0, 0),
        header(7, 1, true, EH_FRAME, frames, 0, 0),
        header(17, 1, true, EH_FRAME_HDR, 12, 0, 0),
        header(31, 2, false, SYMBOLS, 96, 5, 24),
        header(39, 3, false, STRINGS, 17, 0, 0),
        header(47, 3, false, NAMES, names.len() as u64, 0, 0),
    ]
    .into_iter()
    .enumerate()
    {
        put(&mut bytes, SECTION_HEADERS + 64 * (n + 1), &fields);
    }
    bytes
}

#[test]
fn an_image_is_found_and_unwound() {
    let bytes = elf();
    let image = ElfImage::parse(&bytes).unwrap();
    assert_eq!((image.preferred_base(), image.size()), (PREFERRED, END as u32));
    let executable: Vec<_> =
        image.sections().as_slice().iter().map(|it| (it.rva, it.executable)).collect();
    assert_eq!(executable, [(0, true), (EH_FRAME as u32, false)]);
    let cfi = image.cfi();
    assert_eq!(cfi.eh_frame.map(|it| it.bytes.len()), Some(eh_frame().len()));
    assert_eq!(cfi.eh_frame_hdr.map(|it| it.rva), Some(EH_FRAME_HDR as u32));
    assert_eq!(cfi.text, Some(CODE as u32));
    assert_eq!(image.symbols().as_slice(), [(CODE as u32, "main")]);

    let base = 0x7F00_1234_0000;
    let mut map = CodeMap::new();
    map.insert_elf(base, &image).unwrap();
    assert!(map.insert_elf(base, &image).is_err());
    let words: Vec<u8> = [1_u64, 2, 3].into_iter().flat_map(u64::to_le_bytes).collect();
    let memory = clr_unwind::Segment::new(0x10_0000, &words);
    let mut registers = Registers { rip: base + CODE as u64 + 0x3F, ..Registers::default() };
    registers.set(clr_unwind::Gpr::Rsp, 0x10_0000);
    Unwinder::new(&map).step(&mut registers, Position::Interrupted, &memory).unwrap();
    assert_eq!((registers.rip, registers.rsp()), (3, 0x10_0018));
}

#[test]
fn an_image_without_section_headers_has_its_header_to_go_by() {
    let mut bytes = elf();
    // e_shoff, e_shnum, e_shstrndx.
    put(&mut bytes, 40, &[(8, 0)]);
    put(&mut bytes, 60, &[(2, 0), (2, 0)]);
    let image = ElfImage::parse(&bytes).unwrap();
    let cfi = image.cfi();
    assert_eq!(cfi.eh_frame.map(|it| it.rva), Some(EH_FRAME as u32));
    assert_eq!(cfi.text, None);
    let mut map = CodeMap::new();
    map.insert_elf(0, &image).unwrap();
    let functions = map.regions().next().unwrap().cfi().unwrap().functions();
    assert!(functions.eq(std::iter::once(CODE as u32..CODE as u32 + 0x40)));
    assert!(image.symbols().as_slice().is_empty());
    // Without that too there is nothing.
    put(&mut bytes, 64 + 112, &[(4, 0)]);
    assert!(ElfImage::parse(&bytes).unwrap().cfi().eh_frame.is_none());
}

#[test]
fn other_files_are_refused() {
    let error = |at, size, value| {
        let mut bytes = elf();
        put(&mut bytes, at, &[(size, value)]);
        ElfImage::parse(&bytes).unwrap_err()
    };
    assert_eq!(error(0, 1, 0), ElfError::Header);
    assert_eq!(error(4, 1, 1), ElfError::Header);
    assert_eq!(error(5, 1, 2), ElfError::Header);
    assert_eq!(error(18, 2, 183), ElfError::Machine { machine: 183 });
    assert_eq!(error(32, 8, u64::MAX - 5), ElfError::ProgramHeaders);
    assert_eq!(error(56, 2, 0), ElfError::NothingToLoad);
    let range = |address| ElfError::SegmentRange { address };
    // p_vaddr and p_memsz of the second segment.
    assert_eq!(error(64 + 56 + 16, 8, PREFERRED + 0x1000), range(PREFERRED + 0x1000));
    assert_eq!(error(64 + 56 + 16, 8, PREFERRED + (1 << 32)), range(PREFERRED + (1 << 32)));
    assert_eq!(error(64 + 56 + 40, 8, u64::MAX), range(PREFERRED + 0x3000));
    let data = ElfError::SegmentData { address: PREFERRED + 0x3000 };
    assert_eq!(error(64 + 56 + 8, 8, END as u64 - 8), data);
}

#[test]
fn damage_anywhere_is_survived() {
    let whole = elf();
    let take = |bytes: &[u8]| {
        if let Ok(image) = ElfImage::parse(bytes) {
            let _ = image.symbols();
            let mut map = CodeMap::new();
            let _ = map.insert_elf(0x1000, &image);
        }
    };
    for len in (0..0x200).chain(EH_FRAME..END) {
        take(&whole[..len]);
    }
    for at in (0..0x100)
        .chain(EH_FRAME..EH_FRAME + 0x60)
        .chain(EH_FRAME_HDR..EH_FRAME_HDR + 12)
        .chain(SYMBOLS..END)
    {
        for byte in [0, 1, 0x7F, 0x80, 0xFF, !whole[at]] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            take(&bytes);
        }
    }
}

/// Returns [`elf`] with one more section, whose name is the last one. `fields` are `sh_type`, `sh_flags`,
/// `sh_offset`, `sh_size`, `sh_link` and `sh_entsize`.
fn elf_with(name: &str, [kind, flags, at, len, link, entry]: [u64; 6]) -> Vec<u8> {
    const NAME: usize = 57;
    let mut bytes = elf();
    // e_shnum, and the size of .shstrtab.
    put(&mut bytes, 60, &[(2, 8)]);
    put(&mut bytes, SECTION_HEADERS + 64 * 6 + 32, &[(8, (NAME + name.len() + 1) as u64)]);
    bytes[NAMES + NAME..NAMES + NAME + name.len()].copy_from_slice(name.as_bytes());
    let fields = [
        (4, NAME as u64),
        (4, kind),
        (8, flags),
        (8, 0),
        (8, at),
        (8, len),
        (4, link),
        (4, 1),
        (8, 8),
        (8, entry),
    ];
    put(&mut bytes, SECTION_HEADERS + 64 * 7, &fields);
    bytes
}

#[test]
fn a_function_has_the_name_that_other_modules_see() {
    const DYNAMIC: usize = SYMBOLS + 0x80;
    let mut bytes = elf_with(".dynsym", [11, 2, DYNAMIC as u64, 48, 5, 24]);
    // The size of .strtab.
    put(&mut bytes, SECTION_HEADERS + 64 * 5 + 32, &[(8, 24)]);
    bytes[STRINGS + 17..STRINGS + 24].copy_from_slice(b"public\0");
    put(&mut bytes, DYNAMIC + 24, &[(4, 17), (1, 0x12), (1, 0), (2, 1), (8, PREFERRED + 0x1000)]);
    let symbols = ElfImage::parse(&bytes).unwrap().symbols();
    assert_eq!(symbols.as_slice(), [(CODE as u32, "public")]);
}

#[test]
fn symbols_lie_in_the_image() {
    for (rva, expected) in [(END as u32 - 1, true), (END as u32, false)] {
        let mut bytes = elf();
        // The symbol of data, as a function.
        let fields = [(4, 6), (1, 0x12), (1, 0), (2, 1), (8, PREFERRED + u64::from(rva))];
        put(&mut bytes, SYMBOLS + 48, &fields);
        let symbols = ElfImage::parse(&bytes).unwrap().symbols();
        assert_eq!(symbols.as_slice().contains(&(rva, "data")), expected, "{rva:#x}");
    }
}

/// The section `.debug_frame` is not loaded, so it has no address (VA).
#[test]
fn the_debug_frame_section_is_used_unless_it_is_compressed() {
    const AT: usize = EH_FRAME + 0x400;
    let mut frames = Frames::debug();
    let cie = frames.cie(&Cie { augmentation: "", ..Cie::default() });
    frames.fde(cie, CODE as u32 + 0x80, 0x10, &[Cfi::DefCfaOffset(40)]);
    let len = frames.bytes.len() as u64;
    for (flags, len, is_used) in [(0, len, true), (0x800, len, false), (0, 0, false)] {
        let mut bytes = elf_with(".debug_frame", [1, flags, AT as u64, len, 0, 0]);
        bytes[AT..AT + frames.bytes.len()].copy_from_slice(&frames.bytes);
        let image = ElfImage::parse(&bytes).unwrap();
        let expected = is_used.then_some(&frames.bytes[..]);
        assert_eq!(image.cfi().debug_frame, expected, "{flags:#x}");
    }
}

/// The loader maps whole pages (gABI, "Program Loading").
#[test]
fn rvas_count_from_the_page_of_the_lowest_segment() {
    let mut bytes = elf();
    // p_vaddr, p_paddr, p_filesz and p_memsz of the first segment.
    let address = PREFERRED + 0x1234;
    put(&mut bytes, 64 + 16, &[(8, address), (8, address), (8, 0x100), (8, 0x100)]);
    let image = ElfImage::parse(&bytes).unwrap();
    assert_eq!((image.preferred_base(), image.size()), (PREFERRED + 0x1000, 0x3000));
    assert_eq!(image.cfi().preferred_base, PREFERRED + 0x1000);
    let starts: Vec<_> = image.sections().as_slice().iter().map(|it| it.rva).collect();
    assert_eq!(starts, [0x234, 0x2000]);
}

const MACHO_BASE: u64 = 0x1_0000_0000;

/// Returns a dylib: __PAGEZERO, __TEXT with __text at 0x1000 and __eh_frame at 0x3000, and a symbol
/// table.
fn macho() -> Vec<u8> {
    let mut bytes = vec![0; END];
    let (segments, symtab) = (72 * 2 + 80 * 2, 24);
    put(
        &mut bytes,
        0,
        &[
            (4, 0xFEED_FACF),
            (4, 0x0100_0007),
            (4, 3),
            (4, 6),
            (4, 3),
            (4, segments + symtab),
            (4, 0),
            (4, 0),
        ],
    );
    let segment = |bytes: &mut [u8], at: usize, name: &str, va, len, protection, sections: u64| {
        put(bytes, at, &[(4, 0x19), (4, 72 + 80 * sections)]);
        bytes[at + 8..at + 8 + name.len()].copy_from_slice(name.as_bytes());
        let file = if protection == 0 { 0 } else { len };
        put(
            bytes,
            at + 24,
            &[
                (8, va),
                (8, len),
                (8, 0),
                (8, file),
                (4, protection),
                (4, protection),
                (4, sections),
                (4, 0),
            ],
        );
    };
    segment(&mut bytes, 32, "__PAGEZERO", 0, MACHO_BASE, 0, 0);
    segment(&mut bytes, 104, "__TEXT", MACHO_BASE, END as u64, 5, 2);
    let frames = eh_frame();
    for (n, name, at, len) in
        [(0, "__text", CODE, 0x1000), (1, "__eh_frame", EH_FRAME, frames.len())]
    {
        let header = 176 + 80 * n;
        bytes[header..header + name.len()].copy_from_slice(name.as_bytes());
        bytes[header + 16..header + 22].copy_from_slice(b"__TEXT");
        put(
            &mut bytes,
            header + 32,
            &[(8, MACHO_BASE + at as u64), (8, len as u64), (4, at as u64), (4, 2)],
        );
    }
    put(
        &mut bytes,
        336,
        &[(4, 2), (4, 24), (4, SYMBOLS as u64), (4, 2), (4, STRINGS as u64), (4, 16)],
    );
    bytes[EH_FRAME..EH_FRAME + frames.len()].copy_from_slice(&frames);
    put(&mut bytes, SYMBOLS, &[(4, 1), (1, 0x0F), (1, 1), (2, 0), (8, MACHO_BASE + 0x1000)]);
    // A debugging entry.
    put(&mut bytes, SYMBOLS + 16, &[(4, 7), (1, 0x24), (1, 1), (2, 0), (8, MACHO_BASE + 0x1004)]);
    bytes[STRINGS..STRINGS + 13].copy_from_slice(b"\0_main\0_stab\0");
    bytes
}

#[test]
fn a_mach_o_image_is_found() {
    let bytes = macho();
    let image = MachoImage::parse(&bytes).unwrap();
    assert_eq!((image.preferred_base(), image.size()), (MACHO_BASE, END as u32));
    assert_eq!(image.cfi().eh_frame.map(|it| it.rva), Some(EH_FRAME as u32));
    assert_eq!(image.cfi().text, Some(CODE as u32));
    assert_eq!(image.symbols().as_slice(), [(CODE as u32, "main")]);
    let mut map = CodeMap::new();
    map.insert_macho(0x7F00_0000_0000, &image).unwrap();
    let functions = map.regions().next().unwrap().cfi().unwrap().functions();
    assert!(functions.eq(std::iter::once(CODE as u32..CODE as u32 + 0x40)));
}

#[test]
fn other_mach_o_files_are_refused() {
    let error = |at, size, value| {
        let mut bytes = macho();
        put(&mut bytes, at, &[(size, value)]);
        MachoImage::parse(&bytes).unwrap_err()
    };
    assert_eq!(error(0, 4, 0xBEBA_FECA), MachoError::Header);
    assert_eq!(error(4, 4, 0x0100_000C), MachoError::Machine { machine: 0x0100_000C });
    assert_eq!(error(20, 4, u64::from(u32::MAX)), MachoError::LoadCommands);
    assert_eq!(error(108, 4, 71), MachoError::LoadCommands);
    let data = MachoError::SegmentData { address: MACHO_BASE };
    assert_eq!(error(104 + 40, 8, 1 << 40), data);
    let range = MachoError::SegmentRange { address: MACHO_BASE };
    assert_eq!(error(104 + 32, 8, 1 << 33), range);
    let whole = macho();
    for at in (0..0x180).chain(SYMBOLS..SYMBOLS + 32) {
        for byte in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            if let Ok(image) = MachoImage::parse(&bytes) {
                let _ = image.symbols();
                let _ = CodeMap::new().insert_macho(0x1000, &image);
            }
        }
    }
    for len in 0..0x200 {
        let _ = MachoImage::parse(&whole[..len]);
    }
}

/// Returns [`macho`] with another name for its section `__eh_frame`.
fn macho_with(segment: &str, section: &str) -> Vec<u8> {
    const HEADER: usize = 176 + 80;
    let mut bytes = macho();
    bytes[HEADER..HEADER + 32].fill(0);
    bytes[HEADER..HEADER + section.len()].copy_from_slice(section.as_bytes());
    bytes[HEADER + 16..HEADER + 16 + segment.len()].copy_from_slice(segment.as_bytes());
    bytes
}

#[test]
fn sections_of_a_mach_o_image_are_found_by_their_names() {
    let frames = eh_frame();
    let bytes = macho_with("__DWARF", "__debug_frame");
    let image = MachoImage::parse(&bytes).unwrap();
    assert_eq!(image.cfi().debug_frame, Some(&frames[..]));
    assert!(image.cfi().eh_frame.is_none() && image.compact_unwind().is_empty());
    assert_eq!(image.cfi().preferred_base, MACHO_BASE);
    for segment in ["__DATA", "__DATA_CONST"] {
        let bytes = macho_with(segment, "__got");
        let image = MachoImage::parse(&bytes).unwrap();
        assert_eq!(image.cfi().got, Some(EH_FRAME as u32), "{segment}");
        assert!(image.compact_unwind().is_empty());
    }
    for section in ["__unwind_info", "__stub_helper"] {
        let bytes = macho_with("__TEXT", section);
        let image = MachoImage::parse(&bytes).unwrap();
        assert!(!image.compact_unwind().is_empty(), "{section}");
        assert!(image.cfi().eh_frame.is_none() && image.cfi().got.is_none());
    }
}

#[test]
fn symbols_of_debuggers_and_of_no_section_name_no_code() {
    // n_type: N_BNSYM, whose lower bits are those of N_SECT; N_ABS.
    for kind in [0x2E, 0x02] {
        let mut bytes = macho();
        put(&mut bytes, SYMBOLS + 16 + 4, &[(1, kind)]);
        let symbols = MachoImage::parse(&bytes).unwrap().symbols();
        assert_eq!(symbols.as_slice(), [(CODE as u32, "main")], "{kind:#x}");
    }
}

#[test]
fn overlapping_segments_of_a_mach_o_image_are_refused() {
    let mut bytes = macho();
    bytes[32 + 8..32 + 18].copy_from_slice(b"__DATA\0\0\0\0");
    put(&mut bytes, 32 + 24, &[(8, MACHO_BASE + 0x2000), (8, 0x100), (8, 0), (8, 0x100)]);
    let error = MachoImage::parse(&bytes).unwrap_err();
    assert_eq!(error, MachoError::SegmentRange { address: MACHO_BASE + 0x2000 });
}
