//! Blessing of snapshots.

use crate::model::{
    ExpectedFlags, ExpectedFrameReport, ExpectedOutcome, ExpectedSnapshot, Provenance, Stale,
};
use crate::run::snapshot_result::{FoundFrameReport, SnapshotResult};
use clr_runtime::generation::Generations;
use clr_unwind::{Gpr, Registers};

impl ExpectedSnapshot {
    /// Converts the result of a snapshot to an expectation.
    #[must_use]
    pub fn of(on: Generations, found: &SnapshotResult) -> Self {
        let flags =
            |frame_report: &FoundFrameReport| Some(frame_report.frame_report.context?.flags);
        let named = |flags| {
            if flags == found.rules.own_flags {
                ExpectedFlags::Own
            } else {
                ExpectedFlags::Value(flags)
            }
        };
        let first = found.frame_reports.first().and_then(flags);
        let same = found.frame_reports.iter().all(|frame_report| flags(frame_report) == first);
        let usual = |frame_report: &FoundFrameReport| {
            flags(frame_report) == found.rules.flags || frame_report.frame_report.context.is_none()
        };
        let frame_report = |frame_report: &FoundFrameReport| ExpectedFrameReport {
            marker: frame_report.frame_report.function.is_none(),
            label: Some(frame_report.frame_report.label.clone()),
            registers: registers(frame_report, found),
            stale: stale(frame_report, found),
            context_flags: flags(frame_report).filter(|_| !same && !usual(frame_report)).map(named),
        };
        let nested = found.nested.iter().filter_map(|nested| nested.outcomes.first());
        Self {
            on,
            from: Provenance::Rules,
            others: false,
            context_flags: first
                .filter(|_| same && !found.frame_reports.iter().all(usual))
                .map(named),
            frames: found.frame_reports.iter().map(frame_report).collect(),
            nested: nested.map(|outcome| ExpectedOutcome::from(*outcome)).collect(),
            result: found.outcome.into(),
            clauses: Vec::new(),
        }
    }
}

/// Returns rsp, and the nonvolatile registers that match neither the activation's values nor those
/// that the walk started with (they belong to another activation). rax is included if it changed.
fn registers(frame_report: &FoundFrameReport, found: &SnapshotResult) -> Vec<(Gpr, u64)> {
    let Some(context) = frame_report.frame_report.context else { return Vec::new() };
    let value = |register: Gpr| context.registers.get(register);
    let is_of_none = |register: &Gpr| {
        let others = [frame_report.true_registers, found.rules.start];
        frame_report.true_registers.is_some()
            && others.into_iter().flatten().all(|one| one.get(*register) != value(*register))
    };
    let others = found.rules.nonvolatile.iter().copied().filter(is_of_none);
    let mut registers: Vec<_> = others.filter(|register| *register != Gpr::Rsp).collect();
    registers.push(Gpr::Rsp);
    let is_other = |start: Registers| start.get(Gpr::Rax) != value(Gpr::Rax);
    registers.extend(found.rules.start.filter(|start| is_other(*start)).map(|_| Gpr::Rax));
    registers.sort();
    registers.into_iter().map(|register| (register, value(register))).collect()
}

/// Returns the registers that have the value that the walk started with instead of the
/// activation's.
fn stale(frame_report: &FoundFrameReport, found: &SnapshotResult) -> Stale {
    let (Some(context), Some(true_registers), Some(start)) =
        (frame_report.frame_report.context, frame_report.true_registers, found.rules.start)
    else {
        return Stale::None;
    };
    let value = |register: Gpr| context.registers.get(register);
    let is_started = |register: Gpr| value(register) == start.get(register);
    let is_stale =
        |register: &Gpr| value(*register) != true_registers.get(*register) && is_started(*register);
    let nonvolatile = found.rules.nonvolatile;
    let mut stale: Vec<_> = nonvolatile.iter().copied().filter(is_stale).collect();
    stale.sort();
    if stale.is_empty() {
        return Stale::None;
    }
    let all = nonvolatile.iter().all(|register| *register == Gpr::Rbp || is_started(*register));
    if all && !stale.contains(&Gpr::Rbp) { Stale::All } else { Stale::Only(stale) }
}
