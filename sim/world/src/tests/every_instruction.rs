//! Walks at every instruction of programs that use every way through the runtime, compared with the
//! shadow stack.

use super::*;
use crate::tests::NOBODY as PROFILER;
use clr_codegen::{CallingConvention, Primitive};

/// A managed frame as it was reported.
#[derive(Debug)]
struct Reported {
    function: u64,
    registers: Registers,
}

fn snapshot(
    world: &mut World<'_>,
    by: OsThreadId,
    seed: Option<&Registers>,
) -> (String, Vec<Reported>) {
    let flags = world.runtime().generation.own_context_flags();
    let seed = seed.map(|registers| Context { registers: *registers, flags });
    let (callbacks, outcome) = callbacks(world, by, 0, seed.as_ref());
    let method = |callback: &Callback| {
        let registers = callback.context.registers;
        Some(Reported { function: callback.function?, registers })
    };
    (outcome, callbacks.iter().filter_map(method).collect())
}

/// A method that a walk must report.
struct Expected {
    activation: Activation,
    function: u64,
    /// An InlinedCallFrame may lead to the method.
    inlines: bool,
    /// The call is made between helpers: the Frame has the return address of the first one (C-156).
    by_helper: bool,
}

/// Returns the methods that a walk must report, leaf first: all but IL stubs.
fn methods(world: &World<'_>) -> Vec<Expected> {
    let expanded = world.expanded();
    let begin = expanded.shared.get(&Shared::PInvokeBegin).copied();
    let switches = |statement: &Statement| {
        matches!(statement, Statement::Primitive(Primitive::SetThreadFlag(..)))
    };
    let begins = |statement: &Statement| match statement {
        Statement::Call(_, callee) => Some(*callee) == begin,
        _ => false,
    };
    let method = |activation: &Activation| {
        let id = activation.function?;
        let reported = expanded.identities[id.index()] == Identity::Method(MethodKind::default());
        let body = &expanded.program.functions[id.index()].body;
        let by_helper = body.iter().any(|statement| statement.contains(&begins));
        let inlines = by_helper || body.iter().any(|statement| statement.contains(&switches));
        let function = crate::stubs::method_id(id);
        reported.then_some(Expected { activation: *activation, function, inlines, by_helper })
    };
    world.activations(0).iter().filter_map(method).collect()
}

/// Checks that the reported frames are exactly these activations.
fn same(generation: Generation, reported: &[Reported], truth: &[Expected]) -> Result<(), String> {
    if reported.len() != truth.len() {
        return Err(format!("{} frames, not {}", reported.len(), truth.len()));
    }
    let convention = if generation.is_unix() {
        CallingConvention::SystemV
    } else {
        CallingConvention::WindowsX64
    };
    for (n, (one, expected)) in reported.iter().zip(truth).enumerate() {
        let registers = &expected.activation.registers;
        let rip = one.registers.rip;
        // Right before and after the call, the Frame already, or still, describes the method.
        let interrupted = expected.activation.position == Position::Interrupted;
        let reported = expected.by_helper || expected.inlines && interrupted;
        if one.function != expected.function || rip != registers.rip && !reported {
            return Err(format!("frame {n}: {rip:#x}, not {:#x}", registers.rip));
        }
        for register in convention.nonvolatile().iter().chain(&[Gpr::Rsp]) {
            // A frame reached through an InlinedCallFrame has only these registers (C-098).
            let kept = matches!(register, Gpr::Rsp | Gpr::Rbp) || !expected.inlines;
            if kept && one.registers.get(*register) != registers.get(*register) {
                return Err(format!("frame {n}: {}", register.name()));
            }
        }
    }
    Ok(())
}

/// Early return with a message unless a condition holds.
macro_rules! ensure {
    ($kept:expr, $($what:tt)*) => {
        if !$kept {
            return Err(format!($($what)*));
        }
    };
}

/// Walks the thread in all ways that a generation has.
fn check(world: &mut World<'_>) -> Result<(), String> {
    let generation = world.runtime().generation;
    let truth = methods(world);
    let cooperative = world.is_cooperative(0);
    let rip = world.rip(0).unwrap();
    let in_managed = world.runtime().code.find(rip).is_some();
    let own = world.os(0).unwrap();
    let seed = truth.first().map(|expected| expected.activation.registers);
    let complete = |(outcome, reported): &(String, Vec<Reported>), what: &str| {
        if !truth.is_empty() {
            ensure!(outcome == "S_OK", "{what}: {outcome}");
        }
        same(generation, reported, &truth).map_err(|wrong| format!("{what}: {wrong}"))
    };
    // A walk of the own thread: in cooperative mode the innermost frames may be missing (C-046).
    let walk = snapshot(world, own, None);
    let missing = truth.len().saturating_sub(walk.1.len());
    same(generation, &walk.1, &truth[missing..]).map_err(|wrong| format!("self: {wrong}"))?;
    let innermost = truth.first().and_then(|expected| expected.activation.function);
    if !cooperative && innermost.is_some_and(|innermost| world.is_entry_of_library(innermost)) {
        // The method has not switched the mode yet, or has switched it back: no Frame describes it.
        ensure!(missing == 1, "self, at an entry: {missing} frames are missing");
        return Ok(());
    }
    if !cooperative {
        complete(&walk, "self, preemptive")?;
    }
    if let Some(seed) = &seed {
        let walk = snapshot(world, own, Some(seed));
        complete(&walk, "self, seeded")?;
        let first = walk.1.first().map(|first| first.registers.rip);
        ensure!(!cooperative || first == Some(seed.rip), "C-051: {first:x?}");
    }
    if generation.is_unix() {
        let (outcome, _) = snapshot(world, PROFILER, None);
        ensure!(outcome == "E_NOTIMPL", "other: {outcome}");
        let suspended = world.runtime().on(PROFILER).suspend_runtime();
        let walk = snapshot(world, PROFILER, None);
        let resumed = world.runtime().on(PROFILER).resume_runtime();
        ensure!(suspended == Ok(()) && resumed == Ok(()), "SuspendRuntime: {suspended:?}");
        if !cooperative {
            return complete(&walk, "under SuspendRuntime");
        }
        ensure!(walk.0 == "E_NOTIMPL", "under SuspendRuntime, cooperative: {}", walk.0);
        return Ok(());
    }
    let walk = snapshot(world, PROFILER, None);
    let object = ThreadObject(world.object(0).unwrap());
    if !cooperative || in_managed {
        complete(&walk, "other")?;
    } else {
        let runtime = world.runtime();
        let memory = runtime.memory.borrow();
        let below = object.top_frame(&*memory).is_ok_and(|frame| frame < memory.cpu().rsp());
        let expected = if below && generation.checks_redirection() {
            HResult::UNSAFE
        } else {
            HResult::UNMANAGED_CONTEXT
        };
        ensure!(walk.0 == expected.to_string(), "other, in native code: {}", walk.0);
    }
    match &seed {
        Some(seed) => complete(&snapshot(world, PROFILER, Some(seed)), "other, seeded"),
        None => Ok(()),
    }
}

/// Returns the number of places, or a description of the first wrong one.
fn walk_everywhere(
    kind: RuntimeCallKind,
    generation: Generation,
    hooks: Hooks,
) -> Result<usize, String> {
    let program = program(kind);
    let build = Build::with_hooks(&program, &BTreeMap::new(), generation, hooks).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let mut places = 0;
    loop {
        let event = world.step(0).unwrap();
        if event == StepEvent::Ended {
            return Ok(places);
        }
        // A dead thread (C-028), or one that must not be suspended (C-132), is tested elsewhere.
        let callback = world.callback(0).map_or("", |kind| kind.name());
        let rip = world.rip(0).unwrap();
        let function = world.linked().function_of(rip, Position::Interrupted);
        let name =
            function.map_or("?", |id| build.expanded().program.functions[id.index()].name.as_str());
        let at = format!("{generation}, {}, {name} {rip:#x} {callback}", kind.word());
        let os = world.os(0).unwrap();
        let runtime = world.runtime();
        let dead = runtime.thread(os, |thread| thread.life != clr_runtime::ThreadLife::Running);
        let suspends = runtime.process.get().suspension != clr_runtime::Suspension::None;
        let forbidden = {
            let object = ThreadObject(runtime.object_of(os).unwrap());
            object.forbid_suspend(&*runtime.memory.borrow()).unwrap() != 0
        };
        if dead == Some(false) && !forbidden && !suspends {
            check(&mut world).map_err(|wrong| format!("{at}: {wrong}"))?;
            places += 1;
        }
    }
}

#[test]
fn walks_at_every_instruction_agree_with_the_shadow_stack() {
    let mut wrong = Vec::new();
    for generation in Generation::ALL {
        for kind in RuntimeCallKind::ALL {
            match walk_everywhere(*kind, generation, Hooks::None) {
                // Some end the process at once.
                Ok(places) => assert!(places > 35, "{generation}, {}: {places}", kind.word()),
                Err(one) => wrong.push(one),
            }
        }
        for hooks in [Hooks::Slow, Hooks::Fast] {
            let walked = walk_everywhere(RuntimeCallKind::OpenDelegate, generation, hooks);
            wrong.extend(walked.err().map(|one| format!("{hooks:?}: {one}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
