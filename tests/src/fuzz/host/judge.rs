//! The answers that the runtime must give.

use super::hresults::results_of;
use clr_runtime::generation::Generation;
use clr_walker::profiling::HResult;
use clrsim::probe::{Called, MethodSignature, Table};
use clrsim::{Finding, Report, results};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The answers that a call may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// This word.
    Word(u64),
    /// An HRESULT of the method.
    Any,
}

/// The state of the session as far as it is known.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub(super) struct Model {
    generation: Generation,
    /// References to each object; `None` for those that are not counted.
    references: Vec<Option<u32>>,
    is_open: bool,
    has_ended: bool,
    used_after_release: bool,
    released_too_often: bool,
    used_elsewhere: bool,
}

const UNCOUNTED: [&str; 2] = ["AddRef", "Release"];

impl Model {
    pub(super) fn new(generation: Generation) -> Self {
        Self {
            generation,
            references: vec![None],
            is_open: true,
            has_ended: false,
            used_after_release: false,
            released_too_often: false,
            used_elsewhere: false,
        }
    }

    /// Notes that there is a new process.
    pub(super) const fn begin_again(&mut self) {
        self.has_ended = false;
    }

    pub(super) const fn close(&mut self) {
        self.is_open = false;
    }

    fn references(&self, object: usize) -> Option<u32> {
        self.references.get(object).copied().flatten()
    }

    /// Returns what a call will be answered with, before it is made.
    pub(super) fn expect(
        &self,
        object: usize,
        table: Table,
        (slot, method): (u32, &MethodSignature),
        elsewhere: bool,
    ) -> Expectation {
        let references = self.references(object);
        let refused = |result: HResult| Expectation::Word(result.0.into());
        match (method.name, references) {
            ("AddRef" | "Release", None) => Expectation::Word(1),
            // CloseEnum has no result.
            ("AddRef", Some(0)) | ("CloseEnum", _) => Expectation::Word(0),
            ("AddRef", Some(count)) => Expectation::Word(u64::from(count) + 1),
            ("Release", Some(count)) => Expectation::Word(count.saturating_sub(1).into()),
            ("IsValidToken", _) => Expectation::Any,
            (name, _) if results_of(table, name).is_none() => refused(HResult::NOT_IMPLEMENTED),
            _ if table == Table::Info && !self.has(slot) => refused(HResult::NOT_IMPLEMENTED),
            _ if !self.is_open => refused(results::RELEASED),
            _ if elsewhere => refused(results::WRONG_THREAD),
            (_, Some(0)) => refused(results::RELEASED),
            _ if self.has_ended => refused(results::ENDED),
            _ => Expectation::Any,
        }
    }

    /// Returns true if the runtime's interfaces have the method in a slot.
    fn has(&self, slot: u32) -> bool {
        let newest = usize::from(self.generation.profiler_info());
        INTERFACES.iter().take(newest).any(|slots| slot < *slots)
    }

    /// Judges a call, and learns from it.
    /// `object` is the one that was called, `given` the one that the call gave away.
    pub(super) fn judge(
        &mut self,
        table: Table,
        called: &Called,
        (object, given): (usize, Option<usize>),
        expected: &Expectation,
    ) -> Result<(), String> {
        let name = called.method;
        if let Some(argument) = called.overrun {
            return Err(format!("it writes around {argument}"));
        }
        let result = HResult(called.result as u32);
        let is_null = name == "QueryInterface" && result == results::POINTER;
        match expected {
            Expectation::Word(word) if called.result == *word || is_null => {}
            Expectation::Word(word) => return Err(format!("the result is not {word:#x}")),
            Expectation::Any => self.check_result(table, called, result)?,
        }
        let fails = result.is_failure() && !UNCOUNTED.contains(&name);
        for written in &called.written {
            let may = !fails || writes_though_refused(name, result).contains(&written.argument);
            if !may {
                return Err(format!("it is refused, and writes {}", written.argument));
            }
        }
        if !fails {
            check_counts(called)?;
        }
        if name == "QueryInterface" && given.is_some_and(|given| given != object) {
            return Err("the interface is one of another object".to_owned());
        }
        self.count(called, (object, given), name);
        Ok(())
    }

    fn check_result(
        &mut self,
        table: Table,
        called: &Called,
        result: HResult,
    ) -> Result<(), String> {
        if called.method == "IsValidToken" {
            return if called.result < 2 { Ok(()) } else { Err("no BOOL".to_owned()) };
        }
        if result == results::ENDED {
            self.has_ended = true;
            return Ok(());
        }
        let allowed = results_of(table, called.method).unwrap_or_default();
        let always: &[_] = if table == Table::Info { &[HResult::PROFILER_DETACHING] } else { &[] };
        if allowed.contains(&result) || always.contains(&result) {
            Ok(())
        } else {
            Err(format!("the result {result} is none that it has"))
        }
    }

    fn count(&mut self, called: &Called, (object, given): (usize, Option<usize>), name: &str) {
        if let Some(given) = given {
            if given >= self.references.len() {
                self.references.resize(given + 1, Some(0));
            }
            if let Some(Some(count)) = self.references.get_mut(given) {
                *count += 1;
            }
        }
        if let Some(Some(count)) = self.references.get_mut(object) {
            match name {
                "AddRef" if *count > 0 => *count += 1,
                "AddRef" => self.used_after_release |= self.is_open,
                "Release" if *count == 0 => self.released_too_often |= self.is_open,
                "Release" => *count -= 1,
                _ if *count == 0 && HResult(called.result as u32) == results::RELEASED => {
                    self.used_after_release |= self.is_open;
                }
                _ => {}
            }
        }
        let result = HResult(called.result as u32);
        self.used_elsewhere |= result == results::WRONG_THREAD && !UNCOUNTED.contains(&name);
    }

    /// Judges the report of a session before it is closed.
    pub(super) fn judge_report(&self, report: &Report) -> Result<(), String> {
        let has = |is: fn(&Finding) -> bool| report.findings().iter().any(is);
        let used = has(|one| matches!(one, Finding::UseAfterRelease { .. }));
        let too_often = has(|one| matches!(one, Finding::OverRelease { .. }));
        let elsewhere = has(|one| matches!(one, Finding::WrongThread { .. }));
        let known = [self.used_after_release, self.released_too_often];
        if known.iter().zip([used, too_often]).any(|(wanted, found)| *wanted && !found) {
            return Err("a use after the last reference is not found".to_owned());
        }
        if too_often && !self.released_too_often {
            return Err("no object was released too often".to_owned());
        }
        if self.used_elsewhere && !elsewhere {
            return Err("a call on another thread is not found".to_owned());
        }
        let left = report.findings().iter().filter_map(|one| match one {
            Finding::Leak { object, references, .. } => Some((*object as usize, *references)),
            _ => None,
        });
        let counts =
            self.references.iter().enumerate().filter_map(|(at, count)| Some((at, (*count)?)));
        let expected: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        let left: Vec<_> = left.collect();
        if left == expected { Ok(()) } else { Err(format!("references left: not {expected:?}")) }
    }
}

/// Number of slots of `ICorProfilerInfo` to 15.
const INTERFACES: [u32; 15] = [36, 57, 71, 81, 83, 84, 87, 90, 93, 99, 101, 108, 111, 114, 115];

/// Checks numbers of elements, and that texts end.
fn check_counts(called: &Called) -> Result<(), String> {
    for written in &called.written {
        let name = written.argument;
        let is_text =
            matches!(name, "name" | "type_def" | "member" | "version_string" | "scope_name")
                && written.bytes.len() % 2 == 0
                && !is_token(called.method)
                || called.method == "GetTypeDefProps" && name == "type_def";
        let ends = written.bytes.chunks(2).any(|unit| unit == [0, 0]);
        if is_text && !ends {
            return Err(format!("the text {name} has no end"));
        }
    }
    Ok(())
}

/// Returns true for a method that writes tokens into arguments that are texts elsewhere.
fn is_token(method: &str) -> bool {
    let others = ["GetTypeDefProps", "GetExportedTypeProps", "ResolveTypeRef"];
    method.starts_with("Find") || method.starts_with("Define") || others.contains(&method)
}

/// Returns the arguments that a method writes although it returns this failure.
fn writes_though_refused(method: &str, result: HResult) -> &'static [&'static str] {
    match (method, result) {
        // NULL for the object (IUnknown; RegMeta::QueryInterface).
        ("QueryInterface", _) => &["object"],
        ("GetModuleMetaData", HResult::NO_INTERFACE) => &["out"],
        ("GetTokenAndMetaDataFromFunction", HResult::NO_INTERFACE) => &["import", "token"],
        // The token comes before NULL for the id of the interface is read.
        ("GetTokenAndMetaDataFromFunction", HResult::INVALID_ARGUMENT) => &["token"],
        // ProfToEEInterfaceImpl::GetModuleInfo2.
        ("GetModuleInfo" | "GetModuleInfo2", results::INSUFFICIENT_BUFFER) => {
            &["name", "name_len", "base_load_address", "assembly", "module_flags"]
        }
        // GetCORVersionInternal.
        ("GetRuntimeInformation", _) => &["version_string", "version_string_len"],
        // NULL, first of all; in EnumModules before the owner of the thread store is refused.
        ("EnumNgenModuleMethodsInliningThisMethod" | "EnumThreads", _)
        | ("EnumModules", HResult::UNSUPPORTED_CALL_SEQUENCE) => &["enumerator"],
        ("EventPipeGetProviderInfo", results::INSUFFICIENT_BUFFER) => &["name_len"],
        ("GetEnvironmentVariable", _) => &["value_len"],
        ("GetInMemorySymbolsLength", _) => &["count_symbol_bytes"],
        ("ReadInMemorySymbols", _) => &["count_symbol_bytes_read"],
        ("GetNativeCodeStartAddresses", results::INSUFFICIENT_BUFFER) => &["addresses_len"],
        ("GetDynamicFunctionInfo", results::INSUFFICIENT_BUFFER) => {
            &["module", "signature", "signature_size", "name", "name_len"]
        }
        ("GetNotifiedExceptionClauseInfo", HResult::NOT_MANAGED_THREAD) => &["info"],
        ("GetFunctionEnter3Info", results::INSUFFICIENT_BUFFER) => {
            &["frame_info", "argument_info_size"]
        }
        ("GetFunctionEnter3Info", HResult::INVALID_ARGUMENT) => &["frame_info"],
        _ => super::metadata::written_though_refused(method),
    }
}

/// Returns the slots of a table: those of simulated methods, or all of them.
pub(super) fn slots(table: Table, are_simulated: bool) -> &'static [u32] {
    type Slots = BTreeMap<(Table, bool), Vec<u32>>;
    static SLOTS: LazyLock<Slots> = LazyLock::new(|| {
        let kinds = Table::ALL.iter().flat_map(|table| [(*table, true), (*table, false)]);
        let slots = |(table, only): (Table, bool)| {
            let is_simulated = |slot: &u32| {
                let name = table.method(*slot).map_or("", |method| method.name);
                UNCOUNTED.contains(&name) || results_of(table, name).is_some()
            };
            let slots = (0..table.slots()).filter(|slot| !only || is_simulated(slot)).collect();
            ((table, only), slots)
        };
        kinds.map(slots).collect()
    });
    SLOTS.get(&(table, are_simulated)).map_or(&[], Vec::as_slice)
}

/// Methods that profilers call in `Initialize`.
const STARTING: [&str; 10] = [
    "EventPipeStartSession",
    "EventPipeCreateProvider",
    "SetEventMask",
    "SetEventMask2",
    "SetEnterLeaveFunctionHooks",
    "SetEnterLeaveFunctionHooks2",
    "SetEnterLeaveFunctionHooks3",
    "SetEnterLeaveFunctionHooks3WithInfo",
    "SetFunctionIDMapper",
    "SetFunctionIDMapper2",
];

/// Returns the slots of the runtime's methods that profilers call in `Initialize`.
pub(super) fn starting_slots() -> &'static [u32] {
    static SLOTS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let starts = |slot: &u32| {
            Table::Info.method(*slot).is_some_and(|method| STARTING.contains(&method.name))
        };
        (0..Table::Info.slots()).filter(starts).collect()
    });
    &SLOTS
}
