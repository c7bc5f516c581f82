//! Arguments of callbacks: the method, the object and the handle that they are about.

use super::*;

/// Returns the name of a method, or nothing for none.
fn named(world: &World<'_>, function: FunctionId) -> String {
    let method = world.as_synced().code.method(function);
    method.map_or_else(String::new, |(_, method)| method.name.clone())
}

/// Returns each callback with the name of its method, and its arguments.
fn reported(
    program: &Program,
    generation: Generation,
) -> Vec<(&'static str, String, CallbackArguments)> {
    let mut reported = Vec::new();
    run(program, generation, |world, callback| {
        let arguments = world.callback_arguments(0);
        reported.push((callback, named(world, arguments.function), arguments));
    });
    reported
}

fn calling(functions: Vec<Function>) -> Program {
    Program { functions, ..Program::default() }
}

fn main_with(calls: &[Call]) -> Program {
    let body = calls.iter().map(|kind| runtime(*kind, None)).collect();
    calling(vec![function("App.Main", CodeKind::Jit, body)])
}

/// `ExceptionThrown` is about the object, and `ExceptionCatcherEnter` about both; the others are about the method of
/// the frame, and those behind it about nothing.
#[test]
fn callbacks_of_exceptions_are_about_the_frame_or_the_object() {
    let expected = [
        ("ExceptionThrown", "", 1),
        ("ExceptionSearchFunctionEnter", "App.Thrower", 0),
        ("ExceptionSearchFunctionLeave", "", 0),
        ("ExceptionSearchFunctionEnter", "App.Main", 0),
        ("ExceptionSearchFilterEnter", "App.Main", 0),
        ("ObjectAllocated", "", 2),
        ("ExceptionSearchFilterLeave", "", 0),
        ("ExceptionSearchCatcherFound", "App.Main", 0),
        ("ExceptionSearchFunctionLeave", "", 0),
        ("ExceptionUnwindFunctionEnter", "App.Thrower", 0),
        ("ExceptionUnwindFunctionLeave", "", 0),
        ("ExceptionUnwindFunctionEnter", "App.Main", 0),
        ("ExceptionUnwindFinallyEnter", "App.Main", 0),
        ("ObjectAllocated", "", 3),
        ("ExceptionUnwindFinallyLeave", "", 0),
        ("ExceptionCatcherEnter", "App.Main", 1),
        ("ObjectAllocated", "", 4),
        ("ExceptionCatcherLeave", "", 0),
    ];
    for generation in Generation::ALL {
        for kind in [Call::Raise, Call::NullDereference] {
            let mut reported = reported(&observed(kind), generation);
            if generation.tells_of_calls_of_handling() {
                // Observed on .NET 11: transitions of the method that handles the exception are around the first pass.
                let name = if kind == Call::Raise { "RhThrowEx" } else { "RhThrowHwEx" };
                let name = format!("System.Runtime.EH.{name}");
                let is_one =
                    |(kind, ..): &(&str, String, CallbackArguments)| kind.ends_with("Transition");
                let around: Vec<_> = reported.extract_if(.., |one| is_one(one)).collect();
                let around: Vec<_> = around
                    .iter()
                    .map(|(kind, it, about)| (*kind, it.as_str(), about.returns))
                    .collect();
                let expected = [
                    ("UnmanagedToManagedTransition", name.as_str(), false),
                    ("ManagedToUnmanagedTransition", name.as_str(), true),
                ];
                assert_eq!(around, expected, "{generation}, {kind:?}");
            }
            let found: Vec<_> =
                reported.iter().map(|(kind, name, it)| (*kind, name.as_str(), it.object)).collect();
            assert_eq!(found, expected, "{generation}, {kind:?}");
            // The number of objects so far is never behind.
            let counts: Vec<_> = reported.iter().map(|(_, _, it)| it.objects).collect();
            assert!(counts.is_sorted() && counts.first() == Some(&1) && counts.last() == Some(&4));
        }
    }
}

/// An exception that is thrown again is the same object, another one is not; one that passes native code is carried
/// through it.
#[test]
fn a_rethrown_exception_is_the_same_object() {
    let catch = |body| vec![clause(EhClauseKind::Catch, body)];
    let thrown = |in_catch: Vec<Statement>| {
        let inner = Statement::Guarded(vec![call(1)], catch(in_catch));
        let program = calling(vec![
            managed(
                "App.Main",
                CodeKind::Jit,
                vec![Statement::Guarded(vec![inner], catch(vec![]))],
            ),
            managed("App.Thrower", CodeKind::Jit, vec![throw(Call::Raise)]),
        ]);
        move |generation| {
            let reported = reported(&program, generation);
            let thrown = reported.iter().filter(|(kind, ..)| *kind == "ExceptionThrown");
            thrown.map(|(_, _, it)| it.object).collect::<Vec<_>>()
        }
    };
    let again = thrown(vec![throw(Call::Rethrow)]);
    let other = thrown(vec![throw(Call::Raise)]);
    let fault = thrown(vec![throw(Call::NullDereference)]);
    let nothing = thrown(vec![]);
    for generation in Generation::ALL {
        assert_eq!(again(generation), [1, 1], "{generation}");
        assert_eq!(other(generation), [1, 2], "{generation}");
        assert_eq!(fault(generation), [1, 2], "{generation}");
        assert_eq!(nothing(generation), [1], "{generation}");
        let through = calling(vec![
            managed(
                "App.Main",
                CodeKind::Jit,
                vec![Statement::Guarded(
                    vec![runtime(Call::ClassConstructor, Some(1))],
                    catch(vec![]),
                )],
            ),
            managed("App.Thrower", CodeKind::Jit, vec![throw(Call::Raise)]),
        ]);
        let reported = reported(&through, generation);
        let thrown = reported.iter().filter(|(kind, ..)| *kind == "ExceptionThrown");
        let objects: Vec<_> = thrown.map(|(_, _, it)| it.object).collect();
        assert_eq!(objects, [1, 2], "{generation}");
    }
}

/// A transition is about the target, in both directions, except for calls by function pointer.
#[test]
fn transitions_name_the_function_that_is_called() {
    for kind in Call::ALL {
        let Some(target) = kind.target() else { continue };
        let expected = match (*kind, target) {
            (Call::PInvokeCalli, _) => "",
            (_, CallTarget::Unmanaged) => "Lib.Work",
            (_, CallTarget::Managed) => "App.Work",
        };
        for generation in Generation::ALL {
            let is_entry = *kind == Call::ClassConstructor && generation.has_managed_entry_points();
            let expected = if is_entry { Shared::CallClassConstructor.name() } else { expected };
            let reported = reported(&kinds::program(*kind), generation);
            let there: Vec<_> = reported.iter().filter(|it| it.0.ends_with("Transition")).collect();
            for (place, (callback, name, arguments)) in there.iter().enumerate() {
                assert_eq!(name, expected, "{generation}, {kind:?}, {callback}");
                // There and back.
                assert_eq!(arguments.returns, place % 2 == 1, "{generation}, {kind:?}");
            }
            assert!(there.len() % 2 == 0, "{generation}, {kind:?}");
        }
    }
}

#[test]
fn compilations_and_class_loads_name_the_method() {
    for generation in Generation::ALL {
        for (kind, callback, expected) in [
            (Call::FirstCall, "JITCachedFunctionSearchStarted", "App.Work"),
            (Call::FirstCall, "JITCachedFunctionSearchFinished", "App.Work"),
            (Call::LazyCall, "ClassLoadStarted", "App.Work"),
            (Call::VirtualCall, "ClassLoadFinished", "App.Work"),
            (Call::PInvokeVararg, "DynamicMethodJITCompilationStarted", "IL_STUB_PInvoke:Lib.Work"),
            (
                Call::PInvokeVararg,
                "DynamicMethodJITCompilationFinished",
                "IL_STUB_PInvoke:Lib.Work",
            ),
        ] {
            let reported = reported(&kinds::program(kind), generation);
            for (_, name, _) in reported.iter().filter(|(kind, ..)| *kind == callback) {
                assert_eq!(name, expected, "{generation}, {kind:?}");
            }
        }
        // A method that is not compiled yet.
        let first = runtime(Call::FirstCall, Some(1));
        let work = function("App.Work", CodeKind::Jit, vec![Statement::Work(1)]);
        let main = function("App.Main", CodeKind::Jit, vec![first]);
        let reported = reported(&calling(vec![main, work]), generation);
        let names: Vec<_> = reported
            .iter()
            .filter(|(kind, ..)| kind.starts_with("JITCompilation"))
            .map(|(kind, name, _)| (*kind, name.as_str()))
            .collect();
        let expected =
            [("JITCompilationStarted", "App.Work"), ("JITCompilationFinished", "App.Work")];
        assert_eq!(names, expected, "{generation}");
    }
}

#[test]
fn unloading_names_a_method_and_its_suspension_the_reason() {
    for generation in Generation::ALL {
        let unloaded = |kind| {
            let unload = runtime(kind, Some(1));
            let main = function("App.Main", CodeKind::Jit, vec![unload]);
            let plugin = function("App.Plugin", CodeKind::Jit, vec![Statement::Work(1)]);
            reported(&calling(vec![main, plugin]), generation)
        };
        let mut reported = unloaded(Call::UnloadAssembly);
        reported.extend(unloaded(Call::UnloadDynamicMethod));
        let unloads: Vec<_> =
            reported.iter().filter(|(kind, ..)| kind.contains("Unload")).collect();
        assert!(unloads.len() >= 5, "{generation}");
        for (kind, name, _) in unloads {
            // Behind the last one on the Framework the code is gone.
            assert!(
                name == "App.Plugin" || *kind == "AssemblyUnloadFinished",
                "{generation}, {kind}"
            );
        }
        let suspends = |reported: &[(&str, String, CallbackArguments)]| {
            let found = reported.iter().find(|(kind, ..)| *kind == "RuntimeSuspendStarted");
            found.map(|(_, _, arguments)| arguments.suspension)
        };
        assert_eq!(suspends(&reported), Some(SuspensionReason::Unload), "{generation}");
        let collected = self::reported(&main_with(&[Call::Collect]), generation);
        assert_eq!(suspends(&collected), Some(SuspensionReason::Gc), "{generation}");
    }
}

/// Handles are numbered as they are made, and the newest one is destroyed first; the roots are those that have an
/// object.
#[test]
fn handles_are_numbered_and_their_objects_are_roots() {
    use Call::{Collect, CreateHandle, DestroyHandle, New};
    let calls = [
        CreateHandle,
        New,
        CreateHandle,
        New,
        CreateHandle,
        DestroyHandle,
        Collect,
        DestroyHandle,
        DestroyHandle,
        DestroyHandle,
    ];
    for generation in Generation::ALL {
        let reported = reported(&main_with(&calls), generation);
        let handles: Vec<_> = reported
            .iter()
            .filter(|(kind, ..)| kind.starts_with("Handle"))
            .map(|(kind, _, it)| (*kind, it.handle, it.object))
            .collect();
        let (made, destroyed) = ("HandleCreated", "HandleDestroyed");
        let expected = [
            (made, 1, 0),
            (made, 2, 1),
            (made, 3, 2),
            (destroyed, 3, 0),
            (destroyed, 2, 0),
            (destroyed, 1, 0),
            // Of one that was made before the profiler came.
            (destroyed, 4, 0),
        ];
        assert_eq!(handles, expected, "{generation}");
        for (kind, _, arguments) in &reported {
            let roots: &[_] = if *kind == "RootReferences" { &[(2, 1)] } else { &[] };
            assert_eq!(arguments.roots, roots, "{generation}, {kind}");
            if !kind.starts_with("Handle") {
                assert_eq!(arguments.handle, 0, "{generation}, {kind}");
            }
        }
    }
}

/// One GC serves all that wait for it.
#[test]
fn a_server_gc_is_as_its_first_request_says() {
    for induced in [false, true] {
        let program = everything();
        let build = Build::new(&program, &BTreeMap::new(), Generation::Net8Unix).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        assert_eq!([induced, !induced].map(|one| world.ask_for_gc(one)), [1, 2]);
        assert_eq!(world.made.induced, induced);
    }
}

#[test]
fn a_collection_is_induced_if_the_program_asks_for_it() {
    for generation in Generation::ALL {
        for (kind, expected) in [(Call::Collect, true), (Call::NewWithGc, false)] {
            let reported = reported(&main_with(&[kind]), generation);
            let started = reported.iter().find(|(kind, ..)| *kind == "GarbageCollectionStarted");
            assert_eq!(started.unwrap().2.induced, expected, "{generation}, {kind:?}");
        }
    }
}

/// A GC that the profiler forces calls back in its call, with the objects and roots of the program.
#[test]
fn callbacks_in_a_call_of_the_profiler_have_the_objects_of_the_program() {
    let program = main_with(&[Call::New, Call::New, Call::CreateHandle]);
    let build = Build::new(&program, &BTreeMap::new(), Generation::Net9Unix).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    assert_eq!(world.callback_arguments(0), CallbackArguments::default());
    while world.step(0).unwrap() != StepEvent::Ended {}
    assert_eq!(world.callback_arguments(7), CallbackArguments::default());
    let of = |callback| world.arguments_in_call(callback);
    let plain = CallbackArguments { objects: 2, induced: true, ..CallbackArguments::default() };
    assert_eq!(of(ProfilerCallback::GarbageCollectionStarted), plain);
    let roots = CallbackArguments { roots: vec![(1, 2)], ..plain.clone() };
    assert_eq!(of(ProfilerCallback::RootReferences), roots);
    let suspension = SuspensionReason::Gc;
    let started = of(ProfilerCallback::RuntimeSuspendStarted(suspension));
    assert_eq!(started, CallbackArguments { suspension, ..plain });
    assert_eq!(CallbackKind::from(ProfilerCallback::RootReferences), CallbackKind::RootReferences);
}
