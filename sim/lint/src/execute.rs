//! The effect of an instruction on the followed state.

use crate::state::{Bound, State, Table};
use crate::value::Value;
use clr_walker::registers::{Convention, Gpr};
use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions,
    Mnemonic, OpAccess, OpKind, Register,
};

/// The next instruction, after one was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The one after it.
    Follows,
    /// The one after it, when the callee returns.
    AfterCall {
        /// The callee (VA), if the instruction names it.
        target: Option<u64>,
    },
    /// The one at this address (VA).
    Jump(u64),
    /// Both the one at this address (VA) and the one after it.
    Either(u64),
    /// A return.
    Return,
    /// A jump to an address that is not followed.
    JumpAway,
    /// None: an interrupt or an exception that does not come back, or no instruction.
    End,
}

/// Executes instructions on states.
pub(crate) struct Executor {
    convention: Convention,
    factory: InstructionInfoFactory,
}

impl Executor {
    pub(crate) fn new(convention: Convention) -> Self {
        Self { convention, factory: InstructionInfoFactory::new() }
    }

    /// Executes `instruction`; `following` are the bytes of code after it.
    pub(crate) fn execute(
        &mut self,
        state: &mut State,
        instruction: &Instruction,
        following: &[u8],
    ) -> Next {
        match instruction.flow_control() {
            FlowControl::Next => {
                self.execute_plain(state, instruction);
                Next::Follows
            }
            FlowControl::UnconditionalBranch => Next::Jump(instruction.near_branch_target()),
            FlowControl::ConditionalBranch => branch(state, instruction),
            FlowControl::IndirectBranch => {
                if instruction.op0_kind() == OpKind::Memory {
                    state.table = table(state, instruction);
                }
                Next::JumpAway
            }
            FlowControl::Return => Next::Return,
            FlowControl::Call | FlowControl::IndirectCall => {
                self.call(state, instruction, following)
            }
            FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int => {
                // int 0x29 is Windows' fast fail; others are system calls.
                if instruction.immediate8() == 0x29 {
                    return Next::End;
                }
                state.set(Gpr::Rax, Value::Other);
                Next::Follows
            }
            _ => Next::End,
        }
    }

    fn call(&self, state: &mut State, instruction: &Instruction, following: &[u8]) -> Next {
        if matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter) {
            for register in [Gpr::Rax, Gpr::Rcx, Gpr::R11] {
                state.set(register, Value::Other);
            }
            return Next::Follows;
        }
        let is_direct = instruction.op0_kind() == OpKind::NearBranch64;
        let target = is_direct.then(|| instruction.near_branch_target());
        if target == Some(instruction.next_ip()) {
            // Code that asks where it is pops its own address.
            push(state, Value::Other);
            return Next::Follows;
        }
        let size = state.get(Gpr::Rax);
        state.after_call(self.convention);
        // ___chkstk_ms and MSVC's __chkstk preserve rax, the number of bytes to allocate.
        let after = following.get(..16).unwrap_or(following);
        let allocates =
            after.windows(3).any(|bytes| matches!(bytes, [0x48, 0x29, 0xC4] | [0x48, 0x2B, 0xE0]));
        if allocates && matches!(size, Value::Number(_)) {
            state.set(Gpr::Rax, size);
        }
        Next::AfterCall { target }
    }

    fn execute_plain(&mut self, state: &mut State, instruction: &Instruction) {
        if instruction.op1_kind() == OpKind::Memory
            && let Some(table) = table(state, instruction)
        {
            state.table = Some(table);
        }
        let bound = state.bound;
        self.execute_by_kind(state, instruction);
        if let Some(register) = bound.and_then(|bound| moved(instruction, bound.register)) {
            state.bound = bound.map(|bound| Bound { register, ..bound });
        }
    }

    fn execute_by_kind(&mut self, state: &mut State, instruction: &Instruction) {
        let done = match instruction.mnemonic() {
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
        };
        if !done {
            self.execute_other(state, instruction);
        }
    }

    /// Forgets the values of all registers and memory that an instruction writes.
    fn execute_other(&mut self, state: &mut State, instruction: &Instruction) {
        let info = self.factory.info_options(instruction, InstructionInfoOptions::NONE);
        let reads = |access| {
            matches!(
                access,
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        let writes = |access| {
            matches!(
                access,
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
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
                let address =
                    sum(state, used.base(), used.index(), used.scale(), used.displacement());
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
            let conditional =
                matches!(used.access(), OpAccess::CondWrite | OpAccess::ReadCondWrite);
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

/// Returns the integer register that `register` is, or is a part of.
fn gpr(register: Register) -> Option<Gpr> {
    register.is_gpr().then(|| Gpr::from_number(register.full_register().number() as u8))
}

/// Returns the number of the xmm, ymm or zmm register, if it is one of the first sixteen.
fn vector(register: Register) -> Option<usize> {
    (register.is_vector_register() && register.number() < 16).then(|| register.number())
}

/// Returns base + index × scale + displacement.
fn sum(state: &State, base: Register, index: Register, scale: u32, displacement: u64) -> Value {
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
fn address(state: &State, instruction: &Instruction) -> Value {
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
fn operand(state: &State, instruction: &Instruction, at: u32) -> Value {
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
/// array, and beyond its end on a path that is not possible.
fn store(state: &mut State, instruction: &Instruction, address: Value, size: usize, value: Value) {
    if instruction.memory_base() == Register::RSP || !state.holds_callers(address, size) {
        state.store(address, size, value);
    } else {
        state.blur(address, size);
    }
}

/// Writes a result of 64 or 32 bits, or a part of a register, to operand 0.
fn write(state: &mut State, instruction: &Instruction, value: Value) {
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

fn push(state: &mut State, value: Value) {
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

/// True for an operation whose second operand leaves the first one as it is.
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

/// Returns the register that the instruction moves `register` to, whole or extended from 32 bits.
fn moved(instruction: &Instruction, register: Gpr) -> Option<Gpr> {
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
fn table(state: &State, instruction: &Instruction) -> Option<Table> {
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
fn branch(state: &mut State, instruction: &Instruction) -> Next {
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
