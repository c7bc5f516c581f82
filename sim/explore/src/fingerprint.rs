//! Fingerprints of findings.

use super::ids::LockName;
use super::verdict::{BlockReason, Edge, Verdict};
use clr_runtime::Outcome;
use core::fmt::Write as _;

impl Verdict {
    /// Returns the fingerprint of the finding, which all findings of the same fault have in common:
    /// the kind of verdict and, for a deadlock, the reasons of the wait cycle in order. A
    /// fingerprint names no thread, numbers the profiler's locks by occurrence, and does not depend
    /// on where the cycle starts.
    ///
    /// A campaign groups its findings by fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Deadlock(edges) => match cycle(edges) {
                Some(cycle) => format!("deadlock: {cycle}"),
                None => format!("deadlock without a cycle: {}", each(edges)),
            },
            Self::LiveLock => "live-lock".to_owned(),
            Self::LostWakeUp(_) => "lost wake-up".to_owned(),
            Self::DestroyedThread { .. } => "destroyed thread used".to_owned(),
            Self::UnloadedCode { .. } => "unloaded code used".to_owned(),
            Self::ProcessKilled { outcome: Outcome::AccessViolation { .. }, .. } => {
                "process killed: access violation".to_owned()
            }
            Self::ProcessKilled { outcome, .. } => format!("process killed: {outcome}"),
            Self::Watchdog(_) => "watchdog".to_owned(),
            Self::Broken { rule, .. } => format!("rule broken: {rule:?}"),
            Self::Failed { words, .. } => {
                // Numbers differ between findings.
                let parts = words.split(|it: char| it.is_ascii_digit());
                let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
                format!("failed: {}", parts.join("#"))
            }
        }
    }
}

/// Returns the canonical rotation of a wait cycle, or `None` if the edges are not a cycle.
fn cycle(edges: &[Edge]) -> Option<String> {
    let follows = edges.iter().skip(1).chain(edges.first());
    if edges.is_empty() || edges.iter().zip(follows).any(|(edge, next)| edge.for_whom != next.waits)
    {
        return None;
    }
    (0..edges.len())
        .map(|first| cycle_text(edges.iter().cycle().skip(first).take(edges.len())))
        .min()
}

/// Returns all edges, sorted because their order has no meaning.
fn each(edges: &[Edge]) -> String {
    let mut each: Vec<_> = edges.iter().map(|edge| cycle_text([edge])).collect();
    each.sort();
    each.join(", ")
}

fn cycle_text<'e>(edges: impl IntoIterator<Item = &'e Edge>) -> String {
    let mut text = String::new();
    // The profiler's locks, in order of occurrence.
    let mut own: Vec<u32> = Vec::new();
    for edge in edges {
        if !text.is_empty() {
            text += ", ";
        }
        let what = match edge.why {
            BlockReason::Lock(LockName::Runtime(lock)) => lock.name(),
            BlockReason::Lock(LockName::Profiler(index)) => {
                let known = own.iter().position(|known| *known == index);
                let number = known.unwrap_or_else(|| {
                    own.push(index);
                    own.len() - 1
                });
                // Writing to a string cannot fail.
                let _ = write!(text, "profiler's lock {}", number + 1);
                continue;
            }
            BlockReason::Suspended => "suspension",
            BlockReason::ToStop => "suspension of the runtime",
            BlockReason::RuntimeSuspended => "suspended runtime",
            BlockReason::Collection => "collection",
            BlockReason::InterruptedWait => "interrupted wait",
            BlockReason::Join => "end of a thread",
            BlockReason::WakeUp => "wake-up",
            BlockReason::CodeManagerReader => "code manager's readers",
        };
        text += what;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::ids::ThreadIndex;
    use super::*;
    use clr_runtime::Lock;

    fn ring(whys: &[BlockReason], threads: &[u32]) -> Vec<Edge> {
        let next = threads.iter().cycle().skip(1);
        let pairs = threads.iter().zip(next);
        whys.iter()
            .zip(pairs)
            .map(|(why, (waits, whom))| Edge {
                waits: ThreadIndex(*waits),
                why: *why,
                for_whom: ThreadIndex(*whom),
            })
            .collect()
    }

    const HEAP: BlockReason = BlockReason::Lock(LockName::Runtime(Lock::ProcessHeap));
    const OWN: [BlockReason; 2] =
        [BlockReason::Lock(LockName::Profiler(3)), BlockReason::Lock(LockName::Profiler(1))];

    #[test]
    fn a_cycle_has_one_key_from_everywhere() {
        let whys = [BlockReason::Suspended, HEAP, OWN[0], OWN[1], OWN[0]];
        let fingerprint = Verdict::Deadlock(ring(&whys, &[0, 1, 2, 3, 4])).fingerprint();
        assert_eq!(
            fingerprint,
            "deadlock: process heap, profiler's lock 1, profiler's lock 2, profiler's lock 1, suspension"
        );
        for first in 0..whys.len() {
            let mut edges = ring(&whys, &[7, 5, 9, 6, 8]);
            edges.rotate_left(first);
            assert_eq!(Verdict::Deadlock(edges).fingerprint(), fingerprint);
        }
        let others =
            [BlockReason::Lock(LockName::Profiler(8)), BlockReason::Lock(LockName::Profiler(9))];
        let renamed = [BlockReason::Suspended, HEAP, others[0], others[1], others[0]];
        assert_eq!(Verdict::Deadlock(ring(&renamed, &[0, 1, 2, 3, 4])).fingerprint(), fingerprint);
    }

    const CLOSED: usize = 6;

    #[test]
    fn other_cycles_have_other_keys() {
        let rings = [
            ring(&[BlockReason::Suspended, HEAP], &[0, 1]),
            ring(
                &[BlockReason::Suspended, BlockReason::Lock(LockName::Runtime(Lock::Loader))],
                &[0, 1],
            ),
            ring(&[BlockReason::Suspended, OWN[0]], &[0, 1]),
            ring(&[OWN[1], OWN[0]], &[0, 1]),
            ring(&[OWN[0]], &[0]),
            ring(&[BlockReason::Suspended, HEAP, HEAP], &[0, 1, 2]),
            // The lists from index `CLOSED` on are not cycles.
            vec![Edge { waits: ThreadIndex(0), why: HEAP, for_whom: ThreadIndex(1) }],
            Vec::new(),
        ];
        let fingerprints: Vec<_> =
            rings.into_iter().map(|ring| Verdict::Deadlock(ring).fingerprint()).collect();
        for (n, fingerprint) in fingerprints.iter().enumerate() {
            assert!(!fingerprints[..n].contains(fingerprint), "{fingerprints:#?}");
            assert_eq!(
                fingerprint.starts_with("deadlock without a cycle"),
                n >= CLOSED,
                "{fingerprint}"
            );
        }
    }

    #[test]
    fn numbers_are_left_out() {
        let by = ThreadIndex(1);
        for at in [0x1000, 0xFFFF_0000] {
            let outcome = Outcome::AccessViolation { at };
            let fingerprint = Verdict::ProcessKilled { by, outcome }.fingerprint();
            assert_eq!(fingerprint, "process killed: access violation");
        }
        for count in [4, 17] {
            let words = format!("lost {count} of 20 frames");
            assert_eq!(Verdict::Failed { by, words }.fingerprint(), "failed: lost # of # frames");
        }
    }
}
