//! A line of a trace.

use super::effect;
use super::stack::StackLine;
use crate::console::{BAD, DIM, HEAD};
use crate::program::{self, HELPER, Names};
use crate::unwind_data::Hex;
use clr_sim::code::FunctionId;
use clr_sim::roles::TrueFrame;
use clr_sim::run::{Outcome, Run};
use clr_walker::memory::Memory as _;
use clr_walker::registers::Registers;
use clr_walker::unwind::Position;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use serde::Serialize;
use std::io::{self, Write};

/// The longest instruction in bytes.
const LONGEST: usize = 15;

/// How far a call indents its callee.
const INDENT: usize = 2;

/// The deepest call that is indented further than its caller.
const DEEPEST: usize = 8;

/// What a thread is about to do.
pub(super) struct State {
    /// How many instructions it has executed.
    pub(super) executed: u64,
    pub(super) registers: Registers,
    /// The function that it is in.
    pub(super) function: Option<FunctionId>,
    /// Its frames, innermost first.
    pub(super) frames: Vec<TrueFrame>,
    pub(super) instruction: Instruction,
}

impl State {
    pub(super) fn of(run: &Run<'_>) -> Self {
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

    /// The CFA of the innermost frame.
    pub(super) fn cfa(&self) -> u64 {
        self.frames.first().map_or(0, |frame| frame.cfa)
    }
}

/// A line of a trace.
#[derive(Serialize)]
pub(super) struct Row {
    kind: &'static str,
    number: u64,
    address: Hex,
    function: Option<String>,
    offset: Option<i64>,
    /// How many calls it is away from the caller outside.
    depth: usize,
    role: Option<&'static str>,
    text: String,
    /// What it does to the frame.
    effect: String,
    rsp: Hex,
    cfa: Hex,
    windows: Vec<Mistaken>,
    pub(super) stops: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stack: Option<Vec<StackLine>>,
    #[serde(skip)]
    location: String,
}

/// A frame that Windows' rules are known to unwind wrongly.
#[derive(Serialize)]
struct Mistaken {
    /// 0 is the innermost one.
    frame: usize,
    function: String,
    mistake: &'static str,
}

impl Row {
    /// All but the effect, for that is known afterwards.
    pub(super) fn new(state: &State, run: &Run<'_>, stops: Vec<usize>, names: Names<'_>) -> Self {
        let rip = state.registers.rip;
        let found = names.find(rip, Position::Interrupted);
        let windows = state.frames.iter().enumerate().filter_map(|(index, frame)| {
            let rip = frame.registers.rip;
            let mistake = run.linked().windows_mistake(rip, frame.position)?;
            let function = frame.function.map_or(HELPER, |id| names.function(id)).to_owned();
            Some(Mistaken { frame: index, function, mistake: program::mistake(mistake) })
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
            stops,
            stack: None,
            location: names.location(rip, Position::Interrupted),
        }
    }

    /// The effect, now that it is known.
    pub(super) fn finish(
        &mut self,
        before: &State,
        run: &Run<'_>,
        outcome: Result<(), Outcome>,
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

    /// The mistakes of Windows, by the frame counted from the outermost one.
    pub(super) fn mistakes(&self) -> Vec<(usize, &'static str)> {
        let outer = |mistaken: &Mistaken| self.depth.wrapping_sub(mistaken.frame);
        self.windows.iter().map(|mistaken| (outer(mistaken), mistaken.mistake)).collect()
    }

    /// The name of the function of a frame counted from the outermost one.
    pub(super) fn mistaken_function(&self, outer: usize) -> &str {
        let own = self.windows.iter().find(|m| self.depth.wrapping_sub(m.frame) == outer);
        own.map_or("", |mistaken| &mistaken.function)
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { number, effect, text, .. } = self;
        let mark = if self.windows.is_empty() { ' ' } else { '!' };
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

/// The end of a trace.
#[derive(Serialize)]
pub(super) struct End {
    kind: &'static str,
    pub(super) number: u64,
    outcome: String,
    pub(super) stops: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stack: Option<Vec<StackLine>>,
}

impl End {
    pub(super) fn new(
        run: &Run<'_>,
        outcome: Outcome,
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
