//! Tests of the places from which methods may be called (contract §5, §6).

use super::*;
use std::sync::Arc;

type Method = (&'static str, fn(Caller<'_, '_, Machine>) -> Answer<()>);

/// Methods that may be called from anywhere.
const ASYNCHRONOUS: [Method; 7] = [
    ("GetFunctionFromIP", |caller| caller.get_function_from_ip(FOO_TIER0).map(|_| ())),
    ("GetCodeInfo", |caller| caller.get_code_info(FOO).map(|_| ())),
    ("GetCodeInfo2", |caller| caller.get_code_info2(FOO, &mut []).map(|_| ())),
    ("GetFunctionInfo2", |caller| caller.get_function_info2(FOO, None, 0).map(|_| ())),
    ("GetCurrentThreadID", |caller| match caller.get_current_thread_id() {
        Err(CallError::Failed(NOT_MANAGED_THREAD)) => Ok(()),
        answer => answer.map(|_| ()),
    }),
    ("GetEventMask", |caller| caller.get_event_mask().map(|_| ())),
    ("SetEventMask", |caller| caller.set_event_mask(EventMask(0x1000_0000))),
];

/// Methods that threads of the runtime may call only in callbacks, and the generations that lack them.
const SYNCHRONOUS: [(Method, Generations); 4] = [
    (("GetThreadInfo", |caller| caller.get_thread_info(OTHER_ID).map(|_| ())), Generations::NONE),
    (
        ("GetHandleFromThread", |caller| caller.get_handle_from_thread(OTHER_ID).map(|_| ())),
        Generations::NONE,
    ),
    (("EnumThreads", |caller| caller.enum_threads().map(|_| ())), FRAMEWORK_2),
    (("InitializeCurrentThread", |caller| caller.initialize_current_thread()), FRAMEWORK_2),
];

const NO_RANGE: CodeRange = CodeRange { start: 0, size: 0 };

/// The same, for methods that need a callback in which a GC may be triggered.
const TRIGGERING: [(Method, Generations); 4] = [
    (
        ("GetFunctionFromIP2", |caller| caller.get_function_from_ip2(FOO_TIER0).map(|_| ())),
        FRAMEWORK_2,
    ),
    (
        ("GetFunctionFromIP3", |caller| caller.get_function_from_ip3(FOO_TIER0).map(|_| ())),
        FRAMEWORK_2,
    ),
    (
        ("GetCodeInfo3", |caller| {
            caller.get_code_info3(FOO, ReJitId(5), &mut [NO_RANGE]).map(|_| ())
        }),
        FRAMEWORK_2,
    ),
    (
        ("GetCodeInfo4", |caller| caller.get_code_info4(FOO_TIER0, &mut [NO_RANGE]).map(|_| ())),
        FRAMEWORK,
    ),
];

/// Callback-state bits of a thread: in a P/Invoke or in managed code; in a callback; in one that
/// may trigger a GC; after ForceGC; after a ReJIT request.
const BITS: [u8; 6] = [0, 1, 2, 3, 4, 8];

/// Tests C-119, C-173.
#[test]
fn requirements_on_the_caller_depend_on_the_method() {
    let asynchronous = ASYNCHRONOUS.iter().map(|method| (*method, Generations::NONE, &BITS[..]));
    let synchronous = SYNCHRONOUS.iter().map(|(method, lack)| (*method, *lack, &[1, 3, 4, 8][..]));
    let triggering = TRIGGERING.iter().map(|(method, lack)| (*method, *lack, &[3, 4, 8][..]));
    for ((name, call), lack, passing) in asynchronous.chain(synchronous).chain(triggering) {
        for generation in Generation::ALL {
            // .NET 10 looks code up in every callback.
            let any = passing == [3, 4, 8] && generation.family().is_core_since(10);
            let passing = if any { &[1, 3, 4, 8] } else { passing };
            let runtime = process(generation);
            let exists = !lack.contains(generation);
            for bits in BITS {
                let expected = match passing.contains(&bits) {
                    _ if !exists => failed(E_NOTIMPL),
                    true => Ok(()),
                    false => failed(UNSUPPORTED_CALL_SEQUENCE),
                };
                for os in [WORKER, OTHER] {
                    let found = with_state(&runtime, os, bits, call);
                    assert_eq!(found, expected, "{generation}, {name}, {os:?}, {bits}");
                }
            }
            // A native thread passes all checks (C-122).
            let expected = if exists { Ok(()) } else { failed(E_NOTIMPL) };
            assert_eq!(call(runtime.on(STRANGER)), expected, "{generation}, {name}");
        }
    }
}

#[test]
fn while_the_profiler_is_detached_every_method_says_so() {
    let synchronous = SYNCHRONOUS.iter().chain(&TRIGGERING);
    let with_gaps = synchronous.map(|(method, lack)| (*method, *lack));
    let methods: Vec<_> =
        ASYNCHRONOUS.iter().map(|method| (*method, Generations::NONE)).chain(with_gaps).collect();
    for generation in Generation::ALL {
        let runtime = process(generation);
        runtime.change_process(|process| process.profiler = crate::ProfilerStatus::Detaching);
        for ((name, call), lack) in &methods {
            // The first runtime cannot detach profilers.
            let (lacks, first) = (lack.contains(generation), FRAMEWORK_2.contains(generation));
            let expected = match (lacks, first) {
                (true, _) => failed(E_NOTIMPL),
                (false, true) => Ok(()),
                (false, false) => failed(PROFILER_DETACHING),
            };
            assert_eq!(call(runtime.on(STRANGER)), expected, "{generation}, {name}");
            if !first && !lacks {
                // Detaching is checked before the call sequence.
                assert_eq!(call(runtime.on(WORKER)), expected, "{generation}, {name}");
            }
        }
    }
}

/// Tests the table of contract §6: mode (c, p, or a for any), and T if a GC may be triggered.
#[test]
fn callbacks_have_the_mode_and_the_triggers_of_the_contract() {
    const TABLE: &str = "
        ThreadCreated p T, ThreadAssignedToOSThread a -, ThreadDestroyed p T, ThreadNameChanged p T,
        JITCompilationStarted p T, JITCompilationFinished p T, JITInlining p T,
        JITCachedFunctionSearchStarted p T, JITCachedFunctionSearchFinished p T,
        GetReJITParameters p T, ReJITCompilationStarted p T, ReJITCompilationFinished p T, ClassLoadStarted p T,
        ClassLoadFinished p T, ModuleLoadStarted c T, ModuleLoadFinished p T,
        ModuleAttachedToAssembly p T, AssemblyLoadStarted c T,
        AssemblyLoadFinished c T, AppDomainCreationStarted p T, AppDomainCreationFinished p T,
        ObjectAllocated c T, ManagedToUnmanagedTransition p T, UnmanagedToManagedTransition p T,
        ExceptionThrown c T, ExceptionSearchFunctionEnter p T, ExceptionSearchFunctionLeave p T,
        ExceptionSearchFilterEnter p T, ExceptionSearchFilterLeave p T, ExceptionSearchCatcherFound p T,
        ExceptionUnwindFinallyEnter c -, ExceptionUnwindFinallyLeave c -, ExceptionCatcherEnter c -,
        ExceptionCatcherLeave c T, RuntimeSuspendStarted a -, RuntimeSuspendFinished a -,
        RuntimeSuspendAborted a -, RuntimeResumeStarted a T, RuntimeResumeFinished a T,
        RuntimeThreadSuspended a -, RuntimeThreadResumed a -, GarbageCollectionStarted c -,
        GarbageCollectionFinished c -, MovedReferences c -, SurvivingReferences c -,
        ObjectReferences c -, RootReferences c -, ObjectsAllocatedByClass c -, HandleCreated c -, HandleDestroyed c -,
        FinalizeableObjectQueued c T, DynamicMethodUnloaded c T, DynamicMethodJITCompilationStarted p T,
        DynamicMethodJITCompilationFinished p T, EnterLeaveSlow c T, Shutdown a T,
        ModuleUnloadStarted p T, ModuleUnloadFinished p T, ClassUnloadStarted p T,
        ClassUnloadFinished p T, AssemblyUnloadStarted p T, AssemblyUnloadFinished p T,
        FunctionUnloadStarted p T, EventPipeEventDelivered a -, EventPipeProviderCreated a T";
    let mut left = CallbackKind::ALL.to_vec();
    let mut check = |name: &str, mode: &str, triggers: bool, generation: Generation| {
        let kind = CallbackKind::from_name(name).unwrap_or_else(|| panic!("{name}"));
        left.retain(|other| *other != kind);
        let found = match kind.mode(generation) {
            CallbackMode::Cooperative => "c",
            CallbackMode::Preemptive => "p",
            CallbackMode::Any => "a",
        };
        assert_eq!((found, kind.allows_triggers()), (mode, triggers), "{name}, {generation}");
        assert_eq!(kind.state().0, if triggers { 3 } else { 1 }, "{name}");
    };
    for generation in Generation::ALL {
        for row in TABLE.split(',') {
            let [name, mode, triggers] = *row.split_whitespace().collect::<Vec<_>>() else {
                panic!("{row}")
            };
            check(name, mode, triggers == "T", generation);
        }
        let family = generation.family();
        let native = !family.is_core_since(9) || family.legacy_exceptions;
        let [enter, leave] = match (native, family.is_core_since(10)) {
            (true, _) => ["p", "c"],
            (false, false) => ["p", "p"],
            (false, true) => ["c", "c"],
        };
        check("ExceptionUnwindFunctionEnter", enter, false, generation);
        check("ExceptionUnwindFunctionLeave", leave, false, generation);
    }
    assert_eq!(left, []);
}

#[test]
fn a_thread_in_a_callback_has_its_bits_meanwhile() {
    let runtime = process(CoreClr31Windows);
    let bits = |caller: &Caller<'_, '_, Machine>| {
        caller.runtime.thread(WORKER, |thread| thread.callback_state.0).unwrap()
    };
    let caller = runtime.on(WORKER);
    let (inner, outer) = caller.in_callback(CallbackKind::JITCompilationStarted, |caller| {
        // A callback that may not trigger a GC, within one that may: bits are only added.
        let inner = caller.in_callback(CallbackKind::GarbageCollectionStarted, bits);
        (inner, bits(caller))
    });
    assert_eq!((inner, outer, bits(&caller)), (3, 3, 0));
    assert_eq!(caller.in_callback(CallbackKind::GarbageCollectionStarted, bits), 1);
    runtime.change_thread(WORKER, |thread| thread.callback_state = CallbackState(4));
    assert_eq!(caller.in_callback(CallbackKind::GarbageCollectionStarted, bits), 5);
    assert_eq!(bits(&caller), 4);
}

/// What is logged belongs to one listener: another thread's calls come between, and start anew.
#[test]
fn a_log_records_while_somebody_listens() {
    let runtime = process(CoreClr31Windows);
    let ask = || with_state(&runtime, WORKER, 1, |caller| walk(caller, ThreadId(0)));
    let log = &runtime.log;
    ask();
    assert_eq!(log.take(), [], "nobody listens");
    log.listen();
    ask();
    let whole = log.take();
    assert!(whole.len() > 1, "{whole:?}");
    ask();
    assert_eq!(log.take(), [], "taking ends it");

    log.listen();
    ask();
    let interrupted = log.interrupt();
    ask();
    assert_eq!(log.take(), [], "the other thread does not listen");
    log.resume(interrupted);
    assert_eq!(log.take(), whole);
}

#[test]
fn a_process_and_its_callers_are_printed_without_memory() {
    for generation in Generation::ALL {
        let runtime = process(generation);
        let text = format!("{runtime:?}");
        assert!(text.starts_with("Runtime {") && text.contains("event_mask"), "{text}");
        let text = format!("{:?}", runtime.on(OTHER));
        assert!(text.starts_with("Caller") && text.contains("OsThreadId(2)"), "{text}");
    }
}

#[test]
fn code_has_names_of_functions_and_places() {
    use crate::NativeFunction;
    use crate::explain::{NamedAddress, Names as _};
    let mut runtime = process(CoreClr31Windows);
    for method in runtime.code.methods_mut() {
        method.name = if method.id == FOO { "App.Foo".to_owned() } else { String::new() };
    }
    let native = |start, module: &str| NativeFunction {
        start,
        end: start + 0x10,
        name: "memcpy".to_owned(),
        module: module.to_owned(),
    };
    runtime.native.add_function(native(NATIVE, "coreclr.dll"));
    runtime.native.add_function(native(NATIVE + 0x10, ""));
    assert_eq!(runtime.function(FOO).as_deref(), Some("App.Foo"));
    assert_eq!(runtime.function(DYNAMIC).as_deref(), Some("(dynamic method)"));
    assert_eq!(runtime.function(FunctionId(1)), None);
    let name = |address| runtime.place(address).to_string();
    assert_eq!(name(FOO_TIER1 + 5), "App.Foo+0x5");
    assert_eq!(name(NATIVE + 8), "memcpy+0x8 of coreclr.dll");
    assert_eq!(name(NATIVE + 0x18), "memcpy+0x8");
    assert_eq!(runtime.place(0x123), NamedAddress::Unknown { address: 0x123 });
}

/// Searches make many calls in one process; each must see what the first one saw.
#[test]
fn what_calls_leave_behind_is_forgotten() {
    use crate::profiler_rules::RuleViolation;
    let runtime = process(CoreClr31Windows);
    runtime.broke(RuleViolation::ContextOfRunning { thread: OTHER });
    runtime.frame_info.set(Some((7, FOO)));
    runtime.next_frame_info.set(8);
    runtime.forget_calls();
    assert_eq!(runtime.rule_violation(), None);
    assert_eq!((runtime.frame_info.get(), runtime.next_frame_info.get()), (None, 1));
}

#[test]
fn code_is_named_after_the_core_library_of_its_product() {
    use crate::metadata::Module;
    for generation in Generation::ALL {
        let mut runtime = process(generation);
        runtime.name_code(&[], &Arc::default());
        let names: Vec<_> = runtime.metadata.modules().iter().map(Module::name).collect();
        let is_framework = generation.name().starts_with("framework");
        let core = if is_framework { "mscorlib.dll" } else { "System.Private.CoreLib.dll" };
        assert_eq!(names, ["App.dll", core], "{generation}");
        let (_, foo) = runtime.code.method(FOO).unwrap();
        assert_eq!(foo.module, runtime.metadata.modules()[0].id, "{generation}");
    }
}

#[test]
fn a_class_is_loaded_by_its_token_and_type_arguments() {
    use crate::metadata::{ModuleNames, TypeNames};
    const LIST: u32 = 0x0200_0002;
    for generation in Generation::ALL {
        let mut runtime = process(generation);
        let (name, parameters) = ("App.List".to_owned(), vec!["T".to_owned()]);
        let types = vec![TypeNames { name, parameters, ..TypeNames::default() }];
        let path = "App.dll".to_owned();
        runtime
            .name_code(&[ModuleNames { path, types, ..ModuleNames::default() }], &Arc::default());
        let module = &runtime.metadata.modules()[0];
        let (app, list, object) =
            (module.id, module.types()[1].class, runtime.metadata.object_class());
        let load = |bits, module, token, arguments: &[u64]| {
            with_state(&runtime, WORKER, bits, |caller| {
                caller.get_class_from_token_and_type_args(module, token, arguments)
            })
        };
        for (bits, passes) in BITS.into_iter().zip([false, false, false, true, true, true]) {
            let expected = if passes { Ok(list) } else { failed(UNSUPPORTED_CALL_SEQUENCE) };
            assert_eq!(load(bits, app, LIST, &[object]), expected, "{generation}, {bits}");
        }
        let stranger = runtime.on(STRANGER);
        let loaded = stranger.get_class_from_token_and_type_args(app, LIST, &[object]);
        assert_eq!(loaded, Ok(list), "{generation}");
        assert_eq!(load(3, app, LIST, &[]), Ok(list), "{generation}: the generic type itself");
        let type_load = HResult(0x8013_1522);
        assert_eq!(load(3, app, LIST, &[object; 2]), failed(type_load), "{generation}");
        assert_eq!(load(3, app, LIST + 0x1000, &[]), failed(type_load), "{generation}");
        assert_eq!(load(3, 0, LIST, &[]), failed(DATAINCOMPLETE), "{generation}");
        runtime.change_process(|process| process.started = false);
        assert_eq!(load(3, 0, LIST, &[]), failed(RUNTIME_UNINITIALIZED), "{generation}");
    }
}
