//! Undoing prologues by unwind codes.

use super::*;

const BEGIN: u32 = 0x100;
const BODY: u32 = 0x140;
const END: u32 = 0x180;
const INFO: u32 = 0x800;

/// Returns a function with this unwind info. BODY is after every prologue.
fn function(info: &Info) -> Case {
    Case::new().function([BEGIN, END, INFO], info)
}

/// Returns the step from the body of a function with one unwind code.
fn one(op: Op) -> String {
    function(&Info::new(4, &[(4, op)])).at(BODY)
}

#[test]
fn without_codes_there_is_only_the_return_address() {
    let case = function(&Info::new(0, &[]));
    for rva in [BEGIN, BODY, END - 1] {
        assert_eq!(case.at(rva), "Body rip=[0] rsp=1", "{rva:#x}");
    }
}

#[test]
fn push_takes_any_register_from_the_stack() {
    for register in Gpr::ALL.into_iter().filter(|register| *register != Rsp) {
        let expected = format!("Body {}=[0] rip=[1] rsp=2", register.name());
        assert_eq!(one(Push(register)), expected);
    }
}

#[test]
fn a_pushed_rsp_moves_the_stack() {
    let info = Info::new(1, &[(1, Push(Rsp))]);
    let case = function(&info).with_slot(0, slot(7));
    assert_eq!(case.at(BODY), "Body rip=[8] rsp=9", "8 is added to the value that was read");
}

#[test]
fn alloc_small_is_8_to_128_bytes() {
    for slots in 1..=16 {
        let expected = format!("Body rip=[{slots}] rsp={}", slots + 1);
        assert_eq!(one(Small(8 * slots)), expected);
    }
}

#[test]
fn alloc_large_counts_8_bytes_in_its_short_form() {
    // Also sizes that ALLOC_SMALL could encode.
    for slots in [0, 1, 16, 17, 0x7FFF, 0x8000, 0xFFFF] {
        let expected = format!("Body rip=[{slots}] rsp={}", slots + 1);
        assert_eq!(one(Large(8 * slots)), expected);
    }
}

#[test]
fn alloc_large_counts_bytes_in_its_far_form() {
    for slots in [0, 1, 0xFFFF, 0x1_0000, 0x2_0001] {
        let expected = format!("Body rip=[{slots}] rsp={}", slots + 1);
        assert_eq!(one(LargeFar(8 * slots)), expected);
    }
    let unaligned = function(&Info::new(4, &[(4, LargeFar(8 + 3))]));
    let (after, _) = unaligned.step(BODY).unwrap();
    let expected = word(1) >> 24 | word(2) << 40;
    assert_eq!((after.rip, after.rsp()), (expected, slot(2) + 3));
    // Also between a saved register and the return address.
    let between = function(&Info::new(6, &[(6, Push(R13)), (4, LargeFar(4))]));
    let (after, _) = between.step(BODY).unwrap();
    assert_eq!(after.get(R13), word(0));
    assert_eq!((after.rip, after.rsp()), (word(1) >> 32 | word(2) << 32, slot(2) + 4));
    // Every OpInfo but 0 is the far form.
    for op in [Raw(1, 2, &[8, 0]), Raw(1, 15, &[8, 0])] {
        assert_eq!(one(op), "Body rip=[1] rsp=2", "{op:?}");
    }
}

#[test]
fn an_allocation_is_unsigned() {
    let case = function(&Info::new(4, &[(4, LargeFar(0xFFFF_FFF8))]));
    let address = slot(0) + 0xFFFF_FFF8;
    let unreadable = UnwindError::Stack(Unreadable { address, len: 8 });
    assert_eq!(case.step(BODY), Err(unreadable));
}

#[test]
fn saved_registers_count_from_rsp_without_a_frame_register() {
    assert_eq!(one(Save(Rsi, 8 * 3)), "Body rsi=[3] rip=[0] rsp=1");
    assert_eq!(one(Save(Rdi, 8 * 0xFFFF)), "Body rdi=[65535] rip=[0] rsp=1");
    assert_eq!(one(SaveFar(R15, 8 * 3)), "Body r15=[3] rip=[0] rsp=1");
    assert_eq!(one(SaveFar(Rbx, 8 * 0x2_0000)), "Body rbx=[131072] rip=[0] rsp=1");
    // From rsp as it is in the body, not as the codes so far have left it.
    let info = Info::new(9, &[(9, Save(Rsi, 8 * 3)), (4, Small(0x20)), (4, Save(Rdi, 8))]);
    assert_eq!(function(&info).at(BODY), "Body rsi=[3] rdi=[1] rip=[4] rsp=5");
}

#[test]
fn vector_registers_are_16_bytes() {
    for n in 6..=15 {
        assert_eq!(one(Xmm(n, 0x20)), format!("Body xmm{n}=[4][5] rip=[0] rsp=1"));
        assert_eq!(one(XmmFar(n, 0x28)), format!("Body xmm{n}=[5][6] rip=[0] rsp=1"));
    }
    assert_eq!(one(Xmm(6, 0x10 * 0x7FFF)), "Body xmm6=[65534][65535] rip=[0] rsp=1");
    assert_eq!(one(XmmFar(7, 0x10_0000)), "Body xmm7=[131072][131073] rip=[0] rsp=1");
}

#[test]
fn volatile_vector_registers_are_read_and_dropped() {
    for n in 0..6 {
        assert_eq!(one(Xmm(n, 0x20)), "Body rip=[0] rsp=1", "xmm{n}");
    }
    let beyond = function(&Info::new(4, &[(4, XmmFar(0, 0x4000_0000))]));
    let address = slot(0) + 0x4000_0000;
    let unreadable = UnwindError::Stack(Unreadable { address, len: 16 });
    assert_eq!(beyond.step(BODY), Err(unreadable));
}

/// C-137, C-138.
#[test]
fn only_executed_operations_are_undone() {
    let codes = [(8, Small(0x20)), (4, Push(R12)), (2, Push(Rbx))];
    let case = function(&Info::new(9, &codes));
    let steps = [
        (0, "Prologue rip=[0] rsp=1"),
        (1, "Prologue rip=[0] rsp=1"),
        (2, "Prologue rbx=[0] rip=[1] rsp=2"),
        (3, "Prologue rbx=[0] rip=[1] rsp=2"),
        (4, "Prologue rbx=[1] r12=[0] rip=[2] rsp=3"),
        (7, "Prologue rbx=[1] r12=[0] rip=[2] rsp=3"),
        (8, "Prologue rbx=[5] r12=[4] rip=[6] rsp=7"),
        (9, "Body rbx=[5] r12=[4] rip=[6] rsp=7"),
    ];
    for (offset, expected) in steps {
        assert_eq!(case.at(BEGIN + offset), expected, "{offset}");
        assert_eq!(case.coreclr().at(BEGIN + offset), expected, "{offset}");
    }
}

#[test]
fn every_code_is_decided_for_itself() {
    // Out of order, as saves into the home space are.
    let codes = [(2, Push(Rbx)), (9, Save(Rsi, 0x28)), (6, Small(0x10)), (1, Push(Rbp))];
    let case = function(&Info::new(12, &codes));
    assert_eq!(case.at(BEGIN + 1), "Prologue rbp=[0] rip=[1] rsp=2");
    assert_eq!(case.at(BEGIN + 2), "Prologue rbx=[0] rbp=[1] rip=[2] rsp=3");
    assert_eq!(case.at(BEGIN + 6), "Prologue rbx=[0] rbp=[3] rip=[4] rsp=5");
    assert_eq!(case.at(BEGIN + 9), "Prologue rbx=[0] rbp=[3] rsi=[5] rip=[4] rsp=5");
}

#[test]
fn codes_that_have_not_run_keep_their_slots() {
    for skipped in [Large(8), LargeFar(8), Save(Rsi, 8), SaveFar(Rsi, 8), Xmm(6, 16), XmmFar(6, 16)]
    {
        let case = function(&Info::new(9, &[(9, skipped), (1, Push(Rbx))]));
        assert_eq!(case.at(BEGIN + 8), "Prologue rbx=[0] rip=[1] rsp=2", "{skipped:?}");
    }
}

#[test]
fn a_frame_register_lies_0_to_240_bytes_above_rsp() {
    for offset in (0..=240).step_by(16) {
        for register in [Rbx, Rbp, Rsi, Rdi, R12, R13, R15, Rcx] {
            let info = Info::new(4, &[(4, SetFrame)]).frame(register, offset);
            // alloca has moved rsp since.
            let case = function(&info).with(register, slot(40));
            let rsp = 40 - i64::from(offset / 8);
            let expected = format!("Body rip=[{rsp}] rsp={} frame={rsp}", rsp + 1);
            assert_eq!(case.at(BODY), expected, "{register:?} {offset}");
        }
    }
}

#[test]
fn the_frame_register_is_used_once_it_is_set() {
    let codes = [(9, Save(Rsi, 0x10)), (6, SetFrame), (3, Small(0x20)), (1, Push(Rbp))];
    let case = function(&Info::new(12, &codes).frame(Rbp, 0x10)).with(Rbp, slot(32));
    let steps = [
        (1, "Prologue rbp=[0] rip=[1] rsp=2"),
        (5, "Prologue rbp=[4] rip=[5] rsp=6"),
        (6, "Prologue rbp=[34] rip=[35] rsp=36 frame=30"),
        (9, "Prologue rbp=[34] rsi=[32] rip=[35] rsp=36 frame=30"),
        (12, "Body rbp=[34] rsi=[32] rip=[35] rsp=36 frame=30"),
    ];
    for (offset, expected) in steps {
        assert_eq!(case.at(BEGIN + offset), expected, "{offset}");
        assert_eq!(case.coreclr().at(BEGIN + offset), expected, "{offset}");
    }
}

#[test]
fn saved_registers_count_from_the_frame_register() {
    // In an order that no prologue can have: the frame base is found before anything is undone.
    let codes = [(4, Push(Rbp)), (4, Save(Rsi, 0x10)), (4, SaveFar(Rdi, 0x18)), (4, Xmm(6, 0x20))];
    let case = function(&Info::new(4, &codes).frame(Rbp, 0x20)).with(Rbp, slot(24));
    let expected = "Body rbp=[0] rsi=[22] rdi=[23] xmm6=[24][25] rip=[1] rsp=2 frame=20";
    assert_eq!(case.at(BODY), expected);
    assert_eq!(case.coreclr().at(BODY), expected);
}

#[test]
fn a_frame_register_that_no_code_sets_was_set_before() {
    let info = Info::new(8, &[(8, Save(Rsi, 0x10))]).frame(Rbp, 0);
    let case = function(&info).with(Rbp, slot(16));
    assert_eq!(case.at(BEGIN), "Prologue rip=[0] rsp=1 frame=16");
    assert_eq!(case.at(BODY), "Body rsi=[18] rip=[0] rsp=1 frame=16");
    assert_eq!(case.coreclr().at(BODY), "Body rsi=[18] rip=[0] rsp=1 frame=16");
    // Windows compares with the bytes after the codes: here 5.
    let case = case.put(INFO + 8, &[5, 0]).coreclr();
    assert_eq!(case.at(BEGIN + 4), "Prologue rip=[0] rsp=1");
    assert_eq!(case.at(BEGIN + 5), "Prologue rip=[0] rsp=1 frame=16");
}

#[test]
fn set_fpreg_needs_a_frame_register() {
    let case = function(&Info::new(4, &[(4, SetFrame)])).with(Rax, slot(9));
    let error = UnwindError::NoFrameRegister { rva: INFO + 4 };
    assert_eq!(case.step(BODY), Err(error));
    // Windows takes register 0.
    assert_eq!(case.coreclr().at(BODY), "Body rip=[9] rsp=10");
}

/// C-144.
#[test]
fn a_machine_frame_has_rip_and_rsp() {
    let case = function(&Info::new(4, &[(4, Push(Rbx)), (0, MachineFrame)])).with_slot(4, slot(50));
    assert_eq!(case.at(BODY), "Body rbx=[0] rip=[1] rsp=50 interrupted");
    assert_eq!(case.at(BEGIN), format!("Prologue rip=[0] rsp={:#x} interrupted", word(3)));
    let info = Info::new(4, &[(4, Push(Rbx)), (0, MachineFrameWithError)]);
    let case = function(&info).with_slot(5, slot(50));
    assert_eq!(case.at(BODY), "Body rbx=[0] rip=[2] rsp=50 interrupted");
    assert_eq!(case.coreclr().at(BODY), "Body rbx=[0] rip=[2] rsp=50 interrupted");
}

#[test]
fn codes_after_a_machine_frame_are_undone_on_the_new_stack() {
    let info = Info::new(4, &[(0, MachineFrame), (0, Push(Rbx))]);
    let case = function(&info).with_slot(3, slot(50));
    assert_eq!(case.at(BODY), "Body rbx=[50] rip=[0] rsp=51 interrupted");
}

#[test]
fn epilog_and_spare_codes_undo_nothing() {
    for op in [Raw(6, 0, &[0]), Raw(7, 0, &[0, 0])] {
        let case = function(&Info::new(4, &[(4, op), (4, Push(Rbx))]));
        assert_eq!(case.at(BODY), "Body rbx=[0] rip=[1] rsp=2", "{op:?}");
    }
}

#[test]
fn set_fpreg_large_is_an_operation_of_unix() {
    const LARGE: Op = Raw(11, 0, &[0x21, 0]);
    let codes = [(9, Save(Rsi, 0x18)), (6, LARGE), (1, Push(Rbp))];
    let case = function(&Info::new(9, &codes).frame(Rbp, 240)).with(Rbp, slot(0x50));
    let frame = 0x50 - 0x21 * 2;
    let expected = format!(
        "Body rbp=[{frame}] rsi=[{}] rip=[{}] rsp={} frame={frame}",
        frame + 3,
        frame + 1,
        frame + 2
    );
    for (case, rules) in [(case.on_unix(), Rules::Precise), (case.clone(), Rules::CoreClrUnix)] {
        let case = case.rules(rules);
        assert_eq!(case.at(BODY), expected, "{rules:?}");
        assert_eq!(case.at(BEGIN + 1), "Prologue rbp=[0] rip=[1] rsp=2", "{rules:?}");
        let (_, step) = case.step(BEGIN + 6).unwrap();
        assert_eq!(step.establisher_frame, slot(frame), "{rules:?}");
    }
    let error = UnwindError::InvalidOperation { operation: 11, rva: INFO + 4 + 4 };
    for rules in [Rules::Precise, Rules::CoreClr, Rules::Ntdll] {
        assert_eq!(case.rules(rules).step(BODY), Err(error), "{rules:?}");
    }
    assert_eq!(case.on_unix().coreclr().step(BODY), Err(error));
}

#[test]
fn set_fpreg_large_is_32_bits_wide() {
    let info = Info::new(6, &[(6, Raw(11, 0, &[0x0001, 0xF000]))]).frame(Rbp, 240);
    let case = function(&info).with(Rbp, slot(10)).on_unix();
    assert_eq!(case.at(BODY), "Body rip=[8] rsp=9 frame=8");
}

#[test]
fn unknown_operations_are_errors_wherever_they_are() {
    for operation in 11..=15 {
        // Whether or not the code would apply.
        for offset in [0, 0x30, 0xFF] {
            let ops: [Op; 5] = std::array::from_fn(|i| Raw(11 + i as u8, 0, &[]));
            let op = ops[usize::from(operation - 11)];
            let case = function(&Info::new(0x30, &[(2, Push(Rbx)), (offset, op)]));
            let error = UnwindError::InvalidOperation { operation, rva: INFO + 4 + 2 };
            assert_eq!(case.coreclr().step(BODY), Err(error), "{offset}");
            assert_eq!(case.step(BODY), Err(error), "{offset}");
            assert_eq!(case.rules(Rules::Ntdll).step(BODY), Err(error), "{offset}");
            if operation > 11 {
                assert_eq!(case.on_unix().step(BODY), Err(error), "{offset}");
                assert_eq!(case.rules(Rules::CoreClrUnix).step(BODY), Err(error), "{offset}");
            }
        }
    }
}

#[test]
fn a_code_may_reach_behind_the_count() {
    // Windows checks the count only where a code begins.
    let info = Info::new(4, &[(4, Push(Rbx)), (4, LargeFar(8 * 5))]);
    let case = Case::new().put(INFO, &info.bytes_with_count(2)).entry([BEGIN, END, INFO]);
    assert_eq!(case.at(BODY), "Body rbx=[0] rip=[6] rsp=7");
    let case = Case::new().put(INFO, &info.bytes_with_count(1)).entry([BEGIN, END, INFO]);
    assert_eq!(case.at(BODY), "Body rbx=[0] rip=[1] rsp=2");
}

#[test]
fn a_handler_is_for_the_body_alone() {
    for flags in [1, 2, 3] {
        let info = Info::new(4, &[(4, Push(Rbx)), (1, Push(Rbp)), (1, Push(Rsi))]);
        let case = function(&info.handler(flags, 0x1510)).put(0x150, &[0x5E, 0x5D, 0x5B, 0xC3]);
        // Three slots and one of padding, then the RVA; the data is after it.
        let data = INFO + 4 + 8 + 4;
        let expected = format!("Body rbx=[0] rbp=[1] rsi=[2] rip=[3] rsp=4 handler=1510/{data:x}");
        assert_eq!(case.at(BODY), expected);
        assert_eq!(case.at(BEGIN + 2), "Prologue rbp=[0] rsi=[1] rip=[2] rsp=3");
        let epilogue = "EpilogueInstructions rbx=[2] rbp=[1] rsi=[0] rip=[3] rsp=4";
        assert_eq!(case.at(0x150), epilogue);
    }
    let even = Info::new(4, &[(4, Push(Rbx)), (1, Push(Rbp))]).handler(1, 0x1510);
    let expected = format!("Body rbx=[0] rbp=[1] rip=[2] rsp=3 handler=1510/{:x}", INFO + 12);
    assert_eq!(function(&even).at(BODY), expected);
}
