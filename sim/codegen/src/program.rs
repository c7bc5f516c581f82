//! Programs: functions with shapes and bodies.

use super::estimate;
use super::guarded::Clause;
use super::primitive::Primitive;
use super::runtime_call::RuntimeCall;
use super::shape::{Convention, FunctionShape};
use clr_walker::registers::Gpr;

/// A function by its place in [`Program::functions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(
    /// The index.
    pub u32,
);

impl FunctionId {
    /// The index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A program. Execution begins with a call of its first function.
///
/// Functions call only functions behind them, so every program ends. What else makes a program
/// valid is said by [`ProgramError`](super::ProgramError).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The calling convention of all its functions.
    pub convention: Convention,
    /// The functions; the first one is called from outside.
    pub functions: Vec<Function>,
    /// Interrupts that come from outside, ascending by time.
    pub interrupts: Vec<Interrupt>,
    /// The size of the alternate stack that signals are handled on, in bytes; 0 if they are handled
    /// on the stack that they interrupt.
    pub signal_stack: u32,
}

/// An interrupt that comes while something else is being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// How many instructions have been executed before it.
    pub after: u64,
    /// A function with the entry `Interrupt` or `InterruptWithErrorCode`.
    pub handler: FunctionId,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name: unique in the program, of letters, digits, `_`, `.` and `:`.
    pub name: String,
    /// Where its code lies.
    pub kind: CodeKind,
    /// What it does with the stack.
    pub shape: FunctionShape,
    /// What it does between prologue and epilogue.
    pub body: Vec<Statement>,
    /// The epilogue at its end; `None` if the end is never reached, because the body throws, stops,
    /// leaves before, or calls something that does not return. Nothing stands behind the body then.
    pub end: Option<Exit>,
}

/// Where code lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeKind {
    /// In the heap of the JIT.
    Jit,
    /// In the image of a ready-to-run assembly.
    ReadyToRun,
    /// In the image of an unmanaged library.
    #[default]
    Native,
}

impl CodeKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Jit, Self::ReadyToRun, Self::Native];
}

/// How an epilogue leaves the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// A return; from a function entered by an interrupt always iretq.
    Return(ReturnForm),
    /// A jump to another function.
    TailCall(TailCallForm, FunctionId),
    /// A jump to the address in rax.
    Computed,
}

/// A return instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReturnForm {
    /// `ret`.
    #[default]
    Ret,
    /// `ret 0`: the form with an immediate.
    RetImm,
    /// `rep ret`.
    RepRet,
    /// `bnd ret`.
    BndRet,
    /// `rex.w ret`.
    RexRet,
}

/// A jump that leaves a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TailCallForm {
    /// `jmp rel`, to a function of the same image or heap; else as `Memory`.
    #[default]
    Near,
    /// `rex.w jmp rax`.
    Register,
    /// `rex.w jmp [rax]`.
    RegisterMemory,
    /// `jmp [rip + disp]`.
    Memory,
}

/// How a call instruction names its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallForm {
    /// `call rel32`, to a function of the same image or heap; else as `Memory`.
    #[default]
    Near,
    /// `call rax`.
    Register,
    /// `call [rip + disp]`.
    Memory,
    /// `call` of an entry in the procedure linkage table, which has the function looked up each time.
    /// It is for native code of Unix.
    Plt,
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Calls a function.
    Call(CallForm, FunctionId),
    /// Overwrites an integer register that is volatile, or saved and not the frame register.
    Clobber(Gpr),
    /// Overwrites a vector register that is volatile or saved.
    ClobberXmm(u8),
    /// Writes 8 bytes of locals, at this offset.
    Store(u32),
    /// Instructions that only compute.
    Work(u8),
    /// Executes the body so many times, at least once.
    Loop(u8, Vec<Statement>),
    /// Executes the body, or jumps over it.
    If(bool, Vec<Statement>),
    /// Leaves by an epilogue of its own.
    Exit(Exit),
    /// Takes so many 16-byte units of dynamic stack; the frame register must be described.
    Alloca(u16),
    /// Executes the body in a part that lies apart, with a jump there and one back.
    Cold(Vec<Statement>),
    /// Executes the body in a part behind a chained info, which saves more registers by mov and
    /// restores them at the part's end.
    Region(Vec<Gpr>, Vec<Statement>),
    /// Calls the body as a funclet: a part with a frame of its own that works on the function's.
    Funclet(Vec<Statement>),
    /// Executes the first body; if something thrown in a call cuts it short, the second. What is
    /// thrown in a region or on another stack goes on to the callers: registers or rsp would be wrong.
    Try(Vec<Statement>, Vec<Statement>),
    /// Cuts the stack to the innermost `Try`; the program ends if there is none.
    Throw,
    /// Executes the body; exceptions thrown in it are handled by the clauses, the first one first,
    /// each of them a funclet: one `Finally`, one `Fault`, or catches. Only in managed code.
    Guarded(Vec<Statement>, Vec<Clause>),
    /// Executes a breakpoint instruction, which enters the handler by an interrupt.
    Trap(FunctionId),
    /// Calls a function on another stack, of lower addresses; the frame register must be described.
    SwitchStack(FunctionId),
    /// Ends the program, by a system call.
    Stop,
    /// Goes through the runtime's code. Only a world has such code; it replaces the statement.
    Runtime(RuntimeCall),
    /// A part of the runtime's code.
    Primitive(Primitive),
}

impl Program {
    /// How far apart stacks are that are switched to, in bytes: any callee finds room.
    pub(super) fn stack_stride(&self) -> u64 {
        const SPARE: u64 = 0x2000;
        let estimates = estimate::functions(self);
        let stack = estimates.iter().map(|estimate| estimate.stack).max().unwrap_or(0);
        let interrupts = self.interrupts.iter().filter_map(|i| estimates.get(i.handler.index()));
        let sum = |sum: u64, more: u64| sum.saturating_add(more);
        let stack = interrupts.map(|estimate| estimate.stack).fold(stack, sum);
        stack.saturating_add(SPARE).checked_next_multiple_of(0x1000).unwrap_or(u64::MAX)
    }

    /// The first function that goes through the runtime's code.
    #[must_use]
    pub fn first_with_runtime_calls(&self) -> Option<FunctionId> {
        let calls = |statement: &Statement| matches!(statement, Statement::Runtime(_));
        let with = |function: &Function| function.body.iter().any(|s| s.contains(&calls));
        self.functions.iter().position(with).map(|index| FunctionId(index as u32))
    }

    /// The most stacks that one kind of code can need room for.
    pub(super) fn most_stacks(&self) -> u64 {
        let stacks = CodeKind::ALL.map(|kind| self.other_stacks(kind).saturating_add(1));
        stacks.into_iter().max().unwrap_or(1)
    }

    /// The most stacks that functions of a kind can have switched to at once.
    #[must_use]
    pub fn other_stacks(&self, kind: CodeKind) -> u64 {
        let switches = |statement: &Statement| matches!(statement, Statement::SwitchStack(_));
        let functions = self.functions.iter().filter(|function| {
            function.kind == kind && function.body.iter().any(|s| s.contains(&switches))
        });
        // Each is active once, and once more for every interrupt.
        (functions.count() as u64).saturating_mul(1 + self.interrupts.len() as u64)
    }
}

impl Statement {
    /// The bodies inside it, in the order of the text.
    pub fn bodies(&self) -> impl Iterator<Item = &[Self]> {
        let (first, second) = match self {
            Self::Loop(_, body)
            | Self::If(_, body)
            | Self::Cold(body)
            | Self::Region(_, body)
            | Self::Funclet(body)
            | Self::Guarded(body, _) => (Some(body), None),
            Self::Try(body, catch) => (Some(body), Some(catch)),
            _ => (None, None),
        };
        let clauses = match self {
            Self::Guarded(_, clauses) => clauses.as_slice(),
            _ => &[],
        };
        let clauses = clauses.iter().flat_map(Clause::bodies);
        let primitive = match self {
            Self::Primitive(primitive) => primitive.body(),
            _ => None,
        };
        first.into_iter().chain(second).map(Vec::as_slice).chain(clauses).chain(primitive)
    }

    /// The bodies inside it, in the order of the text, to change them.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Vec<Self>> {
        let (first, second, clauses) = match self {
            Self::Loop(_, body)
            | Self::If(_, body)
            | Self::Cold(body)
            | Self::Region(_, body)
            | Self::Funclet(body) => (Some(body), None, None),
            Self::Try(body, catch) => (Some(body), Some(catch), None),
            Self::Guarded(body, clauses) => (Some(body), None, Some(clauses)),
            _ => (None, None, None),
        };
        let clauses = clauses.into_iter().flatten().flat_map(Clause::bodies_mut);
        first.into_iter().chain(second).chain(clauses)
    }

    /// Whether it, or a statement inside it, is `wanted`.
    pub fn contains(&self, wanted: &impl Fn(&Self) -> bool) -> bool {
        wanted(self) || self.bodies().flatten().any(|inner| inner.contains(wanted))
    }

    /// How many of it and the statements inside it `count`, summed.
    pub fn sum(&self, count: &impl Fn(&Self) -> u32) -> u32 {
        count(self) + self.bodies().flatten().map(|inner| inner.sum(count)).sum::<u32>()
    }
}
