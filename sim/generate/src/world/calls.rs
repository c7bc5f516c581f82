//! Generation of calls.

use super::{By, WorldCall, WorldSeed};
use crate::Choices;
use clr_walker::profiling::SnapshotFlags;
use clr_world::ThreadStart;

/// Draws a call about one of these threads: a thread that the runtime knows, or a native one, which
/// may become known.
pub fn world_call<C: Choices>(choices: &mut C, threads: &[ThreadStart]) -> WorldCall {
    let known = |thread: usize| matches!(threads.get(thread), Some(ThreadStart::Managed(_)));
    let count = threads.len() as u32;
    let drawn = choices.below(count) as usize;
    let target = if known(drawn) || choices.chance(1, 2) { drawn } else { 0 };
    let by = match choices.weighted(&[6, 2, 1]) {
        0 => By::Target,
        1 => By::Profiler,
        _ => match choices.below(count) as usize {
            other if other == target => By::Profiler,
            other => By::Thread(other),
        },
    };
    // For a caller that the runtime knows, thread 0 would be the caller itself.
    let may_be_unnamed = !matches!(by, By::Thread(other) if known(other));
    let unnamed = may_be_unnamed && choices.chance(1, if by == By::Target { 2 } else { 24 });
    let flags = match choices.below(24) {
        0 => SnapshotFlags(choices.one([2, 3, 4, 0x8000_0001])),
        1..5 => SnapshotFlags::DEFAULT,
        _ => SnapshotFlags::REGISTER_CONTEXT,
    };
    let seed = choices.chance(1, 2).then(|| WorldSeed {
        activation: if choices.chance(1, 2) { choices.below(4) } else { choices.below(64) },
        flags: choices.one([0x10_000B, 0x10_001F, 0]),
    });
    let suspended_by_profiler = by != By::Target && choices.chance(1, 2);
    let stop_at = choices.chance(1, 12).then(|| choices.below(6));
    WorldCall { by, target, unnamed, flags, seed, suspended_by_profiler, stop_at }
}
