//! Version 3, as Microsoft's page of it says: the payload is decoded whole, then undone.

use super::{CHAIN_LIMIT, Error, Function, PUSH_MACHFRAME, SET_FPREG_LARGE, State, Unwinder};
use clr_unwind::{Gpr, Memory, Position};
use std::collections::VecDeque;

/// A step of a prologue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Winding {
    /// Registers by number, the lowest in memory first.
    Push([Option<u8>; 2]),
    Allocate(u64),
    SetFrame {
        register: Gpr,
        distance: u64,
    },
    Save {
        register: u8,
        at: u64,
    },
    SaveXmm {
        number: u8,
        at: u64,
    },
    Frame {
        kind: u8,
    },
}

/// A step with its IP offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    ip: u32,
    pub(super) winding: Winding,
}

/// The steps of a prologue or an epilogue up to the first that cannot be decoded.
#[derive(Clone, Debug)]
pub(super) struct Windings {
    pub(super) decoded: Vec<Placed>,
    pub(super) is_whole: bool,
}

impl Windings {
    fn whole(self) -> Result<Vec<Placed>, Error> {
        if self.is_whole { Ok(self.decoded) } else { Err(Error::BadUnwindData) }
    }
}

/// A payload, split into its parts.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    pub(super) prologue_size: u32,
    pub(super) prologue: Windings,
    descriptors: Vec<Descriptor>,
    pool: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Descriptor {
    flags: u8,
    distance: i64,
    /// `None` if the descriptor repeats the one before.
    own: Option<Own>,
}

#[derive(Clone, Debug)]
struct Own {
    first: usize,
    last: u32,
    ips: Vec<u32>,
}

/// Bytes that are taken from the front.
struct Bytes(VecDeque<u8>);

impl Bytes {
    fn number(&mut self, size: usize) -> Result<u32, Error> {
        if self.0.len() < size {
            return Err(Error::BadUnwindData);
        }
        Ok(self.0.drain(..size).rev().fold(0, |number, byte| number << 8 | u32::from(byte)))
    }

    fn numbers(&mut self, count: u8, size: usize) -> Result<Vec<u32>, Error> {
        (0..count).map(|_| self.number(size)).collect()
    }
}

/// Mask and value of the first byte of each kind of step, in the order of the page, and the size.
const KINDS: [(u8, u8, usize); 12] = [
    (0xFF, 0, 2),
    (0xFF, 1, 5),
    (0xFF, 2, 3),
    (0xFF, 3, 2),
    (7, 4, 1),
    (7, 5, 5),
    (7, 6, 3),
    (7, 7, 1),
    (15, 8, 1),
    (15, 9, 5),
    (15, 10, 3),
    (63, 32, 2),
];

/// Decodes the step at the front of a pool, and returns its size.
fn winding(pool: &[u8]) -> Option<(Winding, usize)> {
    let first = *pool.first()?;
    let (_, kind, size) = KINDS.into_iter().find(|(mask, value, _)| first & mask == *value)?;
    let bytes = pool.get(..size)?;
    let operand = bytes[1..].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let (five, four) = (first >> 3, first >> 4);
    let winding = match kind {
        0 => Winding::SetFrame {
            register: Gpr::from_number(operand as u8 & 15),
            distance: operand >> 4 << 4,
        },
        1 => Winding::Allocate(operand),
        2 => Winding::Allocate(8 * operand),
        3 => Winding::Frame { kind: operand as u8 },
        4 => Winding::Push([Some(five), None]),
        5 => Winding::Save { register: five, at: operand },
        6 => Winding::Save { register: five, at: 8 * operand },
        7 if five == 31 => return None,
        7 => Winding::Push([Some(five + 1), Some(five)]),
        8 => Winding::Allocate(8 * (u64::from(four) + 1)),
        9 => Winding::SaveXmm { number: four, at: operand },
        10 => Winding::SaveXmm { number: four, at: 16 * operand },
        _ => {
            // Two registers of five bits each, above six bits of the kind.
            let both = u16::from_le_bytes([bytes[0], bytes[1]]) >> 6;
            Winding::Push([Some((both >> 5) as u8), Some((both & 31) as u8)])
        }
    };
    Some((winding, size))
}

fn windings(mut pool: &[u8], ips: &[u32]) -> Windings {
    let mut decoded = Vec::new();
    for ip in ips {
        let Some((winding, size)) = winding(pool) else {
            return Windings { decoded, is_whole: false };
        };
        pool = &pool[size..];
        decoded.push(Placed { ip: *ip, winding });
    }
    Windings { decoded, is_whole: true }
}

impl Payload {
    /// Splits the payload of a header and the bytes after it.
    pub(super) fn new(header: [u8; 4], after: &[u8]) -> Result<Self, Error> {
        let [flags, size, words, counts] = header;
        let payload = after.get(..2 * usize::from(words)).ok_or(Error::UnwindDataUnmapped)?;
        let mut rest = Bytes(payload.iter().copied().collect());
        let large = usize::from(flags >> 6 & 1);
        let prologue_size = u32::from(size) + (rest.number(large)? << 8);
        let ips = rest.numbers(counts & 31, 1 + large)?;
        let descriptors =
            (0..counts >> 5).map(|_| Descriptor::take(&mut rest)).collect::<Result<_, Error>>()?;
        let pool = Vec::from(rest.0);
        let prologue = windings(&pool, &ips);
        Ok(Self { prologue_size, prologue, descriptors, pool })
    }

    /// Returns true if no step of the prologue has run at `offset`.
    pub(super) fn nothing_has_run(&self, offset: u32) -> bool {
        let Windings { decoded, is_whole } = &self.prologue;
        let early = offset < self.prologue_size;
        *is_whole && decoded.iter().all(|placed| early && !placed.has_run(offset))
    }
}

impl Descriptor {
    fn take(bytes: &mut Bytes) -> Result<Self, Error> {
        let [flags, low, high] = [bytes.number(1)?, bytes.number(1)?, bytes.number(1)?];
        let (flags, count) = ((flags & 7) as u8, (flags >> 3) as u8);
        let distance = i64::from(((high << 8 | low) as u16).cast_signed());
        if count == 0 {
            return Ok(Self { flags, distance, own: None });
        }
        let wide = if flags & 2 == 0 { 1 } else { 2 };
        let first = bytes.number(2)? as usize;
        let own = Own { first, last: bytes.number(wide)?, ips: bytes.numbers(count, wide)? };
        Ok(Self { flags, distance, own: Some(own) })
    }
}

impl Placed {
    fn has_run(&self, offset: u32) -> bool {
        // The processor pushes its frame before the first instruction.
        let pushed_before = matches!(self.winding, Winding::Frame { .. });
        self.ip < offset || pushed_before && self.ip == offset
    }
}

impl Unwinder<'_, '_> {
    /// Executes the rest of an epilogue that a descriptor covers.
    pub(super) fn finish_described_epilogue<M: Memory + ?Sized>(
        &self,
        function: &Function<'_, '_>,
        payload: &Payload,
        rva: u32,
        state: &mut State<'_, M>,
    ) -> Result<Option<Position>, Error> {
        let range = function.range;
        let mut starts: Vec<i64> = Vec::new();
        let mut full: Option<(u8, &Own)> = None;
        for descriptor in &payload.descriptors {
            let downwards = descriptor.distance < 0;
            if !starts.is_empty() && (payload.descriptors[0].distance < 0) != downwards {
                return Err(Error::BadUnwindData);
            }
            let origin = if downwards { range.end } else { range.begin };
            let start = starts.last().copied().unwrap_or(origin.into()) + descriptor.distance;
            starts.push(start);
            full = descriptor.own.as_ref().map(|own| (descriptor.flags, own)).or(full);
            let (flags, own) = full.ok_or(Error::BadUnwindData)?;
            let pool = payload.pool.get(own.first..).ok_or(Error::BadUnwindData)?;
            if !(i64::from(range.begin)..i64::from(range.end)).contains(&start) {
                return Err(Error::BadUnwindData);
            }
            let Ok(done) = u32::try_from(i64::from(rva) - start) else { continue };
            if done > own.last {
                continue;
            }
            let left: Vec<_> = windings(pool, &own.ips).whole()?;
            let left = left.into_iter().filter(|placed| placed.ip >= done).collect();
            let (frame, caller) = undo(left, state)?;
            if flags & 1 != 0 {
                let parent = function.parent()?.ok_or(Error::BadUnwindData)?;
                return self.undo_mixed_chain(parent, rva, frame, state).map(Some);
            }
            return caller.map_or_else(|| state.pop_rip(), Ok).map(Some);
        }
        Ok(None)
    }

    /// Undoes the executed part of a prologue in a chain with a function of version 3. `base` is that
    /// of the saves of versions 1 and 2, if a frame register was met.
    pub(super) fn undo_mixed_chain<M: Memory + ?Sized>(
        &self,
        mut function: Function<'_, '_>,
        rva: u32,
        mut base: Option<u64>,
        state: &mut State<'_, M>,
    ) -> Result<Position, Error> {
        let mut machine_frame = None;
        let last = if self.is_unix { SET_FPREG_LARGE } else { PUSH_MACHFRAME };
        for _ in 0..=CHAIN_LIMIT {
            let offset = function.offset_of(rva);
            if let Some(payload) = function.payload()? {
                let all = offset >= payload.prologue_size;
                let steps = payload.prologue.whole()?;
                let run = steps.into_iter().filter(|placed| all || placed.has_run(offset));
                let (frame, caller) = undo(run.collect(), state)?;
                base = base.or(frame);
                machine_frame = caller.or(machine_frame);
            } else {
                if base.is_none() && function.frame_register != 0 {
                    base = Some(self.frame_base(&function, offset, &state.registers)?);
                }
                let base = base.unwrap_or(state.rsp());
                for code in function.codes()? {
                    if code.op > last {
                        return Err(Error::BadUnwindData);
                    }
                    if self.has_run(code, offset) {
                        machine_frame = self.undo(&function, code, base, state)?.or(machine_frame);
                    }
                }
            }
            let Some(parent) = self.parent(&function)? else {
                return machine_frame.map_or_else(|| state.pop_rip(), Ok);
            };
            function = parent;
        }
        Err(Error::BadUnwindData)
    }
}

/// Undoes steps, the last one first. Returns the frame register's base, and the position of the caller
/// if there was a machine frame.
fn undo<M: Memory + ?Sized>(
    steps: Vec<Placed>,
    state: &mut State<'_, M>,
) -> Result<(Option<u64>, Option<Position>), Error> {
    let is_set = |placed: &Placed| matches!(placed.winding, Winding::SetFrame { .. });
    let mut frame = None;
    if let Some(set) = steps.iter().position(is_set)
        && let Winding::SetFrame { register, distance } = steps[set].winding
    {
        let base = state.registers.get(register).wrapping_sub(distance);
        let below = steps[..set].iter().map(|placed| match placed.winding {
            Winding::Push(registers) => 8 * registers.into_iter().flatten().count() as u64,
            Winding::Allocate(bytes) => bytes,
            _ => 0,
        });
        state.set_rsp(base.wrapping_sub(below.sum()));
        frame = Some(base);
    }
    let mut caller = None;
    for Placed { winding, .. } in steps {
        let rsp = state.rsp();
        match winding {
            Winding::Push(registers) => {
                for register in registers.into_iter().flatten() {
                    match register {
                        0..16 => state.pop(Gpr::from_number(register))?,
                        _ => state.add_rsp(8),
                    }
                }
            }
            Winding::Allocate(bytes) => state.add_rsp(bytes),
            Winding::SetFrame { register, distance } => {
                state.set_rsp(state.registers.get(register).wrapping_sub(distance));
            }
            Winding::Save { register: 16.., .. } => {}
            Winding::Save { register, at } => {
                state.load(Gpr::from_number(register), rsp.wrapping_add(at))?;
            }
            Winding::SaveXmm { number, at } => state.load_xmm(number, rsp.wrapping_add(at))?,
            Winding::Frame { kind: kind @ 0..=1 } => {
                state.add_rsp(8 * u64::from(kind));
                caller = Some(state.pop_machine_frame()?);
            }
            Winding::Frame { .. } => return Err(Error::BadUnwindData),
        }
    }
    Ok((frame, caller))
}
