//! The walker of `clr-walker`, by any of its policies.

use super::{Found, StackWalker, StoppedThread};
use clr_walker::mixed::{Completeness, FrameKind, Policy, WalkBuffer, Walker};

/// Maximum number of frames.
const LIMIT: usize = 1 << 10;

/// The walker of `clr-walker`, as a profiler uses it that has followed the process from its start: it knows all
/// images, and all methods in code heaps.
#[derive(Clone, Copy, Debug)]
pub struct MixedWalker(
    /// The policy of all walks.
    pub Policy,
);

/// The walker of `clr-walker` by the policy that a profiler takes on the system: seeded on Windows, in the handler of a
/// signal on Unix.
pub(super) struct OnSystem;

impl StackWalker for OnSystem {
    fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
        let is_unix = target.generation().is_unix();
        MixedWalker(if is_unix { Policy::Signal } else { Policy::Seeded }).walk(target, found)
    }
}

impl StackWalker for MixedWalker {
    fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
        let Self(policy) = *self;
        let map = target.code_map(policy).map_err(|error| error.to_string())?;
        let thread = target.as_target(policy).ok_or("the runtime does not know the thread")?;
        let info = target.info_for(policy);
        let mut buffer = WalkBuffer::new(LIMIT);
        let stack = Walker::new(&info, &map, policy)
            .try_walk(&thread, &mut buffer)
            .map_err(|outcome| outcome.to_string())?;
        for frame in &stack.frames {
            if let FrameKind::Managed(function) = frame.kind {
                found.push(Found { function, ip: frame.ip });
            }
        }
        match stack.completeness() {
            Completeness::Whole => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }
}
