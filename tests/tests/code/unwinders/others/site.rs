//! A frame with the facts that explain mistakes.

use super::*;
use clr_codegen::{
    CodeKind, FrameRegister, FrameSet, Function, FunctionShape, PlacedInstruction, UnwindData,
};
use clr_unwind::Memory as _;

/// A frame of a program's run.
pub(crate) struct Site<'a> {
    pub(crate) program: &'a Program,
    pub(crate) linked: &'a LinkedProgram,
    pub(crate) memory: &'a Machine,
    pub(crate) rip: u64,
    pub(crate) position: Position,
    /// True if a step of pe-unwind-info from this frame fails.
    pub(crate) pe_unwind_info_fails: bool,
}

impl<'a> Site<'a> {
    /// Returns the next instruction, or the call that the frame is in.
    pub(crate) fn placed(&self) -> Option<&'a PlacedInstruction> {
        self.linked.instruction(match self.position {
            Position::Interrupted => self.rip,
            Position::ReturnAddress => self.rip - 1,
        })
    }

    fn function(&self) -> Option<&'a Function> {
        self.program.functions.get(self.placed()?.function?.index())
    }

    fn shape(&self) -> Option<&'a FunctionShape> {
        Some(&self.function()?.shape)
    }

    /// Returns true if the function has EPILOG codes.
    pub(crate) fn has_epilog_codes(&self) -> bool {
        self.shape().is_some_and(|shape| shape.unwind == UnwindData::Version2)
    }

    /// Returns true if the function has unwind data of version 3.
    pub(crate) fn has_version_3(&self) -> bool {
        self.shape().is_some_and(|shape| shape.unwind == UnwindData::Version3)
    }

    /// Returns the RVA after the part that contains rip.
    pub(crate) fn end_rva(&self) -> Option<u64> {
        let kind = self.function()?.kind;
        let part = self.linked.part(self.placed()?.address)?;
        let unit = self.linked.units.iter().find(|unit| unit.kind == kind)?;
        Some(part.end - unit.base)
    }

    /// Returns true if the image has no function with unwind data.
    pub(crate) fn lacks_table(&self) -> bool {
        self.function().map(|function| function.kind).is_some_and(|kind| {
            let described = |f: &Function| f.kind == kind && f.shape.unwind != UnwindData::None;
            kind != CodeKind::Jit && !self.program.functions.iter().any(described)
        })
    }

    /// Returns true if the function saves `register` by mov.
    pub(crate) fn saves(&self, register: Gpr) -> bool {
        self.shape().is_some_and(|shape| shape.saves.contains(&register))
    }

    /// Returns true if the function saves `register` in its caller's home space.
    pub(crate) fn has_home(&self, register: Gpr) -> bool {
        self.shape().is_some_and(|shape| shape.home.contains(&Some(register)))
    }

    /// Returns the frame register that the unwind data names.
    pub(crate) fn frame_register(&self) -> Option<FrameRegister> {
        self.shape()?.frame.filter(|frame| frame.described)
    }

    /// Returns true if rip is in a prologue that sets a described frame register after the saves.
    pub(crate) fn precedes_frame(&self) -> bool {
        let late = |frame: FrameRegister| frame.set == FrameSet::AfterSaves;
        self.is_interrupted(Role::Prologue) && self.frame_register().is_some_and(late)
    }

    /// Returns true if the frame is interrupted before an instruction of this role.
    pub(crate) fn is_interrupted(&self, role: Role) -> bool {
        self.position == Position::Interrupted && self.placed().is_some_and(|p| p.role == role)
    }

    /// Returns the bytes of the next instruction, or of the call that the frame is in.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.placed().map(|placed| self.bytes_of(placed)).unwrap_or_default()
    }

    fn bytes_of(&self, placed: &PlacedInstruction) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(placed.len)];
        self.memory.read(placed.address, &mut bytes).unwrap();
        bytes
    }

    /// Returns the remaining instructions of the epilogue that contains rip; the last one leaves
    /// the function.
    pub(crate) fn epilogue(&self) -> Vec<Vec<u8>> {
        let mut epilogue = Vec::new();
        if self.is_interrupted(Role::Epilogue) {
            let all = &self.linked.instructions;
            let first = all.partition_point(|placed| placed.address < self.rip);
            for placed in all[first..].iter().take_while(|placed| placed.role == Role::Epilogue) {
                let bytes = self.bytes_of(placed);
                let leaves = matches!(
                    bytes[..],
                    [0xC3 | 0xC2 | 0xE9 | 0xFF, ..]
                        | [0xF2 | 0xF3, 0xC3]
                        | [0x48, 0xC3 | 0xFF | 0xCF, ..]
                );
                epilogue.push(bytes);
                if leaves {
                    break;
                }
            }
        }
        epilogue
    }

    /// Returns the instruction that leaves the function, if rip is in an epilogue.
    pub(crate) fn way_out(&self) -> Vec<u8> {
        self.epilogue().pop().unwrap_or_default()
    }
}
