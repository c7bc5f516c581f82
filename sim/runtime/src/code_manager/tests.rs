//! Tests of sections of each kind, and of the code manager that holds them.

mod manager;

use super::*;
use clr_codegen::NibbleMapError;

/// Base of the sections (VA).
const LOW: u64 = 0x7FF9_0000_0000;

/// Renders the blocks found: code as its index, stubs as letters.
fn blocks(section: &RangeSection, low: u64, offsets: &[u64]) -> String {
    let name = |block| match block {
        Some(Block::Code(CodeIndex(index))) => index.to_string(),
        Some(Block::Stub(StubKind::Precode)) => "p".to_owned(),
        Some(Block::Stub(_)) => "s".to_owned(),
        None => "-".to_owned(),
    };
    let found = offsets.iter().map(|offset| name(section.find(low.wrapping_add(*offset))));
    found.collect::<Vec<_>>().join(" ")
}

const fn code(index: u32) -> Block {
    Block::Code(CodeIndex(index))
}

#[test]
fn in_a_heap_everything_belongs_to_the_nearest_start_before() {
    let starts = [
        (LOW + 0x20, code(0)),
        (LOW + 0x44, code(1)),
        (LOW + 0x60, Block::Stub(StubKind::Precode)),
        (LOW + 0x80, Block::Stub(StubKind::JumpStub)),
        (LOW + 0x1000, code(2)),
    ];
    let heap = RangeSection::code_heap(LOW, LOW + 0x2000, &starts).unwrap();
    assert_eq!((heap.low(), heap.high()), (LOW, LOW + 0x2000));
    for (offsets, expected) in [
        // There is no block before the first start.
        (vec![0, 0x1F, 0x20, 0x21], "- - 0 0"),
        // Padding belongs to the preceding method (C-041), up to the next start.
        (vec![0x40, 0x43, 0x44, 0x5F], "0 0 1 1"),
        (vec![0x60, 0x7F, 0x80, 0xFFF], "p p s s"),
        (vec![0x1000, 0x1FFF], "2 2"),
        // Addresses beyond either end.
        (vec![0x2000, 0_u64.wrapping_sub(1), u64::MAX / 2], "- - -"),
    ] {
        assert_eq!(blocks(&heap, LOW, &offsets), expected, "{offsets:x?}");
    }
}

#[test]
fn a_heap_need_not_begin_at_a_bucket() {
    for lead in [1, 4, 8, 0x1C, 0x1F] {
        let low = LOW + lead;
        let starts = [(low, code(0)), (LOW + 0x24, code(1)), (LOW + 0x41, code(2))];
        let heap = RangeSection::code_heap(low, LOW + 0x100, &starts).unwrap();
        let offsets = [0, 1, 0x23 - lead, 0x24 - lead, 0x3F - lead, 0x44 - lead, 0xFF - lead];
        assert_eq!(blocks(&heap, low, &offsets), "0 0 0 1 1 2 2", "{lead:#x}");
        assert_eq!(heap.find(low - 1), None, "{lead:#x}");
    }
}

#[test]
fn methods_that_a_nibble_map_cannot_hold_are_errors() {
    let heap = |starts: &[u64]| {
        let starts: Vec<_> = starts.iter().map(|start| (*start, code(0))).collect();
        RangeSection::code_heap(LOW, LOW + 0x100, &starts).map(|_| ())
    };
    assert_eq!(heap(&[LOW, LOW + 0x20]), Ok(()));
    let shared =
        |start, other| Err(SectionError::NibbleMap(NibbleMapError::Bucket { start, other }));
    assert_eq!(heap(&[LOW, LOW + 0x1C]), shared(0x1C, 0));
    assert_eq!(heap(&[LOW + 0x30, LOW + 0x24]), shared(0x30, 0x24));
    assert_eq!(heap(&[LOW + 0x40, LOW + 0x40]), shared(0x40, 0x40));
    for outside in [LOW - 1, LOW + 0x100, 0, u64::MAX] {
        assert_eq!(heap(&[LOW, outside]), Err(SectionError::Outside { start: outside }));
    }
}

#[test]
fn a_section_has_a_size() {
    for (low, high) in [(LOW, LOW), (LOW, LOW - 1), (LOW, LOW + 0x1_0000_0000), (0, u64::MAX)] {
        let error = SectionError::Size { low, high };
        assert_eq!(RangeSection::code_heap(low, high, &[]).map(|_| ()), Err(error));
        assert_eq!(RangeSection::ready_to_run(low, high, &[]).map(|_| ()), Err(error));
        assert_eq!(RangeSection::native_image(low, high, &[], &[]).map(|_| ()), Err(error));
    }
    assert!(RangeSection::code_heap(u64::MAX - 0x10, u64::MAX, &[]).is_ok());
}

#[test]
fn ready_to_run_code_has_no_end() {
    let methods = [(LOW + 0x3001, CodeIndex(1)), (LOW + 0x1000, CodeIndex(0))];
    let image = RangeSection::ready_to_run(LOW, LOW + 0x8000, &methods).unwrap();
    let offsets = [0, 0xFFF, 0x1000, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000];
    assert_eq!(blocks(&image, LOW, &offsets), "- - 0 0 0 1 1 -");
    let outside = RangeSection::ready_to_run(LOW, LOW + 0x10, &[(LOW + 0x10, CodeIndex(0))]);
    assert_eq!(outside.map(|_| ()), Err(SectionError::Outside { start: LOW + 0x10 }));
}

#[test]
fn a_native_image_is_code_only_in_its_code_sections() {
    // Hot, unprofiled, cold.
    let sections =
        [(LOW + 0x1000, LOW + 0x2000), (LOW + 0x2800, LOW + 0x2900), (LOW + 0x4000, LOW + 0x4800)];
    let methods = [
        (LOW + 0x1000, CodeIndex(0)),
        (LOW + 0x1800, CodeIndex(1)),
        (LOW + 0x2840, CodeIndex(2)),
        // The cold part of the first method.
        (LOW + 0x4010, CodeIndex(0)),
    ];
    let image = RangeSection::native_image(LOW, LOW + 0x8000, &sections, &methods).unwrap();
    for (offsets, expected) in [
        (vec![0, 0xFFF, 0x1000, 0x17FF, 0x1800, 0x1FFF, 0x2000, 0x27FF], "- - 0 0 1 1 - -"),
        (vec![0x2840, 0x28FF, 0x2900, 0x3FFF], "2 2 - -"),
        (vec![0x4010, 0x47FF, 0x4800, 0x7FFF, 0x8000], "0 0 - - -"),
    ] {
        assert_eq!(blocks(&image, LOW, &offsets), expected, "{offsets:x?}");
    }
    for outside in [LOW - 1, LOW + 0x8001] {
        let sections = [(LOW, outside)];
        let image = RangeSection::native_image(LOW, LOW + 0x8000, &sections, &methods);
        assert_eq!(image.map(|_| ()), Err(SectionError::Outside { start: outside }));
    }
}
