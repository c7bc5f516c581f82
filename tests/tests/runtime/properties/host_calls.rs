//! Calls through libclrsim that a fuzz target found to be answered wrongly, and their neighbours.
#![cfg(target_pointer_width = "64")]

use super::*;
use clr_walker::profiling::HResult;
use clrsim::probe::{Called, Event, Probe, Receiver, Table, Value};
use clrsim::{Finding, Session};

const TEXT: &str = r#"
function "Prog.Main" kind="jit" { body { p-invoke "Lib.Sleep" } }
function "Lib.Sleep" { body { work 3 } }
stop at="Lib.Sleep"
"#;

/// A receiver that ignores everything.
struct Nobody;

impl Receiver for Nobody {
    fn receive(&self, _: &Probe, _: &mut Event<'_>) -> HResult {
        HResult::OK
    }
}

fn open(generation: Generation) -> Probe {
    let session = Session::open(TEXT, generation).unwrap();
    session.run_to_stop(0).unwrap();
    Probe::new(session)
}

fn findings(probe: &Probe) -> Vec<Finding> {
    probe.with_session(|session| session.report().findings().to_vec()).unwrap()
}

/// Calls a method by name.
fn call(probe: &Probe, pointer: usize, method: &str, values: &[Value]) -> Called {
    let table = probe.tables()[pointer];
    let named = |slot: &u32| table.method(*slot).unwrap().name == method;
    let slot = (0..table.slots()).find(named).unwrap();
    probe.call(pointer, slot, values, &Nobody).unwrap()
}

const ROOM: Value = Value::Block(Vec::new());
const NULL: Value = Value::Number(0);

#[test]
fn an_object_does_not_come_to_life_again() {
    let probe = open(Generation::Net8Unix);
    let given = call(&probe, 0, "EnumModules", &[ROOM]).given;
    assert_eq!((given, probe.tables()[1]), (Some(1), Table::Modules));
    assert_eq!(call(&probe, 1, "AddRef", &[]).result, 2);
    assert_eq!(call(&probe, 1, "Release", &[]).result, 1);
    assert_eq!(call(&probe, 1, "Release", &[]).result, 0);
    assert_eq!(findings(&probe), []);
    assert_eq!(call(&probe, 1, "AddRef", &[]).result, 0);
    let used = Finding::UseAfterRelease { method: "AddRef", object: 1 };
    assert_eq!(findings(&probe), [used]);
    let reset = call(&probe, 1, "Reset", &[]).result;
    assert_eq!(HResult(reset as u32), clrsim::results::RELEASED);
    assert_eq!(call(&probe, 1, "Release", &[]).result, 0);
    assert!(findings(&probe).contains(&Finding::OverRelease { object: 1 }));
}

#[test]
fn a_method_that_the_runtime_does_not_have_does_nothing() {
    let probe = open(Generation::Framework2);
    let call = |method: &str, values: &[Value]| call(&probe, 0, method, values);
    let before = call("GetEventMask", &[ROOM]).written;
    let values = [Value::Number(0x1000_0000), NULL];
    assert_eq!(HResult(call("SetEventMask2", &values).result as u32), HResult::NOT_IMPLEMENTED);
    let lacking = Finding::NoMethod { method: "SetEventMask2", interface: 5 };
    assert_eq!(findings(&probe), [lacking]);
    assert_eq!(call("GetEventMask", &[ROOM]).written, before);
    // One that is not simulated either.
    call("RequestProfilerDetach", &[Value::Number(0)]);
    let lacking = Finding::NoMethod { method: "RequestProfilerDetach", interface: 3 };
    assert_eq!(findings(&probe)[1], lacking);
    let report = probe.with_session(|session| session.report().to_string()).unwrap();
    assert!(!report.contains("not simulated"), "{report}");
}

#[test]
fn each_runtime_has_the_methods_of_its_interfaces() {
    for generation in Generation::ALL {
        let probe = open(generation);
        // The first method of each of ICorProfilerInfo5, 10 and 15.
        for (method, interface) in [("GetEventMask2", 5), ("EnumerateObjectReferences", 10)] {
            let before = findings(&probe).len();
            call(&probe, 0, method, &[NULL, NULL, NULL, NULL]);
            let lacks = generation.profiler_info() < interface;
            assert_eq!(findings(&probe).len() > before, lacks, "{generation} {method}");
        }
    }
}

/// A profiler that sets hooks in `Initialize` and then passes an id there that a CLR reads memory at.
struct Hooks {
    sets: bool,
    ends: bool,
}

impl Receiver for Hooks {
    fn receive(&self, probe: &Probe, event: &mut Event<'_>) -> HResult {
        if let Event::Callback("Initialize", _) = event {
            if self.sets {
                let set = call(probe, 0, "SetEnterLeaveFunctionHooks3", &[ROOM, ROOM, ROOM]);
                assert_eq!(HResult(set.result as u32), HResult::OK);
            }
            if self.ends {
                let ended = call(probe, 0, "GetThreadInfo", &[Value::Number(0x16), ROOM]);
                assert_eq!(HResult(ended.result as u32), clrsim::results::ENDED);
            }
        }
        HResult::OK
    }
}

#[test]
fn a_process_that_has_ended_does_not_begin_again_with_hooks() {
    let probe = Probe::new(Session::open(TEXT, Generation::Net8Unix).unwrap());
    assert_eq!(probe.initialize(&Hooks { sets: true, ends: true }), Some(HResult::OK));
    let mask = call(&probe, 0, "GetEventMask", &[ROOM]).result;
    assert_eq!(HResult(mask as u32), clrsim::results::ENDED);
}

#[test]
fn another_profiler_does_not_have_the_hooks_of_the_first() {
    let probe = Probe::new(Session::open(TEXT, Generation::Net8Unix).unwrap());
    // In no callback: the method may be called at any time, on any thread of the runtime.
    let detach = || {
        probe.with_session(|session| session.act_as(clrsim::Role::Managed));
        HResult(call(&probe, 0, "RequestProfilerDetach", &[Value::Number(0)]).result as u32)
    };
    assert_eq!(probe.initialize(&Hooks { sets: true, ends: false }), Some(HResult::OK));
    assert_eq!(detach(), HResult::IRREVERSIBLE_INSTRUMENTATION_PRESENT);
    assert_eq!(probe.initialize(&Hooks { sets: false, ends: false }), Some(HResult::OK));
    assert_eq!(detach(), HResult::OK);
}

#[test]
fn the_interfaces_of_metadata_are_of_one_object() {
    let probe = open(Generation::Net8Unix);
    let modules = call(&probe, 0, "EnumModules", &[ROOM]).given.unwrap();
    let module = call(&probe, modules, "Next", &[Value::Number(1), ROOM, NULL]).written;
    let module = u64::from_le_bytes(module[0].bytes[..8].try_into().unwrap());
    let ids = clrsim::probe::interface_ids();
    let ids = &ids[..clrsim::probe::METADATA_IDS];
    for (references, iid) in (1..).zip(ids) {
        let iid = Value::Block(iid.to_vec());
        let values = [Value::Number(module), NULL, iid, ROOM];
        let given = call(&probe, 0, "GetModuleMetaData", &values).given.unwrap();
        assert_eq!(probe.number_of_object(given), Some(2));
        let more = call(&probe, given, "AddRef", &[]).result;
        let less = call(&probe, given, "Release", &[]).result;
        assert_eq!((more, less), (references + 1, references));
    }
    let tables = probe.tables();
    let metadata = [Table::Import, Table::AssemblyImport, Table::Emit, Table::AssemblyEmit];
    assert_eq!(tables[2..], metadata);
}

#[test]
fn a_refused_call_writes_nothing() {
    let probe = open(Generation::Net8Unix);
    let modules = call(&probe, 0, "EnumModules", &[ROOM]).given.unwrap();
    let module = call(&probe, modules, "Next", &[Value::Number(1), ROOM, NULL]).written;
    let module = u64::from_le_bytes(module[0].bytes[..8].try_into().unwrap());
    let imports = Value::Block(clrsim::probe::interface_ids()[3].to_vec());
    let given = call(&probe, 0, "GetModuleMetaData", &[Value::Number(module), NULL, imports, ROOM]);
    let imports = given.given.unwrap();
    assert_eq!(probe.tables()[imports], Table::AssemblyImport);
    let token = Value::Number(0x2300_0001);
    // The hash without its size.
    let values = [token, ROOM, ROOM, NULL, NULL, NULL, NULL, ROOM, NULL, NULL];
    let refused = call(&probe, imports, "GetAssemblyRefProps", &values);
    assert_eq!(HResult(refused.result as u32), HResult::INVALID_ARGUMENT);
    assert_eq!(refused.written, []);
    let null = Finding::NullPointer { method: "GetAssemblyRefProps", argument: "pcb" };
    assert_eq!(findings(&probe), [null]);
}

/// The owner of the thread store is refused, as after SuspendRuntime.
#[test]
fn a_list_of_modules_is_null_before_it_is_refused() {
    let probe = open(Generation::Net8Unix);
    assert_eq!(call(&probe, 0, "SuspendRuntime", &[]).result, 0);
    let refused = call(&probe, 0, "EnumModules", &[ROOM]);
    assert_eq!(HResult(refused.result as u32), HResult::UNSUPPORTED_CALL_SEQUENCE);
    let [written] = &refused.written[..] else { panic!("{refused:?}") };
    assert_eq!((written.argument, &written.bytes[..]), ("enumerator", &[0; 8][..]));
    // The calls with which the fuzz target found it.
    let calls = [
        6, 1, 0, 0, 0, 218, 179, 90, 125, 101, 148, 91, 142, 247, 62, 182, 12, 135, 232, 117, 69,
        197, 87, 61, 148, 219, 213, 21, 114, 250, 60, 237, 234, 76, 208, 165, 71, 101, 116, 73,
        110, 112, 114, 111, 99, 73, 110, 115, 112, 101, 99, 116, 105, 208, 21, 16, 158, 252, 1,
        182, 146, 75, 155, 233, 17, 123, 113, 116, 90, 213, 47, 159, 0, 20, 234, 12, 191, 49, 97,
        127, 59, 208, 103, 94, 195, 203, 208, 16, 129, 197, 83, 151, 2, 149, 53, 121, 29, 5, 153,
        189, 173, 91, 20, 209, 185, 49, 146, 85, 99, 126, 168, 213, 193, 8, 194, 120, 110, 25, 216,
        204, 37, 236,
    ];
    clr_tests::fuzz::host_calls(&calls);
}

/// A profiler that asks for allocations and exceptions, and notes their objects.
#[derive(Default)]
struct Objects(std::cell::RefCell<Vec<(&'static str, u64)>>);

impl Receiver for Objects {
    fn receive(&self, probe: &Probe, event: &mut Event<'_>) -> HResult {
        match event {
            Event::Callback("Initialize", _) => {
                call(probe, 0, "SetEventMask", &[Value::Number(0x140)]);
            }
            Event::Callback(name @ ("ObjectAllocated" | "ExceptionThrown"), object) => {
                self.0.borrow_mut().push((name, *object));
            }
            _ => {}
        }
        HResult::OK
    }
}

#[test]
fn allocations_and_exceptions_have_objects() {
    let text = r#"
function "App.Main" kind="jit" {
    push "rbp"
    frame "rbp" set="after-saves"
    body { new; guarded { call "App.Throw" }; on-catch { new } }
}
function "App.Throw" kind="jit" { body { raise } }
stop at="App.Throw"
"#;
    for generation in Generation::ALL {
        let probe = Probe::new(Session::open(text, generation).unwrap());
        let objects = Objects::default();
        assert_eq!(probe.initialize(&objects), Some(HResult::OK));
        assert!(probe.run(&objects), "{generation}");
        let reported = objects.0.take();
        let names: Vec<_> = reported.iter().map(|(name, _)| *name).collect();
        let expected = ["ObjectAllocated", "ExceptionThrown", "ObjectAllocated"];
        assert_eq!(names, expected, "{generation}");
        let ids: std::collections::BTreeSet<_> = reported.iter().map(|(_, id)| *id).collect();
        assert!(ids.len() == 3 && !ids.contains(&0), "{generation}: {ids:x?}");
        let report = probe.with_session(|session| session.report().to_string()).unwrap();
        assert!(!report.contains("not raised: ObjectAllocated"), "{report}");
    }
}
