//! Coverage of a session: what called the profiler and what it called, on which threads, with which results.

use clr_runtime::profiling::CallbackKind;
use clr_scenario::{CoverableCall, Demands};
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
    /// The number of the thread in an interleaving, or in the text.
    pub thread: u32,
    /// The result. `None` if the call has not returned.
    pub result: Option<HResult>,
}

/// The largest number of callbacks whose order is known.
const MOST_IN_ORDER: usize = 1 << 16;

/// The calls between a profiler and the runtime, with their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    calls: BTreeMap<CoveredCall, u32>,
    /// The first callbacks with their threads, in order.
    sequence: Vec<(&'static str, u32)>,
}

impl Coverage {
    /// Counts a call that begins: its result is not known.
    pub(crate) fn begins(&mut self, call: CoveredCall) {
        *self.calls.entry(call).or_default() += 1;
        if call.kind == CallKind::Callback && self.sequence.len() < MOST_IN_ORDER {
            self.sequence.push((call.name, call.thread));
        }
    }

    /// Counts the result of a call that has begun.
    pub(crate) fn ends(&mut self, call: CoveredCall, result: HResult) {
        if let Some(open) = self.calls.get_mut(&call) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.calls.remove(&call);
            }
        }
        *self.calls.entry(CoveredCall { result: Some(result), ..call }).or_default() += 1;
    }

    /// Returns the calls with their numbers, ordered by direction, name, thread and result.
    pub fn iter(&self) -> impl Iterator<Item = (CoveredCall, u32)> {
        self.calls.iter().map(|(call, count)| (*call, *count))
    }

    /// Returns how often the calls pass each point of a text's demands ([`Demands::points`]). `name` returns the name of a
    /// thread. Orders are judged by the first 65,536 callbacks.
    pub(crate) fn points<'n>(
        &self,
        demands: &Demands<'_>,
        name: &dyn Fn(u32) -> &'n str,
    ) -> Vec<u32> {
        let calls = self.iter().filter_map(|(call, count)| {
            let called = match call.kind {
                CallKind::Method => CoverableCall::Method(call.name, call.result),
                CallKind::Callback => CoverableCall::Callback(CallbackKind::from_name(call.name)?),
            };
            Some((called, name(call.thread), count))
        });
        let callbacks = self.sequence.iter().filter_map(|(callback, thread)| {
            Some((CallbackKind::from_name(callback)?, name(*thread)))
        });
        demands.points(calls, callbacks)
    }
}
