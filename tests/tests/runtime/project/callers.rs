//! The table of who may call which method of ICorProfilerInfo, `sim/runtime/src/profiling/callers.tsv`: it is whole, the methods of
//! `ProfilerInfo` follow it, and the contract lists it. `sim/host/tests/it/callers.rs` calls all methods that guests have.

use super::*;
use clr_walker::profiling::{Accepts, InfoMethod};

const TABLE: &str = "sim/runtime/src/profiling/callers.tsv";
/// The vtables.
const METHODS: &str = "walker/com/src/info.rs";
/// The page that lists the table.
const PAGE: &str = "sim/src/book/contract/methods.md";

/// The callers in the table, with the page's words, and what the simulated methods accept.
const CALLERS: [(&str, &str, &[Accepts]); 5] = [
    ("all", "all threads", &[Accepts::All, Accepts::Special]),
    ("callbacks", "in callbacks", &[Accepts::Callbacks]),
    (
        "triggers",
        "in callbacks with T",
        &[Accepts::TriggeringCallbacks, Accepts::LookUps, Accepts::Special],
    ),
    ("initialize", "in `Initialize` alone: later `CORPROF_E_CALL_ONLY_FROM_INIT`", &[]),
    ("refused", "none: `E_NOTIMPL`", &[]),
];

/// Returns the rows: method, callers, source.
fn table() -> Vec<[String; 3]> {
    let text = read(TABLE);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let cells: Vec<_> = line.split('\t').map(str::to_owned).collect();
        cells.try_into().unwrap_or_else(|_| panic!("{line}"))
    };
    rows.map(row).collect()
}

/// Returns the callers of a method in the table.
fn callers_of(method: &str) -> String {
    let row = table().into_iter().find(|[name, ..]| name == method);
    row.map_or_else(|| panic!("{method} is not in {TABLE}"), |[_, callers, _]| callers)
}

fn fits(method: &str, accepts: &str) -> bool {
    let callers = callers_of(method);
    let (.., accepted) = CALLERS.iter().find(|(name, ..)| *name == callers).unwrap();
    accepted.iter().any(|accepted| format!("{accepted:?}") == accepts)
}

#[test]
fn the_table_has_each_method_of_the_vtables_once() {
    let text = read(METHODS);
    let methods = text.lines().filter_map(|line| {
        let (slot, rest) = line.trim_start().split_once(' ')?;
        slot.parse::<u32>().ok()?;
        rest.split_once('(').map(|(name, _)| name)
    });
    let table = table();
    assert!(table.iter().map(|[name, ..]| name.as_str()).eq(methods));
    assert!(table.len() > 100);
    for [name, callers, source] in &table {
        assert!(CALLERS.iter().any(|(known, ..)| known == callers), "{name}: {callers}");
        assert!(source == "2df8607e3ea5" || source.parse::<u32>().is_ok(), "{name}: {source}");
    }
}

#[test]
fn simulated_methods_accept_the_callers_of_the_table() {
    for method in InfoMethod::ALL {
        let accepts = format!("{:?}", method.accepts());
        assert!(fits(method.name(), &accepts), "{method:?}: {accepts}");
    }
}

#[test]
fn the_contract_lists_the_callers_of_each_method() {
    let page = read(PAGE);
    let mut found = String::new();
    for line in page.lines() {
        let row = CALLERS.iter().find(|(_, words, _)| line.starts_with(&format!("| {words} | `")));
        match row {
            Some((callers, words, _)) => {
                let table = table();
                let methods = table.iter().filter(|[_, of, _]| of == callers);
                let names: Vec<_> = methods.map(|[name, ..]| format!("`{name}`")).collect();
                writeln!(found, "| {words} | {} |", names.join(" ")).unwrap();
            }
            None => writeln!(found, "{line}").unwrap(),
        }
    }
    let rows = found
        .lines()
        .filter(|line| CALLERS.iter().any(|it| line.starts_with(&format!("| {} | `", it.1))));
    assert_eq!(rows.count(), CALLERS.len());
    if std::env::var_os("CLR_BLESS").is_some() {
        fs::write(path(PAGE), &found).unwrap();
    }
    assert_eq!(found, read(PAGE), "CLR_BLESS=1 writes it anew");
}
