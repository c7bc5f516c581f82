//! Tests of failures that searches inject.

use super::*;
use crate::{Faults, InjectedFault};
use clr_runtime::profiling::CallFaults;

fn faults(words: &str, most: u32) -> Faults {
    Faults { which: CallFaults::from_words(words).unwrap(), most }
}

fn process() -> TestedProcess {
    let load = RuntimeCall { kind: RuntimeCallKind::LoadAssembly, target: None };
    executing_on(Generation::Net8Unix, &[("main", vec![Statement::Runtime(load)])])
}

/// A sampler that leaves the runtime suspended if the threads cannot be listed.
fn forgets(setup: &mut Setup<'_>) {
    setup.thread("sampler", |me| {
        for _ in 0..2 {
            if me.info().suspend_runtime().is_err() {
                continue;
            }
            if me.info().enum_threads().is_err() {
                return;
            }
            me.info().resume_runtime().unwrap();
        }
    });
}

/// A sampler that resumes in any case.
fn resumes(setup: &mut Setup<'_>) {
    setup.thread("sampler", |me| {
        if me.info().suspend_runtime().is_ok() {
            let _ = me.info().enum_threads();
            me.info().resume_runtime().unwrap();
        }
    });
}

#[test]
fn a_forgotten_resume_is_found_when_the_call_before_fails() {
    let process = process();
    let random = Budget::random(1, 200);
    let report = check(&process, &forgets, &random).unwrap();
    assert!(report.survives() && report.injected == 0, "{report}");
    let report = check(&process, &forgets, &Budget { faults: faults("all", 1), ..random }).unwrap();
    let failure = report.failure.expect("the runtime stays suspended");
    assert!(failure.repeats, "{}", failure.again());
    let said = failure.to_string();
    let after = "after EnumThreads was made to fail with E_OUTOFMEMORY (fault injection)";
    assert!(said.lines().next().unwrap().ends_with(after), "{said}");
    let [InjectedFault { result: HResult::OUT_OF_MEMORY, frames: 0, .. }] =
        failure.schedule.faults()
    else {
        panic!("{}", failure.schedule)
    };
    let budget = Budget { faults: faults("all", 1), ..Budget::random(1, 200) };
    let report = check(&process, &resumes, &budget).unwrap();
    assert!(report.survives() && report.injected > 20, "{report}");
}

#[test]
fn an_exhaustive_search_tries_each_failure_of_each_call() {
    let process = process();
    let budget = |words, most| Budget { faults: faults(words, most), ..Budget::exhaustive(10_000) };
    let report = check(&process, &forgets, &budget("EnumThreads", 1)).unwrap();
    assert!(report.failure.is_some_and(|failure| failure.repeats));
    // Without a program each set of failures has one interleaving.
    let process = nothing();
    let report = check(&process, &forgets, &budget("SuspendRuntime", 2)).unwrap();
    assert!(report.survives() && report.covered.unwrap().everything, "{report}");
    let mut seen = BTreeSet::new();
    let mut search = faults("SuspendRuntime", 2).in_all(Exhaustive::new(None));
    let mut explorer = Explorer::new(&process).unwrap();
    for number in 0.. {
        if !search.begin(number) {
            break;
        }
        let ending =
            explorer.run(&forgets, &mut *search, Limits::default(), HistoryDetail::Nothing);
        search.end(&ending);
        seen.insert(ending.schedule.faults().iter().map(|fault| fault.call).collect::<Vec<_>>());
    }
    // A suspension that succeeds is followed by EnumThreads, which is call 1 then.
    let expected: [&[u32]; 4] = [&[], &[0], &[0, 1], &[2]];
    assert_eq!(seen, expected.map(<[u32]>::to_vec).into());
}

#[test]
fn states_by_contents_find_what_states_by_steps_find() {
    let process = nothing();
    let outcomes = |search: Exhaustive| {
        let load = |setup: &mut Setup<'_>| {
            setup.keeps(|| 0);
            resumes(setup);
            let lock = setup.lock("names");
            setup.thread("other", move |me| {
                let _lock = me.lock(lock);
                let _ = me.info().enum_threads();
            });
        };
        let mut search = faults("all", 1).in_all(search.to_each_end());
        let mut explorer = Explorer::new(&process).unwrap();
        let mut found = BTreeSet::new();
        for number in 0..20_000 {
            if !search.begin(number) {
                assert!(search.progress().covered.unwrap().everything);
                return found;
            }
            let ending =
                explorer.run(&load, &mut *search, Limits::default(), HistoryDetail::Nothing);
            search.end(&ending);
            let faults = ending.schedule.faults().iter();
            let faults: Vec<_> = faults.map(|fault| (fault.thread, fault.call)).collect();
            found.insert((faults, ending.verdict.map(|verdict| verdict.fingerprint())));
        }
        panic!("it has no end")
    };
    assert_eq!(outcomes(Exhaustive::new(None)), outcomes(Exhaustive::new(None).by_steps()));
}

#[test]
fn a_walk_fails_before_its_frames_or_after_one() {
    let process = process();
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let budget = Budget { faults: faults("DoStackSnapshot=E_FAIL", 1), ..Budget::random(5, 300) };
    let saw = Rc::clone(&seen);
    let load = move |setup: &mut Setup<'_>| {
        let saw = Rc::clone(&saw);
        setup.on(CallbackKind::AssemblyLoadStarted, move |me| {
            let mut frames = 0;
            let mut on_frame = |_: &mut SnapshotFrame<'_>| {
                frames += 1;
                HResult::OK
            };
            let request = SnapshotRequest::of(ThreadId(0), SnapshotFlags(0));
            let walked = me.info().do_stack_snapshot(&request, Some(&mut on_frame));
            saw.borrow_mut().insert((walked.is_ok(), frames));
        });
    };
    let report = check(&process, &load, &budget).unwrap();
    assert!(report.survives() && report.injected > 0, "{report}");
    let seen = seen.borrow();
    assert!(seen.contains(&(false, 0)) && seen.contains(&(false, 1)), "{seen:?}");
    let whole = seen.iter().find(|(is_whole, _)| *is_whole);
    assert!(whole.is_some_and(|(_, frames)| *frames > 1), "{seen:?}");
}

#[test]
fn a_search_elsewhere_injects_the_same() {
    let process = process();
    let make = |is_exhaustive: bool| {
        if is_exhaustive {
            faults("all", 1).in_all(Exhaustive::new(None))
        } else {
            faults("all", 2).around(4, Box::new(Random::new(4)))
        }
    };
    for is_exhaustive in [true, false] {
        let [mut here, mut copy, mut taught, mut asked] = [(); 4].map(|()| make(is_exhaustive));
        let mut explorer = Explorer::new(&process).unwrap();
        let mut run = |search: &mut dyn Search| {
            explorer.run(&forgets, search, Limits::default(), HistoryDetail::Nothing)
        };
        let mut injected = 0;
        for number in 0..60 {
            if !here.begin(number) {
                break;
            }
            assert!(copy.begin(number) && taught.begin(number) && asked.begin(number));
            let executed = run(&mut *here);
            here.end(&executed);
            let mut noting = NotingSearch::new(&mut *copy);
            assert_eq!(executed, run(&mut noting), "interleaving {number}");
            let noted = noting.into_noted();
            copy.end(&executed);
            assert_eq!(noted.to_string().parse().as_ref(), Ok(&noted));
            noted.teach(&mut *taught, &executed.schedule, executed.in_turn);
            let learns = asked.observer().is_some();
            let mut remote =
                RemoteSearch::new(learns, true, |line: &str, _| answer(&mut *asked, line).unwrap());
            assert_eq!(executed, run(&mut remote), "interleaving {number}");
            asked.end(&executed);
            injected += executed.schedule.faults().len();
        }
        assert!(injected > 3, "{injected}");
        assert_eq!(here.progress(), taught.progress());
    }
}
