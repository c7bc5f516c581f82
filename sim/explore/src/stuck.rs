//! Nobody can go on: whose fault it is.

use super::history::ThreadIndex;
use super::kernel::{Kernel, Waiting};
use super::verdict::{Edge, Rule, Verdict, Why};

/// What it means that nobody can go on; nothing if all is over, or would be if the process ended.
pub(super) fn verdict(kernel: &Kernel<'_>, stopped: bool) -> Option<Verdict> {
    let edges = edges(kernel);
    if let Some(cycle) = cycle(&edges) {
        return Some(Verdict::Deadlock(cycle));
    }
    let state = kernel.state.borrow();
    let has_ended =
        |thread: ThreadIndex| state.threads.get(thread.index()).is_some_and(|thread| thread.ended);
    // Whoever is waited for has ended: it will never resume, or give the lock back.
    if let Some(edge) = edges.iter().find(|edge| has_ended(edge.for_whom)) {
        return Some(match edge.why {
            Why::Suspended => Verdict::Broken { by: edge.for_whom, rule: Rule::ResumeForgotten },
            _ => Verdict::Deadlock(edges.clone()),
        });
    }
    if stopped {
        return None;
    }
    // Who waits for an event nobody is left to set: threads of the profiler may, for ever, as long as
    // nobody waits for them.
    let waits = |index: usize| {
        let activity = state.threads.get(index).and_then(|thread| thread.activities.last());
        matches!(activity.and_then(|activity| activity.waiting), Some(Waiting::Event(_)))
    };
    let stuck = |index: &usize| {
        let thread = ThreadIndex(*index as u32);
        let is_app = state.threads.get(*index).is_some_and(|thread| thread.kind.is_app());
        waits(*index) && (is_app || edges.iter().any(|edge| edge.for_whom == thread))
    };
    if let Some(index) = (0..state.threads.len()).find(stuck) {
        return Some(Verdict::LostWakeUp(ThreadIndex(index as u32)));
    }
    let rest = state.threads.iter().any(|thread| thread.kind.is_app() && !thread.ended);
    (rest || !edges.is_empty()).then_some(Verdict::Deadlock(edges))
}

/// Threads that wait for each other, so that none of them can ever go on, whatever others do meanwhile.
pub(super) fn deadlock(kernel: &Kernel<'_>) -> Option<Verdict> {
    cycle(&edges(kernel)).map(Verdict::Deadlock)
}

/// Who waits for whom. Who waits with a limit waits for nobody: it goes on by itself.
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

/// A cycle in the graph: the shortest one, so that it can be told.
fn cycle(edges: &[Edge]) -> Option<Vec<Edge>> {
    let mut shortest: Option<Vec<Edge>> = None;
    for first in edges {
        let found = shortest_path(edges, first);
        if let Some(found) = found
            && shortest.as_ref().is_none_or(|shortest| found.len() < shortest.len())
        {
            shortest = Some(found);
        }
    }
    shortest
}

/// The shortest way that begins with an edge and ends where it began.
fn shortest_path(edges: &[Edge], first: &Edge) -> Option<Vec<Edge>> {
    // Breadth first: each entry is an edge and the entry that it follows.
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
