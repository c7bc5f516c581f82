//! A view of a thread's Frame chain from outside: it changes nothing, and does not walk.

use super::Event;
use crate::frame::FrameReader;
use crate::thread::ThreadObject;
use crate::{FRAME_TOP, FrameKind, Runtime, TargetMemory};
use clr_walker::profiling::ThreadId;

/// Limit on the Frames of a chain: no thread has more.
const LIMIT: usize = 1 << 14;

/// A Frame on a thread's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainFrame {
    /// Address of the Frame (VA).
    pub at: u64,
    /// Kind of the Frame; `None` if its first word is not a Frame identity.
    pub kind: Option<FrameKind>,
    /// Code at which a walk would continue.
    pub leads_to: FrameDestination,
}

/// Code that a Frame leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDestination {
    /// Managed code.
    Managed(
        /// The ip (VA).
        u64,
    ),
    /// Unmanaged code: a walk drops the Frame.
    Unmanaged(
        /// The ip (VA).
        u64,
    ),
    /// The Frame has no caller to continue at.
    Nowhere,
    /// The code cannot be determined without changing the Frame: it is a HelperMethodFrame that is
    /// not complete, or memory cannot be read.
    Unknown,
}

/// Returns the Frames of the thread with this object, topmost first, as far as they can be read.
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
            frames.push(ChainFrame { at, kind: None, leads_to: FrameDestination::Unknown });
            break;
        };
        let complete = matches!(frame.missing(&runtime.native, &runtime.code), Ok(None));
        let leads_to = match frame.return_address(&runtime.identities) {
            Ok(ip) if complete && runtime.code.find(ip).is_some() => FrameDestination::Managed(ip),
            Ok(0) if complete => FrameDestination::Nowhere,
            Ok(ip) if complete => FrameDestination::Unmanaged(ip),
            _ => FrameDestination::Unknown,
        };
        frames.push(ChainFrame { at, kind: Some(frame.kind), leads_to });
        next = frame.next();
    }
    frames
}

/// Returns the Frames of the thread that a call was about, if its events say which, as they are now.
pub fn target_chain<M: TargetMemory>(
    runtime: &Runtime<'_, M>,
    events: &[Event],
) -> Vec<ChainFrame> {
    let target = events.iter().find_map(|event| match event {
        Event::Target { object, .. } => Some(*object),
        _ => None,
    });
    target.map_or_else(Vec::new, |target| frame_chain(runtime, target))
}

/// Returns the address (VA) of the first managed code that a walk of the chain would reach, or
/// `None` if there is none or it cannot be determined.
pub fn first_managed(chain: &[ChainFrame]) -> Option<u64> {
    chain.iter().find_map(|frame| match frame.leads_to {
        FrameDestination::Managed(ip) => Some(Some(ip)),
        FrameDestination::Unknown => Some(None),
        FrameDestination::Unmanaged(_) | FrameDestination::Nowhere => None,
    })?
}
