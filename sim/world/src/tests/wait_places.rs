//! The waits that a thread can be stopped in.

use super::*;
use crate::WaitPlace;

fn jit(name: &str, body: Vec<Statement>) -> Function {
    function(name, CodeKind::Jit, body)
}

/// Executes a thread until it waits.
fn wait(world: &mut World<'_>, thread: usize) -> Option<WaitPlace> {
    while world.step(thread).unwrap() != StepEvent::Waits {
        assert!(!world.threads[thread].ended);
    }
    world.wait_place(thread)
}

#[test]
fn a_thread_waits_in_a_place_of_its_own_for_each_reason() {
    let body = vec![
        runtime(Call::Sleep, None),
        runtime(Call::MonitorWait, None),
        runtime(Call::StartThread, Some(1)),
        runtime(Call::JoinThread, Some(1)),
    ];
    let functions = vec![jit("App.Main", body), jit("App.Other", vec![Statement::Work(1)])];
    let program = Program { functions, ..Program::default() };
    let [main, other] = [0, 1].map(FunctionIndex);
    for generation in Generation::ALL {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let starts = [ThreadStart::Managed(main), ThreadStart::ByProgram(other)];
        let mut world = build.world(&starts).unwrap();
        assert_eq!(wait(&mut world, 1), None, "{generation}: not started");
        let found = [(); 3].map(|()| wait(&mut world, 0));
        let expected = [WaitPlace::Sleep, WaitPlace::Monitor, WaitPlace::Join].map(Some);
        assert_eq!(found, expected, "{generation}");
    }
}

/// A thread that has slept and comes back in a suspension no longer sleeps.
#[test]
fn a_thread_that_comes_back_waits_for_the_end_of_a_suspension() {
    let functions = vec![
        jit("App.Main", vec![runtime(Call::Collect, None)]),
        jit("App.Other", vec![runtime(Call::Sleep, None), Statement::Work(1)]),
    ];
    let program = Program { functions, ..Program::default() };
    let starts = [0, 1].map(|index| ThreadStart::Managed(FunctionIndex(index)));
    for generation in Generation::ALL {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&starts).unwrap();
        assert_eq!(wait(&mut world, 1), Some(WaitPlace::Sleep), "{generation}");
        let collects = StepEvent::Callback(CallbackKind::GarbageCollectionStarted);
        while world.step(0).unwrap() != collects {
            assert!(!world.threads[0].ended, "{generation}");
        }
        assert_eq!(wait(&mut world, 1), Some(WaitPlace::Suspension), "{generation}");
    }
}
