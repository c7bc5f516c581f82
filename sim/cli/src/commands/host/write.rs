//! The account of a run, for people.

use super::account::{Account, Calls, Counted, Verdict};
use super::journal::Walked;
use crate::render::console::{BAD, DIM, GOOD, HEAD};
use crate::render::style::Style;
use crate::render::words::{brackets, counted};
use crate::render::wrap::{wrapped, write_wrapped};
use std::io::{self, Write};

/// Most walks that are printed, and most lines of what the profiler printed.
const WALKS: usize = 20;
const PRINTED: usize = 40;
/// Width of the column of names.
const NAME: usize = 40;

impl Verdict {
    const fn style(self) -> Style {
        match self {
            Self::Clean => GOOD,
            _ => BAD,
        }
    }

    /// Returns the verdict in a sentence.
    pub(super) const fn sentence(self) -> &'static str {
        match self {
            Self::Clean => "it was loaded, and nothing was wrong",
            Self::Findings => "it was loaded, and something was wrong",
            Self::NotSimulated => "it called what is not simulated: its answer is not a CLR's",
            Self::Unseen => "it was loaded, and something was not looked at",
            Self::Threads => {
                "it started a thread: --schedules N executes interleavings of its threads"
            }
            Self::Refused => "it was not loaded",
            Self::Unloadable => "its library cannot be loaded",
            Self::ProcessEnded => "the simulated process ended, or waits for ever",
            Self::Stuck => "the program cannot go on",
            Self::Died => "it ended its process",
            Self::Hung => "it did not return",
            Self::Limit => "its process used more than it may",
        }
    }
}

impl Account {
    /// Writes the account.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEAD}{} on {}{HEAD:#}", self.library, self.runtime)?;
        let style = self.verdict.style();
        write!(out, "{style}{}{style:#}: ", self.verdict.word())?;
        let because = self.because.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let sentence = format!("{}{because}", self.verdict.sentence());
        write_wrapped(out, 2, Style::new(), &sentence, "")?;
        self.write_findings(out)?;
        self.write_steps(out)?;
        write_calls("callbacks", &self.callbacks, out)?;
        write_calls("calls", &self.calls, out)?;
        self.write_refusals(out)?;
        let of = "not simulated: the profiler called these, and got E_NOTIMPL";
        write_counts(of, &self.not_simulated, out)?;
        let of = "not raised: the program has these callbacks, and they are not simulated";
        write_counts(of, &self.not_raised, out)?;
        head("kept until the end of the process", self.kept.is_empty(), out)?;
        for kept in &self.kept {
            writeln!(out, "  {kept}")?;
        }
        write_walks(&self.walks, out)?;
        if self.processes_left > 0 {
            let left = counted(self.processes_left as u64, "process", "processes");
            writeln!(out, "{HEAD}ended after it:{HEAD:#} {left} that it had started")?;
        }
        self.write_printed(out)?;
        writeln!(out)
    }

    fn write_findings(&self, out: &mut dyn Write) -> io::Result<()> {
        head("found", self.findings.is_empty(), out)?;
        for found in &self.findings {
            write!(out, "  {BAD}{}{BAD:#} ", found.finding)?;
            write_wrapped(out, 4, Style::new(), &found.text, "")?;
        }
        Ok(())
    }

    fn write_steps(&self, out: &mut dyn Write) -> io::Result<()> {
        head("loading", self.steps.is_empty(), out)?;
        for step in &self.steps {
            writeln!(out, "  {:NAME$}  {}", step.name, step.result)?;
        }
        match self.references_left {
            Some(0) | None => Ok(()),
            Some(left) => writeln!(out, "  {:NAME$}  {left}", "the profiler's own references left"),
        }
    }

    fn write_refusals(&self, out: &mut dyn Write) -> io::Result<()> {
        head("refused", self.refusals.is_empty(), out)?;
        for refusal in &self.refusals {
            writeln!(out, "  {}: {}", refusal.method, refusal.result)?;
            if let Some(why) = &refusal.why {
                write!(out, "    ")?;
                write_wrapped(out, 4, Style::new(), why, &brackets(&refusal.clauses))?;
            }
        }
        Ok(())
    }

    fn write_printed(&self, out: &mut dyn Write) -> io::Result<()> {
        head("printed by the profiler", self.printed.is_empty(), out)?;
        for line in self.printed.lines().take(PRINTED) {
            writeln!(out, "  {line}")?;
        }
        match self.printed.lines().count().saturating_sub(PRINTED) {
            0 => Ok(()),
            more => writeln!(out, "  {more} more lines are in the output of --json"),
        }
    }
}

/// Writes walks, equal ones once.
pub(super) fn write_walks(walks: &[Walked], out: &mut dyn Write) -> io::Result<()> {
    // Equal walks are written once.
    let mut groups: Vec<(&Walked, usize)> = Vec::new();
    for walk in walks {
        match groups.iter_mut().find(|(one, _)| one.is_like(walk)) {
            Some((_, count)) => *count += 1,
            None => groups.push((walk, 1)),
        }
    }
    head("walks", groups.is_empty(), out)?;
    for (walk, count) in groups.iter().take(WALKS) {
        walk.write(*count, out)?;
    }
    match groups.len().saturating_sub(WALKS) {
        0 => Ok(()),
        more => writeln!(out, "  {more} more are in the output of --json"),
    }
}

impl Walked {
    /// Returns true if another walk has the same call, frames and result.
    fn is_like(&self, other: &Self) -> bool {
        (&self.within, self.flags, self.seeded, &self.result, &self.frames)
            == (&other.within, other.flags, other.seeded, &other.result, &other.frames)
    }

    fn write(&self, count: usize, out: &mut dyn Write) -> io::Result<()> {
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        let within = self.within.as_deref().unwrap_or("no callback");
        let seed = if self.seeded { "with a seed" } else { "without a seed" };
        let flags = self.flags;
        writeln!(
            out,
            "  in {within}, {seed}, infoFlags {flags}: {HEAD}{}{HEAD:#}{times}",
            self.result
        )?;
        for frame in &self.frames {
            let mark = if frame.marker { "*" } else { " " };
            writeln!(out, "   {mark} {}", frame.place)?;
        }
        for line in &self.story {
            let indent = 6 + 2 * line.depth;
            write!(out, "{:indent$}", "")?;
            write_wrapped(out, indent, DIM, &line.text, &brackets(&line.clauses))?;
        }
        Ok(())
    }
}

fn head(name: &str, is_empty: bool, out: &mut dyn Write) -> io::Result<()> {
    if is_empty { Ok(()) } else { writeln!(out, "{HEAD}{name}{HEAD:#}") }
}

fn write_calls(name: &str, calls: &[Calls], out: &mut dyn Write) -> io::Result<()> {
    head(name, calls.is_empty(), out)?;
    for call in calls {
        let results: Vec<_> = match call.results.as_slice() {
            [one] if one.name == "S_OK" => Vec::new(),
            [one] => vec![one.name.clone()],
            all => all.iter().map(|one| format!("{} {}", one.name, one.count)).collect(),
        };
        let line = format!("  {:NAME$}  {:>4}  {}", call.name, call.count, results.join(", "));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn write_counts(name: &str, counts: &[Counted], out: &mut dyn Write) -> io::Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    for line in wrapped(name, 78) {
        writeln!(out, "{HEAD}{line}{HEAD:#}")?;
    }
    for one in counts {
        writeln!(out, "  {:NAME$}  {:>4}", one.name, one.count)?;
    }
    Ok(())
}
