//! The cache of rules by return address, which must never change a result. Every step of `Case`
//! also checks that a cached step has the same result as the plain step, errors included.

use super::*;

/// Returns a heap of one function, with its table.
fn heap(begin: u32, end: u32, info: &Info) -> (Vec<u8>, Vec<u8>) {
    let bytes = [vec![0xCC; end as usize], info.bytes()].concat();
    (bytes, crate::win64::case::bytes_of(&[begin, end, end]))
}

fn insert<'a>(map: &mut CodeMap<'a>, base: u64, (bytes, table): &'a (Vec<u8>, Vec<u8>)) {
    map.insert(CodeRegion::heap(base, bytes, FunctionTable::new(table)).unwrap()).unwrap();
}

/// Makes the step with and without the cache, and returns its result.
fn step(map: &CodeMap<'_>, cache: &mut Cache, before: &Registers) -> Registers {
    let stack = Case::new().stack;
    let (mut plain, mut cached) = (*before, *before);
    let unwinder = Unwinder::new(map);
    let expected = unwinder.step(&mut plain, Position::ReturnAddress, &stack);
    let got = unwinder.step_cached(cache, &mut cached, Position::ReturnAddress, &stack);
    assert_eq!((cached, got), (plain, expected));
    plain
}

#[test]
fn caches_hold_rules_not_results() {
    let infos = [
        Info::new(4, &[(4, Small(0x20)), (2, Push(Rbx)), (1, Push(Rsi))]),
        Info::new(9, &[(9, Save(Rsi, 0x30)), (9, Xmm(7, 0x40)), (5, Small(0x20)), (1, Push(R12))]),
        Info::new(9, &[(9, Save(Rsi, 0x30)), (6, SetFrame), (1, Push(Rbp))]).frame(Rbp, 0x10),
        Info::new(9, &[(9, Xmm(6, 0x30)), (6, SetFrame), (1, Push(Rbp))]).frame(Rbp, 0xF0),
    ];
    for info in infos {
        let heap = heap(0, 0x40, &info.handler(3, 0x10));
        let mut map = CodeMap::new();
        insert(&mut map, BASE, &heap);
        let mut cache = Cache::new();
        let mut seen = Vec::new();
        for n in 0..10 {
            let mut registers = Registers { rip: BASE + 0x20, ..registers() };
            registers.set(Gpr::Rsp, slot(n));
            registers.set(Rbp, slot(60 + 2 * n));
            seen.push(step(&map, &mut cache, &registers));
        }
        seen.dedup();
        assert_eq!(seen.len(), 10, "the answers differ");
    }
}

/// Steps by rules read whole windows of the stack, and others word by word.
#[test]
fn windows_of_the_stack_give_the_words_that_are_read() {
    let words: Vec<u8> = (0..64).flat_map(|n| word(n).to_le_bytes()).collect();
    let before = Registers { rip: BASE + 0x20, ..registers() };
    let step = |map: &CodeMap<'_>, stack: &Segment<'_>| {
        let mut registers = before;
        let step = Unwinder::new(map).step(&mut registers, Position::ReturnAddress, stack);
        (registers, step)
    };
    for (vectors, pushes) in (0..=6_u8).flat_map(|x| (0..=8_u8).map(move |n| (x, n))) {
        let saves = (0..vectors).map(|n| (20, Xmm(15 - n, 16 * u32::from(n))));
        let room = (16 * vectors).max(8);
        let pushed = Gpr::NONVOLATILE.into_iter().take(pushes.into());
        let codes: Vec<_> = saves
            .chain([(10, Small(room))])
            .chain((1..=pushes).rev().zip(pushed).map(|(at, register)| (at, Push(register))))
            .collect();
        let info = Info::new(20, &codes);
        let heap = heap(0, 0x40, &info);
        let mut map = CodeMap::new();
        insert(&mut map, BASE, &heap);
        // Generated code has no rules.
        let entry = RuntimeFunction { begin: 0, end: 0x40, unwind_info: 0x40 };
        let run = Run { rva: 0, bytes: heap.0.clone() };
        let read = CodeRegion::generated(BASE..BASE + 0x40, BASE, &[entry], vec![run]).unwrap();
        let mut map_without_rules = CodeMap::new();
        map_without_rules.insert(read).unwrap();

        for len in (0..words.len()).step_by(8) {
            let stack = Segment::new(slot(0), &words[..len]);
            let expected = step(&map_without_rules, &stack);
            // The first step makes the rule, the second one finds it.
            let got = [step(&map, &stack), step(&map, &stack)];
            assert_eq!(got, [expected; 2], "xmm: {vectors}, pushes: {pushes}, {len} bytes");
        }
        let (after, _) = step(&map, &Segment::new(slot(0), &words));
        let first = i64::from(room / 8);
        for (xmm, n) in after.xmm.iter().rev().zip(0..i64::from(vectors)) {
            assert_eq!(*xmm, u128::from(word(2 * n)) | u128::from(word(2 * n + 1)) << 64);
        }
        for (register, n) in Gpr::NONVOLATILE.into_iter().zip(0..i64::from(pushes)) {
            assert_eq!(after.get(register), word(first + n));
        }
        assert_eq!(after.rip, word(first + i64::from(pushes)));
    }
}

#[test]
fn a_changed_map_is_noticed() {
    let [old, new] =
        [Rbx, Rsi].map(|register| heap(0, 0x40, &Info::new(1, &[(1, Push(register))])));
    let returned_to = |rva| Registers { rip: BASE + rva, ..registers() };
    let mut map = CodeMap::new();
    insert(&mut map, BASE, &old);
    let mut cache = Cache::new();
    let with_old = [0x20, 0x30].map(|rva| step(&map, &mut cache, &returned_to(rva)));
    let copy = map.clone();
    map.remove(BASE).unwrap();
    insert(&mut map, BASE, &new);
    // `step` compares with what is found without a cache.
    let with_new = [0x20, 0x30].map(|rva| step(&map, &mut cache, &returned_to(rva)));
    assert_ne!(with_old, with_new);
    // The copy is what the map was; another map is another one.
    assert_eq!(step(&copy, &mut cache, &returned_to(0x20)), with_old[0]);
    let mut other = CodeMap::new();
    insert(&mut other, BASE, &new);
    assert_eq!(step(&other, &mut cache, &returned_to(0x20)), with_new[0]);
    other.remove(BASE).unwrap();
    let (mut gone, stack) = (returned_to(0x20), Case::new().stack);
    let step =
        Unwinder::new(&other).step_cached(&mut cache, &mut gone, Position::ReturnAddress, &stack);
    assert_eq!(step, Err(UnwindError::UnknownCode { address: BASE + 0x20 }));
}

#[test]
fn copies_of_a_map_change_apart() {
    let [one, other] =
        [Rbx, Rsi].map(|register| heap(0, 0x40, &Info::new(1, &[(1, Push(register))])));
    let mut map = CodeMap::new();
    let mut copy = map.clone();
    insert(&mut map, BASE, &one);
    insert(&mut copy, BASE, &other);
    let mut cache = Cache::new();
    let before = Registers { rip: BASE + 0x20, ..registers() };
    let answers = [&map, &copy, &map].map(|map| step(map, &mut cache, &before));
    assert_eq!(answers[0], answers[2]);
    assert_ne!(answers[0], answers[1]);
}

/// A jump out of the region ends an epilogue if what it goes to has no frame yet.
#[test]
fn a_region_keeps_no_rule_that_depends_on_another_region() {
    const OTHER: u64 = BASE + 0x1_0000;
    let (mut bytes, table) = heap(0, 0x40, &Info::new(1, &[(1, Push(Rbx))]));
    let distance = (OTHER + 0x10 - (BASE + 0x25)) as u32;
    bytes[0x20..0x25].copy_from_slice(&[&[0xE9][..], &distance.to_le_bytes()].concat());
    let (one, other) = ((bytes, table), heap(0, 0x40, &Info::new(1, &[(1, Push(Rsi))])));
    let mut map = CodeMap::new();
    insert(&mut map, BASE, &one);
    let mut copy = map.clone();
    insert(&mut copy, OTHER, &other);
    let stack = Case::new().stack;
    for _ in 0..2 {
        for (map, trust) in [(&map, Trust::EpilogueInstructions), (&copy, Trust::Body)] {
            let mut registers = Registers { rip: BASE + 0x20, ..registers() };
            let step = Unwinder::new(map).step(&mut registers, Position::Interrupted, &stack);
            assert_eq!(step.map(|step| step.trust), Ok(trust));
        }
    }
}

/// Operation 11 is one of Unix.
#[test]
fn a_region_of_another_convention_has_other_rules() {
    let info = Info::new(9, &[(9, Raw(11, 0, &[1, 0])), (1, Push(Rbp))]).frame(Rbp, 0xF0);
    let (bytes, table) = heap(0, 0x40, &info);
    let windows = CodeRegion::heap(BASE, &bytes, FunctionTable::new(&table)).unwrap();
    let unix = || windows.clone().with_convention(Convention::SystemV);
    let stack = Case::new().stack;
    let is_known = |region| {
        let mut map = CodeMap::new();
        map.insert(region).unwrap();
        let mut registers = Registers { rip: BASE + 0x20, ..registers() };
        registers.set(Rbp, slot(40));
        let unwinder = Unwinder::new(&map);
        unwinder.step(&mut registers, Position::ReturnAddress, &stack).is_ok()
    };
    assert!(is_known(unix()));
    assert!(!is_known(windows.clone()));
    assert!(is_known(unix()));
    assert!(!is_known(unix().with_convention(Convention::WindowsX64)));
}

#[test]
fn rules_do_not_mix() {
    // The next function begins at the return address: to Windows it is in there.
    let case = Case::new()
        .function([0x100, 0x140, 0x800], &Info::new(1, &[(1, Push(Rbx))]))
        .function([0x140, 0x180, 0x810], &Info::new(0, &[(0, Push(Rsi))]));
    let before = Registers { rip: BASE + 0x140, ..registers() };
    let mut cache = Cache::new();
    let all = [Rules::Precise, Rules::CoreClr, Rules::Precise, Rules::CoreClrUnix, Rules::Precise];
    for rules in all {
        for (position, rbx) in
            [(Position::ReturnAddress, rules == Rules::Precise), (Position::Interrupted, false)]
        {
            let mut registers = before;
            case.with_map(|map| {
                let unwinder = Unwinder::new(map).with_rules(rules);
                unwinder.step_cached(&mut cache, &mut registers, position, &case.stack).unwrap();
            });
            let changed = registers.get(Rbx) != before.get(Rbx);
            assert_eq!(changed, rbx, "{rules:?} {position:?}");
        }
    }
}

#[test]
fn more_return_addresses_than_entries_are_no_trouble() {
    // Every address of a large function is a return address; its prologue makes them differ.
    let codes: Vec<_> = (1..=60).rev().map(|n| (4 * n, Small(8 * (n % 16 + 1)))).collect();
    let heap = heap(0, 0x2000, &Info::new(0xFF, &codes));
    let mut map = CodeMap::new();
    insert(&mut map, BASE, &heap);
    let mut cache = Cache::new();
    for _ in 0..2 {
        for rva in 1..=0x2000 {
            step(&map, &mut cache, &Registers { rip: BASE + rva, ..registers() });
        }
    }
}
