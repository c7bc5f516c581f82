//! Winding operations, of which a prologue or an epilogue consists.

use crate::registers::Gpr;
use crate::unwinder::UnwindError;
use core::fmt;

/// A general-purpose register by its number, 0 to 31: APX has r16 to r31 beside those that [`Gpr`]
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExtendedGpr(u8);

impl ExtendedGpr {
    const fn new(number: u8) -> Self {
        Self(number & 31)
    }

    /// Returns the number, 0 to 31.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns the register, or `None` for r16 to r31.
    pub const fn gpr(self) -> Option<Gpr> {
        if self.0 < 16 { Some(Gpr::from_number(self.0)) } else { None }
    }
}

impl fmt::Display for ExtendedGpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gpr() {
            Some(register) => f.write_str(register.name()),
            None => write!(f, "r{}", self.0),
        }
    }
}

/// The operation of an instruction, in the words of the prologue: in an epilogue it is undone.
/// Sizes and displacements are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindingOperation {
    /// WOD_PUSH: the register was pushed.
    Push(ExtendedGpr),
    /// WOD_PUSH2 or WOD_PUSH_CONSECUTIVE_2: the first register was pushed, then the second.
    Push2(ExtendedGpr, ExtendedGpr),
    /// WOD_ALLOC_SMALL, WOD_ALLOC_LARGE or WOD_ALLOC_HUGE: N bytes of stack were allocated.
    Alloc(u32),
    /// WOD_SET_FPREG: the register was set to rsp plus this offset.
    SetFpreg(Gpr, u32),
    /// WOD_SAVE_NONVOL or WOD_SAVE_NONVOL_FAR: the register was stored at rsp + displacement.
    SaveNonvol(ExtendedGpr, u32),
    /// WOD_SAVE_XMM128 or WOD_SAVE_XMM128_FAR: xmm*n* was stored at rsp + displacement.
    SaveXmm128(u8, u32),
    /// WOD_PUSH_CANONICAL_FRAME: the processor or the system pushed a frame of this type.
    PushCanonicalFrame(u8),
}

/// The type of a machine frame without an error code. Assumed: the types are defined by Windows'
/// headers alone; LLVM writes this one.
pub(super) const MACHINE_FRAME: u8 = 0;
/// The type of a machine frame with an error code. Assumed, as [`MACHINE_FRAME`] is.
pub(super) const MACHINE_FRAME_WITH_ERROR: u8 = 1;

impl WindingOperation {
    /// Decodes the operation at the start of `bytes`, which are at `rva`, and returns its length.
    pub(super) fn decode(bytes: &[u8], rva: u32) -> Result<(Self, usize), UnwindError> {
        let cut_off = UnwindError::PayloadCutOff { rva };
        let first = *bytes.first().ok_or(cut_off)?;
        let (high5, high4) = (ExtendedGpr::new(first >> 3), first >> 4);
        let byte = || bytes.get(1).copied().ok_or(cut_off);
        let word = || {
            let operand = bytes.get(1..).and_then(<[u8]>::first_chunk).ok_or(cut_off)?;
            Ok::<_, UnwindError>(u32::from(u16::from_le_bytes(*operand)))
        };
        let long = || {
            let operand = bytes.get(1..).and_then(<[u8]>::first_chunk).ok_or(cut_off)?;
            Ok::<_, UnwindError>(u32::from_le_bytes(*operand))
        };
        let invalid = UnwindError::InvalidOperation { operation: first, rva };
        Ok(match (first & 7, first & 15, first & 63, first) {
            (4, ..) => (Self::Push(high5), 1),
            (5, ..) => (Self::SaveNonvol(high5, long()?), 5),
            (6, ..) => (Self::SaveNonvol(high5, word()? * 8), 3),
            // No register follows r31.
            (7, ..) if high5.0 == 31 => return Err(invalid),
            (7, ..) => (Self::Push2(high5, ExtendedGpr(high5.0 + 1)), 1),
            (_, 8, ..) => (Self::Alloc(u32::from(high4) * 8 + 8), 1),
            (_, 9, ..) => (Self::SaveXmm128(high4, long()?), 5),
            (_, 10, ..) => (Self::SaveXmm128(high4, word()? * 16), 3),
            (_, _, 32, _) => {
                let second = byte()?;
                let pushed_first = ExtendedGpr::new(first >> 6 | second << 2 & 0x1C);
                (Self::Push2(pushed_first, ExtendedGpr::new(second >> 3)), 2)
            }
            (_, _, _, 0) => {
                let second = byte()?;
                (Self::SetFpreg(Gpr::from_number(second), u32::from(second >> 4) * 16), 2)
            }
            (_, _, _, 1) => (Self::Alloc(long()?), 5),
            (_, _, _, 2) => (Self::Alloc(word()? * 8), 3),
            (_, _, _, 3) => (Self::PushCanonicalFrame(byte()?), 2),
            _ => return Err(invalid),
        })
    }

    /// Returns the number of bytes by which the operation lowers rsp, if that is fixed.
    pub(super) const fn size(self) -> u32 {
        match self {
            Self::Push(_) => 8,
            Self::Push2(..) => 16,
            Self::Alloc(bytes) => bytes,
            _ => 0,
        }
    }
}

/// An operation with the place of its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindingCode {
    /// IP offset: bytes from the start of the fragment or of the epilogue to the start of the
    /// instruction.
    pub ip_offset: u16,
    /// The operation.
    pub operation: WindingOperation,
    /// RVA of the descriptor of the operation.
    pub rva: u32,
}

impl WindingCode {
    /// Returns true if the instruction is before `offset`. Assumed: a frame that the processor
    /// pushes is there before the instruction at its offset.
    pub(in crate::unwinder::win64) const fn is_before(&self, offset: u32) -> bool {
        let own = self.ip_offset as u32;
        match self.operation {
            WindingOperation::PushCanonicalFrame(_) => own <= offset,
            _ => own < offset,
        }
    }
}

/// The operations of a prologue or an epilogue.
#[derive(Clone, Copy, Debug)]
pub struct Winding<'a> {
    pub(super) count: u8,
    /// An offset for each operation.
    pub(super) ip_offsets: &'a [u8],
    /// True if each offset has two bytes.
    pub(super) wide: bool,
    /// The descriptors of the operations, and what follows them in the payload.
    pub(super) descriptors: &'a [u8],
    /// RVA of the descriptors.
    pub(super) rva: u32,
}

impl<'a> Winding<'a> {
    /// Returns the number of operations, 0 to 31.
    pub const fn count(&self) -> u8 {
        self.count
    }

    /// Returns the operations in the order in which they are undone: the last one of a prologue
    /// first. An error ends the iteration.
    pub fn codes(&self) -> impl Iterator<Item = Result<WindingCode, UnwindError>> + use<'a> {
        let Self { count, wide, ip_offsets, mut descriptors, mut rva } = *self;
        let mut index = 0;
        core::iter::from_fn(move || {
            if index >= usize::from(count) {
                return None;
            }
            let offset = if wide {
                let both = ip_offsets.get(2 * index..).and_then(<[u8]>::first_chunk);
                both.map_or(0, |both| u16::from_le_bytes(*both))
            } else {
                ip_offsets.get(index).copied().map_or(0, u16::from)
            };
            let code = WindingOperation::decode(descriptors, rva).map(|(operation, len)| {
                let code = WindingCode { ip_offset: offset, operation, rva };
                descriptors = descriptors.get(len..).unwrap_or_default();
                rva = rva.wrapping_add(len as u32);
                code
            });
            index = if code.is_ok() { index + 1 } else { usize::MAX };
            Some(code)
        })
    }
}
