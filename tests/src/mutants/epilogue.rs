//! Epilogues: decoded from code bytes (version 1), or given by EPILOG codes (version 2).

use super::undone::{has_released, has_undone_all};
use super::{
    ALLOC_SMALL, Bug, CHAIN_LIMIT, EPILOG, Error, Function, PUSH_MACHFRAME, PUSH_NONVOL, State,
    Unwinder,
};
use clr_unwind::{Gpr, Memory, Position};

/// Maximum number of pieces of code that an epilogue may consist of, each but the last ending with
/// a jump.
const STRETCH_LIMIT: usize = 16;

/// Maximum number of instructions in an epilogue that Windows does not know, and maximum length of a row of instructions that
/// change nothing: the walker's limits, since a signal handler must not read all of a long padding.
pub(super) const MOST_UNUSUAL: usize = 32;

/// The forms of `nop`, with lengths of 1 to 8 bytes.
const NOPS: [&[u8]; 7] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0F, 0x1F, 0x00],
    &[0x0F, 0x1F, 0x40, 0x00],
    &[0x0F, 0x1F, 0x44, 0x00, 0x00],
    &[0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

/// `vzeroupper`.
const VZEROUPPER: [u8; 3] = [0xC5, 0xF8, 0x77];

/// The decoded instructions of an epilogue.
#[derive(Default)]
struct Epilogue {
    /// `add rsp` or `lea rsp`.
    adjustment: Option<Adjustment>,
    pops: Vec<Gpr>,
    /// True if `add rsp, 8` precedes `iretq`.
    drops_error_code: bool,
    /// True if the epilogue ends with `iretq`, not with a return or a tail call.
    ends_interrupt: bool,
}

/// An assignment of a register plus a displacement to rsp.
struct Adjustment {
    from: Gpr,
    displacement: u64,
}

/// The instruction after the pops.
enum Ending {
    Return,
    InterruptReturn { drops_error_code: bool },
    JumpInside(u32),
}

impl Unwinder<'_, '_> {
    /// Executes the rest of an epilogue if rip is in one.
    pub(super) fn finish_epilogue<M: Memory + ?Sized>(
        &self,
        function: &Function<'_, '_>,
        rva: u32,
        state: &mut State<'_, M>,
    ) -> Result<Option<Position>, Error> {
        // If there are EPILOG codes, the function has no other epilogues.
        if function.version == 2 && function.slot_count > 0 && function.code(0)?.op == EPILOG {
            return match self.offset_by_epilog_codes(function, rva)? {
                Some(offset) => self.undo_pushes(*function, offset, state).map(Some),
                None => Ok(None),
            };
        }
        if let Some(payload) = function.payload()?
            && let Some(caller) = self.finish_described_epilogue(function, &payload, rva, state)?
        {
            return Ok(Some(caller));
        }
        let Some(epilogue) = self.read_epilogue(function, rva) else { return Ok(None) };
        if let Some(Adjustment { from, displacement }) = epilogue.adjustment {
            state.set_rsp(state.registers.get(from).wrapping_add(displacement));
        }
        for register in self.in_pop_order(epilogue.pops) {
            state.pop(register)?;
        }
        if epilogue.drops_error_code {
            state.add_rsp(8);
        }
        let caller =
            if epilogue.ends_interrupt { state.pop_machine_frame() } else { state.pop_rip() };
        caller.map(Some)
    }

    fn in_pop_order(&self, mut pops: Vec<Gpr>) -> Vec<Gpr> {
        if self.has(Bug::PopOrderSwapped) {
            pops.reverse();
        }
        pops
    }

    /// Decodes code as the rest of an epilogue.
    fn read_epilogue(&self, function: &Function<'_, '_>, mut rva: u32) -> Option<Epilogue> {
        // A jump to a shared tail, or `rex ret`, is accepted only if there is a frame to leave.
        let has_frame = !self.like_windows
            && function.offset_of(rva) >= function.prologue_size
            && (function.has_codes || function.is_chained);
        let mut epilogue = Epilogue::default();
        if let Some((adjustment, len)) = self.adjustment(function, rva) {
            epilogue.adjustment = Some(adjustment);
            rva = rva.wrapping_add(len);
        }
        let mut doubtful = false;
        let mut unusual = 0;
        for _ in 0..STRETCH_LIMIT {
            let code = function.region.bytes_from(rva)?;
            let mut at = 0;
            loop {
                let rest = code.get(at..)?;
                if let Some((register, len)) = pop(rest) {
                    epilogue.pops.push(register);
                    at += len;
                    continue;
                }
                if !has_frame || unusual == MOST_UNUSUAL {
                    break;
                }
                if let Some((register, len)) = long_pop(rest) {
                    epilogue.pops.push(register);
                    at += len;
                    doubtful = true;
                } else if let Some(nop) = NOPS.iter().find(|nop| rest.starts_with(nop)) {
                    at += nop.len();
                    doubtful = true;
                } else if rest.starts_with(&VZEROUPPER) {
                    at += VZEROUPPER.len();
                } else {
                    break;
                }
                unusual += 1;
            }
            rva = rva.wrapping_add(u32::try_from(at).ok()?);
            let ending = self.ending(function, code.get(at..)?, rva, has_frame)?;
            if doubtful && !has_undone_all(function, rva) {
                return None;
            }
            match ending {
                Ending::Return => return Some(epilogue),
                Ending::InterruptReturn { drops_error_code } => {
                    let ends_interrupt = true;
                    return Some(Epilogue { drops_error_code, ends_interrupt, ..epilogue });
                }
                Ending::JumpInside(target) => rva = target,
            }
        }
        None
    }

    /// Decodes `add rsp, imm` or `lea rsp, [frame register + disp]`, and returns its length.
    fn adjustment(&self, function: &Function<'_, '_>, rva: u32) -> Option<(Adjustment, u32)> {
        let adjustment = |from, disp: Displacement, len| {
            let zero_extended = self.has(Bug::ZeroExtendedDisplacement);
            Some((Adjustment { from, displacement: disp.extended(zero_extended) }, len))
        };
        let (rex_b, modrm, rest) = match function.region.bytes_from(rva)? {
            [0x48, 0x83, 0xC4, imm, ..] => {
                return adjustment(Gpr::Rsp, Displacement::Byte(*imm), 4);
            }
            [0x48, 0x81, 0xC4, a, b, c, d, ..] => {
                return adjustment(Gpr::Rsp, Displacement::Long([*a, *b, *c, *d]), 7);
            }
            [rex @ (0x48 | 0x49), 0x8D, modrm, rest @ ..] => (rex & 1, modrm, rest),
            _ => return None,
        };
        let base = rex_b << 3 | modrm & 7;
        if base == 0 || base != function.frame_register {
            return None;
        }
        // A base whose low bits are those of rsp, which is r12, takes a SIB byte.
        let (rest, len) = match rest {
            [0x24, rest @ ..] if modrm & 7 == 4 => (rest, 4),
            _ if modrm & 7 == 4 => return None,
            _ => (rest, 3),
        };
        // The reg field is rsp; the mod field gives the size of the displacement.
        match (modrm >> 3, rest) {
            (0b01_100, [disp, ..]) => {
                adjustment(Gpr::from_number(base), Displacement::Byte(*disp), len + 1)
            }
            (0b10_100, [a, b, c, d, ..]) => {
                let disp = Displacement::Long([*a, *b, *c, *d]);
                adjustment(Gpr::from_number(base), disp, len + 4)
            }
            _ => None,
        }
    }

    /// Decodes the instruction after the pops, at `rva`.
    fn ending(
        &self,
        function: &Function<'_, '_>,
        code: &[u8],
        rva: u32,
        has_frame: bool,
    ) -> Option<Ending> {
        // A repne or bnd prefix changes neither a return nor a jump.
        let (repne, code) = match code {
            [0xF2, code @ ..] => (1, code),
            _ => (0, code),
        };
        let jump = |len: u32, distance: i32| {
            let next = rva.wrapping_add(repne + len);
            let released = || has_frame && has_released(function, rva);
            self.relative_jump(function, next, distance, has_frame, released)
        };
        match code {
            // ret, ret imm, rep ret, jmp [rip+disp]
            [0xC3 | 0xC2, ..] | [0xF3, 0xC3, ..] | [0xFF, 0x25, ..] => Some(Ending::Return),
            [0xEB, distance, ..] => jump(2, distance.cast_signed().into()),
            [0xE9, a, b, c, d, ..] => jump(5, i32::from_le_bytes([*a, *b, *c, *d])),
            [0x48, 0xCF, ..] if repne == 0 && function.is_over_machine_frame() => {
                Some(Ending::InterruptReturn { drops_error_code: false })
            }
            [0x48, 0x83, 0xC4, 0x08, 0x48, 0xCF, ..]
                if repne == 0 && function.is_over_machine_frame() =>
            {
                Some(Ending::InterruptReturn { drops_error_code: true })
            }
            [0x40..=0x4F, 0xC3, ..] => (repne == 0 && has_frame).then_some(Ending::Return),
            // Without REX.W it is that of a switch, unless the frame is gone.
            [0xFF, modrm, ..] | [0x40..=0x47, 0xFF, modrm, ..] if modrm >> 3 & 7 == 4 => {
                (has_frame && has_undone_all(function, rva)).then_some(Ending::Return)
            }
            // Only tail calls have REX.W on an indirect jump; switches have none.
            [0x48..=0x4F, 0xFF, modrm, ..] => {
                let is_jump = modrm >> 3 & 7 == 4 && !self.has(Bug::RexJumpNotSeen);
                is_jump.then_some(Ending::Return)
            }
            _ => None,
        }
    }

    /// Classifies a `jmp` by `distance` from `next`. `released` returns true if it is behind the release of the frame: then
    /// it leaves the function even into the middle of another one, as in V8's snapshot.
    fn relative_jump(
        &self,
        function: &Function<'_, '_>,
        next: u32,
        distance: i32,
        has_frame: bool,
        released: impl Fn() -> bool,
    ) -> Option<Ending> {
        if self.has(Bug::JumpInsideTakenForEpilogue) {
            return Some(Ending::Return);
        }
        let base = function.region.base();
        let target = base.wrapping_add(next.into()).wrapping_add_signed(distance.into());
        let inside = function.region.rva(target).filter(|target| function.range.contains(*target));
        let calls_itself = inside == Some(function.range.begin) && !function.is_chained;
        if self.like_windows {
            let leaves = calls_itself || inside.is_none() && !self.is_inner(function, target);
            return leaves.then_some(Ending::Return);
        }
        if (inside.is_none() || calls_itself) && self.may_be_called(target) {
            return Some(Ending::Return);
        }
        if inside.is_none() && released() {
            return Some(Ending::Return);
        }
        inside.filter(|_| has_frame).map(Ending::JumpInside)
    }

    /// Returns true if `address` is in another part of the function, and not at its begin.
    fn is_inner(&self, function: &Function<'_, '_>, address: u64) -> bool {
        let Some((region, rva)) = self.code.find(address) else { return false };
        let part = region.functions().find(rva);
        let part = part.and_then(|entry| Function::of_entry(region, entry).ok());
        let begins = [part, Some(*function)].map(|part| self.begin(part?));
        begins[0].is_some() && begins[0] == begins[1] && begins[0] != Some(rva)
    }

    /// Returns the begin of the function that a part belongs to.
    fn begin(&self, mut part: Function<'_, '_>) -> Option<u32> {
        for _ in 0..=CHAIN_LIMIT {
            match self.parent(&part).ok()? {
                Some(parent) => part = parent,
                None => return Some(part.range.begin),
            }
        }
        None
    }

    /// Returns true if no frame is set up at `address`. At the begin of one of gcc's cold parts,
    /// all of its codes have run already.
    fn may_be_called(&self, address: u64) -> bool {
        let Some((region, rva)) = self.code.find(address) else { return true };
        let Some(entry) = region.functions().find(rva) else { return true };
        Function::of_entry(region, entry).is_ok_and(|function| {
            let offset = function.offset_of(rva);
            if function.version == 3 {
                let payload = function.payload().ok().flatten();
                return !function.is_chained
                    && payload.is_some_and(|payload| payload.nothing_has_run(offset));
            }
            !function.is_chained
                && function.codes().is_ok_and(|codes| {
                    codes.iter().all(|code| code.op == EPILOG || u32::from(code.offset) > offset)
                })
        })
    }

    /// Returns the offset of rip in an epilogue that EPILOG codes describe.
    fn offset_by_epilog_codes(
        &self,
        function: &Function<'_, '_>,
        rva: u32,
    ) -> Result<Option<u32>, Error> {
        let first = function.code(0)?;
        let size = u32::from(first.offset);
        let mut starts = Vec::new();
        if first.info & 1 != 0 {
            starts.push(function.range.end.wrapping_sub(size));
        }
        for slot in 1..function.slot_count {
            let code = function.code(slot)?;
            let distance = u32::from(code.info) << 8 | u32::from(code.offset);
            // A distance of 0 pads the codes to an even number.
            if code.op != EPILOG || distance == 0 {
                break;
            }
            starts.push(if self.has(Bug::EpilogSlotsAsOffsets) {
                function.range.begin.wrapping_add(distance)
            } else {
                function.range.end.wrapping_sub(distance)
            });
        }
        Ok(starts.into_iter().map(|start| rva.wrapping_sub(start)).find(|offset| *offset < size))
    }

    /// Undoes the pushes that the first `done` bytes of an epilogue have not popped, and the call.
    fn undo_pushes<M: Memory + ?Sized>(
        &self,
        function: Function<'_, '_>,
        done: u32,
        state: &mut State<'_, M>,
    ) -> Result<Position, Error> {
        let codes = self.codes_from_first_push(function)?;
        let count = codes.iter().take_while(|code| code.op == PUSH_NONVOL).count();
        let (pushes, mut behind) = codes.split_at(count);
        let mut at = 0;
        let mut pops = Vec::new();
        for push in pushes {
            if at >= done {
                pops.push(Gpr::from_number(push.info));
            }
            at += if push.info < 8 { 1 } else { 2 };
        }
        for register in self.in_pop_order(pops) {
            let value = state.memory.read_u64(state.rsp())?;
            state.add_rsp(8);
            // A popped rsp is the value itself here, as in Windows.
            state.registers.set(register, value);
        }
        // An allocation of 8 bytes is a pushfq, which one more pop undoes.
        if let [code, rest @ ..] = behind
            && (code.op, code.info) == (ALLOC_SMALL, 0)
        {
            state.add_rsp(if at >= done { 8 } else { 0 });
            behind = rest;
        }
        match behind.first() {
            // The epilogue begins after the instruction that drops an error code.
            Some(code) if code.op == PUSH_MACHFRAME => state.pop_machine_frame(),
            _ => state.pop_rip(),
        }
    }

    /// Returns the codes from the first push or machine frame of the chain to the end of its info.
    fn codes_from_first_push(
        &self,
        mut function: Function<'_, '_>,
    ) -> Result<Vec<super::Code>, Error> {
        for _ in 0..=CHAIN_LIMIT {
            let codes = function.codes()?;
            let is_push = |code: &super::Code| matches!(code.op, PUSH_NONVOL | PUSH_MACHFRAME);
            if let Some(first) = codes.iter().position(is_push) {
                return Ok(codes[first..].to_vec());
            }
            match self.parent(&function)? {
                Some(parent) => function = parent,
                None => return Ok(Vec::new()),
            }
        }
        Err(Error::BadUnwindData)
    }
}

/// A constant that an instruction adds to rsp or to the frame register.
enum Displacement {
    Byte(u8),
    Long([u8; 4]),
}

impl Displacement {
    fn extended(self, by_zeroes: bool) -> u64 {
        match (self, by_zeroes) {
            (Self::Byte(byte), true) => byte.into(),
            (Self::Byte(byte), false) => i64::from(byte.cast_signed()).cast_unsigned(),
            (Self::Long(bytes), true) => u32::from_le_bytes(bytes).into(),
            (Self::Long(bytes), false) => i64::from(i32::from_le_bytes(bytes)).cast_unsigned(),
        }
    }
}

/// Decodes `pop register` with any REX prefix or none, and returns its length.
fn pop(code: &[u8]) -> Option<(Gpr, usize)> {
    match code {
        [pop @ 0x58..=0x5F, ..] => Some((Gpr::from_number(pop & 7), 1)),
        [rex @ 0x40..=0x4F, pop @ 0x58..=0x5F, ..] => {
            Some((Gpr::from_number((rex & 1) << 3 | pop & 7), 2))
        }
        _ => None,
    }
}

/// Decodes the form of `pop register` for any operand, and returns its length.
fn long_pop(code: &[u8]) -> Option<(Gpr, usize)> {
    match code {
        [0x8F, modrm @ 0xC0..=0xC7, ..] => Some((Gpr::from_number(modrm & 7), 2)),
        [rex @ 0x40..=0x4F, 0x8F, modrm @ 0xC0..=0xC7, ..] => {
            Some((Gpr::from_number((rex & 1) << 3 | modrm & 7), 3))
        }
        _ => None,
    }
}
