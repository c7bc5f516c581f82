//! Effects of instructions on their frames, in words.

use super::row::State;
use crate::input::program::{Names, OUTSIDE};
use clr_codegen::Role;
use clr_codegen::execution::{Execution, ExecutionEnd};
use clr_unwind::{Gpr, Position};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Distance of rsp that means another stack: no frame moves rsp as far.
const ANOTHER_STACK: u64 = 1 << 30;

/// Returns true if an interrupt came before the instruction that was about to be executed.
pub(super) fn is_interrupt(before: &State, after: &State) -> bool {
    let entered = after.frames.len().saturating_sub(before.frames.len());
    // Of two frames, the second is that of a signal's trampoline.
    let interrupted = entered.checked_sub(1).and_then(|last| after.frames.get(last));
    after.executed == before.executed
        && interrupted.is_some_and(|frame| frame.caller.from.is_none())
}

/// Returns the change between two states, in words.
pub(super) fn words(
    before: &State,
    after: &State,
    outcome: Result<(), ExecutionEnd>,
    names: Names<'_>,
    run: &Execution<'_>,
) -> String {
    let instruction = &before.instruction;
    match outcome {
        Ok(()) => {}
        Err(ExecutionEnd::Returned) => return format!("returns to {OUTSIDE}"),
        Err(ExecutionEnd::Stopped) => return "stops the program".to_owned(),
        Err(ExecutionEnd::Uncaught) => return "throws: caught nowhere".to_owned(),
        Err(outcome) => return outcome.to_string(),
    }
    let here = || names.location(after.registers.rip, Position::Interrupted);
    let calls = instruction.mnemonic() == Mnemonic::Call;
    match after.frames.len().cmp(&before.frames.len()) {
        std::cmp::Ordering::Greater => entered(before, after, names),
        std::cmp::Ordering::Less | std::cmp::Ordering::Equal if calls => {
            format!("throws: cut to {}", here())
        }
        std::cmp::Ordering::Less if instruction.mnemonic() == Mnemonic::Iretq => {
            format!("interrupt returns to {}", here())
        }
        std::cmp::Ordering::Less if instruction.mnemonic() == Mnemonic::Syscall => {
            format!("signal returns to {}", here())
        }
        std::cmp::Ordering::Less => {
            let to = names.location(after.registers.rip, Position::ReturnAddress);
            format!("returns to {to}")
        }
        std::cmp::Ordering::Equal => inside(before, after, names, run),
    }
}

/// Returns the words for a call or an interrupt.
fn entered(before: &State, after: &State, names: Names<'_>) -> String {
    let Some(frame) = after.frames.first() else { return String::new() };
    let name = names.location(after.registers.rip, Position::Interrupted);
    if after.frames.len() > before.frames.len() + 1 {
        return format!("signal → {name}");
    }
    if frame.caller.position == Position::Interrupted {
        return format!("interrupt → {name}");
    }
    if frame.is_funclet {
        return match frame.function {
            Some(id) => format!("calls a funclet of {}", names.function(id)),
            None => String::new(),
        };
    }
    let switches = before.registers.rsp().abs_diff(before.cfa()) > ANOTHER_STACK;
    format!("calls {name}{}", if switches { " on another stack" } else { "" })
}

/// Returns the words for an instruction that stays in the frame.
fn inside(before: &State, after: &State, names: Names<'_>, run: &Execution<'_>) -> String {
    let instruction = &before.instruction;
    let (from, to) = (before.registers.rsp(), after.registers.rsp());
    let at = |address: u64| in_frame(address, before.cfa());
    match instruction.mnemonic() {
        Mnemonic::Push => {
            let what = match instruction.op0_kind() {
                OpKind::Register => name(instruction.op0_register()),
                OpKind::Memory => "a word".to_owned(),
                _ => "a number".to_owned(),
            };
            return format!("pushes {what} → {}", at(to));
        }
        Mnemonic::Pop => {
            return format!("pops {} ← {}", name(instruction.op0_register()), at(from));
        }
        Mnemonic::Leave => return format!("rsp = rbp, pops rbp ← {}", at(to.wrapping_sub(8))),
        _ => {}
    }
    if before.function != after.function {
        let name = names.location(after.registers.rip, Position::Interrupted);
        return format!("tail-calls {name}");
    }
    let part = |rip| run.linked().part(rip).map(|part| part.begin);
    if instruction.is_jmp_short_or_near() || instruction.is_jcc_short_or_near() {
        let (old, new) = (part(before.registers.rip), part(after.registers.rip));
        return if old == new { String::new() } else { "into another part".to_owned() };
    }
    if from != to {
        let change = to.wrapping_sub(from).cast_signed();
        return if change.unsigned_abs() > ANOTHER_STACK {
            format!("rsp to {to:#x}, another stack")
        } else {
            format!("rsp {}{:#x}", if change < 0 { '-' } else { '+' }, change.unsigned_abs())
        };
    }
    moved(before, after, run)
}

/// Returns the words for a save, a restore or a frame register.
fn moved(before: &State, after: &State, run: &Execution<'_>) -> String {
    let instruction = &before.instruction;
    let cfa = before.cfa();
    let role = run.linked().instruction(before.registers.rip).map(|placed| placed.role);
    let address = memory(instruction, before);
    let kinds = (instruction.op0_kind(), instruction.op1_kind());
    let is_move = matches!(
        instruction.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movaps | Mnemonic::Movups | Mnemonic::Movdqa | Mnemonic::Movdqu
    );
    match (kinds, address) {
        ((OpKind::Memory, OpKind::Register), Some(address)) if is_move => {
            let verb = if role == Some(Role::Prologue) { "saves" } else { "stores" };
            let register = name(instruction.op1_register());
            format!("{verb} {register} → {}", in_frame(address, cfa))
        }
        ((OpKind::Memory, _), Some(address)) if is_move => {
            format!("writes {}", in_frame(address, cfa))
        }
        ((OpKind::Register, OpKind::Memory), Some(address)) if is_move => {
            let register = name(instruction.op0_register());
            format!("loads {register} ← {}", in_frame(address, cfa))
        }
        // A register that points into the frame may be its frame register.
        ((OpKind::Register, _), _) => {
            let stack = [instruction.op1_register(), instruction.memory_base()];
            let register =
                Gpr::ALL.into_iter().find(|own| name(instruction.op0_register()) == own.name());
            match register {
                Some(register) if is_address(instruction) && stack.contains(&Register::RSP) => {
                    let value = after.registers.get(register);
                    format!("{} = {}", register.name(), distance(value, cfa))
                }
                _ => String::new(),
            }
        }
        _ => String::new(),
    }
}

fn is_address(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Lea)
}

/// Returns the address (VA) that an instruction accesses, if it lies on the stack.
fn memory(instruction: &Instruction, before: &State) -> Option<u64> {
    let operand = (0..instruction.op_count())
        .find(|operand| instruction.op_kind(*operand) == OpKind::Memory)?;
    let value = |register: Register, _: usize, _: usize| {
        let full = register.full_register();
        let own = Gpr::ALL.into_iter().find(|own| name(full) == own.name());
        Some(own.map_or(0, |own| before.registers.get(own)))
    };
    let address = instruction.virtual_address(operand, 0, value)?;
    (address.abs_diff(before.cfa()) <= ANOTHER_STACK).then_some(address)
}

fn name(register: Register) -> String {
    format!("{register:?}").to_lowercase()
}

/// Returns a place on the stack relative to the CFA.
fn in_frame(address: u64, cfa: u64) -> String {
    format!("[{}]", distance(address, cfa))
}

fn distance(address: u64, cfa: u64) -> String {
    match address.wrapping_sub(cfa).cast_signed() {
        0 => "cfa".to_owned(),
        offset if offset.unsigned_abs() > ANOTHER_STACK => format!("{address:#x}"),
        offset if offset < 0 => format!("cfa-{:#x}", offset.unsigned_abs()),
        offset => format!("cfa+{offset:#x}"),
    }
}
