//! Slots below the stack pointer.

use super::*;

/// The row of `ret` after `pop rbx; pop r12`, which compilers leave as it was but for the CFA.
const POPPED: [Cfi; 3] = [Cfi::DefCfaOffset(8), Cfi::Offset(Rbx, 3), Cfi::Offset(R12, 2)];

/// The same in a form that no simple rule has.
fn in_both_forms() -> [Vec<Cfi>; 2] {
    let value_of_rsp = Cfi::Expression(number(R15), vec![0x77, 0]);
    [POPPED.to_vec(), [&POPPED[..], &[value_of_rsp]].concat()]
}

fn unreadable(n: i64) -> UnwindError {
    Unreadable { address: slot(n), len: 8 }.into()
}

#[test]
fn in_the_red_zone_the_slot_counts() {
    for instructions in in_both_forms() {
        let case = Case::function(&instructions, 0);
        let (after, step) = case.step().unwrap();
        assert_eq!(
            (after.get(Rbx), after.get(R12)),
            (crate::dwarf::case::word(-2), crate::dwarf::case::word(-1))
        );
        assert!(step.found.contains_all(RegisterSet::of(&[Rbx, R12, Rsp])));
    }
}

#[test]
fn a_register_in_the_red_zone_is_found_and_no_other() {
    let alone = [Cfi::DefCfaOffset(8), Cfi::Offset(R15, 2)];
    let (_, step) = Case::function(&alone, 0).step().unwrap();
    assert_eq!(step.found, RegisterSet::of(&[R15, Rsp]));
}

#[test]
fn a_popped_register_keeps_its_value_where_the_stack_copy_begins_at_rsp() {
    let endings: [&[u8]; 6] = [
        &[0xC3],
        &[0xF3, 0xC3],
        &[0xC2, 8, 0],
        &[0xC5, 0xF8, 0x77, 0xC3],
        // vzeroupper; rep ret
        &[0xC5, 0xF8, 0x77, 0xF3, 0xC3],
        // movzx eax, al; ret
        &[0x0F, 0xB6, 0xC0, 0xC3],
    ];
    for (ending, instructions) in
        endings.iter().flat_map(|ending| in_both_forms().map(|instructions| (ending, instructions)))
    {
        let case = Case::function(&instructions, 0).readable_from(0).code(0, ending);
        let (after, step) = case.step().unwrap();
        for register in [Rbx, R12] {
            assert_eq!(after.get(register), case.registers.get(register), "{ending:x?}");
            assert!(step.kept.contains(register) && !step.found.contains(register));
        }
        assert_eq!((after.rip, after.rsp()), (crate::dwarf::case::word(0), slot(1)));
    }
}

#[test]
fn a_register_that_is_still_to_be_popped_is_read() {
    let popped = [Cfi::DefCfaOffset(16), Cfi::Offset(Rbx, 3), Cfi::Offset(R12, 2)];
    let case = Case::function(&popped, 0).readable_from(0).code(0, &[0x41, 0x5C, 0xC3]);
    assert_eq!(case.changes(), "r12=[0] rip=[1] rsp=2");
}

/// gcc saves registers in the red zone of functions that make no call.
#[test]
fn a_register_saved_in_the_red_zone_is_not_taken_for_a_popped_one() {
    let body: [&[u8]; 5] = [
        // mov rbx, [rsp-16]; ret
        &[0x48, 0x8B, 0x5C, 0x24, 0xF0, 0xC3],
        // mov rbx, [rax]; ret
        &[0x48, 0x8B, 0x18, 0xC3],
        // pop rsp; ret
        &[0x5C, 0xC3],
        // jmp [rax*8+table], jmp rax: within the function, perhaps
        &[0xFF, 0x24, 0xC5, 0, 0, 0, 0],
        &[0xFF, 0xE0],
    ];
    for (code, instructions) in
        body.iter().flat_map(|code| in_both_forms().map(|instructions| (code, instructions)))
    {
        let case = Case::function(&instructions, 0).code(0, code);
        assert_eq!(case.clone().readable_from(0).step(), Err(unreadable(-2)), "{code:x?}");
        assert!(case.changes().starts_with("rbx=[-2] r12=[-1]"));
    }
}

#[test]
fn a_jump_leaves_if_it_goes_to_a_function_that_has_saved_nothing() {
    let case = |target: u32, jump: &[u8]| {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie::default());
        frames.fde(cie, CODE, 0x40, &[&[Cfi::Advance(4)], &POPPED[..]].concat());
        frames.fde(cie, CODE + 0x40, 0x10, &[Cfi::Advance(1), Cfi::DefCfaOffset(16)]);
        // An outlined part of the first function.
        frames.fde(cie, CODE + 0x50, 0x10, &POPPED);
        frames.fde(cie, CODE + 0x60, 8, &[Cfi::DefCfaOffset(24)]);
        // It never saves a register.
        frames.fde(cie, CODE + 0x68, 8, &[]);
        let is_long = jump.ends_with(&[0xE9]);
        let len = jump.len() + if is_long { 4 } else { 1 };
        let distance = target.wrapping_sub(4 + len as u32);
        let distance = &distance.to_le_bytes()[..len - jump.len()];
        let code = [jump, distance].concat();
        // A PLT entry.
        let case = Case::new(&frames, 4).code(0x80, &[0xF3, 0x0F, 0x1E, 0xFA, 0xFF, 0x25]);
        case.readable_from(0).code(4, &code)
    };
    for jump in [&[0xEB][..], &[0xE9], &[0xC5, 0xF8, 0x77, 0xE9]] {
        for target in [0x40, 0x68, 0x80] {
            assert!(case(target, jump).step().is_ok(), "{target:#x} {jump:x?}");
        }
        // Middles of functions; outlined parts; its own start and middle; no function.
        for target in [0x41, 0x50, 0x60, 0x69, 0, 0x10, 0x70] {
            assert_eq!(case(target, jump).step(), Err(unreadable(-2)), "{target:#x} {jump:x?}");
        }
    }
}

#[test]
fn a_jump_after_a_pop_leaves() {
    let jumps: [&[u8]; 5] = [
        &[0xE9, 0, 0, 0, 0],
        &[0xEB, 0],
        &[0xFF, 0xE0],
        &[0x41, 0xFF, 0x60, 8],
        &[0x3E, 0xFF, 0xE1],
    ];
    for jump in jumps {
        for pop in [&[0x5D][..], &[0x41, 0x5F]] {
            let case = Case::function(&POPPED, 0).readable_from(0).code(0, &[pop, jump].concat());
            assert_eq!(case.changes(), "rip=[0] rsp=1", "{jump:x?}");
        }
        if jump[0] != 0xE9 && jump[0] != 0xEB {
            let case = Case::function(&POPPED, 0).readable_from(0).code(0, jump);
            assert_eq!(case.step(), Err(unreadable(-2)), "{jump:x?}");
        }
    }
    // pop rbp, then a call, and inc [rax].
    for other in [&[0x5D, 0xFF, 0xD0][..], &[0x5D, 0xFF, 0x00]] {
        let case = Case::function(&POPPED, 0).readable_from(0).code(0, other);
        assert_eq!(case.step(), Err(unreadable(-2)), "{other:x?}");
    }
}

#[test]
fn below_the_red_zone_nothing_is_saved() {
    let far = |offset| {
        let case = Case::function(&[Cfi::DefCfaOffset(8), Cfi::Offset(Rbx, offset)], 0);
        case.changes()
    };
    // 128 and 136 bytes below rsp.
    assert_eq!(far(17), "rbx=[-16] rip=[0] rsp=1");
    assert_eq!(far(18), "rip=[0] rsp=1");
}

#[test]
fn a_call_leaves_nothing_below_rsp() {
    for instructions in in_both_forms() {
        let case = Case::function(&instructions, 1).returned_to();
        let (after, step) = case.step().unwrap();
        for register in [Rbx, R12] {
            assert_eq!(after.get(register), case.registers.get(register));
            assert!(step.kept.contains(register));
        }
        assert_eq!(after.rip, crate::dwarf::case::word(0));
    }
}

#[test]
fn a_restored_volatile_register_is_kept_too() {
    let popped = [Cfi::DefCfaOffset(8), Cfi::Offset(Rcx, 2)];
    let case = Case::function(&popped, 0).readable_from(0).code(0, &[0xC3]);
    let (_, step) = case.step().unwrap();
    assert!(step.kept.contains(Rcx) && !step.found.contains(Rcx));
}

#[test]
fn the_return_address_is_never_kept() {
    // It would be below rsp.
    let case = Case::function(&[Cfi::DefCfaOffset(8)], 0).readable_from(1).code(0, &[0xC3]);
    assert_eq!(case.step(), Err(unreadable(0)));
    let general = [Cfi::DefCfaOffset(16), Cfi::Raw(vec![0x80 | 16, 3])];
    // ret 8 is not executed.
    let case = Case::function(&general, 0).readable_from(0).code(0, &[0xC2, 8, 0]);
    assert_eq!(case.step(), Err(unreadable(-1)));
}
