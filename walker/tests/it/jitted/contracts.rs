//! Data contracts made by hand, with offsets that no runtime has: they are taken from the descriptor.

use super::*;

const DESCRIPTOR: u64 = 0x4000;
const TEXT: u64 = 0x5003;
const POINTERS: u64 = 0x4100;
/// The range section map, whose table begins at +8.
const MAP: u64 = 0x10_0000;
/// The tables of levels 4 to 1.
const TABLES: [u64; 4] = [0x11_0000, 0x12_0000, 0x13_0000, 0x14_0000];
const FRAGMENT: u64 = 0x20_0000;
const SECTION: u64 = 0x21_0000;
const HEAP: u64 = 0x22_0000;
const NIBBLES: u64 = 0x23_0000;
/// A second section, in the same chunk after the heap.
const OTHER_FRAGMENT: u64 = 0x20_0100;
const OTHER_SECTION: u64 = 0x21_0100;
/// A stub block in the heap.
const STUBS: u64 = BASE + 0x800;

const TYPES: &str = r#""types":{
"RangeSectionMap":{"TopLevelData":8},
"RangeSectionFragment":{"Next":[24,"pointer"],"RangeBegin":0,"RangeEndOpen":8,"RangeSection":16},
"RangeSection":{"Flags":4,"RangeBegin":8,"RangeEndOpen":16,"JitManager":24,"HeapList":32,"R2RModule":40,
"NextForDelete":48},
"CodeHeapListNode":{"Next":32,"StartAddress":24,"EndAddress":16,"MapBase":8,"HeaderMap":0},
"RealCodeHeader":{"MethodDesc":24,"NumUnwindInfos":32,"UnwindInfos":36},
"RuntimeFunction":{"!":12,"BeginAddress":0,"EndAddress":4,"UnwindData":8}}"#;
const GLOBALS: &str = r#""globals":{"StubCodeBlockLast":["0xf","uint8"],
"ExecutionManagerCodeRangeMapAddress":[[1],"pointer"],"Plain":[0],"Number":7,"Text":["x64","string"]}"#;
const CONTRACTS: &str = r#""contracts":{"ExecutionManager":2}"#;

fn text() -> String {
    format!(r#"{{"version":0,"baseline":"empty",{TYPES},{GLOBALS},{CONTRACTS}}}"#)
}

/// Writes a descriptor with this text.
fn describe(process: &mut Process, text: &str) {
    process.write(DESCRIPTOR, b"DNCCDAC\0");
    process.write_u32s(DESCRIPTOR + 8, &[1, text.len() as u32]);
    process.write_u64s(DESCRIPTOR + 16, &[TEXT, 2, POINTERS]);
    process.write(TEXT, text.as_bytes());
    process.write_u64s(POINTERS, &[0xABCD, MAP]);
}

/// Returns the nibble of a start in its unit: the unit's index, and the nibble in place.
fn unit(start: u64) -> (u64, u32) {
    let offset = start - BASE;
    let nibble = (offset % 32 / 4 + 1) as u32;
    (offset / 256, nibble << (28 - 4 * (offset % 256 / 32)))
}

/// Returns a process with the method, and a runtime's map that leads to it.
fn process() -> Process {
    let mut process = Process::with_method();
    describe(&mut process, &text());
    for table in [MAP + 8].iter().chain(&TABLES) {
        process.write(*table, &[0; 2048]);
    }
    let slot = |table: u64, shift: u32| table + (BASE >> shift & 0xFF) * 8;
    process.write_u64s(slot(MAP + 8, 49), &[TABLES[0]]);
    // The mark of what may be unloaded.
    process.write_u64s(slot(TABLES[0], 41), &[TABLES[1] + 1]);
    process.write_u64s(slot(TABLES[1], 33), &[TABLES[2]]);
    process.write_u64s(slot(TABLES[2], 25), &[TABLES[3] + 1]);
    process.write_u64s(slot(TABLES[3], 17), &[OTHER_FRAGMENT]);
    process.write_u64s(
        OTHER_FRAGMENT,
        &[BASE + 0x1_0000, BASE + 0x1_8000, OTHER_SECTION, FRAGMENT + 1],
    );
    process.write_u64s(OTHER_SECTION, &[0, BASE + 0x1_0000, BASE + 0x1_8000, 1, 0, 0x9000, 0]);
    process.write_u64s(FRAGMENT, &[BASE, BASE + 0x1_0000, SECTION, 0]);
    // Code heap, collectible.
    process.write_u32s(SECTION, &[0, 3]);
    process.write_u64s(SECTION + 8, &[BASE, BASE + 0x1_0000, 1, HEAP, 0, 0]);
    process.write_u64s(HEAP, &[NIBBLES, BASE, BASE + 0x900, BASE + 0x100, 0]);
    process.write(NIBBLES, &[0; 40]);
    for start in [START, STUBS] {
        let (index, nibble) = unit(start);
        process.write_u32s(NIBBLES + index * 4, &[nibble]);
    }
    process.write_u64s(STUBS - 8, &[6]);
    process
}

fn manager(process: &Process) -> Result<ExecutionManager, ContractError> {
    ExecutionManager::new(&ContractDescriptor::read(process, DESCRIPTOR)?)
}

fn find(process: &Process, address: u64) -> Result<Option<CodeAt>, CodeLookupError> {
    manager(process).unwrap().find(process, address)
}

/// Returns the error of looking up the method after `change`.
fn refusal(change: impl FnOnce(&mut Process)) -> CodeLookupError {
    let mut process = process();
    change(&mut process);
    find(&process, START).unwrap_err()
}

#[test]
fn an_address_leads_to_its_method() {
    let process = process();
    for address in [START, START + 1, START + 0x2F] {
        let found = find(&process, address).unwrap();
        let Some(CodeAt::Method(method)) = found else { panic!("{address:#x}: {found:?}") };
        assert_eq!(method.code_range(), START..START + 0x30);
        assert_eq!((method.base(), method.method_desc()), (BASE, METHOD_DESC));
    }
    // Before the heap's used part, before and after the method, after the heap's used part.
    for address in [BASE, BASE + 0xFF, BASE + 0x100, START - 1, START + 0x30, BASE + 0x900] {
        assert_eq!(find(&process, address), Ok(None), "{address:#x}");
    }
}

#[test]
fn stubs_images_and_foreign_addresses_are_distinguished() {
    let mut process = process();
    let kind = StubBlockKind(6);
    assert_eq!(find(&process, STUBS + 5), Ok(Some(CodeAt::StubBlock { start: STUBS, kind })));
    let range = BASE + 0x1_0000..BASE + 0x1_8000;
    let image = Ok(Some(CodeAt::ReadyToRun { range: range.clone(), module: 0x9000 }));
    assert_eq!(find(&process, range.start), image);
    assert_eq!(find(&process, range.end - 1), image);
    assert_eq!(find(&process, range.end), Ok(None), "after the last fragment");
    for address in [0, BASE + (1 << 17), BASE + (1 << 25), BASE ^ 1 << 46, BASE ^ 1 << 55] {
        assert_eq!(find(&process, address), Ok(None), "{address:#x}");
    }
    // A list of stubs instead of the image.
    process.write_u64s(OTHER_SECTION, &[4 << 32]);
    process.write_u64s(OTHER_SECTION + 40, &[0]);
    assert_eq!(find(&process, range.start), Ok(Some(CodeAt::Stubs { range })));
    // A section that is about to be deleted.
    process.write_u64s(SECTION + 48, &[1]);
    assert_eq!(find(&process, START), Ok(None));
}

#[test]
fn all_code_of_code_heaps_is_listed() {
    let mut process = process();
    let code = manager(&process).unwrap().all(&process).unwrap();
    let [Ok(CodeAt::Method(method)), Ok(CodeAt::StubBlock { start: STUBS, .. })] = code.as_slice()
    else {
        panic!("{code:?}")
    };
    assert_eq!(method.code_range().start, START);
    // A method that cannot be read is an error of its own.
    process.write_u32s(HEADER + 0x20, &[0]);
    let code = manager(&process).unwrap().all(&process).unwrap();
    let error = JittedCodeError::UnwindInfoCount { header: HEADER, count: 0 };
    assert_eq!(code.first(), Some(&Err(CodeLookupError::Method(error))));
    assert_eq!(code.len(), 2);
}

#[test]
fn version_2_has_the_start_in_units_within_a_long_method() {
    for version in ["2", "\"c1\""] {
        has_starts_within_a_long_method(version);
    }
}

fn has_starts_within_a_long_method(version: &str) {
    let mut process = process();
    let manager = |version: &str| {
        text().replace("ExecutionManager\":2", &format!("ExecutionManager\":{version}"))
    };
    describe(&mut process, &manager(version));
    // A method of 0x500 bytes, which covers units 4 to 7.
    let size = 0x500;
    process.write(START, &vec![0x90; size as usize]);
    process.write_u32s(HEADER + 0x20, &[1, 0x340, 0x340 + size, 0x840]);
    process.write(BASE + 0x840, &[0x19, 0, 0, 0, 0, 0, 0, 0]);
    // A pointer: 28 bits, and 9 + a quarter of the other 4.
    process.write_u32s(NIBBLES + 16, &[0x349; 4]);
    process.write_u32s(NIBBLES + 32, &[0]);
    for address in [START, START + 0xC0, START + 0x1C0, START + 0x4BF, START + 0x4C0, START + 0x4FF]
    {
        let found = find(&process, address).unwrap();
        let Some(CodeAt::Method(method)) = found else { panic!("{address:#x}: {found:?}") };
        assert_eq!(method.code_range(), START..START + u64::from(size));
    }
    // One empty unit: none before it counts.
    process.write_u32s(NIBBLES + 28, &[0]);
    assert_eq!(find(&process, START + 0x4C0), Ok(None));
    // Version 1 looks on, and knows no pointers.
    describe(&mut process, &manager("1"));
    let unit = 0x349;
    let error = find(&process, START + 0x4C0).unwrap_err();
    assert_eq!(error, CodeLookupError::NibbleMap { address: NIBBLES + 24, unit });
    process.write_u32s(NIBBLES + 16, &[0; 4]);
    for address in [START, START + 0xC0, START + 0x4FF] {
        assert!(matches!(find(&process, address), Ok(Some(CodeAt::Method(_)))), "{address:#x}");
    }
}

#[test]
fn pointers_of_the_nibble_map_have_multiples_of_4() {
    let mut process = process();
    // The start of each kind of pointer, 9 to 12; the method covers units 5 and 6.
    for (pointer, rva) in [(0x409, 0x400), (0x40A, 0x404), (0x40B, 0x408), (0x40C, 0x40C_u32)] {
        let start = BASE + u64::from(rva);
        process.write_u64s(start - 8, &[HEADER + 0x1000]);
        process.write_u64s(HEADER + 0x1018, &[METHOD_DESC]);
        process.write_u32s(HEADER + 0x1020, &[1, rva, 0x720, 0x720]);
        process.write(BASE + 0x720, &[0x19, 0, 0, 0, 0, 0, 0, 0]);
        process.write(start, &vec![0x90; (0x720 - rva) as usize]);
        process.write_u32s(NIBBLES + 20, &[pointer, pointer]);
        let found = find(&process, BASE + 0x600).unwrap();
        let Some(CodeAt::Method(method)) = found else { panic!("{pointer:#x}: {found:?}") };
        assert_eq!(method.code_range().start, start);
    }
}

#[test]
fn nibbles_stand_for_the_place_in_32_bytes() {
    // Two methods in neighbouring nibbles, the second at the end of its 32 bytes.
    let second = START + 0x3C;
    let mut process = process();
    process.write_u64s(second - 8, &[HEADER + 0x1000]);
    process.write(second, &[0xC3; 4]);
    process.write_u64s(HEADER + 0x1018, &[METHOD_DESC]);
    process.write_u32s(HEADER + 0x1020, &[1, 0x37C, 0x380, 0x3A0]);
    process.write(BASE + 0x3A0, &[0x19, 0, 0, 0, 0, 0, 0, 0]);
    process.write_u32s(NIBBLES + 12, &[unit(START).1 | unit(second).1]);
    assert_eq!(unit(second), (3, 0x0008_0000));
    let start = |address| match find(&process, address).unwrap() {
        Some(CodeAt::Method(method)) => Some(method.code_range().start),
        found => panic!("{found:?}"),
    };
    assert_eq!(start(second), Some(second));
    assert_eq!(start(second + 3), Some(second));
    assert_eq!(start(START + 0x2F), Some(START), "the same 32 bytes as the second's start");
}

#[test]
fn faulty_maps_are_refused() {
    let nibbles =
        |unit: u32| move |process: &mut Process| process.write_u32s(NIBBLES + 12, &[unit]);
    // A nibble beyond 8, an unused kind of pointer, and a pointer to later code.
    for unit in [0x0090_0000, 0x1000_000D, 0x0000_000F, 0xA49] {
        let address = NIBBLES + 12;
        assert_eq!(refusal(nibbles(unit)), CodeLookupError::NibbleMap { address, unit });
    }
    let heap = CodeLookupError::CodeHeap { address: HEAP };
    for words in [
        [NIBBLES, BASE, BASE + 0x100, BASE + 0x100],
        [NIBBLES, BASE + 0x101, BASE + 0x900, BASE + 0x100],
        [NIBBLES, BASE, BASE + 0x1_0001, BASE + 0x100],
        [NIBBLES, BASE - 0x100, BASE + 0x900, BASE - 1],
    ] {
        assert_eq!(refusal(|process| process.write_u64s(HEAP, &words)), heap, "{words:x?}");
    }
    // Flags, and whether they fit the heap, the module and the manager; the range.
    let section = CodeLookupError::RangeSection { address: SECTION };
    for words in [
        [8 | 2, BASE, BASE + 0x1_0000, 1, HEAP, 0],
        [1, BASE, BASE + 0x1_0000, 1, HEAP, 0],
        [2 | 4, BASE, BASE + 0x1_0000, 1, HEAP, 0],
        [2, BASE, BASE + 0x1_0000, 0, HEAP, 0],
        [2, BASE, BASE + 0x1_0000, 1, 0, 0],
        [2, BASE, BASE + 0x1_0000, 1, HEAP, 0x9000],
        [2, BASE + 1, BASE + 0x1_0000, 1, HEAP, 0],
        [2, BASE, BASE + 0xFFFF, 1, HEAP, 0],
    ] {
        let error = refusal(|process| {
            process.write_u64s(SECTION, &[words[0] << 32]);
            process.write_u64s(SECTION + 8, &words[1..]);
        });
        assert_eq!(error, section, "{words:x?}");
    }
    let error = refusal(|process| process.write_u64s(OTHER_FRAGMENT + 24, &[OTHER_FRAGMENT]));
    assert_eq!(error, CodeLookupError::Endless { address: OTHER_FRAGMENT });
}

#[test]
fn a_method_that_counts_from_elsewhere_is_refused() {
    let error = refusal(|process| {
        process.write_u64s(FRAGMENT, &[BASE - 0x100]);
        process.write_u64s(SECTION + 8, &[BASE - 0x100]);
    });
    let range = BASE - 0x100;
    assert_eq!(error, CodeLookupError::Base { start: START, base: BASE, range });
}

#[test]
fn lists_and_trees_without_end_are_refused_when_all_is_listed() {
    let all = |process: &Process| manager(process).unwrap().all(process).unwrap_err();
    let mut looped = process();
    looped.write_u64s(OTHER_FRAGMENT + 24, &[OTHER_FRAGMENT]);
    assert_eq!(all(&looped), CodeLookupError::Endless { address: OTHER_FRAGMENT });
    // Each table leads to itself 256 times.
    let mut looped = process();
    looped.write_u64s(MAP + 8, &[MAP + 8; 256]);
    assert!(matches!(all(&looped), CodeLookupError::Endless { .. }));
    let mut large = process();
    let end = BASE + (1 << 30);
    large.write_u64s(FRAGMENT + 8, &[end]);
    large.write_u64s(SECTION + 16, &[end]);
    large.write_u64s(HEAP + 16, &[end]);
    assert_eq!(all(&large), CodeLookupError::Endless { address: NIBBLES });
}

#[test]
fn each_byte_that_cannot_be_read_fails() {
    let whole = process();
    let found = find(&whole, START).unwrap();
    let mut needed = 0;
    for address in whole.addresses().into_iter().filter(|at| !(DESCRIPTOR..0x6000).contains(at)) {
        let mut process = whole.clone();
        process.unmap(address);
        match find(&process, START) {
            Ok(same) => assert_eq!(same, found, "{address:#x}"),
            Err(error) => {
                needed += 1;
                assert!(error.to_string().starts_with("cannot read"), "{address:#x}: {error}");
            }
        }
    }
    // 5 slots and 2 fragments, a section without padding, a heap without `Next`, a unit; the method
    // without 0x18 bytes of its header.
    let method = 8 + 0x30 + 8 + 4 + 24 + 28;
    assert_eq!(needed, 5 * 8 + (24 + 32 - 8) + 52 + 32 + 4 + method);
}

#[test]
fn globals_are_numbers_strings_or_pointers() {
    let descriptor = ContractDescriptor::read(&process(), DESCRIPTOR).unwrap();
    assert_eq!(descriptor.global("StubCodeBlockLast"), Ok(15));
    assert_eq!(descriptor.global("Number"), Ok(7));
    assert_eq!(descriptor.global("Plain"), Ok(0xABCD));
    assert_eq!(descriptor.global("ExecutionManagerCodeRangeMapAddress"), Ok(MAP));
    for name in ["Text", "Missing"] {
        assert_eq!(descriptor.global(name), Err(ContractError::MissingGlobal { name }));
    }
    assert_eq!(descriptor.field("RangeSectionFragment", "Next"), Ok(24));
    assert_eq!(descriptor.field("RuntimeFunction", "!"), Ok(12));
}

#[test]
fn net_11_has_named_versions_and_descriptors_inside() {
    let mut process = process();
    let changed = text()
        .replace(r#""version":0"#, r#""version":2"#)
        .replace(GLOBALS, &format!(r#"{GLOBALS},"subDescriptors":{{"GC":[[0],"pointer"]}}"#))
        .replace(r#""ExecutionManager":2"#, r#""ExecutionManager":"c1","StressLog":"c2""#);
    describe(&mut process, &changed);
    let descriptor = ContractDescriptor::read(&process, DESCRIPTOR).unwrap();
    assert_eq!(descriptor.contract("StressLog"), Ok(ContractVersion::C(2)));
    let found = find(&process, START).unwrap();
    assert!(matches!(found, Some(CodeAt::Method(_))), "{found:?}");
}

#[test]
fn descriptors_of_other_kinds_are_refused() {
    let error = |change: fn(&mut Process)| {
        let mut process = process();
        change(&mut process);
        ContractDescriptor::read(&process, DESCRIPTOR).unwrap_err()
    };
    let magic = u64::from_le_bytes(*b"\0CADCCND");
    let reversed = error(|process| process.write(DESCRIPTOR, b"\0CADCCND"));
    assert_eq!(reversed, ContractError::Magic { address: DESCRIPTOR, magic });
    for (flags, change) in [
        (0, (|process| process.write_u32s(DESCRIPTOR + 8, &[0])) as fn(&mut Process)),
        (3, |process| process.write_u32s(DESCRIPTOR + 8, &[3])),
    ] {
        assert_eq!(error(change), ContractError::Flags { flags });
    }
    let text = error(|process| process.write_u32s(DESCRIPTOR + 12, &[1 << 21]));
    assert_eq!(text, ContractError::Size { text: 1 << 21, pointers: 2 });
    let pointers = error(|process| process.write_u32s(DESCRIPTOR + 24, &[1 << 13]));
    assert!(matches!(pointers, ContractError::Size { pointers: 0x2000, .. }), "{pointers}");
    assert_eq!(error(|process| process.write(TEXT, b"[]")), ContractError::Json { offset: 2 });
}

#[test]
fn texts_of_another_form_are_refused() {
    for (from, to, error) in [
        (r#""version":0"#, r#""version":1"#, ContractError::Form { part: "version" }),
        (r#""version":0"#, r#""version":3"#, ContractError::Form { part: "version" }),
        (r#""empty""#, r#""net9.0/x64""#, ContractError::Form { part: "baseline" }),
        (r#""types""#, r#""typed""#, ContractError::Form { part: "types" }),
        (r#""globals""#, r#""global""#, ContractError::Form { part: "globals" }),
        (CONTRACTS, r#""contracts":[]"#, ContractError::Form { part: "contracts" }),
        (
            r#""ExecutionManager":2"#,
            r#""ExecutionManagers":2"#,
            ContractError::MissingContract { name: "ExecutionManager" },
        ),
        (
            r#""ExecutionManager":2"#,
            r#""ExecutionManager":3"#,
            ContractError::ContractVersion {
                name: "ExecutionManager",
                version: ContractVersion::Number(3),
            },
        ),
        (
            r#""ExecutionManager":2"#,
            r#""ExecutionManager":"c2""#,
            ContractError::ContractVersion {
                name: "ExecutionManager",
                version: ContractVersion::C(2),
            },
        ),
        (
            r#""ExecutionManager":2"#,
            r#""ExecutionManager":"d1""#,
            ContractError::Form { part: "contracts" },
        ),
        (
            r#""UnwindInfos":36"#,
            r#""UnwindInfo":36"#,
            ContractError::MissingField { type_name: "RealCodeHeader", field: "UnwindInfos" },
        ),
        (
            r#""HeaderMap":0"#,
            r#""HeaderMap":-1"#,
            ContractError::MissingField { type_name: "CodeHeapListNode", field: "HeaderMap" },
        ),
        (
            r#""UnwindInfos":36"#,
            r#""UnwindInfos":36,"ColdCodeHeader":48"#,
            ContractError::UnknownField { type_name: "RealCodeHeader", field: "ColdCodeHeader" },
        ),
        (
            r#""EndAddress":4,"#,
            "",
            ContractError::MissingField { type_name: "RuntimeFunction", field: "EndAddress" },
        ),
        (
            r#""!":12"#,
            r#""!":8"#,
            ContractError::UnknownField { type_name: "RuntimeFunction", field: "!" },
        ),
        (r#""0xf""#, r#""0x100""#, ContractError::MissingGlobal { name: "StubCodeBlockLast" }),
        (
            "[[1]",
            "[[2]",
            ContractError::MissingGlobal { name: "ExecutionManagerCodeRangeMapAddress" },
        ),
    ] {
        let mut process = process();
        assert!(text().contains(from), "{from}");
        describe(&mut process, &text().replacen(from, to, 1));
        assert_eq!(manager(&process).unwrap_err(), error, "{to}");
    }
}
