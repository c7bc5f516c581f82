//! The cache of rules by return address, which must never change a result.

use super::*;

const HEAP: u64 = 0x7F80_0000_0000;

/// Returns a case with a function whose instructions are a byte long each, and whose frame differs
/// at each of them.
fn every_byte_differs() -> Case {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    let row = |n: u32| [Cfi::DefCfaOffset(8 * u64::from(n % 31 + 1)), Cfi::Advance(1)];
    let rows: Vec<_> = (0..CODE_SIZE).flat_map(row).collect();
    frames.fde(cie, CODE, CODE_SIZE, &rows);
    Case::new(&frames, 0)
}

/// Returns numbers in no order: Knuth's linear congruential generator.
fn in_no_order(count: usize, below: u64) -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    })
    .take(count)
}

/// There are more addresses than entries, their order changes all the time, and native and managed
/// code alternate.
#[test]
fn steps_with_a_cache_are_those_without() {
    let case = every_byte_differs();
    let mut map = case.map();
    // Codes of a prologue of 255 bytes, each of which allocates, so that every address has its own
    // frame.
    let codes = (1..=120_u8).rev().flat_map(|n| [2 * n, 2 | (n % 16) << 4]);
    let mut heap = vec![0xCC; 0x100];
    heap.extend([1, 0xFF, 120, 0].into_iter().chain(codes));
    let table: Vec<u8> = [0_u32, 0x100, 0x100].into_iter().flat_map(u32::to_le_bytes).collect();
    map.insert(CodeRegion::heap(HEAP, &heap, FunctionTable::new(&table)).unwrap()).unwrap();
    let stack: Vec<u8> = (0_u64..0x400).flat_map(|n| (n << 8).to_le_bytes()).collect();
    let memory = Segment::new(slot(0), &stack);

    let in_order = (1..=u64::from(CODE_SIZE)).chain(1..=u64::from(CODE_SIZE));
    let native = in_order.chain(in_no_order(20_000, CODE_SIZE.into()).map(|n| n + 1));
    let managed = in_no_order(1 << 20, 0x100).map(|n| HEAP + 1 + n);
    let rips = native.zip(managed).flat_map(|(native, managed)| [at(native as u32), managed]);
    let mut cache = Cache::new();
    let mut seen = 0;
    for (rip, rules) in rips.zip([Rules::Precise; 7].into_iter().chain([Rules::CoreClr]).cycle()) {
        let unwinder = Unwinder::new(&map).with_rules(rules);
        let mut plain = Registers { rip, ..case.registers };
        let mut cached = plain;
        let expected = unwinder.step(&mut plain, Position::ReturnAddress, &memory);
        let got = unwinder.step_cached(&mut cache, &mut cached, Position::ReturnAddress, &memory);
        assert_eq!((cached, got), (plain, expected), "{rip:#x}");
        seen |= 1_u64 << (plain.rsp() / 8 % 64);
    }
    assert!(seen.count_ones() > 40, "the answers differ");
}

/// The address of an empty entry is never looked up.
#[test]
fn no_entry_is_one_for_address_0() {
    let case = every_byte_differs();
    let map = case.map();
    let memory = Segment::new(slot(0), &[0; 0x200]);
    let mut cache = Cache::new();
    let mut step = |rip| {
        let mut registers = Registers { rip, ..case.registers };
        // The registers that an empty entry would count from lead to a caller.
        registers.set(Gpr::Rax, slot(8));
        let position = Position::ReturnAddress;
        Unwinder::new(&map).step_cached(&mut cache, &mut registers, position, &memory)
    };
    for rip in [0, at(5), 0, at(6), 0, 1, u64::MAX] {
        match step(rip) {
            Ok(_) => assert!(rip > u64::from(u32::MAX) && rip < u64::MAX, "{rip:#x}"),
            Err(error) => assert_eq!(error, UnwindError::UnknownCode { address: rip }),
        }
    }
}
