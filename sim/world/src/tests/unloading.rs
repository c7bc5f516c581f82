//! Unloading of code, writers of the code manager's tables, handles, and a server GC.

use super::*;
use Generation::CoreClr31Unix;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_walker::profiling::FunctionId as MethodId;

/// Creates a program: `App.Main` calls `App.Plugin`, has it unloaded, and continues; `App.Busy`
/// calls it too.
fn program(by: Call, second: Vec<Statement>) -> Program {
    let call = Statement::Call(clr_codegen::CallForm::Near, FunctionIndex(2));
    let mut main = vec![call.clone(), runtime(by, Some(2)), Statement::Work(2)];
    main.extend(second);
    Program {
        functions: vec![
            function("App.Main", CodeKind::Jit, main),
            function("App.Busy", CodeKind::Jit, vec![call]),
            function("App.Plugin", CodeKind::Jit, vec![Statement::Work(5)]),
            function("App.Other", CodeKind::Jit, vec![Statement::Work(5)]),
        ],
        ..Program::default()
    }
}

fn build(program: &Program, generation: Generation) -> Build {
    let methods = BTreeMap::from([(FunctionIndex(3), MethodKind::Dynamic)]);
    Build::new(program, &methods, generation).unwrap()
}

/// Executes a thread to the first instruction of a function of the source.
fn run_to(world: &mut World<'_>, thread: usize, function: u32) {
    let placed = world.expanded().placed[function as usize];
    let entry = world.linked().entries[placed.index()];
    while world.rip(thread) != Some(entry) {
        assert_ne!(world.step(thread).unwrap(), StepEvent::Ended);
    }
}

/// Executes a thread until it waits.
fn run_to_wait(world: &mut World<'_>, thread: usize) {
    loop {
        match world.step(thread).unwrap() {
            StepEvent::Waits => return,
            event => assert_ne!(event, StepEvent::Ended, "it does not wait"),
        }
    }
}

fn run_to_callback(world: &mut World<'_>, thread: usize, kind: Kind) {
    while world.step(thread).unwrap() != StepEvent::Callback(kind) {
        assert!(!world.threads[thread].ended, "{}", kind.name());
    }
}

/// Returns all callbacks up to a thread's end, without those that all programs have.
fn reported(world: &mut World<'_>) -> Vec<(&'static str, String)> {
    let usual = [Kind::ThreadCreated, Kind::ThreadAssignedToOSThread, Kind::ThreadDestroyed];
    let mut reported = Vec::new();
    loop {
        match world.step(0).unwrap() {
            StepEvent::Ended => return reported,
            StepEvent::Callback(kind) if !usual.contains(&kind) => {
                reported.push((kind.name(), walk(world, 0)));
            }
            _ => {}
        }
    }
}

/// The order of the callbacks on .NET Core 3.1 and .NET 9 (situations); all of them are made on the
/// thread that has the QCall on its stack.
#[test]
fn an_assembly_is_unloaded_step_by_step() {
    for generation in Generation::ALL {
        let program = program(Call::UnloadAssembly, Vec::new());
        let build = build(&program, generation);
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let reported = reported(&mut world);
        let names: Vec<_> = reported.iter().map(|(name, _)| *name).collect();
        let stopping = [
            "RuntimeSuspendStarted",
            "RuntimeThreadSuspended",
            "RuntimeSuspendFinished",
            "RuntimeResumeStarted",
            "RuntimeThreadResumed",
            "RuntimeResumeFinished",
        ];
        let Family { product, version, .. } = generation.family();
        let unloading = match (product, version) {
            (Product::Core, Version(3, _)) => vec![
                "ModuleUnloadStarted",
                "ClassUnloadStarted",
                "ClassUnloadFinished",
                "ModuleUnloadFinished",
                "AssemblyUnloadFinished",
            ],
            (Product::Framework, Version(2, _)) => vec![
                "AssemblyUnloadStarted",
                "ModuleUnloadStarted",
                "ClassUnloadStarted",
                "FunctionUnloadStarted",
                "ClassUnloadFinished",
                "ModuleUnloadFinished",
            ],
            (Product::Framework, _) => vec![
                "AssemblyUnloadStarted",
                "ModuleUnloadStarted",
                "ClassUnloadStarted",
                "ClassUnloadFinished",
                "ModuleUnloadFinished",
            ],
            (Product::Core, _) => vec![
                "AssemblyUnloadStarted",
                "ModuleUnloadStarted",
                "ClassUnloadStarted",
                "ClassUnloadFinished",
                "ModuleUnloadFinished",
                "AssemblyUnloadFinished",
            ],
        };
        let mut expected = unloading;
        expected.extend(stopping);
        if product == Product::Framework {
            expected.push("AssemblyUnloadFinished");
        }
        assert_eq!(names, expected, "{generation}");
        let full = "System.Reflection.LoaderAllocatorScout.Destroy App.Main \
                    *CallDescrWorkerInternal S_OK";
        for (name, walk) in reported {
            let refused = name == "RuntimeThreadSuspended";
            let expected = if refused { "CORPROF_E_STACKSNAPSHOT_UNSAFE" } else { full };
            assert_eq!(walk, expected, "{generation}, {name}");
        }
    }
}

/// Calls GetFunctionFromIP for an address in `App.Plugin`, and walks the cooperative `App.Main`
/// with a seed there.
fn asked(world: &mut World<'_>, ip: u64) -> (Result<MethodId, HResult>, Outcome) {
    let thread = world.object(0).unwrap();
    let mut registers = world.activations(0)[0].registers;
    registers.rip = ip;
    let seed = clr_runtime::Context { registers, flags: 0x10_000B }.to_bytes();
    let mut long = [0; 0xC20];
    long[..seed.len()].copy_from_slice(&seed);
    let os = world.os(0).unwrap();
    assert!(world.is_cooperative(0));
    let runtime = world.runtime();
    let found = runtime.on(NOBODY).get_function_from_ip(ip).map_err(|error| match error {
        CallError::Failed(result) => result,
        CallError::Fatal(fatal) => panic!("{fatal}"),
    });
    let flags = SnapshotFlags::DEFAULT;
    let call = profiling::SnapshotRequest {
        thread,
        flags,
        seed: Some(&long),
        ..profiling::SnapshotRequest::default()
    };
    let callback: &mut clr_walker::profiling::SnapshotCallback<'_> = &mut |_| HResult::FALSE;
    (found, runtime.on(os).do_stack_snapshot(&call, Some(callback)))
}

/// An address in a freed method is no longer managed code (contract §2.6, C-114, C-038), and the
/// method's FunctionID points to memory that is gone (H-18).
#[test]
fn unloaded_code_is_unmanaged_and_its_id_dangles() {
    for by in [Call::UnloadAssembly, Call::UnloadDynamicMethod] {
        for generation in Generation::ALL {
            let program = program(by, Vec::new());
            let build = build(&program, generation);
            let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
            run_to(&mut world, 0, 2);
            let ip = world.rip(0).unwrap();
            let id = MethodId(method_id(world.expanded().placed[2]));
            let before = world.save();
            let aborted = HResult::ABORTED.into();
            assert_eq!(asked(&mut world, ip), (Ok(id), aborted), "{generation}");
            while !world.as_synced().code.is_dangling(id) {
                assert_ne!(world.step(0).unwrap(), StepEvent::Ended, "{generation}");
            }
            // A place where App.Main is managed code again.
            while world.as_synced().code.find(world.rip(0).unwrap()).is_none()
                || !world.is_cooperative(0)
                || world.is_serving(0)
            {
                let _ = world.step(0).unwrap();
            }
            let unmanaged = HResult::UNMANAGED_CONTEXT.into();
            for ip in [ip, ip + 3] {
                assert_eq!(asked(&mut world, ip), (Err(HResult::FAIL), unmanaged), "{generation}");
            }
            let fatal = CallError::Fatal(Outcome::AccessViolation { at: id.0 });
            let walker = world.runtime().on(NOBODY);
            assert_eq!(walker.get_function_info2(id, None, 0), Err(fatal), "{generation}");
            assert_eq!(walker.get_code_info(id), Err(fatal), "{generation}");
            // All other results are unchanged, and restoring an earlier state brings the code back.
            let main = world.linked().entries[world.expanded().placed[0].index()];
            assert!(world.runtime().on(NOBODY).get_function_from_ip(main).is_ok());
            assert!(world.restore(&before));
            assert_eq!(asked(&mut world, ip), (Ok(id), aborted), "{generation}");
        }
    }
}

#[test]
fn code_that_a_thread_executes_is_not_unloaded() {
    for by in [Call::UnloadAssembly, Call::UnloadDynamicMethod] {
        for generation in Generation::ALL {
            let program = program(by, Vec::new());
            let build = build(&program, generation);
            let starts = [0, 1].map(|start| ThreadStart::Managed(FunctionIndex(start)));
            let mut world = build.world(&starts).unwrap();
            run_to(&mut world, 1, 2);
            assert_eq!(reported(&mut world), [], "{generation}");
            while world.step(1).unwrap() != StepEvent::Ended {}
        }
    }
}

/// A program that calls an unloaded method gets an error.
#[test]
fn unloaded_code_cannot_be_executed() {
    let call = Statement::Call(clr_codegen::CallForm::Near, FunctionIndex(2));
    let program = program(Call::UnloadAssembly, vec![call]);
    let build = build(&program, CoreClr31Unix);
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let entry = world.linked().entries[world.expanded().placed[2].index()];
    let error = loop {
        match world.step(0) {
            Ok(event) => assert_ne!(event, StepEvent::Ended),
            Err(error) => break error,
        }
    };
    assert_eq!(error, WorldError::Unloaded(entry));
}

/// Executes thread 0 into the writer of the code manager's tables, until the lock is taken.
fn write(world: &mut World<'_>) {
    let id = world.expanded().shared.get(&Shared::DeleteCodeHeap).copied();
    while world.as_synced().process.get().code_manager_writer.is_none() {
        assert_ne!(world.step(0).unwrap(), StepEvent::Ended);
    }
    while world.is_serving(0) {
        let _ = world.step(0).unwrap();
    }
    let _ = world.step(0).unwrap();
    assert_eq!(world.activations(0)[0].function, id);
}

/// A thread that writes cannot be walked (C-018), nor look up code (C-116); others wait, give up,
/// or read the tables without the lock (contract §2.6, C-036).
#[test]
fn unloading_takes_the_writer_lock() {
    for generation in Generation::ALL {
        let program = program(Call::UnloadAssembly, Vec::new());
        let build = build(&program, generation);
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let [native, managed] = world.add_walkers().unwrap();
        write(&mut world);
        let unsafe_ = HResult::UNSAFE.to_string();
        for by in [world.os(0), Some(native), Some(managed)] {
            assert_eq!(walk_by(&mut world, by, 0), unsafe_, "{generation}");
        }
        let main = world.linked().entries[world.expanded().placed[0].index()];
        let id = MethodId(method_id(world.expanded().placed[0]));
        let own = world.os(0).unwrap();
        let runtime = world.runtime();
        let look_up = |os: OsThreadId| runtime.on(os).get_function_from_ip(main);
        let busy = CallError::Failed(HResult::ASYNCHRONOUS_UNSAFE);
        assert_eq!(look_up(own), Err(busy), "{generation}");
        assert_eq!(look_up(native), Ok(id), "{generation}");
        let refuses = Generations::CLR_4.without(Generations::NEW).contains(generation);
        let other = if refuses { busy } else { CallError::Fatal(Outcome::Blocked) };
        assert_eq!(look_up(managed), Err(other), "{generation}");
        // Afterwards the lock is free again.
        let _ = reported(&mut world);
        assert_eq!(world.runtime().process.get().code_manager_writer, None);
        let object = ThreadObject(world.object(0).unwrap());
        let runtime = world.runtime();
        let memory: &Machine = &runtime.memory.borrow();
        assert_eq!(object.forbid_suspend(memory), Ok(0));
    }
}

/// A method is compiled without the lock of the tables, on every runtime.
#[test]
fn compiling_takes_no_lock() {
    for generation in Generation::ALL {
        let functions = vec![
            function("App.Main", CodeKind::Jit, vec![runtime(Call::FirstCall, Some(1))]),
            function("App.Late", CodeKind::Jit, vec![Statement::Work(3)]),
        ];
        let program = Program { functions, ..Program::default() };
        let build = build(&program, generation);
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        while world.step(0).unwrap() != StepEvent::Ended {
            assert_eq!(world.as_synced().process.get().code_manager_writer, None);
        }
    }
}

/// The methods on the stack where a handle is created or destroyed, as recorded.
#[test]
fn handles_are_created_and_destroyed_by_fcalls_or_qcalls() {
    for generation in Generation::ALL {
        for (kind, callback, qcall) in [
            (Call::CreateHandle, "HandleCreated", "InternalAllocWithGCTransition"),
            (Call::DestroyHandle, "HandleDestroyed", "InternalFreeWithGCTransition"),
        ] {
            let main = function("App.Main", CodeKind::Jit, vec![runtime(kind, None)]);
            let program = Program { functions: vec![main], ..Program::default() };
            let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
            let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
            let old = !generation.family().is_core_since(9);
            let before = if old {
                String::new()
            } else {
                format!("System.Runtime.InteropServices.GCHandle.{qcall} ")
            };
            let walk = format!("{before}App.Main *CallDescrWorkerInternal S_OK");
            assert_eq!(reported(&mut world), [(callback, walk)], "{generation}");
        }
    }
}

/// A server GC's thread makes all GCs: in its callbacks there is no thread to walk (C-133), and the
/// thread that needs the GC waits in preemptive mode.
#[test]
fn a_server_gc_collects_on_its_own_thread() {
    for generation in Generation::ALL {
        let collect = vec![runtime(Call::NewWithGc, None), runtime(Call::Collect, None)];
        let program = Program {
            functions: vec![function("App.Main", CodeKind::Jit, collect)],
            ..Program::default()
        };
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let starts = [ThreadStart::Managed(FunctionIndex(0)), ThreadStart::ServerGc];
        let mut world = build.world(&starts).unwrap();
        assert_eq!(world.object(1), None);
        for _ in 0..3 {
            run_to_wait(&mut world, 1);
        }
        let mut found = Vec::new();
        for _ in 0..20_000 {
            for thread in [0, 1] {
                let StepEvent::Callback(kind) = world.step(thread).unwrap() else { continue };
                let gc = kind.name().contains("GarbageCollection")
                    || kind.name().starts_with("Runtime")
                    || kind.name() == "ObjectsAllocatedByClass"
                    || kind.name().ends_with("References");
                assert_eq!(gc, thread == 1, "{}", kind.name());
                if thread == 0 {
                    continue;
                }
                found.push(kind.name());
                let os = world.os(1).unwrap();
                assert!(!world.is_cooperative(0));
                let mut callbacks = 0;
                let callback: &mut clr_walker::profiling::SnapshotCallback<'_> = &mut |_| {
                    callbacks += 1;
                    HResult::OK
                };
                let own = profiling::SnapshotRequest::default();
                let outcome = world.runtime().on(os).do_stack_snapshot(&own, Some(callback));
                assert_eq!((outcome, callbacks), (HResult::OK.into(), 0), "{generation}");
            }
        }
        let of = |name: &str| found.iter().filter(|one| **one == name).count();
        assert_eq!(of("GarbageCollectionStarted"), 2, "{generation}");
        assert_eq!(of("RuntimeSuspendStarted"), 2, "{generation}");
        // The server GC's thread is not a thread of the runtime.
        assert_eq!(of("RuntimeThreadSuspended"), 0, "{generation}");
        assert_eq!(world.runtime().process.get().suspension, Suspension::None);
        assert_eq!(world.step(0).unwrap(), StepEvent::Ended);
        assert_eq!(world.step(1).unwrap(), StepEvent::Ended);
        assert_eq!(world.shadow_stack(0).unwrap().callers(), []);
    }
}

/// A thread that waits for a GC of the server GC's thread can be walked from that thread's
/// callbacks.
#[test]
fn a_thread_that_waits_for_a_server_gc_can_be_walked() {
    let main = function("App.Main", CodeKind::Jit, vec![runtime(Call::NewWithGc, None)]);
    let program = Program { functions: vec![main], ..Program::default() };
    for generation in Generation::ALL.into_iter().filter(|generation| !generation.is_unix()) {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let starts = [ThreadStart::Managed(FunctionIndex(0)), ThreadStart::ServerGc];
        let mut world = build.world(&starts).unwrap();
        run_to_wait(&mut world, 0);
        run_to_callback(&mut world, 1, Kind::GarbageCollectionStarted);
        let os = world.os(1);
        let walk = walk_by(&mut world, os, 0);
        assert_eq!(walk, "App.Main *CallDescrWorkerInternal S_OK", "{generation}");
    }
}
