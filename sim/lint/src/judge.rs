//! The comparison of the unwinder's answer with the executed state, at one instruction.

use crate::finding::{Blame, Cause, Found, Subject, Where};
use crate::language::Language;
use crate::state::{Place, Stack, State, UNKNOWN_XMM};
use crate::value::{
    ENTRY_RSP, FARTHEST, RETURN_ADDRESS, Shown, Value, caller, caller_xmm, is_unknown,
};
use clr_unwind::cfi::{CfaRule, CfiProblem};
use clr_unwind::compat::Rules;
use clr_unwind::{
    CodeMap, CodeRegion, Convention, Gpr, Position, RegisterSet, Trust, UnwindError, Unwinder,
};

/// The rules that debuggers and profilers on Windows use.
const RULES_OF_WINDOWS: Rules = Rules::Ntdll;

/// The answer of an unwinder, compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// All that is known is right.
    Right,
    /// The state says too little: a register that the answer needs has an unknown value, or the code is
    /// the stack's end or has no unwind data.
    NotJudged,
    /// The answer is wrong.
    Wrong(Wrong),
}

/// A wrong answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) cause: Cause,
    pub(crate) blame: Blame,
    pub(crate) subject: Subject,
    pub(crate) found: Found,
    /// True if the instruction is a call, and the answer is wrong for its return address.
    pub(crate) at_return_address: bool,
    /// True if it is wrong at the instruction itself.
    pub(crate) at_instruction: bool,
}

/// Judges the answers of unwinders for the code of a region.
pub(crate) struct Judge<'m, 'a> {
    precise: Unwinder<'m, 'a>,
    /// `None` for code that is not unwound by UNWIND_INFO of Windows.
    windows: Option<Unwinder<'m, 'a>>,
    convention: Convention,
    /// The registers that the functions preserve that are judged.
    preserved: RegisterSet,
    region: &'m CodeRegion<'a>,
}

impl<'m, 'a> Judge<'m, 'a> {
    pub(crate) fn new(map: &'m CodeMap<'a>, region: &'m CodeRegion<'a>) -> Self {
        // The data are judged by the code, so the unwinder must not read it.
        let precise = Unwinder::new(map).by_data_alone();
        let convention = precise.convention();
        let of_windows = region.cfi().is_none() && convention == Convention::WindowsX64;
        let windows = of_windows.then(|| precise.with_rules(RULES_OF_WINDOWS));
        let preserved = convention.nonvolatile();
        Self { precise, windows, convention, preserved, region }
    }

    pub(crate) const fn convention(&self) -> Convention {
        self.convention
    }

    /// Judges functions in a language from now on; `None` for one that follows the platform's convention.
    pub(crate) fn set_language(&mut self, language: Option<Language>) {
        let (usual, convention) = (self.convention.nonvolatile(), self.convention);
        self.preserved = language.map_or(usual, |language| language.preserved(convention));
    }

    /// Judges the answers at the instruction at `rva`, interrupted in this state.
    pub(crate) fn at(&self, state: &State, rva: u32) -> Answer {
        self.both(state, rva, Position::Interrupted)
    }

    /// Judges the answers at the return address `rva` of a call that was made in this state.
    pub(crate) fn at_return_address(&self, state: &State, rva: u32) -> Answer {
        self.both(state, rva, Position::ReturnAddress)
    }

    fn both(&self, state: &State, rva: u32, position: Position) -> Answer {
        let precise = self.answer(&self.precise, state, rva, position);
        let Some(windows) = &self.windows else {
            let is_wrong = matches!(precise, Answer::Wrong(_));
            let is_lost = is_wrong && self.is_computed_from_lost_register(state, rva, position);
            return if is_lost { Answer::NotJudged } else { precise };
        };
        match (precise, self.answer(windows, state, rva, position)) {
            (Answer::Right, Answer::Wrong(wrong)) => {
                Answer::Wrong(Wrong { blame: Blame::WindowsRules, ..wrong })
            }
            (Answer::Wrong(wrong), Answer::Right) => {
                Answer::Wrong(Wrong { blame: Blame::Walker, ..wrong })
            }
            (precise, _) => precise,
        }
    }

    fn answer(
        &self,
        unwinder: &Unwinder<'_, '_>,
        state: &State,
        rva: u32,
        position: Position,
    ) -> Answer {
        let rip = self.region.base().wrapping_add(u64::from(rva));
        let (before, mut known) = state.registers(rip);
        let preserved = self.preserved;
        if position == Position::ReturnAddress {
            known = known.intersection(preserved);
        }
        let memory = Stack::new(state, self.convention);
        let mut registers = before;
        let step = match unwinder.step(&mut registers, position, &memory) {
            Ok(step) => step,
            Err(error) => return self.refusal(error, state, known, rva, position),
        };
        // A step by UNWIND_INFO names rsp among the registers that it needs, even where a frame register alone
        // leads to the frame. From an unknown rsp none comes to the stack.
        let by_frame = state.rsp().is_none() && is_on_stack(registers.rsp());
        let known = if by_frame { known.with(Gpr::Rsp) } else { known };
        if step.trust == Trust::SignalFrame || !known.contains_all(step.needed) {
            return Answer::NotJudged;
        }
        // A word that nobody knows is no right answer if it is read from another place than the return
        // address.
        let is_in_place = registers.rsp() == ENTRY_RSP.wrapping_add(8);
        if is_unknown(registers.rsp()) || is_in_place && is_unknown(registers.rip) {
            return Answer::NotJudged;
        }
        let rsp = state.rsp();
        let show = |number| Shown::new(number, rsp.unwrap_or(0));
        let wrong = |cause, subject, expected, got| {
            let found = Found { expected, got, trust: Some(step.trust), error: None };
            Answer::Wrong(Wrong::new(cause, subject, found, position))
        };
        let frame = |subject, expected, got| {
            let cause = frame_cause(state, registers.rsp(), step.needed);
            wrong(
                if step.trust == Trust::Leaf { Cause::NoData } else { cause },
                subject,
                expected,
                got,
            )
        };
        if registers.rip != RETURN_ADDRESS {
            let expected = state.place_of(Value::Return).map(|place| relative(place, rsp));
            return frame(Subject::Caller, expected, show(registers.rip));
        }
        if registers.rsp() != ENTRY_RSP.wrapping_add(8) {
            let expected = rsp.map(|rsp| Where::Address(8 - rsp));
            return frame(Subject::StackPointer, expected, show(registers.rsp()));
        }
        // A register that the frame has lost is the caller's only if the step has found it.
        let given = step.found.union(step.kept);
        let register_cause = |is_somewhere: bool| match (step.trust, is_somewhere) {
            (Trust::Leaf, _) => Cause::NoData,
            (_, true) => Cause::SavedElsewhere,
            (_, false) => Cause::RegisterLost,
        };
        for register in preserved.intersection(given).without(Gpr::Rsp).gprs() {
            let got = registers.get(register);
            if got != caller(register) && !is_unknown(got) {
                let place = state.place_of(Value::Caller(register));
                let expected = place.map(|place| relative(place, rsp));
                let cause = register_cause(place.is_some());
                return wrong(cause, Subject::Register(register), expected, show(got));
            }
        }
        for (got, n) in registers.xmm.iter().zip(6_u8..) {
            let is_given = preserved.contains_xmm(n) && given.contains_xmm(n);
            if is_given && *got != caller_xmm(n) && *got != UNKNOWN_XMM {
                let place = state.place_of(Value::CallerXmm(n));
                let expected = place.map(|place| relative(place, rsp));
                let cause = register_cause(place.is_some());
                let got =
                    if step.found.contains_xmm(n) { Shown::Elsewhere } else { Shown::Vector(n) };
                return wrong(cause, Subject::Vector(n), expected, got);
            }
        }
        Answer::Right
    }

    /// Returns true if call frame information computes the frame from a volatile register that a call may
    /// have changed. Assembly calls functions of its own that preserve more than the convention says.
    fn is_computed_from_lost_register(&self, state: &State, rva: u32, position: Position) -> bool {
        let Some(table) = self.region.cfi() else { return false };
        let at = if position == Position::ReturnAddress { rva.wrapping_sub(1) } else { rva };
        let Ok(Some(row)) = table.row(at) else { return false };
        let CfaRule::Register { register, .. } = row.cfa else { return false };
        register
            .gpr()
            .is_some_and(|base| !self.preserved.contains(base) && !state.get(base).is_followed())
    }

    /// Returns true if call frame information says nothing of code that has a frame: it has moved rsp, or
    /// makes a call.
    fn lacks_data(&self, state: &State, rva: u32, position: Position) -> bool {
        let has_frame =
            position == Position::ReturnAddress || state.rsp().is_some_and(|at| at != 0);
        has_frame && self.region.cfi().is_some_and(|table| table.function(rva).is_none())
    }

    /// Judges a step that the unwinder refused to make.
    fn refusal(
        &self,
        error: UnwindError,
        state: &State,
        known: RegisterSet,
        rva: u32,
        position: Position,
    ) -> Answer {
        let (cause, blame) = match error {
            // But code that has a frame should have data.
            UnwindError::NoFrameInformation { .. } if self.lacks_data(state, rva, position) => {
                (Cause::NoData, Blame::Data)
            }
            // The end of a stack, and code without unwind data, are no faults of data.
            UnwindError::EndOfStack { .. }
            | UnwindError::NoFrameInformation { .. }
            | UnwindError::UnknownCode { .. }
            // Nor is code that compact unwind information does not describe, and that leads to no
            // return: the dispatch of a `switch` before a late prologue, or a table.
            | UnwindError::CodeContradictsTable { .. } => return Answer::NotJudged,
            UnwindError::CallerWithoutEntry { .. } => (Cause::NoData, Blame::Data),
            UnwindError::UnsupportedVersion { .. } | UnwindError::InvalidOperation { .. } => {
                (Cause::Refused, Blame::Unknown)
            }
            UnwindError::Cfi(error) => match error.problem {
                CfiProblem::Register(_) | CfiProblem::TooManyRules | CfiProblem::Operation => {
                    (Cause::Refused, Blame::Unknown)
                }
                _ => (Cause::Refused, Blame::Data),
            },
            // The place of the caller was computed from a register with another value.
            UnwindError::Stack(_)
            | UnwindError::NoProgress { .. }
            | UnwindError::LostRegister { .. } => {
                let needed = RegisterSet::of(&[Gpr::Rbp, Gpr::Rsp]);
                if state.rsp().is_none() || !known.contains_all(needed) {
                    return Answer::NotJudged;
                }
                (frame_cause(state, 0, needed), Blame::Data)
            }
            _ => (Cause::Refused, Blame::Data),
        };
        let rsp = state.rsp();
        let expected = state.place_of(Value::Return).map(|place| relative(place, rsp));
        let got = match error {
            UnwindError::Stack(unreadable) => Shown::beyond(unreadable.address),
            _ => Shown::Nothing,
        };
        let found = Found { expected, got, trust: None, error: Some(error) };
        Answer::Wrong(Wrong { blame, ..Wrong::new(cause, Subject::Caller, found, position) })
    }
}

impl Wrong {
    fn new(cause: Cause, subject: Subject, found: Found, position: Position) -> Self {
        let at_return_address = position == Position::ReturnAddress;
        let blame = if cause == Cause::OwnReturnAddress { Blame::Unknown } else { Blame::Data };
        Self { cause, blame, subject, found, at_return_address, at_instruction: !at_return_address }
    }
}

/// Returns true if an address is one on the stack.
const fn is_on_stack(address: u64) -> bool {
    let at = address.wrapping_sub(ENTRY_RSP).cast_signed();
    at >= -FARTHEST && at < FARTHEST
}

/// Returns the kind of a wrong frame: the unwinder gives `rsp` for the caller's stack pointer, computed
/// from the registers in `needed`.
fn frame_cause(state: &State, rsp: u64, needed: RegisterSet) -> Cause {
    let got = rsp.wrapping_sub(ENTRY_RSP).cast_signed();
    if got == 0 && state.load(Value::Stack(-8)) == Value::Other {
        return Cause::OwnReturnAddress;
    }
    if (-FARTHEST..FARTHEST).contains(&got) {
        return if got > 8 { Cause::FrameGone } else { Cause::FrameGrown };
    }
    // The frame register has the caller's value: it is not set yet, or restored.
    let mut bases = needed.without(Gpr::Rsp).gprs();
    if bases.any(|base| state.get(base) == Value::Caller(base)) {
        Cause::FrameGone
    } else {
        Cause::Other
    }
}

/// Returns a place as it is seen where rsp is `rsp` bytes from its value at entry.
fn relative(place: Place, rsp: Option<i64>) -> Where {
    match place {
        Place::Register(register) => Where::Register(register),
        Place::Stack(at) => rsp.map_or(Where::Entry(at), |rsp| Where::Stack(at - rsp)),
    }
}
