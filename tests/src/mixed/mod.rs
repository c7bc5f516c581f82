//! Whole stacks found through the profiler's side, compared with the true callers, while programs
//! run through the runtime.
//!
//! [`judge`] checks the claims of a walk of a stopped thread: all frames are on the stack, each
//! once, and in order; the walk has as much as it claims, at least, and as much as it could have;
//! and for missing frames it gives the true reason. [`examine`] walks threads of programs in a
//! [`Way`]: that of the walker, or of a [`ReferenceWalker`] one, in which a [`Bug`] can be planted.

mod bug;
mod examine;
mod judge;
mod reference_walker;
mod staged;
mod truth;

pub use bug::Bug;
pub use examine::{
    Case, Claims, Examined, Failure, Plan, What, WrongWalk, examine, examine_loaded, shrink,
};
pub use judge::{Found, Wrong, judge};
pub use reference_walker::ReferenceWalker;
pub use staged::{Broken, Staged, walk_staged};
pub use truth::{Known, Truth};

use clr_codegen::execution::BASE;
use clr_runtime::OsThreadId;
use clr_runtime::Outcome;
use clr_runtime::profiling::{Policy, PolicyWalker, SimulatedThread};
use clr_unwind::{CodeMap, Registers};
use clr_walker::mixed::WalkBuffer;
use clr_world::World;

/// A native thread of the profiler.
const PROFILER: OsThreadId = OsThreadId(0xFFFF);
/// Maximum number of frames in a walk.
const CAPACITY: usize = 256;

/// A stopped thread that is to be walked.
pub struct Stop<'s, 'b> {
    /// The world.
    pub world: &'s mut World<'b>,
    /// The code that the profiler knows.
    pub map: &'s CodeMap<'b>,
    /// Index of the thread.
    pub thread: usize,
    /// Policy of the walk.
    pub policy: Policy,
    /// The thread's registers one step before.
    pub before: Option<&'s Registers>,
}

/// A walker of threads.
pub trait Way {
    /// Walks a thread; `None` if the runtime does not know the thread.
    ///
    /// # Errors
    /// The outcome that ends the process.
    fn walk(&mut self, stop: Stop<'_, '_>) -> Result<Option<Found>, Outcome>;
}

/// The walker of `clr-walker`.
#[derive(Debug)]
pub struct First {
    buffer: WalkBuffer,
}

impl Default for First {
    fn default() -> Self {
        Self { buffer: WalkBuffer::new(CAPACITY) }
    }
}

impl Way for First {
    fn walk(&mut self, stop: Stop<'_, '_>) -> Result<Option<Found>, Outcome> {
        let Stop { world, map, thread, policy, .. } = stop;
        let Some(os) = world.os(thread) else { return Ok(None) };
        let runtime = world.runtime();
        let Some(target) = SimulatedThread::new(runtime, os, BASE) else { return Ok(None) };
        let calling_thread = if policy.is_for_itself() { os } else { PROFILER };
        let (target, info) = (target.called_by(calling_thread), runtime.on(calling_thread));
        let walker = PolicyWalker::new(&info, map, policy);
        walker.take(&target, &mut self.buffer)?;
        let namer = runtime.on(naming_thread(policy, calling_thread));
        let stack = PolicyWalker::new(&namer, map, policy).stitch(&self.buffer)?;
        Ok(Some(stack.into()))
    }
}

/// Returns the thread that names the frames of a walk which `calling_thread` has made. A handler
/// that asks nothing leaves that to another thread.
fn naming_thread(policy: Policy, calling_thread: OsThreadId) -> OsThreadId {
    if policy == Policy::Signal { PROFILER } else { calling_thread }
}
