//! The program's callbacks, with their arguments.
#![allow(non_snake_case)]

mod profiler;
mod texts;

use clr_com::{
    Callable as _, EventProviderConfig, ICorProfilerCallback11, ICorProfilerInfo3,
    ICorProfilerInfo5, ICorProfilerInfo12, IUnknown, Interface as _,
};
use clr_runtime::generation::Generation;
use clr_walker::profiling::HResult;
use profiler::{Raised, Run, run};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null;

const ALL_EVENTS: u32 = clr_world::ALL_EVENTS.0;
/// `COR_PRF_MONITOR_EXCEPTIONS`, `_CODE_TRANSITIONS`, `_GC`, `_OBJECT_ALLOCATED` with what it needs, `_SUSPENDS`,
/// and those of code: `_FUNCTION_UNLOADS`, `_CLASS_LOADS`, `_MODULE_LOADS`, `_ASSEMBLY_LOADS`, `_JIT_COMPILATION`,
/// `_CACHE_SEARCHES`.
const EXCEPTIONS: u32 = 0x40;
const TRANSITIONS: u32 = 0x800;
const GC: u32 = 0x80;
const OBJECTS: u32 = 0x10_0100;
const SUSPENSIONS: u32 = 0x1_0000;
const CODE: u32 = 0x2_002F;

/// Ids of the first object and the first handle, and the distances to the next ones.
const OBJECT: u64 = 0x7000_0000_1000;
const OBJECT_SIZE: u64 = 24;
const HANDLE: u64 = 0x7100_0000_1000;
/// Id of the first handle of threads.
const THREAD_HANDLES: u64 = 0x7200_0000_1000;

const fn object(number: u64) -> u64 {
    OBJECT + (number - 1) * OBJECT_SIZE
}

/// Returns the callbacks of the program: those after its first thread has begun.
fn raised(text: &str, generation: Generation, events: u32) -> Vec<Raised> {
    let (mut raised, report) = run(text, generation, events);
    assert_eq!(report.findings(), [], "{generation}");
    raised.retain(|one| !matches!(one.name, "Initialize" | "ThreadDestroyed"));
    raised.retain(|one| one.name != "HandleCreated" || one.words[0] < THREAD_HANDLES);
    raised
}

/// Returns the names with the methods that they are about, without those that have ended.
fn names(raised: &[Raised]) -> Vec<String> {
    let begun = raised.iter().filter(|one| !one.name.ends_with("Leave"));
    begun.map(|one| format!("{} {}", one.name, one.method).trim().to_owned()).collect()
}

fn named<'r>(raised: &'r [Raised], name: &'r str) -> impl Iterator<Item = &'r [u64]> {
    raised.iter().filter(move |one| one.name == name).map(|one| one.words.as_slice())
}

#[test]
fn exceptions_name_the_method_of_each_frame_and_the_thrown_object() {
    for generation in Generation::ALL {
        let raised = raised(texts::CATCH, generation, EXCEPTIONS);
        let expected = [
            "ExceptionThrown",
            "ExceptionSearchFunctionEnter Thrower",
            "ExceptionSearchFunctionEnter Middle",
            "ExceptionSearchFunctionEnter Main",
            "ExceptionSearchCatcherFound Main",
            "ExceptionUnwindFunctionEnter Thrower",
            "ExceptionUnwindFunctionEnter Middle",
            "ExceptionUnwindFinallyEnter Middle",
            "ExceptionUnwindFunctionEnter Main",
            "ExceptionCatcherEnter Main",
        ];
        assert_eq!(names(&raised), expected, "{generation}");
        assert_eq!(raised[0].words, [object(1)], "{generation}");
        let [function, thrown] = named(&raised, "ExceptionCatcherEnter").next().unwrap() else {
            panic!("{generation}");
        };
        let [found] = named(&raised, "ExceptionSearchCatcherFound").next().unwrap() else {
            panic!("{generation}");
        };
        assert_eq!((function, *thrown), (found, object(1)), "{generation}");
    }
}

#[test]
fn filters_are_entered_with_the_method_that_has_them() {
    for generation in Generation::ALL {
        let names = names(&raised(texts::FILTERS, generation, EXCEPTIONS));
        let filters = names.iter().filter(|name| name.contains("Filter") || name.contains("Catch"));
        let expected = [
            "ExceptionSearchFilterEnter Middle",
            "ExceptionSearchFilterEnter Main",
            "ExceptionSearchCatcherFound Main",
            "ExceptionCatcherEnter Main",
        ];
        assert_eq!(filters.collect::<Vec<_>>(), expected, "{generation}");
    }
}

#[test]
fn an_exception_that_is_thrown_again_has_the_same_object() {
    for generation in Generation::ALL {
        let raised = raised(texts::AGAIN, generation, EXCEPTIONS);
        let thrown: Vec<_> = named(&raised, "ExceptionThrown").map(|words| words[0]).collect();
        // The first object is of `new`, which is not reported.
        let (thrown_twice, by_constructor, wrapped, fault) =
            (object(2), object(3), object(4), object(5));
        let expected = [thrown_twice, thrown_twice, by_constructor, wrapped, fault];
        assert_eq!(thrown, expected, "{generation}");
        let caught: Vec<_> =
            named(&raised, "ExceptionCatcherEnter").map(|words| words[1]).collect();
        let mut expected = vec![thrown_twice, thrown_twice, wrapped, fault];
        // The method of .NET 11 that calls class constructors catches what they throw.
        if generation.has_managed_entry_points() {
            expected.insert(2, by_constructor);
        }
        assert_eq!(caught, expected, "{generation}");
    }
}

#[test]
fn transitions_name_the_method_that_is_called_and_the_direction() {
    for generation in Generation::ALL {
        let raised = raised(texts::TRANSITIONS, generation, TRANSITIONS);
        let found: Vec<_> = raised
            .iter()
            .map(|one| {
                let reason = ["calls", "returns from"][one.words[1] as usize];
                format!("{} {reason} {}", one.name.trim_end_matches("Transition"), one.method)
            })
            .collect();
        let expected = [
            "ManagedToUnmanaged calls Each",
            "UnmanagedToManaged calls Back",
            "ManagedToUnmanaged returns from Back",
            "UnmanagedToManaged returns from Each",
            "ManagedToUnmanaged calls Print",
            "UnmanagedToManaged returns from Print",
            // By a pointer.
            "ManagedToUnmanaged calls none",
            "UnmanagedToManaged calls Back",
            "ManagedToUnmanaged returns from Back",
            "UnmanagedToManaged returns from none",
            "ManagedToUnmanaged calls Com",
            "UnmanagedToManaged calls Served",
            "ManagedToUnmanaged returns from Served",
            "UnmanagedToManaged returns from Com",
            // The same stub as before, but not by a pointer.
            "ManagedToUnmanaged calls Each",
            "UnmanagedToManaged calls Back",
            "ManagedToUnmanaged returns from Back",
            "UnmanagedToManaged returns from Each",
        ];
        assert_eq!(found, expected, "{generation}");
    }
}

#[test]
fn compilations_and_unloading_name_methods_and_what_they_are_in() {
    for generation in Generation::ALL {
        let raised = raised(texts::CODE, generation, CODE);
        let words = |name| named(&raised, name).map(<[u64]>::to_vec).collect::<Vec<_>>();
        let method = |name: &str| {
            let found = raised.iter().find(|one| one.method == name).unwrap();
            found.words[0]
        };
        let (late, ready, run) = (method("Late"), method("Ready"), method("Run"));
        assert_eq!(words("JITCompilationStarted"), [[late, 1], [run, 1]], "{generation}");
        assert_eq!(words("JITCompilationFinished"), [[late, 0, 1], [run, 0, 1]], "{generation}");
        assert_eq!(words("JITCachedFunctionSearchStarted"), [[ready, 1]]);
        assert_eq!(words("JITCachedFunctionSearchFinished"), [[ready, 0]]);
        // Only newer interfaces know dynamic methods.
        let dynamic = words("DynamicMethodJITCompilationStarted");
        assert_eq!(dynamic.is_empty(), generation.profiler_info() < 3, "{generation}");
        for words in &dynamic {
            let emitted = words[0];
            assert_eq!(words, &[emitted, 1, 0x2A], "{generation}");
            let finished = named(&raised, "DynamicMethodJITCompilationFinished").next();
            assert_eq!(finished, Some(&[emitted, 0, 1][..]));
            assert_eq!(named(&raised, "DynamicMethodUnloaded").next(), Some(&[emitted][..]));
        }
        let [plugin] = &words("ClassUnloadStarted")[..] else { panic!("{generation}") };
        assert!(words("ClassLoadStarted").contains(plugin), "{generation}");
        assert_eq!(words("ClassUnloadFinished"), [[plugin[0], 0]]);
        let [module] = &words("ModuleUnloadStarted")[..] else { panic!("{generation}") };
        assert_eq!(words("ModuleUnloadFinished"), [[module[0], 0]]);
        let attached = words("ModuleAttachedToAssembly");
        let [_, assembly] = attached.iter().find(|words| words[0] == module[0]).unwrap()[..] else {
            panic!("{generation}");
        };
        assert_eq!(words("AssemblyUnloadFinished"), [[assembly, 0]]);
        for started in words("AssemblyUnloadStarted") {
            assert_eq!(started, [assembly]);
        }
        let functions = usize::from(generation.tells_of_unloaded_functions());
        assert_eq!(words("FunctionUnloadStarted"), vec![[run]; functions], "{generation}");
    }
}

#[test]
fn a_gc_reports_all_objects_and_the_handles() {
    for generation in Generation::ALL {
        let raised = raised(texts::HEAP, generation, GC | OBJECTS | SUSPENSIONS);
        let words = |name| named(&raised, name).map(<[u64]>::to_vec).collect::<Vec<_>>();
        let allocated: Vec<_> = words("ObjectAllocated").iter().map(|words| words[0]).collect();
        assert_eq!(allocated, [object(1), object(2), object(3)], "{generation}");
        // The handle that is destroyed first was not seen.
        let handle = HANDLE + 8;
        assert_eq!(words("HandleCreated"), [[handle, object(2)]]);
        assert_eq!(words("HandleDestroyed"), [[HANDLE], [handle]]);
        let heaps = if generation.family().is_core_since(5) { 5 } else { 4 };
        // A GC that moves objects does not count as induced everywhere.
        let induced = u64::from(generation.compacts_as_induced());
        let all = [vec![1; heaps], vec![induced]].concat();
        let youngest = [vec![1], vec![0; heaps]].concat();
        assert_eq!(words("GarbageCollectionStarted"), [all.clone(), youngest, all], "{generation}");
        let (two, three) = (2 * OBJECT_SIZE, 3 * OBJECT_SIZE);
        let moved = [[OBJECT, OBJECT, two], [OBJECT, OBJECT, three]];
        assert_eq!(words("MovedReferences"), moved);
        assert_eq!(words("SurvivingReferences"), [[OBJECT, two], [OBJECT, two], [OBJECT, three]]);
        assert_eq!(words("ObjectsAllocatedByClass"), [[2], [1]], "{generation}");
        assert_eq!(words("ObjectReferences").len(), 2 + 2 + 3);
        let has_4 = generation.profiler_info() > 2;
        assert_eq!(words("MovedReferences2"), if has_4 { moved.to_vec() } else { Vec::new() });
        assert_eq!(words("SurvivingReferences2").len(), 3 * usize::from(has_4));
        // Objects, kinds, flags, ids: COR_PRF_GC_ROOT_STACK with the method that collects, COR_PRF_GC_ROOT_HANDLE, no flags. In the third
        // GC there is no handle.
        let roots = words("RootReferences2");
        let function = *roots[2].last().unwrap();
        assert_ne!(function, 0, "{generation}");
        let with_handle = vec![object(2), object(2), 1, 3, 0, 0, function, handle];
        let last = vec![object(3), 1, 0, function];
        assert_eq!(roots, [with_handle.clone(), with_handle, last], "{generation}");
        assert_eq!(words("RootReferences")[0], [object(2), object(2)]);
        assert_eq!(words("RuntimeSuspendStarted"), [[1]; 3]);
        assert_eq!(words("RuntimeThreadSuspended").len(), 3);
        let order: Vec<_> = raised.iter().map(|one| one.name).collect();
        let at = |name| order.iter().position(|one| *one == name).unwrap();
        assert!(at("GarbageCollectionStarted") < at("MovedReferences"));
        assert!(at("MovedReferences") < at("RootReferences2"));
        assert!(at("RootReferences") < at("GarbageCollectionFinished"));
    }
}

#[test]
fn a_heap_without_objects_has_roots_alone() {
    let raised = raised(texts::EMPTY_HEAP, Generation::Net8Unix, GC);
    let names: Vec<_> = raised.iter().map(|one| one.name).collect();
    let gc = ["GarbageCollectionStarted", "GarbageCollectionFinished"];
    let roots = ["RootReferences2", "RootReferences"];
    let one = [gc[0], roots[0], roots[1], gc[1]];
    assert_eq!(names, [&one[..], &["HandleCreated"], &one].concat());
    assert_eq!(
        (raised[2].words.as_slice(), raised[4].words.as_slice()),
        (&[0][..], &[HANDLE, 0][..])
    );
}

#[test]
fn a_server_gc_knows_what_its_gc_was_asked_for() {
    for generation in Generation::ALL {
        let raised = raised(texts::SERVER_GC, generation, GC | SUSPENSIONS);
        let reasons: Vec<_> = named(&raised, "GarbageCollectionStarted")
            .map(|words| *words.last().unwrap())
            .collect();
        assert_eq!(reasons, [1, 0], "{generation}");
        // The runtime does not know the thread.
        assert_eq!(named(&raised, "RuntimeThreadSuspended").count(), 0);
    }
}

#[test]
fn unloading_suspends_for_it() {
    let raised = raised(texts::CODE, Generation::Net9Unix, SUSPENSIONS);
    let [reason] = named(&raised, "RuntimeSuspendStarted").collect::<Vec<_>>()[..] else {
        panic!("one suspension");
    };
    assert_eq!(reason, [2]);
}

#[test]
fn what_the_text_does_not_name_is_reported_as_not_raised() {
    for generation in Generation::ALL {
        let (raised, report) = run(texts::UNNAMED, generation, ALL_EVENTS);
        let missing = report.to_string();
        let is_missing = |name: &str| {
            missing.lines().any(|line| line.contains("not raised") && line.contains(name))
        };
        let loads = named(&raised, "AssemblyLoadStarted").count();
        assert_eq!(loads, 2, "{generation}: those of the start");
        for name in ["AssemblyLoadStarted", "ModuleLoadFinished", "ClassLoadStarted"] {
            assert!(is_missing(name), "{generation}: {name}");
        }
        for name in ["ModuleUnloadStarted", "DynamicMethodUnloaded"] {
            assert_eq!(named(&raised, name).count(), 0);
            assert!(is_missing(name), "{generation}: {name}");
        }
        assert_eq!(report.findings(), []);
    }
}

/// Asks for the profiler's detachment after the first exception.
fn detach(session: &clrsim::Session) {
    // SAFETY: the session's object, which is not counted.
    let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(session.info()) }.unwrap());
    let Ok(info) = info.cast::<ICorProfilerInfo3>() else { return };
    session.watch(move |callback| {
        if callback == "ExceptionThrown" {
            // SAFETY: no pointers.
            unsafe { info.RequestProfilerDetach(0) };
        }
    });
    session.run().unwrap();
}

/// Begins a session of EventPipe with an event of the runtime's, and makes a provider.
fn begin_events(info: *mut c_void) {
    // SAFETY: the runtime's object, which is not counted.
    let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) }.unwrap());
    let Ok(info) = info.cast::<ICorProfilerInfo12>() else { return };
    let wide = |text: &str| text.encode_utf16().chain([0]).collect::<Vec<_>>();
    let (runtime, own) = (wide("Microsoft-Windows-DotNETRuntime"), wide("Own"));
    let config =
        EventProviderConfig { name: runtime.as_ptr(), keywords: 1, level: 5, filter: null() };
    let (mut session, mut provider) = (0, 0);
    // SAFETY: the pointers are to what is announced.
    unsafe {
        // COR_PRF_HIGH_MONITOR_EVENT_PIPE.
        assert_eq!(info.SetEventMask2(0, 0x80), HResult::OK);
        let begun = info.EventPipeStartSession(1, &raw const config, 0, &raw mut session);
        assert_eq!(begun, HResult::OK);
        assert_eq!(info.EventPipeCreateProvider(own.as_ptr(), &raw mut provider), HResult::OK);
    }
}

/// Asks for the basic events of GCs alone: COR_PRF_HIGH_BASIC_GC.
fn ask_for_basic_gc(info: *mut c_void) {
    // SAFETY: the runtime's object, which is not counted.
    let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) }.unwrap());
    let info = info.cast::<ICorProfilerInfo5>().unwrap();
    // SAFETY: no pointers.
    assert_eq!(unsafe { info.SetEventMask2(0, 0x10) }, HResult::OK);
}

#[test]
fn basic_events_of_gcs_are_their_start_and_end() {
    let text = r#"function "App.Main" kind="jit" { body { new; create-handle; collect } }"#;
    for generation in Generation::ALL.into_iter().filter(|one| one.profiler_info() >= 5) {
        let raised = Run { events: 0, initialize: Some(ask_for_basic_gc) };
        let (raised, _) = raised.with(text, generation, |session| session.run().unwrap());
        let names = raised.iter().map(|one| one.name).filter(|name| *name != "Initialize");
        let names: Vec<_> = names.collect();
        assert_eq!(
            names,
            ["GarbageCollectionStarted", "GarbageCollectionFinished"],
            "{generation}"
        );
    }
}

#[test]
fn the_mask_of_a_profiler_decides_how_the_program_is_compiled() {
    let text = r#"
function "App.Main" kind="jit" { body { p-invoke "Lib.Call"; first-call "App.Ahead" } }
function "App.Ahead" kind="ready-to-run" { inlines "App.Small"; body { p-invoke-by-helper "Lib.Call" } }
function "App.Small" kind="jit"
function "Lib.Call" { body { work 1 } }
stop "end"
"#;
    for generation in Generation::ALL {
        let names = |events| names(&raised(text, generation, events));
        let searches =
            ["JITCachedFunctionSearchStarted Ahead", "JITCachedFunctionSearchFinished Ahead"];
        let compilation =
            ["JITCompilationStarted Ahead", "JITInlining", "JITCompilationFinished Ahead"];
        let code = 0x2_0020;
        assert_eq!(names(code), searches, "{generation}");
        for refuses in [0x2000_0000, 0x8000_0000] {
            assert_eq!(names(code | refuses), compilation, "{generation}");
            // What is not inlined is called, and compiled then.
            let small = ["JITCompilationStarted Small", "JITCompilationFinished Small"];
            let inlines_nothing = [compilation[0], compilation[2], small[0], small[1]];
            assert_eq!(names(code | refuses | 0x20_0000), inlines_nothing, "{generation}");
        }
        let transitions =
            ["ManagedToUnmanagedTransition Call", "UnmanagedToManagedTransition Call"];
        let both = names(code | TRANSITIONS);
        let crossed: Vec<_> = both.iter().filter(|name| name.contains("Transition")).collect();
        assert_eq!(crossed, [transitions, transitions].concat(), "{generation}");
        assert!(both.contains(&compilation[0].to_owned()), "{generation}: {both:?}");
    }
}

#[test]
fn the_handles_of_a_thread_come_before_the_thread() {
    let text = r#"function "App.Main" kind="jit" { body { work 1 } }"#;
    for generation in Generation::ALL {
        let (raised, _) = run(text, generation, GC | 0x200);
        let names: Vec<_> = raised.iter().map(|one| one.name).collect();
        let at = names.iter().position(|name| *name == "ThreadCreated").unwrap();
        assert_eq!(names[at - 2..at], ["HandleCreated"; 2], "{generation}");
        let handles: BTreeSet<_> = named(&raised, "HandleCreated").map(<[u64]>::to_vec).collect();
        assert_eq!(handles.len(), 2, "two handles: {handles:?}");
        assert!(handles.iter().all(|words| words[1] == 0), "NULL: {handles:?}");
    }
}

/// The rows of the book's list: the callback, and whether it is raised.
fn listed() -> Vec<(String, bool)> {
    let page = include_str!("../../../../src/book/callbacks.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut cells = row.split(" | ");
        let name = cells.next().unwrap().trim_end_matches('`').to_owned();
        let is_raised = match cells.next() {
            Some("yes") => true,
            Some("no") => false,
            cell => panic!("{name}: {cell:?}"),
        };
        assert!(cells.next().is_some_and(|cell| !cell.is_empty()), "{name}");
        (name, is_raised)
    })
    .collect()
}

#[test]
fn the_book_lists_each_callback_that_is_declared() {
    let declared = (3..).map_while(ICorProfilerCallback11::method);
    let declared: Vec<_> = declared.map(|method| method.name.to_owned()).collect();
    assert!(declared.len() > 90);
    let listed: Vec<_> = listed().into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, declared);
}

#[test]
fn the_callbacks_that_the_book_says_are_raised() {
    let mut seen = BTreeMap::new();
    let mut see = |raised: Vec<Raised>, text: &str| {
        for one in raised {
            seen.entry(one.name.to_owned()).or_insert_with(|| text.to_owned());
        }
    };
    for generation in Generation::ALL {
        for text in texts::ALL {
            see(run(text, generation, ALL_EVENTS).0, text);
            // With transitions and hooks nothing that was compiled ahead is searched for.
            see(run(text, generation, ALL_EVENTS & !0x1800).0, text);
        }
        let exceptions = Run { events: 0x40, ..Run::default() };
        see(exceptions.with(texts::CATCH, generation, detach).0, "detach");
        let events = Run { events: 0, initialize: Some(begin_events) };
        see(events.with(texts::HEAP, generation, |session| session.run().unwrap()).0, "events");
    }
    // Libraries are asked, not objects; ReJIT has tests of its own.
    let elsewhere = |name: &str| {
        let is_of_loading =
            ["LoadAsNotificationOnly", "InitializeForAttach", "ProfilerAttachComplete"];
        is_of_loading.contains(&name) || name.contains("ReJIT")
    };
    let listed = listed().into_iter().filter(|(name, is_raised)| *is_raised && !elsewhere(name));
    let listed: BTreeSet<_> = listed.map(|(name, _)| name).collect();
    let seen_names: BTreeSet<_> = seen.keys().cloned().collect();
    let differs = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
        one.difference(other).cloned().collect::<Vec<_>>()
    };
    assert_eq!(differs(&listed, &seen_names), <[String; 0]>::default(), "listed, not raised");
    assert_eq!(differs(&seen_names, &listed), <[String; 0]>::default(), "raised, not listed");
}
