//! The recorded state of the thread and its process.

use crate::PlacedThread;
use crate::run::observed::PlacedObservation;
use clr_recording::WalkLine;
use clr_runtime::{ContextSafety, Suspension, ThreadLife};
use clr_walker::profiling::EventMask;

/// Address of memory in place of a Thread object (VA).
pub(super) const NO_THREAD: u64 = 0x11_0000_0000;
/// Size of that memory in bytes.
const NO_THREAD_SIZE: u64 = 0x1000;
/// Sets the state of the thread and its process.
pub(super) fn set_state(placed: &mut PlacedObservation, walk: &WalkLine) {
    let regions = walk.stack.iter().flat_map(|stack| &stack.regions);
    let regions: Vec<_> = regions.map(|(at, size, _)| (placed.small(at.0), *size)).collect();
    let thread = &mut placed.thread;
    let state = &walk.state;
    thread.cooperative = state.mode.as_deref() == Some("coop");
    thread.hijack_locked = state.hijack_lock_held;
    thread.forbid_suspend = u32::from(state.forbid_suspend);
    if thread.exceptions.inconsistent {
        thread.forbid_suspend = 0;
    }
    if state.in_system_call {
        thread.safety = ContextSafety::InSystemCall;
    }
    match state.target.as_deref() {
        Some("dead") => thread.life = ThreadLife::Dead,
        Some("invalid") => thread.blocks.push((NO_THREAD, NO_THREAD_SIZE)),
        _ => {}
    }
    thread.blocks.extend(regions);
    let process = &mut thread.process;
    process.started = state.ee_started.unwrap_or(true);
    if state.snapshot_enabled == Some(false) {
        process.event_mask = EventMask::default();
    }
    let stranger = PlacedThread::Other.os();
    if state.runtime_suspending {
        process.suspension = Suspension::Suspending(stranger);
    } else if state.runtime_suspended_by_profiler {
        process.suspension = Suspension::Suspended(stranger);
    }
    if state.runtime_suspended_by_profiler {
        process.suspended_by_profiler = true;
        process.profiler_suspensions = 1;
    }
}
