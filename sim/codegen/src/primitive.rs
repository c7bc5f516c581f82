//! What the runtime's own code is made of: moves between registers, stack, memory and the thread, and
//! calls of what lies outside the program.
//!
//! Each primitive is an instruction or a few, so that a thread can be stopped between any two.

use super::program::{FunctionId, Statement};
use clr_walker::registers::Gpr;

/// A statement of runtime code. Values pass through rax, the thread's address through r11.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// Writes 8 bytes.
    Set(Word, Value),
    /// Writes 4 bytes of the Thread object, at this offset.
    SetThreadFlag(u32, u32),
    /// Calls a service of the world outside the program, by its number.
    Service(u8),
    /// Calls the function whose address is in rax.
    CallComputed,
    /// Executes the body if rax is not 0.
    When(Vec<Statement>),
    /// Executes the body if rax is 0.
    Unless(Vec<Statement>),
    /// Pushes 8 bytes of the Thread object, at this offset: a return address, before a jump.
    PushThread(u32),
    /// Executes the body, and again as long as rax is not 0 at its end.
    Repeat(Vec<Statement>),
}

/// Where 8 bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The locals, at this offset: a multiple of 8.
    Local(u32),
    /// The Thread object, at this offset.
    Thread(u32),
    /// So far from a register.
    At(Gpr, i32),
    /// A register.
    Register(Gpr),
}

/// Where 8 bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// The locals, at this offset.
    Local(u32),
    /// The address of the locals at this offset.
    LocalAddress(u32),
    /// The Thread object, at this offset.
    Thread(u32),
    /// So far from a register.
    At(Gpr, i32),
    /// A register.
    Register(Gpr),
    /// rsp as it is in the body, and so many bytes more.
    StackPointer(i32),
    /// The function's return address.
    ReturnAddress,
    /// rsp as the caller has it when the function has returned: its CFA.
    CallerSp,
    /// Where the pushed registers lie: the last one that was pushed.
    Pushed,
    /// So many bytes below it.
    BelowPushed(u32),
    /// The address of the Thread object; 0 on a thread that the runtime does not know.
    ThreadObject,
    /// The address behind the next call of the body.
    NextReturn,
    /// The address of the instruction itself.
    Here,
    /// The first instruction of a function.
    Function(FunctionId),
}

impl Primitive {
    /// The statements inside it.
    #[must_use]
    pub fn body(&self) -> Option<&[Statement]> {
        match self {
            Self::When(body) | Self::Unless(body) | Self::Repeat(body) => Some(body),
            Self::Set(..)
            | Self::SetThreadFlag(..)
            | Self::PushThread(_)
            | Self::Service(_)
            | Self::CallComputed => None,
        }
    }

    /// Whether it calls anything.
    #[must_use]
    pub const fn calls(&self) -> bool {
        matches!(self, Self::Service(_) | Self::CallComputed)
    }
}
