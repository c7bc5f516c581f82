//! Deadlock detection.

use super::ids::{LockName, ThreadIndex};
use super::kernel::Kernel;
use super::state::Waiting;
use super::verdict::{BlockReason, Edge, ProfilerRule, Verdict};
use clr_runtime::Wait;

/// Returns the verdict when no thread can run, or `None` if all threads have ended, or would if the
/// process ended.
pub(super) fn verdict(kernel: &Kernel<'_>, stopped: bool) -> Option<Verdict> {
    let edges = edges(kernel);
    if let Some(cycle) = cycle(&edges) {
        return Some(Verdict::Deadlock(cycle));
    }
    let state = kernel.state.borrow();
    let has_ended =
        |thread: ThreadIndex| state.threads.get(thread.index()).is_some_and(|thread| thread.ended);
    // The thread that is waited for has ended: it will never resume the other, or release the lock.
    if let Some(edge) = edges.iter().find(|edge| has_ended(edge.for_whom)) {
        return Some(match edge.why {
            BlockReason::Suspended => {
                Verdict::Broken { by: edge.for_whom, rule: ProfilerRule::ResumeForgotten }
            }
            _ => Verdict::Deadlock(edges.clone()),
        });
    }
    if stopped {
        return None;
    }
    // Waits for an event that no remaining thread can set, or for a notification. Threads of the profiler may wait
    // forever, as long as no thread waits for them.
    let waits = |index: usize| {
        let activity = state.threads.get(index).and_then(|thread| thread.activities.last());
        matches!(
            activity.and_then(|activity| activity.waiting),
            Some(Waiting::Event(_) | Waiting::Condition(..))
        )
    };
    let stuck = |index: &usize| {
        let thread = ThreadIndex(*index as u32);
        let is_app = state.threads.get(*index).is_some_and(|thread| thread.kind.is_app());
        // The threads of the program wait for the one that starts the runtime.
        let starts = kernel.starts(&state) == Some(thread);
        waits(*index) && (is_app || starts || edges.iter().any(|edge| edge.for_whom == thread))
    };
    if let Some(cycle) = through_wake_up(edges.clone(), |it| waits(it.index()), state.threads.len())
    {
        return Some(Verdict::Deadlock(cycle));
    }
    if let Some(index) = (0..state.threads.len()).find(stuck) {
        return Some(Verdict::LostWakeUp(ThreadIndex(index as u32)));
    }
    let rest = state.threads.iter().any(|thread| thread.kind.is_app() && !thread.ended);
    (rest || !edges.is_empty()).then_some(Verdict::Deadlock(edges))
}

/// Returns the deadlock of threads that wait for each other, so that none of them can ever run,
/// whatever other threads do.
pub(super) fn deadlock(kernel: &Kernel<'_>) -> Option<Verdict> {
    cycle(&edges(kernel)).map(Verdict::Deadlock)
}

/// Returns the edges of the wait-for graph. A thread in a timed wait has none: it continues when
/// the time is over.
fn edges(kernel: &Kernel<'_>) -> Vec<Edge> {
    let count = kernel.state.borrow().threads.len() as u32;
    let mut edges = Vec::new();
    for index in (0..count).map(ThreadIndex) {
        if !kernel.has_limit(index) {
            kernel.edges_of(index, &mut edges);
        }
    }
    edges
}

/// Returns the shortest cycle through a thread that waits for an event or a notification. Any thread that is blocked could
/// give it, but two: one that waits for the end of the waiting thread, and one that was suspended, and is to be resumed.
fn through_wake_up(
    mut edges: Vec<Edge>,
    waits: impl Fn(ThreadIndex) -> bool,
    threads: usize,
) -> Option<Vec<Edge>> {
    edges.retain(|edge| !matches!(edge.why, BlockReason::Join | BlockReason::Suspended));
    let mut blocked: Vec<_> = edges.iter().map(|edge| edge.waits).collect();
    blocked.dedup();
    for waiting in (0..threads as u32).map(ThreadIndex).filter(|it| waits(*it)) {
        let others = blocked.iter().filter(|other| **other != waiting);
        edges.extend(others.map(|other| Edge {
            waits: waiting,
            why: BlockReason::WakeUp,
            for_whom: *other,
        }));
    }
    cycle(&edges)
}

/// Returns the shortest cycle in the graph, which is the easiest to explain.
fn cycle(edges: &[Edge]) -> Option<Vec<Edge>> {
    // A thread that was suspended a thousand times has as many equal edges, which lead to the same paths.
    let mut distinct: Vec<Edge> = Vec::new();
    for edge in edges {
        if !distinct.contains(edge) {
            distinct.push(*edge);
        }
    }
    let mut shortest: Option<Vec<Edge>> = None;
    for first in &distinct {
        let found = shortest_path(&distinct, first);
        if let Some(found) = found
            && shortest.as_ref().is_none_or(|shortest| found.len() < shortest.len())
        {
            shortest = Some(found);
        }
    }
    shortest
}

/// Returns the shortest path that begins with an edge and ends where it began.
#[must_use]
pub fn shortest_path(edges: &[Edge], first: &Edge) -> Option<Vec<Edge>> {
    // Breadth-first: each entry is an edge and the entry that it follows.
    let mut queue: Vec<(Edge, Option<usize>)> = vec![(*first, None)];
    let mut next = 0;
    while let Some((edge, _)) = queue.get(next).copied() {
        if edge.for_whom == first.waits {
            let mut path = Vec::new();
            let mut at = Some(next);
            while let Some((edge, before)) = at.and_then(|at| queue.get(at).copied()) {
                path.push(edge);
                at = before;
            }
            path.reverse();
            return Some(path);
        }
        for follows in edges.iter().filter(|follows| follows.waits == edge.for_whom) {
            if !queue.iter().any(|(seen, _)| seen == follows) {
                queue.push((*follows, Some(next)));
            }
        }
        next += 1;
    }
    None
}

impl Kernel<'_> {
    /// Returns true if a thread is in a timed wait and is not suspended.
    pub(super) fn has_limit(&self, index: ThreadIndex) -> bool {
        let state = self.state.borrow();
        let activity = state.threads.get(index.index()).and_then(|thread| thread.activities.last());
        activity.is_some_and(|activity| activity.until.is_some()) && self.suspensions(index) == 0
    }

    /// Adds the threads that block a thread, with the reasons: none if it can run, or if no thread
    /// can help.
    pub(super) fn edges_of(&self, index: ThreadIndex, edges: &mut Vec<Edge>) {
        let state = self.state.borrow();
        let Some(thread) = state.threads.get(index.index()).filter(|thread| !thread.ended) else {
            return;
        };
        let mut edge = |why, for_whom| edges.push(Edge { waits: index, why, for_whom });
        let suspensions = self.suspensions(index) as usize;
        for by in &thread.suspended_by {
            edge(BlockReason::Suspended, *by);
        }
        if suspensions > thread.suspended_by.len() {
            for (other, walker) in state.threads.iter().enumerate() {
                if walker.walks == Some(index) {
                    edge(BlockReason::Suspended, ThreadIndex(other as u32));
                }
            }
        }
        if suspensions > 0 {
            return;
        }
        let wait = match thread.activities.last().map(|activity| activity.waiting) {
            Some(Some(Waiting::Lock(lock) | Waiting::Shared(lock))) => {
                if let Some(held) = state.locks.get(lock as usize) {
                    for holder in held.owner.iter().chain(&held.readers) {
                        edge(BlockReason::Lock(LockName::Profiler(lock)), *holder);
                    }
                }
                return;
            }
            Some(Some(Waiting::Join(other))) => return edge(BlockReason::Join, other),
            Some(Some(Waiting::Runtime(wait))) => Some(wait),
            None if thread.kind.is_app() => self.world.borrow().waits_for(index.index()),
            Some(_) | None => None,
        };
        let Some(wait) = wait else { return };
        let why = match wait {
            Wait::Lock(lock) => BlockReason::Lock(LockName::Runtime(lock)),
            Wait::RuntimeRunning(_) => BlockReason::RuntimeSuspended,
            Wait::ThreadsToStop => BlockReason::ToStop,
            Wait::CodeManagerReaders => BlockReason::CodeManagerReader,
            Wait::Gc(_) => BlockReason::Collection,
            Wait::ForegroundThreads | Wait::Program => BlockReason::Join,
            Wait::WakeUpOfInterrupted => BlockReason::InterruptedWait,
            Wait::GcWanted => return,
        };
        for other in self.world.borrow().waited_for(thread.os, wait) {
            let place = state.threads.iter().position(|thread| thread.os == other);
            if let Some(place) = place {
                edge(why, ThreadIndex(place as u32));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{cycle, shortest_path};
    use crate::{BlockReason, Edge, ThreadIndex};

    /// Returns an edge for each pair of the thread that waits and the one that it waits for.
    fn edges<const N: usize>(pairs: [(u32, u32); N]) -> [Edge; N] {
        pairs.map(|(waits, for_whom)| Edge {
            waits: ThreadIndex(waits),
            why: BlockReason::Join,
            for_whom: ThreadIndex(for_whom),
        })
    }

    #[test]
    fn the_shortest_cycle_is_the_deadlock() {
        let ring = edges([(0, 1), (1, 2), (2, 0)]);
        assert_eq!(cycle(&ring).as_deref(), Some(&ring[..]));
        for two in [edges([(1, 3), (3, 1)]), edges([(4, 5), (5, 4)])] {
            // Wherever the shorter one is in the list.
            let after = [&ring[..], &two].concat();
            assert_eq!(cycle(&after).as_deref(), Some(&two[..]));
            let before = [&two[..], &ring].concat();
            assert_eq!(cycle(&before).as_deref(), Some(&two[..]));
        }
        let itself = edges([(2, 2)]);
        assert_eq!(cycle(&[&ring[..], &itself].concat()).as_deref(), Some(&itself[..]));
    }

    #[test]
    fn of_cycles_of_one_length_the_first_is_the_deadlock() {
        let (one, other) = (edges([(0, 1), (1, 0)]), edges([(2, 3), (3, 2)]));
        assert_eq!(cycle(&[one, other].concat()).as_deref(), Some(&one[..]));
        assert_eq!(cycle(&[other, one].concat()).as_deref(), Some(&other[..]));
    }

    #[test]
    fn waits_that_lead_nowhere_are_no_cycle() {
        assert_eq!(cycle(&[]), None);
        assert_eq!(cycle(&edges([(0, 1), (1, 2), (3, 2)])), None);
        let tail = edges([(0, 1), (1, 2), (2, 1)]);
        assert_eq!(cycle(&tail).as_deref(), Some(&tail[1..]), "without the way to it");
        assert_eq!(shortest_path(&tail, &tail[0]), None);
    }
}
