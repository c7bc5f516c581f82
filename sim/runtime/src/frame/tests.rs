//! Tests of reading Frames that are placed by hand, at offsets copied from contract §3.5.

mod layouts;
mod rules;
mod written;

use crate::Context;
use crate::frame::{
    FRAME_TOP, FrameFields, FrameIdentities, FrameKind, FrameReader, FrameShape, FrameWriter,
};
use crate::generation::{Generation, Os};
use crate::words::Words;
use clr_unwind::{
    Gpr::{self, R12, R13, R14, R15, Rbp, Rbx, Rdi, Rsi, Rsp},
    Unreadable,
};

/// Address of the Frame (VA).
const AT: u64 = 0x1F_0000;
/// Address of the next Frame.
const NEXT: u64 = 0x1F_8000;
/// Address of the structure that a Frame points to: a TransitionBlock, HijackArgs, a CONTEXT.
const BLOCK: u64 = 0x1F_4000;
/// Address of saved registers that a Frame points to one by one.
const SLOTS: u64 = 0x1F_6000;

/// Returns the callee-saved registers in memory order (contract §1.7).
fn callee_saved(generation: Generation) -> &'static [Gpr] {
    if is_windows(generation) {
        &[Rdi, Rsi, Rbx, Rbp, R12, R13, R14, R15]
    } else {
        &[R12, R13, R14, R15, Rbx, Rbp]
    }
}

/// Returns true if a generation runs on Windows, judged by its name.
fn is_windows(generation: Generation) -> bool {
    generation.family().os == Os::Windows
}

/// Returns true if Frames are those of .NET 9 and newer.
fn is_new(generation: Generation) -> bool {
    generation.family().is_core_since(9)
}

/// Returns the value that a test put into a register or a field.
fn value_of(register: Gpr) -> u64 {
    0xA110_0000_0000_0000 + u64::from(register.number())
}

/// Returns the registers before a Frame is read: all different.
fn before() -> Context {
    let mut context = Context { flags: 0x1234, ..Context::default() };
    context.registers.rip = 0xBEF0_0001;
    context.registers.gpr = std::array::from_fn(|n| 0xBEF0_0000_0000 + n as u64);
    context.registers.xmm = std::array::from_fn(|n| 0xBEF0_0000 << 64 | n as u128);
    context
}

/// Contents of a Frame.
#[derive(Debug, PartialEq)]
struct Said {
    next: u64,
    active: bool,
    resumable: bool,
    function: u64,
    return_address: u64,
    context: Context,
}

/// Asks a Frame everything that a walk asks.
fn ask(generation: Generation, memory: &Words) -> Result<Said, Unreadable> {
    let identities = FrameIdentities::of(generation);
    let frame = FrameReader::new(AT, generation, &identities, memory)?.expect("it is a Frame");
    let mut context = before();
    let said = Said {
        next: frame.next()?,
        active: frame.is_active_call()?,
        resumable: frame.is_resumable(),
        function: frame.function()?,
        return_address: frame.return_address(&identities)?,
        context,
    };
    frame.update(&mut context, &identities)?;
    Ok(Said { context, ..said })
}

/// Returns a Frame's first two words, followed by `fields` at these offsets.
fn frame(generation: Generation, kind: FrameKind, fields: &[(u64, u64)]) -> Words {
    let word = FrameIdentities::of(generation).word(kind).expect("the kind exists");
    let fields = fields.iter().map(|(offset, value)| (AT + offset, *value));
    Words::new([(AT, word), (AT + 8, NEXT)].into_iter().chain(fields))
}

/// Returns the generations that have a kind.
fn generations_of(kind: FrameKind) -> impl Iterator<Item = Generation> {
    Generation::ALL.into_iter().filter(move |generation| kind.exists_in(*generation))
}
