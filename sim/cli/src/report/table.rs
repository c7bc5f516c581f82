//! The report of a run as text and as JSON, written as the results come.

use crate::input::{PROGRAM, RECORDINGS};
use crate::render::console::{BAD, Console, DIM, GOOD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::words::in_words;
use crate::report::recording;
use crate::report::runtimes::Runtimes;
use crate::report::{Counts, FileReport};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of printed reasons for skipped walks.
const REASONS: usize = 5;

/// Descriptions of the kinds of files.
const KINDS: [(&str, &str); 5] = [
    (recording::KIND, "calls of DoStackSnapshot recorded in real CLRs, made again"),
    ("stack", "stacks placed by hand, walked on each runtime as their texts expect"),
    ("program", "programs written as text, executed, and walked where they stop"),
    ("win64-fuzz", "artificial unwinds, with the answers of Windows' unwinders"),
    ("win64-vectors", "unwinds at each instruction of real code, stepped on a real processor"),
];

/// The results of all cases.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Total {
    kind: &'static str,
    /// Number of replayed files.
    files: usize,
    /// Number of files that could not be read.
    pub(crate) unreadable: usize,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Number of snapshots of the texts.
    snapshots: usize,
    /// Number of mixed walks of the texts.
    mixed_walks: usize,
    /// Number of searches of histories of the texts.
    searches: usize,
    /// The runtimes of snapshots, mixed walks and searches.
    runtimes: Runtimes,
}

/// Writes the report as it comes.
pub(crate) struct Reporter {
    json: bool,
    rules: &'static str,
    /// True if the embedded fixtures are run, which the reader may not know.
    embedded: bool,
    total: Total,
    /// Groups of files with a shared line that is not written yet.
    groups: BTreeMap<Key, Group>,
    /// Reports with failures and skipped walks for the end of the table.
    files: Vec<FileReport>,
}

/// The key of files that share a line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The recorded runtime, for recordings.
    generation: Option<String>,
    /// Pattern of the files' names.
    pattern: String,
    kind: &'static str,
}

/// Files that share a line.
#[derive(Default)]
struct Group {
    counts: Counts,
    files: usize,
    snapshots: usize,
    mixed_walks: usize,
    searches: usize,
    first: String,
}

impl Key {
    /// Returns true if both are keys of recordings or both of texts.
    const fn is_beside(&self, other: &Self) -> bool {
        self.generation.is_some() == other.generation.is_some()
    }
}

impl Reporter {
    /// Creates the report of a replay under these rules.
    pub(crate) fn new(json: bool, rules: &'static str, embedded: bool) -> Self {
        let total = Total { kind: "total", ..Total::default() };
        Self { json, rules, embedded, total, groups: BTreeMap::new(), files: Vec::new() }
    }

    /// Writes the head of the table.
    pub(crate) fn begin(&self, console: &mut Console<'_>) -> Result<(), CliError> {
        if !self.json {
            writeln!(console.out, "Replaying under {} rules:\n", self.rules)?;
            writeln!(
                console.out,
                "{DIM}        {:13}  {:>7}  {:>7}  {:>7}  {:>7}  file{DIM:#}",
                "kind", "cases", "passed", "failed", "skipped"
            )?;
        }
        Ok(())
    }

    /// Adds the report of a file.
    pub(crate) fn file(
        &mut self,
        file: FileReport,
        console: &mut Console<'_>,
    ) -> Result<(), CliError> {
        self.total.files += 1;
        self.total.counts += file.counts;
        if let Some(summary) = &file.scenario {
            self.total.snapshots += summary.snapshots;
            self.total.mixed_walks += summary.mixed_walks;
            self.total.searches += summary.searches;
            let Runtimes(all) = &mut self.total.runtimes;
            *all = all.with(summary.runtimes.0);
        }
        if self.json {
            write_json(&file, console)?;
        } else {
            let key = self.key(&file);
            let ends = |other: &Key| key.as_ref().is_none_or(|key| !key.is_beside(other));
            if self.groups.keys().any(ends) {
                self.write_groups(console)?;
            }
            if let Some(key) = key {
                let group = self.groups.entry(key).or_default();
                group.counts += file.counts;
                group.files += 1;
                if let Some(summary) = &file.scenario {
                    group.snapshots += summary.snapshots;
                    group.mixed_walks += summary.mixed_walks;
                    group.searches += summary.searches;
                }
                group.first.clone_from(&file.file);
            } else {
                write_row(file.kind, file.counts, &file.file, console)?;
            }
            self.files.push(file);
        }
        // A reader at the terminal sees each line at once.
        Ok(console.out.flush()?)
    }

    /// Returns the key of a file without a line of its own: of recordings that pass, and of
    /// embedded texts.
    fn key(&self, file: &FileReport) -> Option<Key> {
        let (folder, name) = file.file.rsplit_once('/').unwrap_or(("", &file.file));
        let generation = file.walks.as_ref().map(|walks| walks.generation.clone());
        let wanted = generation.is_some() || self.embedded && name.ends_with(PROGRAM);
        if file.counts.failed > 0 || !wanted {
            return None;
        }
        let end = RECORDINGS.into_iter().chain([PROGRAM]).find(|end| name.ends_with(end))?;
        let slash = if folder.is_empty() { "" } else { "/" };
        Some(Key { generation, pattern: format!("{folder}{slash}*{end}"), kind: file.kind })
    }

    /// Writes the pending groups. Called if a file does not belong to them.
    fn write_groups(&mut self, console: &mut Console<'_>) -> Result<(), CliError> {
        for (key, group) in std::mem::take(&mut self.groups) {
            let Group { counts, files, snapshots, mixed_walks, searches, first } = group;
            let Key { generation, pattern, kind } = key;
            let of = generation.map(|it| format!(" of {it}")).unwrap_or_default();
            let with = |count: usize, what: &str, many: &str| match count {
                0 => String::new(),
                1 => format!(", 1 {what}"),
                count => format!(", {count} {what}{many}"),
            };
            let with = with(snapshots, "snapshot", "s")
                + &with(mixed_walks, "mixed walk", "s")
                + &with(searches, "search", "es");
            let name = match files {
                1 => first,
                files => format!("{pattern}{of} ({files} files{with})"),
            };
            write_row(kind, counts, &name, console)?;
        }
        Ok(())
    }

    /// Writes the reasons why walks were skipped, the most frequent first.
    fn write_reasons(&self, console: &mut Console<'_>) -> Result<(), CliError> {
        let mut counts = BTreeMap::new();
        for walk in self.files.iter().filter_map(|file| file.walks.as_ref()) {
            for skipped in &walk.skipped_walks {
                *counts.entry(skipped.reason.as_str()).or_insert(0_usize) += 1;
            }
        }
        let mut reasons: Vec<_> = counts.into_iter().collect();
        reasons.sort_by_key(|(_, count)| Reverse(*count));
        if !reasons.is_empty() {
            writeln!(console.out, "\nskipped walks, by what their recordings say:")?;
        }
        let rest = reasons.split_off(reasons.len().min(REASONS));
        for (reason, count) in reasons {
            writeln!(console.out, "{count:>7}  {reason}")?;
        }
        if !rest.is_empty() {
            let count: usize = rest.iter().map(|(_, count)| count).sum();
            writeln!(console.out, "{count:>7}  for other reasons (--json tells them)")?;
        }
        Ok(())
    }

    /// Writes the descriptions of the kinds of files.
    fn write_kinds(&self, console: &mut Console<'_>) -> Result<(), CliError> {
        let present = |kind: &str| self.files.iter().any(|file| file.kind == kind);
        let kinds: Vec<_> = KINDS.iter().filter(|(kind, _)| present(kind)).collect();
        if !kinds.is_empty() {
            writeln!(console.out, "\nwhat they are:")?;
        }
        for (kind, meaning) in kinds {
            writeln!(console.out, "  {kind:13}  {meaning}")?;
        }
        Ok(())
    }

    /// Adds a file that could not be read.
    pub(crate) fn unreadable(&mut self, error: &CliError, console: &mut Console<'_>) {
        self.total.unreadable += 1;
        console.print_error(error);
    }

    /// Writes the failures and the totals.
    pub(crate) fn finish(mut self, console: &mut Console<'_>) -> Result<Total, CliError> {
        if self.json {
            write_json(&self.total, console)?;
            return Ok(self.total);
        }
        self.write_groups(console)?;
        for file in &self.files {
            for case in &file.failures {
                case.write(&file.file, console.out)?;
            }
            let explained: usize = file.failures.iter().map(|failure| failure.cases()).sum();
            let silent = file.counts.failed.saturating_sub(explained);
            if silent > 0 {
                writeln!(
                    console.out,
                    "\n{} more failed in {} (--max-failures tells how many are explained)",
                    silent, file.file
                )?;
            }
        }
        self.write_reasons(console)?;
        if self.embedded {
            self.write_kinds(console)?;
        }
        let Total { files, unreadable, counts, .. } = &self.total;
        let Counts { cases, passed, failed, skipped } = counts;
        let (style, word) =
            if *failed + *unreadable == 0 { (GOOD, "passed") } else { (BAD, "failed") };
        let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        write!(
            console.out,
            "\n{style}{word}{style:#}: {files}, {cases} cases: {passed} passed, {failed} failed, \
             {skipped} skipped (no answer is expected)"
        )?;
        if *unreadable > 0 {
            let s = if *unreadable == 1 { "" } else { "s" };
            write!(console.out, "; {unreadable} file{s} could not be read")?;
        }
        writeln!(console.out)?;
        let made = [
            ("snapshots", self.total.snapshots),
            ("mixed walks", self.total.mixed_walks),
            ("searches of histories", self.total.searches),
        ];
        let made = made.into_iter().filter(|(_, count)| *count > 0);
        let made: Vec<_> = made.map(|(what, count)| format!("{what}: {count}")).collect();
        if !made.is_empty() {
            let texts = self.files.iter().filter(|file| file.scenario.is_some()).count();
            writeln!(
                console.out,
                "{} in {texts} {}, made on {}: {}",
                made.join(", "),
                if texts == 1 { "text" } else { "texts" },
                match self.total.runtimes.count() {
                    1 => "1 runtime".to_owned(),
                    count => format!("{count} runtimes"),
                },
                in_words(self.total.runtimes.0)
            )?;
        }
        Ok(self.total)
    }
}

/// Writes a line of the table.
fn write_row(
    kind: &str,
    counts: Counts,
    name: &str,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let Counts { cases, passed, failed, skipped } = counts;
    let (style, word) = if failed == 0 { (GOOD, "ok") } else { (BAD, "FAILED") };
    Ok(writeln!(
        console.out,
        "{style}{word:6}{style:#}  {kind:13}  {cases:>7}  {passed:>7}  {failed:>7}  \
         {skipped:>7}  {name}"
    )?)
}
