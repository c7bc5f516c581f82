//! CONTEXTs: what walks use of them, and their bytes for callbacks.

use clr_walker::registers::{CONTEXT_SIZE, Registers};

/// A CONTEXT as far as walks use it: the integer registers, rip, xmm6 to xmm15 and ContextFlags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The registers.
    pub registers: Registers,
    /// `ContextFlags`, which nothing in a walk depends on.
    pub flags: u32,
}

/// Offset of ContextFlags in bytes.
const FLAGS: usize = 0x30;
/// Offset of rip.
const RIP: usize = 0xF8;
/// How many bytes of a seed must be readable for its rip.
pub(super) const RIP_END: u64 = RIP as u64 + 8;
/// Offset of XStateFeaturesMask, behind the CONTEXT of Windows.
const XSTATE_FEATURES: usize = 0x4D0;

/// sizeof(CONTEXT) where it is largest.
pub(super) const MAX_CONTEXT_SIZE: usize = 0xC20;

/// `CONTEXT_XSTATE`.
const CONTEXT_XSTATE: u32 = 0x10_0040;
/// The bits of AVX-512 in XStateFeaturesMask.
const AVX512: u64 = 0xE0;

impl Context {
    /// The CONTEXT in these bytes; `None` if there are fewer than one takes on Windows.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let registers = Registers::from_context(bytes).ok()?;
        Some(Self { registers, flags: u32_at(bytes, FLAGS)? })
    }

    /// Its bytes, as many as a CONTEXT takes on Windows; all that it does not know is 0.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CONTEXT_SIZE] {
        let mut bytes = [0; CONTEXT_SIZE];
        self.write(&mut bytes);
        bytes
    }

    /// Writes what it knows into the bytes of a CONTEXT; the others stay.
    pub(super) fn write(&self, bytes: &mut [u8]) {
        if self.registers.write_context(bytes).is_ok()
            && let Some(flags) = bytes.get_mut(FLAGS..FLAGS + 4)
        {
            flags.copy_from_slice(&self.flags.to_le_bytes());
        }
    }
}

/// rip of the CONTEXT in these bytes, if they reach so far.
pub(super) fn rip_of(bytes: &[u8]) -> Option<u64> {
    u64_at(bytes, RIP)
}

/// How many bytes of a seed are read where that depends on its ContextFlags and
/// XStateFeaturesMask (C-162).
pub(super) fn seed_size(bytes: &[u8]) -> usize {
    let extended =
        u32_at(bytes, FLAGS).is_some_and(|flags| flags & CONTEXT_XSTATE == CONTEXT_XSTATE);
    match u64_at(bytes, XSTATE_FEATURES) {
        _ if !extended => 0x4D8,
        Some(features) if features & AVX512 != 0 => MAX_CONTEXT_SIZE,
        _ => 0x5E0,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
