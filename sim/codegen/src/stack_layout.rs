//! Stack layout: the purpose of each part of a thread's stack, from rsp up to the caller outside
//! the program.

use crate::execution::Execution;
use crate::shadow_stack::CallerState;
use crate::{FrameSlots, FunctionIndex, LinkedProgram, Program, SIGNAL_CONTEXT, SlotRole};
use clr_unwind::{CodeMap, Position, Registers};

/// A frame according to the shadow stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrueFrame {
    /// Registers of the frame.
    pub registers: Registers,
    /// Kind of position that rip is.
    pub position: Position,
    /// Function; `None` in code that belongs to none.
    pub function: Option<FunctionIndex>,
    /// The frame is a funclet of that function.
    pub is_funclet: bool,
    /// Canonical frame address (VA): rsp before the call, or the end of the machine frame.
    pub cfa: u64,
    /// Caller of the frame.
    pub caller: CallerState,
}

/// A part of a stack that has one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackArea {
    /// First address (VA).
    pub address: u64,
    /// Size in bytes, a multiple of 8.
    pub len: u64,
    /// Index of the frame that wrote the area or reserved the space, 0 being the innermost. The
    /// number of frames stands for the caller outside the program.
    pub frame: usize,
    /// Purpose.
    pub role: SlotRole,
}

impl Execution<'_> {
    /// Returns the frames, innermost first. The caller outside the program is not among them.
    pub fn frames(&self) -> Vec<TrueFrame> {
        let mut registers = self.machine().cpu().registers();
        let mut position = Position::Interrupted;
        let mut frames = Vec::new();
        for caller in self.shadow_stack().callers().iter().rev() {
            let function = self.linked().function_of(registers.rip, position);
            let from = caller.from.and_then(|from| self.linked().instruction(from));
            frames.push(TrueFrame {
                registers,
                position,
                function,
                // Functions call only functions with higher indices.
                is_funclet: function.is_some() && from.and_then(|from| from.function) == function,
                cfa: match caller.position {
                    Position::ReturnAddress => caller.registers.rsp(),
                    // The kernel's signal frame.
                    Position::Interrupted if function.is_none() => caller.registers.rsp(),
                    // A processor aligns the stack before it pushes a machine frame.
                    Position::Interrupted => caller.registers.rsp() & !15,
                },
                caller: *caller,
            });
            (registers, position) = (caller.registers, caller.position);
        }
        frames
    }

    /// Returns the areas of the stack, innermost first. They are ascending except where the stack
    /// was switched.
    pub fn stack(&self, program: &Program, map: &CodeMap<'_>) -> Vec<StackArea> {
        let frames = self.frames();
        let mut areas = Vec::new();
        let mut homes = Vec::new();
        for (index, frame) in frames.iter().enumerate() {
            let put = Areas { frame: index, into: &mut areas, homes: &homes };
            homes = put.frame(frame, program, self, map);
        }
        if let Some(last) = frames.last() {
            let len = u64::from(program.convention.home_space());
            let mut put = Areas { frame: frames.len(), into: &mut areas, homes: &homes };
            put.home_space(last.cfa, len);
        }
        areas.dedup_by(|next, area| {
            let same = matches!(next.role, SlotRole::HomeSpace | SlotRole::Dynamic)
                && (area.role, area.frame) == (next.role, next.frame);
            let joins = same && area.address.wrapping_add(area.len) == next.address;
            if joins {
                area.len += next.len;
            }
            joins
        });
        areas
    }
}

/// Builder of a frame's areas.
struct Areas<'a> {
    frame: usize,
    into: &'a mut Vec<StackArea>,
    /// The callee's slots in the frame's home space.
    homes: &'a [(u64, SlotRole)],
}

impl Areas<'_> {
    fn put(&mut self, address: u64, len: u64, role: SlotRole) {
        if len > 0 {
            self.into.push(StackArea { address, len, frame: self.frame, role });
        }
    }

    /// Adds home space, with the callee's slots in it.
    fn home_space(&mut self, start: u64, len: u64) {
        for address in (start..start.saturating_add(len)).step_by(8) {
            let home = self.homes.iter().find(|(at, _)| *at == address);
            // Slots in the home space belong to the callee.
            let callee = self.frame.saturating_sub(1);
            let (frame, role) =
                home.map_or((self.frame, SlotRole::HomeSpace), |(_, role)| (callee, *role));
            self.into.push(StackArea { address, len: 8, frame, role });
        }
    }

    /// Adds a frame's areas. Returns its slots in its caller's home space.
    fn frame(
        mut self,
        frame: &TrueFrame,
        program: &Program,
        run: &Execution<'_>,
        map: &CodeMap<'_>,
    ) -> Vec<(u64, SlotRole)> {
        let (rsp, cfa) = (frame.registers.rsp(), frame.cfa);
        let slots = frame.function.and_then(|id| {
            let at = (frame.registers.rip, frame.position);
            FrameSlots::new(program, run.linked(), map, id, frame.is_funclet, at)
        });
        let Some(slots) = slots else {
            if frame.caller.position == Position::Interrupted {
                // For a signal on a stack of its own, only the registers saved by the kernel are
                // there.
                let len = cfa.checked_sub(rsp).unwrap_or(SIGNAL_CONTEXT.size);
                self.put(rsp, len, SlotRole::Helper);
                return Vec::new();
            }
            self.put(rsp, cfa.saturating_sub(rsp.saturating_add(8)), SlotRole::Helper);
            self.put(cfa.wrapping_sub(8), 8, SlotRole::ReturnAddress);
            return Vec::new();
        };
        let bottom = cfa.wrapping_add_signed(slots.bottom());
        let outgoing = u64::from(slots.outgoing);
        let below = bottom.saturating_sub(rsp);
        let moved = below > 0;
        let other_stack = below > run.linked().stack_stride;
        if moved && !other_stack {
            self.home_space(rsp, outgoing.min(below));
            self.put(rsp + outgoing.min(below), below - outgoing.min(below), SlotRole::Dynamic);
        } else if other_stack {
            let is_calling = frame.position == Position::ReturnAddress;
            self.home_space(rsp, if is_calling { outgoing } else { 0 });
        }
        let mut homes = Vec::new();
        for slot in &slots.slots {
            let address = cfa.wrapping_add_signed(slot.offset);
            let len = u64::from(slot.len);
            match slot.role {
                role if slot.offset >= 0 => homes.push((address, role)),
                // Already released or not allocated yet.
                _ if address.saturating_add(len) <= rsp => {}
                SlotRole::HomeSpace if moved && !other_stack => {
                    self.put(address, len, SlotRole::Dynamic);
                }
                SlotRole::HomeSpace if other_stack => self.put(address, len, SlotRole::HomeSpace),
                SlotRole::HomeSpace => {
                    let start = address.max(rsp);
                    self.home_space(start, address + len - start);
                }
                role => {
                    let start = address.max(rsp);
                    self.put(start, address + len - start, role);
                }
            }
        }
        homes
    }
}

impl LinkedProgram {
    /// Returns the address of one of a function's instructions, counted by address from 0 (VA).
    pub fn instruction_of(&self, function: FunctionIndex, index: u32) -> Option<u64> {
        let own = self.instructions.iter().filter(|placed| placed.function == Some(function));
        own.map(|placed| placed.address).nth(index as usize)
    }

    /// Returns the function of a frame at `rip` (VA). A return address counts as part of the call
    /// before it.
    pub fn function_of(&self, rip: u64, position: Position) -> Option<FunctionIndex> {
        let inside = match position {
            Position::Interrupted => rip,
            Position::ReturnAddress => rip.wrapping_sub(1),
        };
        self.instruction(inside)?.function
    }
}
