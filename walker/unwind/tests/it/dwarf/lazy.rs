//! Tables that compile functions when they are needed, and the linker's index.

use super::*;

/// Offset of the entries in a header.
const ENTRIES: usize = 12;

/// Returns a case with a header of three functions: 0x10 bytes each from 0, 0x10 and 0x40 on, whose frames
/// have 1, 2 and 3 words.
fn three() -> Case {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    for (begin, words) in [(0x40, 3), (0, 1), (0x10, 2)] {
        frames.fde(cie, CODE + begin, 0x10, &[Cfi::DefCfaOffset(8 * words)]);
    }
    Case::new(&frames, 0)
}

/// Looks up the number of words of the frame at `offset` by the header; 0 if there is no function.
fn words(case: &Case, offset: u32) -> Result<i32, CfiError> {
    let tables = case.tables();
    let table = tables.last().filter(|_| tables.len() == 3).expect("there is a header");
    Ok(table.row(CODE + offset)?.map_or(0, |row| match row.cfa {
        clr_unwind::cfi::CfaRule::Register { offset, .. } => offset / 8,
        clr_unwind::cfi::CfaRule::Expression(_) => -1,
    }))
}

fn patched(change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let mut case = three();
    change(case.eh_frame_hdr.as_mut().unwrap());
    case
}

#[test]
fn functions_are_found_by_the_header() {
    let case = three();
    for (offset, expected) in
        [(0, 1), (0xF, 1), (0x10, 2), (0x1F, 2), (0x20, 0), (0x40, 3), (0x50, 0)]
    {
        assert_eq!(words(&case, offset), Ok(expected), "{offset:#x}");
    }
    for table in case.tables() {
        let functions = [0, 0x10, 0x40].map(|begin| CODE + begin..CODE + begin + 0x10);
        assert!(table.functions().eq(functions.clone()));
        for function in functions {
            assert_eq!(table.function(function.end - 1), Some(function));
        }
        assert_eq!(table.function(CODE + 0x20), None);
    }
}

#[test]
fn an_entry_counts_only_where_its_fde_begins() {
    // The second function is listed 8 bytes early, and late.
    for (wrong, changed) in [(CODE + 8, 0x8..0x40), (CODE + 0x18, 0x18..0x40)] {
        let case = patched(|header| {
            let distance = wrong.wrapping_sub(EH_FRAME_HDR);
            header[ENTRIES + 8..][..4].copy_from_slice(&distance.to_le_bytes());
        });
        for offset in 0..0x60 {
            let found = words(&case, offset);
            if changed.contains(&offset) {
                let error = found.unwrap_err();
                assert_eq!(
                    (error.problem, error.section),
                    (CfiProblem::Header, FrameSection::EhFrame)
                );
            } else if !(0x10..0x20).contains(&offset) {
                assert_eq!(found, words(&three(), offset), "{offset:#x}");
            }
        }
    }
    // A step says so as well.
    let case = patched(|header| header[ENTRIES + 8] -= 8);
    let map = case.map_with(case.tables().pop().unwrap());
    let mut registers = case.registers;
    registers.rip = at(0x12);
    let memory = clr_unwind::Segment::new(0, &[]);
    let position = clr_unwind::Position::Interrupted;
    let step = clr_unwind::Unwinder::new(&map).step(&mut registers, position, &memory);
    assert!(matches!(step, Err(UnwindError::Cfi(CfiError { problem: CfiProblem::Header, .. }))));
}

#[test]
fn entries_without_a_function_are_passed_over() {
    let nowhere = (EH_FRAME + 0x10_0000).wrapping_sub(EH_FRAME_HDR);
    // An FDE outside the section, and one that is a CIE.
    for fde in [nowhere, EH_FRAME - EH_FRAME_HDR] {
        let case = patched(|header| {
            header[ENTRIES + 12..][..4].copy_from_slice(&fde.to_le_bytes());
        });
        let found: Vec<_> = [0, 0xF, 0x10, 0x1F, 0x40].map(|offset| words(&case, offset)).into();
        assert_eq!(found, [Ok(1), Ok(1), Ok(0), Ok(0), Ok(3)]);
    }
    // Entries of dropped functions: empty, or without code, between the parts of another.
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE, 0x40, &[Cfi::DefCfaOffset(32)]);
    for n in 0..8 {
        frames.fde(cie, CODE + 0x10 + n, 0, &[]);
    }
    frames.fde(cie, CODE + 0x30, 0x10, &[Cfi::DefCfaOffset(16)]);
    let case = Case::new(&frames, 0);
    for table in case.tables() {
        assert_eq!(table.function(CODE + 0x20), Some(CODE..CODE + 0x30));
        assert!(table.functions().eq([CODE..CODE + 0x30, CODE + 0x30..CODE + 0x40]));
    }
    assert_eq!([0, 0x10, 0x2F, 0x30].map(|it| words(&case, it)), [Ok(4), Ok(4), Ok(4), Ok(2)]);
}

#[test]
fn of_entries_at_one_address_the_first_of_the_section_counts() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE, 0x20, &[Cfi::DefCfaOffset(32)]);
    frames.fde(cie, CODE, 0x40, &[Cfi::DefCfaOffset(16)]);
    frames.fde(cie, CODE, 0, &[Cfi::DefCfaOffset(24)]);
    let case = Case::new(&frames, 0);
    for table in case.tables() {
        assert!(table.functions().eq(std::iter::once(CODE..CODE + 0x20)));
    }
    assert_eq!([0, 0x1F, 0x20].map(|offset| words(&case, offset)), [Ok(4), Ok(4), Ok(0)]);
}

#[test]
fn a_header_of_another_form_is_not_used() {
    let changes: [fn(&mut Vec<u8>); 7] = [
        |header| header[0] = 2,
        // No table; 64-bit entries; the pointer is wrong; more entries than bytes; none; cut off.
        |header| header[3] = 0xFF,
        |header| header[3] = 0x3C,
        |header| header[4] += 1,
        |header| header[8] += 1,
        |header| header[8] = 0,
        |header| header.truncate(7),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        // Were it used, this would be an error.
        let case = patched(|header| {
            header[ENTRIES + 8] -= 8;
            change(header);
        });
        assert_eq!(words(&case, 0x10), Ok(2), "change {n}");
    }
    // It does not list what is in .debug_frame.
    let mut debug = Frames::debug();
    let cie = debug.cie(&Cie { augmentation: "", ..Cie::default() });
    debug.fde(cie, CODE + 0x80, 0x10, &[Cfi::DefCfaOffset(40)]);
    let case = Case { debug_frame: debug.bytes, ..three() };
    let header = case.eh_frame_hdr.as_deref().unwrap();
    let header = Section { rva: EH_FRAME_HDR, bytes: header, executable: false };
    let cfi = CfiSections { eh_frame_hdr: Some(header), ..case.cfi() };
    assert_eq!(CfiTable::lazy(&cfi, &case.sections()).functions().count(), 4);
}

/// A table that nobody uses costs little, however many functions there are.
#[test]
fn a_large_image_needs_little_memory_until_it_is_used() {
    const FUNCTIONS: u32 = 100_000;
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    for n in 0..FUNCTIONS {
        let push = [Cfi::Advance(1), Cfi::DefCfaOffset(16), Cfi::Offset(Gpr::Rbx, 2)];
        frames.fde(cie, CODE + 0x1000_0000 + 16 * n, 16, &push);
    }
    let case = Case::new(&frames, 0);
    let code = vec![0x90; 16 * FUNCTIONS as usize];
    let section = Section { rva: CODE + 0x1000_0000, bytes: &code, executable: true };
    let sections = Sections::new(vec![section]).unwrap();
    let header = case.eh_frame_hdr.as_deref().unwrap();
    let header = Section { rva: EH_FRAME_HDR, bytes: header, executable: false };
    let cfi = CfiSections { eh_frame_hdr: Some(header), debug_frame: None, ..case.cfi() };
    let table = CfiTable::lazy(&cfi, &sections);
    let slots = 8 << 10..=256 << 10;
    assert!(slots.contains(&table.size()), "{}", table.size());
    // An index of its own is as long as the list of functions.
    let made = CfiTable::lazy(&CfiSections { eh_frame_hdr: None, ..cfi }, &sections).size();
    let least = table.size() + FUNCTIONS as usize * size_of::<std::ops::Range<u32>>();
    assert!((least..2 * least).contains(&made), "{made} with an index");
    assert_eq!(table.functions().count(), FUNCTIONS as usize);
    // Using it takes no more.
    for n in (0..FUNCTIONS).step_by(7) {
        let row = table.row(CODE + 0x1000_0001 + 16 * n).unwrap().unwrap();
        assert!(row.registers[Gpr::Rbx as usize].is_some());
    }
    assert!(table.size() <= 256 << 10);
    assert!(CfiTable::new(&cfi, &sections).size() > 1 << 20);
}
