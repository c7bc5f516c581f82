//! The part of a session that other threads may touch: its report and its journal.

use crate::coverage::{CallKind, CoveredCall};
use crate::journal::{Entry, Journal};
use crate::report::{Finding, Report};
use clr_walker::profiling::HResult;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The part of a session that other threads may touch.
#[doc(hidden)]
pub struct Shared {
    pub(crate) report: Mutex<Report>,
    pub(crate) open: AtomicBool,
    pub(crate) journal: Option<Box<dyn Journal>>,
}

impl Shared {
    /// Changes the report.
    pub fn with(&self, change: impl FnOnce(&mut Report)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts a call on a thread, and its result when it has returned.
    pub(crate) fn counting(
        &self,
        kind: CallKind,
        name: &'static str,
        thread: u32,
        act: impl FnOnce() -> HResult,
    ) -> HResult {
        let call = CoveredCall { kind, name, thread, result: None };
        self.with(|report| report.begins(call));
        let result = act();
        self.with(|report| report.ends(call, result));
        result
    }

    /// Writes an entry of the journal, if there is one.
    pub fn write(&self, entry: &Entry<'_>) {
        if let Some(journal) = &self.journal {
            journal.write(entry);
        }
    }

    /// Notes a finding, and writes it to the journal if it is new.
    pub fn find(&self, finding: Finding) {
        let mut is_new = false;
        self.with(|report| is_new = report.find(finding));
        if is_new {
            self.write(&Entry::Found(&finding));
        }
    }

    /// Notes a call of a method that is not simulated, or not for its arguments.
    pub(crate) fn not_simulated(&self, method: &'static str) {
        self.with(|report| report.not_simulated(method));
        self.write(&Entry::NotSimulated(method));
    }

    /// Notes an id or a handle, other than 0, that the runtime has not given.
    pub(crate) fn find_unknown(&self, method: &'static str, id: u64) {
        if id != 0 {
            self.find(Finding::UnknownId { method, id });
        }
    }

    /// Notes NULL where a CLR does not check.
    pub(crate) fn find_null(&self, method: &'static str, argument: &'static str) {
        self.find(Finding::NullPointer { method, argument });
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }
}
