//! The methods that are not simulated, as the book lists them.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::HResult;
use clrsim::hosting::get_dispenser;
use clrsim::{Role, Session};
use std::ffi::c_void;
use std::fmt::Write as _;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

const TEXT: &str = r#"function "App.Main" kind="jit" { body { work 1 } }"#;
const PAGE: &str = "src/book/callbacks.md";
/// Lines around the list.
const BEGIN: &str = "<!-- not-simulated -->\n";
const END: &str = "<!-- /not-simulated -->\n";
/// Methods that stop threads, or change what is asked after them.
const APART: [&str; 5] =
    ["ForceGC", "SuspendRuntime", "ResumeRuntime", "RequestProfilerDetach", "CloseEnum"];

/// Calls each method of an interface with zeros, and returns those that are not simulated, with the number of all.
fn missing<I: Callable>(session: &Session, object: &I) -> (Vec<&'static str>, usize) {
    let mut missing = Vec::new();
    let mut count = 0;
    while let Some(method) = I::method(count + 3) {
        count += 1;
        if APART.contains(&method.name) {
            continue;
        }
        let calls = || session.report().calls_not_simulated().get(method.name).copied();
        let before = calls();
        // SAFETY: all pointers are NULL.
        unsafe { object.call(count + 2, &vec![0; method.arguments.len()]) };
        if calls() != before {
            missing.push(method.name);
        }
    }
    (missing, count as usize)
}

/// Returns an interface of a module's metadata.
fn metadata<I: Interface>(info: &ICorProfilerInfo15) -> ManuallyDrop<I> {
    let (mut modules, mut module, mut found) = (null_mut(), ModuleId(0), null_mut::<c_void>());
    // SAFETY: pointers to locals; the enumerator has a reference, which is given up.
    unsafe {
        assert_eq!(info.EnumModules(&raw mut modules), HResult::OK);
        let modules = ICorProfilerModuleEnum::from_raw(modules).unwrap();
        assert_eq!(modules.Next(1, &raw mut module, null_mut()), HResult::OK);
        let given = info.GetModuleMetaData(module, 1, &I::IID, &raw mut found);
        assert_eq!(given, HResult::OK);
        ManuallyDrop::new(I::from_raw(found).unwrap())
    }
}

fn dispenser(session: &Session) -> IMetaDataDispenserEx {
    session.offer_dispenser();
    let mut found = null_mut::<c_void>();
    // SAFETY: pointers to locals; the object has a reference, which is given up.
    unsafe {
        let given = get_dispenser(&METADATA_DISPENSER, &IMetaDataDispenserEx::IID, &raw mut found);
        assert_eq!(given, HResult::OK);
        IMetaDataDispenserEx::from_raw(found).unwrap()
    }
}

fn list() -> String {
    let session = Session::open(TEXT, Generation::Net11Unix).unwrap();
    session.act_as(Role::Native);
    // SAFETY: the session's object, which is not counted.
    let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(session.info()) }.unwrap());
    let info = ManuallyDrop::new(info.cast::<ICorProfilerInfo15>().unwrap());
    let mut text = String::new();
    let mut row = |interface: &str, (missing, count): (Vec<&str>, usize)| {
        let names = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let names = if names.is_empty() { "–" } else { &names };
        writeln!(text, "| {interface} | {} of {count} | {names} |", missing.len()).unwrap();
    };
    row("ICorProfilerInfo to 15", missing(&session, &*info));
    row("IMetaDataImport, 2", missing(&session, &*metadata::<IMetaDataImport2>(&info)));
    let assemblies = metadata::<IMetaDataAssemblyImport>(&info);
    row("IMetaDataAssemblyImport", missing(&session, &*assemblies));
    row("IMetaDataEmit, 2", missing(&session, &*metadata::<IMetaDataEmit2>(&info)));
    let emit = metadata::<IMetaDataAssemblyEmit>(&info);
    row("IMetaDataAssemblyEmit", missing(&session, &*emit));
    row("IMetaDataDispenser, Ex", missing(&session, &dispenser(&session)));
    text
}

#[test]
fn the_book_lists_the_methods_that_are_not_simulated() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let head = "| interface | not simulated | methods |\n|---|---|---|\n";
    let wanted = format!("{before}{BEGIN}{head}{}{END}{after}", list());
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert!(page == wanted, "CLR_BLESS=1 writes it anew");
}
