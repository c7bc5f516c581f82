//! Coverage of a session: what called the profiler and what it called, on which threads, with which results.

use clr_walker::profiling::HResult;
use std::collections::BTreeMap;

/// The direction of a call between a profiler and the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// The runtime calls the profiler: a callback, a hook, or an export for the program.
    Callback,
    /// The profiler calls the runtime.
    Method,
}

/// A call between a profiler and the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoveredCall {
    /// The direction.
    pub kind: CallKind,
    /// The callback or the method.
    pub name: &'static str,
    /// The number of the thread in an interleaving; 0 elsewhere.
    pub thread: u32,
    /// The result. `None` if the call has not returned.
    pub result: Option<HResult>,
}

/// The calls between a profiler and the runtime, with their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<CoveredCall, u32>);

impl Coverage {
    /// Counts a call that begins: its result is not known.
    pub(crate) fn begins(&mut self, call: CoveredCall) {
        *self.0.entry(call).or_default() += 1;
    }

    /// Counts the result of a call that has begun.
    pub(crate) fn ends(&mut self, call: CoveredCall, result: HResult) {
        if let Some(open) = self.0.get_mut(&call) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.0.remove(&call);
            }
        }
        *self.0.entry(CoveredCall { result: Some(result), ..call }).or_default() += 1;
    }

    /// Returns the calls with their numbers, ordered by direction, name, thread and result.
    pub fn iter(&self) -> impl Iterator<Item = (CoveredCall, u32)> {
        self.0.iter().map(|(call, count)| (*call, *count))
    }
}
