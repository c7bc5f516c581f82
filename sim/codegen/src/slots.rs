//! The purpose of each part of a frame.

use super::layout::FrameLayout;
use super::link::LinkedProgram;
use super::marks::Role;
use super::program::{Function, FunctionIndex, Program, Statement};
use super::shape::{CallingConvention, EntryForm, Realign};
use clr_unwind::{CodeMap, Gpr, Position};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// A word of the machine frame that a processor pushes for an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as the processor's manual names them")]
pub enum MachineWord {
    ErrorCode,
    Rip,
    Cs,
    Rflags,
    Rsp,
    Ss,
}

/// The purpose of a part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotRole {
    /// The return address.
    ReturnAddress,
    /// A word of the machine frame of an interrupt.
    Machine(MachineWord),
    /// The caller's value of a register.
    Saved(Gpr),
    /// The caller's value of a vector register.
    SavedXmm(u8),
    /// The slot for a register that is not saved yet.
    NotYet(Gpr),
    /// The slot for a vector register that is not saved yet.
    NotYetXmm(u8),
    /// A volatile register, pushed to take space.
    Pushed(Gpr),
    /// An argument in its home slot.
    Argument(Gpr),
    /// Home space for callees.
    HomeSpace,
    /// The slot from which funclets find the frame (PSPSym).
    Establisher,
    /// Counters of loops.
    Counters,
    /// A slot in which a region saves a register; in the current region, only until the register is
    /// saved.
    RegionSaves,
    /// Locals.
    Locals,
    /// Padding that keeps the rest aligned.
    Padding,
    /// Dynamic stack allocated by the body.
    Dynamic,
    /// The frame of a helper, which has no description.
    Helper,
}

/// A part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Offset of the first byte from the CFA (the caller's rsp), in bytes.
    pub offset: i64,
    /// Size in bytes.
    pub len: u32,
    /// Purpose.
    pub role: SlotRole,
}

/// The parts of a frame after its prologue, ascending by offset, without gaps up to the CFA. Above
/// the CFA only those home slots of the caller follow that the function uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameSlots {
    /// Parts of the frame.
    pub slots: Vec<Slot>,
    /// Size in bytes of the home space for callees, which is at rsp wherever rsp is.
    pub outgoing: u32,
}

impl FrameSlots {
    /// Returns the parts of a frame of a function, or of one of its funclets, at `rip` (VA).
    /// Returns `None` if the function realigns its stack.
    pub fn new(
        program: &Program,
        linked: &LinkedProgram,
        map: &CodeMap<'_>,
        id: FunctionIndex,
        is_funclet: bool,
        (rip, position): (u64, Position),
    ) -> Option<Self> {
        let function = program.functions.get(id.index())?;
        if function.shape.realign != Realign::No {
            // The distances from the CFA differ from call to call.
            return None;
        }
        let layout = FrameLayout::new(function, program.convention);
        let mut frame = Builder::new(function, &layout, program.convention);
        if is_funclet {
            frame.funclet();
        } else {
            frame.function();
        }
        let mut slots = frame.finish();
        if let Some(saved) = linked.saved_before(map, rip, position) {
            for slot in &mut slots {
                match slot.role {
                    SlotRole::Saved(register) if !saved.contains(&by_name(register)) => {
                        slot.role = SlotRole::NotYet(register);
                    }
                    SlotRole::SavedXmm(n) if !saved.contains(&xmm(n)) => {
                        slot.role = SlotRole::NotYetXmm(n);
                    }
                    _ => {}
                }
            }
        }
        if !is_funclet {
            let frame = layout.frame_register(&function.shape);
            let bottom = i64::from(layout.cfa());
            for (register, base, disp) in linked.saved_in_region(map, rip, position) {
                // Offsets count from the value of rsp after the fixed allocation.
                let at = match frame {
                    Some((register, distance)) if base == by_name(register) => {
                        disp + i64::from(distance)
                    }
                    _ => disp,
                };
                let is_here = |slot: &&mut Slot| {
                    slot.role == SlotRole::RegionSaves && slot.offset == at - bottom
                };
                if let Some(slot) = slots.iter_mut().find(is_here) {
                    slot.role = SlotRole::Saved(register);
                }
            }
        }
        Some(Self { slots, outgoing: layout.outgoing })
    }

    /// Returns the offset from the CFA of the lowest byte of the frame after its prologue.
    pub fn bottom(&self) -> i64 {
        self.slots.first().map_or(0, |slot| slot.offset)
    }
}

impl LinkedProgram {
    /// Returns the registers that the prologue has stored or pushed in a frame at `rip` (VA), or
    /// `None` after the prologue.
    fn saved_before(
        &self,
        map: &CodeMap<'_>,
        rip: u64,
        position: Position,
    ) -> Option<Vec<Register>> {
        let inside = inside(rip, position);
        self.instruction(inside).filter(|placed| placed.role == Role::Prologue)?;
        let begin = self.part(inside)?.begin;
        let done = self.decoded(map, begin, rip).filter_map(|instruction| {
            let pushes = instruction.mnemonic() == Mnemonic::Push
                && instruction.op0_kind() == OpKind::Register;
            match (pushes, stores(&instruction)) {
                (true, _) => Some(instruction.op0_register()),
                (_, true) => Some(instruction.op1_register()),
                _ => None,
            }
        });
        Some(done.collect())
    }

    /// Returns the registers that the region around a frame's rip has saved so far, each with the
    /// base and the displacement of its slot. Only a region's part begins with stores of registers.
    fn saved_in_region(
        &self,
        map: &CodeMap<'_>,
        rip: u64,
        position: Position,
    ) -> Vec<(Gpr, Register, i64)> {
        let part = self.part(inside(rip, position)).filter(|part| part.begin != part.root);
        let begin = part.map_or(rip, |part| part.begin);
        let saves = self.decoded(map, begin, rip).take_while(stores).filter_map(|instruction| {
            let own = |register: &Gpr| by_name(*register) == instruction.op1_register();
            let register = Gpr::ALL.into_iter().find(own)?;
            let disp = instruction.memory_displacement64().cast_signed();
            Some((register, instruction.memory_base(), disp))
        });
        saves.collect()
    }

    /// Decodes the instructions from `begin` up to `end` (VAs).
    fn decoded<'a>(
        &'a self,
        map: &'a CodeMap<'_>,
        begin: u64,
        end: u64,
    ) -> impl Iterator<Item = Instruction> + 'a {
        let index = |address| self.instructions.partition_point(|placed| placed.address < address);
        let placed = self.instructions.get(index(begin)..index(end)).unwrap_or_default();
        let bytes = map.find(begin).and_then(|(region, rva)| region.bytes_from(rva));
        placed.iter().filter_map(move |placed| {
            let from = usize::try_from(placed.address - begin).ok()?;
            let bytes = bytes?.get(from..)?;
            Some(Decoder::with_ip(64, bytes, placed.address, DecoderOptions::NONE).decode())
        })
    }
}

/// Returns an address inside the instruction that a frame is in.
const fn inside(rip: u64, position: Position) -> u64 {
    match position {
        Position::Interrupted => rip,
        Position::ReturnAddress => rip.wrapping_sub(1),
    }
}

/// Returns true if an instruction stores a register.
fn stores(instruction: &Instruction) -> bool {
    instruction.op_count() > 1
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register
}

fn by_name(register: Gpr) -> Register {
    Register::RAX + u32::from(register.number())
}

fn xmm(number: u8) -> Register {
    Register::XMM0 + u32::from(number)
}

/// Builder of a frame's slots. Offsets count from the value of rsp after the fixed allocation.
struct Builder<'f> {
    function: &'f Function,
    layout: &'f FrameLayout,
    convention: CallingConvention,
    slots: Vec<(u32, u32, SlotRole)>,
    /// The offset of the CFA.
    cfa: u32,
}

impl<'f> Builder<'f> {
    const fn new(
        function: &'f Function,
        layout: &'f FrameLayout,
        convention: CallingConvention,
    ) -> Self {
        Self { function, layout, convention, slots: Vec::new(), cfa: layout.cfa() }
    }

    fn put(&mut self, at: u32, len: u32, role: SlotRole) {
        if len > 0 {
            self.slots.push((at, len, role));
        }
    }

    fn function(&mut self) {
        let Self { function, layout, .. } = *self;
        let shape = &function.shape;
        self.put(0, layout.outgoing, SlotRole::HomeSpace);
        if let Some(psp) = layout.psp {
            self.put(psp, 8, SlotRole::Establisher);
        }
        self.put(layout.counters, layout.region_saves - layout.counters, SlotRole::Counters);
        for n in 0..region_saves(&function.body) {
            self.put(layout.region_saves + 8 * n, 8, SlotRole::RegionSaves);
        }
        self.put(layout.locals, shape.locals, SlotRole::Locals);
        for &(register, at) in &layout.saves {
            self.put(at, 8, SlotRole::Saved(register));
        }
        for &(n, at) in &layout.xmm_saves {
            self.put(at, 16, SlotRole::SavedXmm(n));
        }
        self.pushes(layout.allocation);
        let entry = layout.allocation + layout.pushed;
        self.entry(entry, shape.entry);
        for (slot, register) in (0..).zip(shape.home) {
            let Some(register) = register else { continue };
            let role = if self.convention.is_nonvolatile(register) {
                SlotRole::Saved(register)
            } else {
                SlotRole::Argument(register)
            };
            self.put(layout.home(slot), 8, role);
        }
    }

    /// Adds the slots of a funclet, which pushes the same registers as its function and keeps the
    /// function's establisher frame.
    fn funclet(&mut self) {
        let layout = self.layout;
        let establisher = layout.psp.unwrap_or(0);
        let allocation = layout.funclet_allocation();
        self.cfa = allocation + layout.pushed + 8;
        self.put(0, layout.outgoing, SlotRole::HomeSpace);
        self.put(establisher, 8, SlotRole::Establisher);
        self.pushes(allocation);
        self.entry(allocation + layout.pushed, EntryForm::Call);
    }

    fn pushes(&mut self, allocation: u32) {
        let shape = &self.function.shape;
        let mut at = allocation;
        let pushes: Vec<Gpr> = shape.all_pushes(self.convention).rev().collect();
        for register in pushes {
            let kept = shape.entry.has_machine_frame() || self.convention.is_nonvolatile(register);
            let role = if kept { SlotRole::Saved(register) } else { SlotRole::Pushed(register) };
            self.put(at, 8, role);
            at += 8;
        }
    }

    fn entry(&mut self, at: u32, entry: EntryForm) {
        use MachineWord::{Cs, ErrorCode, Rflags, Rip, Rsp, Ss};
        let words: &[MachineWord] = match entry {
            EntryForm::Call | EntryForm::Signal => return self.put(at, 8, SlotRole::ReturnAddress),
            EntryForm::Interrupt => &[Rip, Cs, Rflags, Rsp, Ss],
            EntryForm::InterruptWithErrorCode => &[ErrorCode, Rip, Cs, Rflags, Rsp, Ss],
        };
        for (word, at) in words.iter().zip((at..).step_by(8)) {
            self.put(at, 8, SlotRole::Machine(*word));
        }
    }

    /// Returns the parts with padding between them.
    fn finish(mut self) -> Vec<Slot> {
        self.slots.sort_by_key(|(at, ..)| *at);
        let origin = i64::from(self.cfa);
        let mut slots = Vec::new();
        let mut end = 0;
        for (at, len, role) in self.slots {
            if at > end && end < self.cfa {
                let len = at - end;
                slots.push(Slot { offset: i64::from(end) - origin, len, role: SlotRole::Padding });
            }
            slots.push(Slot { offset: i64::from(at) - origin, len, role });
            end = at + len;
        }
        slots
    }
}

fn region_saves(body: &[Statement]) -> u32 {
    let saves = |statement: &Statement| match statement {
        Statement::Region(registers, _) => registers.len() as u32,
        _ => 0,
    };
    body.iter().map(|statement| statement.sum(&saves)).sum()
}
