//! The caller's registers that are known after a step.

use super::*;

const PRESERVED: RegisterSet = Convention::SystemV.nonvolatile();

fn step(case: &Case) -> Step {
    case.step().unwrap().1
}

/// Steps of the simple form, and equivalent steps that are not of it.
fn both_forms(instructions: &[Cfi]) -> [Step; 2] {
    let other = [instructions, &[Cfi::Expression(number(R15), vec![0x77, 0])]].concat();
    [instructions, &other].map(|instructions| step(&Case::function(instructions, 0)))
}

#[test]
fn calls_preserve_nonvolatile_registers() {
    for step in both_forms(&[Cfi::DefCfaOffset(32), Cfi::Offset(Rbx, 2), Cfi::SameValue(R12)]) {
        let saved = RegisterSet::of(&[Rsp, Rbx]);
        assert_eq!(step.found.without(R15), saved);
        assert_eq!(step.kept, PRESERVED.difference(step.found));
        assert_eq!(step.needed, RegisterSet::of(&[Rsp]));
        assert_eq!(step.known(RegisterSet::ALL), PRESERVED);
        assert_eq!(step.known(RegisterSet::of(&[Rsp, Rbp])), step.found.with(Rbp));
    }
}

#[test]
fn an_undefined_register_is_not_known() {
    let step = step(&Case::function(&[Cfi::Undefined(number(Rbx))], 0));
    assert_eq!(step.known(RegisterSet::ALL), PRESERVED.without(Rbx));
    // Known again where it is restored.
    let again = both_forms(&[Cfi::DefCfaOffset(32), Cfi::Offset(Rbx, 2)]);
    assert_eq!(again.map(|step| step.known(PRESERVED.without(Rbx))), [PRESERVED; 2]);
    assert_eq!(again[0].known(PRESERVED.without(Rsp)), RegisterSet::EMPTY);
}

#[test]
fn a_volatile_register_is_known_if_its_place_is() {
    for step in both_forms(&[Cfi::DefCfaOffset(32), Cfi::Offset(Rax, 2)]) {
        assert_eq!(step.known(RegisterSet::ALL), PRESERVED.with(Rax));
    }
    for step in both_forms(&[Cfi::SameValue(Rdi)]) {
        assert_eq!(step.known(RegisterSet::ALL), PRESERVED.with(Rdi));
        assert_eq!(step.known(PRESERVED), PRESERVED);
    }
    for step in both_forms(&[Cfi::ValOffset(Rcx, 2)]) {
        assert!(step.found.contains(Rcx));
    }
}

#[test]
fn registers_that_a_step_reads_must_be_known() {
    let needed = |instructions: &[Cfi]| {
        let case = Case::function(instructions, 0).register(Rbp, slot(4)).register(Rbx, slot(5));
        step(&case).needed
    };
    assert_eq!(needed(&[Cfi::DefCfa(Rbp, 16)]), RegisterSet::of(&[Rbp]));
    // breg3 (rbx) 8.
    let expression = || vec![0x73, 8];
    assert_eq!(needed(&[Cfi::DefCfaExpression(expression())]), RegisterSet::of(&[Rbx]));
    let saved = [Cfi::DefCfa(Rbp, 16), Cfi::Expression(number(R12), expression())];
    assert_eq!(needed(&saved), RegisterSet::of(&[Rbp, Rbx]));
    let moved = [Cfi::Register(number(R12), number(Rcx))];
    assert_eq!(needed(&moved), RegisterSet::of(&[Rsp, Rcx]));
}

/// A handler that returned to the trampoline has left its own values in volatile registers: only
/// those are known that the information of the trampoline names.
#[test]
fn a_signal_frame_restores_the_registers_that_it_names() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie { augmentation: "zRS", ..Cie::default() });
    let saved = |column| Cfi::Expression(column, vec![0x77, 40]);
    let rows = [saved(number(Rsp)), saved(number(Rax)), saved(number(Rbx)), saved(16)];
    frames.fde(cie, CODE, 0x10, &rows);
    frames.fde(cie, CODE + 0x10, 0x10, &[Cfi::Undefined(number(Rsp))]);
    let trampoline = step(&Case::new(&frames, 0));
    assert_eq!(trampoline.trust, Trust::SignalFrame);
    assert_eq!(trampoline.known(PRESERVED), PRESERVED.with(Rax));
    assert_eq!(trampoline.known(PRESERVED.without(Rbp)), PRESERVED.with(Rax).without(Rbp));
    // At the point of a further interrupt, an interrupt's handler has not changed the registers
    // that it has not saved yet.
    assert_eq!(trampoline.known(RegisterSet::ALL), RegisterSet::of(&Gpr::ALL));
    let lost = step(&Case::new(&frames, 0x10));
    assert_eq!((lost.trust, lost.found), (Trust::SignalFrame, RegisterSet::EMPTY));
    assert!(!lost.known(RegisterSet::ALL).contains(Rsp));
}

#[test]
fn a_guess_knows_little_and_a_stub_all_that_is_preserved() {
    let mut case = Case::function(&[], 0x200).register(Rbp, slot(3)).word(3, 0).word(4, at(0x51));
    case.guesses = Guesses::FramePointers;
    let guess = step(&case);
    assert_eq!((guess.trust, guess.needed), (Trust::FramePointer, RegisterSet::of(&[Rbp])));
    assert_eq!(guess.known(RegisterSet::ALL), RegisterSet::of(&[Rsp, Rbp]));
    assert_eq!(guess.known(PRESERVED.without(Rbp)), RegisterSet::EMPTY);

    case.code[0x200..0x206].copy_from_slice(&[0xFF, 0x25, 0x10, 0x20, 0, 0]);
    let stub = step(&case);
    assert_eq!((stub.trust, stub.needed), (Trust::Stub, RegisterSet::of(&[Rsp])));
    assert_eq!(stub.known(RegisterSet::ALL), PRESERVED);
    assert_eq!(stub.known(PRESERVED.without(Rbx)), PRESERVED.without(Rbx));
}

/// The first frame's information loses rbx; the second frame's information counts from it, or does
/// not.
#[test]
fn a_walk_stops_where_it_would_need_a_lost_register() {
    let walk = |second: &[Cfi]| {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie::default());
        let first = [Cfi::DefCfaOffset(16), Cfi::Undefined(number(Rbx))];
        frames.fde(cie, CODE, 0x10, &first);
        frames.fde(cie, CODE + 0x10, 0x10, second);
        let case = Case::new(&frames, 0).register(Rbx, slot(4));
        let words = [0, at(0x18), 0, at(0x18), 0, 0, 0, 0];
        let stack: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let map = case.map();
        let memory = Segment::new(slot(0), &stack);
        let walk = Unwinder::new(&map).walk(&case.registers, &memory);
        walk.take(3).collect::<Vec<Result<Frame, UnwindError>>>()
    };
    let lost = Err(UnwindError::LostRegister { register: Rbx, address: at(0x18) });
    let frames = walk(&[Cfi::DefCfa(Rbx, 16)]);
    assert_eq!(frames[1].unwrap().known, PRESERVED.without(Rbx));
    assert_eq!(frames[1].unwrap().position, Position::ReturnAddress);
    assert_eq!(frames[2], lost);
    let message =
        "the caller of the frame at 0x7f0000001018 is computed from rbx, whose value is lost";
    assert_eq!(frames[2].unwrap_err().to_string(), message);

    let frames = walk(&[Cfi::DefCfaOffset(16)]);
    assert_eq!(frames[2].unwrap().known, PRESERVED.without(Rbx));
    let frames = walk(&[Cfi::DefCfaOffset(16), Cfi::Offset(Rbx, 2)]);
    assert_eq!(frames[2].unwrap().known, PRESERVED);
}
