//! Programs that run through the runtime: any call at any stop has the result that the model
//! expects.

use clr_codegen::{EhClause, FuncletKind, FunctionIndex, RuntimeCallKind, Statement};
use clr_generate::{Measure, Seeded, WorldProgram, minimize, world_cases, world_program};
use clr_reference::{
    ActivationCode, CallerKind, ExpectedCall, ExpectedReport, FrameTarget, ProgramFacts,
    ReferenceActivation, ThreadFacts,
};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{CallbackKind, HResult};
use clr_runtime::{FrameKind, MethodKind};
use clr_tests::world::{Case, Examined, Failure, Plan, examine, make, shrink};
use clr_tests::{cases, first_seed, seed};
use clr_unwind::Position;
use clr_world::stubs::Hooks;
use clr_world::{StopBy, ThreadStart};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::time::Instant;

/// Number of calls compared in a full run.
const CASES: u32 = 100_000;
/// Number of calls that have everything that can occur.
const ALL_KINDS: u32 = 400_000;
/// Maximum number of calls compared per program.
const CASES_OF_PROGRAM: u64 = 400;

/// Examines generated programs until `wanted` cases have been compared. Calls `begins` with every
/// program before its cases.
fn campaign(
    wanted: u64,
    mut begins: impl FnMut(&WorldProgram),
    mut see: impl FnMut(&Case<'_>),
) -> (Examined, u64) {
    let first = first_seed();
    let mut sum = Examined::default();
    let mut programs = 0;
    while sum.cases < wanted {
        let seed = first.wrapping_add(programs);
        let program = world_program(&mut Seeded::new(seed));
        begins(&program);
        let plan = Plan { seed, cases: CASES_OF_PROGRAM, thorough: false };
        match examine(&program, plan, &mut see) {
            Ok(examined) => sum.add(&examined),
            // A few programs are too large for the formats.
            Err(Failure::Build(error)) => assert!(programs > 0, "{error}"),
            Err(failure) => {
                let what = failure.kind();
                panic!(
                    "after {} cases, {seed}: {what:?}\n{}",
                    sum.cases,
                    shrink(&program, failure)
                );
            }
        }
        programs += 1;
    }
    (sum, programs)
}

#[test]
fn snapshots_are_what_the_model_says() {
    let begin = Instant::now();
    let (sum, programs) = campaign(u64::from(cases(CASES)), |_| (), |_| ());
    let speed = u128::from(sum.cases) * 1000 / begin.elapsed().as_millis().max(1);
    println!("{sum:#?}\n{programs} programs, {speed} cases a second");
    // The model has no expectation where the unwinder misreads code, and while another thread
    // writes to the code manager's tables.
    assert!(sum.unsaid * 500 <= sum.cases, "{} without expectation", sum.unsaid);
    assert!(sum.excepted * 20 > sum.cases, "{} during exceptions", sum.excepted);
}

#[test]
fn a_run_repeats() {
    let run = || campaign(u64::from(cases(5_000)), |_| (), |_| ());
    assert_eq!(run(), run());
}

/// Threads execute the same instructions whether or not they are walked, except for hijacks, which
/// walks undo (C-077).
#[test]
fn calls_change_nothing() {
    for seed in (first_seed()..).take(cases(60) as usize) {
        let mut program = world_program(&mut Seeded::new(seed));
        program.stop_by = StopBy::Redirection;
        let Ok(build) = program.build() else { continue };
        let mut plain = program.world(&build).unwrap();
        let mut watched = program.world(&build).unwrap();
        let facts = ProgramFacts::new(build.expanded(), build.linked());
        for step in 0..3_000 {
            let thread = step % program.threads.len();
            if step % 5 == 0 {
                let call =
                    clr_generate::world_call(&mut Seeded::new(step as u64), &program.threads);
                if let Some(seen) = ThreadFacts::new(&facts, &mut watched, call.target) {
                    let _ = clr_tests::world::compare(&mut watched, &seen, &call);
                }
            }
            assert_eq!(plain.step(thread), watched.step(thread), "seed {seed}, step {step}");
            assert_eq!(plain.rip(thread), watched.rip(thread), "seed {seed}, step {step}");
        }
        for thread in 0..program.threads.len() {
            assert_eq!(plain.activations(thread), watched.activations(thread), "seed {seed}");
        }
        assert_eq!(plain.executed(), watched.executed(), "seed {seed}");
    }
}

#[test]
fn proptest_finds_and_shrinks_them_too() {
    let config = ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(&world_cases(), |case| {
        prop_assert!(make(&case).is_none());
        let leaves = |statement: &Statement| {
            matches!(statement, Statement::Runtime(call) if call.kind == RuntimeCallKind::PInvoke)
        };
        let mut functions = case.program.program.functions.iter();
        let leaves = functions.any(|f| f.body.iter().any(|one| one.contains(&leaves)));
        prop_assert!(!leaves || case.program.threads.len() < 2);
        Ok(())
    });
    let Err(TestError::Fail(_, case)) = result else {
        panic!("no case has a P/Invoke and two threads: {result:?}");
    };
    // A function with the P/Invoke, its callee, and a second thread that starts there, too.
    let program = &case.program;
    assert_eq!(program.threads.len(), 2, "{case:#?}");
    assert!(program.program.functions.len() <= 3, "{case:#?}");
    assert_eq!((case.turns.len(), case.call.seed), (0, None), "{case:#?}");
}

#[test]
fn a_reported_filter_needs_little() {
    let plan = Plan { seed: 0, cases: 400, thorough: false };
    let shows = |program: &WorldProgram| {
        let mut shows = false;
        let _ = examine(program, plan, |case| {
            let filter = |one: &ExpectedReport| {
                let activation = case.seen.activations.get(one.activation);
                activation.is_some_and(|activation| activation.funclet == Some(FuncletKind::Filter))
            };
            let reported = case.expected.iter().flat_map(|expected| &expected.callbacks);
            shows |= reported.into_iter().any(|one| one.function.is_some() && filter(one));
        });
        shows
    };
    let programs = (0..).map(|seed| world_program(&mut Seeded::new(seed)));
    let large = |program: &WorldProgram| program.program.functions.len() > 9;
    let programs = programs.filter(|program| large(program) && shows(program)).take(4);
    // Shrinking by single steps may end where only two steps at once would lead further.
    let minima = programs.map(|program| minimize(program, shows));
    let smallest = minima.min_by_key(|least| Measure::of(&least.program)).unwrap();
    let (guards, callees) = smallest.program.functions.split_first().unwrap();
    let [Statement::Guarded(body, clauses)] = &guards.body[..] else { panic!("{guards:#?}") };
    let inside: usize = clauses.iter().flat_map(EhClause::bodies).map(<[_]>::len).sum();
    assert!(clauses.len() == 1 && inside <= 1, "{guards:#?}");
    // The guarded body throws, or its callee does.
    let throws = match (&body[..], callees) {
        ([Statement::Call(..)], [throws]) => &throws.body,
        (_, []) => body,
        _ => panic!("{smallest:#?}"),
    };
    let [Statement::Runtime(call)] = throws[..] else { panic!("{smallest:#?}") };
    assert!(call.kind.throws());
    assert_eq!((smallest.threads.len(), smallest.hooks), (1, Hooks::None));
}

/// Counts of occurrences, by name.
#[derive(Default)]
struct Occurred(BTreeMap<String, u32>);

impl Occurred {
    fn add(&mut self, name: impl Into<String>) {
        *self.0.entry(name.into()).or_default() += 1;
    }

    fn add_if(&mut self, condition: bool, name: &str) {
        if condition {
            self.add(name);
        }
    }

    fn program(&mut self, program: &WorldProgram) {
        self.add(program.generation.to_string());
        for function in &program.program.functions {
            for kind in RuntimeCallKind::ALL {
                let is = |one: &Statement| matches!(one, Statement::Runtime(c) if c.kind == *kind);
                self.add_if(function.body.iter().any(|one| one.contains(&is)), kind.word());
            }
        }
        self.add_if(program.threads.len() == 4, "four threads");
        let is_native =
            |start: &ThreadStart| matches!(start, ThreadStart::Native(FunctionIndex(_)));
        self.add_if(program.threads.iter().any(is_native), "a native thread");
        self.add_if(program.threads.contains(&ThreadStart::ServerGc), "a server GC");
        self.add_if(program.hooks == Hooks::Slow, "slow hooks");
        self.add_if(program.hooks == Hooks::Fast, "fast hooks");
    }

    fn case(&mut self, case: &Case<'_>) {
        let Case { seen, question, expected, outcome, callbacks, in_callback } = case;
        self.add(outcome.to_string());
        let is = |result: HResult| *outcome == result.into();
        if let Some(kind) = in_callback {
            self.add(kind.name());
        }
        let Some(expected) = expected else { return self.add("unsaid") };
        let shown = &expected.callbacks;
        let markers = shown.windows(2).any(|pair| pair.iter().all(|one| one.function.is_none()));
        self.add_if(markers, "two markers in a row");
        let marker_first = shown.first().is_some_and(|first| first.function.is_none());
        self.add_if(marker_first, "a marker first");
        self.add_if(*callbacks == 0 && is(HResult::OK), "nothing, and S_OK");
        self.add_if(*callbacks > 1 && is(HResult::ABORTED), "aborted later");
        self.add_if(*callbacks >= 24, "24 callbacks");
        self.add_if(!seen.cooperative && question.seed.is_some(), "a seed ignored");
        self.add_if(question.suspended_by_profiler && *callbacks > 0, "under SuspendRuntime");
        self.add_if(question.caller == CallerKind::Managed && *callbacks > 0, "a managed caller");
        self.add_if(question.caller == CallerKind::Native && *callbacks > 0, "a native caller");
        if let Some(ActivationCode::Managed(_, kind)) =
            seen.activations.first().map(|activation| activation.code)
        {
            let cooked = question.caller != CallerKind::Target && question.seed.is_none();
            let hidden = kind != MethodKind::Ordinary && *callbacks > 0 && cooked;
            self.add_if(hidden, "a hidden method on top");
            self.add_if(cooked && *callbacks > 0, "another thread in managed code");
        }
        let lost =
            seen.activations.iter().any(ReferenceActivation::is_managed) && is(HResult::FAIL);
        self.add_if(lost, "nothing but lost frames");
        let root = seen.activations.last().is_some_and(ReferenceActivation::is_source_code);
        self.add_if(root && *callbacks > 0, "a native thread that became managed");
        self.add_if(
            seen.activations.iter().any(|activation| activation.funclet.is_some())
                && *callbacks > 1,
            "a funclet",
        );
        self.exceptions(case, expected);
        for frame in &seen.frames {
            let leads = matches!(frame.lead, FrameTarget::To { .. });
            self.add(format!("{} leads: {leads}", frame.kind));
        }
    }
}

impl Occurred {
    /// Counts occurrences that involve exceptions.
    fn exceptions(&mut self, case: &Case<'_>, expected: &ExpectedCall) {
        let Case { seen, question, outcome, in_callback, .. } = case;
        let ThreadFacts { activations, exceptions, .. } = seen;
        let is = |result: HResult| *outcome == result.into();
        let reported = |index: usize| expected.callbacks.iter().any(|one| one.activation == index);
        let reports = !expected.callbacks.is_empty();
        let funclets = |wanted: FuncletKind| {
            activations
                .iter()
                .enumerate()
                .filter(move |(_, activation)| activation.funclet == Some(wanted))
        };
        let handlers = || {
            funclets(FuncletKind::Handler).filter(|(index, _)| {
                // The handler was called by exception handling, not by its method.
                activations.get(index + 1).is_some_and(|caller| !caller.is_managed())
            })
        };
        let left = |activation: &ReferenceActivation| {
            activation.is_managed() && exceptions.have_left(activation.caller_sp)
        };
        if let Some(kind) = in_callback.filter(|kind| kind.name().starts_with("Exception")) {
            self.add_if(reports, &format!("a report in {}", kind.name()));
        }
        let filters = funclets(FuncletKind::Filter).any(|(index, _)| reported(index));
        self.add_if(filters, "a filter reported");
        self.add_if(handlers().count() > 0 && reports, "a handler on the stack");
        self.add_if(handlers().count() > 1 && reports, "two handlers");
        self.add_if(handlers().count() > 0 && filters, "a handler and a filter");
        let called = funclets(FuncletKind::Handler).count() > handlers().count();
        self.add_if(called && reports, "a finally called by its method");
        self.add_if(called && handlers().count() > 0 && reports, "the same in a handler");
        let hidden = activations.iter().any(left) && reports;
        self.add_if(hidden, "frames that a second pass has left");
        let marker = expected.callbacks.first().is_some_and(|first| {
            first.function.is_none()
                && first
                    .activation
                    .checked_sub(1)
                    .and_then(|activation| activations.get(activation))
                    .is_some_and(left)
        });
        self.add_if(marker, "a marker after such frames first");
        let left_handler =
            handlers().any(|(index, activation)| left(activation) && reported(index + 1));
        self.add_if(left_handler, "the marker of a handler that was left");
        let refused = is(HResult::UNMANAGED_CONTEXT) && exceptions.unwinds_natively;
        self.add_if(refused && question.seed.is_none(), "refused in a second pass");
        let ignored = refused && question.seed.is_some() && !seen.cooperative;
        self.add_if(ignored, "refused in a second pass with a seed");
        let seeded = exceptions.unwinds_natively && question.seed.is_some() && reports;
        self.add_if(seeded, "a seed in a second pass");
        self.add_if(is(HResult::UNSAFE) && exceptions.inconsistent, "refused at its end");
        self.add_if(exceptions.count > 1 && reports, "two exceptions");
        self.add_if(exceptions.count > 2 && reports, "three exceptions");
        let interrupted = activations.iter().any(|activation| {
            activation.is_managed()
                && activation.position == Position::Interrupted
                && told_of_fault(seen)
        });
        self.add_if(interrupted && reports, "the place of a hardware fault");
        let away = handlers().any(|(index, _)| {
            activations.iter().take(index).any(|activation| {
                matches!(activation.code, ActivationCode::Managed(_, MethodKind::IlStub))
            })
        });
        self.add_if(away && !seen.cooperative && reports, "a P/Invoke in a handler");
    }
}

/// Returns true if a Frame reports a hardware fault.
fn told_of_fault(seen: &ThreadFacts) -> bool {
    seen.frames.iter().any(|frame| frame.kind == FrameKind::FaultingException)
}

/// Occurrences that every long enough run must have.
const SITUATIONS: &[&str] = &[
    "S_OK",
    "E_FAIL",
    "E_INVALIDARG",
    "E_NOTIMPL",
    "four threads",
    "a native thread",
    "a server GC",
    "two markers in a row",
    "a marker first",
    "nothing, and S_OK",
    "aborted later",
    "24 callbacks",
    "a seed ignored",
    "under SuspendRuntime",
    "a managed caller",
    "a native caller",
    "a hidden method on top",
    "another thread in managed code",
    "nothing but lost frames",
    "a funclet",
    "a filter reported",
    "a handler on the stack",
    "two handlers",
    "a handler and a filter",
    "a finally called by its method",
    "the same in a handler",
    "frames that a second pass has left",
    "a marker after such frames first",
    "the marker of a handler that was left",
    "refused in a second pass",
    "refused in a second pass with a seed",
    "a seed in a second pass",
    "refused at its end",
    "two exceptions",
    "three exceptions",
    "the place of a hardware fault",
    "a P/Invoke in a handler",
    "a report in ExceptionThrown",
    "a report in ExceptionSearchFunctionEnter",
    "a report in ExceptionSearchFilterEnter",
    "a report in ExceptionSearchCatcherFound",
    "a report in ExceptionUnwindFunctionLeave",
    "a report in ExceptionUnwindFinallyEnter",
    "a report in ExceptionCatcherEnter",
    "slow hooks",
    "fast hooks",
    "a native thread that became managed",
    "InlinedCallFrame leads: true",
    "InlinedCallFrame leads: false",
    "HelperMethodFrame leads: true",
    "PrestubMethodFrame leads: true",
    "DynamicHelperFrame leads: true",
    "GCFrame leads: false",
    "FaultingExceptionFrame leads: true",
    "SoftwareExceptionFrame leads: true",
    "HijackFrame leads: true",
    "RedirectedThreadFrame leads: true",
    "DebuggerU2MCatchHandlerFrame leads: false",
];

#[test]
fn everything_occurs() {
    if seed() != 0 {
        // The test concerns the generator, and rare occurrences need not be in each range of seeds.
        return;
    }
    let mut occurred = Occurred::default();
    let mut programs = Vec::new();
    let wanted = u64::from(cases(ALL_KINDS).max(ALL_KINDS));
    campaign(wanted, |program| programs.push(program.clone()), |case| occurred.case(case));
    for program in &programs {
        occurred.program(program);
    }
    let results = [HResult::UNMANAGED_CONTEXT, HResult::ABORTED].map(|result| result.to_string());
    // Callbacks that worlds raise.
    let callbacks = [
        CallbackKind::ThreadCreated,
        CallbackKind::ThreadAssignedToOSThread,
        CallbackKind::ThreadDestroyed,
        CallbackKind::JITCompilationStarted,
        CallbackKind::JITCompilationFinished,
        CallbackKind::ObjectAllocated,
        CallbackKind::ManagedToUnmanagedTransition,
        CallbackKind::UnmanagedToManagedTransition,
        CallbackKind::ModuleUnloadStarted,
        CallbackKind::DynamicMethodUnloaded,
        CallbackKind::HandleCreated,
        CallbackKind::HandleDestroyed,
    ];
    let generations = Generation::ALL.map(|generation| generation.to_string());
    let wanted = SITUATIONS.iter().map(|name| (*name).to_owned()).chain(results).chain(generations);
    let wanted = wanted.chain(callbacks.map(|kind| kind.name().to_owned()));
    // The generator draws no handlers of first-chance exceptions: they must not throw.
    let drawn = |kind: &&RuntimeCallKind| **kind != RuntimeCallKind::HandleFirstChance;
    let kinds = RuntimeCallKind::ALL.iter().filter(drawn);
    let wanted = wanted.chain(kinds.map(|kind| kind.word().to_owned()));
    let rare: Vec<_> =
        wanted.filter(|name| occurred.0.get(name).is_none_or(|times| *times < 3)).collect();
    println!("{:#?}", occurred.0);
    assert!(rare.is_empty(), "{rare:#?}");
}
