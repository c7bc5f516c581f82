//! [`Policy::RuntimeSuspended`](super::Policy::RuntimeSuspended): `DoStackSnapshot` while the profiler has suspended
//! the runtime.

use super::WalkBuffer;
use super::cursor::{Cursor, Steps};
use super::fill::fill;
use super::questions::{Ended, Questions};
use super::reason::Reason;
use super::stopped::RuntimeSuspension;
use crate::profiling::{CallError, ModuleSource, ProfilerInfo, TargetThread};

#[inline(never)]
pub(super) fn take<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    target: &T,
    buffer: &mut WalkBuffer,
) -> Result<(), Ended<I::Fatal>> {
    let suspension = RuntimeSuspension::new(ask.info).map_err(|error| match error {
        CallError::Failed(result) => Ended::Short(Reason::Suspend(result)),
        CallError::Fatal(fatal) => Ended::Fatal(fatal),
    })?;
    take_suspended(ask, target, buffer)?;
    match suspension.resume() {
        Err(CallError::Fatal(fatal)) => return Err(Ended::Fatal(fatal)),
        resumed => buffer.is_stuck = resumed.is_err(),
    }
    Ok(())
}

/// Does what is done during a suspension.
pub(super) fn take_suspended<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    target: &T,
    buffer: &mut WalkBuffer,
) -> Result<(), I::Fatal> {
    buffer.leaf_runs = true;
    let map = ask.modules.code_map();
    let steps = Steps::new(&map, target);
    ask.snapshot(&steps, None, buffer)?;
    if buffer.reports().is_empty() {
        // There is nothing but what runs on, or the call was refused.
        return Ok(());
    }
    let mut frame = Cursor::NOWHERE;
    fill(&steps, buffer, &mut frame, false, |place| ask.name(&map, place))
}
