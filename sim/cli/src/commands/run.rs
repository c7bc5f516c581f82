//! `clrsim run`: replays files of cases on several threads. The order of the work shows in no
//! output.

use crate::args::RunArgs;
use crate::commands::bless;
use crate::input::{self, Kind, Source, Sources};
use crate::render::code;
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::progress::Progress;
use crate::report::as_tests::TestReporter;
use crate::report::table::{Reporter, View};
use crate::report::vector::FailedCase;
use crate::report::walk;
use crate::report::{Counts, FileReport};
use crate::report::{recording, sequence};
use crate::{FAILED, PASSED, UNUSABLE};
use clr_recording::vectors::FormatError;
use clr_recording::vectors::fuzz::{FuzzFile, FuzzRecord};
use clr_recording::vectors::replay::{ReplayError, VectorFailure, VectorVerdict, run_fuzz_record};
use clr_recording::vectors::win64::Vector;
use clr_runtime::generation::Generations;
use clr_unwind::compat::Rules;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Number of cases that are held in memory at a time.
const BATCH: usize = 8192;

/// Smallest number of cases that is worth a thread.
const MIN_CHUNK: usize = 256;

/// The settings of a run.
struct Settings {
    rules: Rules,
    /// Runtimes for the snapshots of texts.
    on: Generations,
    jobs: usize,
    max_failures: usize,
    /// The longest time of a search.
    limit: Duration,
}

/// Replays the files that `args` name and returns the exit code.
pub(crate) fn run(args: &RunArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let view = match (args.json.wanted, args.summary) {
        (true, _) => View::Json,
        (false, true) => View::Summary,
        (false, false) => View::Table,
    };
    replay(args, view, console)
}

fn replay(args: &RunArgs, view: View, console: &mut Console<'_>) -> Result<u8, CliError> {
    let Sources { found: sources, mut missing } =
        input::sources_there(&args.paths, args.filter.as_deref())?;
    // Blessing and tests need every file, and a run of no file has no table.
    let needs_all = args.bless || args.format.is_some();
    if (needs_all || sources.is_empty()) && !missing.is_empty() {
        let last = missing.remove(missing.len() - 1);
        for error in &missing {
            console.print_error(error);
        }
        return Err(last);
    }
    if args.bless {
        return bless::bless(args, &sources, console);
    }
    let max_failures = args.limit.0;
    let on = args.on.or_all();
    let (jobs, limit) = (args.jobs.count().get(), args.limit());
    let settings = Settings { rules: args.rules.rules(), on, jobs, max_failures, limit };
    let progress = Progress::new(console.progress, sources.len() as u64);
    if let Some(format) = args.format {
        let mut tests = TestReporter::new(format, args.on.runtimes);
        replay_all(&sources, &settings, |source, replayed| {
            progress.hide(|| tests.add(&source.name, replayed, console))?;
            progress.step_to(&source.name);
            Ok(())
        })?;
        progress.finish();
        return Ok(tests.finish(console)?);
    }
    let mut reporter =
        Reporter::new(view, args.rules.name(), args.paths.is_empty(), args.on.runtimes);
    for error in &missing {
        progress.hide(|| reporter.unreadable(error, console));
    }
    replay_all(&sources, &settings, |source, replayed| {
        match replayed {
            Ok(file) => progress.hide(|| reporter.file(file, console))?,
            Err(error) => progress.hide(|| reporter.unreadable(&error, console)),
        }
        progress.step_to(&source.name);
        Ok(())
    })?;
    progress.finish();
    let total = reporter.finish(console)?;
    Ok(if total.unreadable > 0 {
        UNUSABLE
    } else if total.counts.failed > 0 || total.checks_nothing() {
        FAILED
    } else {
        PASSED
    })
}

/// Replays files side by side and reports them in their order.
fn replay_all(
    sources: &[Source],
    settings: &Settings,
    mut write: impl FnMut(&Source, Result<FileReport, CliError>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, replayed) = mpsc::channel();
        for _ in 0..settings.jobs.min(sources.len()) {
            let (sender, next) = (sender.clone(), &next);
            let work = move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(source) = sources.get(index) else { break };
                    // The receiver is gone if the output is closed.
                    if sender.send((index, replay_file(source, settings))).is_err() {
                        break;
                    }
                }
            };
            // If the system cannot start another thread, this one does the work.
            if thread::Builder::new().spawn_scoped(scope, work.clone()).is_err() {
                work();
            }
        }
        drop(sender);
        let mut pending = BTreeMap::new();
        let mut in_order = sources.iter().enumerate();
        let mut awaited = in_order.next();
        for (index, file) in replayed {
            pending.insert(index, file);
            while let Some((index, source)) = awaited
                && let Some(file) = pending.remove(&index)
            {
                write(source, file)?;
                awaited = in_order.next();
            }
        }
        Ok(())
    })
}

fn replay_file(source: &Source, settings: &Settings) -> Result<FileReport, CliError> {
    if source.is_program() {
        return walk::run(source, settings.on, (settings.max_failures, settings.limit));
    }
    if source.is_recording() {
        return recording::run(source, settings.max_failures);
    }
    if source.is_sequence() {
        return sequence::run(source, settings.max_failures);
    }
    let (kind, content) = source.read_fixture()?;
    match kind {
        Kind::Vectors => replay_vectors(source, &content, settings),
        Kind::Fuzz => replay_fuzz(source, &content, settings),
    }
}

fn replay_vectors(
    source: &Source,
    content: &[u8],
    settings: &Settings,
) -> Result<FileReport, CliError> {
    input::with_vectors(source, content, settings.rules, |file, replay, code| {
        let cases = Cases {
            replay: |vector: &Vector<'_>| replay.run(vector),
            explain: |case, _: &Vector<'_>, failure: &VectorFailure| {
                Ok(FailedCase::new(code, case, failure))
            },
        };
        cases.replay_all(source, "win64-vectors", file.iter(), settings)
    })
}

fn replay_fuzz(
    source: &Source,
    content: &[u8],
    settings: &Settings,
) -> Result<FileReport, CliError> {
    let file = FuzzFile::parse(content).map_err(|error| source.error(error))?;
    let cases = Cases {
        replay: |record: &FuzzRecord<'_>| run_fuzz_record(record, settings.rules),
        explain: |case, record: &FuzzRecord<'_>, failure: &VectorFailure| {
            code::with_fuzz_code(record, |code, _| FailedCase::new(code, case, failure))
        },
    };
    cases.replay_all(source, "win64-fuzz", file.iter(), settings)
}

/// The functions that replay and explain the cases of a file.
struct Cases<R, E> {
    replay: R,
    /// Explains a failure; called for the first ones, in order.
    explain: E,
}

/// The results of cases that follow each other in a file.
#[derive(Default)]
struct Outcome {
    counts: Counts,
    /// The first failures, with the index of the case.
    failures: Vec<(usize, Box<VectorFailure>)>,
}

impl<R, E> Cases<R, E> {
    fn replay_all<T>(
        &self,
        source: &Source,
        kind: &'static str,
        mut cases: impl Iterator<Item = Result<T, FormatError>>,
        settings: &Settings,
    ) -> Result<FileReport, CliError>
    where
        T: Sync,
        R: Fn(&T) -> Result<VectorVerdict, ReplayError> + Sync,
        E: Fn(usize, &T, &VectorFailure) -> Result<FailedCase, ReplayError>,
    {
        let mut report = FileReport::new(&source.name, kind);
        loop {
            let batch: Vec<T> = cases
                .by_ref()
                .take(BATCH)
                .collect::<Result<_, _>>()
                .map_err(|error| source.error(error))?;
            if batch.is_empty() {
                return Ok(report);
            }
            let first = report.counts.cases;
            let outcome = self.replay_batch(&batch, settings);
            let outcome = outcome.map_err(|error| source.error(error))?;
            report.counts += outcome.counts;
            let wanted = settings.max_failures.saturating_sub(report.failures.len());
            for (at, failure) in outcome.failures.iter().take(wanted) {
                if let Some(case) = batch.get(*at) {
                    let explained = (self.explain)(first + at, case, failure);
                    let explained = explained.map_err(|error| source.error(error))?;
                    report.explain(explained);
                }
            }
        }
    }

    /// Replays a batch in chunks, each on a thread, and joins their outcomes in order.
    fn replay_batch<T>(&self, batch: &[T], settings: &Settings) -> Result<Outcome, ReplayError>
    where
        T: Sync,
        R: Fn(&T) -> Result<VectorVerdict, ReplayError> + Sync,
    {
        let len = batch.len().div_ceil(settings.jobs).max(MIN_CHUNK);
        let replay = &self.replay;
        let most = settings.max_failures;
        thread::scope(|scope| {
            let chunks: Vec<_> = (0..)
                .step_by(len)
                .zip(batch.chunks(len))
                .map(|(first, chunk)| {
                    let work = move || replay_chunk(first, chunk, most, replay);
                    // If the system cannot start another thread, this one does the work.
                    thread::Builder::new().spawn_scoped(scope, work).map_err(|_| work)
                })
                .collect();
            let mut all = Outcome::default();
            for chunk in chunks {
                let outcome = match chunk {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    Err(work) => work(),
                }?;
                all.counts += outcome.counts;
                all.failures.extend(outcome.failures);
            }
            Ok(all)
        })
    }
}

fn replay_chunk<T>(
    first: usize,
    cases: &[T],
    most: usize,
    replay: impl Fn(&T) -> Result<VectorVerdict, ReplayError>,
) -> Result<Outcome, ReplayError> {
    let mut outcome = Outcome::default();
    for (case, at) in cases.iter().zip(first..) {
        let verdict = replay(case)?;
        outcome.counts.add(&verdict);
        if let VectorVerdict::Failed(failure) = verdict
            && outcome.failures.len() < most
        {
            outcome.failures.push((at, failure));
        }
    }
    Ok(outcome)
}
