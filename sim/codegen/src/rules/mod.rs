//! What makes a program valid.

mod body;
mod shape;

use super::estimate;
use super::program::{FunctionId, Program};
use super::runtime_call::RuntimeCallKind;
use super::shape::Entry;
use body::{Body, Context};
use clr_walker::registers::Gpr;
pub use shape::may_realign;
use std::collections::BTreeSet;
use thiserror::Error;

/// The most bytes of locals that a function may have.
pub const MAX_LOCALS: u32 = 1 << 20;

/// The most statements that may stand inside each other.
pub const MAX_NESTING: u32 = 8;

/// The most registers that a function may push. With all kinds of saves besides, a prologue may
/// still have more than the 255 bytes that unwind data can tell.
pub const MAX_PUSHES: usize = 16;

/// The largest alternate stack for signals, in bytes.
pub const MAX_SIGNAL_STACK: u32 = 1 << 20;

/// The most arguments that a function pushes for a call.
pub const MAX_ARGUMENTS: u8 = 8;

/// The most clauses of a guarded statement.
pub const MAX_CLAUSES: usize = 8;

/// The most functions of a program.
pub const MAX_FUNCTIONS: usize = 1 << 12;

/// A rule that a program breaks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("function {}: {rule}", function.0)]
pub struct ProgramError {
    /// The function.
    pub function: FunctionId,
    /// What part of it.
    pub place: Place,
    /// The rule.
    pub rule: Rule,
}

/// A part of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its name, or its being there.
    Function,
    /// Its shape.
    Shape,
    /// A statement, counted in the order of the text from 0: a statement's bodies come behind it.
    Statement(u32),
    /// Its end.
    End,
    /// The interrupt with this index, which names the function as its handler.
    Interrupt(u32),
}

/// What a valid program keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rule {
    /// There must be a function to begin with.
    #[error("a program has between 1 and {MAX_FUNCTIONS} functions")]
    FunctionCount,
    /// A name must be unique and made of certain characters.
    #[error("a name is unique, not empty, and made of letters, digits, `_`, `.` and `:`")]
    Name,
    /// The first function is called.
    #[error("the first function is called from outside: its entry is a call")]
    FirstEntry,
    /// Callees stand behind their callers.
    #[error("a function calls only functions behind it, so that every program ends")]
    Callee,
    /// What is called must have the entry `Call`.
    #[error("a function entered by an interrupt cannot be called or jumped to")]
    CalledInterrupt,
    /// A handler must have an interrupt's entry.
    #[error("the handler of an interrupt must have the entry of one")]
    Handler,
    /// Interrupts are ascending.
    #[error("interrupts stand in the order of their time")]
    InterruptOrder,
    /// Which registers can be saved.
    #[error("{} cannot be saved here: saved registers are nonvolatile, each is saved once", .0.name())]
    Saved(Gpr),
    /// rsp cannot be pushed or stored.
    #[error("rsp cannot be pushed or stored")]
    StackPointer,
    /// Which vector registers can be saved.
    #[error("xmm{0} cannot be saved: of xmm6 to xmm15 each once, under the Windows convention")]
    SavedXmm(u8),
    /// A prologue has at most 255 bytes.
    #[error("a function pushes at most {MAX_PUSHES} registers")]
    Pushes,
    /// The home space belongs to the Windows convention and to calls.
    #[error("only a function called under the Windows convention has home space")]
    Home,
    /// What locals may be.
    #[error("locals are a multiple of 8 bytes, at most {MAX_LOCALS:#x}")]
    Locals,
    /// A frame register must be nonvolatile and saved.
    #[error("the frame register must be nonvolatile and pushed; its offset is at most 15 units")]
    FrameRegister,
    /// Saves cannot lie below the frame base.
    #[error(
        "registers saved by mov lie below a described frame register set before the allocation"
    )]
    SavesBelowFrame,
    /// The way the allocation is given back needs a frame register.
    #[error("this release needs a frame register that allows it")]
    Release,
    /// `___chkstk_ms` belongs to the Windows convention.
    #[error("chkstk belongs to the Windows convention and to functions that are called")]
    Chkstk,
    /// Shapes that CFI alone describes.
    #[error("only native code of the System V convention is made so")]
    Unix,
    /// A realigned frame is told by rbp.
    #[error(
        "a realigned function is called, pushes rbp first as its frame register, set behind that push"
    )]
    Realign,
    /// Prologues that do not stand at the begin.
    #[error("what is called and does not realign its stack can have code without a frame")]
    Wrap,
    /// Calls keep the stack aligned.
    #[error("an even number of arguments is pushed, at most {MAX_ARGUMENTS}")]
    Arguments,
    /// A leaf is all volatile.
    #[error("a function without unwind data neither moves rsp, nor saves or calls anything")]
    Leaf,
    /// What version 2 can express.
    #[error("version 2 describes epilogues that pop nonvolatile registers only, all of one size")]
    Version2,
    /// What an interrupt's function does at its end.
    #[error("a function entered by an interrupt ends by iretq")]
    InterruptExit,
    /// Statements nest so deep only.
    #[error("at most {MAX_NESTING} statements stand inside each other")]
    Nesting,
    /// Which registers a body may overwrite.
    #[error("{} is neither volatile nor saved, or it is the frame register", .0.name())]
    Clobber(Gpr),
    /// Which vector registers a body may overwrite.
    #[error("xmm{0} is neither volatile nor saved")]
    ClobberXmm(u8),
    /// A store hits locals.
    #[error("the store is not within the locals, or not at a multiple of 8")]
    Store,
    /// A loop runs at least once.
    #[error("a loop runs at least once")]
    Loop,
    /// rsp moves only where the frame register is described.
    #[error("rsp moves only in a function whose unwind data names a frame register")]
    Dynamic,
    /// Where no epilogue can be.
    #[error("a funclet, a guarded body and a saving region have no epilogue of their own")]
    ExitHere,
    /// Funclets work on the frame of rbp.
    #[error("a function with funclets is called, has rbp as its frame register, and nests none")]
    Funclet,
    /// Regions save in the function's own frame, and what they save is not restored by a catch.
    #[error("a funclet and a guarded body have no saving region")]
    Region,
    /// A catch goes on with the rsp that its frame has where the exception came from.
    #[error("a guarded body does not switch stacks")]
    SwitchHere,
    /// Exceptions are handled by managed code, in funclets.
    #[error(
        "a guarded statement is in managed code that is called and has rbp as its frame register"
    )]
    Guarded,
    /// Which clauses go together.
    #[error("a guarded statement has one finally, or one fault, or 1 to {MAX_CLAUSES} catches")]
    Clauses,
    /// Managed and unmanaged code go through the runtime in different ways.
    #[error("`{}` does not stand in such code, or does not call such a function", .0.word())]
    Runtime(RuntimeCallKind),
    /// The end must be unreachable if there is none.
    #[error("without an end the body must throw, stop, leave, or call what never returns")]
    EndReached,
}

impl Program {
    /// Checks that the program is valid.
    ///
    /// # Errors
    /// [`ProgramError`]: the first rule that it breaks.
    pub fn check(&self) -> Result<(), ProgramError> {
        let at = |index: usize, place| {
            move |rule| ProgramError { function: FunctionId(index as u32), place, rule }
        };
        if !(1..=MAX_FUNCTIONS).contains(&self.functions.len()) {
            return Err(at(0, Place::Function)(Rule::FunctionCount));
        }
        let mut names = BTreeSet::new();
        for (index, function) in self.functions.iter().enumerate() {
            if !is_name(&function.name) || !names.insert(&function.name) {
                return Err(at(index, Place::Function)(Rule::Name));
            }
        }
        if self.functions[0].shape.entry != Entry::Call {
            return Err(at(0, Place::Shape)(Rule::FirstEntry));
        }
        for (index, function) in self.functions.iter().enumerate() {
            shape::check(&function.shape, self.convention, function.kind)
                .map_err(at(index, Place::Shape))?;
            let mut body = Body::new(self, index, function);
            body.check(&function.body, Context::default())
                .map_err(|rule| at(index, Place::Statement(body.statement))(rule))?;
            if let Some(exit) = function.end {
                body.check_exit(exit).map_err(at(index, Place::End))?;
            }
        }
        self.check_ends()?;
        let mut last = 0;
        for (number, interrupt) in self.interrupts.iter().enumerate() {
            let place = Place::Interrupt(number as u32);
            let error = at(interrupt.handler.index(), place);
            let handler = self.functions.get(interrupt.handler.index());
            if handler.is_none_or(|handler| handler.shape.entry == Entry::Call) {
                return Err(error(Rule::Handler));
            }
            if interrupt.after < last {
                return Err(error(Rule::InterruptOrder));
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
                let function = FunctionId(index as u32);
                return Err(ProgramError { function, place: Place::End, rule: Rule::EndReached });
            }
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':');
    !name.is_empty() && name.chars().all(allowed)
}
