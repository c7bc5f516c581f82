//! Steps: the choice of the row, signal frames, and steps without any row.

use super::*;

/// Returns a CIE for signal frames.
fn signal_cie() -> Cie {
    Cie { augmentation: "zRS", ..Cie::default() }
}

#[test]
fn a_return_address_belongs_to_the_call_before_it() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE, 0x10, &[Cfi::DefCfaOffset(16), Cfi::Advance(8), Cfi::DefCfaOffset(24)]);
    frames.fde(cie, CODE + 0x10, 0x10, &[Cfi::DefCfaOffset(32)]);
    let changes = |offset| Case::new(&frames, offset).returned_to().changes();
    assert_eq!(changes(8), "rip=[1] rsp=2");
    assert_eq!(changes(9), "rip=[2] rsp=3");
    // A call that is the function's last instruction.
    assert_eq!(changes(0x10), "rip=[2] rsp=3");
    assert_eq!(changes(0x20), "rip=[3] rsp=4");
    assert_eq!(Case::new(&frames, 0x10).changes(), "rip=[3] rsp=4");
}

#[test]
fn steps_have_the_source_of_the_caller() {
    let (_, step) = Case::function(&[Cfi::DefCfaOffset(16)], 0).step().unwrap();
    assert_eq!((step.trust, step.caller), (Trust::Cfi, Position::ReturnAddress));
    assert_eq!((step.establisher_frame, step.handler), (slot(2), None));
    let value = Cfi::ValOffset(Gpr::Rbx, 1);
    let (_, step) = Case::function(&[value], 0).step().unwrap();
    assert_eq!((step.trust, step.establisher_frame), (Trust::Cfi, slot(1)));
}

/// The trampoline's FDE gives the places of the interrupted registers; the caller was interrupted,
/// and may have another stack.
#[test]
fn a_signal_frame_interrupted_its_caller() {
    let mut frames = Frames::new();
    let cie = frames.cie(&signal_cie());
    let saved = [
        Cfi::DefCfaExpression(vec![0x77, 40, 0x06]),
        Cfi::Expression(7, vec![0x77, 40]),
        Cfi::Expression(16, vec![0x77, 48]),
        Cfi::Expression(3, vec![0x77, 16]),
    ];
    frames.fde(cie, CODE, 0x10, &saved);
    for position in [Position::Interrupted, Position::ReturnAddress] {
        let mut case = Case::new(&frames, 0).word(5, slot(-20)).word(6, at(0x33));
        case.position = position;
        assert_eq!(case.changes(), format!("rbx=[2] rip={:#x} rsp=-20", at(0x33)), "{position:?}");
        let (_, step) = case.step().unwrap();
        assert_eq!((step.trust, step.caller), (Trust::SignalFrame, Position::Interrupted));
    }
}

/// No call led to the trampoline, so its first instruction counts, unless there is a rule for the
/// byte before it: a call may be the last instruction of a function that does not return.
#[test]
fn a_signal_frame_is_looked_up_at_its_first_instruction() {
    let build = |before: &[Cfi]| {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie::default());
        let signal = frames.cie(&signal_cie());
        if !before.is_empty() {
            frames.fde(cie, CODE, 0x20, before);
        }
        let rows = [Cfi::DefCfaOffset(24), Cfi::Advance(4), Cfi::DefCfaOffset(40)];
        frames.fde(signal, CODE + 0x20, 0x10, &rows);
        frames
    };
    let alone = build(&[]);
    assert_eq!(Case::new(&alone, 0x20).returned_to().changes(), "rip=[2] rsp=3");
    assert_eq!(Case::new(&alone, 0x20).changes(), "rip=[2] rsp=3");
    // Interrupt frames make calls too: a rule for the byte before counts.
    assert_eq!(Case::new(&alone, 0x24).returned_to().changes(), "rip=[2] rsp=3");
    for (before, changes) in [
        (vec![Cfi::DefCfaOffset(16)], "rip=[1] rsp=2"),
        // In no simple form.
        (vec![Cfi::DefCfaOffset(16), Cfi::ValOffset(Gpr::Rbx, 2)], "rbx=0 rip=[1] rsp=2"),
    ] {
        let behind = build(&before);
        assert_eq!(Case::new(&behind, 0x20).returned_to().changes(), changes);
        assert_eq!(Case::new(&behind, 0x20).changes(), "rip=[2] rsp=3");
    }
}

/// Other functions are not returned to at their first instruction: the call was at the end of code
/// without rules.
#[test]
fn a_rule_at_a_return_address_counts_in_signal_frames_alone() {
    for (cie, is_signal) in [(signal_cie(), true), (Cie::default(), false)] {
        let mut frames = Frames::new();
        let cie = frames.cie(&cie);
        // In no simple form.
        let rows = [Cfi::DefCfaOffset(16), Cfi::ValOffset(Gpr::Rbx, 2)];
        frames.fde(cie, CODE + 0x20, 0x10, &rows);
        let step = Case::new(&frames, 0x20).returned_to().step();
        let expected = if is_signal {
            Ok(Trust::SignalFrame)
        } else {
            Err(UnwindError::NoFrameInformation { address: at(0x20) })
        };
        assert_eq!(step.map(|(_, step)| step.trust), expected);
    }
}

/// The handler of an interrupt ends with a call, and another one follows it.
#[test]
fn a_call_at_the_end_of_a_signal_frame_is_no_trampoline() {
    let mut frames = Frames::new();
    let signal = frames.cie(&signal_cie());
    frames.fde(signal, CODE, 0x20, &[Cfi::DefCfaOffset(16)]);
    frames.fde(signal, CODE + 0x20, 0x10, &[Cfi::DefCfaOffset(24)]);
    assert_eq!(Case::new(&frames, 0x20).returned_to().changes(), "rip=[1] rsp=2");
    assert_eq!(Case::new(&frames, 0x20).changes(), "rip=[2] rsp=3");
}

#[test]
fn every_step_goes_up() {
    // The CFA is rsp itself, where a call was made, and below it.
    let returned = Case::function(&[Cfi::DefCfaOffset(0)], 1).returned_to();
    let below = Case::function(&[Cfi::DefCfa(Gpr::Rbp, 8)], 0);
    for case in [returned, below] {
        let case = case.register(Gpr::Rbp, slot(-3));
        let error = case.step().unwrap_err();
        assert!(matches!(error, UnwindError::NoProgress { .. }), "{error}");
    }
    let own = [Cfi::Raw(vec![5, 7, 3])];
    let error = Case::function(&own, 0).word(-2, slot(0)).step().unwrap_err();
    assert_eq!(error, UnwindError::NoProgress { rsp: slot(0), caller_rsp: slot(0) });
}

/// vfork keeps its return address in a register, because another process is about to use the stack.
#[test]
fn an_interrupted_function_may_have_popped_its_return_address() {
    let popped = [Cfi::DefCfaOffset(0), Cfi::Register(16, 5)];
    let case = Case::function(&popped, 0);
    assert_eq!(case.changes(), "rip=rdi rsp=0");
    let walk = case.map();
    let frames = Unwinder::new(&walk).walk(&case.registers, &Segment::new(0, &[])).count();
    // The frame, its caller, and that rdi leads nowhere.
    assert_eq!(frames, 3);
    // It has made no call so.
    let error = UnwindError::NoProgress { rsp: slot(0), caller_rsp: slot(0) };
    assert_eq!(Case::function(&popped, 1).returned_to().step(), Err(error));
    let below = [Cfi::DefCfa(Gpr::Rbp, 0), Cfi::Register(16, 5)];
    let case = Case::function(&below, 0).register(Gpr::Rbp, slot(-1));
    let error = UnwindError::NoProgress { rsp: slot(0), caller_rsp: slot(-1) };
    assert_eq!(case.step(), Err(error));
}

#[test]
fn a_stack_that_cannot_be_read_is_an_error() {
    let case = Case::function(&[Cfi::DefCfaOffset(24), Cfi::Offset(Gpr::Rbx, 2)], 0);
    let error = case.clone().register(Gpr::Rsp, slot(0xFFE)).step().unwrap_err();
    assert!(matches!(error, UnwindError::Stack(_)), "{error}");
    // The return address can be read, the register below it cannot, though it looks like an epilogue.
    let saved = [Cfi::DefCfa(Gpr::Rbp, 16), Cfi::Offset(Gpr::Rbx, 3)];
    let in_no_simple_form = [&saved[..], &[Cfi::ValOffset(Gpr::R15, 2)]].concat();
    let with_one_below = [&saved[..], &[Cfi::Offset(Gpr::R12, 4)]].concat();
    for (saved, changes) in [
        (saved.to_vec(), "rbx=[0] rip=[2] rsp=3"),
        // The code has the registers that the row should have.
        (in_no_simple_form, "rbx=[0] r12=[1] rip=[2] rsp=3"),
        (with_one_below, "rbx=[0] rip=[2] rsp=3"),
    ] {
        let case = Case::function(&saved, 0)
            .register(Gpr::Rbp, slot(1))
            .code(0, &[0x5B, 0x41, 0x5C, 0xC3]);
        assert_eq!(case.clone().readable_from(0).changes(), changes);
        let error = case.readable_from(1).step().unwrap_err();
        assert_eq!(error, UnwindError::Stack(Unreadable { address: slot(0), len: 8 }));
    }
}

#[test]
fn code_that_nothing_is_said_of_is_unknown() {
    let case = |offset| Case::function(&[], offset);
    let error = UnwindError::NoFrameInformation { address: at(0x100) };
    assert_eq!(case(0x100).step(), Err(error));
    let error = UnwindError::NoFrameInformation { address: at(0x101) };
    assert_eq!(case(0x101).returned_to().step(), Err(error));
    // Not code at all.
    let error = UnwindError::UnknownCode { address: at(0x1800) };
    assert_eq!(case(0x1800).step(), Err(error));
}

/// The number of pushed bytes, for each place in the code of a stub.
type Places<'a> = &'a [(u32, i64)];

#[test]
fn stubs_are_known_by_their_bytes() {
    let jump: &[u8] = &[0xFF, 0x25, 0x10, 0x20, 0, 0];
    let bound_jump: &[u8] = &[0xF2, 0xFF, 0x25, 0x10, 0x20, 0, 0];
    let endbr: &[u8] = &[0xF3, 0x0F, 0x1E, 0xFA];
    let push: &[u8] = &[0x68, 5, 0, 0, 0];
    let first: &[u8] = &[0xFF, 0x35, 2, 0x20, 0, 0];
    let back: &[u8] = &[0xE9, 0, 0xFF, 0xFF, 0xFF];
    let bound_back: &[u8] = &[0xF2, 0xE9, 0, 0xFF, 0xFF, 0xFF];
    let cases: &[(&[&[u8]], Places<'_>)] = &[
        (&[jump, push, back], &[(0, 0), (6, 0), (11, 1)]),
        (&[endbr, bound_jump], &[(0, 0), (4, 0)]),
        (&[endbr, push, bound_back], &[(0, 0), (4, 0), (9, 1)]),
        (&[first, jump], &[(0, 1), (6, 2)]),
        (&[first, bound_jump], &[(0, 1), (6, 2)]),
    ];
    for (code, places) in cases {
        for (offset, pushed) in *places {
            let mut case = Case::function(&[], 0x200 + offset);
            let code = code.concat();
            case.code[0x200..0x200 + code.len()].copy_from_slice(&code);
            let expected = format!("rip=[{pushed}] rsp={}", pushed + 1);
            assert_eq!(case.changes(), expected, "{code:x?} at {offset}");
            assert_eq!(case.step().unwrap().1.trust, Trust::Stub);
            // The byte before a return address is there, but stubs make no calls.
            case.registers.rip += 1;
            let error = UnwindError::NoFrameInformation { address: at(0x201 + offset) };
            assert_eq!(case.returned_to().step(), Err(error));
        }
    }
    // A push of the same form before, or without, a jump that leaves is any code.
    let call: &[u8] = &[0xFF, 0x15, 0x10, 0x20, 0, 0];
    for (code, offset) in [([first, call], 0), ([first, call], 6)] {
        let case = Case::function(&[], 0x200 + offset).code(0x200, &code.concat());
        let error = UnwindError::NoFrameInformation { address: at(0x200 + offset) };
        assert_eq!(case.step(), Err(error));
    }
    // Information comes first.
    let mut case = Case::function(&[Cfi::DefCfaOffset(32)], 0);
    case.code[..6].copy_from_slice(jump);
    assert_eq!(case.changes(), "rip=[3] rsp=4");
}

#[test]
fn frame_pointers_are_followed_on_demand_and_only_where_they_look_right() {
    let base =
        Case::function(&[], 0x200).register(Gpr::Rbp, slot(3)).word(3, slot(8)).word(4, at(0x51));
    let error = UnwindError::NoFrameInformation { address: at(0x200) };
    assert_eq!(base.step(), Err(error), "not without being asked");
    let base = Case { guesses: Guesses::FramePointers, ..base };
    assert_eq!(base.changes(), format!("rbp=8 rip={:#x} rsp=5", at(0x51)));
    assert_eq!(base.step().unwrap().1.trust, Trust::FramePointer);
    let at_rsp = base.clone().register(Gpr::Rbp, slot(0)).word(0, slot(8)).word(1, at(0x51));
    assert_eq!(at_rsp.changes(), format!("rbp=8 rip={:#x} rsp=2", at(0x51)));
    let frameless_caller = base.clone().word(3, slot(5));
    assert_eq!(frameless_caller.changes(), format!("rbp=5 rip={:#x} rsp=5", at(0x51)));
    let outermost = base.clone().word(3, 0);
    assert_eq!(outermost.changes(), format!("rbp=0x0 rip={:#x} rsp=5", at(0x51)));
    for (what, case) in [
        (
            "below rsp",
            base.clone().register(Gpr::Rbp, slot(-1)).word(-1, slot(8)).word(0, at(0x51)),
        ),
        (
            "not aligned",
            base.clone()
                .register(Gpr::Rbp, slot(3) + 4)
                .word(3, 0)
                .word(4, at(0x51) << 32)
                .word(5, at(0x51) >> 32),
        ),
        ("leads down", base.clone().word(3, slot(4))),
        ("returns to no code", base.clone().word(4, at(0x2000))),
        ("returns nowhere", base.clone().word(4, 0)),
        ("wraps", base.clone().register(Gpr::Rbp, u64::MAX - 7)),
    ] {
        assert_eq!(case.step(), Err(error), "{what}");
    }
    let unreadable = base.register(Gpr::Rbp, slot(0x2000)).step().unwrap_err();
    assert!(matches!(unreadable, UnwindError::Stack(_)));
}
