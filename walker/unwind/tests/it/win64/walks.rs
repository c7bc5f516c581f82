//! Whole stacks.

use super::*;
use Position::{Interrupted, ReturnAddress};

/// FIRST saves rbx, SECOND allocates, INTERRUPT is entered by a machine frame.
const FIRST: [u32; 3] = [0x100, 0x140, 0x800];
const SECOND: [u32; 3] = [0x140, 0x180, 0x810];
const INTERRUPT: [u32; 3] = [0x180, 0x1C0, 0x820];

fn program() -> Case {
    Case::new()
        .function(FIRST, &Info::new(1, &[(1, Push(Rbx))]))
        .function(SECOND, &Info::new(4, &[(4, Small(0x20)), (2, Push(Rsi))]))
        .function(INTERRUPT, &Info::new(0, &[(0, MachineFrame)]))
}

/// Returns the frames of a walk from `rva`, and its end.
fn walk(case: &Case, rva: u32, limit: u32) -> (Vec<Frame>, Option<UnwindError>) {
    let registers = Registers { rip: BASE + u64::from(rva), ..case.registers };
    case.with_map(|map| {
        let mut walk = Unwinder::new(map).walk(&registers, &case.stack).with_limit(limit);
        let mut frames = Vec::new();
        let error = loop {
            match walk.next() {
                Some(Ok(frame)) => frames.push(frame),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        assert!(walk.next().is_none(), "an error is the last item");
        (frames, error)
    })
}

/// Converts frames to (RVA, slot of rsp, position, trust).
fn outline(frames: &[Frame]) -> Vec<(u64, u64, Position, Option<Trust>)> {
    let slot_of = |address: u64| (address - slot(0)) / 8;
    frames
        .iter()
        .map(|frame| {
            let Frame { registers, position, found_by, .. } = frame;
            let trust = found_by.map(|step| step.trust);
            (registers.rip.wrapping_sub(BASE), slot_of(registers.rsp()), *position, trust)
        })
        .collect()
}

#[test]
fn a_walk_goes_from_frame_to_frame_until_unknown_code() {
    let case = program()
        // In SECOND's prologue, called by FIRST, called by SECOND, called from elsewhere.
        .with_slot(1, BASE + 0x120)
        .with_slot(3, BASE + 0x160)
        .with_slot(9, 0xE15E);
    let (frames, error) = walk(&case, 0x142, 100);
    assert_eq!(
        outline(&frames),
        [
            (0x142, 0, Interrupted, None),
            (0x120, 2, ReturnAddress, Some(Trust::Prologue)),
            (0x160, 4, ReturnAddress, Some(Trust::Body)),
            (0xE15E_u64.wrapping_sub(BASE), 10, ReturnAddress, Some(Trust::Body)),
        ]
    );
    assert_eq!(error, Some(UnwindError::UnknownCode { address: 0xE15E }));
    assert_eq!(frames[3].registers.get(Rbx), crate::win64::case::word(2));
    assert_eq!(frames[3].registers.get(Rsi), crate::win64::case::word(8));
}

#[test]
fn callers_are_looked_up_at_their_calls() {
    // FIRST's last instruction is a call.
    let case = program().with_slot(1, BASE + 0x140).with_slot(3, 0xE15E);
    let (frames, _) = walk(&case, 0x120, 100);
    assert_eq!(outline(&frames)[1], (0x140, 2, ReturnAddress, Some(Trust::Body)));
    assert_eq!(frames[2].registers.rip, 0xE15E);
}

#[test]
fn below_a_machine_frame_the_code_was_interrupted() {
    // FIRST was interrupted before its first instruction, on a stack that lies below.
    let case =
        program().with_slot(0, BASE + 0x100).with_slot(3, slot(-10)).with_slot(-10, BASE + 0x160);
    let case = case.with_slot(-4, 0xE15E);
    let (frames, error) = walk(&case, 0x1A0, 100);
    let positions: Vec<_> =
        frames.iter().map(|frame| (frame.registers.rip, frame.position)).collect();
    assert_eq!(
        positions,
        [
            (BASE + 0x1A0, Interrupted),
            (BASE + 0x100, Interrupted),
            (BASE + 0x160, ReturnAddress),
            (0xE15E, ReturnAddress),
        ]
    );
    assert_eq!(error, Some(UnwindError::UnknownCode { address: 0xE15E }));
    assert_eq!(frames[1].found_by.unwrap().trust, Trust::Body);
    assert_eq!(frames[2].found_by.unwrap().trust, Trust::Prologue);
}

#[test]
fn the_stack_must_get_shorter() {
    let info = Info::new(4, &[(4, SetFrame)]).frame(Rbp, 0);
    for below in [1, 2, 50] {
        // The return address is read below rsp; 1 below, the caller's rsp is the frame's own.
        let case = Case::new().function(FIRST, &info).with(Rbp, slot(-below));
        let (frames, error) = walk(&case, 0x120, 100);
        assert_eq!(frames.len(), 1);
        let expected = UnwindError::NoProgress { rsp: slot(0), caller_rsp: slot(1 - below) };
        assert_eq!(error, Some(expected));
    }
    let case = Case::new().function(FIRST, &info).with(Rbp, slot(0));
    assert_eq!(walk(&case, 0x120, 100).0.len(), 2);
    // The unwinder alone does not check it.
    assert_eq!(case.with(Rbp, slot(-2)).at(0x120), "Body rip=[-2] rsp=-1 frame=-2");
}

#[test]
fn rsp_may_not_wrap_around() {
    let info = Info::new(4, &[(4, LargeFar(0xFFFF_FFF8))]);
    let case = Case::new().function(FIRST, &info).with_slot(0, BASE + 0x120);
    assert!(matches!(walk(&case, 0x120, 100).1, Some(UnwindError::Stack(_))));
}

#[test]
fn a_walk_has_a_limit() {
    // FIRST calls itself for ever: every return address is its own.
    let case = (0..100).fold(program(), |case, n| case.with_slot(2 * n + 1, BASE + 0x120));
    for limit in [0, 1, 2, 50] {
        let (frames, error) = walk(&case, 0x120, limit);
        assert_eq!(frames.len(), limit as usize);
        assert_eq!(error, Some(UnwindError::TooManyFrames { limit }));
    }
    // A stack of just as many frames is walked whole.
    let case = program().with_slot(1, 0xE15E);
    assert_eq!(walk(&case, 0x120, 2).1, Some(UnwindError::UnknownCode { address: 0xE15E }));
    assert_eq!(walk(&case, 0x120, 1).1, Some(UnwindError::TooManyFrames { limit: 1 }));
}

#[test]
fn an_endless_stack_is_given_up() {
    // A machine frame whose caller is the same code on the same stack.
    let case = program().with_slot(0, BASE + 0x1A0).with_slot(3, slot(0));
    let registers = Registers { rip: BASE + 0x1A0, ..case.registers };
    let (frames, last) = case.with_map(|map| {
        let walk = Unwinder::new(map).walk(&registers, &case.stack);
        walk.fold((0_u32, None), |(count, _), item| (count + 1, item.err()))
    });
    assert_eq!(last, Some(UnwindError::TooManyFrames { limit: frames - 1 }));
}
