//! The instructions whose results are not followed.

use super::operand::{gpr, store, sum, vector};
use crate::state::State;
use crate::value::Value;
use clr_unwind::Gpr;
use iced_x86::{
    ConditionCode, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess,
    OpKind, Register,
};

/// Forgets the values of all registers and memory that an instruction writes.
pub(super) fn execute(
    factory: &mut InstructionInfoFactory,
    state: &mut State,
    instruction: &Instruction,
) {
    let info = factory.info_options(instruction, InstructionInfoOptions::NONE);
    let reads = |access| {
        matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let writes = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let is_stack = instruction.is_stack_instruction();
    let carries = carries(instruction);
    let is_source = |value: Value| value.may_be_stack() || carries && value.is_followed();
    let from_registers = info.used_registers().iter().any(|used| {
        reads(used.access())
            && is_operand(instruction, used.register())
            && gpr(used.register()).is_some_and(|register| is_source(state.get(register)))
    });
    let from_memory = info.used_memory().iter().any(|used| {
        let address = sum(state, used.base(), used.index(), used.scale(), used.displacement());
        reads(used.access()) && is_source(state.load(address))
    });
    let result = if from_registers || from_memory { Value::Unknown } else { Value::Other };
    for used in info.used_memory() {
        if writes(used.access()) {
            let address = sum(state, used.base(), used.index(), used.scale(), used.displacement());
            let size = used.memory_size().size();
            if reads(used.access()) || result == Value::Unknown {
                state.blur(address, size);
            } else {
                store(state, instruction, address, size, Value::Other);
            }
        }
    }
    let rsp = state.get(Gpr::Rsp);
    for used in info.used_registers() {
        if !writes(used.access()) {
            continue;
        }
        let conditional = matches!(used.access(), OpAccess::CondWrite | OpAccess::ReadCondWrite);
        if let Some(register) = gpr(used.register()) {
            let old = state.get(register);
            let joined = if conditional && old.is_followed() { Value::Unknown } else { result };
            let is_narrow = !used.register().is_gpr64() && !conditional;
            let joined = if is_narrow && !is_stack { Value::Other } else { joined };
            state.set(register, joined);
        } else if let Some(register) = vector(used.register()) {
            state.xmm[register] = result;
        }
    }
    if is_stack {
        let moved = i64::from(instruction.stack_pointer_increment());
        state.set(Gpr::Rsp, rsp.plus(Value::Number(moved.cast_unsigned())));
    } else if state.get(Gpr::Rsp) != rsp {
        state.set(Gpr::Rsp, Value::Unknown);
    }
    if instruction.rflags_modified() != 0 {
        state.compared = None;
    }
}

/// Returns true if the instruction may move a whole value.
fn carries(instruction: &Instruction) -> bool {
    use Mnemonic::{Cmpxchg, Movnti, Movq, Pinsrq, Pop, Push, Vmovq, Vpinsrq, Xadd, Xchg};
    let moves = [Movq, Vmovq, Pinsrq, Vpinsrq, Xchg, Xadd, Movnti, Cmpxchg, Push, Pop];
    moves.contains(&instruction.mnemonic()) || instruction.condition_code() != ConditionCode::None
}

/// Returns true if `register` is an operand, or an implicit one, and not only part of an address.
fn is_operand(instruction: &Instruction, register: Register) -> bool {
    let full = register.full_register();
    let is_explicit = (0..instruction.op_count()).any(|at| {
        instruction.op_kind(at) == OpKind::Register
            && instruction.op_register(at).full_register() == full
    });
    let of_address = [instruction.memory_base(), instruction.memory_index()];
    is_explicit || full != Register::RSP && !of_address.map(Register::full_register).contains(&full)
}
