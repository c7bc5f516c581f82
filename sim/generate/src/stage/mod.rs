//! Threads set up by hand, and calls about them, at random.
//!
//! Most threads are whole: their Frames lie where the runtime would put them, and lead where it
//! would. Some have Frames at wrong places, and words written over their stack, their Frames and
//! their Thread object.

mod damage;
mod frames;
mod generate;
mod rows;
mod simpler;

pub use generate::{stage, staged_call};
pub(super) use simpler::Step;

use clr_runtime::Context;
use clr_runtime::OsThreadId;
use clr_runtime::profiling::Call;
use clr_walker::profiling::{SnapshotFlags, ThreadId};
use clr_walker::registers::{CONTEXT_SIZE, Gpr};
use clr_world::synthetic::{SELF, SELF_OBJECT, Set, Stage};

/// A thread set up by hand, and a call of `DoStackSnapshot` about it.
#[derive(Clone, Debug, PartialEq)]
pub struct StagedCall {
    /// The process.
    pub stage: Stage,
    /// Who calls.
    pub caller: OsThreadId,
    /// The target: 0 for the caller.
    pub thread: ThreadId,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed.
    pub seed: Option<Seed>,
    /// `contextSize`.
    pub context_size: u32,
    /// The callback that wants no more, counted from 0.
    pub stop_at: Option<u32>,
    /// There is no callback.
    pub null_callback: bool,
}

/// Where the XStateFeaturesMask of a CONTEXT is, and how many bytes the largest CONTEXT has.
const FEATURES: usize = 0x4D0;
const MOST_BYTES: u32 = 0xC20;

/// A seed: the registers of a row, and what is changed of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The row, from the leaf; without, all registers are 0.
    pub row: Option<u32>,
    /// Another rip (VA).
    pub rip: Option<u64>,
    /// Another rsp (VA).
    pub rsp: Option<u64>,
    /// Another rbp.
    pub rbp: Option<u64>,
    /// ContextFlags.
    pub flags: u32,
    /// XStateFeaturesMask, behind the CONTEXT of Windows.
    pub features: u64,
    /// How many bytes of it can be read.
    pub len: u32,
}

impl Seed {
    /// The registers of a row.
    #[must_use]
    pub const fn of_row(row: u32) -> Self {
        Self {
            row: Some(row),
            rip: None,
            rsp: None,
            rbp: None,
            flags: 0x10_000B,
            features: 0,
            len: MOST_BYTES,
        }
    }

    /// The row that it is of, if nothing of it is changed and all of it can be read.
    #[must_use]
    pub fn whole(&self) -> Option<usize> {
        let row = self.row?;
        let Self { flags, features, .. } = *self;
        (*self == Self { flags, features, ..Self::of_row(row) }).then_some(row as usize)
    }

    /// Its bytes, as far as they can be read.
    #[must_use]
    pub fn bytes(&self, set: &Set) -> Vec<u8> {
        let row = self.row.and_then(|row| set.registers(row as usize));
        let mut registers = row.unwrap_or_default();
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

impl StagedCall {
    /// A thread calls for itself, with contexts and without a seed.
    #[must_use]
    pub const fn new(stage: Stage) -> Self {
        Self {
            stage,
            caller: SELF,
            thread: SELF_OBJECT,
            flags: SnapshotFlags::REGISTER_CONTEXT,
            seed: None,
            context_size: 0,
            stop_at: None,
            null_callback: false,
        }
    }

    /// The call, with these bytes as the seed.
    #[must_use]
    pub const fn call<'s>(&self, seed: Option<&'s [u8]>) -> Call<'s> {
        Call {
            thread: self.thread,
            flags: self.flags,
            seed,
            context_size: self.context_size,
            client_data: 0x1234_5678_9ABC_DEF0,
        }
    }
}
