//! Fuzz target of compact unwind information.

use super::{FUNCTION_LIMIT, Memories, make_registers, unwind};
use clr_recording::vectors::fuzz::IMAGE_BASE;
use clr_walker::cfi::CfiTable;
use clr_walker::code_map::{CodeMap, CodeRegion, RegionKind};
use clr_walker::compact::{CompactSections, CompactTable};
use clr_walker::image::{CfiSections, FunctionTable, Section, Sections};
use clr_walker::registers::Registers;
use clr_walker::unwind::Cache;

/// RVAs of the code and of the `__unwind_info` in [`compact_unwind`].
const CODE: u32 = 0x1000;
const UNWIND_INFO: u32 = 0x2_0000;

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
/// The code is at RVA 0x1000, and its last 16 bytes are a stub helper.
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
    let mut cache = Cache::new();
    for rva in [pc, end - 1].into_iter().chain(starts) {
        let registers = Registers { rip: IMAGE_BASE + u64::from(rva), ..registers };
        unwind(&map, &mut cache, &registers, &memories);
    }
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
        if starts.len() < FUNCTION_LIMIT / 8 {
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
