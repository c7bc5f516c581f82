//! Rules for valid programs.

mod body;
mod shape;

use super::estimate;
use super::program::{FunctionIndex, Program};
use super::runtime_call::RuntimeCallKind;
use super::shape::EntryForm;
use body::{Body, Context};
use clr_unwind::Gpr;
pub use shape::may_realign;
use std::collections::BTreeSet;
use thiserror::Error;

/// Maximum number of bytes of locals in a function.
pub const MAX_LOCALS: u32 = 1 << 20;

/// Maximum nesting depth of statements.
pub const MAX_NESTING: u32 = 8;

/// Maximum number of registers that a function pushes. With all kinds of saves together, a prologue
/// may still exceed the 255 bytes that unwind data can describe.
pub const MAX_PUSHES: usize = 16;

/// Maximum size of the alternate stack for signals in bytes.
pub const MAX_SIGNAL_STACK: u32 = 1 << 20;

/// Maximum number of arguments that a function pushes for a call.
pub const MAX_ARGUMENTS: u8 = 8;

/// Maximum number of EH clauses of a guarded statement.
pub const MAX_CLAUSES: usize = 8;

/// Maximum number of functions in a program.
pub const MAX_FUNCTIONS: usize = 1 << 12;

/// A violation of a rule, with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("function {}: {rule}", function.0)]
pub struct ProgramError {
    /// Function that violates the rule.
    pub function: FunctionIndex,
    /// Part of the function.
    pub place: FunctionPart,
    /// The rule.
    pub rule: ProgramRule,
}

/// A part of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionPart {
    /// The name, or the existence of the function.
    Function,
    /// The shape.
    Shape,
    /// A statement, counted in text order from 0: the bodies of a statement come after it.
    Statement(u32),
    /// The end.
    End,
    /// The interrupt with this index, whose handler is the function.
    Interrupt(u32),
}

/// A rule that a valid program satisfies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramRule {
    /// A program has at least one function.
    #[error("a program has between 1 and {MAX_FUNCTIONS} functions")]
    FunctionCount,
    /// A name must be unique and made of certain characters.
    #[error(
        "a name is unique, not empty, and made of letters, digits and `_ . : + < >`, or a grave accent"
    )]
    Name,
    /// The first function is called.
    #[error("the first function is called from outside: its entry is a call")]
    FirstEntry,
    /// Callees have higher indices than their callers.
    #[error("a function calls only functions after it, so that every program ends")]
    Callee,
    /// A called function has the entry `Call`.
    #[error("a function entered by an interrupt cannot be called or jumped to")]
    CalledInterrupt,
    /// A handler has the entry of an interrupt or a signal.
    #[error("the handler of an interrupt must be entered by an interrupt or a signal")]
    Handler,
    /// Interrupts are in the order of their time.
    #[error("interrupts are in the order of their time")]
    InterruptOrder,
    /// Saved registers are nonvolatile, and each is saved once.
    #[error("{} cannot be saved here: saved registers are nonvolatile, each is saved once", .0.name())]
    Saved(Gpr),
    /// rsp cannot be pushed or stored.
    #[error("rsp cannot be pushed or stored")]
    StackPointer,
    /// Only nonvolatile vector registers can be saved.
    #[error("xmm{0} cannot be saved: only xmm6 to xmm15, each once, under the Windows convention")]
    SavedXmm(u8),
    /// The number of pushes is limited.
    #[error("a function pushes at most {MAX_PUSHES} registers")]
    Pushes,
    /// The home space belongs to the Windows convention and to calls.
    #[error("only a function called under the Windows convention has home space")]
    Home,
    /// The size of the locals is a limited multiple of 8.
    #[error("locals are a multiple of 8 bytes, at most {MAX_LOCALS:#x}")]
    Locals,
    /// A frame register must be nonvolatile and saved.
    #[error("the frame register must be nonvolatile and pushed; its offset is at most 15 units")]
    FrameRegister,
    /// Saves cannot be below the frame base of unwind codes.
    #[error(
        "registers saved by mov are below a described frame register set before the allocation"
    )]
    SavesBelowFrame,
    /// The release of the allocation fits the frame register.
    #[error("this release needs a frame register that allows it")]
    Release,
    /// `___chkstk_ms` belongs to the Windows convention.
    #[error("chkstk belongs to the Windows convention and to functions that are called")]
    Chkstk,
    /// Some shapes can be described by CFI only.
    #[error("only native code of the System V convention has such a shape")]
    Unix,
    /// In a realigned frame, rbp leads to the CFA.
    #[error(
        "a realigned function is called, pushes rbp first as its frame register, set after that push"
    )]
    Realign,
    /// Only some functions can have code outside the prologue and epilogue.
    #[error("only a called function that does not realign its stack can have code without a frame")]
    Wrap,
    /// Calls keep the stack aligned.
    #[error("an even number of arguments is pushed, at most {MAX_ARGUMENTS}")]
    Arguments,
    /// A leaf changes only volatile registers.
    #[error("a function without unwind data neither moves rsp, nor saves or calls anything")]
    Leaf,
    /// UNWIND_INFO version 2 can describe only some epilogues.
    #[error("version 2 describes epilogues that pop nonvolatile registers only, all of one size")]
    Version2,
    /// A function entered by an interrupt ends with iretq.
    #[error("a function entered by an interrupt ends with iretq")]
    InterruptExit,
    /// The nesting depth of statements is limited.
    #[error("at most {MAX_NESTING} statements are nested")]
    Nesting,
    /// A body may overwrite volatile and saved registers, except the frame register.
    #[error("{} is neither volatile nor saved, or it is the frame register", .0.name())]
    Clobber(Gpr),
    /// A body may overwrite volatile and saved vector registers.
    #[error("xmm{0} is neither volatile nor saved")]
    ClobberXmm(u8),
    /// A store is within the locals and aligned.
    #[error("the store is not within the locals, or not at a multiple of 8")]
    Store,
    /// A loop runs at least once.
    #[error("a loop runs at least once")]
    Loop,
    /// rsp moves only where the frame register is described.
    #[error("rsp moves only in a function whose unwind data names a frame register")]
    Dynamic,
    /// Some bodies cannot contain an epilogue.
    #[error("a funclet, a guarded body and a saving region have no epilogue of their own")]
    ExitHere,
    /// Funclets use the frame through rbp.
    #[error(
        "a function with funclets is called, has rbp as its frame register, and does not nest them"
    )]
    Funclet,
    /// Regions save in the function's own frame, and a catch does not restore their registers.
    #[error("a funclet and a guarded body have no saving region")]
    Region,
    /// A catch resumes with the rsp that its frame had where the exception was thrown.
    #[error("a guarded body does not switch stacks")]
    SwitchHere,
    /// Exceptions are handled by managed code, in funclets.
    #[error(
        "a guarded statement is in managed code that is called and has rbp as its frame register"
    )]
    Guarded,
    /// Only some EH clauses can be combined.
    #[error("a guarded statement has one finally, or one fault, or 1 to {MAX_CLAUSES} catches")]
    Clauses,
    /// Managed and unmanaged code call the runtime in different ways.
    #[error("`{}` is not allowed in such code, or does not call such a function", .0.word())]
    Runtime(RuntimeCallKind),
    /// The end is unreachable if there is none.
    #[error("without an end the body must throw, stop, leave, or make a call that never returns")]
    EndReached,
}

impl Program {
    /// Checks that the program is valid.
    ///
    /// # Errors
    /// Returns [`ProgramError`] with the first violated rule.
    pub fn check(&self) -> Result<(), ProgramError> {
        let at = |index: usize, place| {
            move |rule| ProgramError { function: FunctionIndex(index as u32), place, rule }
        };
        if !(1..=MAX_FUNCTIONS).contains(&self.functions.len()) {
            return Err(at(0, FunctionPart::Function)(ProgramRule::FunctionCount));
        }
        let mut names = BTreeSet::new();
        for (index, function) in self.functions.iter().enumerate() {
            if !is_name(&function.name) || !names.insert(&function.name) {
                return Err(at(index, FunctionPart::Function)(ProgramRule::Name));
            }
        }
        if self.functions[0].shape.entry != EntryForm::Call {
            return Err(at(0, FunctionPart::Shape)(ProgramRule::FirstEntry));
        }
        for (index, function) in self.functions.iter().enumerate() {
            shape::check(&function.shape, self.convention, function.kind)
                .map_err(at(index, FunctionPart::Shape))?;
            let mut body = Body::new(self, index, function);
            body.check(&function.body, Context::default())
                .map_err(|rule| at(index, FunctionPart::Statement(body.statement))(rule))?;
            if let Some(exit) = function.end {
                body.check_exit(exit).map_err(at(index, FunctionPart::End))?;
            }
        }
        self.check_ends()?;
        let mut last = 0;
        for (number, interrupt) in self.interrupts.iter().enumerate() {
            let place = FunctionPart::Interrupt(number as u32);
            let error = at(interrupt.handler.index(), place);
            let handler = self.functions.get(interrupt.handler.index());
            if handler.is_none_or(|handler| handler.shape.entry == EntryForm::Call) {
                return Err(error(ProgramRule::Handler));
            }
            if interrupt.after < last {
                return Err(error(ProgramRule::InterruptOrder));
            }
            last = interrupt.after;
        }
        Ok(())
    }

    fn check_ends(&self) -> Result<(), ProgramError> {
        let estimates = estimate::functions(self);
        for (index, function) in self.functions.iter().enumerate() {
            let completes = || estimate::flow(&function.body, &estimates).completes;
            if function.end.is_none() && completes() {
                let function = FunctionIndex(index as u32);
                return Err(ProgramError {
                    function,
                    place: FunctionPart::End,
                    rule: ProgramRule::EndReached,
                });
            }
        }
        Ok(())
    }
}

/// Returns true for a character that names of functions may have: also those of nested types, of lambdas, and of generic types.
#[must_use]
pub const fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '+' | '<' | '>' | '`')
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_character)
}
