//! Recording of the thread status.

use super::history::{ThreadStatus, TurnEvent};
use super::ids::{LockName, ThreadIndex};
use super::kernel::Kernel;
use super::state::{State, Thread, Waiting};
use super::verdict::BlockReason;
use core::fmt;
use core::panic::Location;
use std::sync::Arc;

/// Adds the status of each thread to the last turn.
pub(super) fn record_statuses(kernel: &Kernel<'_>) {
    let statuses = {
        let state = kernel.state.borrow();
        let before = match state.history.as_ref().map(|history| &*history.turns) {
            Some([.., before, _]) => &*before.statuses,
            _ => &[],
        };
        let threads = (0..state.threads.len() as u32).map(ThreadIndex);
        threads.map(|index| of(kernel, &state, index, before.get(index.index()))).collect()
    };
    let mut state = kernel.state.borrow_mut();
    let turn = state.history.as_mut().and_then(|history| history.turns.last_mut());
    if let Some(turn) = turn {
        turn.statuses = statuses;
    }
}

fn of(
    kernel: &Kernel<'_>,
    state: &State,
    index: ThreadIndex,
    before: Option<&ThreadStatus>,
) -> ThreadStatus {
    let mut edges = Vec::new();
    kernel.edges_of(index, &mut edges);
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
        stack: stack(kernel, index, thread, state.hides_places, before.map(|before| &before.stack)),
        holds,
        edges,
        waits,
        suspended_by,
        in_system: thread.in_system,
        cooperative: known.then(|| world.is_cooperative(index.index())),
        ended: thread.ended,
    }
}

fn waits(thread: &Thread) -> Option<String> {
    let activity = thread.activities.last()?;
    match activity.waiting? {
        // A thread that has ended the interleaving does not return.
        Waiting::Time => activity.until.map(|_| "sleeps".to_owned()),
        Waiting::Event(event) => Some(format!("waits for event {event}")),
        Waiting::Condition(condition, _) => Some(format!("waits on condition {condition}")),
        Waiting::Lock(_) | Waiting::Shared(_) | Waiting::Join(_) | Waiting::Runtime(_) => None,
    }
}

/// Returns the stack of a thread: `before` itself if it has not changed.
fn stack(
    kernel: &Kernel<'_>,
    index: ThreadIndex,
    thread: &Thread,
    hides_places: bool,
    before: Option<&Arc<[String]>>,
) -> Arc<[String]> {
    let of_profiler = thread.activities.iter().rev().map(|activity| {
        let code = match activity.ends_with {
            TurnEvent::CallbackOver(kind) => kind.name(),
            TurnEvent::HookOver => "hook",
            TurnEvent::ExportOver => "export",
            TurnEvent::SignalOver => "signal handler",
            _ => &thread.name,
        };
        let place = activity.place.filter(|_| !hides_places);
        StackEntry { by: "profiler: ", code, place }
    });
    let world = kernel.world.borrow();
    let functions = &world.expanded().program.functions;
    let is_there = thread.kind.is_app() && !thread.ended;
    let of_program = is_there.then(|| world.functions(index.index())).into_iter().flatten();
    let of_program = of_program.map(|function| {
        let function = function.and_then(|id| functions.get(id.index()));
        let code = function.map_or("the runtime", |function| &*function.name);
        StackEntry { by: "", code, place: None }
    });
    let entries: Vec<_> = of_profiler.chain(of_program).collect();
    let is_same = |(text, entry): (&String, &StackEntry<'_>)| entry.is(text);
    match before {
        Some(before)
            if before.len() == entries.len() && before.iter().zip(&entries).all(is_same) =>
        {
            Arc::clone(before)
        }
        _ => entries.iter().map(ToString::to_string).collect(),
    }
}

/// Code on a stack.
struct StackEntry<'n> {
    by: &'static str,
    code: &'n str,
    place: Option<&'static Location<'static>>,
}

impl StackEntry<'_> {
    /// Returns true if this is the text of the entry.
    fn is(&self, text: &str) -> bool {
        match self.place {
            Some(_) => self.to_string() == text,
            None => text.strip_prefix(self.by).is_some_and(|rest| rest == self.code),
        }
    }
}

impl fmt::Display for StackEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.by, self.code)?;
        let Some(place) = self.place else { return Ok(()) };
        // A compiler on Windows has other separators in the same place.
        write!(f, " ({}:{})", place.file().replace('\\', "/"), place.line())
    }
}
