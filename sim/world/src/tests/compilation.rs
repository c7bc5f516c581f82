//! Compilations: by a first call, again on request, on the stack, and in the background.

use super::*;
use clr_codegen::RuntimeCallKind as Call;
use clr_runtime::metadata::{MethodNames, ModuleNames, TypeNames};
use clr_runtime::profiling::CallbackKind as Kind;

fn jit(name: &str, body: Vec<Statement>) -> Function {
    function(name, CodeKind::Jit, body)
}

/// Returns the callbacks about compilations and class loads, each with its thread.
fn compilations(
    functions: Vec<Function>,
    starts: &[ThreadStart],
    generation: Generation,
    request: Option<FunctionIndex>,
) -> Vec<(usize, Kind)> {
    let program = Program { functions, ..Program::default() };
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(starts).unwrap();
    let (mut found, mut ended) = (Vec::new(), 0);
    while ended < starts.len() {
        ended = 0;
        for thread in 0..starts.len() {
            match world.step(thread).unwrap() {
                StepEvent::Callback(kind) => {
                    let name = kind.name();
                    if name.contains("JIT") || name.contains("ClassLoad") {
                        found.push((thread, kind));
                    }
                    // The request comes while the method is compiled for the first time.
                    if kind == Kind::JITCompilationStarted
                        && let Some(function) = request
                    {
                        world.request_rejit(function);
                    }
                }
                StepEvent::Ended => ended += 1,
                _ => {}
            }
        }
    }
    found
}

const MAIN: ThreadStart = ThreadStart::Managed(FunctionIndex(0));
const FIRST: [(usize, Kind); 4] = [
    (0, Kind::ClassLoadStarted),
    (0, Kind::ClassLoadFinished),
    (0, Kind::JITCompilationStarted),
    (0, Kind::JITCompilationFinished),
];

#[test]
fn a_method_is_compiled_once() {
    for generation in Generation::ALL {
        let call = runtime(Call::FirstCall, Some(1));
        let functions =
            vec![jit("App.Main", vec![call.clone(), call]), jit("App.Work", Vec::new())];
        assert_eq!(compilations(functions, &[MAIN], generation, None), FIRST, "{generation}");
    }
}

#[test]
fn a_requested_rejit_is_made_by_the_next_call_only() {
    let call = runtime(Call::FirstCall, Some(1));
    let body = vec![call.clone(), call.clone(), call];
    let functions = vec![jit("App.Main", body), jit("App.Work", Vec::new())];
    let found = compilations(functions, &[MAIN], Generation::Net9Unix, Some(FunctionIndex(1)));
    let again = [
        (0, Kind::GetReJITParameters),
        (0, Kind::ReJITCompilationStarted),
        (0, Kind::ReJITCompilationFinished),
    ];
    assert_eq!(found, [FIRST.as_slice(), &again].concat());
}

/// The compilation for the ReJIT is the first one, and the only one.
#[test]
fn a_rejit_may_be_requested_before_the_first_call() {
    let call = runtime(Call::FirstCall, Some(1));
    let functions = vec![jit("App.Main", vec![call.clone(), call]), jit("App.Work", Vec::new())];
    let program = Program { functions, ..Program::default() };
    let build = Build::new(&program, &BTreeMap::new(), Generation::Net9Unix).unwrap();
    let mut world = build.world(&[MAIN]).unwrap();
    world.request_rejit(FunctionIndex(1));
    let mut found = Vec::new();
    while !world.threads[0].ended {
        if let StepEvent::Callback(kind) = world.step(0).unwrap()
            && kind.name().contains("JIT")
        {
            found.push(kind);
        }
    }
    let once =
        [Kind::GetReJITParameters, Kind::ReJITCompilationStarted, Kind::ReJITCompilationFinished];
    assert_eq!(found, once);
}

#[test]
fn later_tiers_are_compiled_by_threads_of_their_own() {
    for generation in Generation::ALL {
        let body = vec![runtime(Call::TierUp, Some(1)), Statement::Work(200)];
        let functions = vec![jit("App.Main", body), jit("App.Work", Vec::new())];
        let starts = [MAIN, ThreadStart::Tiering, ThreadStart::Tiering];
        let found = compilations(functions, &starts, generation, None);
        let mut by: Vec<_> = found.iter().map(|(thread, _)| *thread).collect();
        by.sort_unstable();
        let expected: &[usize] =
            match (generation.later_tiers(), generation.reuses_thread_objects()) {
                (0, _) => &[],
                (1, _) => &[1, 1],
                (_, true) => &[1, 1, 1, 1],
                (_, false) => &[1, 1, 2, 2],
            };
        assert_eq!(by, expected, "{generation}");
    }
}

#[test]
fn code_is_replaced_on_the_stack_where_the_runtime_does_so() {
    for generation in Generation::ALL {
        let body = vec![Statement::Work(4), runtime(Call::ReplaceOnStack, None)];
        let found = compilations(vec![jit("App.Main", body)], &[MAIN], generation, None);
        let expected: &[_] = if generation.replaces_code_on_stack() { &FIRST[2..] } else { &[] };
        assert_eq!(found, expected, "{generation}");
    }
}

#[test]
fn the_class_of_an_unloaded_method_is_loaded_anew() {
    let load = runtime(Call::LoadClass, Some(1));
    let body = vec![load.clone(), load.clone(), runtime(Call::UnloadAssembly, Some(1)), load];
    let functions = vec![jit("App.Main", body), jit("App.Plugin", Vec::new())];
    let found = compilations(functions, &[MAIN], Generation::Net9Unix, None);
    assert_eq!(found, [&FIRST[..2], &FIRST[..2]].concat());
}

#[test]
fn what_is_inlined_is_loaded_first_and_once() {
    let call = |method| runtime(Call::FirstCall, Some(method));
    let functions = vec![
        jit("App.Main", vec![call(1), call(2)]),
        jit("App.Work", Vec::new()),
        jit("App.Other", Vec::new()),
        jit("Plug.Number", Vec::new()),
        jit("App.Small", Vec::new()),
    ];
    let program = Program { functions, ..Program::default() };
    let build = Build::new(&program, &BTreeMap::new(), Generation::Net9Unix).unwrap();
    let plug = [("App.dll", "App", "Main"), ("Plug.dll", "Plug", "Number")];
    let build = build.with_modules(&plug.map(|(path, name, method)| ModuleNames {
        path: path.to_owned(),
        types: vec![TypeNames {
            name: name.to_owned(),
            methods: vec![MethodNames { name: method.to_owned(), ..MethodNames::default() }],
            ..TypeNames::default()
        }],
        ..ModuleNames::default()
    }));
    let mut world = build.world(&[MAIN]).unwrap();
    let [first, second, callee, small] = [1, 2, 3, 4].map(FunctionIndex);
    // The assembly and the class of the last one are those of the method that it is inlined into.
    world.inline(&BTreeMap::from([(first, vec![callee]), (second, vec![callee, small])]));
    world.begin_with_class_of(Some(FunctionIndex(0)));
    let mut found = Vec::new();
    while !world.threads[0].ended {
        if let StepEvent::Callback(kind) = world.step(0).unwrap() {
            found.push(kind);
        }
    }
    let is_about = |kind: &Kind| {
        ["JIT", "ClassLoad", "ModuleLoad", "AssemblyLoad"]
            .iter()
            .any(|word| kind.name().starts_with(word))
    };
    found.retain(is_about);
    let started = [Kind::JITCompilationStarted];
    let over = [Kind::JITInlining, Kind::JITCompilationFinished];
    let load = [
        Kind::AssemblyLoadStarted,
        Kind::ModuleLoadStarted,
        Kind::ModuleLoadFinished,
        Kind::AssemblyLoadFinished,
        Kind::ClassLoadStarted,
        Kind::ClassLoadFinished,
    ];
    let again = [Kind::JITInlining];
    // The class of the first method comes first.
    assert_eq!(found, [&load[4..], &started, &load, &over, &started, &again, &over].concat());
}
