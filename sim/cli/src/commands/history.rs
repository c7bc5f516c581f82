//! Interleavings of texts in commands: their strings, and searches on several threads.

use crate::args::{Jobs, SettingsArgs, Timeout};
use crate::commands::smaller::{Output, compact, head, is_smaller, write_text};
use crate::input::program::ProgramFixture;
use crate::input::{Source, slashed};
use crate::interrupt::{Cut, Patience};
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::progress::Progress;
use crate::report::history::usual;
use clr_explore::{Budget, Failure, Report, ScheduleString};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploration, Exploring, RunOnError, Scenario, TextDigest};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Number of interleavings that a thread takes at a time.
const CHUNK: u64 = 256;

/// Reads a program with interleavings; a stack placed by hand is an error.
pub(crate) fn read(source: &Source) -> Result<ProgramFixture, CliError> {
    let fixture = ProgramFixture::read(source)?;
    if fixture.scenario.stack.is_some() {
        return Err(source.error("is a stack placed by hand, which has no interleavings"));
    }
    Ok(fixture)
}

/// Returns the settings of a text, overridden by the arguments.
pub(crate) fn usual_but(scenario: &Scenario, args: SettingsArgs) -> Exploration {
    let usual = usual(scenario);
    Exploration {
        rules: args.rules.unwrap_or(usual.rules),
        instructions: args.instructions.unwrap_or(usual.instructions),
        ..usual
    }
}

/// Finds the text at a path, or the embedded one of that name, with or without `fixtures/`.
pub(crate) fn find(path: &str) -> Result<Source, CliError> {
    Source::find(Path::new(path)).or_else(|error| {
        let inside = path
            .strip_prefix("fixtures/")
            .ok_or(())
            .and_then(|inside| Source::find(Path::new(inside)).map_err(drop));
        inside.map_err(|()| error)
    })
}

/// Returns the error of a text that cannot be run on a runtime.
pub(crate) fn refused(
    source: &Source,
    scenario: &Scenario,
    generation: Generation,
    error: RunOnError,
) -> CliError {
    source.error(format_args!("cannot be run on {generation}: {}", scenario.named(error)))
}

/// The parts of an interleaving's string.
pub(crate) struct Named {
    pub(crate) file: String,
    pub(crate) generation: Generation,
    pub(crate) schedule: ScheduleString,
    /// Digest of the text in which the interleaving was found; older strings have none.
    digest: Option<TextDigest>,
}

impl Named {
    /// Parses the string of an interleaving.
    pub(crate) fn parse(text: &str) -> Result<Self, CliError> {
        let refused = |what: &dyn std::fmt::Display| CliError::new(&slashed(Path::new(text)), what);
        let parts =
            text.rsplit_once('@').and_then(|(file, rest)| Some((file, rest.split_once(':')?)));
        let (file, (runtime, schedule)) = parts
            .ok_or_else(|| refused(&"is not the string of an interleaving: FILE@RUNTIME:clr1:…"))?;
        let generation = Generation::from_name(runtime).ok_or_else(|| {
            let names = Generation::ALL.map(Generation::name).join(", ");
            refused(&format!("there is no runtime {runtime}; they are: {names}"))
        })?;
        // The schedule itself has one colon.
        let digest = schedule.rsplit_once(':').filter(|(before, _)| before.contains(':'));
        let (schedule, digest) = digest.map_or((schedule, None), |(it, digest)| (it, Some(digest)));
        let digest = digest.map(str::parse).transpose().map_err(|error| refused(&error))?;
        let schedule = schedule.parse().map_err(|error| refused(&error))?;
        Ok(Self { file: file.to_owned(), generation, schedule, digest })
    }

    /// Returns true if the text was edited after the interleaving was found; `None` if the string does
    /// not say in which text that was.
    pub(crate) fn is_edited(&self, scenario: &Scenario) -> Option<bool> {
        self.digest.map(|digest| digest != scenario.digest())
    }
}

/// The result of a search that may have been ended early.
#[derive(Default)]
pub(crate) struct Searched {
    pub(crate) report: Report,
    /// Why the search was ended early, if it was.
    pub(crate) cut: Option<Cut>,
}

/// A part of a search that a thread has made.
struct Part {
    chunk: u64,
    report: Report,
    cut: Option<Cut>,
}

/// Searches on several threads. The result does not depend on their number, unless Ctrl-C or its `limit` ends
/// the search: then it is that of all interleavings up to the first one that was not executed, and the failures
/// that are known beyond.
pub(crate) fn search(
    scenario: &Scenario,
    generation: Generation,
    budget: &Budget,
    (jobs, limit): (Jobs, Timeout),
    console: &Console<'_>,
) -> Result<Searched, RunOnError> {
    let progress = Progress::with_rate(console.progress, budget.schedules, generation.name());
    let patience = Patience::new(limit.limit());
    let found = search_with(scenario, generation, budget, (jobs, patience), &progress);
    progress.finish();
    found
}

fn search_with(
    scenario: &Scenario,
    generation: Generation,
    budget: &Budget,
    (jobs, patience): (Jobs, Patience),
    progress: &Progress,
) -> Result<Searched, RunOnError> {
    let chunks = budget.schedules.div_ceil(CHUNK);
    let jobs = jobs.count().get().min(usize::try_from(chunks).unwrap_or(usize::MAX));
    if jobs <= 1 || !budget.strategy.can_be_shared() {
        let exploring = Exploring::new(scenario, generation)?;
        let mut cut = None;
        let report = exploring.search(budget, |done| {
            progress.set(done);
            cut = patience.cut();
            cut.is_none()
        })?;
        return Ok(Searched { report, cut });
    }
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let work = || -> Result<Vec<Part>, RunOnError> {
        let exploring = Exploring::new(scenario, generation)?;
        let mut explorer = exploring.explorer()?;
        let mut parts = Vec::new();
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            let is_needed = chunk < chunks && chunk <= failed.load(Ordering::Relaxed);
            if !is_needed || patience.cut().is_some() {
                return Ok(parts);
            }
            let before = chunk * CHUNK;
            let budget = Budget {
                first: budget.first.saturating_add(before),
                schedules: CHUNK.min(budget.schedules - before),
                ..*budget
            };
            let mut cut = None;
            let report = explorer.search(&|setup| exploring.load(setup), &budget, |_| {
                progress.step();
                cut = patience.cut();
                cut.is_none() && chunk <= failed.load(Ordering::Relaxed)
            });
            if report.failure.is_some() && !budget.keep_going {
                failed.fetch_min(chunk, Ordering::Relaxed);
            }
            parts.push(Part { chunk, report, cut });
        }
    };
    let parts = thread::scope(|scope| {
        let spawn = |_| {
            let work = &work;
            // If the system cannot start another thread, this one does the work.
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
    let (report, is_whole) = joined(parts, chunks, budget.keep_going);
    // Nothing is missing but for one of these reasons, and neither goes away.
    Ok(Searched { report, cut: patience.cut().filter(|_| !is_whole) })
}

/// Joins the parts of a search of a number of chunks in the order of their interleavings. Returns false beside if some are
/// missing.
fn joined(mut parts: Vec<Part>, chunks: u64, keep_going: bool) -> (Report, bool) {
    parts.sort_by_key(|part| part.chunk);
    let mut all = Report::default();
    let (mut expected, mut is_whole) = (0, true);
    for Part { chunk, mut report, cut } in parts {
        if all.failure.is_some() && !keep_going {
            break;
        }
        if !is_whole || chunk != expected {
            // Interleavings before these are missing: only failures count.
            is_whole = false;
            (report.schedules, report.turns) = (0, 0);
        }
        is_whole &= cut.is_none();
        expected = chunk + 1;
        all = if keep_going { all.and(report) } else { all.then(report) };
    }
    let is_done = expected == chunks || all.failure.is_some() && !keep_going;
    (all, is_whole && is_done)
}

/// Writes the smallest text that fails as an interleaving does. Returns false if there is none.
pub(crate) fn write_smallest(
    fixture: &ProgramFixture,
    generation: Generation,
    settings: &Exploration,
    failure: &Failure,
    output: Output<'_>,
    console: &mut Console<'_>,
) -> Result<bool, CliError> {
    let small = fixture.scenario.smallest_that_fails(generation, settings, failure);
    let Some(small) = small else {
        return Ok(false);
    };
    let original = &fixture.text;
    let small = small.to_string();
    let (head, compact) = (head(original), compact(&small));
    let candidates = [head.clone() + &small, head + &compact, small, compact];
    // The search has judged the text; it says the same with and without its head.
    let smaller = candidates.iter().find(|text| is_smaller(text, original));
    writeln!(console.out)?;
    write_text(output, original, smaller.map(String::as_str), console)?;
    Ok(true)
}
