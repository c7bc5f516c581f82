//! A line of a trace.

use super::effect;
use super::stack::StackLine;
use crate::input::program::{self, HELPER, Names};
use crate::render::cfi::Rules;
use crate::render::console::{BAD, DIM, HEAD};
use crate::render::unwind_data::Hex;
use clr_codegen::FunctionIndex;
use clr_codegen::execution::{Execution, ExecutionEnd};
use clr_codegen::stack_layout::TrueFrame;
use clr_unwind::{Memory as _, Position, Registers};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use serde::Serialize;
use std::io::{self, Write};

/// Size of the longest instruction in bytes.
const LONGEST: usize = 15;

/// Indentation of a callee.
const INDENT: usize = 2;

/// Depth from which calls are not indented further.
const DEEPEST: usize = 8;

/// The state of a thread before an instruction.
pub(super) struct State {
    /// Number of instructions executed.
    pub(super) executed: u64,
    pub(super) registers: Registers,
    /// The function with the instruction.
    pub(super) function: Option<FunctionIndex>,
    /// The thread's frames, innermost first.
    pub(super) frames: Vec<TrueFrame>,
    pub(super) instruction: Instruction,
}

impl State {
    pub(super) fn of(run: &Execution<'_>) -> Self {
        let registers = run.machine().cpu().registers();
        let len = run.linked().instruction(registers.rip).map_or(0, |placed| placed.len);
        let mut bytes = [0; LONGEST];
        let own = bytes.get_mut(..usize::from(len)).unwrap_or_default();
        let instruction = match run.machine().read(registers.rip, own) {
            Ok(()) => Decoder::with_ip(64, own, registers.rip, DecoderOptions::NONE).decode(),
            Err(_) => Instruction::default(),
        };
        let frames = run.frames();
        Self {
            executed: run.machine().executed(),
            registers,
            function: frames.first().and_then(|frame| frame.function),
            frames,
            instruction,
        }
    }

    /// Returns the CFA of the innermost frame.
    pub(super) fn cfa(&self) -> u64 {
        self.frames.first().map_or(0, |frame| frame.cfa)
    }
}

/// A line of a trace.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Row {
    kind: &'static str,
    number: u64,
    address: Hex,
    function: Option<String>,
    offset: Option<i64>,
    /// Number of calls between the caller outside and this frame.
    depth: usize,
    role: Option<&'static str>,
    text: String,
    /// Effect of the instruction on the frame, in words.
    effect: String,
    rsp: Hex,
    cfa: Hex,
    windows: Vec<Mistaken>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cfi_mistakes: Vec<Mistaken>,
    pub(super) stops: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stack: Option<Vec<StackLine>>,
    /// Call frame information of the place, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cfi: Option<Rules>,
    #[serde(skip)]
    location: String,
}

/// A frame that is known to be unwound wrongly.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Mistaken {
    /// Index of the frame; 0 is the innermost one.
    frame: usize,
    function: String,
    mistake: &'static str,
}

impl Row {
    /// Creates the line without the effect, which is known after the instruction.
    pub(super) fn new(
        state: &State,
        run: &Execution<'_>,
        stops: Vec<usize>,
        names: Names<'_>,
    ) -> Self {
        let rip = state.registers.rip;
        let found = names.find(rip, Position::Interrupted);
        let mistaken = |(index, frame): (usize, &TrueFrame), mistake: &'static str| {
            let function = frame.function.map_or(HELPER, |id| names.function(id)).to_owned();
            Mistaken { frame: index, function, mistake }
        };
        let frames = || state.frames.iter().enumerate();
        let windows = frames().filter_map(|at| {
            let mistake = run.linked().windows_mistake(at.1.registers.rip, at.1.position)?;
            Some(mistaken(at, program::mistake(mistake)))
        });
        let of_cfi = frames().filter_map(|at| {
            let mistake = run.linked().cfi_mistake(at.1.registers.rip, at.1.position)?;
            Some(mistaken(at, program::cfi_mistake(mistake)))
        });
        Self {
            kind: "instruction",
            number: state.executed,
            address: rip.into(),
            function: found.map(|(id, _)| names.function(id).to_owned()),
            offset: found.map(|(_, offset)| offset),
            depth: state.frames.len().saturating_sub(1),
            role: run.linked().instruction(rip).map(|placed| program::role(placed.role)),
            text: names.text(&state.instruction),
            effect: String::new(),
            rsp: state.registers.rsp().into(),
            cfa: state.cfa().into(),
            windows: windows.collect(),
            cfi_mistakes: of_cfi.collect(),
            stops,
            stack: None,
            cfi: None,
            location: names.location(rip, Position::Interrupted),
        }
    }

    /// Sets the effect.
    pub(super) fn finish(
        &mut self,
        before: &State,
        run: &Execution<'_>,
        outcome: Result<(), ExecutionEnd>,
        names: Names<'_>,
    ) {
        let after = State::of(run);
        self.effect = effect::words(before, &after, outcome, names, run);
        if outcome.is_ok() && effect::is_interrupt(before, &after) {
            self.kind = "interrupt";
            self.text = String::new();
            self.role = None;
        }
    }

    /// Returns the mistakes of Windows and of call frame information.
    pub(super) fn mistakes(&self) -> Vec<Mistake> {
        let mistake_of = |who: &'static str| {
            move |mistaken: &Mistaken| Mistake {
                frame: self.depth.wrapping_sub(mistaken.frame),
                who,
                function: mistaken.function.clone(),
                words: mistaken.mistake,
            }
        };
        let windows = self.windows.iter().map(mistake_of("Windows"));
        windows.chain(self.cfi_mistakes.iter().map(mistake_of("CFI"))).collect()
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { number, effect, text, .. } = self;
        let right = self.windows.is_empty() && self.cfi_mistakes.is_empty();
        let mark = if right { ' ' } else { '!' };
        let place = format!("{:1$}{2}", "", INDENT * self.depth.min(DEEPEST), self.location);
        let role = self.role.unwrap_or_default();
        if self.kind == "interrupt" {
            let line = format!("{number:>5} {mark}  {place:22}  ");
            return writeln!(out, "{line}{HEAD}{effect}{HEAD:#}");
        }
        write!(out, "{number:>5} {BAD}{mark}{BAD:#}  {place:22}  {DIM}{role:8}{DIM:#}  ")?;
        if effect.is_empty() {
            writeln!(out, "{text}")
        } else {
            writeln!(out, "{text:28}  {effect}")
        }
    }
}

/// A mistake that is printed below a line.
#[derive(PartialEq, Eq)]
pub(super) struct Mistake {
    /// Index of the frame, counted from the outermost one.
    frame: usize,
    /// The unwinder that makes the mistake.
    pub(super) who: &'static str,
    /// Name of the frame's function.
    pub(super) function: String,
    pub(super) words: &'static str,
}

/// The end of a trace.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct End {
    kind: &'static str,
    pub(super) number: u64,
    outcome: String,
    pub(super) stops: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stack: Option<Vec<StackLine>>,
}

impl End {
    pub(super) fn new(
        run: &Execution<'_>,
        outcome: ExecutionEnd,
        stops: Vec<usize>,
        draw: impl FnOnce() -> Vec<StackLine>,
    ) -> Self {
        Self {
            kind: "end",
            number: run.machine().executed(),
            outcome: outcome.to_string(),
            stack: (!stops.is_empty()).then(draw),
            stops,
        }
    }
}
