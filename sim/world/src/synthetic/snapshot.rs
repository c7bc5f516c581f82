//! Snapshots of a synthetic thread, with labels.

use super::SyntheticProcess;
use clr_runtime::profiling::{HResult, SnapshotRequest};
use clr_runtime::{Context, OsThreadId, Outcome, Runtime};
use clr_walker::profiling::{FunctionId, SnapshotCallback};
use core::fmt;

/// A frame report: the arguments of one StackSnapshotCallback call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameReport {
    /// The function; `None` for a marker.
    pub function: Option<FunctionId>,
    /// ip (VA).
    pub ip: u64,
    /// `contextSize`.
    pub context_size: u32,
    /// The context, if there is one.
    pub context: Option<Context>,
    /// ip as a label.
    pub label: String,
}

/// The frame reports and the outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticSnapshot {
    /// Frame reports, in order.
    pub frame_reports: Vec<FrameReport>,
    /// Outcome of the call.
    pub outcome: Outcome,
}

impl SyntheticProcess {
    /// Makes a call on a thread, with a callback that always continues.
    pub fn snapshot(
        &self,
        runtime: &Runtime<'_>,
        os: OsThreadId,
        call: &SnapshotRequest<'_>,
    ) -> SyntheticSnapshot {
        self.snapshot_until(runtime, os, call, usize::MAX)
    }

    /// Makes a call with a callback that returns `S_FALSE` at frame report number `last`, counted
    /// from 0.
    pub fn snapshot_until(
        &self,
        runtime: &Runtime<'_>,
        os: OsThreadId,
        call: &SnapshotRequest<'_>,
        last: usize,
    ) -> SyntheticSnapshot {
        let mut frame_reports = Vec::new();
        let callback: &mut SnapshotCallback<'_> = &mut |frame| {
            frame_reports.push(FrameReport {
                function: frame.function,
                ip: frame.ip,
                context_size: frame.context.len() as u32,
                context: Context::from_bytes(frame.context),
                label: self.label(frame.ip),
            });
            if frame_reports.len() > last { HResult::FALSE } else { HResult::OK }
        };
        let outcome = runtime.on(os).do_stack_snapshot(call, Some(callback));
        SyntheticSnapshot { frame_reports, outcome }
    }
}

impl fmt::Display for SyntheticSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for frame_report in &self.frame_reports {
            writeln!(f, "{frame_report}")?;
        }
        writeln!(f, "{}", self.outcome)
    }
}

/// The ip as a label, and rsp: `App.Foo+0x40, rsp 0x1fe300`.
impl fmt::Display for FrameReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.function.is_none() {
            f.write_str("marker: ")?;
        }
        f.write_str(&self.label)?;
        match &self.context {
            Some(context) => write!(f, ", rsp {:#x}", context.registers.rsp()),
            None => Ok(()),
        }
    }
}
