//! Encoder of UNWIND_INFO version 3: winding operations and epilogue descriptors.
//!
//! Source: Microsoft's preview specification "x64 Unwind Information V3".

use super::unwind_info::{Operation, Trailer};
use clr_unwind::Gpr;

/// An operation whose instruction begins `ip_offset` bytes after the start of its fragment or
/// epilogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindingCode {
    pub ip_offset: u16,
    /// Offsets of saves are relative to rsp at the instruction.
    pub operation: Operation,
}

/// An epilogue and the operations that it undoes, the first one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Epilogue {
    /// RVA of the first instruction.
    pub start: u32,
    /// Bytes from the start to the last instruction.
    pub last: u16,
    pub codes: Vec<WindingCode>,
}

/// An UNWIND_INFO_V3 structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnwindInfoV3 {
    /// RVAs of the fragment.
    pub begin: u32,
    pub end: u32,
    pub prologue_size: u16,
    /// The frame register and its offset in units of 16 bytes.
    pub frame: Option<(Gpr, u8)>,
    /// The prologue's operations, in order.
    pub codes: Vec<WindingCode>,
    /// Ascending by start; at least one operation in each.
    pub epilogues: Vec<Epilogue>,
    pub trailer: Trailer,
}

const LARGE: u8 = 8;
const EPILOG_INFO_LARGE: u8 = 2;

impl UnwindInfoV3 {
    /// Returns the encoded bytes, a multiple of 4, or `None` if there are too many operations or
    /// epilogues, or an epilogue too far from the others.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let large = self.prologue_size > 0xFF;
        let mut payload = Vec::new();
        if large {
            payload.push((self.prologue_size >> 8) as u8);
        }
        let mut pool = Vec::new();
        for code in self.codes.iter().rev() {
            offset(code.ip_offset, large, &mut payload);
            self.operation(code.operation, &mut pool);
        }
        self.descriptors(&mut payload, &mut pool)?;
        payload.extend(pool);
        if !payload.len().is_multiple_of(2) {
            payload.push(0);
        }
        let (flags, trailer) = match self.trailer {
            Trailer::Nothing => (0, Vec::new()),
            Trailer::Handler(rva) => (3, rva.to_le_bytes().to_vec()),
            Trailer::Chained(entry) => (4, entry.into_iter().flat_map(u32::to_le_bytes).collect()),
        };
        let flags = flags | if large { LARGE } else { 0 };
        let words = u8::try_from(payload.len() / 2).ok()?;
        let count = |count: usize, most: u8| u8::try_from(count).ok().filter(|n| *n <= most);
        let counts = count(self.codes.len(), 31)? | count(self.epilogues.len(), 7)? << 5;
        let mut bytes = vec![3 | flags << 3, self.prologue_size as u8, words, counts];
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(trailer);
        Some(bytes)
    }

    fn descriptors(&self, payload: &mut Vec<u8>, pool: &mut Vec<u8>) -> Option<()> {
        // A single epilogue is mostly at the end.
        let from_end = self.epilogues.len() == 1;
        let mut from = if from_end { self.end } else { self.begin };
        let mut before: Option<&Epilogue> = None;
        for epilogue in &self.epilogues {
            let distance = i64::from(epilogue.start) - i64::from(from);
            from = epilogue.start;
            let distance = i16::try_from(distance).ok()?.to_le_bytes();
            let Epilogue { last, codes, .. } = epilogue;
            if before.is_some_and(|before| (&before.last, &before.codes) == (last, codes)) {
                payload.push(0);
                payload.extend(distance);
                continue;
            }
            before = Some(epilogue);
            let large = *last > 0xFF;
            let count = u8::try_from(codes.len()).ok().filter(|count| (1..=31).contains(count))?;
            payload.push(if large { EPILOG_INFO_LARGE } else { 0 } | count << 3);
            payload.extend(distance);
            let mut operations = Vec::new();
            for code in codes {
                self.operation(code.operation, &mut operations);
            }
            let shared = pool.windows(operations.len()).position(|part| part == operations);
            let first = shared.unwrap_or(pool.len());
            if shared.is_none() {
                pool.extend(operations);
            }
            payload.extend(u16::try_from(first).ok()?.to_le_bytes());
            offset(*last, large, payload);
            for code in codes {
                offset(code.ip_offset, large, payload);
            }
        }
        Some(())
    }

    /// Appends an operation.
    fn operation(&self, operation: Operation, pool: &mut Vec<u8>) {
        let word = |first: u8, operand: u16| [&[first][..], &operand.to_le_bytes()].concat();
        let long = |first: u8, operand: u32| [&[first][..], &operand.to_le_bytes()].concat();
        let scaled = |bytes: u32, unit: u32| {
            u16::try_from(bytes / unit).ok().filter(|_| bytes.is_multiple_of(unit))
        };
        pool.extend(match operation {
            Operation::Push(register) => vec![4 | register.number() << 3],
            Operation::Allocate(bytes @ 8..=128) if bytes.is_multiple_of(8) => {
                vec![8 | ((bytes / 8 - 1) as u8) << 4]
            }
            Operation::Allocate(bytes) => match scaled(bytes, 8) {
                Some(operand) => word(2, operand),
                None => long(1, bytes),
            },
            Operation::SetFrame => {
                let (register, offset) = self.frame.unwrap_or((Gpr::Rax, 0));
                vec![0, register.number() | offset << 4]
            }
            Operation::Save(register, at) => match scaled(at, 8) {
                Some(operand) => word(6 | register.number() << 3, operand),
                None => long(5 | register.number() << 3, at),
            },
            Operation::SaveXmm(n, at) => match scaled(at, 16) {
                Some(operand) => word(0x0A | n << 4, operand),
                None => long(0x09 | n << 4, at),
            },
            Operation::MachineFrame(error_code) => vec![3, u8::from(error_code)],
        });
    }
}

/// Appends an IP offset.
fn offset(offset: u16, large: bool, bytes: &mut Vec<u8>) {
    let both = offset.to_le_bytes();
    bytes.extend(if large { &both[..] } else { &both[..1] });
}
