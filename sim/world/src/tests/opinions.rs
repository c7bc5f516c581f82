//! Walks in the middle of programs that use every way through the runtime, compared with the reference model.

use super::*;
use crate::reference::{
    ActivationCode, CallFacts, CallerKind, ExpectedReport, ProgramFacts, ThreadFacts, expected,
};
use clr_runtime::profiling::HResult;

/// Number of instructions between walks.
const EVERY: usize = 7;

fn question(caller: CallerKind, seed: Option<(usize, u32)>) -> CallFacts {
    CallFacts {
        caller,
        unnamed: false,
        flags: SnapshotFlags::REGISTER_CONTEXT,
        seed,
        suspended_by_profiler: false,
        stop_at: None,
    }
}

/// The results of the calls of a program.
#[derive(Default)]
struct Seen {
    outcomes: BTreeSet<String>,
    methods: usize,
    markers: usize,
}

/// Makes a call, and asserts that its result is that of the model. Returns false if the model has none.
fn agrees(
    world: &mut World<'_>,
    target: &ThreadFacts,
    os: OsThreadId,
    question: &CallFacts,
    seen: &mut Seen,
) -> Result<bool, String> {
    let Some(expected) = expected(target, question) else { return Ok(false) };
    // A process that ends does not clean up.
    let ends = !matches!(expected.outcome, Outcome::Returned(_));
    let before = ends.then(|| world.save());
    let start = question.seed.map(|(activation, flags)| Context {
        registers: target.activations[activation].registers,
        flags,
    });
    let (found, outcome) = callbacks(world, os, 0, start.as_ref());
    if let Some(before) = before {
        assert!(world.restore(&before));
    }
    let is_same = |(found, expected): (&Callback, &ExpectedReport)| {
        found.function == expected.function.map(|id| id.0) && found.context == expected.context
    };
    let same = found.len() == expected.callbacks.len()
        && found.iter().zip(&expected.callbacks).all(is_same)
        && outcome == expected.outcome.to_string();
    if !same {
        return Err(format!("{question:?}: {outcome} {found:x?}, expected {expected:x?}"));
    }
    seen.methods += found.iter().filter(|callback| callback.function.is_some()).count();
    seen.markers += found.iter().filter(|callback| callback.function.is_none()).count();
    seen.outcomes.insert(outcome);
    Ok(true)
}

/// Compares calls at some instructions of a program.
fn compare(program: &Program, generation: Generation, seen: &mut Seen) -> Result<(), String> {
    let build = Build::new(program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let [_, managed] = world.add_walkers().unwrap();
    let facts = ProgramFacts::new(build.expanded(), build.linked());
    let (own, flags) = (world.os(0).unwrap(), generation.own_context_flags());
    for step in 0.. {
        let event = world.step(0).unwrap();
        if event == StepEvent::Ended {
            return Ok(());
        }
        if step % EVERY != 0 && !matches!(event, StepEvent::Callback(_)) {
            continue;
        }
        let target = ThreadFacts::new(&facts, &mut world, 0).unwrap();
        let is_managed = |code: &ActivationCode| *code != ActivationCode::Unmanaged;
        let managed_row = target.activations.iter().position(|one| is_managed(&one.code));
        // Without a seed, at the innermost method, and at the leaf.
        let rows = [managed_row, (!target.activations.is_empty()).then_some(0)];
        let seeds = rows.into_iter().flatten().map(|row| Some((row, flags)));
        for seed in seeds.chain([None]) {
            for (caller, os) in [
                (CallerKind::Target, own),
                (CallerKind::Native, NOBODY),
                (CallerKind::Managed, managed),
            ] {
                agrees(&mut world, &target, os, &question(caller, seed), seen)
                    .map_err(|wrong| format!("{generation}, step {step}: {wrong}"))?;
            }
        }
    }
    unreachable!("the program ends")
}

#[test]
fn walks_have_the_results_of_the_reference_model() {
    for generation in Generation::ALL {
        let mut seen = Seen::default();
        for kind in RuntimeCallKind::ALL {
            let compared = compare(&program(*kind), generation, &mut seen);
            assert_eq!(compared, Ok(()), "{}", kind.word());
        }
        // Walks find methods and unmanaged code between them, and some are refused.
        assert!(seen.methods > 1_000 && seen.markers > 100, "{generation}");
        assert!(seen.outcomes.len() >= 3, "{generation}: {:?}", seen.outcomes);
    }
}

#[test]
fn walks_in_exceptions_have_the_results_of_the_reference_model() {
    for generation in Generation::ALL {
        let mut seen = Seen::default();
        for kind in [RuntimeCallKind::Raise, RuntimeCallKind::NullDereference] {
            assert_eq!(compare(&observed(kind), generation, &mut seen), Ok(()), "{kind:?}");
        }
        assert!(seen.methods > 100, "{generation}");
    }
}

/// Returns the facts of a thread in the callback of an allocation.
fn allocating(generation: Generation) -> ThreadFacts {
    let program = program(RuntimeCallKind::New);
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let facts = ProgramFacts::new(build.expanded(), build.linked());
    loop {
        match world.step(0).unwrap() {
            StepEvent::Callback(kind) if kind.name() == "ObjectAllocated" => break,
            event => assert_ne!(event, StepEvent::Ended),
        }
    }
    ThreadFacts::new(&facts, &mut world, 0).unwrap()
}

/// The checks before a walk, in the order of contract §2.2.
#[test]
fn calls_are_refused_by_the_first_rule_that_applies() {
    use CallerKind::{Managed, Native, Target};
    for generation in Generation::ALL {
        let target = allocating(generation);
        let outcome = |target: &ThreadFacts, question: CallFacts| {
            expected(target, &question).map(|expected| expected.outcome)
        };
        let returns = |result: HResult| Some(Outcome::Returned(result));
        let plain = question(Target, None);
        assert_eq!(outcome(&target, plain), returns(HResult::OK), "{generation}");
        // C-007: only two flags are known.
        let flags = SnapshotFlags(2);
        assert_eq!(
            outcome(&target, CallFacts { flags, ..plain }),
            returns(HResult::INVALID_ARGUMENT)
        );
        // C-010: a thread that the runtime does not know has no stack of its own.
        let unnamed = |caller| CallFacts { unnamed: true, ..question(caller, None) };
        let nothing = expected(&target, &unnamed(Native)).unwrap();
        assert_eq!((nothing.outcome, nothing.callbacks.len()), (HResult::OK.into(), 0));
        assert!(!expected(&target, &unnamed(Target)).unwrap().callbacks.is_empty());
        // C-017: while the runtime is being suspended.
        let suspension = Suspension::Suspending(OsThreadId(9));
        let suspending = Process { suspension, ..target.process };
        let suspending = ThreadFacts { process: suspending, ..target.clone() };
        assert_eq!(outcome(&suspending, question(Managed, None)), returns(HResult::UNSAFE));
        assert_eq!(outcome(&suspending, plain), returns(HResult::OK));
        // C-018: the target forbids its suspension.
        let forbidden = ThreadFacts { forbidden: true, ..target.clone() };
        assert_eq!(outcome(&forbidden, plain), returns(HResult::UNSAFE));
        // C-019, C-020: on Unix no other thread is walked, even under SuspendRuntime if it is cooperative.
        if generation.is_unix() {
            let suspended_by_profiler = true;
            for caller in [Native, Managed] {
                let asked = question(caller, None);
                assert_eq!(outcome(&target, asked), returns(HResult::NOT_IMPLEMENTED));
                let asked = CallFacts { suspended_by_profiler, ..asked };
                assert_eq!(outcome(&target, asked), returns(HResult::NOT_IMPLEMENTED));
                let preemptive = ThreadFacts { cooperative: false, ..target.clone() };
                assert_eq!(outcome(&preemptive, asked), returns(HResult::OK));
            }
            continue;
        }
        // C-033: the topmost Frame is below the stack pointer, which Framework 2 does not check.
        let rsp = target.activations[0].registers.rsp();
        for (at, checked) in [(rsp - 8, generation.checks_redirection()), (rsp, false)] {
            let mut below = target.clone();
            below.frames[0].at = at;
            let refused = if checked { HResult::UNSAFE } else { HResult::UNMANAGED_CONTEXT };
            assert_eq!(outcome(&below, question(Native, None)), returns(refused), "{generation}");
        }
        // C-028: another thread that is gone.
        let gone = ThreadFacts { gone: true, ..target.clone() };
        let code = HResult::INVALID_TARGET_THREAD.0;
        let killed = Some(Outcome::ProcessKilled { code });
        assert_eq!(outcome(&gone, question(Native, None)), killed);
        assert_eq!(outcome(&gone, plain), returns(HResult::OK));
        // A lookup of code may wait for the writer, except on a thread that the runtime does not know.
        let busy = ThreadFacts { code_busy: true, ..target.clone() };
        assert_eq!(outcome(&busy, question(Managed, None)), None);
        assert_eq!(outcome(&busy, plain), None);
        assert!(outcome(&busy, question(Native, None)).is_some());
        let beyond = ThreadFacts { beyond: true, ..target };
        assert_eq!(outcome(&beyond, plain), None);
    }
}

/// C-104, C-105: a callback can stop the walk, which then says so.
#[test]
fn a_stopped_walk_is_aborted_behind_its_last_callback() {
    for generation in Generation::ALL {
        let target = allocating(generation);
        let all = expected(&target, &question(CallerKind::Target, None)).unwrap();
        assert!(all.callbacks.len() >= 2, "{generation}");
        for stop_at in 0..all.callbacks.len() as u32 + 2 {
            let stop_at = Some(stop_at);
            let asked = CallFacts { stop_at, ..question(CallerKind::Target, None) };
            let stopped = expected(&target, &asked).unwrap();
            let wanted = stop_at.map_or(0, |last| last as usize + 1);
            if wanted > all.callbacks.len() {
                assert_eq!(stopped, all, "{generation}");
            } else {
                assert_eq!(stopped.callbacks, all.callbacks[..wanted], "{generation}");
                assert_eq!(stopped.outcome, HResult::ABORTED.into(), "{generation}");
            }
        }
    }
    // The call itself does the same.
    let (mut count, generation) = (0, Generation::CoreClr31Windows);
    let program = program(RuntimeCallKind::New);
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    while world.object(0).is_none_or(|object| object == ThreadId(0))
        || world.activations(0).len() < 3
    {
        assert_ne!(world.step(0).unwrap(), StepEvent::Ended);
    }
    let call = SnapshotRequest { thread: world.object(0).unwrap(), ..SnapshotRequest::default() };
    let own = world.os(0).unwrap();
    let outcome = world.runtime().on(own).do_stack_snapshot(
        &call,
        Some(&mut |_| {
            count += 1;
            HResult::FALSE
        }),
    );
    assert!(count <= 1 && (count == 0 || outcome == HResult::ABORTED.into()), "{count} {outcome}");
}
