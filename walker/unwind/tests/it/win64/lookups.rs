//! The function of an address, and code outside all functions.

use super::*;
use clr_unwind::PeImage;

/// Returns a case with two functions, the second right after the first.
fn neighbours() -> Case {
    Case::new()
        .function([0x100, 0x140, 0x800], &Info::new(1, &[(1, Push(Rbx))]))
        .function([0x140, 0x180, 0x810], &Info::new(1, &[(1, Push(Rsi))]))
}

#[test]
fn a_function_has_its_begin_and_not_its_end() {
    let case = neighbours();
    for (rva, expected) in [
        (0xFF, "Leaf rip=[0] rsp=1"),
        (0x100, "Prologue rip=[0] rsp=1"),
        (0x13F, "Body rbx=[0] rip=[1] rsp=2"),
        (0x140, "Prologue rip=[0] rsp=1"),
        (0x17F, "Body rsi=[0] rip=[1] rsp=2"),
        (0x180, "Leaf rip=[0] rsp=1"),
    ] {
        assert_eq!(case.at(rva), expected, "{rva:#x}");
        assert_eq!(case.coreclr().at(rva), expected, "{rva:#x}");
    }
}

#[test]
fn a_caller_is_looked_up_at_its_call() {
    let case = neighbours().returned_to();
    // A call was the first function's last instruction.
    assert_eq!(case.at(0x140), "Body rbx=[0] rip=[1] rsp=2");
    assert_eq!(case.coreclr().at(0x140), "Prologue rip=[0] rsp=1");
    assert_eq!(case.at(0x141), "Body rsi=[0] rip=[1] rsp=2");
    assert_eq!(case.at(0x180), "Body rsi=[0] rip=[1] rsp=2");
    // Code offsets are compared with the return address itself.
    assert_eq!(case.at(0x101), "Body rbx=[0] rip=[1] rsp=2");
}

#[test]
fn a_caller_is_in_no_epilogue() {
    let case = neighbours().put(0x120, &[0xC3]);
    assert_eq!(case.at(0x120), "EpilogueInstructions rip=[0] rsp=1");
    let case = case.returned_to();
    assert_eq!(case.at(0x120), "Body rbx=[0] rip=[1] rsp=2");
    assert_eq!(case.coreclr().at(0x120), "EpilogueInstructions rip=[0] rsp=1");
}

#[test]
fn a_caller_is_no_leaf() {
    let case = neighbours().returned_to();
    for rva in [0xFF, 0x100, 0x181, SIZE] {
        let error = UnwindError::CallerWithoutEntry { address: BASE + u64::from(rva) };
        assert_eq!(case.step(rva), Err(error));
        assert!(case.coreclr().at(rva).starts_with(if rva == 0x100 { "Prologue" } else { "Leaf" }));
    }
}

#[test]
fn a_call_may_end_the_image() {
    let info = Info::new(1, &[(1, Push(Rbx))]);
    let case = Case::new().function([SIZE - 0x40, SIZE, 0x800], &info);
    assert_eq!(case.returned_to().at(SIZE), "Body rbx=[0] rip=[1] rsp=2");
    let error = UnwindError::UnknownCode { address: BASE + u64::from(SIZE) };
    assert_eq!(case.step(SIZE), Err(error));
    // The bytes before the first are not the image's.
    assert_eq!(case.returned_to().step(0), Err(UnwindError::UnknownCode { address: BASE }));
}

#[test]
fn unknown_code_is_an_error_but_to_windows() {
    let case = Case::new();
    for rva in [SIZE, SIZE + 1, 0x7000_0000] {
        for case in [case.clone(), case.returned_to()] {
            let error = UnwindError::UnknownCode { address: BASE + u64::from(rva) + 1 };
            assert_eq!(case.step(rva + 1), Err(error));
            assert_eq!(case.coreclr().at(rva + 1), "Leaf rip=[0] rsp=1");
        }
    }
}

#[test]
fn an_images_data_is_no_code() {
    let image = clr_fixtures::get("win64/img/gcc_O2.dll").unwrap();
    let image = PeImage::parse(image).unwrap();
    let mut map = CodeMap::new();
    map.insert_image(BASE, &image).unwrap();
    let data = image.sections().as_slice().iter().find(|section| !section.executable).unwrap();
    let address = BASE + u64::from(data.rva);
    let before = Registers { rip: address, ..crate::win64::case::registers() };
    let stack = [7; 8];
    let memory = Segment::new(before.rsp(), &stack);
    let mut registers = before;
    let step = |rules, registers: &mut Registers| {
        Unwinder::new(&map).with_rules(rules).step(registers, Position::Interrupted, &memory)
    };
    let error = UnwindError::UnknownCode { address };
    assert_eq!(step(Rules::Precise, &mut registers), Err(error));
    assert_eq!(registers, before);
    assert_eq!(step(Rules::CoreClr, &mut registers).unwrap().trust, Trust::Leaf);
}

/// Returns the step at `rva` as from the first function of [`neighbours`] or a similar case,
/// wherever that ends.
fn in_first_function(case: &Case, rva: u32) -> Answer {
    case.with_map(|map| {
        let region = map.regions().next().unwrap();
        let function = region.functions().iter().next().unwrap();
        let before = Registers { rip: BASE + u64::from(rva), ..case.registers };
        let mut registers = before;
        let unwinder = Unwinder::new(map).with_rules(Rules::CoreClr);
        let step = unwinder.step_in_function(region, function, &mut registers, &case.stack);
        assert!(step.is_ok() || registers == before, "{step:?}: the registers changed");
        step.map(|step| (registers, step))
    })
}

#[test]
fn inside_its_function_a_step_is_the_same() {
    let case = neighbours().coreclr().put(0x13E, &[0x5B, 0xC3]);
    for rva in 0x100..0x140 {
        assert_eq!(in_first_function(&case, rva), case.step(rva), "{rva:#x}");
    }
}

#[test]
fn a_known_function_goes_on_behind_its_end() {
    // pop rbx; ret
    let case = neighbours().coreclr().put(0x150, &[0x5B, 0xC3]);
    let word = |n| crate::win64::case::word(n);
    let slot = |n| crate::win64::case::slot(n);
    for (rva, trust, rbx, rip, rsp) in [
        // The rules of its body, also where the table has another function.
        (0x140, Trust::Body, Some(word(0)), word(1), slot(2)),
        (0x180, Trust::Body, Some(word(0)), word(1), slot(2)),
        (SIZE - 1, Trust::Body, Some(word(0)), word(1), slot(2)),
        // An epilogue there is executed.
        (0x150, Trust::EpilogueInstructions, Some(word(0)), word(1), slot(2)),
        (0x151, Trust::EpilogueInstructions, None, word(0), slot(1)),
    ] {
        let rbx = rbx.unwrap_or_else(|| case.registers.get(Rbx));
        let (after, step) = in_first_function(&case, rva).unwrap();
        let found = (step.trust, after.get(Rbx), after.rip, after.rsp());
        assert_eq!(found, (trust, rbx, rip, rsp), "{rva:#x}");
        assert_eq!(after.get(Rsi), case.registers.get(Rsi), "{rva:#x}: the neighbour's codes");
    }
}

#[test]
fn code_outside_the_region_is_not_of_its_functions() {
    let case = neighbours();
    for rva in [SIZE, SIZE + 1, u32::MAX] {
        let error = UnwindError::UnknownCode { address: BASE + u64::from(rva) };
        assert_eq!(in_first_function(&case, rva), Err(error));
    }
    case.with_map(|map| {
        let before = Registers { rip: BASE - 1, ..case.registers };
        let mut registers = before;
        let function = RuntimeFunction { begin: 0x100, end: 0x140, unwind_info: 0x800 };
        let region = map.regions().next().unwrap();
        let step =
            Unwinder::new(map).step_in_function(region, function, &mut registers, &case.stack);
        assert_eq!(step, Err(UnwindError::UnknownCode { address: BASE - 1 }));
        assert_eq!(registers, before);
    });
}

/// The instructions of libgcc's ___chkstk_ms, and the pushed registers before each.
const CHKSTK: [(&[u8], &str); 15] = [
    (&[0x51], "KnownCode rip=[0] rsp=1"),
    (&[0x50], "KnownCode rcx=[0] rip=[1] rsp=2"),
    (&[0x48, 0x3D, 0x00, 0x10, 0x00, 0x00], BOTH),
    (&[0x48, 0x8D, 0x4C, 0x24, 0x18], BOTH),
    (&[0x72, 0x19], BOTH),
    (&[0x48, 0x81, 0xE9, 0x00, 0x10, 0x00, 0x00], BOTH),
    (&[0x48, 0x83, 0x09, 0x00], BOTH),
    (&[0x48, 0x2D, 0x00, 0x10, 0x00, 0x00], BOTH),
    (&[0x48, 0x3D, 0x00, 0x10, 0x00, 0x00], BOTH),
    (&[0x77, 0xE7], BOTH),
    (&[0x48, 0x29, 0xC1], BOTH),
    (&[0x48, 0x83, 0x09, 0x00], BOTH),
    (&[0x58], BOTH),
    (&[0x59], "KnownCode rcx=[0] rip=[1] rsp=2"),
    (&[0xC3], "KnownCode rip=[0] rsp=1"),
];
const BOTH: &str = "KnownCode rax=[0] rcx=[1] rip=[2] rsp=3";

#[test]
fn chkstk_is_known_by_its_code() {
    let code = CHKSTK.map(|(instruction, _)| instruction).concat();
    // At the very start of the image too.
    for start in [0, 0x100] {
        let case = Case::new().put(start, &code);
        let mut rva = start;
        for (instruction, expected) in CHKSTK {
            assert_eq!(case.at(rva), expected, "{rva:#x}");
            // The function restores, or does not touch, even volatile registers.
            let known = case.step(rva).unwrap().1.known(RegisterSet::ALL);
            assert_eq!(known, RegisterSet::ALL, "{rva:#x}");
            assert_eq!(case.coreclr().at(rva), "Leaf rip=[0] rsp=1", "{rva:#x}");
            for inside in 1..instruction.len() as u32 {
                assert_eq!(case.at(rva + inside), "Leaf rip=[0] rsp=1", "{rva:#x}");
            }
            rva += instruction.len() as u32;
        }
        assert_eq!(case.at(rva), "Leaf rip=[0] rsp=1");
    }
}

#[test]
fn code_almost_like_chkstk_is_a_leaf() {
    let code = CHKSTK.map(|(instruction, _)| instruction).concat();
    for at in 0..code.len() {
        let mut code = code.clone();
        code[at] ^= 0x40;
        let case = Case::new().put(0x100, &code);
        assert_eq!(case.at(0x102), "Leaf rip=[0] rsp=1", "byte {at}");
    }
    let cut = Case::new().put(0x100, &code).cut(0x100 + code.len() as u32 - 1);
    assert_eq!(cut.at(0x102), "Leaf rip=[0] rsp=1");
    // Unwind data takes precedence over it.
    let case = Case::new().put(0x100, &code).function([0x100, 0x180, 0x800], &Info::new(0, &[]));
    assert_eq!(case.at(0x102), "Body rip=[0] rsp=1");
}
