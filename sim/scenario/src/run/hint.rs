//! Hints for expectations that have no word about what differs: the part of a text that states it.

use crate::model::{ExpectedFrameReport, ExpectedSnapshot};
use crate::run::snapshot_result::{FoundFrameReport, SnapshotDifference, SnapshotResult};
use clr_unwind::Gpr;

impl ExpectedSnapshot {
    /// Returns what to add to the expectation for differences in registers and ContextFlags that it
    /// does not mention, one sentence for each addition.
    #[must_use]
    pub fn hints(&self, found: &SnapshotResult, differences: &[SnapshotDifference]) -> Vec<String> {
        let mut hints: Vec<String> = Vec::new();
        for difference in differences {
            let hint = match *difference {
                SnapshotDifference::ContextFlags { frame_report, found: flags, .. } => {
                    self.flags_hint(frame_report, flags, found)
                }
                SnapshotDifference::Register { frame_report, register, .. } => {
                    self.registers_hint(frame_report, register, found, differences)
                }
                _ => None,
            };
            hints.extend(hint.filter(|hint| !hints.contains(hint)));
        }
        hints
    }

    /// Returns the expected callback that a callback is, if they are matched by their order.
    fn matched<'e>(
        &'e self,
        callback: usize,
        found: &SnapshotResult,
    ) -> Option<(&'e ExpectedFrameReport, FoundFrameReport)> {
        let made = found.frame_reports.get(callback)?;
        let expected = if self.others {
            self.frames.iter().find(|expected| made.is_at(expected))?
        } else {
            self.frames.get(callback).filter(|expected| made.is_at(expected))?
        };
        Some((expected, made.clone()))
    }

    fn flags_hint(&self, callback: usize, flags: u32, found: &SnapshotResult) -> Option<String> {
        let (frame, _) = self.matched(callback, found)?;
        if self.context_flags.is_some() || frame.context_flags.is_some() {
            return None;
        }
        let (value, meaning) = if flags == found.rules.own_flags {
            ("\"own\"".to_owned(), ", the flags of a context that the runtime takes")
        } else {
            (format!("{flags:#x}"), "")
        };
        Some(format!("`context-flags={value}` on `expect` states these ContextFlags{meaning}"))
    }

    /// Returns the hint for all registers of a callback that differ.
    fn registers_hint(
        &self,
        callback: usize,
        register: Gpr,
        found: &SnapshotResult,
        differences: &[SnapshotDifference],
    ) -> Option<String> {
        let (frame, made) = self.matched(callback, found)?;
        let is_mentioned = |register: Gpr| {
            frame.registers.iter().any(|(given, _)| *given == register)
                || frame.stale.contains(register)
        };
        if is_mentioned(register) {
            return None;
        }
        let context = made.frame_report.context?.registers;
        let start = found.rules.start;
        let is_stale = |register: Gpr| {
            found.rules.nonvolatile.contains(&register)
                && start.is_some_and(|start| start.get(register) == context.get(register))
        };
        let what = if frame.marker { "marker" } else { "frame" };
        let place = &made.frame_report.label;
        if !is_stale(register) {
            let (name, value) = (register.name(), context.get(register));
            return Some(format!("`{name}={value:#x}` on `{what}` {place} states this value"));
        }
        let differs = |register: &Gpr| {
            let is_it = |difference: &SnapshotDifference| match difference {
                SnapshotDifference::Register { frame_report, register: other, .. } => {
                    *frame_report == callback && other == register
                }
                _ => false,
            };
            differences.iter().any(is_it) && is_stale(*register) && !is_mentioned(*register)
        };
        let all = found.rules.nonvolatile.iter().copied();
        let stale: Vec<_> = all.clone().filter(differs).collect();
        let is_all = all.filter(|register| *register != Gpr::Rbp).all(is_stale)
            && !stale.contains(&Gpr::Rbp);
        let value = if is_all {
            "#true".to_owned()
        } else {
            let names: Vec<_> = stale.iter().map(|register| register.name()).collect();
            format!("\"{}\"", names.join(" "))
        };
        Some(format!(
            "`stale={value}` on `{what}` {place} states that the context has the values there that \
             the walk started with"
        ))
    }
}
