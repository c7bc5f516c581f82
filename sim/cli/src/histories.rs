//! Histories of texts: what they are called, how they are searched on several threads, and how they
//! are told.

use crate::args::HistoryArgs;
use crate::console::{BAD, Console, DIM, GOOD, HEAD, Trouble};
use crate::input::{Source, slashed, write_new};
use crate::program::ProgramFixture;
use anstyle::{AnsiColor, Style};
use clr_explore::story::{headline, story};
use clr_explore::timeline::{TimelineRow, Tone};
use clr_explore::{
    BlockReason, Budget, Edge, Failure, Hazard, History, LockName, Report, ScheduleString, Verdict,
};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploration, Exploring, Keyword as _, RunOnError, Scenario, WaitKind};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// So many histories a thread takes at a time.
const CHUNK: u64 = 256;

/// A program whose histories are searched.
pub(crate) fn read(source: &Source) -> Result<ProgramFixture, Trouble> {
    let fixture = ProgramFixture::read(source)?;
    if fixture.scenario.stack.is_some() {
        return Err(source.trouble("is a stack placed by hand, which has no histories"));
    }
    Ok(fixture)
}

/// How a text is searched if nothing else is said.
pub(crate) fn usual(scenario: &Scenario) -> Exploration {
    scenario.explore.first().cloned().unwrap_or_default()
}

/// How a text's histories are made again: as it says, but for what the arguments say.
pub(crate) fn usual_but(scenario: &Scenario, args: &HistoryArgs) -> Exploration {
    let usual = usual(scenario);
    Exploration {
        rules: args.rules.unwrap_or(usual.rules),
        instructions: args.instructions.unwrap_or(usual.instructions),
        ..usual
    }
}

/// What `clrsim replay` has to be told of how a history was found: all else it takes from the text.
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

/// The same of a history that has ended so.
pub(crate) fn flags_of(
    usual: &Exploration,
    found: &Exploration,
    verdict: &Verdict,
) -> Vec<&'static str> {
    flags(usual, found, matches!(verdict, Verdict::Broken { .. }))
}

/// What stands behind `replay` in the command that makes a history again.
pub(crate) fn told_to_replay(flags: &[&str], replay: &str) -> String {
    // A shell would take it for several words.
    let needs_quotes = replay.contains(char::is_whitespace);
    let replay = if needs_quotes { format!("\"{replay}\"") } else { replay.to_owned() };
    flags.iter().copied().chain([replay.as_str()]).collect::<Vec<_>>().join(" ")
}

/// The text at a path, or the embedded one of that name; the folder of the embedded ones may stand in
/// front.
pub(crate) fn find(path: &str) -> Result<Source, Trouble> {
    Source::find(Path::new(path)).or_else(|trouble| {
        let inside = path
            .strip_prefix("fixtures/")
            .ok_or(())
            .and_then(|inside| Source::find(Path::new(inside)).map_err(drop));
        inside.map_err(|()| trouble)
    })
}

/// A history by its string.
pub(crate) struct Named {
    pub(crate) file: String,
    pub(crate) generation: Generation,
    pub(crate) trail: ScheduleString,
}

impl Named {
    /// The parts of a string.
    pub(crate) fn parse(text: &str) -> Result<Self, Trouble> {
        let trouble = |what: &dyn std::fmt::Display| Trouble::with(text, what);
        let parts =
            text.rsplit_once('@').and_then(|(file, rest)| Some((file, rest.split_once(':')?)));
        let (file, (runtime, trail)) =
            parts.ok_or_else(|| trouble(&"is no history: those are called TEXT@RUNTIME:clr1:…"))?;
        let generation = Generation::from_name(runtime).ok_or_else(|| {
            let names = Generation::ALL.map(Generation::name).join(", ");
            trouble(&format!("there is no runtime {runtime}; they are: {names}"))
        })?;
        let trail = trail.parse().map_err(|error| trouble(&error))?;
        Ok(Self { file: file.to_owned(), generation, trail })
    }
}

/// The string of a history.
pub(crate) fn name(file: &str, generation: Generation, trail: &ScheduleString) -> String {
    format!("{file}@{generation}:{trail}")
}

/// Searches on several threads: what is found does not depend on how many.
pub(crate) fn search(
    scenario: &Scenario,
    generation: Generation,
    budget: &Budget,
    jobs: Option<NonZeroUsize>,
    bar: &ProgressBar,
) -> Result<Report, RunOnError> {
    let available = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let jobs = jobs.map_or_else(available, NonZeroUsize::get);
    let chunks = budget.schedules.div_ceil(CHUNK);
    let jobs = jobs.min(usize::try_from(chunks).unwrap_or(usize::MAX));
    if jobs <= 1 || !budget.strategy.can_be_shared() {
        let exploring = Exploring::new(scenario, generation)?;
        return exploring.search(budget, |done| {
            bar.set_position(done);
            true
        });
    }
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let work = || -> Result<Vec<(u64, Report)>, RunOnError> {
        let exploring = Exploring::new(scenario, generation)?;
        let mut arena = exploring.arena()?;
        let mut reports = Vec::new();
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks || chunk > failed.load(Ordering::Relaxed) {
                return Ok(reports);
            }
            let before = chunk * CHUNK;
            let budget = Budget {
                first: budget.first.saturating_add(before),
                schedules: CHUNK.min(budget.schedules - before),
                ..*budget
            };
            let report = arena.search(&|setup| exploring.load(setup), &budget, |_| {
                bar.inc(1);
                chunk <= failed.load(Ordering::Relaxed)
            });
            if report.failure.is_some() {
                failed.fetch_min(chunk, Ordering::Relaxed);
            }
            reports.push((chunk, report));
        }
    };
    let mut reports = thread::scope(|scope| {
        let spawn = |_| {
            let work = &work;
            // A system that has no more threads to give leaves the work to this one.
            thread::Builder::new().spawn_scoped(scope, work).map_err(|_| work)
        };
        let threads: Vec<_> = (0..jobs).map(spawn).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(work) => work(),
            }?);
        }
        Ok::<_, RunOnError>(all)
    })?;
    reports.sort_by_key(|(chunk, _)| *chunk);
    let mut reports = reports.into_iter().map(|(_, report)| report);
    let mut all = reports.next().unwrap_or_default();
    for report in reports {
        all = all.then(report);
    }
    Ok(all)
}

/// A bar for so many histories.
pub(crate) fn progress_bar(visible: bool, histories: u64, message: String) -> ProgressBar {
    let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(histories), target).with_message(message);
    match ProgressStyle::with_template("{bar:30} {pos}/{len} {per_sec} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// How a piece of text looks.
pub(crate) const fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Dim => DIM,
        Tone::Head => HEAD,
        Tone::Running => AnsiColor::Green.on_default(),
        Tone::Waiting => AnsiColor::Yellow.on_default(),
        Tone::Suspended => AnsiColor::Cyan.on_default(),
        Tone::Callback => AnsiColor::Blue.on_default(),
        Tone::Lock => AnsiColor::Magenta.on_default(),
        Tone::Bad => BAD,
    }
}

/// Writes a row with its colours.
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

/// Tells a history that has failed.
pub(crate) fn tell(
    verdict: &Verdict,
    history: &History,
    console: &mut Console<'_>,
) -> Result<(), Trouble> {
    for row in story(verdict, history) {
        write_row(&row, 2, console.out)?;
    }
    Ok(())
}

/// Writes the smallest text that fails as a history does; whether there is one.
pub(crate) fn write_smallest(
    fixture: &ProgramFixture,
    generation: Generation,
    settings: &Exploration,
    failure: &Failure,
    path: &Path,
    console: &mut Console<'_>,
) -> Result<bool, Trouble> {
    let small = fixture.scenario.smallest_that_fails(generation, settings, failure);
    let Some(small) = small else {
        return Ok(false);
    };
    let text = small.to_string();
    let (before, after) = (fixture.text.lines().count(), text.lines().count());
    let head = format!("// Made smaller by clrsim, from {before} lines.\n");
    write_new(path, &(head + &text))?;
    let name = slashed(path);
    writeln!(
        console.out,
        "\n{GOOD}written{GOOD:#}: {HEAD}{name}{HEAD:#}, {after} lines of {before}"
    )?;
    Ok(true)
}

/// A history that has failed, for machines.
#[derive(Debug, Serialize)]
pub(crate) struct Failed {
    /// In a word.
    pub(crate) ends: String,
    /// In a sentence.
    text: String,
    /// What it has in common with others of the same fault.
    key: String,
    waits: Vec<Wait>,
    hazard: Option<String>,
    clauses: Vec<String>,
    avoided_by: Option<&'static str>,
    story: Vec<String>,
}

/// A thread waits for another one.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Wait {
    thread: String,
    /// As texts say it.
    why: &'static str,
    /// What texts call the lock that it waits for.
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
            why: reason(edge.why).word(),
            lock,
            for_whom: history.name(edge.for_whom).to_owned(),
        }
    }
}

/// Why a thread waits, as texts say it.
const fn reason(why: BlockReason) -> WaitKind {
    match why {
        BlockReason::Lock(_) => WaitKind::Lock,
        BlockReason::Suspended => WaitKind::Suspended,
        BlockReason::ToStop => WaitKind::ToStop,
        BlockReason::RuntimeSuspended => WaitKind::RuntimeSuspended,
        BlockReason::Collection => WaitKind::Collection,
        BlockReason::Join => WaitKind::Join,
        BlockReason::CodeManagerReader => WaitKind::CodeManagerReader,
    }
}

impl Failed {
    /// What is told of a history that has ended so.
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
            key: verdict.key(),
            waits: edges.iter().map(|edge| Wait::new(edge, history)).collect(),
            hazard: hazard.map(|hazard| hazard.to_string()),
            clauses: clauses.iter().map(ToString::to_string).collect(),
            avoided_by: hazard.map(Hazard::avoided_by),
            story: story(verdict, history).iter().map(ToString::to_string).collect(),
        }
    }

    /// Whether it is the same failure on another runtime.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.ends, &self.waits, &self.hazard) == (&other.ends, &other.waits, &other.hazard)
    }

    pub(crate) fn hazard(&self) -> Option<&str> {
        self.hazard.as_deref()
    }
}
