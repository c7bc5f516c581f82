//! Interleavings in reports: their strings, and their failures.

use crate::render::console::{BAD, Console, DIM, HEAD};
use crate::render::error::CliError;
use crate::render::shell::quoted;
use crate::render::style::Style;
use anstyle::AnsiColor;
use clr_explore::headline;
use clr_explore::{BlockReason, Edge, History, LockName, ScheduleString, Verdict};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploration, Keyword as _, Scenario, WaitKind};
use clr_story::Hazard;
use clr_story::story;
use clr_story::timeline::{TimelineRow, Tone};
use serde::Serialize;
use std::io::{self, Write};

/// Returns the settings with which a text is searched by default.
pub(crate) fn usual(scenario: &Scenario) -> Exploration {
    scenario.explore.first().cloned().unwrap_or_default()
}

/// Returns the flags of `clrsim replay` for an interleaving that was found with other settings than the
/// text's.
pub(crate) fn flags(
    usual: &Exploration,
    found: &Exploration,
    breaks_rule: bool,
) -> Vec<&'static str> {
    let rules = (breaks_rule && !usual.rules).then_some("--rules");
    let instructions = match (usual.instructions, found.instructions) {
        (false, true) => Some("--instructions"),
        (true, false) => Some("--instructions=false"),
        _ => None,
    };
    rules.into_iter().chain(instructions).collect()
}

/// Returns the flags of `clrsim replay` for an interleaving with this verdict.
pub(crate) fn flags_of(
    usual: &Exploration,
    found: &Exploration,
    verdict: &Verdict,
) -> Vec<&'static str> {
    flags(usual, found, matches!(verdict, Verdict::Broken { .. }))
}

/// Returns the arguments of `clrsim replay` that replay an interleaving.
pub(crate) fn replay_arguments(flags: &[&str], replay: &str) -> String {
    let replay = quoted(replay);
    flags.iter().copied().chain([replay.as_str()]).collect::<Vec<_>>().join(" ")
}

/// Returns the string of an interleaving: the text, the runtime, the schedule, and the digest of the text.
pub(crate) fn name(
    file: &str,
    scenario: &Scenario,
    generation: Generation,
    schedule: &ScheduleString,
) -> String {
    format!("{file}@{generation}:{schedule}:{}", scenario.digest())
}

/// Returns the style of a tone.
pub(crate) const fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Dim => DIM,
        Tone::Head => HEAD,
        Tone::Running => Style::of(AnsiColor::Green),
        Tone::Waiting => Style::of(AnsiColor::Yellow),
        Tone::Suspended => Style::of(AnsiColor::Cyan),
        Tone::Callback => Style::of(AnsiColor::Blue),
        Tone::Lock => Style::of(AnsiColor::Magenta),
        Tone::Bad => BAD,
    }
}

/// Writes a row with colours.
pub(crate) fn write_row(row: &TimelineRow, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    if row.to_string().is_empty() {
        return writeln!(out);
    }
    write!(out, "{:indent$}", "")?;
    for span in &row.spans {
        let style = style(span.tone);
        write!(out, "{style}{}{style:#}", span.text)?;
    }
    writeln!(out)
}

/// Prints the story of a failed interleaving.
pub(crate) fn write_failure(
    verdict: &Verdict,
    history: &History,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    for row in story(verdict, history) {
        write_row(&row, 2, console.out)?;
    }
    Ok(())
}

/// A failed interleaving, for JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Failed {
    /// Verdict in one word.
    pub(crate) ends: String,
    /// Verdict in one sentence.
    text: String,
    /// Key that interleavings with the same fault share.
    key: String,
    waits: Vec<Wait>,
    hazard: Option<String>,
    clauses: Vec<String>,
    avoided_by: Option<&'static str>,
    story: Vec<String>,
}

/// A thread that waits for another one.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Wait {
    thread: String,
    /// Reason, as texts spell it.
    why: &'static str,
    /// Name of the lock in texts, if the thread waits for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    #[serde(rename = "for")]
    for_whom: String,
}

impl Wait {
    fn new(edge: &Edge, history: &History) -> Self {
        let lock = match edge.why {
            BlockReason::Lock(LockName::Runtime(lock)) => Some(lock.name().to_owned()),
            BlockReason::Lock(lock @ LockName::Profiler(index)) => {
                let name = history.locks.get(index as usize).cloned();
                Some(name.unwrap_or_else(|| lock.to_string()))
            }
            _ => None,
        };
        Self {
            thread: history.name(edge.waits).to_owned(),
            why: WaitKind::of(edge.why).word(),
            lock,
            for_whom: history.name(edge.for_whom).to_owned(),
        }
    }
}

impl Failed {
    /// Creates the description of an interleaving with this verdict.
    pub(crate) fn new(verdict: &Verdict, history: &History) -> Self {
        let edges: &[Edge] = match verdict {
            Verdict::Deadlock(edges) => edges,
            _ => &[],
        };
        let hazard = Hazard::of(verdict, history);
        let clauses = hazard.map(Hazard::clauses).unwrap_or_default();
        Self {
            ends: clr_scenario::ExpectedEnd::of(Some(verdict)).to_string(),
            text: headline(verdict, history),
            key: verdict.fingerprint(),
            waits: edges.iter().map(|edge| Wait::new(edge, history)).collect(),
            hazard: hazard.map(|hazard| hazard.to_string()),
            clauses: clauses.iter().map(ToString::to_string).collect(),
            avoided_by: hazard.map(Hazard::avoided_by),
            story: story(verdict, history).iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns true if both are the same failure, each on its runtime.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.ends, &self.waits, &self.hazard) == (&other.ends, &other.waits, &other.hazard)
    }

    pub(crate) fn hazard(&self) -> Option<&str> {
        self.hazard.as_deref()
    }
}

/// The facts that stand beside a drawing of an interleaving: the runtime, and of a known hazard its title and what avoids it.
pub(crate) struct Facts(Vec<(&'static str, String)>);

impl Facts {
    /// Collects the facts about an interleaving on this runtime.
    pub(crate) fn new(runtime: &str, verdict: Option<&Verdict>, history: &History) -> Self {
        let mut facts = vec![("runtime", runtime.to_owned())];
        if let Some(hazard) = verdict.and_then(|verdict| Hazard::of(verdict, history)) {
            facts.push(("hazard", format!("{hazard}: {}", hazard.title())));
            facts.push(("avoided by", hazard.avoided_by().to_owned()));
        }
        Self(facts)
    }

    /// Returns the facts with their names.
    pub(crate) fn as_pairs(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, text)| (*name, text.as_str())).collect()
    }
}
