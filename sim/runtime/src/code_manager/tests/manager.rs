//! Sections in a code manager: lookup, unloading, unwinding.

use super::*;
use clr_unwind::{
    FunctionTable,
    Gpr::{Rbx, Rsp},
    Segment,
};

const SIZE: u64 = 0x1000;
/// rsp before a step (VA).
const STACK: u64 = 0x1F_0000;

/// Returns the bytes of a section, with unwind data for a pushed rbx at 0x800, and the entry [0,
/// 0x40, 0x800] at 0xC00.
fn bytes() -> Vec<u8> {
    let mut bytes = vec![0xCC; SIZE as usize];
    // Version 1, a prologue of 1 byte, one code: at 1, push rbx.
    bytes[0x800..0x808].copy_from_slice(&[1, 1, 1, 0, 1, 0x30, 0, 0]);
    bytes[0xC00..0xC0C].copy_from_slice(&[0, 0, 0, 0, 0x40, 0, 0, 0, 0, 8, 0, 0]);
    bytes
}

fn table(entries: &[[u32; 3]]) -> Vec<u8> {
    entries.iter().flatten().flat_map(|field| field.to_le_bytes()).collect()
}

fn region<'a>(low: u64, bytes: &'a [u8], functions: &'a [u8]) -> CodeRegion<'a> {
    CodeRegion::heap(low, bytes, FunctionTable::new(functions)).unwrap()
}

fn method(id: u64) -> Method {
    Method { id: FunctionId(id), ..Method::default() }
}

fn compiled(method: MethodIndex, start: u64) -> CodeVersion {
    CodeVersion { method, start, size: 0x40, ..CodeVersion::default() }
}

/// Returns a heap with one method, at its start.
fn heap(low: u64, code: CodeIndex) -> RangeSection {
    RangeSection::code_heap(low, low + SIZE, &[(low, Block::Code(code))]).unwrap()
}

/// Returns the FunctionID that an address belongs to, or 0.
fn id_at(manager: &CodeManager<'_>, ip: u64) -> u64 {
    manager.find(ip).map_or(0, |managed| managed.method.id.0)
}

fn starts(manager: &CodeManager<'_>, method: MethodIndex) -> Vec<u64> {
    manager.versions(method).map(|code| code.start).collect()
}

/// Tests C-147 with two methods of 10.0.15, the first of which ends before a border of 256 bytes and the next behind it.
#[test]
fn newer_runtimes_look_at_two_slots() {
    let bytes = vec![0xCC; 2 * SIZE as usize];
    for generation in Generation::ALL {
        let mut manager = CodeManager::new().on(generation);
        let method = manager.add_method(method(1));
        let version = |start, size| CodeVersion { method, start, size, ..CodeVersion::default() };
        let sizes = [(LOW + 0xB40, 0x1BC), (LOW + 0xD10, 0xF0), (LOW + 0x1400, 0x200)];
        let starts = sizes.map(|(start, size)| {
            let code = manager.add_code(version(start, size));
            (start, Block::Code(code))
        });
        let heap = RangeSection::code_heap(LOW, LOW + 0x2000, &starts).unwrap();
        manager.add_section(heap, region(LOW, &bytes, &[])).unwrap();
        let found = |offset: u64| manager.find(LOW + offset).map(|it| it.code.start - LOW);
        let far = |start| (!generation.reads_two_slots()).then_some(start);
        for (offset, start) in [
            (0xB40, Some(0xB40)),
            // Padding in the slot in which the method ends, and behind it.
            (0xCFF, Some(0xB40)),
            (0xD00, far(0xB40)),
            (0xD0F, far(0xB40)),
            (0xD10, Some(0xD10)),
            // The method ends with its slot, which leads to its start from the next one, too.
            (0xEFF, Some(0xD10)),
            (0xF00, far(0xD10)),
            (0x13FF, far(0xD10)),
            // The method covers the slot after that of its start wholly.
            (0x16FF, Some(0x1400)),
            (0x1700, far(0x1400)),
        ] {
            assert_eq!(found(offset), start, "{generation}: {offset:#x}");
        }
    }
}

#[test]
fn stubs_are_found_but_are_not_managed() {
    let bytes = bytes();
    let mut manager = CodeManager::new();
    let first = manager.add_method(method(7));
    let code = manager.add_code(compiled(first, LOW));
    let starts = [(LOW, Block::Code(code)), (LOW + 0x40, Block::Stub(StubKind::DynamicHelper))];
    let heap = RangeSection::code_heap(LOW, LOW + SIZE, &starts).unwrap();
    manager.add_section(heap, region(LOW, &bytes, &[])).unwrap();
    for (ip, id, block) in [
        (0, 0, None),
        (LOW - 1, 0, None),
        (LOW, 7, Some(Block::Code(code))),
        (LOW + 0x3F, 7, Some(Block::Code(code))),
        (LOW + 0x40, 0, Some(Block::Stub(StubKind::DynamicHelper))),
        (LOW + SIZE - 1, 0, Some(Block::Stub(StubKind::DynamicHelper))),
        (LOW + SIZE, 0, None),
        (u64::MAX, 0, None),
    ] {
        assert_eq!((id_at(&manager, ip), manager.block(ip)), (id, block), "{ip:#x}");
    }
}

#[test]
fn methods_are_found_by_id_and_versions_are_in_order() {
    let bytes = bytes();
    let mut manager = CodeManager::new();
    let (first, second) = (manager.add_method(method(7)), manager.add_method(method(9)));
    let codes = [(first, 0x80), (second, 0x40), (first, 0)].map(|(method, offset)| {
        (LOW + offset, Block::Code(manager.add_code(compiled(method, LOW + offset))))
    });
    let heap = RangeSection::code_heap(LOW, LOW + SIZE, &codes).unwrap();
    // Code without its section is not found.
    assert_eq!(manager.versions(first).count(), 0);
    manager.add_section(heap, region(LOW, &bytes, &[])).unwrap();
    assert_eq!(manager.method(FunctionId(9)).unwrap().0, second);
    assert_eq!(manager.method(FunctionId(7)).unwrap().1.id, FunctionId(7));
    assert!(manager.method(FunctionId(0)).is_none());
    // In the order of creation.
    assert_eq!(starts(&manager, first), [LOW + 0x80, LOW]);
    assert_eq!(starts(&manager, second), [LOW + 0x40]);
}

#[test]
fn sections_do_not_overlap() {
    let bytes = bytes();
    let mut manager = CodeManager::new();
    let mut add = |low: u64, high: u64| {
        let section = RangeSection::code_heap(low, high, &[]).unwrap();
        manager.add_section(section, region(low, &bytes[..(high - low) as usize], &[]))
    };
    add(LOW + 0x400, LOW + 0x800).unwrap();
    for (low, high) in [(0x400, 0x800), (0x7FF, 0x900), (0, 0x401), (0x500, 0x600), (0, 0x1000)] {
        let error = CodeMapError::Overlap { base: LOW + low, other: LOW + 0x400 };
        assert_eq!(add(LOW + low, LOW + high), Err(error), "{low:#x}");
    }
    add(LOW + 0x800, LOW + 0x900).unwrap();
    add(LOW, LOW + 0x400).unwrap();
}

#[test]
fn overlaps_in_the_map_alone_change_nothing() {
    let bytes = bytes();
    let mut manager = CodeManager::new();
    let section = |low| RangeSection::code_heap(low, low + 0x100, &[]).unwrap();
    manager.add_section(section(LOW), region(LOW, &bytes, &[])).unwrap();
    let error = manager.add_section(section(LOW + 0x200), region(LOW + 0x200, &bytes, &[]));
    assert_eq!(error, Err(CodeMapError::Overlap { base: LOW + 0x200, other: LOW }));
    assert!(!manager.remove_section(LOW + 0x200));
}

#[test]
fn unloaded_code_is_forgotten() {
    let bytes = bytes();
    let mut manager = CodeManager::new();
    let first = manager.add_method(method(7));
    for low in [LOW, LOW + SIZE] {
        let code = manager.add_code(compiled(first, low));
        manager.add_section(heap(low, code), region(low, &bytes, &[])).unwrap();
    }
    assert_eq!(starts(&manager, first), [LOW, LOW + SIZE]);
    assert!(!manager.remove_section(LOW - 1));
    assert!(!manager.remove_section(LOW + 2 * SIZE));
    assert!(manager.remove_section(LOW + SIZE - 1));
    assert!(!manager.remove_section(LOW));
    assert_eq!((id_at(&manager, LOW), id_at(&manager, LOW + SIZE)), (0, 7));
    assert_eq!(starts(&manager, first), [LOW + SIZE]);
    // Another method's code at the same address is distinct.
    let second = manager.add_method(method(9));
    let code = manager.add_code(compiled(second, LOW));
    manager.add_section(heap(LOW, code), region(LOW, &bytes, &[])).unwrap();
    assert_eq!((id_at(&manager, LOW), starts(&manager, second)), (9, vec![LOW]));
    assert_eq!(starts(&manager, first), [LOW + SIZE]);
}

/// Returns the result of one step from `offset` in a section with these function entries: rbx, rip,
/// rsp.
fn unwound(section: RangeSection, entries: &[[u32; 3]], offset: u64) -> [u64; 3] {
    let (bytes, functions) = (bytes(), table(entries));
    let mut manager = CodeManager::new();
    let first = manager.add_method(method(7));
    manager.add_code(compiled(first, LOW));
    manager.add_section(section, region(LOW, &bytes, &functions)).unwrap();
    let stack: Vec<u8> = [0xA0_u64, 0xA1].into_iter().flat_map(u64::to_le_bytes).collect();
    let mut registers = Registers { rip: LOW + offset, ..Registers::default() };
    registers.set(Rbx, 0xB);
    registers.set(Rsp, STACK);
    let found = manager.find(registers.rip).expect("it is managed");
    assert_eq!((found.method.id, found.code.start), (FunctionId(7), LOW));
    let memory = Segment::new(STACK, &stack);
    manager.unwind(found, Rules::CoreClr, &mut registers, &memory).unwrap();
    [registers.get(Rbx), registers.rip, registers.rsp()]
}

const AS_LEAF: [u64; 3] = [0xB, 0xA0, STACK + 8];
const WITH_RBX: [u64; 3] = [0xA0, 0xA1, STACK + 0x10];

#[test]
fn padding_of_a_heap_is_unwound_as_a_leaf() {
    for (offset, expected) in
        [(0, AS_LEAF), (1, WITH_RBX), (0x3F, WITH_RBX), (0x40, AS_LEAF), (SIZE - 1, AS_LEAF)]
    {
        let section = heap(LOW, CodeIndex(0));
        assert_eq!(unwound(section, &[[0, 0x40, 0x800]], offset), expected, "{offset:#x}");
    }
}

#[test]
fn ready_to_run_entries_are_used_beyond_their_end() {
    let entries = [[0x10, 0x40, 0x800], [0x80, 0x90, 0x900]];
    let one = &entries[..1];
    for (entries, offset, expected) in [
        // No entry precedes this address.
        (one, 0, AS_LEAF),
        // Before the first instruction nothing has been pushed.
        (one, 0x10, AS_LEAF),
        (one, 0x3F, WITH_RBX),
        (one, 0x40, WITH_RBX),
        (one, SIZE - 1, WITH_RBX),
        (&entries, 0x7F, WITH_RBX),
    ] {
        let methods = [(LOW, CodeIndex(0))];
        let image = RangeSection::ready_to_run(LOW, LOW + SIZE, &methods).unwrap();
        assert_eq!(unwound(image, entries, offset), expected, "{offset:#x}");
    }
}

/// The entry of cold code has the RVA of the hot part's entry, with the highest bit set (contract
/// §8.1).
#[test]
fn cold_code_is_unwound_by_the_entry_of_the_hot_part() {
    let sections = [(LOW, LOW + 0x100), (LOW + 0x400, LOW + 0x500)];
    let methods = [(LOW, CodeIndex(0)), (LOW + 0x400, CodeIndex(0))];
    let entries = [[0, 0x40, 0x800], [0x400, 0x420, 0x8000_0C00]];
    for offset in [0x400, 0x41F, 0x420, 0x4FF] {
        let image = RangeSection::native_image(LOW, LOW + SIZE, &sections, &methods).unwrap();
        assert_eq!(unwound(image, &entries, offset), WITH_RBX, "{offset:#x}");
    }
}

/// Tests H-18.
#[test]
fn freed_code_is_no_managed_code_and_its_id_dangles() {
    let bytes = bytes();
    let mut manager = CodeManager::new();
    let [first, second] = [7, 9].map(|id| manager.add_method(method(id)));
    let codes = [(first, 0), (second, 0x40)].map(|(method, offset)| {
        (LOW + offset, Block::Code(manager.add_code(compiled(method, LOW + offset))))
    });
    let heap = RangeSection::code_heap(LOW, LOW + SIZE, &codes).unwrap();
    manager.add_section(heap, region(LOW, &bytes, &[])).unwrap();
    let state = |manager: &CodeManager<'_>| {
        let ids = [7, 9, 11].map(|id| manager.is_dangling(FunctionId(id)));
        let places = [LOW - 1, LOW, LOW + 0x3F, LOW + 0x40, LOW + 0x7F, LOW + 0x80];
        (ids, places.map(|at| (id_at(manager, at), manager.was_freed(at))))
    };
    let whole = state(&manager);
    // The last method's block reaches to the section's end, its code does not.
    let ids = [(0, false), (7, false), (7, false), (9, false), (9, false), (9, false)];
    assert_eq!(whole, ([false; 3], ids));

    assert!(!manager.free(FunctionId(11)), "there is no such method");
    assert!(manager.free(FunctionId(9)) && !manager.free(FunctionId(9)));
    assert_eq!(manager.freed_count(), 1);
    let ids = [(0, false), (7, false), (7, false), (0, true), (0, true), (0, false)];
    assert_eq!(state(&manager), ([false, true, false], ids));
    assert!(manager.free(FunctionId(7)));
    assert_eq!(manager.freed_count(), 2);
    let none = [(0, false), (0, true), (0, true), (0, true), (0, true), (0, false)];
    assert_eq!(state(&manager), ([true, true, false], none));

    manager.unfree(1);
    assert_eq!((manager.freed_count(), state(&manager)), (1, ([false, true, false], ids)));
    manager.unfree(0);
    assert_eq!((manager.freed_count(), state(&manager)), (0, whole));
}

#[test]
fn images_are_reported_from_heaps() {
    let bytes = bytes();
    let mut manager = CodeManager::new();
    let heap = RangeSection::code_heap(LOW, LOW + SIZE, &[]).unwrap();
    manager.add_section(heap, region(LOW, &bytes, &[])).unwrap();
    let at = LOW + 2 * SIZE;
    let image = RangeSection::ready_to_run(at, at + SIZE, &[]).unwrap();
    manager.add_section(image, region(at, &bytes, &[])).unwrap();
    for (address, expected) in [
        (LOW, false),
        (LOW + SIZE, false),
        (at - 1, false),
        (at, true),
        (at + SIZE - 1, true),
        (at + SIZE, false),
    ] {
        assert_eq!(manager.is_in_image(address), expected, "{address:#x}");
    }
}

#[test]
fn funclets_are_parts_of_their_code() {
    let funclet = |start, end, funclet| FuncletRange { start, end, funclet };
    let code = CodeVersion {
        funclets: vec![
            funclet(LOW + 0x20, LOW + 0x30, Funclet::Filter),
            funclet(LOW + 0x30, LOW + 0x38, Funclet::Handler),
        ],
        ..compiled(MethodIndex(0), LOW)
    };
    for (offset, expected) in [
        (0, None),
        (0x1F, None),
        (0x20, Some(Funclet::Filter)),
        (0x2F, Some(Funclet::Filter)),
        (0x30, Some(Funclet::Handler)),
        (0x37, Some(Funclet::Handler)),
        (0x38, None),
    ] {
        assert_eq!(code.funclet(LOW + offset), expected, "{offset:#x}");
    }
}
