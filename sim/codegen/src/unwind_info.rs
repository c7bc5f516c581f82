//! Encoder of UNWIND_INFO, versions 1 and 2, from a prologue's operations (contract §8.1).

use clr_unwind::Gpr;

/// An operation of a prologue that an unwind code can describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A push of a register.
    Push(Gpr),
    /// An allocation: rsp is lowered by N bytes.
    Allocate(u32),
    /// The frame register is set.
    SetFrame,
    /// A register is saved at an offset in bytes above the frame base.
    Save(Gpr, u32),
    /// A vector register is saved at an offset in bytes above the frame base.
    SaveXmm(u8, u32),
    /// The processor pushes a machine frame, with an error code if true.
    MachineFrame(bool),
}

/// An operation that the instructions up to `offset` bytes after the function's start have
/// performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnwindCode {
    pub offset: u8,
    pub operation: Operation,
}

/// The EPILOG codes of version 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Epilogs {
    /// Size of each epilogue from its first pop to its end, in bytes.
    pub size: u8,
    /// One of the epilogues is at the function's end.
    pub at_end: bool,
    /// Distances in bytes from the starts of the other epilogues to the function's end: at most
    /// 4095.
    pub distances: Vec<u16>,
}

/// The data after the unwind codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Trailer {
    #[default]
    Nothing,
    /// The RVA of a language-specific handler.
    Handler(u32),
    /// The RUNTIME_FUNCTION that this one is chained to: begin, end, UNWIND_INFO (RVAs).
    Chained([u32; 3]),
}

/// An UNWIND_INFO structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnwindInfo {
    pub version: u8,
    pub prologue_size: u8,
    /// The frame register and its offset in units of 16 bytes.
    pub frame: Option<(Gpr, u8)>,
    pub epilogs: Option<Epilogs>,
    /// The prologue's operations, in order.
    pub codes: Vec<UnwindCode>,
    pub trailer: Trailer,
}

const EHANDLER_AND_UHANDLER: u8 = 3;
const CHAININFO: u8 = 4;

impl UnwindInfo {
    /// Returns the encoded bytes, a multiple of 4, or `None` with more than 255 slots of unwind
    /// codes.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let mut slots = Vec::new();
        if let Some(epilogs) = &self.epilogs {
            slots.push([epilogs.size, 6 | u8::from(epilogs.at_end) << 4]);
            for distance in &epilogs.distances {
                let [low, high] = distance.to_le_bytes();
                slots.push([low, 6 | high << 4]);
            }
            // The list takes an even number of slots.
            if slots.len() % 2 == 1 {
                slots.push([0, 6]);
            }
        }
        for code in self.codes.iter().rev() {
            code.encode(&mut slots);
        }
        let flags = match self.trailer {
            Trailer::Nothing => 0,
            Trailer::Handler(_) => EHANDLER_AND_UHANDLER,
            Trailer::Chained(_) => CHAININFO,
        };
        let frame = self.frame.map_or(0, |(register, offset)| register.number() | offset << 4);
        let count = u8::try_from(slots.len()).ok()?;
        let mut bytes = vec![self.version | flags << 3, self.prologue_size, count, frame];
        if slots.len() % 2 == 1 {
            slots.push([0, 0]);
        }
        bytes.extend(slots.into_iter().flatten());
        match self.trailer {
            Trailer::Nothing => {}
            Trailer::Handler(rva) => bytes.extend(rva.to_le_bytes()),
            Trailer::Chained(entry) => bytes.extend(entry.into_iter().flat_map(u32::to_le_bytes)),
        }
        Some(bytes)
    }
}

impl UnwindCode {
    fn encode(self, slots: &mut Vec<[u8; 2]>) {
        let mut code = |operation: u8, info: u8| slots.push([self.offset, operation | info << 4]);
        match self.operation {
            Operation::Push(register) => code(0, register.number()),
            Operation::Allocate(bytes) if bytes <= 128 => {
                code(2, (bytes / 8).wrapping_sub(1) as u8);
            }
            Operation::Allocate(bytes) => {
                let scaled = u16::try_from(bytes / 8);
                code(1, u8::from(scaled.is_err()));
                operand(scaled.ok(), bytes, slots);
            }
            Operation::SetFrame => code(3, 0),
            Operation::Save(register, at) => {
                let scaled = u16::try_from(at / 8);
                code(if scaled.is_ok() { 4 } else { 5 }, register.number());
                operand(scaled.ok(), at, slots);
            }
            Operation::SaveXmm(n, at) => {
                let scaled = u16::try_from(at / 16);
                code(if scaled.is_ok() { 8 } else { 9 }, n);
                operand(scaled.ok(), at, slots);
            }
            Operation::MachineFrame(error_code) => code(10, u8::from(error_code)),
        }
    }
}

/// Appends the scaled operand in one slot if it fits, otherwise the unscaled one in two.
fn operand(scaled: Option<u16>, whole: u32, slots: &mut Vec<[u8; 2]>) {
    if let Some(scaled) = scaled {
        slots.push(scaled.to_le_bytes());
    } else {
        let [a, b, c, d] = whole.to_le_bytes();
        slots.extend([[a, b], [c, d]]);
    }
}
