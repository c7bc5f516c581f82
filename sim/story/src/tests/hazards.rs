//! Tests of the hazards that verdicts are instances of.

use super::*;

const WALK: &str = "DoStackSnapshot";
const CALLS: TurnEvent = TurnEvent::Called(WALK, Some(WORKER));
const RETURNS: TurnEvent = TurnEvent::Returned(WALK, Outcome::Returned(HResult::OK));
const FRAME: TurnEvent = TurnEvent::SnapshotCallback;
const ESCAPE: TurnEvent = TurnEvent::ESCAPES;
const DESTROYED: CallbackKind = CallbackKind::ThreadDestroyed;
const NAMES: BlockReason = BlockReason::Lock(LockName::Profiler(0));
const LIST: BlockReason = BlockReason::Lock(LockName::Runtime(Lock::ThreadStore));
const SUSPENDED: BlockReason = BlockReason::Suspended;

/// The worker is suspended by the sampler.
const FROZEN: Edge = edge(WORKER, SUSPENDED, SAMPLER);

const fn called(method: &'static str) -> TurnEvent {
    TurnEvent::Called(method, None)
}

const fn detaching(method: &'static str) -> TurnEvent {
    TurnEvent::Returned(method, Outcome::Returned(HResult::PROFILER_DETACHING))
}

const fn returned(method: &'static str) -> TurnEvent {
    TurnEvent::Returned(method, Outcome::Returned(HResult::OK))
}

/// The actions of threads before the verdict, in turns.
type Turns<'t> = &'t [(ThreadIndex, &'t [TurnEvent])];

fn after(turns: Turns<'_>) -> History {
    let mut history = sampled();
    for (thread, events) in turns {
        history.turn(*thread, events);
    }
    history
}

/// Asserts the hazard of each verdict, as its number.
fn assert_each(cases: &[(&str, Verdict, Turns<'_>, Option<&str>)]) {
    for (case, verdict, turns, expected) in cases {
        let hazard = Hazard::of(verdict, &after(turns)).map(|hazard| hazard.to_string());
        assert_eq!(hazard.as_deref(), *expected, "{case}");
    }
}

/// Asserts the hazard of each deadlock, as its number.
fn assert_each_deadlock(cases: &[(&str, &[Edge], Turns<'_>, Option<&str>)]) {
    for (case, edges, turns, expected) in cases {
        let verdict = Verdict::Deadlock(edges.to_vec());
        assert_each(&[(case, verdict, turns, *expected)]);
    }
}

#[test]
fn a_hazard_is_written_with_two_digits_and_read_again() {
    for (hazard, number) in Hazard::ALL.into_iter().zip(1..) {
        assert_eq!(hazard.number(), number);
        assert_eq!(hazard.to_string(), format!("H-{number:02}"));
        assert_eq!(hazard.to_string().parse(), Ok(hazard));
    }
    assert_eq!(format!("{:>6}", Hazard::MutualSuspension), "  H-01");
    for other in ["H-1", "H-001", "h-01", "H-", ""] {
        assert_eq!(other.parse::<Hazard>(), Err(NoHazard));
    }
    for number in [0, Hazard::ALL.len() + 1] {
        assert_eq!(format!("H-{number:02}").parse::<Hazard>(), Err(NoHazard));
    }
    assert_eq!(NoHazard.to_string(), "there is no such hazard; they are H-01 to H-34");
}

#[test]
fn what_the_suspended_thread_owns_is_the_hazard() {
    let owned: [(&str, Lock, Turns<'_>, Option<&str>); 12] = [
        ("state made at a first call", Lock::ThreadInit, &[], Some("H-03")),
        ("stress log", Lock::StressLog, &[], Some("H-03")),
        ("heap", Lock::ProcessHeap, &[], Some("H-13")),
        ("heap in the first call", Lock::ProcessHeap, &[(SAMPLER, &[CALLS])], Some("H-03")),
        (
            "heap in the second call",
            Lock::ProcessHeap,
            &[(SAMPLER, &[CALLS, RETURNS, CALLS])],
            Some("H-13"),
        ),
        (
            "heap after the first call",
            Lock::ProcessHeap,
            &[(SAMPLER, &[CALLS, RETURNS])],
            Some("H-13"),
        ),
        (
            "heap in the callback of the first call",
            Lock::ProcessHeap,
            &[(SAMPLER, &[CALLS, FRAME])],
            Some("H-13"),
        ),
        ("loader", Lock::Loader, &[], Some("H-12")),
        ("function tables", Lock::FunctionTables, &[], Some("H-11")),
        ("tables of code", Lock::CodeManager, &[], Some("H-09")),
        ("loader heap", Lock::LoaderHeap, &[], None),
        ("loader heap in a walk", Lock::LoaderHeap, &[(SAMPLER, &[CALLS, FRAME])], Some("H-08")),
    ];
    for (case, lock, turns, expected) in owned {
        let wanted = edge(SAMPLER, BlockReason::Lock(LockName::Runtime(lock)), WORKER);
        assert_each_deadlock(&[(case, &[wanted, FROZEN], turns, expected)]);
    }
    let other: [(&str, BlockReason, Option<&str>); 8] = [
        ("thread list", LIST, Some("H-02")),
        ("GC lock", BlockReason::Lock(LockName::Runtime(Lock::Gc)), Some("H-02")),
        ("GC", BlockReason::Collection, Some("H-02")),
        ("stop", BlockReason::ToStop, Some("H-02")),
        ("suspended runtime", BlockReason::RuntimeSuspended, Some("H-02")),
        ("lock of the profiler", NAMES, Some("H-08")),
        ("reader", BlockReason::CodeManagerReader, Some("H-10")),
        ("end of the thread", BlockReason::Join, None),
    ];
    for (case, why, expected) in other {
        assert_each_deadlock(&[(case, &[FROZEN, edge(SAMPLER, why, WORKER)], &[], expected)]);
    }
}

#[test]
fn the_owner_may_be_reached_through_another_thread() {
    let edges = [
        edge(SAMPLER, NAMES, MAIN),
        edge(MAIN, BlockReason::Lock(LockName::Runtime(Lock::Loader)), WORKER),
        FROZEN,
    ];
    assert_each_deadlock(&[
        ("sampler, main, worker", &edges, &[], Some("H-12")),
        ("no thread waits for the suspended one", &[FROZEN], &[], None),
    ]);
}

#[test]
fn threads_that_suspend_each_other_fall_into_the_first_hazard() {
    let back = edge(SAMPLER, SUSPENDED, WORKER);
    assert_each_deadlock(&[
        ("each other", &[FROZEN, back], &[], Some("H-01")),
        ("itself", &[edge(MAIN, SUSPENDED, MAIN)], &[], Some("H-01")),
        ("in a row", &[edge(MAIN, SUSPENDED, WORKER), FROZEN], &[], Some("H-01")),
        (
            "two suspended threads",
            &[edge(MAIN, SUSPENDED, SAMPLER), FROZEN, edge(SAMPLER, NAMES, MAIN)],
            &[],
            Some("H-08"),
        ),
    ]);
}

#[test]
fn a_wait_in_a_signal_handler_is_a_hazard_of_its_own() {
    let asks = called("GetFunctionFromIP");
    let wanted = |why| [edge(MAIN, why, WORKER), edge(WORKER, NAMES, MAIN)];
    let signal = TurnEvent::Signal;
    assert_each_deadlock(&[
        ("asks", &wanted(BlockReason::InterruptedWait), &[(MAIN, &[signal, asks])], Some("H-31")),
        ("asks", &wanted(BlockReason::RuntimeSuspended), &[(MAIN, &[signal, asks])], Some("H-31")),
        (
            "has asked",
            &wanted(BlockReason::InterruptedWait),
            &[(MAIN, &[signal, asks, returned("GetFunctionFromIP")])],
            None,
        ),
        ("asks outside", &wanted(BlockReason::InterruptedWait), &[(MAIN, &[asks])], None),
        ("takes a lock", &wanted(NAMES), &[(MAIN, &[signal])], Some("H-28")),
        ("has left the handler", &wanted(NAMES), &[(MAIN, &[signal, TurnEvent::SignalOver])], None),
        (
            "has left the inner handler",
            &wanted(NAMES),
            &[(MAIN, &[signal, signal, TurnEvent::SignalOver])],
            Some("H-28"),
        ),
        (
            "waits for another thing",
            &wanted(BlockReason::CodeManagerReader),
            &[(MAIN, &[signal])],
            None,
        ),
    ]);
}

#[test]
fn a_refused_resume_comes_of_the_detach() {
    let edges = [edge(MAIN, BlockReason::RuntimeSuspended, SAMPLER)];
    let resume = "ResumeRuntime";
    let refused: &[TurnEvent] = &[called(resume), detaching(resume)];
    let again: &[TurnEvent] = &[called(resume), detaching(resume), CALLS, RETURNS];
    let other: &[TurnEvent] = &[CALLS, detaching(WALK)];
    assert_each_deadlock(&[
        ("refused", &edges, &[(SAMPLER, refused)], Some("H-24")),
        ("another call since", &edges, &[(SAMPLER, again)], Some("H-23")),
        ("another call refused", &edges, &[(SAMPLER, other)], Some("H-23")),
        ("refused to another thread", &edges, &[(WORKER, refused)], Some("H-23")),
    ]);
}

#[test]
fn a_thread_that_an_escaped_walk_has_suspended_stays_so() {
    let escapes: &[TurnEvent] = &[CALLS, FRAME, ESCAPE];
    let waits = edge(SAMPLER, NAMES, WORKER);
    assert_each_deadlock(&[
        ("escaped", &[FROZEN, waits], &[(SAMPLER, escapes)], Some("H-30")),
        ("another thread has", &[FROZEN, waits], &[(MAIN, escapes)], Some("H-08")),
        ("suspended by none", &[waits], &[(SAMPLER, escapes)], None),
    ]);
}

#[test]
fn a_gc_that_waits_is_reported_apart_by_what_the_threads_do() {
    use BlockReason::{Collection, RuntimeSuspended, ToStop};
    let started = TurnEvent::Callback(CallbackKind::GarbageCollectionStarted);
    let suspending = TurnEvent::Callback(CallbackKind::RuntimeSuspendStarted);
    let force = called("ForceGC");
    let gc = [edge(WORKER, NAMES, MAIN), edge(MAIN, Collection, WORKER)];
    let by_list = [edge(WORKER, NAMES, MAIN), edge(MAIN, LIST, WORKER)];
    assert_each_deadlock(&[
        ("waits in a callback of the GC", &gc, &[(WORKER, &[started])], Some("H-07")),
        ("the owner calls", &gc, &[(WORKER, &[started]), (MAIN, &[CALLS])], Some("H-06")),
        (
            "the owner has called",
            &gc,
            &[(WORKER, &[started]), (MAIN, &[CALLS, RETURNS])],
            Some("H-07"),
        ),
        ("in a callback of a suspension", &gc, &[(WORKER, &[suspending])], Some("H-07")),
        ("in no callback", &gc, &[], Some("H-20")),
        (
            "the callback is over",
            &gc,
            &[(
                WORKER,
                &[started, TurnEvent::CallbackOver(CallbackKind::GarbageCollectionStarted)],
            )],
            Some("H-20"),
        ),
        ("the owner forces a GC", &gc, &[(MAIN, &[force])], Some("H-06")),
        ("in another callback", &gc, &[(WORKER, &[TurnEvent::Callback(DESTROYED)])], Some("H-20")),
        ("the GC holds the list", &by_list, &[(WORKER, &[started])], Some("H-07")),
        ("the list without a GC", &by_list, &[], None),
        (
            "another lock in a GC",
            &[edge(WORKER, NAMES, MAIN), edge(MAIN, NAMES, WORKER)],
            &[(WORKER, &[started])],
            None,
        ),
        // The profiler's own thread has suspended the runtime.
        (
            "for the sampler",
            &[edge(MAIN, RuntimeSuspended, SAMPLER), edge(SAMPLER, NAMES, MAIN)],
            &[],
            Some("H-23"),
        ),
        (
            "the sampler stops",
            &[edge(SAMPLER, ToStop, MAIN), edge(MAIN, NAMES, SAMPLER)],
            &[],
            Some("H-23"),
        ),
        (
            "the sampler forces a GC",
            &[edge(SAMPLER, ToStop, MAIN), edge(MAIN, NAMES, SAMPLER)],
            &[(SAMPLER, &[force])],
            Some("H-06"),
        ),
        (
            "a thread of the program stops the sampler",
            &[edge(MAIN, ToStop, SAMPLER), edge(SAMPLER, NAMES, MAIN)],
            &[],
            Some("H-20"),
        ),
    ]);
}

#[test]
fn a_destruction_waits_for_the_walker_that_waits_for_it() {
    let destroyed = TurnEvent::Callback(DESTROYED);
    let cycle = |why| [edge(WORKER, BlockReason::Join, SAMPLER), edge(SAMPLER, why, WORKER)];
    let other_lock = BlockReason::Lock(LockName::Runtime(Lock::Loader));
    let in_callback: Turns<'_> = &[(WORKER, &[destroyed])];
    assert_each_deadlock(&[
        ("a lock of the profiler", &cycle(NAMES), in_callback, Some("H-05")),
        ("the list of threads", &cycle(LIST), in_callback, Some("H-05")),
        ("another lock", &cycle(other_lock), in_callback, None),
        ("no lock", &cycle(BlockReason::Join), in_callback, None),
        ("in no callback", &cycle(NAMES), &[], Some("H-34")),
        (
            "after the callback",
            &cycle(NAMES),
            &[(WORKER, &[destroyed, TurnEvent::CallbackOver(DESTROYED)])],
            Some("H-34"),
        ),
        ("no way back", &cycle(NAMES)[1..], in_callback, None),
        (
            "a thread of the program that walks",
            &[edge(WORKER, BlockReason::Join, MAIN), edge(MAIN, NAMES, WORKER)],
            &[(WORKER, &[destroyed]), (MAIN, &[CALLS])],
            Some("H-05"),
        ),
        (
            "a thread of the program that does not",
            &[edge(WORKER, BlockReason::Join, MAIN), edge(MAIN, NAMES, WORKER)],
            &[(WORKER, &[destroyed]), (MAIN, &[CALLS, RETURNS])],
            Some("H-34"),
        ),
        ("another owner", &[cycle(NAMES)[0], edge(SAMPLER, NAMES, MAIN)], &[], None),
    ]);
}

#[test]
fn a_thread_that_a_signal_keeps_does_not_stop_for_a_suspension() {
    let edges =
        [edge(SAMPLER, BlockReason::ToStop, MAIN), edge(MAIN, BlockReason::WakeUp, SAMPLER)];
    let (signal, over) = (TurnEvent::Signal, TurnEvent::SignalOver);
    assert_each_deadlock(&[
        ("in a handler", &edges, &[(MAIN, &[signal])], Some("H-33")),
        ("in the suspender's handler", &edges, &[(SAMPLER, &[signal])], Some("H-23")),
        ("after the handler", &edges, &[(MAIN, &[signal, over])], Some("H-23")),
    ]);
}

#[test]
fn a_live_lock_is_known_by_a_nested_walk_or_an_escape() {
    let ends = || Verdict::LiveLock;
    assert_each(&[
        ("nested", ends(), &[(SAMPLER, &[CALLS, FRAME, CALLS])], Some("H-21")),
        ("one after the other", ends(), &[(SAMPLER, &[CALLS, FRAME, RETURNS, CALLS])], None),
        ("two threads", ends(), &[(SAMPLER, &[CALLS, FRAME]), (MAIN, &[CALLS])], None),
        ("another call in a walk", ends(), &[(SAMPLER, &[CALLS, FRAME, called("ForceGC")])], None),
        ("escaped", ends(), &[(SAMPLER, &[CALLS, FRAME, ESCAPE, CALLS])], Some("H-30")),
        ("nothing", ends(), &[], None),
    ]);
}

#[test]
fn the_watchdog_barks_at_a_walk_while_the_runtime_is_to_stop() {
    let ends = || Verdict::Watchdog(SAMPLER);
    let suspends = TurnEvent::Callback(CallbackKind::RuntimeSuspendStarted);
    let resumes = TurnEvent::Callback(CallbackKind::RuntimeResumeStarted);
    let gives = TurnEvent::Released(LockName::Runtime(Lock::ThreadStore));
    let loader = TurnEvent::Released(LockName::Runtime(Lock::Loader));
    let walk: (ThreadIndex, &[TurnEvent]) = (SAMPLER, &[CALLS, FRAME]);
    assert_each(&[
        ("walk, stop", ends(), &[walk, (MAIN, &[suspends])], Some("H-22")),
        ("stop, walk", ends(), &[(MAIN, &[suspends]), walk], Some("H-22")),
        ("stop, another lock, walk", ends(), &[(MAIN, &[suspends, loader]), walk], Some("H-22")),
        ("stop, resume, walk", ends(), &[(MAIN, &[suspends, resumes]), walk], None),
        ("stop, lock, walk", ends(), &[(MAIN, &[suspends, gives]), walk], None),
        ("walk over, stop", ends(), &[walk, (SAMPLER, &[RETURNS]), (MAIN, &[suspends])], None),
        (
            "walk, another walk over, stop",
            ends(),
            &[walk, (WORKER, &[RETURNS]), (MAIN, &[suspends])],
            Some("H-22"),
        ),
        ("walk", ends(), &[walk], None),
        ("stop", ends(), &[(MAIN, &[suspends])], None),
    ]);
}

#[test]
fn a_failure_is_known_by_the_last_thing_that_its_thread_did() {
    let ends = || Verdict::Failed { by: SAMPLER, words: String::new() };
    let (wrong, registers) = (TurnEvent::UNTRUE, TurnEvent::Context(WORKER));
    let suspends: (ThreadIndex, &[TurnEvent]) = (MAIN, &[called("SuspendRuntime")]);
    assert_each(&[
        ("refused", ends(), &[(SAMPLER, &[CALLS, detaching(WALK)])], Some("H-24")),
        ("jump", ends(), &[(SAMPLER, &[CALLS, FRAME, ESCAPE])], Some("H-30")),
        ("redirected", ends(), &[(SAMPLER, &[TurnEvent::REDIRECTS])], Some("H-16")),
        ("redirected by another", ends(), &[(MAIN, &[TurnEvent::REDIRECTS])], None),
        (
            "redirected, and waits",
            ends(),
            &[(SAMPLER, &[TurnEvent::REDIRECTS, TurnEvent::Waits])],
            Some("H-16"),
        ),
        ("redirected before", ends(), &[(SAMPLER, &[TurnEvent::REDIRECTS, CALLS])], None),
        ("claim", ends(), &[(SAMPLER, &[TurnEvent::CLAIMS])], Some("H-32")),
        ("seed", ends(), &[(SAMPLER, &[TurnEvent::UNTRUE_SEED])], Some("H-17")),
        ("frame", ends(), &[(SAMPLER, &[wrong])], Some("H-14")),
        ("frame of a stopped runtime", ends(), &[suspends, (SAMPLER, &[wrong])], Some("H-23")),
        ("and of registers", ends(), &[suspends, (SAMPLER, &[registers, wrong])], Some("H-14")),
        (
            "and registers of another walk",
            ends(),
            &[suspends, (MAIN, &[registers]), (SAMPLER, &[wrong])],
            Some("H-23"),
        ),
        ("in a handler", ends(), &[(SAMPLER, &[TurnEvent::Signal])], Some("H-28")),
        (
            "after a handler",
            ends(),
            &[(SAMPLER, &[TurnEvent::Signal, TurnEvent::SignalOver])],
            None,
        ),
        ("nothing", ends(), &[], None),
    ]);
}

#[test]
fn the_end_of_the_process_is_known_by_its_code_or_a_signal_handler() {
    let dies = |outcome| Verdict::ProcessKilled { by: MAIN, outcome };
    let code = |code: HResult| dies(Outcome::ProcessKilled { code: code.0 });
    assert_each(&[
        ("destroyed target", code(HResult::INVALID_TARGET_THREAD), &[], Some("H-04")),
        ("another code", code(HResult::FAIL), &[], None),
        ("fault", dies(Outcome::AccessViolation { at: 0 }), &[], None),
        (
            "fault in a handler",
            dies(Outcome::AccessViolation { at: 0 }),
            &[(MAIN, &[TurnEvent::Signal])],
            Some("H-28"),
        ),
        (
            "in another's handler",
            dies(Outcome::AccessViolation { at: 0 }),
            &[(SAMPLER, &[TurnEvent::Signal])],
            None,
        ),
    ]);
}

#[test]
fn unloaded_code_is_looked_up_by_its_address_or_used_by_its_id() {
    let uses = || Verdict::UnloadedCode { by: SAMPLER };
    let by_address: &[TurnEvent] = &[CALLS, RETURNS, called("GetFunctionFromIP2")];
    let by_id: &[TurnEvent] = &[called("GetFunctionFromIP"), called("GetFunctionInfo")];
    assert_each(&[
        ("address", uses(), &[(SAMPLER, by_address)], Some("H-29")),
        ("address by another", uses(), &[(MAIN, by_address)], Some("H-18")),
        ("id", uses(), &[(SAMPLER, by_id)], Some("H-18")),
        ("no call", uses(), &[], Some("H-18")),
        ("destroyed thread", Verdict::DestroyedThread { by: SAMPLER }, &[], Some("H-04")),
        ("lost wake-up", Verdict::LostWakeUp(SAMPLER), &[], None),
    ]);
}

#[test]
fn each_rule_belongs_to_the_hazard_that_it_is_about() {
    use ProfilerRule as Rule;
    let rules = [
        (Rule::SuspenderRanManagedCode, Some("H-02")),
        (Rule::AllocationWhileSuspended, Some("H-13")),
        (Rule::LockWhileSuspended, Some("H-08")),
        (Rule::LogWhileSuspended, Some("H-08")),
        (Rule::LoadingWhileSuspended, Some("H-12")),
        (Rule::AllocationInHandler, Some("H-28")),
        (Rule::LockInHandler, Some("H-28")),
        (Rule::LogInHandler, Some("H-28")),
        (Rule::LoadingInHandler, Some("H-28")),
        (Rule::LockOverGcTrigger, Some("H-06")),
        (Rule::CallbackTakesTargetsLock, Some("H-08")),
        (Rule::WalkOutlivesThread, Some("H-04")),
        (Rule::FirstCallWhileSuspended, Some("H-03")),
        (Rule::ResumeForgotten, None),
        (Rule::ResumeDoubled, None),
    ];
    for (rule, expected) in rules {
        let broken = Verdict::Broken { by: SAMPLER, rule };
        assert_each(&[(&rule.to_string(), broken, &[], expected)]);
    }
    let forgotten = Verdict::Broken { by: SAMPLER, rule: Rule::ResumeForgotten };
    assert_each(&[("escaped", forgotten, &[(SAMPLER, &[CALLS, FRAME, ESCAPE])], Some("H-30"))]);
}
