//! Code headers made by hand: each check refuses what it is about.

use super::*;

const UNWIND_INFO: u64 = BASE + UNWIND as u64;
const ENTRY: u64 = HEADER + 0x24;

fn read(process: &Process) -> Result<JittedMethod, JittedCodeError> {
    JittedMethod::read(process, &CodeHeaderLayout::CORE_3_1_TO_10, START, None)
}

/// Returns the error of reading the method after `change`.
fn refusal(change: impl FnOnce(&mut Process)) -> JittedCodeError {
    let mut process = Process::with_method();
    change(&mut process);
    read(&process).unwrap_err()
}

#[test]
fn a_method_is_read_with_its_funclet() {
    let method = read(&Process::with_method()).unwrap();
    assert_eq!(method.code_range(), START..START + 0x30);
    assert_eq!((method.base(), method.method_desc()), (BASE, METHOD_DESC));
    let functions: Vec<_> = method.functions().iter().map(|f| (f.begin, f.end)).collect();
    assert_eq!(functions, [(0x340, 0x360), (0x360, 0x370)]);
    assert_eq!((method.code().rva, method.code().bytes), (0x340, &[0x90; 0x30][..]));
    assert_eq!((method.unwind_data().rva, method.unwind_data().bytes.len()), (UNWIND, 0x1C));
    assert_eq!(method.find_function(BASE - 1), None);
    assert_eq!(method.find_function(BASE + 0x1_0000_0350), None);
}

#[test]
fn layouts_are_known_from_3_1_to_10() {
    let known = Some(CodeHeaderLayout::CORE_3_1_TO_10);
    for version in [(3, 1), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0)] {
        assert_eq!(CodeHeaderLayout::of_version(version.0, version.1), known);
    }
    for version in [(2, 1), (3, 0), (4, 0), (4, 8), (5, 1), (11, 0)] {
        assert_eq!(CodeHeaderLayout::of_version(version.0, version.1), None);
    }
}

#[test]
fn a_byte_that_cannot_be_read_fails() {
    let process = Process::with_method();
    // Debug, exception and GC information are not looked at.
    for address in
        process.addresses().into_iter().filter(|at| !(HEADER..HEADER + 0x18).contains(at))
    {
        let error = refusal(|process| process.unmap(address));
        let JittedCodeError::Unreadable(unreadable) = error else {
            panic!("{address:#x}: {error}")
        };
        let end = unreadable.address + u64::from(unreadable.len);
        assert!((unreadable.address..end).contains(&address), "{address:#x}: {error}");
    }
}

#[test]
fn small_numbers_instead_of_a_header_are_stub_blocks() {
    for number in 0..16 {
        let error = refusal(|process| process.write_u64s(START - 8, &[number]));
        let kind = StubBlockKind(number as u8);
        assert_eq!(error, JittedCodeError::StubBlock { start: START, kind });
        assert_eq!(kind.name_until_net_10().is_some(), (1..=9).contains(&number));
    }
    let error = refusal(|process| process.write_u64s(START - 8, &[16]));
    assert!(matches!(error, JittedCodeError::Unreadable(_)), "{error}");
}

#[test]
fn a_word_that_is_no_pointer_is_refused() {
    for header in [HEADER + 4, 17] {
        let error = refusal(|process| process.write_u64s(START - 8, &[header]));
        assert_eq!(error, JittedCodeError::HeaderAddress { start: START, header });
    }
}

#[test]
fn a_header_without_a_method_is_refused() {
    for method_desc in [0, METHOD_DESC + 1, METHOD_DESC + 4] {
        let error = refusal(|process| process.write_u64s(HEADER + 0x18, &[method_desc]));
        assert_eq!(error, JittedCodeError::MethodDesc { header: HEADER, method_desc });
    }
}

#[test]
fn counts_that_no_method_has_are_refused() {
    for count in [0, 131_070, u32::MAX] {
        let error = refusal(|process| process.write_u32s(HEADER + 0x20, &[count]));
        assert_eq!(error, JittedCodeError::UnwindInfoCount { header: HEADER, count });
    }
    // The most exception clauses that a method can have: only the memory ends.
    let error = refusal(|process| process.write_u32s(HEADER + 0x20, &[131_069]));
    assert!(matches!(error, JittedCodeError::Unreadable(_)), "{error}");
}

#[test]
fn code_before_the_heap_is_refused() {
    for begin in [0, 7] {
        let error = refusal(|process| process.write_u32s(ENTRY, &[begin]));
        assert_eq!(error, JittedCodeError::Base { start: START, begin });
    }
    // The heap would begin below address 0, or end beyond the address space.
    for start in [0x338, u64::MAX - 0xFFFF] {
        let mut process = Process::default();
        process.write_u64s(start - 8, &[HEADER]);
        process.write_u64s(HEADER + 0x18, &[METHOD_DESC]);
        process.write_u32s(HEADER + 0x20, &[1, 0x340, 0x360, UNWIND]);
        let layout = CodeHeaderLayout::CORE_3_1_TO_10;
        let error = JittedMethod::read(&process, &layout, start, None).unwrap_err();
        assert_eq!(error, JittedCodeError::Base { start, begin: 0x340 });
    }
}

#[test]
fn functions_that_are_empty_overlap_or_leave_a_gap_are_refused() {
    for (index, entry) in [
        (0, [0x340, 0x340, UNWIND]),
        (0, [0x340, 0x33F, UNWIND]),
        (1, [0x35F, 0x370, UNWIND + 0x10]),
        (1, [0x361, 0x370, UNWIND + 0x10]),
        (1, [0x360, 0x360, UNWIND + 0x10]),
        (1, [0x340, 0x360, UNWIND + 0x10]),
    ] {
        let place = ENTRY + index * 12;
        let error = refusal(|process| process.write_u32s(place, &entry));
        assert_eq!(error, JittedCodeError::FunctionRange { entry: place });
    }
}

#[test]
fn entries_that_were_reserved_and_not_written_are_left_out() {
    let layout = CodeHeaderLayout::CORE_3_1_TO_10;
    let read = |process: &Process| JittedMethod::read(process, &layout, START, Some(0x30));
    let mut process = Process::with_method();
    let exact = read(&process).unwrap();
    process.write_u32s(HEADER + 0x20, &[4, 0x340, 0x360, UNWIND, 0x360, 0x370, UNWIND + 0x10]);
    process.write_u32s(ENTRY + 24, &[0; 6]);
    assert_eq!(read(&process), Ok(exact));
    // Only the last ones: a function behind them is none of this method's.
    process.write_u32s(ENTRY + 36, &[0x370, 0x380, UNWIND + 0x20]);
    let error = JittedCodeError::FunctionRange { entry: ENTRY + 24 };
    assert_eq!(read(&process), Err(error));
}

#[test]
fn code_of_another_size_is_refused() {
    let layout = CodeHeaderLayout::CORE_3_1_TO_10;
    let process = Process::with_method();
    let read = |size| JittedMethod::read(&process, &layout, START, Some(size));
    assert!(read(0x30).is_ok());
    for expected in [0, 0x20, 0x2F, 0x31, u32::MAX] {
        let Err(JittedCodeError::CodeSize { start: START, size: 0x30, expected: found }) =
            read(expected)
        else {
            panic!("{expected:#x}")
        };
        assert_eq!(found, expected.min(1 << 24));
    }
    let error = refusal(|process| {
        process.write_u32s(ENTRY + 12, &[0x360, 0x341 + (1 << 24), UNWIND + 0x10]);
    });
    let (size, expected) = ((1 << 24) + 1, 1 << 24);
    assert_eq!(error, JittedCodeError::CodeSize { start: START, size, expected });
}

#[test]
fn unwind_data_elsewhere_is_refused() {
    for (index, unwind_info) in [
        // Not aligned, an indirect entry, within the code, with a gap, twice the same.
        (0, UNWIND + 2),
        (0, UNWIND + 1),
        (0, 0x36C),
        (1, UNWIND + 0x14),
        (1, UNWIND),
    ] {
        let place = ENTRY + index * 12;
        let error = refusal(|process| process.write_u32s(place + 8, &[unwind_info]));
        assert_eq!(error, JittedCodeError::UnwindDataPlace { entry: place, unwind_info });
    }
    // At the end of the 4 GiB above the base.
    let error = refusal(|process| {
        let info = [0x19, 0, 0, 0, 0x10, 0, 0, 0];
        process.write(BASE + 0xFFFF_FFF8, &info);
        process.write_u32s(ENTRY + 8, &[0xFFFF_FFF8]);
    });
    let unwind_info = 0xFFFF_FFF8;
    assert_eq!(error, JittedCodeError::UnwindDataPlace { entry: ENTRY, unwind_info });
}

#[test]
fn other_versions_and_flags_are_refused() {
    for byte in [0x18, 0x1A, 0x1B, 0x01, 0x09, 0x11, 0x39, 0xFF] {
        let error = refusal(|process| process.write(UNWIND_INFO, &[byte]));
        assert_eq!(error, JittedCodeError::UnwindInfoHeader { address: UNWIND_INFO, byte });
    }
}

#[test]
fn a_prologue_longer_than_its_function_is_refused() {
    let error = refusal(|process| process.write(UNWIND_INFO + 1, &[0x21]));
    assert_eq!(error, JittedCodeError::PrologueSize { address: UNWIND_INFO, size: 0x21 });
    let mut process = Process::with_method();
    process.write(UNWIND_INFO + 1, &[0x20]);
    assert!(read(&process).is_ok());
}

#[test]
fn unwind_codes_that_no_jit_compiler_writes_are_refused() {
    let expected = JittedCodeError::UnwindCodes { address: UNWIND_INFO };
    // Codes of the root function: SET_FPREG at 9, ALLOC_SMALL at 5, PUSH_NONVOL at 1.
    for (what, bytes) in [
        ("EPILOG", &[0x19, 9, 3, 0x25, 9, 0x03, 5, 0x06, 1, 0x50][..]),
        ("operation 7", &[0x19, 9, 3, 0x25, 9, 0x07, 0, 0, 0, 0]),
        ("PUSH_MACHFRAME", &[0x19, 9, 3, 0x25, 9, 0x03, 5, 0x0A, 1, 0x50]),
        ("operation 12", &[0x19, 9, 3, 0x25, 9, 0x03, 5, 0x3C, 1, 0x50]),
        ("two frame registers", &[0x19, 9, 3, 0x25, 9, 0x03, 5, 0x03, 1, 0x50]),
        ("a frame register that is not set", &[0x19, 9, 3, 0x25, 9, 0x32, 5, 0x32, 1, 0x50]),
        ("no frame register that could be set", &[0x19, 9, 3, 0, 9, 0x03, 5, 0x32, 1, 0x50]),
        ("a code behind the prologue", &[0x19, 8, 3, 0x25, 9, 0x03, 5, 0x32, 1, 0x50]),
        ("codes that ascend", &[0x19, 9, 3, 0x25, 5, 0x03, 9, 0x32, 1, 0x50]),
        ("a code that is cut off", &[0x19, 9, 3, 0x25, 9, 0x03, 5, 0x32, 1, 0x54]),
    ] {
        assert_eq!(refusal(|process| process.write(UNWIND_INFO, bytes)), expected, "{what}");
    }
    // Codes of several slots.
    for bytes in [
        [0x19, 9, 3, 0x25, 9, 0x03, 5, 0x01, 1, 0x50],
        [0x19, 9, 3, 0, 9, 0x11, 0, 1, 0, 0],
        [0x19, 9, 3, 0x35, 9, 0x0B, 1, 0, 0, 0],
        [0x19, 9, 3, 0, 9, 0x34, 2, 0, 1, 0x50],
        [0x19, 9, 3, 0, 9, 0x68, 2, 0, 1, 0x50],
    ] {
        let mut process = Process::with_method();
        process.write(UNWIND_INFO, &bytes);
        assert!(read(&process).is_ok(), "{bytes:x?}");
    }
}

#[test]
fn a_personality_routine_behind_code_is_refused() {
    for rva in [0x340, u32::MAX] {
        let error = refusal(|process| process.write_u32s(UNWIND_INFO + 12, &[rva]));
        assert_eq!(error, JittedCodeError::PersonalityRoutine { address: UNWIND_INFO, rva });
    }
    // .NET 5 and later have it at the base.
    let mut process = Process::with_method();
    process.write_u32s(UNWIND_INFO + 12, &[0]);
    assert!(read(&process).is_ok());
}

#[test]
fn a_method_that_changes_while_it_is_read_is_refused() {
    /// The first read of the unwind data finds another header than the second.
    struct Changing(Process, std::cell::Cell<bool>);
    impl clr_unwind::Memory for Changing {
        fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), clr_unwind::Unreadable> {
            self.0.read(at, bytes)?;
            if at == UNWIND_INFO && !self.1.replace(true) {
                bytes[2] = 2;
            }
            Ok(())
        }
    }
    let process = Changing(Process::with_method(), false.into());
    let layout = CodeHeaderLayout::CORE_3_1_TO_10;
    let error = JittedMethod::read(&process, &layout, START, None).unwrap_err();
    assert_eq!(error, JittedCodeError::UnwindCodes { address: UNWIND_INFO });
}
