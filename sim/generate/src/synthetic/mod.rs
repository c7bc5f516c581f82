//! Random synthetic threads, and calls about them.
//!
//! Most threads are consistent: their Frames are where the runtime would put them, and lead to
//! the activations it would choose. Some have Frames at wrong places, and words written over their
//! stack, their Frames and their Thread object.

mod activations;
mod damage;
mod frames;
mod generate;
mod shrink;

pub use generate::{synthetic_call, synthetic_thread};

use clr_runtime::Context;
use clr_runtime::OsThreadId;
use clr_runtime::profiling::SnapshotRequest;
use clr_unwind::{CONTEXT_SIZE, Gpr};
use clr_walker::profiling::{SnapshotFlags, ThreadId};
use clr_world::synthetic::{SELF, SELF_OBJECT, SyntheticProcess, SyntheticThread};

/// A synthetic thread, and a call of `DoStackSnapshot` about it.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticCall {
    /// The process with the synthetic thread.
    pub target: SyntheticThread,
    /// The calling thread.
    pub caller: OsThreadId,
    /// The target thread: 0 for the caller.
    pub thread: ThreadId,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed.
    pub seed: Option<SyntheticSeed>,
    /// `contextSize`.
    pub context_size: u32,
    /// Index of the callback that stops the walk, counted from 0.
    pub stop_at: Option<u32>,
    /// The call has no callback.
    pub null_callback: bool,
}

/// Offset of XStateFeaturesMask in a CONTEXT, and size of the largest CONTEXT in bytes.
const FEATURES: usize = 0x4D0;
const MOST_BYTES: u32 = 0xC20;

/// A seed: the registers of an activation, with changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticSeed {
    /// Index of the activation, from the leaf; with `None` all registers are 0.
    pub activation: Option<u32>,
    /// Replacement of rip (VA).
    pub rip: Option<u64>,
    /// Replacement of rsp (VA).
    pub rsp: Option<u64>,
    /// Replacement of rbp.
    pub rbp: Option<u64>,
    /// ContextFlags.
    pub flags: u32,
    /// XStateFeaturesMask, after the CONTEXT of Windows.
    pub features: u64,
    /// Number of bytes of the seed that can be read.
    pub len: u32,
}

impl SyntheticSeed {
    /// Creates a seed with the registers of an activation.
    #[must_use]
    pub const fn of_activation(activation: u32) -> Self {
        Self {
            activation: Some(activation),
            rip: None,
            rsp: None,
            rbp: None,
            flags: 0x10_000B,
            features: 0,
            len: MOST_BYTES,
        }
    }

    /// Returns the index of the activation if its registers are unchanged and all bytes can be
    /// read.
    #[must_use]
    pub fn whole(&self) -> Option<usize> {
        let activation = self.activation?;
        let Self { flags, features, .. } = *self;
        (*self == Self { flags, features, ..Self::of_activation(activation) })
            .then_some(activation as usize)
    }

    /// Returns the readable bytes of the seed.
    #[must_use]
    pub fn bytes(&self, set: &SyntheticProcess) -> Vec<u8> {
        let activation = self.activation.and_then(|activation| set.registers(activation as usize));
        let mut registers = activation.unwrap_or_default();
        registers.rip = self.rip.unwrap_or(registers.rip);
        for (register, value) in [(Gpr::Rsp, self.rsp), (Gpr::Rbp, self.rbp)] {
            registers.set(register, value.unwrap_or(registers.get(register)));
        }
        let mut bytes = vec![0; MOST_BYTES as usize];
        let context = Context { registers, flags: self.flags }.to_bytes();
        bytes[..CONTEXT_SIZE].copy_from_slice(&context);
        bytes[FEATURES..FEATURES + 8].copy_from_slice(&self.features.to_le_bytes());
        bytes.truncate(self.len as usize);
        bytes
    }
}

impl SyntheticCall {
    /// Creates a call of a thread for itself, with contexts and without a seed.
    #[must_use]
    pub const fn new(target: SyntheticThread) -> Self {
        Self {
            target,
            caller: SELF,
            thread: SELF_OBJECT,
            flags: SnapshotFlags::REGISTER_CONTEXT,
            seed: None,
            context_size: 0,
            stop_at: None,
            null_callback: false,
        }
    }

    /// Returns the call, with these bytes as the seed.
    #[must_use]
    pub const fn call<'s>(&self, seed: Option<&'s [u8]>) -> SnapshotRequest<'s> {
        SnapshotRequest {
            thread: self.thread,
            flags: self.flags,
            seed,
            context_size: self.context_size,
            client_data: 0x1234_5678_9ABC_DEF0,
        }
    }
}
