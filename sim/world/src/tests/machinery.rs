//! The parts and modes of the runtime's own exception handling.

use super::*;

const ROOT: &str = "*CallDescrWorkerInternal S_OK";

/// Returns the functions on the stack, innermost first.
fn names<'b>(world: &World<'b>) -> Vec<&'b str> {
    let functions = &world.expanded().program.functions;
    let activations = world.activations(0);
    activations
        .iter()
        .filter_map(|frame| frame.function)
        .map(|function| functions[function.index()].name.as_str())
        .collect()
}

/// `System.Runtime.EH`, from the public source of its `ExceptionHandling.cs`, and as found on the
/// stacks of U9's recordings.
#[test]
fn managed_handling_has_its_methods_on_the_stack() {
    let expected = [
        ("System.Runtime.EH.ExInfo.Init", vec!["RhThrowEx"]),
        ("System.Runtime.EH.ExInfo.get_ThrownException", vec!["DispatchEx", "RhThrowEx"]),
        ("SfiInit", vec!["DispatchEx", "RhThrowEx"]),
        ("SfiNext", vec!["DispatchEx", "RhThrowEx"]),
        ("EHEnumNext", vec!["FindFirstPassHandler", "DispatchEx", "RhThrowEx"]),
        ("CallFilterFunclet", vec!["FindFirstPassHandler", "DispatchEx", "RhThrowEx"]),
        ("EHEnumNext", vec!["InvokeSecondPass", "DispatchEx", "RhThrowEx"]),
        ("CallFinallyFunclet", vec!["InvokeSecondPass", "DispatchEx", "RhThrowEx"]),
        ("CallCatchFunclet", vec!["DispatchEx", "RhThrowEx"]),
    ];
    for generation in Generation::ALL {
        let build = Build::new(&observed(Raise), &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let mut seen = BTreeSet::new();
        while world.step(0).unwrap() != StepEvent::Ended {
            let names = names(&world);
            let Some((first, callers)) = names.split_first() else { continue };
            let methods = callers.iter().filter_map(|name| name.strip_prefix("System.Runtime.EH."));
            let methods: Vec<_> = methods.take_while(|name| !name.contains("ExInfo")).collect();
            if !methods.is_empty() || first.contains(".ExInfo.") {
                seen.insert((*first, methods));
            }
        }
        if !generation.hides_exception_handling() {
            assert!(seen.is_empty(), "{generation}: {seen:?}");
            continue;
        }
        for expected in &expected {
            assert!(seen.contains(expected), "{generation}: {expected:?} of {seen:?}");
        }
    }
}

/// A method that throws and catches itself: its second pass begins where it ends. In U31 (and with
/// legacy handling on .NET 9) the frame was entered in cooperative mode for hardware faults and
/// for throws by a helper, but not for `throw`.
#[test]
fn a_thrower_that_catches_is_entered_cooperatively_on_unix() {
    let catch = || vec![clause(EhClauseKind::Catch, Vec::new())];
    for kind in [Raise, NullDereference] {
        let own = vec![Statement::Guarded(vec![throw(kind)], catch())];
        let of_callee = vec![Statement::Guarded(vec![call(1)], catch())];
        for (body, catches) in [(own, true), (of_callee, false)] {
            let thrower = managed("App.Thrower", CodeKind::Jit, vec![throw(kind)]);
            let functions = vec![managed("App.Main", CodeKind::Jit, body), thrower];
            let program = Program { functions, ..Program::default() };
            for generation in Generation::ALL {
                let mut modes = BTreeSet::new();
                let mut seeded = BTreeSet::new();
                in_callbacks(&program, generation, |world, callback| {
                    if callback == "ExceptionUnwindFunctionEnter" {
                        modes.insert(world.is_cooperative(0));
                        let (own, seed) = (world.os(0).unwrap(), registers_of(world, "App.Main"));
                        seeded.insert(shape(&snapshot(world, own, seed.as_ref())));
                    }
                });
                let family = generation.family();
                let native = !family.is_core_since(9) || family.legacy_exceptions;
                let cooperative = match (native, family.is_core_since(10)) {
                    // Not for `throw` (recorded on 3.1.3, 8.0.34 and 9.0.23).
                    (true, _) if kind == Raise => false,
                    (true, _) if family.os == Os::Unix || family.is_core_since(8) => catches,
                    (true, _) => false,
                    (false, newest) => newest,
                };
                assert_eq!(modes, BTreeSet::from([cooperative]), "{generation}, {kind:?}");
                let walk = if cooperative {
                    format!("App.Main {ROOT}")
                } else {
                    "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX".to_owned()
                };
                assert_eq!(seeded, BTreeSet::from([walk]), "{generation}, {kind:?}");
            }
        }
    }
}

/// Returns the innermost method of the handling, if it is the innermost managed frame.
fn hooked(world: &mut World<'_>) -> Option<&'static str> {
    let names = names(world);
    let own = names.iter().find(|name| name.contains('.') && !name.starts_with("Profile"))?;
    let own = own.strip_prefix("System.Runtime.EH.")?;
    ["RhThrowEx", "DispatchEx", "FindFirstPassHandler", "InvokeSecondPass", "ExInfo.Init"]
        .into_iter()
        .chain(["ExInfo.get_ThrownException"])
        .find(|name| *name == own)
}

/// C-171: hooks of these methods fire. A walk there finds all of the stack in the first pass,
/// nothing in the second.
#[test]
fn hooks_fire_for_the_methods_that_handle_exceptions() {
    for generation in Generation::ALL {
        let program = observed(Raise);
        let build = Build::with_hooks(&program, &BTreeMap::new(), generation, Hooks::Slow).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let mut found = BTreeMap::<_, BTreeSet<_>>::new();
        loop {
            match world.step(0).unwrap() {
                StepEvent::Ended => break,
                StepEvent::Callback(kind) if kind.name() == "EnterLeaveSlow" => {
                    if let Some(method) = hooked(&mut world) {
                        let outcome = walk(&mut world, 0);
                        found.entry(method).or_default().insert(outcome);
                    }
                }
                _ => {}
            }
        }
        if !generation.hides_exception_handling() {
            assert!(found.is_empty(), "{generation}: {found:?}");
            continue;
        }
        assert_eq!(found.len(), 6, "{generation}: {found:?}");
        let second = BTreeSet::from(["CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX".to_owned()]);
        assert_eq!(found["InvokeSecondPass"], second, "{generation}");
        if Generations::NET_9.contains(generation) {
            // The hook's own Frame leads there.
            let all = format!("App.Thrower App.Main {ROOT}");
            let first = BTreeSet::from([all.clone()]);
            for method in ["RhThrowEx", "DispatchEx", "FindFirstPassHandler"] {
                assert_eq!(found[method], first, "{method}");
            }
            let ex_info = BTreeSet::from([format!("System.Runtime.EH.ExInfo.Init {all}")]);
            assert_eq!(found["ExInfo.Init"], ex_info);
        }
    }
}

/// C-163: of the methods of the handling, those of `ExInfo` are reported, but not the others that
/// call them.
#[test]
fn methods_of_ex_info_are_reported() {
    for generation in [Generation::Net9Unix, Generation::Net10Windows, Generation::Net10Unix] {
        let program = observed(Raise);
        let build = Build::with_hooks(&program, &BTreeMap::new(), generation, Hooks::Fast).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let own = world.os(0).unwrap();
        let mut found = BTreeMap::<_, BTreeSet<_>>::new();
        loop {
            match world.step(0).unwrap() {
                StepEvent::Ended => break,
                StepEvent::Hook => {
                    let Some(method) = hooked(&mut world) else { continue };
                    let name = format!("System.Runtime.EH.{method}");
                    let seed = registers_of(&world, &name);
                    let walk = shape(&snapshot(&mut world, own, seed.as_ref()));
                    found.entry(method).or_default().insert(walk);
                }
                _ => {}
            }
        }
        let all = format!("App.Thrower App.Main {ROOT}");
        for method in ["ExInfo.Init", "ExInfo.get_ThrownException"] {
            let expected = BTreeSet::from([format!("System.Runtime.EH.{method} {all}")]);
            assert_eq!(found[method], expected, "{generation}");
        }
        for method in ["RhThrowEx", "DispatchEx", "FindFirstPassHandler"] {
            assert!(found[method].contains(&all), "{generation}, {method}: {found:?}");
        }
    }
}

/// Programs that throw nothing lack the helpers; a request for one is an error that names it.
#[test]
fn a_missing_helper_is_an_error() {
    let functions = vec![managed("App.Main", CodeKind::Jit, vec![throw(New)])];
    let program = Program { functions, ..Program::default() };
    for generation in Generation::ALL {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        assert_eq!(build.expanded().find(RuntimeFunction::Shared(Shared::RethrowHelper)), None);
        let error = world.entry_of(Shared::RethrowHelper).unwrap_err();
        assert_eq!(error, WorldError::NoHelper(Shared::RethrowHelper));
        assert_eq!(
            error.to_string(),
            "the program has no UnwindAndContinueRethrowHelperAfterCatch"
        );
        assert!(world.entry_of(Shared::KickOffThread).is_ok());
    }
}
