//! Recording of the thread status.

use super::history::{ThreadIndex, ThreadStatus, TurnEvent};
use super::kernel::{Kernel, Thread, Waiting};
use super::lock::LockName;
use super::verdict::BlockReason;

/// Adds the status of each thread to the last turn.
pub(super) fn record_statuses(kernel: &Kernel<'_>) {
    let count = kernel.state.borrow().threads.len() as u32;
    let statuses = (0..count).map(|index| of(kernel, ThreadIndex(index))).collect();
    let mut state = kernel.state.borrow_mut();
    let turn = state.history.as_mut().and_then(|history| history.turns.last_mut());
    if let Some(turn) = turn {
        turn.statuses = statuses;
    }
}

fn of(kernel: &Kernel<'_>, index: ThreadIndex) -> ThreadStatus {
    let mut edges = Vec::new();
    kernel.edges_of(index, &mut edges);
    let state = kernel.state.borrow();
    let Some(thread) = state.threads.get(index.index()) else { return ThreadStatus::default() };
    let process = kernel.runtime.process.get();
    let mut holds: Vec<_> = process.locks_of(thread.os).map(LockName::Runtime).collect();
    for (place, lock) in state.locks.iter().enumerate() {
        if lock.is_held_by(index) {
            holds.push(LockName::Profiler(place as u32));
        }
    }
    // By calls of the system, or by the runtime on behalf of a walk.
    let suspended = edges.iter().filter(|edge| edge.why == BlockReason::Suspended);
    let suspended_by = suspended.map(|edge| edge.for_whom).collect();
    let waits = waits(thread).filter(|_| edges.is_empty());
    let is_app = thread.kind.is_app();
    let world = kernel.world.borrow();
    let known = is_app && world.object(index.index()).is_some();
    ThreadStatus {
        stack: stack(kernel, index, thread),
        holds,
        edges,
        waits,
        suspended_by,
        cooperative: known.then(|| world.is_cooperative(index.index())),
        ended: thread.ended,
    }
}

fn waits(thread: &Thread) -> Option<String> {
    let activity = thread.activities.last()?;
    match activity.waiting? {
        // A thread that has ended the history does not return.
        Waiting::Time => activity.until.map(|_| "sleeps".to_owned()),
        Waiting::Event(event) => Some(format!("waits for event {event}")),
        Waiting::Condition(condition, _) => Some(format!("waits on condition {condition}")),
        Waiting::Lock(_) | Waiting::Shared(_) | Waiting::Join(_) | Waiting::Runtime(_) => None,
    }
}

fn stack(kernel: &Kernel<'_>, index: ThreadIndex, thread: &Thread) -> Vec<String> {
    let of_profiler = thread.activities.iter().rev().map(|activity| match activity.ends_with {
        TurnEvent::CallbackOver(kind) => format!("profiler: {}", kind.name()),
        TurnEvent::HookOver => "profiler: hook".to_owned(),
        TurnEvent::ExportOver => "profiler: export".to_owned(),
        TurnEvent::SignalOver => "profiler: signal handler".to_owned(),
        _ => format!("profiler: {}", thread.name),
    });
    let mut stack: Vec<_> = of_profiler.collect();
    if thread.kind.is_app() && !thread.ended {
        let world = kernel.world.borrow();
        let functions = &world.expanded().program.functions;
        stack.extend(world.activations(index.index()).iter().map(|activation| {
            let function = activation.function.and_then(|id| functions.get(id.index()));
            function.map_or_else(|| "the runtime".to_owned(), |function| function.name.clone())
        }));
    }
    stack
}
