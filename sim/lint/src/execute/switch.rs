//! Branches that are decided or bound a register, and the tables of jumps that such a register reads.

use super::Next;
use super::operand::gpr;
use crate::state::{State, Table};
use crate::value::Value;
use clr_unwind::Gpr;
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};

/// Returns the register that the instruction moves `register` to, whole or extended from 32 bits.
pub(super) fn moved(instruction: &Instruction, register: Gpr) -> Option<Gpr> {
    let operand = |at| match instruction.op_kind(at) {
        OpKind::Register => gpr(instruction.op_register(at)),
        _ => None,
    };
    match instruction.mnemonic() {
        Mnemonic::Cdqe => Some(register).filter(|it| *it == Gpr::Rax),
        Mnemonic::Mov | Mnemonic::Movsxd if operand(1) == Some(register) => operand(0),
        _ => None,
    }
}

/// Returns the table of jump targets that the memory operand reads by an index.
pub(super) fn table(state: &State, instruction: &Instruction) -> Option<Table> {
    let index = instruction.memory_index();
    let bound = state.bound.filter(|bound| gpr(index) == Some(bound.register))?;
    let start = match (instruction.memory_base(), gpr(instruction.memory_base())) {
        (Register::None, _) => 0,
        (_, Some(base)) => match state.get(base) {
            Value::Number(start) => start,
            _ => return None,
        },
        _ => return None,
    };
    let at = start.wrapping_add(instruction.memory_displacement64());
    let count = bound.count?;
    match (instruction.memory_index_scale(), instruction.memory_size().size()) {
        (4, 4) => Some(Table { at, base: Some(start), count }),
        (8, 8) => Some(Table { at, base: None, count }),
        _ => None,
    }
}

/// Decides a branch on a comparison of two addresses on the stack: the end of a loop that touches the
/// pages of a large frame. Any other branch may bound a register on the path that follows it.
pub(super) fn branch(state: &mut State, instruction: &Instruction) -> Next {
    let target = instruction.near_branch_target();
    let Some((a, b)) = state.compared else {
        if let Some(bound) = &mut state.bound {
            match instruction.condition_code() {
                ConditionCode::a => bound.count = bound.number.checked_add(1),
                ConditionCode::ae => bound.count = Some(bound.number),
                _ => {}
            }
        }
        return Next::Either(target);
    };
    let taken = match instruction.condition_code() {
        ConditionCode::e => a == b,
        ConditionCode::ne => a != b,
        ConditionCode::b | ConditionCode::l => a < b,
        ConditionCode::be | ConditionCode::le => a <= b,
        ConditionCode::a | ConditionCode::g => a > b,
        ConditionCode::ae | ConditionCode::ge => a >= b,
        _ => return Next::Either(target),
    };
    if taken { Next::Jump(target) } else { Next::Follows }
}
