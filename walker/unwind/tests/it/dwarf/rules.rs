//! Instructions: their rules for the canonical frame address and for registers.

use super::*;

const RIP: u8 = 16;

/// Returns the changes of the steps from these offsets.
#[track_caller]
fn check(instructions: &[Cfi], expected: &[(u32, &str)]) {
    for (offset, changes) in expected {
        assert_eq!(Case::function(instructions, *offset).changes(), *changes, "at {offset:#x}");
    }
}

#[test]
fn a_pushed_register_is_popped_and_rows_begin_where_they_say() {
    let push = [
        Cfi::Advance(1),
        Cfi::DefCfaOffset(16),
        Cfi::Offset(Gpr::Rbx, 2),
        Cfi::Advance(9),
        Cfi::DefCfaOffset(8),
    ];
    check(
        &push,
        &[
            (0, "rip=[0] rsp=1"),
            (1, "rbx=[0] rip=[1] rsp=2"),
            (9, "rbx=[0] rip=[1] rsp=2"),
            // Its saved value is below the stack now, but still there.
            (10, "rbx=[-1] rip=[0] rsp=1"),
            (0xFF, "rbx=[-1] rip=[0] rsp=1"),
            (0x100, "the native code at 0x7f0000001100 has no call frame information"),
        ],
    );
}

#[test]
fn every_register_of_system_v_is_restored() {
    let callee_saved = [Gpr::R15, Gpr::R14, Gpr::R13, Gpr::R12, Gpr::Rbp, Gpr::Rbx];
    let mut instructions = vec![Cfi::DefCfaOffset(56)];
    instructions.extend((2..).zip(callee_saved).map(|(n, register)| Cfi::Offset(register, n)));
    check(&instructions, &[(0, "rbx=[0] rbp=[1] r12=[2] r13=[3] r14=[4] r15=[5] rip=[6] rsp=7")]);
}

#[test]
fn any_other_register_that_is_named_is_restored() {
    let rest = Gpr::ALL.into_iter().filter(|register| *register != Gpr::Rsp);
    let mut instructions = vec![Cfi::DefCfaOffset(8 * 16)];
    instructions.extend((2..).zip(rest).map(|(n, register)| Cfi::Offset(register, n)));
    let all = "rax=[14] rcx=[13] rdx=[12] rbx=[11] rbp=[10] rsi=[9] rdi=[8] r8=[7] r9=[6] \
               r10=[5] r11=[4] r12=[3] r13=[2] r14=[1] r15=[0] rip=[15] rsp=16";
    check(&instructions, &[(0, all)]);
}

#[test]
fn a_frame_pointer_gives_the_address() {
    let instructions =
        [Cfi::DefCfa(Gpr::Rbp, 16), Cfi::Offset(Gpr::Rbp, 2), Cfi::Offset(Gpr::R12, 3)];
    let case = Case::function(&instructions, 0).register(Gpr::Rbp, slot(7));
    assert_eq!(case.changes(), "rbp=[7] r12=[6] rip=[8] rsp=9");
}

#[test]
fn register_numbers_are_those_of_dwarf() {
    // psABI figure 3.36. 7 and 4, rsp and rsi, are the two that are easily mixed up.
    let numbers = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    for (register, expected) in Gpr::ALL.into_iter().zip(numbers) {
        assert_eq!(number(register), expected, "{}", register.name());
        assert_eq!(Column(expected.into()).gpr(), Some(register));
        let case = Case::function(&[Cfi::Raw(vec![0x0C, expected, 16])], 0);
        let case = case.register(register, slot(4)).register(Gpr::Rsp, slot(4));
        assert_eq!(case.changes(), "rip=[5] rsp=6", "{}", register.name());
    }
    assert_eq!(Column(16), Column::RIP);
    assert_eq!(Column::RIP.gpr(), None);
}

#[test]
fn remembered_states_come_back_with_the_address() {
    let instructions = [
        Cfi::DefCfaOffset(32),
        Cfi::Offset(Gpr::Rbx, 2),
        Cfi::Advance(0x10),
        Cfi::Remember,
        Cfi::Restore(Gpr::Rbx),
        Cfi::DefCfaOffset(8),
        Cfi::Advance(0x10),
        Cfi::RestoreState,
        Cfi::Offset(Gpr::R15, 4),
    ];
    check(
        &instructions,
        &[
            (0x0F, "rbx=[2] rip=[3] rsp=4"),
            (0x10, "rip=[0] rsp=1"),
            (0x1F, "rip=[0] rsp=1"),
            (0x20, "rbx=[2] r15=[0] rip=[3] rsp=4"),
        ],
    );
}

#[test]
fn states_come_back_last_first() {
    let instructions = [
        Cfi::DefCfaOffset(16),
        Cfi::Remember,
        Cfi::DefCfaOffset(24),
        Cfi::Remember,
        Cfi::DefCfaOffset(32),
        Cfi::Advance(1),
        Cfi::RestoreState,
        Cfi::Advance(1),
        Cfi::RestoreState,
    ];
    check(&instructions, &[(0, "rip=[3] rsp=4"), (1, "rip=[2] rsp=3"), (2, "rip=[1] rsp=2")]);
}

#[test]
fn states_nest_up_to_4() {
    let mut instructions = vec![Cfi::Remember; 4];
    instructions.extend([Cfi::DefCfaOffset(24), Cfi::Advance(1)]);
    instructions.extend(vec![Cfi::RestoreState; 4]);
    check(&instructions, &[(0, "rip=[2] rsp=3"), (1, "rip=[0] rsp=1")]);
    let too_many = vec![Cfi::Remember; 5];
    check(&too_many, &[(0, "remembered and restored states do not pair, at .eh_frame+0x31")]);
    check(
        &[Cfi::RestoreState],
        &[(0, "remembered and restored states do not pair, at .eh_frame+0x2d")],
    );
}

#[test]
fn rules_of_a_cie_are_restored() {
    let mut frames = Frames::new();
    let mut cie = Cie::default();
    cie.instructions.push(Cfi::Offset(Gpr::R13, 5));
    let cie = frames.cie(&cie);
    let instructions = [
        Cfi::DefCfaOffset(48),
        Cfi::SameValue(Gpr::R13),
        Cfi::Offset(Gpr::Rbp, 2),
        Cfi::Advance(1),
        Cfi::Restore(Gpr::R13),
        // restore_extended, of a register that the CIE says nothing of.
        Cfi::Raw(vec![6, number(Gpr::Rbp)]),
    ];
    frames.fde(cie, CODE, 0x10, &instructions);
    assert_eq!(Case::new(&frames, 0).changes(), "rbp=[4] rip=[5] rsp=6");
    assert_eq!(Case::new(&frames, 1).changes(), "r13=[1] rip=[5] rsp=6");
}

#[test]
fn advances_come_in_four_sizes_and_units() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie { code_alignment: 2, ..Cie::default() });
    let rows = [
        Cfi::Advance(1),
        Cfi::DefCfaOffset(16),
        Cfi::Advance1(2),
        Cfi::DefCfaOffset(24),
        Cfi::Advance2(3),
        Cfi::DefCfaOffset(32),
        Cfi::Advance4(4),
        Cfi::DefCfaOffset(40),
    ];
    frames.fde(cie, CODE, 0x100, &rows);
    for (offset, slots) in
        [(0, 1), (1, 1), (2, 2), (5, 2), (6, 3), (11, 3), (12, 4), (19, 4), (20, 5)]
    {
        let expected = format!("rip=[{}] rsp={slots}", slots - 1);
        assert_eq!(Case::new(&frames, offset).changes(), expected, "{offset}");
    }
}

#[test]
fn signed_and_factored_forms_agree_with_the_plain_ones() {
    // def_cfa_sf rsp −4 (× −8), offset_extended_sf rbx 2, offset_extended rbp 3.
    let forms = [Cfi::Raw(vec![0x12, 7, 0x7C, 0x11, 3, 2, 5, 6, 3])];
    check(&forms, &[(0, "rbx=[2] rbp=[1] rip=[3] rsp=4")]);
    // def_cfa_offset_sf −3.
    check(&[Cfi::Raw(vec![0x13, 0x7D])], &[(0, "rip=[2] rsp=3")]);
    // A register saved right at the CFA, and above it.
    check(&[Cfi::Offset(Gpr::Rbx, 0)], &[(0, "rbx=[1] rip=[0] rsp=1")]);
    check(&[Cfi::Raw(vec![0x11, 3, 0x7E])], &[(0, "rbx=[3] rip=[0] rsp=1")]);
}

#[test]
fn values_and_registers_need_no_memory() {
    let instructions = [
        Cfi::ValOffset(Gpr::Rbx, 2),
        // val_offset_sf −4.
        Cfi::Raw(vec![0x15, 12, 0x7C]),
        Cfi::Register(number(Gpr::Rbp), number(Gpr::R8)),
    ];
    // The CFA is slot 1.
    check(&instructions, &[(0, "rbx=-1 rbp=r8 r12=5 rip=[0] rsp=1")]);
}

#[test]
fn the_return_address_may_be_in_a_register() {
    let instructions = [Cfi::Register(RIP, number(Gpr::Rcx)), Cfi::DefCfaOffset(16)];
    check(&instructions, &[(0, "rip=rcx rsp=2")]);
}

#[test]
fn the_return_address_may_have_another_column() {
    let mut frames = Frames::new();
    let instructions = vec![Cfi::DefCfa(Gpr::Rsp, 24), Cfi::Raw(vec![5, 40, 2])];
    let cie = frames.cie(&Cie { return_address: 40, instructions, ..Cie::default() });
    // A rule of column 16 is that of no register then.
    frames.fde(cie, CODE, 0x10, &[Cfi::Undefined(RIP)]);
    assert_eq!(Case::new(&frames, 0).changes(), "rip=[1] rsp=3");
}

#[test]
fn rsp_may_have_a_rule_of_its_own() {
    check(&[Cfi::DefCfaOffset(24), Cfi::Offset(Gpr::Rbx, 2)], &[(0, "rbx=[1] rip=[2] rsp=3")]);
    let own = [Cfi::DefCfaOffset(24), Cfi::Raw(vec![5, number(Gpr::Rsp), 3])];
    let case = Case::function(&own, 0).word(0, slot(20));
    assert_eq!(case.changes(), "rip=[2] rsp=20");
    let value = [Cfi::DefCfaOffset(24), Cfi::Raw(vec![0x15, number(Gpr::Rsp), 0x7E])];
    check(&value, &[(0, "rip=[2] rsp=5")]);
}

#[test]
fn an_undefined_return_address_ends_the_stack() {
    let outermost = "the frame at 0x7f0000001000 is the outermost one";
    check(&[Cfi::Undefined(RIP)], &[(0, outermost)]);
    // An undefined register is lost, which is no reason to stop.
    check(&[Cfi::Undefined(number(Gpr::Rbx))], &[(0, "rip=[0] rsp=1")]);
    let case = Case::function(&[Cfi::Undefined(number(Gpr::Rbx))], 0);
    let row = case.table().row(CODE).unwrap().unwrap();
    assert_eq!(row.registers[Gpr::Rbx as usize], Some(RegisterRule::Undefined));
}

#[test]
fn a_return_address_without_a_rule_is_an_error() {
    let nothing = "there is no rule for the return address, at .eh_frame+0x1c";
    check(&[Cfi::Raw(vec![8, RIP])], &[(0, nothing)]);
}

#[test]
fn vector_registers_are_passed_over() {
    // xmm3 is column 20.
    check(&[Cfi::Raw(vec![5, 20, 2]), Cfi::Undefined(21)], &[(0, "rip=[0] rsp=1")]);
    let row = Case::function(&[Cfi::Raw(vec![5, 20, 2])], 0).table().row(CODE).unwrap().unwrap();
    assert_eq!(row.registers, [None; 16]);
    let needed = [Cfi::Raw(vec![0x0C, 20, 8])];
    check(&needed, &[(0, "DWARF register 20 is not tracked, at .eh_frame+0x1c")]);
}

#[test]
fn the_size_of_pushed_arguments_changes_nothing() {
    check(&[Cfi::ArgsSize(32), Cfi::DefCfaOffset(16)], &[(0, "rip=[1] rsp=2")]);
}

#[test]
fn far_saves_and_large_frames_are_found() {
    let far = [
        Cfi::DefCfaOffset(8 * 0x900),
        Cfi::Offset(Gpr::Rbx, 0x8FF),
        Cfi::Offset(Gpr::R12, 0x800 + 32),
    ];
    check(&far, &[(0, "rbx=[1] r12=[224] rip=[2303] rsp=2304")]);
    // 32 KiB and more below the CFA: no longer in the simple form.
    let case = Case::function(&[Cfi::DefCfa(Gpr::Rbp, 0), Cfi::Offset(Gpr::R15, 0xFFF)], 0);
    assert_eq!(case.register(Gpr::Rbp, slot(0xFF0)).changes(), "r15=[-15] rip=[4079] rsp=4080");
    let case = Case::function(&[Cfi::DefCfa(Gpr::Rbp, 0), Cfi::Offset(Gpr::R15, 0x1000)], 0);
    assert_eq!(case.register(Gpr::Rbp, slot(0xFF0)).changes(), "r15=[-16] rip=[4079] rsp=4080");
}

#[test]
fn rows_are_printed_in_the_terms_of_dwarf() {
    // The last row says nothing new.
    let rows = [
        Cfi::Advance(4),
        Cfi::DefCfaOffset(16),
        Cfi::Offset(Gpr::Rbx, 2),
        Cfi::Advance(9),
        Cfi::DefCfaOffset(16),
    ];
    let case = Case::function(&rows, 0);
    let table = case.table();
    let row = table.row(CODE + 7).unwrap().unwrap();
    assert_eq!(row.range, CODE + 4..CODE + 0x100);
    assert_eq!(row.cfa, CfaRule::Register { register: Column(7), offset: 16 });
    assert_eq!(row.registers[Gpr::Rbx as usize], Some(RegisterRule::Offset(-16)));
    assert_eq!(row.return_address, Some(RegisterRule::Offset(-8)));
    assert!(!row.signal_frame);
    assert_eq!(table.row(CODE + 0x100), Ok(None));
    assert_eq!(table.row(CODE - 1), Ok(None));
    assert_eq!(table.row(u32::MAX), Ok(None));
    assert!(table.functions().eq(std::iter::once(CODE..CODE + 0x100)));
    assert_eq!(table.function(CODE + 0xFF), Some(CODE..CODE + 0x100));
    assert_eq!(table.function(CODE + 0x100), None);
}
