//! The instructions whose results are followed: moves, arithmetic on addresses, the stack's own.

use super::operand::{address, gpr, operand, store, sum, vector, write};
use crate::state::{Bound, State};
use crate::value::Value;
use clr_unwind::Gpr;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Executes an instruction; returns false if its result is not followed.
pub(super) fn execute(state: &mut State, instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Mov => move_integer(state, instruction),
        Mnemonic::Lea => load_address(state, instruction),
        Mnemonic::Push => push_operand(state, instruction),
        Mnemonic::Pop => pop_operand(state, instruction),
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Xor | Mnemonic::Or => {
            arithmetic(state, instruction)
        }
        Mnemonic::Inc | Mnemonic::Dec => count(state, instruction),
        Mnemonic::Cmp => compare(state, instruction),
        Mnemonic::Xchg => exchange(state, instruction),
        Mnemonic::Leave => {
            state.set(Gpr::Rsp, state.get(Gpr::Rbp));
            let value = pop(state);
            state.set(Gpr::Rbp, value);
            true
        }
        // The lower halves of vector registers stay as they are.
        Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Vzeroupper => true,
        Mnemonic::Movaps
        | Mnemonic::Movups
        | Mnemonic::Movapd
        | Mnemonic::Movupd
        | Mnemonic::Movdqa
        | Mnemonic::Movdqu
        | Mnemonic::Vmovaps
        | Mnemonic::Vmovups
        | Mnemonic::Vmovapd
        | Mnemonic::Vmovupd
        | Mnemonic::Vmovdqa
        | Mnemonic::Vmovdqu => move_vector(state, instruction),
        _ => false,
    }
}

fn move_integer(state: &mut State, instruction: &Instruction) -> bool {
    let value = operand(state, instruction, 1);
    if instruction.op0_kind() == OpKind::Register && gpr(instruction.op0_register()).is_none() {
        return false;
    }
    write(state, instruction, value);
    true
}

fn load_address(state: &mut State, instruction: &Instruction) -> bool {
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    let value = if instruction.is_ip_rel_memory_operand() {
        Value::Number(instruction.ip_rel_memory_address())
    } else {
        let scale = instruction.memory_index_scale();
        let sum = sum(state, base, index, scale, instruction.memory_displacement64());
        if index != Register::None && sum.may_be_stack() { Value::Unknown } else { sum }
    };
    write(state, instruction, value);
    true
}

pub(super) fn push(state: &mut State, value: Value) {
    let top = state.get(Gpr::Rsp).minus(Value::Number(8));
    state.set(Gpr::Rsp, top);
    state.store(top, 8, value);
}

fn pop(state: &mut State) -> Value {
    let top = state.get(Gpr::Rsp);
    state.set(Gpr::Rsp, top.plus(Value::Number(8)));
    state.load(top)
}

fn push_operand(state: &mut State, instruction: &Instruction) -> bool {
    if instruction.stack_pointer_increment() != -8 {
        return false;
    }
    let value = operand(state, instruction, 0);
    push(state, value);
    true
}

fn pop_operand(state: &mut State, instruction: &Instruction) -> bool {
    if instruction.stack_pointer_increment() != 8 {
        return false;
    }
    let value = pop(state);
    write(state, instruction, value);
    true
}

/// Returns true for an operation whose second operand leaves the first one as it is.
fn changes_nothing(mnemonic: Mnemonic, by: Value) -> bool {
    match mnemonic {
        Mnemonic::And => by == Value::Number(u64::MAX),
        _ => by == Value::Number(0),
    }
}

fn arithmetic(state: &mut State, instruction: &Instruction) -> bool {
    let mnemonic = instruction.mnemonic();
    let (to, by) = (operand(state, instruction, 0), operand(state, instruction, 1));
    state.compared = None;
    let memory = instruction.op0_kind() == OpKind::Memory;
    if memory {
        // Code locks a word of the stack in place of a fence, with any operand.
        if !changes_nothing(mnemonic, by) {
            let (address, size) = (address(state, instruction), instruction.memory_size().size());
            state.blur(address, size);
        }
        return true;
    }
    let same = instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register();
    let value = match mnemonic {
        // A number in a register counts through an array, but for the size of a frame.
        Mnemonic::Add | Mnemonic::Sub
            if instruction.op1_kind() == OpKind::Register
                && instruction.op0_register() != Register::RSP
                && (to.may_be_stack() != by.may_be_stack()) =>
        {
            Value::Unknown
        }
        Mnemonic::Add => to.plus(by),
        Mnemonic::Sub | Mnemonic::Xor if same => Value::Number(0),
        Mnemonic::Sub => {
            if let (Value::Stack(a), Value::Stack(b)) = (to, by) {
                state.compared = Some((a, b));
            }
            to.minus(by)
        }
        Mnemonic::And => to.and(by),
        _ if changes_nothing(mnemonic, by) || same => to,
        _ => to.mixed(by),
    };
    write(state, instruction, value);
    true
}

fn count(state: &mut State, instruction: &Instruction) -> bool {
    if instruction.op0_kind() != OpKind::Register {
        return false;
    }
    let one = Value::Number(1);
    let old = operand(state, instruction, 0);
    let is_up = instruction.mnemonic() == Mnemonic::Inc;
    write(state, instruction, if is_up { old.plus(one) } else { old.minus(one) });
    state.compared = None;
    true
}

fn compare(state: &mut State, instruction: &Instruction) -> bool {
    let operands = (operand(state, instruction, 0), operand(state, instruction, 1));
    state.compared = match operands {
        (Value::Stack(a), Value::Stack(b)) => Some((a, b)),
        _ => None,
    };
    if let (OpKind::Register, Value::Number(number)) = (instruction.op0_kind(), operands.1)
        && let Some(register) = gpr(instruction.op0_register())
        && instruction.op1_kind() != OpKind::Register
    {
        state.bound = Some(Bound { register, number, count: None });
    }
    true
}

fn exchange(state: &mut State, instruction: &Instruction) -> bool {
    let (a, b) = (instruction.op0_register(), instruction.op1_register());
    let both = instruction.op0_kind() == OpKind::Register && a.is_gpr64() && b.is_gpr64();
    if let (true, Some(a), Some(b)) = (both, gpr(a), gpr(b)) {
        let (x, y) = (state.get(a), state.get(b));
        state.set(a, y);
        state.set(b, x);
    }
    both
}

fn move_vector(state: &mut State, instruction: &Instruction) -> bool {
    let (to, from) = (instruction.op0_register(), instruction.op1_register());
    match (instruction.op0_kind(), instruction.op1_kind()) {
        (OpKind::Memory, OpKind::Register) if instruction.op_mask() == Register::None => {
            let Some(from) = vector(from) else { return false };
            let (address, size) = (address(state, instruction), instruction.memory_size().size());
            // The lower half of a ymm register may be a caller's xmm register.
            let value = if size == 16 { state.xmm[from] } else { Value::Other };
            store(state, instruction, address, size, value);
            true
        }
        (OpKind::Register, OpKind::Memory) if to.is_xmm() => {
            let Some(to) = vector(to) else { return false };
            state.xmm[to] = state.load_xmm(address(state, instruction));
            true
        }
        (OpKind::Register, OpKind::Register) if to.is_xmm() && from.is_xmm() => {
            let (Some(to), Some(from)) = (vector(to), vector(from)) else { return false };
            state.xmm[to] = state.xmm[from];
            true
        }
        _ => false,
    }
}
