//! Unwind data, parsed from its bytes.

use super::Error;
use super::version3::{Payload, Winding};
use clr_unwind::{CodeRegion, Gpr, RuntimeFunction};

/// Maximum number of parents in a chain, and of links of an indirect entry.
pub(super) const CHAIN_LIMIT: usize = 32;

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

#[derive(Clone, Copy)]
pub(super) struct Code {
    pub(super) slot: usize,
    pub(super) offset: u8,
    pub(super) op: u8,
    pub(super) info: u8,
}

impl Code {
    pub(super) fn slot_count(self) -> usize {
        match (self.op, self.info) {
            (ALLOC_LARGE, 0) | (SAVE_NONVOL | EPILOG | SAVE_XMM128, _) => 2,
            (ALLOC_LARGE | SAVE_NONVOL_FAR | SPARE | SAVE_XMM128_FAR | SET_FPREG_LARGE, _) => 3,
            _ => 1,
        }
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Error> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Error::UnwindDataUnmapped)?;
    Ok(u32::from_le_bytes(*bytes))
}

pub(super) fn runtime_function(bytes: &[u8], at: usize) -> Result<RuntimeFunction, Error> {
    Ok(RuntimeFunction {
        begin: u32_at(bytes, at)?,
        end: u32_at(bytes, at + 4)?,
        unwind_info: u32_at(bytes, at + 8)?,
    })
}

/// A RUNTIME_FUNCTION with its UNWIND_INFO.
#[derive(Clone, Copy)]
pub(super) struct Function<'r, 'a> {
    pub(super) region: &'r CodeRegion<'a>,
    pub(super) range: RuntimeFunction,
    pub(super) version: u8,
    pub(super) is_chained: bool,
    pub(super) prologue_size: u32,
    /// True if there are unwind codes, or steps of version 3.
    pub(super) has_codes: bool,
    pub(super) slot_count: usize,
    /// Number of the frame register; 0 for none.
    pub(super) frame_register: u8,
    /// Offset in bytes; the header counts units of 16.
    pub(super) frame_offset: u8,
    /// The bytes from the first slot to the end of the section.
    pub(super) slots: &'r [u8],
}

impl<'r, 'a> Function<'r, 'a> {
    /// Returns the function of an entry of the region's table.
    pub(super) fn of_entry(
        region: &'r CodeRegion<'a>,
        entry: RuntimeFunction,
    ) -> Result<Self, Error> {
        let mut range = entry;
        for _ in 0..=CHAIN_LIMIT {
            if range.unwind_info & 1 == 0 {
                return Self::new(region, range);
            }
            let other = region.bytes_from(range.unwind_info & !1);
            range = runtime_function(other.ok_or(Error::UnwindDataUnmapped)?, 0)?;
        }
        Err(Error::BadUnwindData)
    }

    pub(super) fn new(region: &'r CodeRegion<'a>, range: RuntimeFunction) -> Result<Self, Error> {
        let bytes = region.bytes_from(range.unwind_info).ok_or(Error::UnwindDataUnmapped)?;
        let [version_and_flags, prologue_size, count, frame, slots @ ..] = bytes else {
            return Err(Error::UnwindDataUnmapped);
        };
        let version = version_and_flags & 7;
        if !(1..=3).contains(&version) {
            return Err(Error::BadUnwindData);
        }
        let function = Self {
            region,
            range,
            version,
            is_chained: version_and_flags >> 3 & 4 != 0,
            prologue_size: (*prologue_size).into(),
            has_codes: *count > 0,
            slot_count: usize::from(*count),
            frame_register: frame & 15,
            frame_offset: frame & 0xF0,
            slots,
        };
        if version != 3 {
            return Ok(function);
        }
        // The last byte of the header counts steps instead.
        let payload =
            Payload::new([*version_and_flags, *prologue_size, *count, *frame], slots).ok();
        let set = payload.as_ref().and_then(|payload| {
            payload.prologue.decoded.iter().find_map(|placed| match placed.winding {
                Winding::SetFrame { register, .. } => Some(register.number()),
                _ => None,
            })
        });
        Ok(Self {
            prologue_size: payload.map_or(0, |payload| payload.prologue_size),
            has_codes: frame & 31 != 0,
            frame_register: set.unwrap_or(0),
            frame_offset: 0,
            ..function
        })
    }

    /// Returns the payload of version 3, or `None` for another version.
    pub(super) fn payload(&self) -> Result<Option<Payload>, Error> {
        if self.version != 3 {
            return Ok(None);
        }
        let header = self.region.bytes_from(self.range.unwind_info).and_then(<[u8]>::first_chunk);
        Payload::new(*header.ok_or(Error::UnwindDataUnmapped)?, self.slots).map(Some)
    }

    pub(super) fn offset_of(&self, rva: u32) -> u32 {
        rva.wrapping_sub(self.range.begin)
    }

    pub(super) fn frame_register(&self) -> Gpr {
        Gpr::from_number(self.frame_register)
    }

    /// Returns true if an offset is in a prologue whose codes determine what has run. A chained
    /// function has no prologue.
    pub(super) fn is_in_prologue(&self, offset: u32) -> bool {
        !self.is_chained && offset < self.prologue_size
    }

    /// Returns the code that begins at a slot. Operands may extend beyond the count of slots, as
    /// for Windows.
    pub(super) fn code(&self, slot: usize) -> Result<Code, Error> {
        match self.slots.get(2 * slot..) {
            Some([offset, op, ..]) => {
                Ok(Code { slot, offset: *offset, op: op & 15, info: op >> 4 })
            }
            _ => Err(Error::UnwindDataUnmapped),
        }
    }

    /// Returns all codes of versions 1 and 2, the last prologue operation first.
    pub(super) fn codes(&self) -> Result<Vec<Code>, Error> {
        if self.version == 3 {
            return Err(Error::BadUnwindData);
        }
        let mut codes = Vec::new();
        let mut slot = 0;
        while slot < self.slot_count {
            let code = self.code(slot)?;
            codes.push(code);
            slot += code.slot_count();
        }
        Ok(codes)
    }

    pub(super) fn operand16(&self, code: Code) -> Result<u64, Error> {
        let operand = self.code(code.slot + 1)?;
        Ok(u64::from(operand.offset) | u64::from(operand.op) << 8 | u64::from(operand.info) << 12)
    }

    pub(super) fn operand32(&self, code: Code) -> Result<u32, Error> {
        u32_at(self.slots, 2 * (code.slot + 1))
    }

    /// Returns the size of an allocation, in bytes.
    pub(super) fn allocated(&self, code: Code) -> Result<u64, Error> {
        match (code.op, code.info) {
            (ALLOC_SMALL, info) => Ok(u64::from(info) * 8 + 8),
            (_, 0) => self.operand16(code).map(|operand| operand * 8),
            _ => self.operand32(code).map(u64::from),
        }
    }

    /// Returns the frame register's distance from rsp where `code` sets the register, in bytes.
    pub(super) fn frame_offset_of(&self, code: Code) -> Result<u64, Error> {
        Ok(if code.op == SET_FPREG_LARGE {
            self.operand32(code)?.wrapping_mul(16).into()
        } else {
            self.frame_offset.into()
        })
    }

    /// Returns the function of the entry after the codes, if the info is chained.
    pub(super) fn parent(&self) -> Result<Option<Self>, Error> {
        if !self.is_chained {
            return Ok(None);
        }
        let even_count = self.slot_count + self.slot_count % 2;
        let range = runtime_function(self.slots, 2 * even_count)?;
        Self::new(self.region, range).map(Some)
    }

    /// Returns true if the function was entered over a machine frame, so that `iretq` is its
    /// return.
    pub(super) fn is_over_machine_frame(&self) -> bool {
        let mut function = Self { ..*self };
        for _ in 0..=CHAIN_LIMIT {
            let is_frame = match function.payload() {
                Ok(None) => {
                    let Ok(codes) = function.codes() else { return false };
                    codes.iter().any(|code| code.op == PUSH_MACHFRAME)
                }
                Ok(Some(Payload { prologue, .. })) => {
                    let found = prologue
                        .decoded
                        .iter()
                        .any(|placed| matches!(placed.winding, Winding::Frame { .. }));
                    if !found && !prologue.is_whole {
                        return false;
                    }
                    found
                }
                Err(_) => return false,
            };
            if is_frame {
                return true;
            }
            let Ok(Some(parent)) = function.parent() else { return false };
            function = parent;
        }
        false
    }
}
