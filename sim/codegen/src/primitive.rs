//! Building blocks of the runtime's own code: moves between registers, stack, memory and the
//! thread, and calls of code outside the program.
//!
//! Each primitive is one or a few instructions, so that a thread can be stopped between any two.

use super::program::{FunctionIndex, Statement};
use clr_unwind::Gpr;

/// A statement of runtime code. Values pass through rax, the address of the Thread object through
/// r11.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// Writes 8 bytes.
    Set(Word, Value),
    /// Writes 4 bytes: the offset in the Thread object, and the value.
    SetThreadFlag(u32, u32),
    /// Calls the service of the world with this number.
    Service(u8),
    /// Calls the function whose address is in rax.
    CallComputed,
    /// Executes the body if rax is not 0.
    When(Vec<Statement>),
    /// Executes the body if rax is 0.
    Unless(Vec<Statement>),
    /// Pushes a register where the return address is missing, before a jump to code that writes the
    /// address there.
    PushReturnSlot(Gpr),
    /// Executes the body, and repeats it as long as rax is not 0 at its end.
    Repeat(Vec<Statement>),
    /// Executes the instructions of a stub that come before its jump.
    Stub(StubCode),
}

/// Instructions of the stubs that a runtime assembles for one target each, on both systems. The object
/// of the call is in the first argument's register, and its first word names its type.
///
/// Sources: `DispatchStub` and `ResolveStub` in `src/vm/amd64/virtualcallstubcpu.hpp`,
/// `EmitUnboxMethodStub` and `EmitShuffleThunk` in `src/vm/i386/stublinkerx86.cpp` of dotnet/coreclr
/// v3.1.23; `CallCountingStubCode` in `src/coreclr/vm/amd64/thunktemplates.asm` of dotnet/runtime after .NET 6.
/// Assumed: newer runtimes keep the forms of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StubCode {
    /// A dispatch stub compares the type of the object with the one that it was made for.
    Dispatch,
    /// A resolve stub looks the target up by the object's type, and pushes rdx meanwhile: it has no
    /// unwind data, so that a word lies above the return address.
    Resolve,
    /// An unboxing stub steps from the object to its value.
    Unbox,
    /// A call counting stub counts the word at rax down, and leaves for the runtime at 0. Here the
    /// word is only read, and never 0.
    CountCall,
    /// A shuffle thunk keeps rsp and the delegate, and moves each argument down by one.
    Shuffle,
}

/// A destination of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The locals at this offset, a multiple of 8.
    Local(u32),
    /// The Thread object at this offset.
    Thread(u32),
    /// The memory at a register plus an offset.
    At(Gpr, i32),
    /// A register.
    Register(Gpr),
}

/// A source of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// The locals at this offset.
    Local(u32),
    /// The address of the locals at this offset.
    LocalAddress(u32),
    /// The Thread object at this offset.
    Thread(u32),
    /// The memory at a register plus an offset.
    At(Gpr, i32),
    /// A register.
    Register(Gpr),
    /// The value of rsp in the body plus an offset.
    StackPointer(i32),
    /// The function's return address.
    ReturnAddress,
    /// The value of rsp in the caller after the return: the CFA.
    CallerSp,
    /// The address of the last pushed register.
    Pushed,
    /// The address N bytes below the last pushed register.
    BelowPushed(u32),
    /// The address of the Thread object, 0 on a thread that the runtime does not know.
    ThreadObject,
    /// The return address of the next call in the body.
    NextReturn,
    /// The address of the instruction itself.
    Here,
    /// The address of a function's first instruction.
    Function(FunctionIndex),
}

impl Primitive {
    /// Returns a mutable reference to the statements inside the primitive, if it has a body.
    pub const fn body_mut(&mut self) -> Option<&mut Vec<Statement>> {
        let (Self::When(body) | Self::Unless(body) | Self::Repeat(body)) = self else {
            return None;
        };
        Some(body)
    }

    /// Returns the statements inside the primitive, if it has a body.
    pub fn body(&self) -> Option<&[Statement]> {
        let (Self::When(body) | Self::Unless(body) | Self::Repeat(body)) = self else {
            return None;
        };
        Some(body)
    }

    /// Returns true if the primitive is a call.
    pub const fn calls(&self) -> bool {
        matches!(self, Self::Service(_) | Self::CallComputed)
    }
}
