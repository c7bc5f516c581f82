//! Reading and writing the operands of instructions.

use crate::state::State;
use crate::value::Value;
use clr_unwind::Gpr;
use iced_x86::{Instruction, OpKind, Register};

/// Returns the integer register that `register` is, or is a part of.
pub(super) fn gpr(register: Register) -> Option<Gpr> {
    register.is_gpr().then(|| Gpr::from_number(register.full_register().number() as u8))
}

/// Returns the number of the xmm, ymm or zmm register, if it is one of the first sixteen.
pub(super) fn vector(register: Register) -> Option<usize> {
    (register.is_vector_register() && register.number() < 16).then(|| register.number())
}

/// Returns base + index × scale + displacement.
pub(super) fn sum(
    state: &State,
    base: Register,
    index: Register,
    scale: u32,
    displacement: u64,
) -> Value {
    if !(base == Register::None || base.is_gpr64())
        || !(index == Register::None || index.is_gpr64())
    {
        return Value::Other;
    }
    let mut sum = gpr(base).map_or(Value::Number(0), |base| state.get(base));
    if let Some(index) = gpr(index) {
        let index = match state.get(index) {
            Value::Number(n) => Value::Number(n.wrapping_mul(u64::from(scale))),
            value if scale == 1 => value,
            value => value.mixed(Value::Other),
        };
        sum = sum.plus(index);
    }
    sum.plus(Value::Number(displacement))
}

/// Returns the address of the memory operand.
pub(super) fn address(state: &State, instruction: &Instruction) -> Value {
    let segment = instruction.segment_prefix();
    if matches!(segment, Register::FS | Register::GS) || instruction.is_ip_rel_memory_operand() {
        return Value::Other;
    }
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    let scale = instruction.memory_index_scale();
    let address = sum(state, base, index, scale, instruction.memory_displacement64());
    // An index counts through an array, in a loop whose end is not followed.
    if index != Register::None && address.may_be_stack() { Value::Unknown } else { address }
}

/// Returns the 64 bits of an operand.
pub(super) fn operand(state: &State, instruction: &Instruction, at: u32) -> Value {
    match instruction.op_kind(at) {
        OpKind::Register => {
            let register = instruction.op_register(at);
            if register.is_gpr64() {
                gpr(register).map_or(Value::Other, |register| state.get(register))
            } else if register.is_gpr32() {
                // Only constants are followed in 32 bits.
                match gpr(register).map(|register| state.get(register)) {
                    Some(Value::Number(n)) => Value::Number(u64::from(n as u32)),
                    _ => Value::Other,
                }
            } else {
                Value::Other
            }
        }
        OpKind::Memory if instruction.memory_size().size() == 8 => {
            state.load(address(state, instruction))
        }
        OpKind::Memory => Value::Other,
        _ => instruction.try_immediate(at).map_or(Value::Other, Value::Number),
    }
}

/// Stores a value at the address of the memory operand. Any other base than rsp may count through an
/// array, and beyond its end on a path that is not possible; or it is an address elsewhere, and one on the
/// stack only on paths that do not come here. rbp is the base of a frame's own slots, too.
pub(super) fn store(
    state: &mut State,
    instruction: &Instruction,
    address: Value,
    size: usize,
    value: Value,
) {
    let base = instruction.memory_base();
    let hits = |state: &State| state.holds_frame(address, size, base != Register::RBP);
    if base == Register::RSP || !hits(state) {
        state.store(address, size, value);
    } else {
        state.blur(address, size);
    }
}

/// Writes a result of 64 or 32 bits, or a part of a register, to operand 0.
pub(super) fn write(state: &mut State, instruction: &Instruction, value: Value) {
    let register = instruction.op0_register();
    if instruction.op0_kind() == OpKind::Memory {
        let address = address(state, instruction);
        let size = instruction.memory_size().size();
        store(state, instruction, address, size, if size == 8 { value } else { Value::Other });
    } else if let Some(to) = gpr(register) {
        let value = if register.is_gpr64() {
            value
        } else {
            match value {
                Value::Number(n) if register.is_gpr32() => Value::Number(u64::from(n as u32)),
                _ => Value::Other,
            }
        };
        state.set(to, value);
    }
}
