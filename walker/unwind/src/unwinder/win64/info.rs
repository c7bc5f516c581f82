//! The bytes of UNWIND_INFO: the header, the unwind codes of versions 1 and 2, and the data after
//! them.
#![expect(
    clippy::inline_always,
    reason = "measured: calls, with their operands in memory, cost a third"
)]

use super::super::{Handler, UnwindError};
use crate::code_map::CodeRegion;
use crate::image::{RuntimeFunction, SIZE_OF_RUNTIME_FUNCTION};
use crate::registers::Gpr;

/// The function has an exception handler.
pub const UNW_FLAG_EHANDLER: u8 = 1;
/// The function has a termination handler.
pub const UNW_FLAG_UHANDLER: u8 = 2;
/// A parent RUNTIME_FUNCTION follows the codes.
pub const UNW_FLAG_CHAININFO: u8 = 4;

const SIZE_OF_HEADER: usize = 4;
const SIZE_OF_SLOT: usize = 2;

/// Maximum depth of chains of UNWIND_INFO and of indirect entries, as in Windows.
pub(super) const CHAIN_LIMIT: u32 = 32;

/// An UNWIND_INFO structure.
#[derive(Clone, Copy, Debug)]
pub struct UnwindInfo<'a> {
    rva: u32,
    header: [u8; SIZE_OF_HEADER],
    /// From the first code slot to the end of the section.
    slots: &'a [u8],
}

/// The operation of the prologue that an unwind code describes, with sizes and displacements in
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// UWOP_PUSH_NONVOL: the register was pushed.
    PushNonvol(Gpr),
    /// UWOP_ALLOC_SMALL or UWOP_ALLOC_LARGE: N bytes of stack were allocated.
    Alloc(u32),
    /// UWOP_SET_FPREG: the frame register was set to rsp plus the header's frame offset.
    SetFpreg,
    /// UWOP_SAVE_NONVOL or UWOP_SAVE_NONVOL_FAR: the register was stored at frame base + offset.
    SaveNonvol(Gpr, u32),
    /// UWOP_EPILOG (version 2): the places of epilogues; nothing about the prologue.
    Epilog,
    /// Operation 7, never used.
    Spare,
    /// UWOP_SAVE_XMM128 or UWOP_SAVE_XMM128_FAR: xmm*n* was stored at frame base + offset.
    SaveXmm128(u8, u32),
    /// UWOP_PUSH_MACHFRAME: the processor pushed a machine frame, with an error code if `true`.
    PushMachframe(bool),
    /// UWOP_SET_FPREG_LARGE (operation 11, CoreCLR on Unix only): the frame register was set to rsp
    /// plus this offset.
    SetFpregLarge(u32),
}

/// A code slot that begins an unwind code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawCode {
    /// Offset from the function's begin to the end of the instruction, in bytes.
    pub(super) offset: u8,
    pub(super) op: u8,
    pub(super) info: u8,
}

impl RawCode {
    pub(super) const PUSH_NONVOL: u8 = 0;
    pub(super) const ALLOC_LARGE: u8 = 1;
    pub(super) const ALLOC_SMALL: u8 = 2;
    pub(super) const SET_FPREG: u8 = 3;
    pub(super) const SAVE_NONVOL: u8 = 4;
    pub(super) const SAVE_NONVOL_FAR: u8 = 5;
    pub(super) const EPILOG: u8 = 6;
    pub(super) const SPARE: u8 = 7;
    pub(super) const SAVE_XMM128: u8 = 8;
    pub(super) const SAVE_XMM128_FAR: u8 = 9;
    pub(super) const PUSH_MACHFRAME: u8 = 10;
    pub(super) const SET_FPREG_LARGE: u8 = 11;

    /// Returns the number of slots that the code takes; 1 for an operation that does not exist.
    #[inline(always)]
    pub(super) const fn slots(self) -> usize {
        match self.op {
            Self::ALLOC_LARGE if self.info == 0 => 2,
            Self::ALLOC_LARGE
            | Self::SAVE_NONVOL_FAR
            | Self::SPARE
            | Self::SAVE_XMM128_FAR
            | Self::SET_FPREG_LARGE => 3,
            Self::SAVE_NONVOL | Self::EPILOG | Self::SAVE_XMM128 => 2,
            _ => 1,
        }
    }
}

/// An unwind code, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnwindCode {
    /// CodeOffset: bytes from the function's begin to the end of the instruction.
    pub offset: u8,
    /// OpInfo, undecoded.
    pub info: u8,
    /// The operation.
    pub operation: Operation,
    /// Number of 16-bit slots that the code takes.
    pub slots: u8,
}

impl<'a> UnwindInfo<'a> {
    /// Reads the UNWIND_INFO at `rva` of the region.
    ///
    /// # Errors
    /// [`UnwindError::UnwindDataUnmapped`] if the header is in no section.
    #[inline(always)]
    pub fn read(region: &'a CodeRegion<'_>, rva: u32) -> Result<Self, UnwindError> {
        let unmapped = UnwindError::UnwindDataUnmapped { rva };
        let bytes = region.unwind_data(rva).ok_or(unmapped)?;
        let (header, slots) = bytes.split_first_chunk().ok_or(unmapped)?;
        Ok(Self { rva, header: *header, slots })
    }

    /// Creates the UNWIND_INFO at the start of `bytes`, which lies at `rva`; `None` if its header is
    /// cut off.
    #[doc(hidden)]
    pub fn from_bytes(rva: u32, bytes: &'a [u8]) -> Option<Self> {
        let (header, slots) = bytes.split_first_chunk()?;
        Some(Self { rva, header: *header, slots })
    }

    /// Returns the RVA of the structure.
    pub const fn rva(&self) -> u32 {
        self.rva
    }

    /// Returns the version, 0 to 7.
    #[inline(always)]
    pub const fn version(&self) -> u8 {
        self.header[0] & 7
    }

    /// Returns the `UNW_FLAG_…` bits.
    #[inline(always)]
    pub const fn flags(&self) -> u8 {
        self.header[0] >> 3
    }

    /// Returns the bytes of the header.
    pub(super) const fn header(&self) -> [u8; SIZE_OF_HEADER] {
        self.header
    }

    /// Returns the payload of version 3 and its RVA.
    pub(super) fn payload(&self) -> Result<(&'a [u8], u32), UnwindError> {
        let payload = self.slots.get(..self.slot_count() * SIZE_OF_SLOT);
        let payload = payload.ok_or(UnwindError::UnwindDataUnmapped { rva: self.rva })?;
        Ok((payload, self.slot_rva(0)))
    }

    /// Returns SizeOfProlog in bytes (versions 1 and 2).
    #[inline(always)]
    pub const fn prologue_size(&self) -> u8 {
        self.header[1]
    }

    /// Returns CountOfCodes, the number of 16-bit slots that the codes take. In version 3 it is
    /// PayloadWords, the size of the payload in 16-bit words.
    #[inline(always)]
    pub const fn slot_count(&self) -> usize {
        self.header[2] as usize
    }

    /// Returns the number of the frame register, or 0 if there is none (versions 1 and 2).
    #[inline(always)]
    pub const fn frame_register(&self) -> u8 {
        self.header[3] & 15
    }

    /// Returns the frame register's distance from rsp at the time when it was set, in bytes: 0 to
    /// 240 (versions 1 and 2).
    #[inline(always)]
    pub const fn frame_offset(&self) -> u32 {
        (self.header[3] >> 4) as u32 * 16
    }

    /// Returns true if a parent RUNTIME_FUNCTION follows the codes.
    #[inline(always)]
    pub const fn is_chained(&self) -> bool {
        self.flags() & UNW_FLAG_CHAININFO != 0
    }

    /// Returns the 16 bits of slot `index`. Slots after CountOfCodes can be read as far as the
    /// section goes: Windows does not check the count inside a code of several slots.
    #[inline(always)]
    fn slot(&self, index: usize) -> Result<[u8; SIZE_OF_SLOT], UnwindError> {
        match self.slots.get(index * SIZE_OF_SLOT..) {
            Some([low, high, ..]) => Ok([*low, *high]),
            _ => Err(UnwindError::UnwindDataUnmapped { rva: self.slot_rva(index) }),
        }
    }

    pub(super) const fn slot_rva(&self, index: usize) -> u32 {
        self.rva.wrapping_add((SIZE_OF_HEADER + SIZE_OF_SLOT * index) as u32)
    }

    #[inline(always)]
    fn u16_at(&self, index: usize) -> Result<u32, UnwindError> {
        self.slot(index).map(|slot| u32::from(u16::from_le_bytes(slot)))
    }

    #[inline(always)]
    fn u32_at(&self, index: usize) -> Result<u32, UnwindError> {
        Ok(self.u16_at(index)? | self.u16_at(index + 1)? << 16)
    }

    /// Returns the code that begins at slot `index`, without its operands.
    #[inline(always)]
    pub(super) fn raw_code(&self, index: usize) -> Result<RawCode, UnwindError> {
        let [offset, op] = self.slot(index)?;
        Ok(RawCode { offset, op: op & 15, info: op >> 4 })
    }

    /// Returns the codes without their operands. After an error they end.
    pub(super) fn raw_codes(&self) -> impl Iterator<Item = Result<RawCode, UnwindError>> + use<'a> {
        let info = *self;
        let mut index = 0;
        core::iter::from_fn(move || {
            let code = (index < info.slot_count()).then(|| info.raw_code(index))?;
            index = code.map_or(usize::MAX, |code| index + code.slots());
            Some(code)
        })
    }

    /// Decodes `code`, which begins at slot `index`.
    #[inline(always)]
    pub(super) fn operation(&self, index: usize, code: RawCode) -> Result<Operation, UnwindError> {
        let register = Gpr::from_number(code.info);
        Ok(match code.op {
            RawCode::PUSH_NONVOL => Operation::PushNonvol(register),
            RawCode::ALLOC_LARGE if code.info == 0 => Operation::Alloc(self.u16_at(index + 1)? * 8),
            RawCode::ALLOC_LARGE => Operation::Alloc(self.u32_at(index + 1)?),
            RawCode::ALLOC_SMALL => Operation::Alloc(u32::from(code.info) * 8 + 8),
            RawCode::SET_FPREG => Operation::SetFpreg,
            RawCode::SAVE_NONVOL => Operation::SaveNonvol(register, self.u16_at(index + 1)? * 8),
            RawCode::SAVE_NONVOL_FAR => Operation::SaveNonvol(register, self.u32_at(index + 1)?),
            RawCode::EPILOG => Operation::Epilog,
            RawCode::SPARE => Operation::Spare,
            RawCode::SAVE_XMM128 => Operation::SaveXmm128(code.info, self.u16_at(index + 1)? * 16),
            RawCode::SAVE_XMM128_FAR => Operation::SaveXmm128(code.info, self.u32_at(index + 1)?),
            RawCode::PUSH_MACHFRAME => Operation::PushMachframe(code.info != 0),
            // The operand counts 16-byte units; CoreCLR's arithmetic is 32 bits wide.
            RawCode::SET_FPREG_LARGE => {
                Operation::SetFpregLarge(self.u32_at(index + 1)?.wrapping_mul(16))
            }
            op => return Err(self.invalid_operation(index, op)),
        })
    }

    #[cold]
    pub(super) const fn invalid_operation(&self, index: usize, op: u8) -> UnwindError {
        UnwindError::InvalidOperation { operation: op, rva: self.slot_rva(index) }
    }

    /// Returns the unwind codes of versions 1 and 2 in table order: the last prologue operation first.
    /// An error ends the iteration.
    pub fn codes(&self) -> impl Iterator<Item = Result<UnwindCode, UnwindError>> + use<'a> {
        let info = *self;
        let mut index = 0;
        core::iter::from_fn(move || {
            if index >= info.slot_count() {
                return None;
            }
            let code = info.raw_code(index).and_then(|raw| {
                let operation = info.operation(index, raw)?;
                let slots = raw.slots() as u8;
                Ok(UnwindCode { offset: raw.offset, info: raw.info, operation, slots })
            });
            index = code.map_or(usize::MAX, |code| index + usize::from(code.slots));
            Some(code)
        })
    }

    /// Returns the EPILOG codes (version 2), if the first code is one.
    pub fn epilogs(&self) -> Option<Epilogs<'a>> {
        let first = self.raw_code(0).ok()?;
        (self.slot_count() > 0 && first.op == RawCode::EPILOG).then_some(Epilogs {
            info: *self,
            size: first.offset,
            at_end: first.info & 1 != 0,
        })
    }

    /// Returns the slot index of a handler or a parent entry: after the codes, at an even index.
    const fn trailer_index(&self) -> usize {
        self.slot_count().next_multiple_of(2)
    }

    /// Returns the parent RUNTIME_FUNCTION, if the info is chained.
    ///
    /// # Errors
    /// [`UnwindError::UnwindDataUnmapped`] if the entry is cut off by its section's end.
    #[inline(always)]
    pub fn parent(&self) -> Result<Option<RuntimeFunction>, UnwindError> {
        if !self.is_chained() {
            return Ok(None);
        }
        let index = self.trailer_index();
        self.slots
            .get(index * SIZE_OF_SLOT..)
            .and_then(<[u8]>::first_chunk::<SIZE_OF_RUNTIME_FUNCTION>)
            .map(|bytes| Some(RuntimeFunction::from_bytes(bytes)))
            .ok_or(UnwindError::UnwindDataUnmapped { rva: self.slot_rva(index) })
    }

    /// Returns the language handler, if the flags announce one.
    ///
    /// # Errors
    /// [`UnwindError::UnwindDataUnmapped`] if its RVA is cut off by the section's end.
    #[inline(always)]
    pub fn handler(&self) -> Result<Option<Handler>, UnwindError> {
        if self.flags() & (UNW_FLAG_EHANDLER | UNW_FLAG_UHANDLER) == 0 {
            return Ok(None);
        }
        let index = self.trailer_index();
        Ok(Some(Handler { rva: self.u32_at(index)?, data_rva: self.slot_rva(index + 2) }))
    }
}

/// The epilogues that EPILOG codes describe.
#[derive(Clone, Copy, Debug)]
pub struct Epilogs<'a> {
    info: UnwindInfo<'a>,
    size: u8,
    at_end: bool,
}

impl Epilogs<'_> {
    /// Returns the size of each epilogue in bytes, counted from its first pop.
    pub const fn size(&self) -> u8 {
        self.size
    }

    /// Returns the RVAs of the starts of the epilogues in a function that ends at RVA `end`.
    pub fn starts(&self, end: u32) -> impl Iterator<Item = u32> + '_ {
        let at_end = self.at_end.then(|| end.wrapping_sub(u32::from(self.size)));
        let listed = (1..self.info.slot_count())
            .map_while(|index| self.info.raw_code(index).ok())
            .take_while(|code| code.op == RawCode::EPILOG)
            .map(|code| u32::from(code.offset) | u32::from(code.info) << 8)
            // 0 is padding to an even number of codes.
            .take_while(|offset| *offset != 0)
            .map(move |offset| end.wrapping_sub(offset));
        at_end.into_iter().chain(listed)
    }
}
