//! Rules for valid shapes.

use super::super::program::CodeKind;
use super::super::shape::{
    Allocation, CallingConvention, EntryForm, FrameSet, FunctionShape, Realign, Release,
    UnwindData, Wrap,
};
use super::{MAX_ARGUMENTS, MAX_LOCALS, MAX_PUSHES, ProgramRule};
use clr_unwind::Gpr;
use std::collections::BTreeSet;

pub(super) fn check(
    shape: &FunctionShape,
    convention: CallingConvention,
    kind: CodeKind,
) -> Result<(), ProgramRule> {
    let called = shape.entry == EntryForm::Call;
    let unix = kind == CodeKind::Native && convention == CallingConvention::SystemV;
    if shape.is_of_unix() && !unix {
        return Err(ProgramRule::Unix);
    }
    if shape.locals > MAX_LOCALS || !shape.locals.is_multiple_of(8) {
        return Err(ProgramRule::Locals);
    }
    let home = shape.home.iter().flatten();
    if home.clone().next().is_some() && (!called || convention.home_space() == 0) {
        return Err(ProgramRule::Home);
    }
    if shape.pushes.iter().chain(home.clone()).any(|register| *register == Gpr::Rsp) {
        return Err(ProgramRule::StackPointer);
    }
    if shape.pushes.len() > MAX_PUSHES {
        return Err(ProgramRule::Pushes);
    }
    let volatile = |register: &Gpr| !convention.is_nonvolatile(*register);
    if let Some(register) = shape.saves.iter().find(|register| volatile(register)) {
        return Err(ProgramRule::Saved(*register));
    }
    let mut saved = BTreeSet::new();
    for register in shape.pushes.iter().chain(home).chain(&shape.saves) {
        if convention.is_nonvolatile(*register) && !saved.insert(register) {
            return Err(ProgramRule::Saved(*register));
        }
    }
    let mut vectors = BTreeSet::new();
    for &n in &shape.xmm_saves {
        if !convention.has_nonvolatile_xmm() || !(6..=15).contains(&n) || !vectors.insert(n) {
            return Err(ProgramRule::SavedXmm(n));
        }
    }
    if let Some(frame) = shape.frame {
        if frame.offset > 15 || !shape.pushes.contains(&frame.register) || volatile(&frame.register)
        {
            return Err(ProgramRule::FrameRegister);
        }
        let by_mov = !shape.saves.is_empty() || !shape.xmm_saves.is_empty();
        if by_mov && shape.saves_lie_below_frame() {
            return Err(ProgramRule::SavesBelowFrame);
        }
    }
    if shape.allocation == Allocation::Chkstk && !(called && convention.home_space() > 0) {
        return Err(ProgramRule::Chkstk);
    }
    if !release_is_possible(shape) {
        return Err(ProgramRule::Release);
    }
    if shape.realign != Realign::No && !may_realign(shape) {
        return Err(ProgramRule::Realign);
    }
    if shape.wrap != Wrap::Whole && !(called && shape.realign == Realign::No) {
        return Err(ProgramRule::Wrap);
    }
    if shape.arguments > MAX_ARGUMENTS || !shape.arguments.is_multiple_of(2) {
        return Err(ProgramRule::Arguments);
    }
    match shape.unwind {
        UnwindData::None => {
            let plain = FunctionShape {
                unwind: UnwindData::None,
                scheduled: shape.scheduled,
                ..FunctionShape::default()
            };
            if *shape == plain { Ok(()) } else { Err(ProgramRule::Leaf) }
        }
        UnwindData::Version2
            if !called
                || matches!(shape.release, Release::Pop | Release::Leave)
                || shape.allocation == Allocation::Push
                || shape.pushes.iter().any(volatile) =>
        {
            Err(ProgramRule::Version2)
        }
        _ => Ok(()),
    }
}

/// Returns true if a function of this shape may realign its stack.
pub fn may_realign(shape: &FunctionShape) -> bool {
    let by_rbp = shape.frame.is_some_and(|frame| {
        frame.register == Gpr::Rbp
            && frame.offset == 0
            && frame.set == FrameSet::BehindPush
            && frame.described
    });
    let simple = matches!(
        shape.release,
        Release::Add | Release::AddImm32 | Release::Lea | Release::LeaDisp32
    );
    shape.entry == EntryForm::Call && by_rbp && shape.pushes.first() == Some(&Gpr::Rbp) && simple
}

fn release_is_possible(shape: &FunctionShape) -> bool {
    let Some(frame) = shape.frame else {
        return !matches!(
            shape.release,
            Release::Lea | Release::LeaDisp32 | Release::Mov | Release::Leave
        );
    };
    let at_pushes = frame.set == FrameSet::BeforeAllocation && frame.offset == 0;
    match shape.release {
        Release::Mov => at_pushes,
        Release::Leave if frame.set == FrameSet::BehindPush => {
            frame.offset == 0 && frame.register == Gpr::Rbp && shape.entry == EntryForm::Call
        }
        Release::Leave => {
            at_pushes && frame.register == Gpr::Rbp && shape.pushes.last() == Some(&Gpr::Rbp)
        }
        _ => true,
    }
}
