//! Look-up in the two levels of `__unwind_info`.

use super::*;

fn table(bytes: &[u8]) -> CompactTable<'_> {
    let section = Section { rva: 0x8000, bytes, executable: false };
    CompactTable::new(&CompactSections { unwind_info: Some(section), ..Default::default() })
}

/// Three pages: compressed, regular, and compressed again.
fn pages() -> Vec<u8> {
    let first = Page::Compressed(
        vec![(0x1000, 0), (0x1010, 2), (0x1040, 1), (0x1080, 3)],
        vec![0x0303_0303, 0x0404_0404],
    );
    let second = Page::Regular(vec![(0x2000, 0x5500_0001), (0x2008, 0)]);
    let third = Page::Compressed(vec![(0x3000, 1)], vec![]);
    let data = [vec![], vec![(0x2000, 0x9000)], vec![]];
    unwind_info(&[0x0101_0101, 0x0202_0202], &[0xA000], &[first, second, third], 0x3333, &data)
}

fn found(table: &CompactTable<'_>, rva: u32) -> Option<(u32, u32, u32)> {
    let entry = table.find(rva).unwrap()?;
    Some((entry.range.start, entry.range.end, entry.encoding.0))
}

#[test]
fn entries_are_found_in_both_kinds_of_pages() {
    let bytes = pages();
    let table = table(&bytes);
    let expected = [
        (0x1000, 0x1010, 0x0101_0101),
        (0x1010, 0x1040, 0x0303_0303),
        (0x1040, 0x1080, 0x0202_0202),
        (0x1080, 0x2000, 0x0404_0404),
        (0x2000, 0x2008, 0x5500_0001),
        (0x2008, 0x3000, 0),
        (0x3000, 0x3333, 0x0202_0202),
    ];
    for (start, end, encoding) in expected {
        for rva in [start, u32::midpoint(start, end), end - 1] {
            assert_eq!(found(&table, rva), Some((start, end, encoding)), "{rva:#x}");
        }
    }
    for rva in [0, 0xFFF, 0x3333, u32::MAX] {
        assert_eq!(found(&table, rva), None, "{rva:#x}");
    }
    let all: Vec<_> = table.entries().map(Result::unwrap).collect();
    let all: Vec<_> = all.iter().map(|it| (it.range.start, it.range.end, it.encoding.0)).collect();
    assert_eq!(all, expected);
}

#[test]
fn language_specific_data_belong_to_one_function() {
    let bytes = pages();
    let table = table(&bytes);
    let entry = |rva| table.find(rva).unwrap().unwrap();
    let personality = Personality { pointer: 0xA000, lsda: 0x9000 };
    assert_eq!(table.personality(&entry(0x2000)), Ok(Some(personality)));
    assert_eq!(table.personality(&entry(0x2008)), Ok(None));
    assert_eq!(table.personality(&entry(0x1000)), Ok(None));
}

/// A function has a personality if its encoding says so; the number counts from 1, and 0 is none.
#[test]
fn encodings_number_the_personalities() {
    for (flags, expected) in [
        (0x5000_0000, Ok(Some(0xA000))),
        (0x6000_0000, Ok(Some(0xB000))),
        (0x4000_0000, Ok(Some(0))),
        (0x1000_0000, Ok(None)),
        (0x7000_0000, Err(CompactProblem::CutOff)),
    ] {
        let page = Page::Regular(vec![(0x2000, flags | 0x0500_0001), (0x2008, 0)]);
        let data = [vec![(0x2000, 0x9000), (0x2008, 0x9004)]];
        let bytes = unwind_info(&[], &[0xA000, 0xB000], &[page], 0x3000, &data);
        let table = table(&bytes);
        let entry = table.find(0x2000).unwrap().unwrap();
        let found = table.personality(&entry).map_err(|error| error.problem);
        assert_eq!(found.map(|it| it.map(|it| it.pointer)), expected, "{flags:#x}");
        // In an object file, relocations have it.
        let table = CompactTable::of_object(vec![entry.clone()]);
        assert_eq!(table.personality(&entry), Ok(None));
    }
}

#[test]
fn an_image_without_the_section_has_no_entries() {
    let table = CompactTable::new(&CompactSections::default());
    assert!(table.is_empty());
    assert_eq!(table.find(0x1000), Ok(None));
    assert_eq!(table.entries().count(), 0);
}

#[test]
fn faults_are_reported_with_their_place() {
    let whole = pages();
    let with = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let error = |bytes: &[u8], rva| table(bytes).find(rva).unwrap_err();
    let problem = |problem, offset| CompactError { problem, offset };
    assert_eq!(error(&with(0, 2), 0x1000), problem(CompactProblem::Version(2), 0));
    assert_eq!(error(&whole[..20], 0x1000), problem(CompactProblem::CutOff, 20));
    // header 28, common 8, personality 4, index 4 × 12, data 8.
    let page = 96;
    assert_eq!(error(&with(page, 4), 0x1000), problem(CompactProblem::PageKind(4), 96));
    let index = with(page + 12, 0x0400_0000);
    assert_eq!(error(&index, 0x1000), problem(CompactProblem::EncodingIndex(4), 96));
    // The second page would start in the middle of the first.
    let mut bytes = with(52, 0x1048);
    bytes[140..144].copy_from_slice(&0x1048_u32.to_le_bytes());
    let last = table(&bytes).entries().last().unwrap();
    assert_eq!(last, Err(problem(CompactProblem::Order, 0)));
    // The page lies beyond the section's end.
    assert_eq!(
        error(&with(44, 0xFFFF_FFF0), 0x1000),
        problem(CompactProblem::CutOff, u32::MAX - 15)
    );
}

#[test]
fn damaged_sections_end_in_an_answer() {
    let whole = pages();
    for at in 0..whole.len() {
        for byte in [0, 1, 2, 3, 0x7F, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let table = table(&bytes);
            for rva in [0, 0x1000, 0x1044, 0x2007, 0x3332, u32::MAX] {
                if let Ok(Some(entry)) = table.find(rva) {
                    assert!(entry.range.contains(&rva), "{at:#x} {byte:#x} {entry:x?}");
                    let _ = (entry.encoding.layout(), table.personality(&entry));
                }
            }
            let mut end = 0;
            for entry in table.entries().map_while(Result::ok) {
                assert!(end <= entry.range.start && entry.range.start < entry.range.end);
                end = entry.range.end;
            }
        }
    }
    for len in 0..whole.len() {
        let table = table(&whole[..len]);
        let _ = table.find(0x1044);
        assert!(table.entries().count() <= 8);
    }
}

#[test]
fn entries_of_object_files_are_searched_by_address() {
    let entry = |range, encoding| {
        let mut entry = table(&pages()).find(0x1000).unwrap().unwrap();
        (entry.range, entry.encoding) = (range, Encoding(encoding));
        entry
    };
    let entries: Vec<Entry> = vec![entry(0x40..0x50, 1), entry(0..0x18, 2), entry(0x10..0x20, 3)];
    let table = CompactTable::of_object(entries);
    for (rva, expected) in [
        (0, Some((0, 0x10, 2))),
        (0x10, Some((0x10, 0x20, 3))),
        (0x1F, Some((0x10, 0x20, 3))),
        (0x20, None),
        (0x4F, Some((0x40, 0x50, 1))),
        (0x50, None),
    ] {
        assert_eq!(found(&table, rva), expected, "{rva:#x}");
    }
}
