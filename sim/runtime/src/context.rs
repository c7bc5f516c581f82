//! CONTEXTs: the fields that walks use, and the bytes that callbacks get.

use crate::generation::SeedSize;
use clr_unwind::{CONTEXT_SIZE, Registers};

/// The fields of a CONTEXT that walks use: the integer registers, rip, xmm6 to xmm15 and
/// ContextFlags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The registers.
    pub registers: Registers,
    /// `ContextFlags`, which have no influence on a walk.
    pub flags: u32,
}

/// Offset of ContextFlags in bytes.
const FLAGS: usize = 0x30;
/// Offset of rip.
const RIP: usize = 0xF8;
/// Number of bytes of a seed that must be readable for its rip.
pub(super) const RIP_END: u64 = RIP as u64 + 8;
/// Offset of XStateFeaturesMask, after the CONTEXT of Windows.
const XSTATE_FEATURES: usize = 0x4D0;

/// Largest sizeof(CONTEXT) of all runtimes.
pub(super) const MAX_CONTEXT_SIZE: usize = 0xCA0;

impl Context {
    /// Parses the CONTEXT in these bytes. Returns `None` if there are fewer than a CONTEXT has on
    /// Windows.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let registers = Registers::from_context(bytes).ok()?;
        Some(Self { registers, flags: u32_at(bytes, FLAGS)? })
    }

    /// Returns the bytes of a Windows CONTEXT; all other fields are 0.
    pub fn to_bytes(&self) -> [u8; CONTEXT_SIZE] {
        let mut bytes = [0; CONTEXT_SIZE];
        self.write(&mut bytes);
        bytes
    }

    /// Writes the known fields into the bytes of a CONTEXT; the other bytes keep their values.
    pub(super) fn write(&self, bytes: &mut [u8]) {
        if self.registers.write_context(bytes).is_ok()
            && let Some(flags) = bytes.get_mut(FLAGS..FLAGS + 4)
        {
            flags.copy_from_slice(&self.flags.to_le_bytes());
        }
    }
}

/// Returns rip of the CONTEXT in these bytes, or `None` if there are too few.
pub(super) fn rip_of(bytes: &[u8]) -> Option<u64> {
    u64_at(bytes, RIP)
}

/// Returns the number of bytes of a seed that are read (C-053, C-162). What the bytes lack counts as
/// 0.
pub(super) fn seed_size(bytes: &[u8], size: SeedSize) -> usize {
    let flags = u32_at(bytes, FLAGS).unwrap_or_default();
    let features = u64_at(bytes, XSTATE_FEATURES).unwrap_or_default();
    size.of(flags, features) as usize
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
