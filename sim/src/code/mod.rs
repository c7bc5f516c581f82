//! Programs whose functions carry their unwind data: one description, from which come machine code
//! and tables.

pub mod estimate;
mod layout;
mod link;
mod lower;
mod marks;
mod nibble_map;
mod pe;
mod program;
mod rules;
mod shape;
mod unwind_info;

pub use layout::FrameLayout;
pub use link::{LinkError, LinkedProgram, MethodHeader, PlacedPart, ReadBackError, THROW, Unit};
pub use marks::{PlacedInstruction, Role, WindowsMistake};
pub use nibble_map::{NibbleMap, NibbleMapError};
pub use program::{
    CallForm, CodeKind, Exit, Function, FunctionId, Interrupt, Program, ReturnForm, Statement,
    TailCallForm,
};
pub use rules::{MAX_FUNCTIONS, MAX_LOCALS, MAX_NESTING, MAX_PUSHES, Place, ProgramError, Rule};
pub use shape::{
    Allocation, ColdForm, Convention, Entry, FrameRegister, FrameSet, FunctionShape, Release,
    SaveArea, UnwindData,
};
