//! The stack of a thread, slot by slot.

use crate::input::program::{Names, OUTSIDE};
use crate::render::console::{DIM, HEAD};
use crate::render::unwind_data::Hex;
use clr_codegen::execution::Execution;
use clr_codegen::stack_layout::{StackArea, TrueFrame};
use clr_codegen::{MachineWord, SlotRole};
use clr_unwind::{CodeMap, Gpr, Memory as _, Position};
use serde::Serialize;
use std::io::{self, Write};

/// Size of a slot in bytes.
const SLOT: u64 = 8;

/// Largest number of equal slots that are drawn one by one; of more, only the first is.
const MOST_SLOTS: u64 = 2;

/// Smallest width of the column of names.
const NARROWEST: usize = 8;

/// A slot, or several slots with the same role.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct StackLine {
    address: Hex,
    len: u64,
    /// Value of the first slot; `None` if nothing is mapped.
    value: Option<Hex>,
    /// The function of the slot's frame.
    frame: String,
    role: String,
    /// The registers that point to the slot.
    pointing: Vec<&'static str>,
}

/// Returns the slots from rsp up.
pub(super) fn lines(run: &Execution<'_>, map: &CodeMap<'_>, names: Names<'_>) -> Vec<StackLine> {
    let frames = run.frames();
    let drawing = Drawing { run, frames: &frames, names };
    let areas = run.stack(&names.scenario.program, map);
    areas.iter().flat_map(|area| drawing.area(area)).collect()
}

struct Drawing<'d, 'r> {
    run: &'d Execution<'r>,
    frames: &'d [TrueFrame],
    names: Names<'d>,
}

impl Drawing<'_, '_> {
    fn area(&self, area: &StackArea) -> Vec<StackLine> {
        let slots = area.len / SLOT;
        let differ = area.role == SlotRole::Counters;
        if differ || slots <= MOST_SLOTS {
            return (0..slots).map(|slot| self.line(area, slot, 1)).collect();
        }
        vec![self.line(area, 0, 1), self.line(area, 1, slots - 1)]
    }

    fn line(&self, area: &StackArea, slot: u64, count: u64) -> StackLine {
        let address = area.address.wrapping_add(SLOT * slot);
        let value = self.run.machine().read_u64(address).ok();
        let registers = self.run.machine().cpu().registers();
        let pointing = Gpr::ALL.into_iter().filter(|own| registers.get(*own) == address);
        StackLine {
            address: address.into(),
            len: SLOT * count,
            value: value.map(Hex::from),
            frame: self.name(area.frame),
            role: self.role(area, slot, value.unwrap_or_default()),
            pointing: pointing.map(Gpr::name).collect(),
        }
    }

    /// Returns the name of a frame's function.
    fn name(&self, frame: usize) -> String {
        match self.frames.get(frame) {
            None => "outside".to_owned(),
            Some(frame) => match frame.function {
                Some(id) => self.names.function(id).to_owned(),
                None => self.location(frame.registers.rip, frame.position),
            },
        }
    }

    fn location(&self, rip: u64, position: Position) -> String {
        self.names.location(rip, position)
    }

    fn role(&self, area: &StackArea, slot: u64, value: u64) -> String {
        let caller = || match self.frames.get(area.frame + 1) {
            Some(_) => self.name(area.frame + 1),
            None => OUTSIDE.to_owned(),
        };
        match area.role {
            SlotRole::ReturnAddress => {
                format!("return address into {}", self.location(value, Position::ReturnAddress))
            }
            SlotRole::Machine(word) => match word {
                MachineWord::ErrorCode => "error code".to_owned(),
                MachineWord::Rip => {
                    let place = self.location(value, Position::Interrupted);
                    format!("machine frame: rip {place}")
                }
                MachineWord::Cs => "machine frame: cs".to_owned(),
                MachineWord::Rflags => "machine frame: rflags".to_owned(),
                MachineWord::Rsp => "machine frame: rsp".to_owned(),
                MachineWord::Ss => "machine frame: ss".to_owned(),
            },
            SlotRole::Saved(register) => format!("saved {} of {}", register.name(), caller()),
            SlotRole::SavedXmm(n) => {
                let half = if slot == 0 { "low" } else { "high" };
                format!("saved xmm{n} of {}, {half} half", caller())
            }
            SlotRole::NotYet(register) => format!("for {}, not saved yet", register.name()),
            SlotRole::NotYetXmm(n) => format!("for xmm{n}, not saved yet"),
            SlotRole::Pushed(register) => format!("pushed {}, which takes space", register.name()),
            SlotRole::Argument(register) => format!("argument {}", register.name()),
            SlotRole::HomeSpace => "home space".to_owned(),
            SlotRole::Establisher => "establisher frame for funclets".to_owned(),
            SlotRole::Counters => "loop counter".to_owned(),
            SlotRole::RegionSaves => "for saves of a region".to_owned(),
            SlotRole::Locals => "local".to_owned(),
            SlotRole::Padding => "padding".to_owned(),
            SlotRole::Dynamic => "dynamic stack".to_owned(),
            SlotRole::Helper => "pushed by the helper".to_owned(),
        }
    }
}

/// Draws the slots.
pub(super) fn write(lines: &[StackLine], out: &mut dyn Write) -> io::Result<()> {
    let width = lines.iter().map(|line| line.frame.chars().count()).max().unwrap_or(0);
    let width = width.max(NARROWEST);
    let indent = lines.iter().map(|line| line.address.to_string().len()).max().unwrap_or(0);
    for line in lines {
        let StackLine { address, len, frame, role, .. } = line;
        if *len > SLOT {
            writeln!(out, "    {:indent$}  {DIM}… {len:#x} bytes more{DIM:#}", "")?;
            continue;
        }
        let value = line.value.map_or_else(|| "not mapped".to_owned(), |v| format!("{v:>18}"));
        let pointing = if line.pointing.is_empty() {
            String::new()
        } else {
            format!("  {HEAD}<- {}{HEAD:#}", line.pointing.join(", "))
        };
        writeln!(out, "    {address:indent$}  {value:18}  {frame:width$}  {role}{pointing}")?;
    }
    Ok(())
}
