//! Programs whose functions carry their unwind data. Machine code and tables are both generated
//! from one description.
//!
//! ```
//! use clr_codegen::{Exit, Function, FunctionIndex, FunctionShape, Program, ReturnForm, Statement};
//! use clr_codegen::execution::{Execution, ExecutionEnd};
//! use clr_unwind::{Gpr, Position, Unwinder};
//!
//! // push rbx; push rsi; sub rsp, 48h; mov rbx, …; add rsp, 48h; pop rsi; pop rbx; ret
//! let shape = FunctionShape { pushes: vec![Gpr::Rbx, Gpr::Rsi], locals: 0x48, ..Default::default() };
//! let function = Function {
//!     name: "f".to_owned(),
//!     kind: Default::default(),
//!     shape,
//!     body: vec![Statement::Clobber(Gpr::Rbx)],
//!     end: Some(Exit::Return(ReturnForm::Ret)),
//! };
//! let program = Program { functions: vec![function], ..Default::default() };
//! let linked = program.link()?;
//! let map = linked.code_map()?;
//!
//! // At every instruction the walker agrees with the shadow stack.
//! let mut run = Execution::new(&program, &linked, FunctionIndex(0), 0)?;
//! let outcome = loop {
//!     let mut registers = run.machine().cpu().registers();
//!     Unwinder::new(&map).step(&mut registers, Position::Interrupted, run.machine())?;
//!     let truth = run.shadow_stack().callers()[0].registers;
//!     assert_eq!((registers.rip, registers.rsp()), (truth.rip, truth.rsp()));
//!     assert_eq!(registers.get(Gpr::Rbx), truth.get(Gpr::Rbx));
//!     if let Err(outcome) = run.step() {
//!         break outcome;
//!     }
//! };
//! assert_eq!(outcome, ExecutionEnd::Returned);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! Program: functions with a FunctionShape and a body of Statements
//!    │ check      rules: what makes a program valid
//!    ▼
//! layout          offsets of everything in each frame
//!    │ lower      instructions with their roles, the prologues' operations, and the rows of CFI
//!    ▼
//! link            addresses; UNWIND_INFO; PE files, a JIT heap with its nibble map; ELF files
//!    │            with CFI for native code of Unix
//!    ▼
//! LinkedProgram   bytes that the walker reads back, and the facts about every instruction
//! ```
//!
//! The walker sees only the bytes. The other facts ([`PlacedInstruction`]) are for the code that
//! checks the walker.

mod cfi;
mod elf;
pub mod estimate;
pub mod execution;
mod guarded;
mod inlined;
mod layout;
mod library;
mod link;
mod lower;
mod marks;
mod nibble_map;
mod pe;
mod primitive;
mod program;
mod rules;
mod runtime_call;
mod service;
pub mod shadow_stack;
mod shape;
mod slots;
pub mod stack_layout;
#[cfg(test)]
mod tests;
mod unwind_info;
mod unwind_info_v3;

#[doc(hidden)]
pub use cfi::SIGNAL_CONTEXT;
pub use guarded::{EhClause, EhClauseKind, FuncletKind, HandlerKind};
pub use layout::FrameLayout;
#[doc(hidden)]
pub use library::{LIBRARY_TEXT, PlainFunction, library};
pub use link::{
    Format, LinkError, LinkedProgram, MAX_STACK, MethodHeader, PlacedEhClause, PlacedPart,
    ReadBackError, SERVICE_SIZE, SERVICES, THROW, Unit, service_address,
};
pub use lower::THREAD_SLOT;
pub use marks::{CfiMistake, PlacedHelper, PlacedInstruction, Role, WindowsMistake};
pub use nibble_map::{NibbleMap, NibbleMapError};
pub use primitive::{Primitive, StubCode, Value, Word};
pub use program::{
    CallForm, CodeKind, Exit, Function, FunctionIndex, Interrupt, Program, ReturnForm, Statement,
    TailCallForm,
};
pub use rules::{
    FunctionPart, MAX_ARGUMENTS, MAX_CLAUSES, MAX_FUNCTIONS, MAX_LOCALS, MAX_NESTING, MAX_PUSHES,
    MAX_SIGNAL_STACK, ProgramError, ProgramRule,
};
#[doc(hidden)]
pub use rules::{is_name_character, may_realign};
pub use runtime_call::{CallTarget, RuntimeCall, RuntimeCallKind};
pub use service::Service;
pub use shape::{
    Allocation, CallingConvention, ColdForm, EntryForm, EpilogueCfi, FrameRegister, FrameSet,
    FunctionShape, Realign, Release, SaveArea, UnwindData, Wrap,
};
pub use slots::{FrameSlots, MachineWord, Slot, SlotRole};
