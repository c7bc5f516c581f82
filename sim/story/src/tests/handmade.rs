//! Interleavings made by hand, for what describes interleavings.

use super::*;

pub(crate) const MAIN: ThreadIndex = ThreadIndex(0);
pub(crate) const WORKER: ThreadIndex = ThreadIndex(1);
pub(crate) const SAMPLER: ThreadIndex = ThreadIndex(2);

/// Creates an interleaving without turns. The ids of the threads begin at 100.
pub(crate) fn history(threads: &[(&str, ThreadKind)]) -> History {
    let threads = threads.iter().zip(100..).map(|((name, kind), os)| ThreadSummary {
        name: (*name).to_owned(),
        kind: *kind,
        os: OsThreadId(os),
    });
    let locks = vec!["names".to_owned(), "samples".to_owned()];
    let reasons = vec!["the profiler is detached [C-001]".to_owned()];
    History { threads: threads.collect(), locks, reasons, ..History::default() }
}

/// Creates an interleaving of two threads of the program, and one of the profiler.
pub(crate) fn sampled() -> History {
    let (app, profiler) = (ThreadKind::App, ThreadKind::Profiler);
    history(&[("main", app), ("worker", app), ("sampler", profiler)])
}

pub(crate) trait ByHand {
    /// Adds a turn a microsecond after the last one, without statuses.
    fn turn(&mut self, thread: ThreadIndex, events: &[TurnEvent]);
    /// Adds a turn at this time.
    fn turn_at(&mut self, at: u64, thread: ThreadIndex, events: &[TurnEvent]);
    /// Records the status of each thread after the last turn.
    fn record(&mut self, statuses: &[ThreadStatus]);
}

impl ByHand for History {
    fn turn(&mut self, thread: ThreadIndex, events: &[TurnEvent]) {
        let at = self.turns.last().map_or(1, |turn| turn.at + 1);
        self.turn_at(at, thread, events);
    }

    fn turn_at(&mut self, at: u64, thread: ThreadIndex, events: &[TurnEvent]) {
        let (events, statuses) = (events.to_vec(), Vec::new());
        self.turns.push(Turn { at, thread, events, statuses });
    }

    fn record(&mut self, statuses: &[ThreadStatus]) {
        self.turns.last_mut().unwrap().statuses = statuses.to_vec();
    }
}

/// Returns the edge from a waiting thread to the one that it waits for.
pub(crate) const fn edge(waits: ThreadIndex, why: BlockReason, for_whom: ThreadIndex) -> Edge {
    Edge { waits, why, for_whom }
}
