//! The way out of an interrupted function, by its instructions.
//!
//! Compilers leave epilogues out of call frame information: the row of the body goes on after `pop rbp`, and
//! then names the caller's frame. At the interrupted instruction the code decides. All ways from it to a
//! return release the same frame, so one is enough: the one that takes no branch. A tail jump leaves the
//! function as a return does, but looks like the jump of a `switch`: it counts only if a part of the
//! frame was released right before, or if it goes to the start of a function, and if a call returns to
//! the word that it leaves on top of the stack.

use super::super::code::{Effect, Instruction, State, decode, leave};
use super::{Place, below};
use crate::cfi::{Found, General, NONVOLATILE, RegisterRule, Rule};
use crate::memory::Memory;
use crate::registers::{Gpr, Registers};
use crate::unwinder::{Step, Trust};
use crate::x64::{Base, ends_in_call, follows_call};
use core::ops::RangeInclusive;

/// Maximum number of instructions to the function's end.
const LIMIT: u32 = 16;

/// A way out of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// To `ret`, without a branch on the way.
    Straight,
    /// To `ret`, after a branch that is not taken.
    BehindBranch,
    /// To a jump to the start of another function, or to a PLT entry.
    ToFunction,
    /// To a jump through a register or a pointer, or out of the image.
    Anywhere,
}

/// Makes the step from interrupted code by its instructions, if these lead out of the function and contradict
/// the caller that call frame information names, or if that cannot be told from its rule.
pub(super) fn step<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    registers: &mut Registers,
    memory: &M,
) -> Option<Step> {
    let way = way_out(place)?;
    let rsp = run(place, way, registers, |state, _| Some(state.top()?.0))?;
    let caller = (memory.read_u64(rsp).ok()?, rsp.wrapping_add(8));
    let is_kept = match place.table.find(place.rva) {
        Found::Simple(rule) => rule.is_root() || named(&rule, registers, memory) == Some(caller),
        Found::General => is_special(place),
        Found::Fault(_) | Found::Nothing => false,
    };
    if is_kept || way != Way::Straight && !is_return_address(place, caller.0, memory) {
        return None;
    }
    execute(place, way, registers, memory)
}

/// Returns rip and rsp of the caller that a simple rule names.
fn named<M: Memory + ?Sized>(rule: &Rule, registers: &Registers, memory: &M) -> Option<(u64, u64)> {
    let base = registers.gpr[usize::from(rule.cfa_register & 15)];
    let cfa = base.wrapping_add_signed(rule.cfa_offset.into());
    let rip = memory.read_u64(cfa.wrapping_sub(8)).ok()?;
    (cfa >= registers.rsp()).then_some((rip, cfa))
}

/// Returns true if the general rule at `place` says that the stack ends, or that a signal interrupted the caller:
/// then it knows more than the code does.
#[inline(never)]
fn is_special(place: Place<'_, '_>) -> bool {
    let mut rule = General::new();
    let is_known = place.table.general(place.rva, &mut rule);
    is_known
        && (rule.row.signal_frame
            || matches!(rule.row.return_address, Some(RegisterRule::Undefined)))
}

/// Makes the step from interrupted code whose row fails, if its instructions lead to `ret` without a branch.
pub(super) fn step_without_row<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    registers: &mut Registers,
    memory: &M,
) -> Option<Step> {
    let way = way_out(place).filter(|way| *way == Way::Straight)?;
    execute(place, way, registers, memory)
}

/// Returns the way out that the code takes, if it takes no branch.
fn way_out(place: Place<'_, '_>) -> Option<Way> {
    let mut rva = place.rva;
    let mut way = Way::Straight;
    let mut seen = rva..=rva;
    for _ in 0..LIMIT {
        let code = place.region.bytes_from(rva)?;
        let Instruction { len, effect } = decode(code)?;
        seen = *seen.start().min(&rva)..=*seen.end().max(&rva);
        let next = rva.wrapping_add(len.into());
        rva = match effect {
            Effect::Return => return is_one_function(place, &seen).then_some(way),
            Effect::Jump(distance) => match jump(place, next, distance) {
                Ok(target) => target,
                Err(way) => return way.filter(|_| is_one_function(place, &seen)),
            },
            Effect::JumpOut | Effect::JumpAnywhere => {
                return is_one_function(place, &seen).then_some(Way::Anywhere);
            }
            Effect::Branch(_) => {
                way = Way::BehindBranch;
                next
            }
            _ if code.starts_with(&SYSCALL) => return None,
            effect if goes_on(effect) => next,
            _ => return None,
        };
    }
    None
}

/// Follows a jump from the end of its instruction: to a target in the same function, or out.
fn jump(place: Place<'_, '_>, end: u32, distance: i32) -> Result<u32, Option<Way>> {
    let Place { region, table, rva, .. } = place;
    let address = region.base().wrapping_add(end.into()).wrapping_add_signed(distance.into());
    let Some(target) = region.rva(address) else { return Err(Some(Way::Anywhere)) };
    let function = table.function(rva);
    if function.is_some_and(|function| function.contains(&target)) {
        return Ok(target);
    }
    Err(below::is_entry(place, target).then_some(Way::ToFunction))
}

/// Returns true if all of these instructions belong to the function of the interrupted one, as far as that is
/// known.
fn is_one_function(place: Place<'_, '_>, seen: &RangeInclusive<u32>) -> bool {
    let function = place.table.function(place.rva);
    function.is_none_or(|function| function.contains(seen.start()) && function.contains(seen.end()))
}

/// Makes the step that the instructions up to the end of the way make.
#[inline(never)]
fn execute<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    way: Way,
    registers: &mut Registers,
    memory: &M,
) -> Option<Step> {
    let step = run(place, way, registers, |state, registers| leave(state, registers, memory).ok())?;
    Some(Step { trust: Trust::EpilogueInstructions, ..step })
}

/// Executes the instructions up to the end of the way, and calls `end` with the state there.
#[inline(never)]
fn run<R>(
    place: Place<'_, '_>,
    way: Way,
    registers: &mut Registers,
    end: impl FnOnce(&State, &mut Registers) -> Option<R>,
) -> Option<R> {
    let mut executed = Executed::new(registers);
    let mut rva = place.rva;
    loop {
        let code = place.region.bytes_from(rva)?;
        let Instruction { len, effect } = decode(code)?;
        let next = rva.wrapping_add(len.into());
        rva = match effect {
            Effect::Return => break,
            Effect::JumpOut | Effect::JumpAnywhere => {
                let to = jump_register(code);
                // `pop rcx; jmp rcx` is a return.
                if to.is_some() && to == executed.popped {
                    return None;
                }
                break;
            }
            Effect::Jump(distance) => match jump(place, next, distance) {
                Ok(target) => target,
                Err(_) => break,
            },
            effect => {
                executed.apply(effect)?;
                next
            }
        };
    }
    // A `switch` jumps, too.
    if way == Way::Anywhere && !executed.state.released && !was_released_before(place) {
        return None;
    }
    end(executed.finish()?, registers)
}

/// Makes the step from unknown code that was interrupted, if its instructions lead to `ret` without a branch.
#[inline(never)]
pub(in crate::unwinder) fn step_by_code<M: Memory + ?Sized>(
    mut code: &[u8],
    registers: &mut Registers,
    memory: &M,
) -> Option<Step> {
    let mut executed = Executed::new(registers);
    for _ in 0..LIMIT {
        let Instruction { len, effect } = decode(code)?;
        match effect {
            Effect::Return => return leave(executed.finish()?, registers, memory).ok(),
            _ if code.starts_with(&SYSCALL) => return None,
            effect if goes_on(effect) => executed.apply(effect)?,
            _ => return None,
        }
        code = code.get(usize::from(len)..)?;
    }
    None
}

/// Returns true if execution goes on after an instruction, and the stack is known there.
const fn goes_on(effect: Effect) -> bool {
    !matches!(
        effect,
        Effect::Return
            | Effect::Jump(_)
            | Effect::JumpOut
            | Effect::JumpAnywhere
            | Effect::Branch(_)
            | Effect::Call
            | Effect::DeadEnd
            | Effect::Unknown
            | Effect::AndRsp(_)
            | Effect::Write(Gpr::Rsp)
    )
}

/// The state after some instructions.
struct Executed {
    state: State,
    /// The register that was popped last.
    popped: Option<Gpr>,
    /// The first and last place that was written (VA).
    written: Option<(u64, u64)>,
}

impl Executed {
    fn new(registers: &Registers) -> Self {
        Self { state: State::new(registers), popped: None, written: None }
    }

    /// Applies the effect of an instruction; `None` if it cannot be followed.
    fn apply(&mut self, effect: Effect) -> Option<()> {
        match effect {
            Effect::Store(_, base, by) => {
                let base = match base {
                    Base::Rsp => self.state.rsp?,
                    Base::Rbp => self.state.rbp?,
                };
                let at = base.wrapping_add_signed(by.into());
                let (low, high) = self.written.unwrap_or((at, at));
                self.written = Some((low.min(at), high.max(at)));
            }
            Effect::Pop(register) => self.popped = register,
            _ => {}
        }
        self.state.apply(effect)
    }

    /// Returns the state at a return; `None` if that is used as a jump, to an address that was written.
    fn finish(&self) -> Option<&State> {
        let (top, _) = self.state.top()?;
        let is_written = self.written.is_some_and(|(low, high)| (low..=high).contains(&top));
        (!is_written).then_some(&self.state)
    }
}

/// `syscall`, which may end the thread, or go on elsewhere.
const SYSCALL: [u8; 2] = [0x0F, 0x05];

/// Returns the register that `code` jumps to, if it is such a jump.
fn jump_register(code: &[u8]) -> Option<Gpr> {
    match *code {
        [0xFF, operand @ 0xE0..=0xE7, ..] => Some(Gpr::from_number(operand & 7)),
        [0x41, 0xFF, operand @ 0xE0..=0xE7, ..] => Some(Gpr::from_number(operand & 7 | 8)),
        _ => None,
    }
}

/// Maximum distance in bytes from a function's start to an interrupted jump.
const MOST_BEFORE: u32 = 16 << 10;

/// Returns true if a part of the frame was released right before the interrupted instruction: since then nothing
/// was called or pushed. The instructions are those from the function's start on.
fn was_released_before(place: Place<'_, '_>) -> bool {
    let Place { region, table, rva, .. } = place;
    let start = table.function(rva).map(|function| function.start);
    let Some(start) = start.filter(|start| rva.wrapping_sub(*start) < MOST_BEFORE) else {
        return false;
    };
    let mut code = region.bytes_from(start).unwrap_or_default();
    let (mut at, mut released) = (start, false);
    while at < rva {
        let Some(Instruction { len, effect }) = decode(code) else { return false };
        released = match effect {
            Effect::Pop(Some(register)) => released || NONVOLATILE.contains(register),
            Effect::AddRsp(by) => by > 0,
            Effect::Leave | Effect::Lea(Gpr::Rsp, ..) => true,
            Effect::Push(_) | Effect::Pop(None) => false,
            Effect::Branch(_) => released,
            effect => released && goes_on(effect),
        };
        at = at.wrapping_add(len.into());
        code = code.get(usize::from(len)..).unwrap_or_default();
    }
    at == rva && released
}

/// Returns true if a call in code that can be read returns to `address` (VA).
pub(super) fn is_return_address<M: Memory + ?Sized>(
    place: Place<'_, '_>,
    address: u64,
    memory: &M,
) -> bool {
    let Some((region, rva)) = place.map.find(address.wrapping_sub(1)) else {
        return follows_call(address, memory) == Some(true);
    };
    let before = rva.checked_sub(6).and_then(|start| region.bytes_from(start));
    match before.and_then(<[u8]>::first_chunk) {
        Some(before) => ends_in_call(*before),
        None => follows_call(address, memory) == Some(true),
    }
}
