//! Calls with right and wrong arguments, answered as real CLRs answer them.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::{FunctionId, HResult, ThreadId};
use clrsim::Session;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

const TEXT: &str = r#"
function "App.Main" kind="jit" { body { new; first-call "App.Save"; collect } }
function "App.Save" kind="jit" { body { new } }
"#;
/// MONITOR_CLASS_LOADS, _MODULE_LOADS, _ASSEMBLY_LOADS, _JIT_COMPILATION, _EXCEPTIONS, _GC, _THREADS, _OBJECT_ALLOCATED with what it
/// needs: as in the recordings.
const EVENTS: u32 = 0x10_03EE;
/// The ids of interfaces that the calls name.
static IMPORT: Guid = IMetaDataImport::IID;
static EMIT: Guid = IMetaDataEmit::IID;
/// Callback, call and results.
const TABLE: &str = include_str!("answers.tsv");
/// The runtimes of the columns.
const RUNTIMES: [Generation; 4] =
    [Generation::CoreClr31Unix, Generation::Net8Unix, Generation::Net10Unix, Generation::Net11Unix];
/// Methods of the table that are not simulated.
const MISSING: [&str; 0] = [];

thread_local! {
    static COLUMN: RefCell<usize> = const { RefCell::new(0) };
    static INFO: RefCell<Option<ManuallyDrop<ICorProfilerInfo15>>> = const { RefCell::new(None) };
    static NAMES: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
    static WRONG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static ASKED: RefCell<usize> = const { RefCell::new(0) };
}

unsafe extern "system" fn on_object(_: u64, _: *mut c_void) -> Bool {
    1
}

/// Returns the word of an argument. What it points to lives in `kept`.
fn word(argument: &str, kept: &mut Vec<Box<[u64]>>) -> u64 {
    let mut keep = |words: Box<[u64]>| {
        let address = words.as_ptr() as u64;
        kept.push(words);
        address
    };
    if argument == "&" {
        return keep(Box::new([0; 0x400]));
    }
    if argument == "callback" {
        return on_object as *const () as u64;
    }
    if let Some(text) = argument.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        let units: Vec<u16> = text.encode_utf16().chain([0; 4]).collect();
        let words = units
            .chunks_exact(4)
            .map(|four| four.iter().rev().fold(0, |word, unit| word << 16 | u64::from(*unit)));
        return keep(words.collect());
    }
    if let Some(element) = argument.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let element = word(element, kept);
        kept.push(Box::new([element]));
        return kept.last().unwrap().as_ptr() as u64;
    }
    if let Some((name, number)) = argument.split_once('+') {
        return word(name, kept) + number.parse::<u64>().unwrap();
    }
    let number = match argument.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => argument.parse().ok(),
    };
    number.unwrap_or_else(|| NAMES.with_borrow(|names| *names.get(argument).expect(argument)))
}

/// Makes the calls of a callback.
fn ask(callback: &str) {
    let column = COLUMN.with_borrow(|column| *column);
    for row in TABLE.lines().filter(|row| !row.starts_with('#')) {
        let cells: Vec<_> = row.split('\t').collect();
        let expected = cells[2 + column];
        if cells[0] != callback || expected == "-" {
            continue;
        }
        let mut words = cells[1].split(' ').filter(|word| !word.is_empty());
        let method = words.next().unwrap();
        let slot = (3..200).find(|slot| ICorProfilerInfo15::method(*slot).unwrap().name == method);
        let mut kept = Vec::new();
        let words: Vec<_> = words.map(|one| word(one, &mut kept)).collect();
        let found = INFO.with_borrow(|info| {
            // SAFETY: pointers are to room that is large enough.
            unsafe { info.as_ref().unwrap().call(slot.unwrap(), &words) }
        });
        let found = HResult(found.expect("the call has all arguments") as u32);
        let expected = HResult(u32::from_str_radix(expected, 16).unwrap());
        let expected = if MISSING.contains(&method) { HResult::NOT_IMPLEMENTED } else { expected };
        ASKED.with_borrow_mut(|asked| *asked += 1);
        if found != expected {
            WRONG.with_borrow_mut(|all| {
                all.push(format!("{callback} {}: {found}, not {expected}", cells[1]));
            });
        }
    }
}

fn name(of: &'static str, id: u64) {
    NAMES.with_borrow_mut(|names| {
        names.entry(of).or_insert(id);
    });
}

/// Names what a callback is about.
fn name_this(of: &'static str, id: u64) {
    NAMES.with_borrow_mut(|names| names.insert(of, id));
}

/// Makes the calls of a callback about a module, with those for the core library, which is loaded first, or for another one.
fn ask_of_module(callback: &str) {
    let is_later = NAMES.with_borrow(|names| names.contains_key("core"));
    ask(callback);
    let which = if is_later { "another module" } else { "the core library" };
    ask(&format!("{callback} of {which}"));
}

struct Asker;

impl IUnknownMethods for Asker {}

impl ICorProfilerCallbackMethods for Asker {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime's object; its references are not counted.
        let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) }.unwrap());
        // A runtime without the newest interface has the vtable of it all the same.
        // SAFETY: the same.
        let newest = unsafe { ICorProfilerInfo15::from_raw(info.as_raw()) }.unwrap();
        // SAFETY: no pointers.
        let result = unsafe { newest.SetEventMask(EVENTS) };
        let mut kept = Vec::new();
        let [variable, value] = ["\"PROBE_VAR\"", "\"value\""].map(|text| word(text, &mut kept));
        // SAFETY: pointers to texts.
        unsafe { newest.SetEnvironmentVariable(variable as *const u16, value as *const u16) };
        INFO.with_borrow_mut(|known| *known = Some(ManuallyDrop::new(newest)));
        result
    }

    unsafe fn AssemblyLoadStarted(&self, assembly: AssemblyId) -> HResult {
        name_this("this-assembly", assembly.0);
        ask("AssemblyLoadStarted");
        HResult::OK
    }

    unsafe fn ModuleLoadStarted(&self, module: ModuleId) -> HResult {
        name_this("this-module", module.0);
        ask_of_module("ModuleLoadStarted");
        HResult::OK
    }

    unsafe fn ModuleLoadFinished(&self, module: ModuleId, _: HResult) -> HResult {
        name_this("this-module", module.0);
        ask_of_module("ModuleLoadFinished");
        HResult::OK
    }

    unsafe fn ModuleAttachedToAssembly(&self, module: ModuleId, assembly: AssemblyId) -> HResult {
        name_this("this-module", module.0);
        name_this("this-assembly", assembly.0);
        ask_of_module("ModuleAttachedToAssembly");
        HResult::OK
    }

    unsafe fn AssemblyLoadFinished(&self, assembly: AssemblyId, _: HResult) -> HResult {
        name_this("this-assembly", assembly.0);
        ask_of_module("AssemblyLoadFinished");
        let module = NAMES.with_borrow(|names| names["this-module"]);
        name("core", module);
        HResult::OK
    }

    unsafe fn ClassLoadStarted(&self, class: ClassId) -> HResult {
        name_this("this-class", class.0);
        ask("ClassLoadStarted");
        HResult::OK
    }

    unsafe fn ClassLoadFinished(&self, class: ClassId, _: HResult) -> HResult {
        name_this("this-class", class.0);
        ask("ClassLoadFinished");
        HResult::OK
    }

    unsafe fn JITCompilationStarted(&self, function: FunctionId, _: Bool) -> HResult {
        name_this("this-function", function.0);
        ask("JITCompilationStarted");
        HResult::OK
    }

    unsafe fn ThreadCreated(&self, thread: ThreadId) -> HResult {
        name("thread", thread.0);
        HResult::OK
    }

    unsafe fn ObjectAllocated(&self, object: ObjectId, _: ClassId) -> HResult {
        name("object", object.0);
        HResult::OK
    }

    unsafe fn JITCompilationFinished(&self, function: FunctionId, _: HResult, _: Bool) -> HResult {
        let (mut class, mut module, mut token) = (ClassId(0), ModuleId(0), 0);
        let (mut start, mut size, mut type_def) = (std::ptr::null(), 0, 0);
        let mut domain = AppDomainId(0);
        INFO.with_borrow(|info| {
            let info = info.as_ref().unwrap();
            // SAFETY: pointers to locals.
            unsafe {
                info.GetFunctionInfo(function, &raw mut class, &raw mut module, &raw mut token);
                info.GetCodeInfo(function, &raw mut start, &raw mut size);
                info.GetClassIDInfo(class, null_mut(), &raw mut type_def);
                info.GetThreadAppDomain(ThreadId(0), &raw mut domain);
            }
        });
        for (of, id) in [
            ("function", function.0),
            ("class", class.0),
            ("module", module.0),
            ("method", token.into()),
            ("type", type_def.into()),
            ("start", start as u64),
            ("domain", domain.0),
        ] {
            name(of, id);
        }
        ask("JITCompilationFinished");
        HResult::OK
    }
}

impl ICorProfilerCallback2Methods for Asker {
    unsafe fn GarbageCollectionStarted(&self, _: i32, _: *const Bool, _: u32) -> HResult {
        ask("GarbageCollectionStarted");
        HResult::OK
    }
}

impl ICorProfilerCallback3Methods for Asker {}
impl ICorProfilerCallback4Methods for Asker {}

#[test]
fn right_and_wrong_arguments_are_answered_as_by_a_clr() {
    for (column, generation) in RUNTIMES.into_iter().enumerate() {
        COLUMN.with_borrow_mut(|at| *at = column);
        NAMES.with_borrow_mut(BTreeMap::clear);
        name("IMetaDataImport", &raw const IMPORT as u64);
        name("IMetaDataEmit", &raw const EMIT as u64);
        ASKED.with_borrow_mut(|asked| *asked = 0);
        let session = Session::open(TEXT, generation).unwrap();
        let profiler = create::<ICorProfilerCallback4, _>(Asker);
        // SAFETY: an object with the interface, which outlives the session's use of it.
        assert_eq!(unsafe { session.initialize(profiler.as_raw()) }, HResult::OK);
        session.run().unwrap();
        let wrong = WRONG.take();
        assert_eq!(wrong, <[String; 0]>::default(), "{generation}");
        let asked = ASKED.with_borrow(|asked| *asked);
        assert!(asked > 200, "{generation}: {asked} calls were made");
        INFO.with_borrow_mut(|info| *info = None);
    }
}
