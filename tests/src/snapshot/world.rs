//! A staged thread on which each call is made from the same state.

use super::journal::Journal;
use clr_runtime::profiling::{HResult, SnapshotRequest};
use clr_runtime::{Context, Outcome};
use clr_runtime::{OsThreadId, Runtime, Thread};
use clr_walker::profiling::{FunctionId, SnapshotCallback};
use clr_world::synthetic::SyntheticProcess;

/// The arguments of a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedReport {
    /// FunctionID; `None` for a marker.
    pub function: Option<FunctionId>,
    pub ip: u64,
    pub context_size: usize,
    pub context: Option<Context>,
}

impl ObservedReport {
    /// Returns the fields that do not depend on requested contexts.
    pub(super) const fn place(&self) -> (Option<FunctionId>, u64) {
        (self.function, self.ip)
    }

    pub(super) fn rsp(&self) -> Option<u64> {
        self.context.map(|context| context.registers.rsp())
    }
}

/// Maximum number of callbacks, after which the callback ends the walk: a walk of a damaged thread
/// may be endless.
pub(super) const MAX_CALLBACKS: usize = 1000;

/// A call, and the behaviour of its callback.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'c> {
    pub caller: OsThreadId,
    pub call: SnapshotRequest<'c>,
    /// Index of the callback that ends the walk.
    pub stop_at: Option<usize>,
    pub null_callback: bool,
    /// True if the first callback makes the same call.
    pub nested: bool,
}

/// The observed results of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    pub frame_reports: Vec<ObservedReport>,
    pub outcome: Outcome,
    /// Outcome of the nested call.
    pub nested: Option<Outcome>,
    /// Changed bytes (VA), with their new values.
    pub changes: Vec<(u64, u8)>,
    /// True if the threads' state outside of their objects is unchanged, except that the caller has
    /// made a call.
    pub threads_same: bool,
    /// True if all callbacks got the clientData of the call.
    pub client_data_same: bool,
    /// Digest of the contexts of the first callbacks.
    pub digest: u64,
}

impl Observed {
    /// Returns functions and ips.
    pub(super) fn places(&self) -> impl Iterator<Item = (Option<FunctionId>, u64)> + '_ {
        self.frame_reports.iter().map(ObservedReport::place)
    }
}

/// A process on which calls can be repeated.
pub(super) struct World<'s> {
    pub runtime: Runtime<'s, Journal>,
    threads: Vec<Thread>,
}

impl<'s> World<'s> {
    pub(super) fn new(set: &'s SyntheticProcess) -> Self {
        let runtime = set.runtime_in(Journal::new);
        let threads = runtime.threads.borrow().clone();
        Self { runtime, threads }
    }

    /// Makes the call, and restores the state.
    pub(super) fn make(&self, request: &Request<'_>) -> Observed {
        let Request { caller, call, stop_at, null_callback, nested } = *request;
        let mut frame_reports = Vec::new();
        let mut inner = None;
        let mut client_data_same = true;
        let mut digest = 0_u64;
        let callback: &mut SnapshotCallback<'_> = &mut |frame| {
            if nested && frame_reports.is_empty() {
                let never: &mut SnapshotCallback<'_> = &mut |_| HResult::OK;
                inner = Some(self.runtime.on(caller).do_stack_snapshot(&call, Some(never)));
            }
            client_data_same &= frame.client_data == call.client_data;
            if frame_reports.len() < 4 {
                // Hashing words detects differences as well as hashing bytes, and is much faster.
                for word in frame.context.chunks_exact(8) {
                    let word = word.first_chunk().copied().map_or(0, u64::from_le_bytes);
                    digest = (digest ^ word).wrapping_mul(0x100_0000_01B3).rotate_left(23);
                }
            }
            let here = frame_reports.len();
            frame_reports.push(ObservedReport {
                function: frame.function,
                ip: frame.ip,
                context_size: frame.context.len(),
                context: Context::from_bytes(frame.context),
            });
            if stop_at == Some(here) || here + 1 == MAX_CALLBACKS {
                HResult::FALSE
            } else {
                HResult::OK
            }
        };
        let callback = (!null_callback).then_some(callback);
        let outcome = self.runtime.on(caller).do_stack_snapshot(&call, callback);
        let changes = self.runtime.memory.borrow_mut().take_back();
        // The data that the runtime creates at a thread's first call stays (H-03).
        let known = self.threads.iter().find(|thread| thread.os == caller);
        let initialized = known.is_some_and(|thread| thread.initialized);
        self.runtime.change_thread(caller, |thread| thread.initialized = initialized);
        let threads_same = *self.runtime.threads.borrow() == self.threads;
        if !threads_same {
            self.runtime.threads.replace(self.threads.clone());
        }
        Observed {
            frame_reports,
            outcome,
            nested: inner,
            changes,
            threads_same,
            client_data_same,
            digest,
        }
    }
}
