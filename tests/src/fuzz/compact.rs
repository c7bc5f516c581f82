//! Fuzz target of compact unwind information.

use super::FUNCTION_LIMIT;
use super::steps::{FUZZES, Memories, make_registers, some, some_rules, unwind};
use clr_recording::vectors::fuzz::IMAGE_BASE;
use clr_unwind::cfi::CfiTable;
use clr_unwind::compact::{CompactSections, CompactTable};
use clr_unwind::{
    Cache, CfiSections, CodeMap, CodeRegion, FunctionTable, RegionKind, Registers, Section,
    Sections,
};

/// RVAs of the code and of the `__unwind_info` in [`compact_unwind`].
const CODE: u32 = 0x1000;
const UNWIND_INFO: u32 = 0x2_0000;

/// Version of `__unwind_info`, its first word.
const VERSION: u32 = 1;

/// Maximum number of places that are taken from entries.
const MOST_STARTS: usize = FUNCTION_LIMIT / 8;

/// Maximum number of them from which an input is unwound.
const START_LIMIT: usize = if FUZZES { 4 } else { MOST_STARTS };

/// Size of the code that counts as `__stub_helper`, at its end, in bytes.
const STUB_HELPER: u32 = 16;

/// Unwinds by compact unwind information and code that are made from `data`:
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0, 1 | offset of the instruction in the code |
/// | 2 | high half: kind of values in the registers other than rsp |
/// | 3 | value of rsp |
/// | 4 to 7 | seed of the registers |
/// | 8, 9 | length of `__unwind_info`, which follows; after it is the code |
///
/// The code is at RVA 0x1000, and its last 16 bytes are a stub helper. A `__unwind_info` that does not begin with
/// the version of one is a list of entries, from which the table is made.
///
/// # Panics
/// As [`unwind_info`](super::unwind_info) does; also if entries do not ascend or do not contain the
/// addresses at which they are found.
pub fn compact_unwind(data: &[u8]) {
    let Some((&[pc_low, pc_high, kind, stack, s0, s1, s2, s3, l0, l1], rest)) =
        data.split_first_chunk()
    else {
        return;
    };
    let len = usize::from(u16::from_le_bytes([l0, l1]));
    let Some((unwind_info, code)) = rest.split_at_checked(len) else {
        return;
    };
    if code.is_empty() || rest.len() > 1 << 16 {
        return;
    }
    let end = CODE + code.len() as u32;
    let made;
    let unwind_info = if unwind_info.starts_with(&VERSION.to_le_bytes()) {
        unwind_info
    } else {
        made = make(unwind_info);
        &made
    };
    let unwind_info = Section { rva: UNWIND_INFO, bytes: unwind_info, executable: false };
    let code = Section { rva: CODE, bytes: code, executable: true };
    let sections = Sections::new(vec![code, unwind_info]).expect("the sections do not overlap");
    let table = CompactTable::new(&CompactSections {
        unwind_info: Some(unwind_info),
        stub_helper: end.saturating_sub(STUB_HELPER).max(CODE)..end,
    });
    let starts = check(&table);
    let cfi = CfiTable::new(&CfiSections::default(), &sections);
    let functions = FunctionTable::default();
    let size = UNWIND_INFO + (1 << 16);
    let region =
        CodeRegion::from_sections(IMAGE_BASE, size, RegionKind::Image, sections, functions);
    let region = region.expect("the region is not empty").with_cfi(cfi).with_compact(table);
    let mut map = CodeMap::new();
    map.insert(region).expect("the map is empty");

    let seed = u32::from_le_bytes([s0, s1, s2, s3]);
    let pc = CODE + u32::from(u16::from_le_bytes([pc_low, pc_high]));
    let memories = Memories::new(rest);
    let registers = make_registers(kind >> 4, stack, seed);
    // Only where code is unknown do steps depend on the rules, and there all rules of Windows find the same leaf.
    let rules = some_rules(seed);
    let mut cache = Cache::new();
    for rva in [pc, end - 1].into_iter().chain(some(starts, START_LIMIT, seed)) {
        let registers = Registers { rip: IMAGE_BASE + u64::from(rva), ..registers };
        unwind(&map, &mut cache, &registers, &memories, rules);
    }
}

/// Makes a `__unwind_info` of one page from a list of entries, and checks that it has them. The lowest bit of the
/// first byte selects the kind of page.
fn make(list: &[u8]) -> Vec<u8> {
    const HEADER: u32 = 28;
    const PAGE: u32 = HEADER + 2 * 12;
    let mut end = CODE;
    let entries: Vec<_> = list
        .as_chunks()
        .0
        .iter()
        .take(FUNCTION_LIMIT)
        .map(|&[len, low, middle, high, mode]| {
            let start = end;
            end += u32::from(len) + 1;
            (start..end, u32::from_le_bytes([low, middle, high, mode % 6]))
        })
        .collect();
    let count = entries.len() as u32;
    let index = [CODE, PAGE, 0, end, 0, 0];
    let mut words = vec![VERSION, HEADER, 0, HEADER, 0, HEADER, 2];
    words.extend(index);
    if list.first().is_some_and(|byte| byte & 1 == 1) {
        let head = |at: u32| count << 16 | at;
        words.extend([3, head(12), head(12 + 4 * count)]);
        words.extend((0..).zip(&entries).map(|(n, (range, _))| n << 24 | (range.start - CODE)));
        words.extend(entries.iter().map(|(_, encoding)| encoding));
    } else {
        words.extend([2, count << 16 | 8]);
        words.extend(entries.iter().flat_map(|(range, encoding)| [range.start, *encoding]));
    }
    let bytes: Vec<_> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let section = Section { rva: UNWIND_INFO, bytes: &bytes, executable: false };
    let table =
        CompactTable::new(&CompactSections { unwind_info: Some(section), stub_helper: 0..0 });
    let found = table.entries().map(|entry| entry.map(|it| (it.range, it.encoding.0)));
    assert_eq!(found.collect::<Result<Vec<_>, _>>(), Ok(entries));
    bytes
}

/// Checks that entries ascend and are found again. Returns some addresses in them.
fn check(table: &CompactTable<'_>) -> Vec<u32> {
    let mut end = 0;
    let mut starts = Vec::new();
    for entry in table.entries().map_while(Result::ok).take(FUNCTION_LIMIT) {
        let range = entry.range.clone();
        assert!(end <= range.start && range.start < range.end, "{entry:x?}");
        end = range.end;
        assert_eq!(table.find(range.start), Ok(Some(entry.clone())));
        // In an index that does not ascend, a search at another address may go elsewhere.
        for rva in [range.start.midpoint(range.end), range.end - 1] {
            if let Ok(Some(found)) = table.find(rva) {
                assert!(found.range.contains(&rva), "{rva:#x} {found:x?}");
            }
        }
        let _ = (entry.encoding.layout(), table.personality(&entry));
        if starts.len() < MOST_STARTS {
            starts.extend([range.start, range.end - 1]);
        }
    }
    for rva in [0, CODE, u32::MAX] {
        if let Ok(Some(entry)) = table.find(rva) {
            assert!(entry.range.contains(&rva), "{rva:#x} {entry:x?}");
        }
    }
    starts
}
