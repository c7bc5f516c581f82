//! UNWIND_INFO version 3, which code with APX instructions needs: a payload of IP offsets, epilogue
//! descriptors and winding operations instead of the slots of versions 1 and 2.
//!
//! Source: Microsoft's preview specification "x64 Unwind Information V3" of 18 May 2026; LLVM's
//! `decodeUnwindInfoV3` and dotnet/runtime's `win64unwindv3.h` read the same layout. Intel's MKL 2026.2
//! has 8,706 functions with it, whose headers can all be read. No unwinder of version 3 was met, so the
//! following is by documentation alone, or assumed:
//!
//! * Documented: a saved register is at rsp + displacement, with the rsp of its instruction. After an
//!   operation that sets a frame register, that rsp is counted from the register.
//! * Assumed: the establisher frame is the frame register less its offset, of the nearest info in the
//!   chain that has set one, else rsp.
//! * Assumed: all operations of a prologue apply from its end on, whatever their IP offsets.
//! * Precise rules take an epilogue that no descriptor covers for what its instructions are:
//!   assemblers write descriptors only where they are asked to.

mod unwind;
mod winding;

pub(super) use unwind::{epilogue_at, unwind};
pub use winding::{ExtendedGpr, Winding, WindingCode, WindingOperation};

use super::info::UnwindInfo;
use crate::image::RuntimeFunction;
use crate::unwinder::UnwindError;

/// The prologue has up to 65,535 bytes, and 16-bit IP offsets.
pub const UNW_FLAG_LARGE: u8 = 8;

/// The epilogue returns to the parent fragment, not to the caller.
const PARENT_FRAGMENT_TRANSFER: u8 = 1;
/// The epilogue has 16-bit IP offsets.
const EPILOG_INFO_LARGE: u8 = 2;

/// The payload of an UNWIND_INFO of version 3.
#[derive(Clone, Copy, Debug)]
pub struct UnwindInfoV3<'a> {
    prologue_size: u16,
    prologue: Winding<'a>,
    epilogue_count: u8,
    /// The epilogue descriptors and what follows them.
    epilogues: Payload<'a>,
    /// The pool of winding operations.
    pool: Payload<'a>,
}

impl<'a> UnwindInfoV3<'a> {
    /// Reads the payload of `info`, which must be of version 3.
    ///
    /// # Errors
    /// [`UnwindError::UnwindDataUnmapped`] if the section ends before the payload;
    /// [`UnwindError::PayloadCutOff`] if the payload ends before its parts do.
    pub fn read(info: &UnwindInfo<'a>) -> Result<Self, UnwindError> {
        let (bytes, rva) = info.payload()?;
        let mut rest = Payload { bytes, rva };
        let [_, size, _, counts] = info.header();
        let large = info.flags() & UNW_FLAG_LARGE != 0;
        let high = if large { rest.byte()? } else { 0 };
        let count = counts & 31;
        let ip_offsets = rest.ip_offsets(count, large)?;
        let epilogues = rest;
        for _ in 0..counts >> 5 {
            Descriptor::read(&mut rest)?;
        }
        let prologue = rest.winding(0, count, large, ip_offsets)?;
        Ok(Self {
            prologue_size: u16::from_le_bytes([size, high]),
            prologue,
            epilogue_count: counts >> 5,
            epilogues,
            pool: rest,
        })
    }

    /// Returns the size of the prologue in bytes.
    pub const fn prologue_size(&self) -> u16 {
        self.prologue_size
    }

    /// Returns the operations of the prologue.
    pub const fn prologue(&self) -> Winding<'a> {
        self.prologue
    }

    /// Returns the epilogues of the fragment that `function` describes. An error ends the
    /// iteration.
    ///
    /// # Errors
    /// Each item: [`UnwindError::InvalidEpilogue`] if the first descriptor inherits, or the epilogues
    /// do not ascend from the fragment's start or descend from its end;
    /// [`UnwindError::PayloadCutOff`].
    pub fn epilogues(
        &self,
        function: RuntimeFunction,
    ) -> impl Iterator<Item = Result<EpilogueV3<'a>, UnwindError>> + use<'a> {
        let Self { epilogue_count, mut epilogues, pool, .. } = *self;
        let mut index = 0;
        let mut before: Option<(Descriptor<'a>, u32)> = None;
        core::iter::from_fn(move || {
            if index >= epilogue_count {
                return None;
            }
            let invalid = UnwindError::InvalidEpilogue { rva: epilogues.rva };
            let mut read = || {
                let mut descriptor = Descriptor::read(&mut epilogues)?;
                let start = match before {
                    None if descriptor.distance < 0 => function.end,
                    None => function.begin,
                    Some((first, start)) => {
                        if (first.distance < 0) != (descriptor.distance < 0) {
                            return Err(invalid);
                        }
                        start
                    }
                };
                let start = start.wrapping_add_signed(descriptor.distance.into());
                if descriptor.count == 0 {
                    let (full, _) = before.ok_or(invalid)?;
                    descriptor = Descriptor { distance: descriptor.distance, ..full };
                }
                if !function.contains(start) {
                    return Err(invalid);
                }
                before = Some((descriptor, start));
                descriptor.epilogue(start, pool)
            };
            let epilogue = read();
            index = if epilogue.is_ok() { index + 1 } else { u8::MAX };
            Some(epilogue)
        })
    }

    /// Returns the register that the prologue sets as frame register.
    pub(super) fn frame_register(&self) -> Option<u8> {
        self.prologue.codes().find_map(|code| match code.ok()?.operation {
            WindingOperation::SetFpreg(register, _) => Some(register.number()),
            _ => None,
        })
    }
}

/// An epilogue of a fragment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EpilogueV3<'a> {
    /// RVA of the first instruction.
    pub start: u32,
    /// Bytes from the start to the last instruction, which leaves the fragment.
    pub last: u16,
    /// True if the epilogue returns to the parent fragment, not to the caller.
    pub is_transfer: bool,
    /// The operations that its instructions undo.
    pub winding: Winding<'a>,
}

/// An epilogue descriptor.
#[derive(Clone, Copy, Debug)]
struct Descriptor<'a> {
    flags: u8,
    /// Number of operations; 0 in a descriptor that inherits all but the distance.
    count: u8,
    /// EpilogOffset: bytes from the epilogue before, or from the start or the end of the fragment.
    distance: i16,
    /// FirstOp: offset of the first operation in the pool.
    first: u16,
    last: u16,
    ip_offsets: &'a [u8],
}

impl<'a> Descriptor<'a> {
    fn read(payload: &mut Payload<'a>) -> Result<Self, UnwindError> {
        let first_byte = payload.byte()?;
        let (flags, count) = (first_byte & 7, first_byte >> 3);
        let distance = payload.word()?.cast_signed();
        let inherited = Self { flags, count, distance, first: 0, last: 0, ip_offsets: &[] };
        if count == 0 {
            return Ok(inherited);
        }
        let first = payload.word()?;
        let large = inherited.is_large();
        let last = if large { payload.word()? } else { payload.byte()?.into() };
        Ok(Self { first, last, ip_offsets: payload.ip_offsets(count, large)?, ..inherited })
    }

    const fn is_large(&self) -> bool {
        self.flags & EPILOG_INFO_LARGE != 0
    }

    fn epilogue(&self, start: u32, pool: Payload<'a>) -> Result<EpilogueV3<'a>, UnwindError> {
        let Self { flags, count, first, last, ip_offsets, .. } = *self;
        Ok(EpilogueV3 {
            start,
            last,
            is_transfer: flags & PARENT_FRAGMENT_TRANSFER != 0,
            winding: pool.winding(first, count, self.is_large(), ip_offsets)?,
        })
    }
}

/// The rest of a payload.
#[derive(Clone, Copy, Debug)]
struct Payload<'a> {
    bytes: &'a [u8],
    /// RVA of the first byte.
    rva: u32,
}

impl<'a> Payload<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], UnwindError> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or(UnwindError::PayloadCutOff { rva: self.rva })?;
        *self = Self { bytes: rest, rva: self.rva.wrapping_add(count as u32) };
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, UnwindError> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    fn word(&mut self) -> Result<u16, UnwindError> {
        Ok(self.take(2)?.first_chunk().copied().map_or(0, u16::from_le_bytes))
    }

    fn ip_offsets(&mut self, count: u8, wide: bool) -> Result<&'a [u8], UnwindError> {
        self.take(usize::from(count) * if wide { 2 } else { 1 })
    }

    /// Returns the `count` operations from the byte `first` on.
    fn winding(
        mut self,
        first: u16,
        count: u8,
        wide: bool,
        ip_offsets: &'a [u8],
    ) -> Result<Winding<'a>, UnwindError> {
        self.take(first.into())?;
        let Self { bytes: descriptors, rva } = self;
        Ok(Winding { count, ip_offsets, wide, descriptors, rva })
    }
}
