//! The effect of an instruction on the followed state.

mod known;
mod operand;
mod other;
mod switch;

use crate::state::{Bound, State};
use crate::value::Value;
use clr_unwind::{Convention, Gpr};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind};
use known::push;
use switch::{branch, moved, table};

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
        // Code that asks where it is pops its own address. A function that begins right after a call of it,
        // which does not return, begins otherwise.
        let is_push = matches!(following, [0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..]);
        if target == Some(instruction.next_ip()) && !is_push {
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
        if !known::execute(state, instruction) {
            other::execute(&mut self.factory, state, instruction);
        }
        if let Some(register) = bound.and_then(|bound| moved(instruction, bound.register)) {
            state.bound = bound.map(|bound| Bound { register, ..bound });
        }
    }
}
