//! Programs: functions with shapes and bodies.

use super::estimate;
use super::guarded::EhClause;
use super::primitive::Primitive;
use super::runtime_call::RuntimeCall;
use super::shape::{CallingConvention, FunctionShape};
use clr_unwind::Gpr;

/// A function, given by its index in [`Program::functions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionIndex(
    /// The index.
    pub u32,
);

impl FunctionIndex {
    /// Returns the index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A program. Execution begins with a call of its first function.
///
/// A function calls only functions with a higher index, so every program ends. The other conditions
/// for a valid program are listed in [`ProgramError`](super::ProgramError).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Calling convention of all functions.
    pub convention: CallingConvention,
    /// Functions; the first one is called from outside.
    pub functions: Vec<Function>,
    /// External interrupts, ascending by time.
    pub interrupts: Vec<Interrupt>,
    /// Size in bytes of the alternate stack for signal handlers; 0 if they run on the stack that
    /// they interrupt.
    pub signal_stack: u32,
}

/// An external interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Number of instructions that have been executed before the interrupt.
    pub after: u64,
    /// Handler, a function whose entry is not `Call`.
    pub handler: FunctionIndex,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name, unique in the program, of letters, digits, `_`, `.` and `:`.
    pub name: String,
    /// Kind of the code, which decides the image or heap.
    pub kind: CodeKind,
    /// Use of the stack and unwind data.
    pub shape: FunctionShape,
    /// Statements between prologue and epilogue.
    pub body: Vec<Statement>,
    /// The epilogue at the end. `None` if the end is never reached because the body throws, stops,
    /// leaves earlier, or calls a function that does not return. No code follows the body then.
    pub end: Option<Exit>,
}

/// The kind of code, which decides the image or heap that contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeKind {
    /// Code in the heap of the JIT.
    Jit,
    /// Code in the image of a ready-to-run assembly.
    ReadyToRun,
    /// Code in the image of an unmanaged library.
    #[default]
    Native,
}

impl CodeKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Jit, Self::ReadyToRun, Self::Native];
}

/// The way in which an epilogue leaves the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// A return; always iretq in a function entered by an interrupt.
    Return(ReturnForm),
    /// A jump to another function.
    TailCall(TailCallForm, FunctionIndex),
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
    /// `vzeroupper; ret`, as clang ends functions with AVX code.
    VzeroupperRet,
}

/// A jump that leaves a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TailCallForm {
    /// `jmp rel` to a function of the same image or heap, otherwise as `Memory`.
    #[default]
    Near,
    /// `rex.w jmp rax`.
    Register,
    /// `jmp rax`, as Intel's compiler emits it.
    RegisterWithoutRex,
    /// `rex.w jmp [rax]`.
    RegisterMemory,
    /// `jmp [rip + disp]`.
    Memory,
}

/// The operand of a call instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallForm {
    /// `call rel32` to a function of the same image or heap, otherwise as `Memory`.
    #[default]
    Near,
    /// `call rax`.
    Register,
    /// `call [rip + disp]`.
    Memory,
    /// `call` of an entry in the procedure linkage table, which looks the function up each time.
    /// For native code on Unix only.
    Plt,
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Calls a function.
    Call(CallForm, FunctionIndex),
    /// Overwrites an integer register that is volatile, or saved and not the frame register.
    Clobber(Gpr),
    /// Overwrites a vector register that is volatile or saved.
    ClobberXmm(u8),
    /// Writes 8 bytes of locals at this offset.
    Store(u32),
    /// Executes instructions without side effects.
    Work(u8),
    /// Executes the body N times, at least once.
    Loop(u8, Vec<Statement>),
    /// Executes the body if true, or jumps over it.
    If(bool, Vec<Statement>),
    /// Leaves by an epilogue of its own.
    Exit(Exit),
    /// Allocates N 16-byte units of dynamic stack; the frame register must be described.
    Alloca(u16),
    /// Executes the body in a part that is placed separately, with a jump there and one back.
    Cold(Vec<Statement>),
    /// Executes the body in a part with a chained UNWIND_INFO, which saves more registers by mov
    /// and restores them at the part's end.
    Region(Vec<Gpr>, Vec<Statement>),
    /// Calls the body as a funclet: a part with a frame of its own that uses the function's frame.
    Funclet(Vec<Statement>),
    /// Executes the first body, and the second if an exception in a call cuts the first short. An
    /// exception thrown in a region or on another stack goes on to the callers, since registers or
    /// rsp would be wrong.
    Try(Vec<Statement>, Vec<Statement>),
    /// Cuts the stack to the innermost `Try`; the program ends if there is none.
    Throw,
    /// Executes the body. Exceptions thrown in it are handled by the EH clauses in order, each of
    /// which is a funclet: one `Finally`, one `Fault`, or catches. In managed code only.
    Guarded(Vec<Statement>, Vec<EhClause>),
    /// Executes a breakpoint instruction, which enters the handler by an interrupt.
    Trap(FunctionIndex),
    /// Calls a function on another stack at lower addresses; the frame register must be described.
    SwitchStack(FunctionIndex),
    /// Ends the program with a system call.
    Stop,
    /// Calls the runtime. When a world is built, the runtime's code replaces the statement.
    Runtime(RuntimeCall),
    /// A piece of the runtime's code.
    Primitive(Primitive),
}

impl Program {
    /// Returns the distance in bytes between the stacks that functions switch to, large enough for
    /// any callee.
    pub(super) fn stack_stride(&self) -> u64 {
        const SPARE: u64 = 0x2000;
        let estimates = estimate::functions(self);
        let stack = estimates.iter().map(|estimate| estimate.stack).max().unwrap_or(0);
        let interrupts = self.interrupts.iter().filter_map(|i| estimates.get(i.handler.index()));
        let sum = |sum: u64, more: u64| sum.saturating_add(more);
        let stack = interrupts.map(|estimate| estimate.stack).fold(stack, sum);
        stack.saturating_add(SPARE).checked_next_multiple_of(0x1000).unwrap_or(u64::MAX)
    }

    /// Returns the first function that contains a runtime call.
    pub fn first_with_runtime_calls(&self) -> Option<FunctionIndex> {
        let calls = |statement: &Statement| matches!(statement, Statement::Runtime(_));
        let with = |function: &Function| function.body.iter().any(|s| s.contains(&calls));
        self.functions.iter().position(with).map(|index| FunctionIndex(index as u32))
    }

    /// Returns the maximum number of stacks for which one kind of code can need room.
    pub(super) fn most_stacks(&self) -> u64 {
        let stacks = CodeKind::ALL.map(|kind| self.other_stacks(kind).saturating_add(1));
        stacks.into_iter().max().unwrap_or(1)
    }

    /// Returns the maximum number of stacks that functions of a kind can have switched to at the
    /// same time.
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
    /// Returns the bodies inside the statement, in text order.
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
        let clauses = clauses.iter().flat_map(EhClause::bodies);
        let primitive = match self {
            Self::Primitive(primitive) => primitive.body(),
            _ => None,
        };
        first.into_iter().chain(second).map(Vec::as_slice).chain(clauses).chain(primitive)
    }

    /// Returns mutable references to the bodies inside the statement, in text order.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Vec<Self>> {
        let (first, second, clauses) = match self {
            Self::Loop(_, body)
            | Self::If(_, body)
            | Self::Cold(body)
            | Self::Region(_, body)
            | Self::Funclet(body) => (Some(body), None, None),
            Self::Try(body, catch) => (Some(body), Some(catch), None),
            Self::Guarded(body, clauses) => (Some(body), None, Some(clauses)),
            Self::Primitive(primitive) => (primitive.body_mut(), None, None),
            _ => (None, None, None),
        };
        let clauses = clauses.into_iter().flatten().flat_map(EhClause::bodies_mut);
        first.into_iter().chain(second).chain(clauses)
    }

    /// Returns true if the statement or a statement inside it is `wanted`.
    pub fn contains(&self, wanted: &impl Fn(&Self) -> bool) -> bool {
        wanted(self) || self.bodies().flatten().any(|inner| inner.contains(wanted))
    }

    /// Returns the sum of `count` over the statement and the statements inside it.
    pub fn sum(&self, count: &impl Fn(&Self) -> u32) -> u32 {
        count(self) + self.bodies().flatten().map(|inner| inner.sum(count)).sum::<u32>()
    }
}
