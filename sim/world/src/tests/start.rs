//! The start of the runtime.

use super::*;
use CallbackKind::{
    AppDomainCreationFinished, AppDomainCreationStarted, AssemblyLoadStarted,
    ThreadAssignedToOSThread, ThreadCreated,
};

/// The callbacks of each thread, with the thread's mode and with whether the runtime has started.
#[test]
fn the_first_thread_begins_with_the_start_and_the_finalizers_with_its_creation() {
    let main = function("App.Main", CodeKind::Jit, vec![runtime(Call::NewFinalizable, Some(1))]);
    let other = function("App.Other", CodeKind::Jit, vec![Statement::Work(1)]);
    let program = Program { functions: vec![main, other], ..Program::default() };
    let [first, another] = [0, 1].map(|index| ThreadStart::Managed(FunctionIndex(index)));
    for generation in Generation::ALL {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[first, ThreadStart::Finalizer, another]).unwrap();
        world.begin_with_start();
        let mut found = [const { Vec::new() }; 3];
        // The first thread comes last: nobody else makes its callbacks.
        for thread in [2, 1, 0].into_iter().cycle() {
            if let StepEvent::Callback(kind) = world.step(thread).unwrap() {
                let started = world.runtime().process.get().started;
                found[thread].push((kind, world.is_cooperative(thread), started));
            }
            if world.threads[0].ended && world.threads[2].ended {
                break;
            }
        }
        let [first, finalizer, other] = &found;
        assert_eq!(finalizer[0].0, ThreadCreated, "{generation}");
        assert_eq!(
            (finalizer[1].0, finalizer[1].1),
            (ThreadAssignedToOSThread, true),
            "{generation}"
        );
        for found in &found {
            let created = found.iter().filter(|(kind, ..)| *kind == ThreadCreated);
            assert_eq!(created.count(), 1, "{generation}");
        }
        assert!(other.iter().all(|(kind, ..)| *kind != AssemblyLoadStarted), "{generation}");
        let domains = [AppDomainCreationStarted, AppDomainCreationFinished];
        let is_domain = |kind| domains.contains(kind);
        let last = first.iter().rposition(|(kind, ..)| is_domain(kind)).unwrap();
        let (before, after) = first.split_at(last + 1);
        assert_eq!(before.iter().filter(|(kind, ..)| is_domain(kind)).count(), 4, "{generation}");
        assert!(before.iter().all(|(.., started)| !started), "{generation}: {first:?}");
        assert!(after.iter().all(|(.., started)| *started), "{generation}: {first:?}");
    }
}
