//! Tests of texts of generated programs.

use super::*;
use crate::{SEED_FLAGS, SeedSource, SnapshotCaller, SnapshotSeed, SnapshotThread, ThreadAtStop};
use clr_generate::world::{By, WorldCall};
use clr_reference::{CallFacts, CallerKind, ExpectedCall, ProgramFacts, ThreadFacts, expected};
use clr_runtime::{Context, Outcome};
use clr_unwind::Registers;
use clr_walker::profiling::SnapshotFlags;
use clr_world::stubs::Identity;
use clr_world::{Activation, ThreadStart, World};

/// Number of cases.
const CASES: u64 = 400;

/// Returns the result that the reference model gives for the call of a text where it stops; `None`
/// if the model does not cover the call.
fn modelled(scenario: &Scenario, at: &mut ThreadAtStop<'_, '_>) -> Option<ExpectedCall> {
    let (call, thread) = (scenario.call(Some(at.stop), 0)?, at.thread);
    let facts = ProgramFacts::new(at.world.expanded(), at.world.linked());
    let target = ThreadFacts::new(&facts, at.world, thread)?;
    let caller = match call.by {
        SnapshotCaller::Own => CallerKind::Target,
        SnapshotCaller::NativeWalker => CallerKind::Native,
        SnapshotCaller::ManagedWalker => CallerKind::Managed,
        SnapshotCaller::Thread(other) if other as usize == thread => CallerKind::Target,
        SnapshotCaller::Thread(other) => match scenario.starts()[other as usize] {
            ThreadStart::Managed(_)
            | ThreadStart::ByProgram(_)
            | ThreadStart::OfPool(_)
            | ThreadStart::Finalizer
            | ThreadStart::Tiering => CallerKind::Managed,
            ThreadStart::Native(_) | ThreadStart::ServerGc => CallerKind::Native,
        },
    };
    let unnamed = match call.thread {
        SnapshotThread::Own => false,
        // To another thread of the runtime, 0 means itself.
        SnapshotThread::Null if caller != CallerKind::Managed => true,
        SnapshotThread::Thread(other) if other as usize == thread => false,
        _ => return None,
    };
    let seed = match &call.seed {
        None => None,
        Some(seed)
            if *seed
                == (SnapshotSeed { flags: seed.flags, ..SnapshotSeed::new(seed.from.clone()) }) =>
        {
            let activation = activation_of(&seed.from, thread, at.world, &target)?;
            Some((activation, seed.flags.unwrap_or(SEED_FLAGS)))
        }
        Some(_) => return None,
    };
    let question = CallFacts {
        caller,
        unnamed,
        flags: call.flags,
        seed,
        suspended_by_profiler: call.suspended,
        stop_at: call.stop_at.map(|last| last.callback - 1),
    };
    expected(&target, &question)
}

/// Returns the index of the activation that a seed is made from.
fn activation_of(
    from: &SeedSource,
    thread: usize,
    world: &World<'_>,
    target: &ThreadFacts,
) -> Option<usize> {
    let expanded = world.expanded();
    let activations = world.activations(thread);
    let find = |is: &dyn Fn(usize) -> bool| {
        let own = |one: &&Activation| one.function.is_some_and(|id| is(id.index()));
        activations.iter().find(own)
    };
    let own = match from {
        SeedSource::Leaf => activations.first(),
        SeedSource::TopManaged => {
            find(&|id| matches!(expanded.identities[id], Identity::Method(_)))
        }
        SeedSource::Function(name) => find(&|id| expanded.program.functions[id].name == *name),
        SeedSource::Stale | SeedSource::Bytes(_) => None,
    }?;
    let place = |registers: &Registers| (registers.rip, registers.rsp());
    target.activations.iter().position(|it| place(&it.registers) == place(&own.registers))
}

/// Returns true if the result of a call equals the model's. rax is not compared: a seed has its own.
fn is_as_modelled(found: &SnapshotResult, expected: &ExpectedCall) -> bool {
    let without_rax = |mut context: Context| {
        context.registers.set(Gpr::Rax, 0);
        context
    };
    let found_frames = found.frame_reports.iter().map(|it| &it.frame_report);
    found.outcome == expected.outcome
        && found.frame_reports.len() == expected.callbacks.len()
        && found_frames.zip(&expected.callbacks).all(|(found, expected)| {
            let context = found.context.map(without_rax);
            (found.function, found.ip) == (expected.function, expected.context.registers.rip)
                && context.is_none_or(|context| context == without_rax(expected.context))
        })
}

/// The text moves the threads to the positions that they have in the case, and the result of its
/// call is that of the reference model.
#[test]
fn cases_come_back_from_their_texts() {
    let (mut said, mut same, mut compared, mut with_others) = (0, 0, 0, 0);
    // A text moves one thread after the other to its position, so the order of several may differ.
    let (mut said_alone, mut same_alone) = (0, 0);
    for seed in 0..CASES {
        let case = world_case(&mut Seeded::new(seed));
        let Some(scenario) = Scenario::of_case(&case) else { continue };
        said += 1;
        with_others += u32::from(!scenario.stops[0].others.is_empty());
        let text = round_trip(&scenario);
        let generation = case.program.generation;
        let build = case.program.build().unwrap();
        let mut world = build.world(&case.program.threads).unwrap();
        case.execute(&mut world).unwrap();
        let count = world.thread_count();
        said_alone += u32::from(count == 1);
        let stands: Vec<_> = (0..count).map(|thread| world.rip(thread)).collect();
        let mut expected = None;
        scenario
            .at_stops(generation, |mut at_stop| {
                expected = modelled(&scenario, &mut at_stop);
                let there: Vec<_> = (0..count).map(|it| at_stop.world.rip(it)).collect();
                same += u32::from(there == stands);
                same_alone += u32::from(count == 1 && there == stands);
            })
            .unwrap();
        let Ok(reports) = scenario.run_on(generation) else { continue };
        if let Some(expected) = expected {
            compared += 1;
            let found = &reports[0].found;
            assert!(is_as_modelled(found, &expected), "{seed}\n{text}\n{found}");
            // A different result is detected.
            let mut other = expected.clone();
            other.outcome = Outcome::Returned(HResult(0x8000_4321));
            assert!(!is_as_modelled(found, &other), "{seed}");
            if let Some(last) = expected.callbacks.last() {
                let mut other = expected.clone();
                other.callbacks.push(last.clone());
                assert!(!is_as_modelled(found, &other), "{seed}");
                let mut other = expected.clone();
                other.callbacks[0].context.registers.gpr[3] ^= 1;
                let has_context = found.frame_reports[0].frame_report.context.is_some();
                assert_eq!(is_as_modelled(found, &other), !has_context, "{seed}");
            }
            let mut expecting = scenario.clone();
            expecting.expect_results(Generations::of(&[generation]));
            for report in expecting.run_on(generation).unwrap() {
                assert_eq!(report.differences, [], "{seed}\n{expecting}");
            }
        }
    }
    println!("{same} of {said}, with one thread {same_alone} of {said_alone}");
    assert_eq!(same_alone, said_alone);
    assert!(u64::from(said) > CASES / 2 && same * 100 > said * 90, "{said}, {same}");
    assert!(compared * 2 > said && with_others > 10, "{compared}, {with_others}");
}

/// A text contains all properties of a call.
#[test]
fn all_of_a_call_is_said() {
    let mut case = world_case(&mut Seeded::new(3));
    case.turns.clear();
    case.call = WorldCall {
        by: By::Profiler,
        target: 0,
        unnamed: true,
        flags: SnapshotFlags(0),
        seed: None,
        suspended_by_profiler: false,
        stop_at: Some(2),
    };
    let scenario = Scenario::of_case(&case).unwrap();
    assert_eq!(scenario.stops[0].at, StopAt::After(0));
    let text = scenario.to_string();
    let call = "snapshot by=\"native-walker\" thread=\"null\" flags=0x0 stop-at=3";
    assert!(text.contains(call) || text.contains(&call.replace("0x0", "0")), "{text}");
}
