//! Programs, and names for their addresses.

use crate::input::Source;
use crate::render::console::HEAD;
use crate::render::error::CliError;
use crate::render::wrap::{narrow, wrapped};
use clr_codegen::execution::BASE;
use clr_codegen::{CfiMistake, FunctionIndex, LinkError, LinkedProgram, Role, WindowsMistake};
use clr_scenario::{LineColumn as Place, MixedAt, NodePlaces, Scenario, SnapshotAt, SourceMap};
use clr_unwind::Position;
use iced_x86::{Instruction, OpKind};
use std::io::{self, Write};

/// Name of the caller outside the program.
pub(crate) const OUTSIDE: &str = "the caller outside";

/// Name of the only helper that programs of Windows call.
pub(crate) const HELPER: &str = "___chkstk_ms";

impl Source {
    /// Writes the name of a text, and what it shows.
    pub(crate) fn write_head(&self, scenario: &Scenario, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEAD}{}{HEAD:#}", self.name)?;
        let shows = scenario.about.shows.as_deref().unwrap_or_default();
        for line in wrapped(shows, narrow() - 2).iter().filter(|line| !line.is_empty()) {
            writeln!(out, "  {line}")?;
        }
        Ok(())
    }
}

/// A text with the places of its parts.
pub(crate) struct ProgramFixture {
    /// The parsed text.
    pub(crate) scenario: Scenario,
    /// The text as it was read.
    pub(crate) text: String,
    /// Places of its parts.
    places: SourceMap,
}

impl ProgramFixture {
    /// Reads and parses a text.
    pub(crate) fn read(source: &Source) -> Result<Self, CliError> {
        if !source.is_program() {
            return Err(source.error("is not a scenario: *.kdl"));
        }
        let text = source.read_text()?;
        let (scenario, places) = Scenario::parse_with_places(&text)
            .map_err(|error| error.with_name(source.name.clone()))?;
        Ok(Self { scenario, text, places })
    }

    /// Links the program for a command that works without a runtime.
    pub(crate) fn link(&self, source: &Source, command: &str) -> Result<LinkedProgram, CliError> {
        if self.scenario.stack.is_some() {
            let what = format!("is a stack placed by hand, and clrsim {command} is for programs");
            return Err(source.error(format_args!("{what}: {}", self.commands())));
        }
        self.scenario.program.link().map_err(|error| match error {
            LinkError::NeedsRuntime { function } => source.error(format_args!(
                "its function {} goes through the runtime, and clrsim {command} is for programs \
                 without one: {}",
                self.scenario.function_name(function).unwrap_or("?"),
                self.commands()
            )),
            error => source.error(error),
        })
    }

    /// Returns the commands that show something of the text, in words.
    pub(crate) fn commands(&self) -> String {
        let scenario = &self.scenario;
        let is_stack = scenario.stack.is_some();
        let is_bare = !is_stack && scenario.program.link().is_ok();
        let has_snapshots = scenario.snapshots().next().is_some();
        let all = [
            ("matrix", has_snapshots),
            ("explain", has_snapshots),
            ("compare", is_stack || !scenario.stops.is_empty()),
            ("trace", is_bare),
            ("replay --draw", !is_stack && !is_bare),
        ];
        let names = all.into_iter().filter(|(_, works)| *works);
        let names: Vec<_> = names.map(|(name, _)| format!("clrsim {name}")).collect();
        match names.as_slice() {
            [] => "add a snapshot to it, and use clrsim matrix".to_owned(),
            [name] => format!("use {name}"),
            [names @ .., last] => format!("use {} or {last}", names.join(", ")),
        }
    }

    /// Returns line and column of a snapshot, or of one of its expectations.
    pub(crate) fn snapshot_place(
        &self,
        at: SnapshotAt<'_>,
        expectation: Option<usize>,
    ) -> Option<Place> {
        place(&self.places.snapshots, self.scenario.snapshot_index(&at), expectation)
    }

    /// Returns line and column of a mixed walk, or of one of its expectations.
    pub(crate) fn mixed_place(&self, at: MixedAt<'_>, expectation: Option<usize>) -> Option<Place> {
        let same = |it: MixedAt<'_>| (it.stop, it.walk) == (at.stop, at.walk);
        let index = self.scenario.mixed_walks().position(same)?;
        place(&self.places.mixed_walks, index, expectation)
    }

    /// Returns line and column of a search of interleavings, or of one of its expectations.
    pub(crate) fn explore_place(&self, explore: usize, expectation: usize) -> Option<Place> {
        place(&self.places.searches, explore, Some(expectation))
    }

    /// Returns line and column of a stop, or of one of its expectations.
    pub(crate) fn place(&self, stop: usize, expectation: Option<usize>) -> Option<Place> {
        place(&self.places.stops, stop, expectation)
    }
}

/// Returns the place of a node, or of one of its expectations.
fn place(places: &[NodePlaces], index: usize, expectation: Option<usize>) -> Option<Place> {
    let places = places.get(index)?;
    let own = expectation.and_then(|index| places.expect.get(index));
    Some(*own.unwrap_or(&places.node))
}

/// Names for the addresses of a linked program.
#[derive(Clone, Copy)]
pub(crate) struct Names<'n> {
    pub(crate) scenario: &'n Scenario,
    pub(crate) linked: &'n LinkedProgram,
}

impl<'n> Names<'n> {
    /// Returns the name of a function.
    pub(crate) fn function(&self, id: FunctionIndex) -> &'n str {
        self.scenario.function_name(id).unwrap_or("?")
    }

    /// Returns the name of a function with an offset in bytes.
    pub(crate) fn with_offset(&self, id: FunctionIndex, offset: i64) -> String {
        let name = self.function(id);
        match offset {
            0 => name.to_owned(),
            offset if offset < 0 => format!("{name}-{:#x}", offset.unsigned_abs()),
            offset => format!("{name}+{offset:#x}"),
        }
    }

    /// Returns the function at an address (VA) and the offset in bytes from its start.
    pub(crate) fn find(&self, rip: u64, position: Position) -> Option<(FunctionIndex, i64)> {
        let id = self.linked.function_of(rip, position)?;
        let entry = self.linked.entries.get(id.index())?;
        Some((id, rip.wrapping_sub(*entry).cast_signed()))
    }

    /// Returns the name of an address (VA).
    pub(crate) fn location(&self, rip: u64, position: Position) -> String {
        if rip == BASE {
            return OUTSIDE.to_owned();
        }
        match self.find(rip, position) {
            Some((id, offset)) => self.with_offset(id, offset),
            None => self.helper(rip).unwrap_or_else(|| format!("{rip:#x}")),
        }
    }

    /// Returns the name of a place in code of no function. ELF images name their helpers; Windows'
    /// has only one.
    fn helper(&self, rip: u64) -> Option<String> {
        if let Some(helper) = self.linked.helper(rip) {
            return Some(match rip - helper.range.start {
                0 => helper.name.clone(),
                offset => format!("{}+{offset:#x}", helper.name),
            });
        }
        let instructions = &self.linked.instructions;
        let is_helper = |placed: &&clr_codegen::PlacedInstruction| placed.role == Role::Helper;
        self.linked.instruction(rip).filter(is_helper)?;
        let here = instructions.partition_point(|placed| placed.address <= rip);
        let own = instructions.get(..here)?.iter().rev().take_while(is_helper);
        let begin = own.last()?.address;
        match rip - begin {
            0 => Some(HELPER.to_owned()),
            offset => Some(format!("{HELPER}+{offset:#x}")),
        }
    }

    /// Returns an instruction in Intel syntax, with names for targets of jumps and calls.
    pub(crate) fn text(&self, instruction: &Instruction) -> String {
        let text = crate::render::code::intel(instruction);
        if instruction.op0_kind() != OpKind::NearBranch64 {
            return text;
        }
        let target = instruction.near_branch64();
        let name = self.location(target, Position::Interrupted);
        text.replace(&format!("{target:#x}"), &name)
    }
}

/// Returns the word for a role.
pub(crate) const fn role(role: Role) -> &'static str {
    match role {
        Role::Prologue => "prologue",
        Role::Body => "body",
        Role::Epilogue => "epilogue",
        Role::Helper => "helper",
    }
}

/// Returns the words for a mistake of call frame information.
pub(crate) const fn cfi_mistake(mistake: CfiMistake) -> &'static str {
    match mistake {
        CfiMistake::Cfa => "the CFA is described as an epilogue above has left it",
        CfiMistake::Registers => "registers are described as an epilogue above has left them",
    }
}

/// Returns the words for a mistake of Windows.
pub(crate) const fn mistake(mistake: WindowsMistake) -> &'static str {
    match mistake {
        WindowsMistake::ColdJump => "a jump out of a cold part passes for a tail call",
        WindowsMistake::Vzeroupper => "vzeroupper does not pass for a part of an epilogue",
        WindowsMistake::JumpWithoutRex => "jmp rax without rex.w does not pass for a tail call",
        WindowsMistake::RexReturn => "rex.w ret does not pass for a return",
        WindowsMistake::UnlistedEpilogue => "no EPILOG code lists this epilogue",
        WindowsMistake::InterruptReturn => "iretq does not pass for a return",
        WindowsMistake::Chkstk => "___chkstk_ms pushes without unwind data",
        WindowsMistake::CallAtEnd => "the return address is after the caller's end",
        WindowsMistake::FrameInR12 => "lea rsp, [r12 + disp] is read wrongly",
    }
}
