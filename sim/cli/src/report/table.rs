//! The report of a run as text and as JSON, written as the results come.

use crate::input::{PROGRAM, RECORDINGS};
use crate::render::console::{BAD, Console, DIM, GOOD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::words::{counted, in_words};
use crate::render::wrap::wrapped;
use crate::report::runtimes::Runtimes;
use crate::report::snapshot::Made;
use crate::report::{Counts, FileReport};
use crate::report::{recording, sequence};
use clr_runtime::generation::{Generation, Generations};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of printed reasons for skipped walks.
const REASONS: usize = 5;

/// Names of the runtimes in the summary are wrapped at this width.
const NAMES: usize = 86;

/// The next commands to try, in the summary.
const NEXT: [(&str, &str); 4] = [
    ("matrix gallery/seeds/c-039-stubs.kdl", "one scenario on all runtimes, and why"),
    ("explore gallery/hazards/h-08-callback-takes-a-lock.kdl", "find a profiler's deadlock"),
    ("new my.kdl", "write a stack of your own"),
    ("run", "this run, file by file"),
];

/// A form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// A line for each file or group of files, and totals.
    Table,
    /// A line for each kind of case, for readers who do not know the tool.
    Summary,
    /// A JSON object for each file, and a total.
    Json,
}

/// Descriptions of the kinds of files.
const KINDS: [(&str, &str); 6] = [
    (
        sequence::KIND,
        "sequences of callbacks recorded in real CLRs, compared with what programs make",
    ),
    (recording::KIND, "calls of DoStackSnapshot recorded in real CLRs, replayed"),
    ("stack", "stacks placed by hand, walked on each runtime as their scenarios expect"),
    ("program", "programs written as text, executed, and walked where they stop"),
    ("win64-fuzz", "artificial unwinds, with the answers of Windows' unwinders"),
    ("win64-vectors", "unwinds at each instruction of real code, stepped on a real processor"),
];

/// Reasons for skipped cases, with the kinds of files to which they apply.
const SKIPPED: [(&[&str], &str); 3] = [
    (
        &[sequence::KIND],
        "sequences that are known to differ, with the reasons in sequences/known.tsv",
    ),
    (
        &[recording::KIND],
        "recorded calls whose recordings lack state or results (clrsim run lists the reasons)",
    ),
    (
        &["win64-fuzz", "win64-vectors"],
        "unwinds on which reference unwinders do not agree with the execution or with each other",
    ),
];

/// The results of all cases.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Total {
    kind: &'static str,
    /// Number of replayed files.
    files: usize,
    /// Number of files that could not be read.
    pub(crate) unreadable: usize,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Number of replayable recorded walks with state that was inferred from their results.
    inferred_walks: usize,
    /// The cases of the texts.
    #[serde(flatten)]
    made: Made,
    /// The runtimes of snapshots, mixed walks and searches.
    runtimes: Runtimes,
    /// The runtimes of `--on` on which no text expects anything.
    unchecked: Runtimes,
    /// Number of clauses of searches that no search can judge.
    unjudged_clauses: usize,
}

impl Total {
    /// Returns true if no case has an answer to check, or none on one of the chosen runtimes.
    pub(crate) fn checks_nothing(&self) -> bool {
        let is_empty = self.counts.passed + self.counts.failed == 0 && self.unreadable == 0;
        is_empty || !self.unchecked.0.is_empty()
    }
}

/// Writes the report as it comes.
pub(crate) struct Reporter {
    view: View,
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
    made: Made,
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
    pub(crate) fn new(
        view: View,
        rules: &'static str,
        embedded: bool,
        on: Option<Generations>,
    ) -> Self {
        let unchecked = Runtimes(on.unwrap_or_default());
        let total = Total { kind: "total", unchecked, ..Total::default() };
        Self { view, rules, embedded, total, groups: BTreeMap::new(), files: Vec::new() }
    }

    /// Writes the head of the table, once.
    fn begin(&self, console: &mut Console<'_>) -> Result<(), CliError> {
        if self.view == View::Table && self.total.files == 0 {
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
        self.begin(console)?;
        self.total.files += 1;
        self.total.counts += file.counts;
        self.total.inferred_walks += file.walks.as_ref().map_or(0, |walks| walks.inferred);
        if let Some(summary) = &file.scenario {
            self.total.made += summary.made;
            let Runtimes(all) = &mut self.total.runtimes;
            *all = all.with(summary.runtimes.0);
            let Runtimes(unchecked) = &mut self.total.unchecked;
            *unchecked = unchecked.without(summary.checked);
            self.total.unjudged_clauses += summary.unjudged;
        }
        match self.view {
            View::Json => write_json(&file, console)?,
            View::Summary => self.files.push(file),
            View::Table => self.add(file, console)?,
        }
        // A reader at the terminal sees each line at once.
        Ok(console.out.flush()?)
    }

    /// Writes the line of a file, or adds the file to a group.
    fn add(&mut self, file: FileReport, console: &mut Console<'_>) -> Result<(), CliError> {
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
                group.made += summary.made;
            }
            group.first.clone_from(&file.file);
        } else {
            write_row(file.kind, file.counts, &file.file, console)?;
        }
        self.files.push(file);
        Ok(())
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
            let Group { counts, files, made, first } = group;
            let Key { generation, pattern, kind } = key;
            let of = generation.map(|it| format!(" of {it}")).unwrap_or_default();
            let with = |count: usize, what: &str, many: &str| match count {
                0 => String::new(),
                count => format!(", {}", counted(count, what, many)),
            };
            let with = with(made.snapshots, "snapshot", "snapshots")
                + &with(made.mixed_walks, "mixed walk", "mixed walks")
                + &with(made.searches, "search", "searches");
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
            for skipped in &walk.skipped {
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
            writeln!(console.out, "{count:>7}  for other reasons (--json lists them)")?;
        }
        Ok(())
    }

    /// Writes the number of recorded walks whose replay is not an independent test.
    fn write_inferred(&self, console: &mut Console<'_>) -> Result<(), CliError> {
        let inferred = self.total.inferred_walks;
        let recordings = self.files.iter().filter(|file| file.walks.is_some());
        let replayed: usize = recordings.map(|file| file.counts.cases - file.counts.skipped).sum();
        if inferred > 0 {
            writeln!(
                console.out,
                "\ninferred: {inferred} of the {replayed} replayed walks rest on state that was \
                 deduced from their results"
            )?;
        }
        Ok(())
    }

    /// Writes which recordings end within a line.
    fn write_cut(&self, console: &mut Console<'_>) -> Result<(), CliError> {
        for file in &self.files {
            let cut = file.walks.as_ref().and_then(|walks| walks.cut);
            if let Some(line) = cut {
                let name = &file.file;
                writeln!(
                    console.out,
                    "\ncut: {name} ends within line {line}; the calls before it were replayed"
                )?;
            }
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

    /// Writes the counts of each kind of case, the reasons for skipped cases and the runtimes.
    fn write_summary(&self, console: &mut Console<'_>) -> Result<(), CliError> {
        writeln!(
            console.out,
            "clr-sim replayed the evidence that comes with it: unwinds and stack walks with known answers."
        )?;
        writeln!(
            console.out,
            "\n{DIM}{:13}  {:>6}  {:>6}  {:>6}  {:>7}{DIM:#}",
            "kind", "cases", "passed", "failed", "skipped"
        )?;
        for (kind, meaning) in KINDS {
            let mut counts = Counts::default();
            for file in self.files.iter().filter(|file| file.kind == kind) {
                counts += file.counts;
            }
            let Counts { cases, passed, failed, skipped } = counts;
            let style = if failed == 0 { GOOD } else { BAD };
            writeln!(
                console.out,
                "{kind:13}  {cases:>6}  {style}{passed:>6}  {failed:>6}{style:#}  {skipped:>7}  {meaning}"
            )?;
        }
        writeln!(console.out, "\nskipped, because no answer is known:")?;
        for (kinds, reason) in SKIPPED {
            let files = self.files.iter().filter(|file| kinds.contains(&file.kind));
            let count: usize = files.map(|file| file.counts.skipped).sum();
            writeln!(console.out, "{count:>7}  {reason}")?;
        }
        self.write_inferred(console)?;
        self.write_cut(console)?;
        let names: Vec<_> = self.total.runtimes.0.iter().map(Generation::name).collect();
        let lines = wrapped(&names.join(", "), NAMES);
        writeln!(console.out, "\nruntimes:  {}", lines.join("\n           "))?;
        Ok(())
    }

    /// Adds a file that could not be read.
    pub(crate) fn unreadable(&mut self, error: &CliError, console: &mut Console<'_>) {
        self.total.unreadable += 1;
        console.print_error(error);
    }

    /// Writes the failures and the totals.
    pub(crate) fn finish(mut self, console: &mut Console<'_>) -> Result<Total, CliError> {
        if self.total.made.is_empty() {
            // The runtimes are those of texts.
            self.total.unchecked = Runtimes::default();
        }
        if self.view == View::Json {
            write_json(&self.total, console)?;
            return Ok(self.total);
        }
        self.write_groups(console)?;
        for file in &self.files {
            file.write_failures(console.out)?;
        }
        if self.view == View::Summary {
            self.write_summary(console)?;
        } else {
            self.write_reasons(console)?;
            self.write_inferred(console)?;
            self.write_cut(console)?;
            if self.embedded {
                self.write_kinds(console)?;
            }
        }
        let Total { files, unreadable, counts, .. } = &self.total;
        let Counts { cases, passed, failed, skipped } = counts;
        let (style, word) = match *failed + *unreadable {
            0 if self.total.checks_nothing() => (BAD, "nothing was checked"),
            0 => (GOOD, "passed"),
            _ => (BAD, "failed"),
        };
        if *files == 0 && *unreadable > 0 {
            let files = counted(*unreadable, "file", "files");
            writeln!(console.out, "{style}{word}{style:#}: {files} could not be read")?;
            return Ok(self.total);
        }
        let files = counted(*files, "file", "files");
        let sequences = self.files.iter().filter(|file| file.kind == sequence::KIND);
        let differing: usize = sequences.map(|file| file.counts.skipped).sum();
        let skipped = skipped - differing;
        write!(
            console.out,
            "\n{style}{word}{style:#}: {files}, {cases} cases: {passed} passed, {failed} failed, \
             {skipped} skipped (no answer is expected)"
        )?;
        if differing > 0 {
            write!(console.out, ", {differing} known to differ")?;
        }
        if !self.total.unchecked.0.is_empty() {
            write!(console.out, "; nothing was checked on {}", in_words(self.total.unchecked.0))?;
        }
        if *unreadable > 0 {
            let files = counted(*unreadable, "file", "files");
            write!(console.out, "; {files} could not be read")?;
        }
        writeln!(console.out)?;
        let made = [
            ("snapshots", self.total.made.snapshots),
            ("mixed walks", self.total.made.mixed_walks),
            ("searches of interleavings", self.total.made.searches),
        ];
        let made = made.into_iter().filter(|(_, count)| *count > 0);
        let made: Vec<_> = made.map(|(what, count)| format!("{what}: {count}")).collect();
        if !made.is_empty() {
            let texts = self.files.iter().filter(|file| file.scenario.is_some()).count();
            writeln!(
                console.out,
                "{} in {}, made on {}: {}",
                made.join(", "),
                counted(texts, "scenario", "scenarios"),
                counted(self.total.runtimes.count(), "runtime", "runtimes"),
                in_words(self.total.runtimes.0)
            )?;
        }
        if let unjudged @ 1.. = self.total.unjudged_clauses {
            let clauses = counted(unjudged, "clause", "clauses");
            let why = "no decision of a call names them";
            writeln!(console.out, "not judged: {clauses} of searches ({why})")?;
        }
        if self.view == View::Summary {
            writeln!(
                console.out,
                "\nnext (cargo run --profile quick -- COMMAND, or clrsim COMMAND if installed):"
            )?;
            for (command, meaning) in NEXT {
                writeln!(console.out, "  clrsim {command:54}  {meaning}")?;
            }
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
    let (style, word) = match failed {
        0 if passed == 0 => (DIM, "none"),
        0 => (GOOD, "ok"),
        _ => (BAD, "FAILED"),
    };
    Ok(writeln!(
        console.out,
        "{style}{word:6}{style:#}  {kind:13}  {cases:>7}  {passed:>7}  {failed:>7}  \
         {skipped:>7}  {name}"
    )?)
}
