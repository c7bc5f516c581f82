//! Tests of the words in which a failed interleaving is reported.

use super::*;
use crate::timeline::Tone;
use crate::{failure_story, story};
use clr_explore::headline;
use clr_runtime::clause::Clause;

const HEAP: LockName = LockName::Runtime(Lock::ProcessHeap);
const NAMES: LockName = LockName::Profiler(0);
/// The sampler wants the heap, which the suspended worker owns.
const FROZEN: [Edge; 2] =
    [edge(SAMPLER, BlockReason::Lock(HEAP), WORKER), edge(WORKER, BlockReason::Suspended, SAMPLER)];

fn lines(verdict: &Verdict, history: &History) -> Vec<String> {
    story(verdict, history).iter().map(ToString::to_string).collect()
}

/// Returns the lines that begin with the name of a thread, up to the next empty one.
fn part(lines: &[String], thread: &str) -> Vec<String> {
    let from = lines.iter().position(|line| line == thread).unwrap();
    lines[from + 1..].iter().take_while(|line| !line.is_empty()).cloned().collect()
}

fn failed(by: ThreadIndex) -> Verdict {
    Verdict::Failed { by, words: "it is over".to_owned() }
}

#[test]
fn each_verdict_is_a_sentence_with_the_names_of_its_threads() {
    let history = sampled();
    let edges = |edges: &[Edge]| Verdict::Deadlock(edges.to_vec());
    let three = [FROZEN[0], FROZEN[1], edge(MAIN, BlockReason::Join, WORKER)];
    let killed = Verdict::ProcessKilled { by: MAIN, outcome: Outcome::Returned(HResult::FAIL) };
    let broken = Verdict::Broken { by: SAMPLER, rule: ProfilerRule::ResumeDoubled };
    let unseen = Verdict::Failed { by: WORKER, words: "red\u{1b}[31m".to_owned() };
    let cases = [
        (edges(&[]), "deadlock: no thread cannot go on"),
        (edges(&[FROZEN[1], FROZEN[1]]), "deadlock: worker cannot go on"),
        (edges(&FROZEN), "deadlock: worker and sampler cannot go on"),
        (edges(&three), "deadlock: main, worker and sampler cannot go on"),
        (Verdict::LiveLock, "live-lock: no end is reached"),
        (
            Verdict::LostWakeUp(WORKER),
            "lost wake-up: worker waits for an event that no remaining thread can set",
        ),
        (Verdict::DestroyedThread { by: SAMPLER }, "sampler uses a thread that was destroyed"),
        (Verdict::UnloadedCode { by: SAMPLER }, "sampler uses code that was unloaded"),
        (killed, "the process dies on main: E_FAIL"),
        (Verdict::Watchdog(WORKER), "the watchdog barks on worker"),
        (broken, "sampler breaks a rule: only a suspended thread may be resumed"),
        (failed(MAIN), "failed on main: it is over"),
        (unseen, "failed on worker: red\\u{1b}[31m"),
    ];
    for (verdict, expected) in cases {
        assert_eq!(headline(&verdict, &history), expected);
    }
    let mut long = sampled();
    long.turn(MAIN, &[]);
    long.turn(MAIN, &[]);
    let expected = "live-lock: no end is reached within 2 turns";
    assert_eq!(headline(&Verdict::LiveLock, &long), expected);
}

#[test]
fn a_deadlock_is_reported_with_its_waits_and_its_hazard() {
    let mut history = sampled();
    history.turn(WORKER, &[TurnEvent::Begins, TurnEvent::Acquired(HEAP)]);
    history.turn(SAMPLER, &[TurnEvent::Suspended(WORKER)]);
    history.turn(SAMPLER, &[TurnEvent::System("allocates"), TurnEvent::Waits]);
    let rows = story(&Verdict::Deadlock(FROZEN.to_vec()), &history);
    let text: Vec<_> = rows.iter().map(ToString::to_string).collect();
    let clause = Clause::new(152).entry().unwrap();
    let expected = [
        "deadlock: worker and sampler cannot go on",
        "  sampler waits for the process heap, which is owned by worker",
        "  worker is suspended by sampler",
        "",
        "worker",
        "        1 takes the process heap",
        "",
        "sampler",
        "        2 suspends worker",
        "        3 allocates",
        "",
        "H-13: the suspended thread owns the lock of the process's heap",
        &format!("  C-152 {}", clause.rule),
        "  what avoids it: allocate nothing while a thread is suspended: use memory allocated before",
    ];
    assert_eq!(text, expected);
    let tones = |row: usize| rows[row].spans.iter().map(|span| span.tone).collect::<Vec<_>>();
    assert_eq!(tones(0), [Tone::Bad]);
    assert_eq!(tones(1), [Tone::Head, Tone::Waiting, Tone::Head]);
    assert_eq!(tones(2), [Tone::Head, Tone::Suspended, Tone::Head]);
}

#[test]
fn the_threads_that_a_verdict_is_about_are_reported_or_else_all() {
    let history = sampled();
    let named = |verdict: &Verdict| {
        let lines = lines(verdict, &history);
        let names = history.threads.iter().map(|thread| thread.name.clone());
        names.filter(|name| lines.contains(name)).collect::<Vec<_>>()
    };
    assert_eq!(named(&Verdict::LiveLock), ["main", "worker", "sampler"]);
    let outcome = Outcome::Returned(HResult::FAIL);
    for verdict in [
        Verdict::LostWakeUp(WORKER),
        Verdict::Watchdog(WORKER),
        Verdict::DestroyedThread { by: WORKER },
        Verdict::UnloadedCode { by: WORKER },
        Verdict::ProcessKilled { by: WORKER, outcome },
        Verdict::Broken { by: WORKER, rule: ProfilerRule::ResumeDoubled },
        failed(WORKER),
    ] {
        assert_eq!(named(&verdict), ["worker"], "{verdict:?}");
    }
    let one = vec![edge(SAMPLER, BlockReason::Join, MAIN)];
    assert_eq!(named(&Verdict::Deadlock(one)), ["main", "sampler"]);
}

/// A story of a lost wake-up names the thread that notified too early, the threads that have ended, and those that wait for
/// the waiting one.
#[test]
fn a_lost_wake_up_is_reported_with_the_notification_and_all_other_threads() {
    let mut history = sampled();
    history.turn(MAIN, &[TurnEvent::Begins, TurnEvent::Unheard(2), TurnEvent::Ends]);
    history.turn(WORKER, &[TurnEvent::Begins]);
    history.turn(SAMPLER, &[TurnEvent::Begins, TurnEvent::Waits]);
    let stack = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect();
    let join = edge(WORKER, BlockReason::Join, SAMPLER);
    history.record(&[
        ThreadStatus { ended: true, stack: stack(&["gone"]), ..ThreadStatus::default() },
        ThreadStatus {
            edges: vec![join],
            stack: stack(&["join", "Shutdown"]),
            ..ThreadStatus::default()
        },
        ThreadStatus { waits: Some("waits on condition 2".to_owned()), ..ThreadStatus::default() },
    ]);
    let told = lines(&Verdict::LostWakeUp(SAMPLER), &history);
    assert_eq!(
        told[..2],
        [
            "lost wake-up: sampler waits for an event that no remaining thread can set; ended: main",
            "  main notifies condition 2, on which no thread waits",
        ]
    );
    assert_eq!(
        part(&told, "the other threads"),
        ["  main has ended", "  worker waits for the end of sampler: join < Shutdown"]
    );
    let told = lines(&failed(WORKER), &history);
    assert_eq!(
        part(&told, "the other threads"),
        ["  main has ended", "  sampler waits on condition 2"]
    );
}

#[test]
fn the_last_eight_steps_of_a_thread_are_reported() {
    let steps = |count: u64| {
        let mut history = history(&[("main", ThreadKind::App), ("other", ThreadKind::App)]);
        history.turn(MAIN, &[TurnEvent::Begins]);
        for _ in 0..count {
            history.turn(MAIN, &[TurnEvent::Sleeps(5), TurnEvent::Waits]);
            history.turn(WORKER, &[TurnEvent::Executed(1)]);
        }
        part(&lines(&failed(MAIN), &history), "main")
    };
    assert_eq!(steps(0), [] as [&str; 0]);
    assert_eq!(steps(1), ["        2 sleeps for 5 µs"]);
    // The beginning and the waits are no steps. Each other turn belongs to the other thread.
    let eight: Vec<_> =
        (1..=8).map(|step| format!("       {:>2} sleeps for 5 µs", 2 * step)).collect();
    assert_eq!(steps(8), eight);
    let nine = steps(9);
    assert_eq!(
        (nine.len(), &*nine[0], &*nine[1]),
        (9, "  … a step before", "        4 sleeps for 5 µs")
    );
    let ten = steps(10);
    assert_eq!(
        (ten.len(), &*ten[0], &*ten[1]),
        (9, "  … 2 steps before", "        6 sleeps for 5 µs")
    );
}

#[test]
fn a_broken_rule_is_reported_up_to_the_breach() {
    let rule = ProfilerRule::LogWhileSuspended;
    let breaks = TurnEvent::Breaks(rule);
    let mut history = sampled();
    history.turn(SAMPLER, &[TurnEvent::Breaks(ProfilerRule::ResumeDoubled)]);
    history.turn(MAIN, &[breaks]);
    history.turn(SAMPLER, &[TurnEvent::Says("logs"), breaks]);
    history.record(&[ThreadStatus::default(), ThreadStatus::default(), owning(NAMES)]);
    history.turn(SAMPLER, &[TurnEvent::Says("goes on")]);
    history.record(&[ThreadStatus::default(), ThreadStatus::default(), owning(HEAP)]);
    let reported = |verdict: &Verdict| part(&lines(verdict, &history), "sampler");
    let up_to = [
        "        1 breaks a rule: only a suspended thread may be resumed",
        "        3 logs",
        "        3 breaks a rule: nothing may be logged while a thread is suspended",
        "  owns the profiler's lock \"names\"",
    ];
    assert_eq!(reported(&Verdict::Broken { by: SAMPLER, rule }), up_to);
    // A verdict without a breach, and one that is about no rule, are reported to the end.
    let other = ProfilerRule::LockOverGcTrigger;
    for verdict in [Verdict::Broken { by: SAMPLER, rule: other }, failed(SAMPLER)] {
        let all = reported(&verdict);
        assert_eq!(all.len(), 5, "{all:?}");
        assert_eq!(all[..3], up_to[..3]);
        assert_eq!(all[3..], ["        4 goes on", "  owns the process heap"]);
    }
}

fn owning(lock: LockName) -> ThreadStatus {
    ThreadStatus { holds: vec![lock], ..ThreadStatus::default() }
}

#[test]
fn the_status_of_a_thread_is_reported_after_its_steps() {
    let frames = |count: usize| (0..count).map(|frame| format!("f{frame}")).collect();
    let reported = |status: ThreadStatus| {
        let mut history = sampled();
        history.turn(MAIN, &[]);
        history.record(&[status]);
        part(&lines(&failed(MAIN), &history), "main")
    };
    let suspended = ThreadStatus { suspended_by: vec![WORKER, SAMPLER], ..ThreadStatus::default() };
    assert_eq!(reported(suspended.clone()), ["  suspended by worker and sampler"]);
    let in_system = ThreadStatus { in_system: true, ..suspended };
    assert_eq!(
        reported(in_system),
        ["  suspended by worker and sampler, once its call of the system returns"]
    );
    let owns = ThreadStatus { holds: vec![HEAP, NAMES], ..ThreadStatus::default() };
    assert_eq!(reported(owns), ["  owns the process heap and the profiler's lock \"names\""]);
    let six = ThreadStatus { stack: frames(6), ..ThreadStatus::default() };
    assert_eq!(reported(six), ["  stack: f0 < f1 < f2 < f3 < f4 < f5"]);
    let seven = ThreadStatus { stack: frames(7), ..ThreadStatus::default() };
    assert_eq!(reported(seven.clone()), ["  stack: f0 < f1 < f2 < f3 < f4 < f5 < …"]);
    assert_eq!(reported(ThreadStatus { ended: true, ..seven }), ["  has ended"]);
    assert_eq!(reported(ThreadStatus::default()), [] as [&str; 0]);
}

#[test]
fn steps_have_names_for_threads_locks_and_reasons() {
    let mut history = sampled();
    let walk = "DoStackSnapshot";
    history.turn(
        SAMPLER,
        &[
            TurnEvent::Started(MAIN),
            TurnEvent::Suspended(WORKER),
            TurnEvent::Context(WORKER),
            TurnEvent::Called(walk, Some(WORKER)),
            TurnEvent::Returned(walk, Outcome::Returned(HResult::PROFILER_DETACHING)),
            TurnEvent::Refused(0),
            TurnEvent::Resumed(WORKER),
            TurnEvent::Released(NAMES),
        ],
    );
    let reported = part(&lines(&failed(SAMPLER), &history), "sampler");
    let words: Vec<_> =
        reported.iter().map(|line| line.trim_start().trim_start_matches("1 ")).collect();
    let expected = [
        "starts main",
        "suspends worker",
        "reads the registers of worker",
        "calls DoStackSnapshot of worker",
        "DoStackSnapshot: CORPROF_E_PROFILER_DETACHING",
        "the profiler is detached [C-001]",
        "resumes worker",
        "gives back the profiler's lock \"names\"",
    ];
    assert_eq!(words, expected);
}

#[test]
fn each_event_has_words_without_a_history() {
    let kind = CallbackKind::ThreadCreated;
    let cases = [
        (TurnEvent::Executed(1), "executes an instruction"),
        (TurnEvent::Executed(2), "executes 2 instructions"),
        (TurnEvent::Acquired(HEAP), "takes the process heap"),
        (TurnEvent::Released(NAMES), "gives back the profiler's lock 0"),
        (TurnEvent::Waits, "has to wait"),
        (TurnEvent::Suspended(WORKER), "suspends thread 1"),
        (TurnEvent::Started(WORKER), "starts thread 1"),
        (TurnEvent::Resumed(WORKER), "resumes thread 1"),
        (TurnEvent::Mode { cooperative: true }, "becomes cooperative"),
        (TurnEvent::Mode { cooperative: false }, "becomes preemptive"),
        (TurnEvent::Callback(kind), "enters ThreadCreated"),
        (TurnEvent::CallbackOver(kind), "leaves ThreadCreated"),
        (TurnEvent::Hook, "enters a hook"),
        (TurnEvent::HookOver, "leaves a hook"),
        (TurnEvent::Export, "calls an export of the profiler"),
        (TurnEvent::ExportOver, "has called an export of the profiler"),
        (TurnEvent::Signal, "handles a signal"),
        (TurnEvent::SignalOver, "has handled a signal"),
        (TurnEvent::Called("ForceGC", None), "calls ForceGC"),
        (TurnEvent::Called("ForceGC", Some(MAIN)), "calls ForceGC of thread 0"),
        (TurnEvent::Returned("ForceGC", Outcome::Returned(HResult::OK)), "ForceGC: S_OK"),
        (
            TurnEvent::Breaks(ProfilerRule::ResumeForgotten),
            "breaks a rule: a suspended thread must be resumed",
        ),
        (TurnEvent::Refused(3), "has failed for reason 3"),
        (TurnEvent::SnapshotCallback, "gets a frame"),
        (TurnEvent::Context(WORKER), "reads the registers of thread 1"),
        (TurnEvent::System("allocates"), "allocates"),
        (TurnEvent::Sleeps(7), "sleeps for 7 µs"),
        (TurnEvent::TimedOut, "has waited long enough"),
        (TurnEvent::Unheard(3), "notifies condition 3, on which no thread waits"),
        (TurnEvent::Says("hello"), "hello"),
        (TurnEvent::Begins, "begins"),
        (TurnEvent::Ends, "ends"),
    ];
    for (event, expected) in cases {
        assert_eq!(event.to_string(), expected);
    }
}

#[test]
fn reasons_to_wait_and_rules_have_words() {
    use ProfilerRule as Rule;
    let reasons = [
        (BlockReason::Lock(HEAP), "waits for the process heap, which is owned by"),
        (BlockReason::Suspended, "is suspended by"),
        (BlockReason::ToStop, "suspends the runtime and waits for"),
        (BlockReason::RuntimeSuspended, "waits to become cooperative; the runtime is suspended by"),
        (BlockReason::Collection, "waits for a GC by"),
        (
            BlockReason::InterruptedWait,
            "waits on its condition variable in a handler that has interrupted the wait there of",
        ),
        (BlockReason::Join, "waits for the end of"),
        (BlockReason::WakeUp, "waits for a wake-up, which could come from"),
        (BlockReason::CodeManagerReader, "waits for the code manager's tables, which are read by"),
    ];
    for (reason, expected) in reasons {
        assert_eq!(reason.to_string(), expected);
    }
    let rules = [
        (Rule::SuspenderRanManagedCode, "never run managed code"),
        (Rule::AllocationWhileSuspended, "no memory may be allocated"),
        (Rule::LockWhileSuspended, "no lock may be taken"),
        (Rule::LogWhileSuspended, "nothing may be logged"),
        (Rule::LoadingWhileSuspended, "no module may be loaded"),
        (Rule::AllocationInHandler, "malloc and free are not async-signal-safe"),
        (Rule::LockInHandler, "pthread_mutex_lock is not async-signal-safe"),
        (Rule::LogInHandler, "stdio is not async-signal-safe"),
        (Rule::LoadingInHandler, "dlopen and dl_iterate_phdr are not async-signal-safe"),
        (Rule::LockOverGcTrigger, "a call that may trigger a GC"),
        (Rule::CallbackTakesTargetsLock, "that the target may own"),
        (Rule::WalkOutlivesThread, "ThreadDestroyed"),
        (Rule::FirstCallWhileSuspended, "first call of a thread"),
        (Rule::ResumeForgotten, "must be resumed"),
        (Rule::ResumeDoubled, "only a suspended thread may be resumed"),
    ];
    for (rule, words) in rules {
        assert!(rule.to_string().contains(words), "{rule:?}: {rule}");
    }
    assert_eq!(Hazard::LoaderLock.title(), "a thread that cannot go on owns the loader lock");
}

#[test]
fn a_report_says_how_far_the_search_went_or_how_it_failed() {
    let broken =
        vec![(SAMPLER, ProfilerRule::ResumeDoubled, "clr1:3b".parse::<ScheduleString>().unwrap())];
    let report = |schedules, everything: Option<bool>| {
        let mut report = Report::default();
        report.schedules = schedules;
        report.covered = everything.map(|everything| {
            let mut covered = Coverage::default();
            covered.everything = everything;
            covered
        });
        report
    };
    let mut breaking = report(2, None);
    breaking.broken = broken;
    let cases = [
        (report(1, None), "the interleaving does not fail"),
        (report(7, Some(false)), "none of 7 interleavings fails"),
        (
            report(7, Some(true)),
            "none of 7 interleavings fails, which are all up to the order of independent steps",
        ),
        (
            breaking,
            "none of 2 interleavings fails\na rule is broken without harm in clr1:3b: only a suspended thread may be resumed",
        ),
    ];
    for (report, expected) in cases {
        assert_eq!(report.to_string(), expected);
    }
}

#[test]
fn a_failure_is_reported_in_short_or_with_its_story() {
    let fails = |setup: &mut Setup<'_>| setup.thread("main", |me| me.fail("it is over"));
    let mut report = check(&searched::nothing(), &fails, &Budget::random(0, 1)).unwrap();
    let failure = report.failure.as_mut().unwrap();
    (failure.schedule, failure.history) = ("clr1:3b".parse().unwrap(), sampled());
    for (repeats, last) in [(true, "again: clr1:3b"), (false, "not repeated by: clr1:3b")] {
        report.failure.as_mut().unwrap().repeats = repeats;
        assert_eq!(report.to_string(), format!("failed on main: it is over\n{last}"));
        assert_eq!(failure_story(&report), format!("failed on main: it is over\n\nmain\n{last}"));
    }
    let survives = Report::default();
    assert_eq!(failure_story(&survives), survives.to_string());
}
