//! Interleavings made by hand.

use super::*;
use clr_explore::{LockName, ThreadIndex, ThreadSummary};
use clr_runtime::profiling::CallbackKind;
use clr_runtime::{Lock, OsThreadId, Outcome};

pub(crate) const MAIN: ThreadIndex = ThreadIndex(0);
pub(crate) const WORKER: ThreadIndex = ThreadIndex(1);
pub(crate) const SAMPLER: ThreadIndex = ThreadIndex(2);

pub(crate) const HEAP: LockName = LockName::Runtime(Lock::ProcessHeap);
pub(crate) const OWN: LockName = LockName::Profiler(1);

/// Describes the reason why a thread does not continue, if it waits.
pub(crate) fn waits(history: &History, statuses: &ThreadStatus) -> Option<String> {
    let edge = statuses.edges.iter().find(|edge| edge.why != BlockReason::Suspended);
    let of_edge = |edge: &Edge| match edge.why {
        BlockReason::Lock(lock) => format!("waits for {}", history.lock_name(lock)),
        why => format!("{why} {}", history.name(edge.for_whom)),
    };
    statuses.waits.clone().or_else(|| edge.map(of_edge))
}

/// An interleaving under construction: callers set the changes of each turn, and all other state is kept.
pub(crate) struct Story {
    pub(crate) history: History,
    pub(crate) now: Vec<ThreadStatus>,
    pub(crate) time: u64,
}

impl Story {
    pub(crate) fn new(threads: &[(&str, ThreadKind)]) -> Self {
        let thread = |(index, (name, kind)): (usize, &(&str, ThreadKind))| ThreadSummary {
            name: (*name).to_owned(),
            kind: *kind,
            os: OsThreadId(100 + index as u32),
        };
        let threads: Vec<_> = threads.iter().enumerate().map(thread).collect();
        let now = vec![ThreadStatus::default(); threads.len()];
        let locks = vec!["names".to_owned(), "samples".to_owned()];
        Self { history: History { threads, locks, ..History::default() }, now, time: 0 }
    }

    /// Returns a thread's state from now on, to be changed.
    pub(crate) fn set(&mut self, thread: ThreadIndex) -> &mut ThreadStatus {
        &mut self.now[thread.index()]
    }

    pub(crate) fn stack(&mut self, thread: ThreadIndex, frames: &[&str]) {
        self.set(thread).stack = frames.iter().map(ToString::to_string).collect();
    }

    /// Makes a thread wait for a lock that another one owns.
    pub(crate) fn wait(&mut self, thread: ThreadIndex, lock: LockName, owner: ThreadIndex) {
        self.set(thread).edges =
            vec![Edge { waits: thread, why: BlockReason::Lock(lock), for_whom: owner }];
    }

    pub(crate) fn turn(&mut self, thread: ThreadIndex, events: &[TurnEvent]) {
        self.time += 1;
        let (events, statuses) = (events.to_vec(), self.now.clone());
        self.history.turns.push(Turn { at: self.time, thread, events, statuses });
    }
}

/// Builds the interleaving of H-13: the sampler suspends the worker, which owns the process's heap, and
/// allocates.
pub(crate) fn frozen_in_malloc() -> (History, Vec<Edge>) {
    use TurnEvent as H;
    let mut story = Story::new(&[
        ("main", ThreadKind::App),
        ("worker", ThreadKind::App),
        ("sampler", ThreadKind::Profiler),
    ]);
    story.stack(MAIN, &["Program.Loop", "Program.Main"]);
    story.set(MAIN).cooperative = Some(true);
    story.turn(MAIN, &[H::Executed(3)]);
    story.turn(MAIN, &[H::Executed(4)]);
    story.set(WORKER).cooperative = Some(true);
    story.stack(WORKER, &["Worker.Run"]);
    story.turn(WORKER, &[H::Begins, H::Executed(2)]);
    story.turn(MAIN, &[H::Executed(5)]);
    story.turn(WORKER, &[H::Executed(7)]);
    story.turn(MAIN, &[H::Executed(1)]);
    story.stack(SAMPLER, &["sampler: loop"]);
    story.turn(SAMPLER, &[H::Begins]);
    story.set(SAMPLER).waits = Some("sleeps".to_owned());
    story.turn(SAMPLER, &[H::Sleeps(50)]);
    story.stack(WORKER, &["malloc", "libc!strdup", "Worker.Run"]);
    story.set(WORKER).cooperative = Some(false);
    story.set(WORKER).holds = vec![HEAP];
    story.turn(WORKER, &[H::Mode { cooperative: false }, H::Executed(1), H::Acquired(HEAP)]);
    let thread_created = CallbackKind::ThreadCreated;
    story.stack(MAIN, &["ThreadCreated", "Thread.Start", "Program.Main"]);
    story.set(MAIN).cooperative = Some(false);
    story.turn(MAIN, &[H::Executed(2), H::Callback(thread_created)]);
    story.set(MAIN).holds = vec![OWN];
    story.turn(MAIN, &[H::Acquired(OWN)]);
    story.set(MAIN).holds = Vec::new();
    story.turn(MAIN, &[H::Released(OWN)]);
    story.stack(MAIN, &["Program.Loop", "Program.Main"]);
    story.set(MAIN).cooperative = Some(true);
    story.turn(MAIN, &[H::CallbackOver(thread_created), H::Executed(1)]);
    story.stack(MAIN, &["Thread.Sleep", "Program.Loop", "Program.Main"]);
    story.set(MAIN).waits = Some("sleeps".to_owned());
    story.turn(MAIN, &[H::Sleeps(60)]);
    story.set(WORKER).waits = Some("sleeps".to_owned());
    story.turn(WORKER, &[H::Sleeps(20), H::Waits]);
    story.time = 57;
    story.set(SAMPLER).waits = None;
    story.set(SAMPLER).holds = vec![OWN];
    story.turn(SAMPLER, &[H::TimedOut, H::Acquired(OWN)]);
    story.set(WORKER).suspended_by = vec![SAMPLER];
    story.set(WORKER).edges =
        vec![Edge { waits: WORKER, why: BlockReason::Suspended, for_whom: SAMPLER }];
    story.turn(SAMPLER, &[H::Suspended(WORKER)]);
    story.turn(SAMPLER, &[H::Context(WORKER)]);
    story.stack(SAMPLER, &["DoStackSnapshot", "sampler: loop"]);
    story.turn(SAMPLER, &[H::Called("DoStackSnapshot", Some(WORKER))]);
    story.stack(SAMPLER, &["sampler: callback", "DoStackSnapshot", "sampler: loop"]);
    story.turn(SAMPLER, &[H::SnapshotCallback]);
    story.turn(SAMPLER, &[H::SnapshotCallback]);
    story.stack(SAMPLER, &["DoStackSnapshot", "sampler: loop"]);
    story.turn(SAMPLER, &[H::SnapshotCallback]);
    story.stack(SAMPLER, &["sampler: loop"]);
    story.turn(
        SAMPLER,
        &[H::Returned("DoStackSnapshot", Outcome::Returned(clr_walker::profiling::HResult::OK))],
    );
    story.stack(SAMPLER, &["malloc", "std::vector::push_back", "sampler: loop"]);
    story.wait(SAMPLER, HEAP, WORKER);
    story.turn(SAMPLER, &[H::System("allocates"), H::Waits]);
    story.set(MAIN).waits = None;
    story.time = 76;
    story.turn(MAIN, &[H::TimedOut]);
    story.wait(MAIN, OWN, SAMPLER);
    story.turn(MAIN, &[H::Callback(CallbackKind::ThreadDestroyed), H::Waits]);
    let edges = vec![
        Edge { waits: MAIN, why: BlockReason::Lock(OWN), for_whom: SAMPLER },
        Edge { waits: SAMPLER, why: BlockReason::Lock(HEAP), for_whom: WORKER },
        Edge { waits: WORKER, why: BlockReason::Suspended, for_whom: SAMPLER },
    ];
    (story.history, edges)
}

pub(crate) const ENDING: &str = "Deadlock: nobody can go on (H-13).\n\
    A profiler allocates nothing while a thread is suspended: it may own the process's heap.";

/// Builds an interleaving of many turns of five threads that take locks, call back and suspend each
/// other.
pub(crate) fn long(turns: u32) -> History {
    let kinds = [
        ThreadKind::App,
        ThreadKind::App,
        ThreadKind::App,
        ThreadKind::ManagedProfiler,
        ThreadKind::Profiler,
    ];
    let names = ["main", "finalizer", "pool worker 1", "uploader", "sampler"];
    let threads: Vec<_> = names.into_iter().zip(kinds).collect();
    let mut story = Story::new(&threads);
    let mut random = 1_u32;
    let mut draw = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 16) % below
    };
    let frames = ["Program.Main", "Server.Accept", "Json.Parse", "String.Concat", "Buffer.Grow"];
    for _ in 0..turns {
        let free: Vec<_> = (0..5)
            .filter(|thread| {
                let now = &story.now[*thread as usize];
                now.edges.is_empty() && now.suspended_by.is_empty()
            })
            .collect();
        let Some(thread) = free.get(draw(free.len().max(1) as u32) as usize) else { break };
        let me = ThreadIndex(*thread);
        let mut events = vec![TurnEvent::Executed(1 + draw(9))];
        let depth = 1 + draw(5) as usize;
        let stack: Vec<_> = frames[..depth].iter().rev().copied().collect();
        story.stack(me, &stack);
        let lock = if draw(2) == 0 { HEAP } else { OWN };
        let owner = (0..5).find(|thread| story.now[*thread as usize].holds.contains(&lock));
        // The sampler, which alone resumes threads, takes no locks, and threads that own a lock do
        // not wait.
        let may_wait = me.0 != 4 && story.now[me.index()].holds.is_empty();
        match (draw(8), owner) {
            (0, None) if may_wait => {
                story.set(me).holds.push(lock);
                events.push(TurnEvent::Acquired(lock));
            }
            (0, Some(other)) if other != me.0 && may_wait => {
                story.wait(me, lock, ThreadIndex(other));
                events.push(TurnEvent::Waits);
            }
            (1..=3, _) if !story.set(me).holds.is_empty() => {
                let lock = story.set(me).holds.remove(0);
                events.push(TurnEvent::Released(lock));
                for other in &mut story.now {
                    other.edges.retain(|edge| edge.why != BlockReason::Lock(lock));
                }
            }
            (4, _) if me.0 == 4 => {
                if let Some(frozen) =
                    (0..4).find(|t| !story.now[*t as usize].suspended_by.is_empty())
                {
                    story.set(ThreadIndex(frozen)).suspended_by.clear();
                    events.push(TurnEvent::Resumed(ThreadIndex(frozen)));
                } else {
                    let target = ThreadIndex(draw(4));
                    story.set(target).suspended_by.push(me);
                    events.push(TurnEvent::Suspended(target));
                }
            }
            _ => {}
        }
        story.turn(me, &events);
    }
    story.history
}
