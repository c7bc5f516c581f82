//! A thread's Frame chain, looked at from outside: nothing is changed, and nothing is walked.

use crate::frame::FrameReader;
use crate::thread::ThreadObject;
use crate::{FRAME_TOP, FrameKind, Runtime, TargetMemory};
use clr_walker::profiling::ThreadId;

/// More Frames than any thread has.
const LIMIT: usize = 1 << 14;

/// A Frame on a thread's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainFrame {
    /// Its address (VA).
    pub at: u64,
    /// Its kind; `None` if its first word is no Frame's.
    pub kind: Option<FrameKind>,
    /// Where a walk would go on.
    pub leads_to: LeadsTo,
}

/// Where a Frame leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadsTo {
    /// To managed code (VA).
    Managed(
        /// Its ip (VA).
        u64,
    ),
    /// To unmanaged code: a walk leaves it behind.
    Unmanaged(
        /// Its ip (VA).
        u64,
    ),
    /// Nowhere.
    Nowhere,
    /// It cannot be told without changing it: a HelperMethodFrame that nobody has asked before, or
    /// memory that cannot be read.
    Unknown,
}

/// The Frames of the thread with this object, the topmost first, as far as they can be read.
#[must_use]
pub fn frame_chain<M: TargetMemory>(runtime: &Runtime<'_, M>, target: ThreadId) -> Vec<ChainFrame> {
    let memory = &*runtime.memory.borrow();
    let mut frames = Vec::new();
    let mut next = ThreadObject(target).top_frame(memory);
    while let Ok(at) = next
        && at != FRAME_TOP
        && frames.len() < LIMIT
    {
        let read = FrameReader::new(at, runtime.generation, &runtime.identities, memory);
        let Ok(Some(frame)) = read else {
            frames.push(ChainFrame { at, kind: None, leads_to: LeadsTo::Unknown });
            break;
        };
        let complete = matches!(frame.missing(&runtime.native, &runtime.code), Ok(None));
        let leads_to = match frame.return_address(&runtime.identities) {
            Ok(ip) if complete && runtime.code.find(ip).is_some() => LeadsTo::Managed(ip),
            Ok(0) if complete => LeadsTo::Nowhere,
            Ok(ip) if complete => LeadsTo::Unmanaged(ip),
            _ => LeadsTo::Unknown,
        };
        frames.push(ChainFrame { at, kind: Some(frame.kind), leads_to });
        next = frame.next();
    }
    frames
}

/// Where a walk from the chain would meet managed code first (VA): `None` if it would not, or if
/// that cannot be told.
#[must_use]
pub fn first_managed(chain: &[ChainFrame]) -> Option<u64> {
    chain.iter().find_map(|frame| match frame.leads_to {
        LeadsTo::Managed(ip) => Some(Some(ip)),
        LeadsTo::Unknown => Some(None),
        LeadsTo::Unmanaged(_) | LeadsTo::Nowhere => None,
    })?
}
