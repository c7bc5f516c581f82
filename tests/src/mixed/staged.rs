//! Walks of threads set up by hand, whole and damaged.

use super::judge::Found;
use crate::snapshot::is_whole;
use clr_sim::profiling::{Outcome, SimulatedThread};
use clr_sim::stage::{NATIVE_WALKER, SELF, Set, Stage};
use clr_walker::mixed::{MixedFrame, Policy, WalkBuffer, Walker};
use thiserror::Error;

/// What a walk of a stage gets wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    /// It has more frames than there is room for.
    #[error("{0:?} finds {1} frames")]
    TooMany(Policy, usize),
    /// A frame is not on the stack, which is whole.
    #[error("{0:?}: frame {1} is invented: {2:x?}")]
    Invented(Policy, usize, Box<Found>),
}

/// What has been looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    /// Walks.
    pub walks: u64,
    /// Those of whole stages.
    pub whole: u64,
    /// Calls that end the process.
    pub fatal: u64,
    /// Frames.
    pub frames: u64,
}

/// Walks the thread of a stage by each policy, with room for so many frames; `None` if it cannot be set
/// up.
///
/// # Errors
/// [`Broken`].
pub fn walk_staged(stage: &Stage, room: usize) -> Result<Option<Staged>, Broken> {
    let Ok(set) = stage.set_up() else { return Ok(None) };
    let is_whole = is_whole(stage) && stage.hijacked.is_none() && !stage.rows.is_empty();
    let mut staged = Staged::default();
    let mut buffer = WalkBuffer::new(room);
    for policy in Policy::ALL {
        let Some(walked) = walk(&set, policy, &mut buffer) else { return Ok(None) };
        staged.walks += 1;
        let Ok(found) = walked else {
            staged.fatal += 1;
            continue;
        };
        staged.frames += found.frames.len() as u64;
        if found.frames.len() > room {
            return Err(Broken::TooMany(policy, found.frames.len()));
        }
        // Frame pointers are a guess.
        if is_whole && policy != Policy::FramePointers {
            staged.whole += 1;
            if let Some(frame) = invented(&set, &found.frames) {
                return Err(Broken::Invented(policy, frame, Box::new(found)));
            }
        }
    }
    Ok(Some(staged))
}

fn walk(set: &Set, policy: Policy, buffer: &mut WalkBuffer) -> Option<Result<Found, Outcome>> {
    let runtime = set.runtime();
    let map = runtime.profilers_code_map().ok()?;
    let target = SimulatedThread::new(&runtime, SELF, 0)?;
    let asker = if policy.is_for_itself() { SELF } else { NATIVE_WALKER };
    let (target, info) = (target.asked_by(asker), runtime.on(asker));
    let found = Walker::new(&info, &map, policy).walk(&target, buffer).map(Found::from);
    Some(found)
}

/// The first frame that is no row, or not where it comes.
fn invented(set: &Set, frames: &[MixedFrame]) -> Option<usize> {
    let count = set.stage().rows.len();
    let mut first = 0;
    for (index, frame) in frames.iter().enumerate() {
        let is = |row: &usize| {
            let registers = set.registers(*row);
            registers.is_some_and(|row| row.rsp() == frame.sp && row.rip == frame.ip)
        };
        match (first..count).find(is) {
            Some(row) => first = row + 1,
            None => return Some(index),
        }
    }
    None
}
