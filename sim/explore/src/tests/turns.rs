//! Tests of what a turn of the program accesses.

use super::*;
use crate::Explorer;

/// A search that records what each turn accesses.
struct Noting {
    inner: Random,
    accesses: Vec<Footprint>,
}

impl Search for Noting {
    fn begin(&mut self, number: u64) -> bool {
        self.inner.begin(number)
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        self.inner.choose(at)
    }

    fn end(&mut self, _: &Ending) {}

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }
}

impl Observer for Noting {
    fn stepped(&mut self, step: &Step<'_>) {
        self.accesses.push(step.footprint);
    }
}

/// Returns the events and the accesses of each turn of a program with one thread.
fn turns(generation: Generation, calls: &[RuntimeCallKind]) -> Vec<(Vec<TurnEvent>, Footprint)> {
    let call =
        |kind: &RuntimeCallKind| Statement::Runtime(RuntimeCall { kind: *kind, target: None });
    let body = [Statement::Work(5)].into_iter().chain(calls.iter().map(call));
    let process = executing_on(generation, &[("Main", body.collect())]);
    let mut search = Noting { inner: Random::new(0), accesses: Vec::new() };
    search.begin(0);
    let (limits, detail) = (Limits::default(), HistoryDetail::Events);
    let ending = Explorer::new(&process).unwrap().run(&|_| {}, &mut search, limits, detail);
    assert_eq!(ending.verdict, None);
    let events = ending.history.unwrap().turns.into_iter().map(|turn| turn.events);
    events.zip(search.accesses).collect()
}

#[test]
fn a_turn_changes_what_its_services_change() {
    use RuntimeCallKind::{Collect, CreateHandle, New, WriteBarrier};
    for generation in [Generation::CoreClr31Windows, Generation::Net9Unix] {
        let changes = |calls: &[RuntimeCallKind], what: Footprint| {
            turns(generation, calls).iter().any(|(_, access)| access.meets(what.read()))
        };
        for (calls, objects, suspends) in [
            (&[][..], false, false),
            (&[WriteBarrier], false, false),
            (&[New], true, false),
            (&[CreateHandle], true, false),
            // What a GC reports depends on the objects that were made before.
            (&[Collect], true, true),
        ] {
            assert_eq!(changes(calls, Footprint::OBJECTS), objects, "{generation}, {calls:?}");
            assert_eq!(changes(calls, Footprint::SUSPENSION), suspends, "{generation}, {calls:?}");
            // The thread is added to the list of threads, and removed.
            assert!(changes(calls, Footprint::THREADS), "{generation}, {calls:?}");
            assert!(!changes(calls, Footprint::MEMORY), "{generation}, {calls:?}");
        }
    }
}

#[test]
fn a_lock_is_changed_by_the_turn_that_takes_it_or_gives_it_back() {
    let mut taken = 0;
    for (events, access) in turns(Generation::Net9Unix, &[RuntimeCallKind::Collect]) {
        for event in events {
            if let TurnEvent::Acquired(lock) | TurnEvent::Released(lock) = event {
                taken += 1;
                assert!(access.meets(Footprint::lock(lock).read()), "{event}");
            }
        }
    }
    assert!(taken >= 2, "{taken}");
}
