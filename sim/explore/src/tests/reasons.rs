//! Reasons of failed calls in recorded interleavings.

use super::*;

const MAIN: ThreadIndex = ThreadIndex(0);

/// Walks the thread of the program. Returns true if the call was refused.
fn is_refused(me: &crate::CurrentThread<'_, '_>, nests: bool) -> bool {
    let Some(main) = me.target(MAIN).filter(|main| main.id().0 != 0) else { return false };
    let mut callback = |_: &mut SnapshotFrame<'_>| {
        if nests {
            let _ = is_refused(me, false);
        }
        HResult::OK
    };
    let flags = SnapshotFlags::DEFAULT;
    me.info()
        .do_stack_snapshot(&SnapshotRequest::of(main.id(), flags), Some(&mut callback))
        .is_err()
}

/// Returns the events of calls in interleavings of two samplers, with the reasons in words.
fn calls(generation: Generation, seeds: core::ops::Range<u64>) -> Vec<(TurnEvent, String)> {
    let new = Statement::Runtime(RuntimeCall { kind: RuntimeCallKind::New, target: None });
    let body = vec![Statement::Work(20), new.clone(), Statement::Work(20), new];
    let process = executing_on(generation, &[("Main", body)]);
    let load = |setup: &mut Setup<'_>| {
        for (name, nests) in [("one", true), ("other", false)] {
            setup.thread(name, move |me| {
                for _ in 0..8 {
                    me.point();
                    is_refused(me, nests);
                }
            });
        }
    };
    let mut explorer = Explorer::new(&process).unwrap();
    let mut calls = Vec::new();
    for seed in seeds {
        let (mut search, detail) = (Random::new(seed), HistoryDetail::Events);
        let limits = Limits { every_instruction: true, ..Limits::default() };
        let ending = explorer.run(&load, &mut search, limits, detail);
        let history = ending.history.unwrap();
        for thread in 0..3 {
            let own = history.turns.iter().filter(|turn| turn.thread.0 == thread);
            for event in own.flat_map(|turn| &turn.events) {
                match *event {
                    TurnEvent::Refused(reason) => {
                        calls.push((*event, history.reason(reason).to_owned()));
                    }
                    TurnEvent::Called(..) | TurnEvent::Returned(..) => {
                        calls.push((*event, String::new()));
                    }
                    _ => {}
                }
            }
        }
    }
    calls
}

#[test]
fn a_failed_call_has_its_target_and_its_reason() {
    let calls = calls(Generation::Net9Unix, 0..20);
    let called = calls.iter().filter(|(event, _)| matches!(event, TurnEvent::Called(..)));
    assert!(called.clone().count() >= 20, "{calls:?}");
    for (event, _) in called {
        // A thread that is over has an id no more.
        let TurnEvent::Called("DoStackSnapshot", Some(MAIN) | None) = event else {
            panic!("{event:?}");
        };
    }
    let mut reasons = 0;
    for pair in calls.windows(2) {
        if let [(TurnEvent::Returned(_, outcome), _), (TurnEvent::Refused(_), reason)] = pair
            && outcome.to_string() == "E_NOTIMPL"
        {
            reasons += 1;
            assert!(reason.ends_with("[C-019]"), "{reason}");
        }
    }
    assert!(reasons >= 20, "{calls:?}");
}

/// A walk inside another one's callback, and one of another thread meanwhile, have their own reasons.
#[test]
fn calls_that_are_interleaved_have_their_own_reasons() {
    let calls = calls(Generation::CoreClr31Windows, 0..200);
    let (mut walked, mut refused) = (0, 0);
    for pair in calls.windows(2) {
        let [(TurnEvent::Returned(_, outcome), _), (next, reason)] = pair else { continue };
        let is_reason = matches!(next, TurnEvent::Refused(_));
        if outcome.to_string() == "S_OK" {
            walked += 1;
            assert!(!is_reason, "{pair:?}");
            continue;
        }
        refused += usize::from(is_reason);
        assert!(is_reason && reason.contains("[C-"), "{pair:?}");
        // Each is the reason of its own result.
        for (result, words) in [("UNSAFE", "hijack lock"), ("UNMANAGED_CTX", "own rip")] {
            let is_result = outcome.to_string().ends_with(result);
            assert_eq!(is_result, reason.contains(words), "{pair:?}");
        }
    }
    assert!(walked > 50 && refused > 50, "{walked} {refused}");
}
