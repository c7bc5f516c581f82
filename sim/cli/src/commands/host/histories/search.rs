//! Searches of a guest's interleavings.

use super::super::newest;
use super::coverage::Looked;
use super::description::Drawing;
use super::executor::{self, with_fixed_addresses};
use super::found::{Executed, Found, Group};
use super::guest::{ENDS, Guest, NOT_LOADED, Output, Prepare};
use crate::args::HostArgs;
use crate::commands::strategy::{self, choose};
use crate::input::Source;
use crate::interrupt::{INTERRUPTED, is_interrupted};
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::progress::Progress;
use crate::render::words::counted;
use crate::{FAILED, PASSED};
use clr_explore::{Exhaustive, Faults, LimitBound, ProfilerRule, ReplaySearch, Search, Strategy};
use clr_guest::scheduled::Died;
use clr_scenario::Keyword as _;
use serde::Serialize;
use serde_json::value::RawValue;
use std::cmp::Reverse;
use std::io;
use std::ops::Range;

/// Number of interleavings that may leave the simulation: each costs seconds.
const LEFT: u64 = 5;
/// Most waits at the end of interleavings that are printed.
const WAITING: usize = 8;
/// The reason why a search ends after them.
const STOPPED_LEFT: &str = "the profiler has left the simulation again and again";
/// The reason why a search ends whose profiler is not loaded.
const STOPPED_NOT_LOADED: &str = "the profiler is not loaded";
/// The reason why a search ends at Ctrl-C.
const STOPPED_INTERRUPTED: &str = "interrupted";

/// An outcome of interleavings.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Outcome {
    /// The fingerprint of the verdict, or the end of the process; `ends` for interleavings that do not fail.
    end: String,
    count: u64,
    /// Number of the first such interleaving.
    first: u64,
    /// The name of that interleaving, for `--replay`. `None` if its process ended without it.
    replay: Option<String>,
    /// The verdict with its waits and its hazard.
    failed: Option<Box<RawValue>>,
    findings: Vec<super::super::journal::Found>,
    /// True if the first interleaving came out the same once more.
    repeats: bool,
    #[serde(skip)]
    story: Vec<String>,
}

/// A rule that interleavings break without harm.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Broken {
    /// The rule, as texts name it.
    rule: &'static str,
    /// The rule in a sentence.
    text: String,
    /// Number of interleavings that break it and do not fail.
    count: u64,
    /// Number of the first of them.
    first: u64,
    /// The name of that interleaving.
    replay: String,
}

/// A thread of the profiler that waits for ever at the end of interleavings that do not fail.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct LeftWaiting {
    thread: String,
    waits_for: String,
    /// Number of such interleavings.
    count: u64,
    /// Number of the first of them.
    first: u64,
    /// The name of that interleaving.
    replay: String,
}

/// The interleavings of a profiler on a runtime.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Histories {
    kind: &'static str,
    library: String,
    file: String,
    runtime: &'static str,
    strategy: &'static str,
    seed: u64,
    first: u64,
    /// Number of interleavings that were executed.
    schedules: u64,
    /// True if these are all, up to the order of independent steps; `None` if that is not known.
    everything: Option<bool>,
    /// The bound on limits of waits that pass, in words. `None` if no interleaving has such a wait.
    limits: Option<String>,
    /// The reason why the search ended early.
    stopped: Option<&'static str>,
    outcomes: Vec<Outcome>,
    broken: Vec<Broken>,
    waiting: Vec<LeftWaiting>,
    coverage: Looked,
}

/// Searches interleavings on each of the runtimes. Returns the exit code.
pub(in super::super) fn search(
    args: &HostArgs,
    schedules: u64,
    source: &Source,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    with_fixed_addresses();
    let by = choose(Strategy::Random, &args.search);
    strategy::check(by, &args.search)?;
    let mut code = PASSED;
    for generation in args.on.runtimes.unwrap_or(newest()).iter() {
        let mut guest = Guest::new(args, source, generation)?;
        let mut found = explore(args, by, schedules, &mut guest, console)?;
        found.coverage.faults = faults(args).which;
        found.coverage.expects_of_own = guest.expects_of_own;
        found.join_faults();
        let outcomes = outcomes(&mut guest, &found);
        let unmet = guest.demands().unmet(found.coverage.points());
        let coverage = Looked::new(&found.coverage, &unmet, &args.allow);
        let fails = |outcome: &Outcome| outcome.end != ENDS && !outcome.end.starts_with(NOT_LOADED);
        // What was not looked at has its own words; a process that ended has left none.
        if outcomes.iter().any(fails) || coverage.is_empty_answer() || found.total() == 0 {
            code = FAILED;
        }
        let (done, is_cut) = (found.done, found.stopped == Some(STOPPED_INTERRUPTED));
        let found = Histories {
            kind: "histories",
            library: guest.library.clone(),
            file: guest.text.clone(),
            runtime: generation.name(),
            strategy: strategy::word(by),
            seed: seed(args),
            first: args.search.first,
            schedules: found.total(),
            everything: found.covered.map(|covered| covered.everything),
            limits: found
                .covered
                .filter(|_| found.has_limits)
                .map(|_| LimitBound::Early.to_string()),
            stopped: found.stopped,
            outcomes,
            broken: broken(&guest, &found),
            waiting: waiting(&guest, &found),
            coverage,
        };
        if args.json.wanted {
            write_json(&found, console)?;
        } else {
            found.write(&guest, args, console)?;
            if is_cut {
                let jobs = args.search.jobs.processes();
                let faults = strategy::fault_arguments(&args.search);
                let command =
                    format!("{} --on {generation} --jobs {jobs}{faults}", guest.command());
                let left = (args.search.first + done, schedules - done);
                strategy::write_how_to_go_on(console.out, &command, (by, seed(args)), left)?;
            }
        }
        if is_interrupted() {
            return Ok(INTERRUPTED);
        }
    }
    Ok(code)
}

fn seed(args: &HostArgs) -> u64 {
    args.search.seed.unwrap_or_default()
}

fn faults(args: &HostArgs) -> Faults {
    strategy::faults(Faults::default(), &args.search)
}

/// Prepares the search of a guest's interleavings.
fn prepare(args: &HostArgs, by: Strategy, guest: &mut Guest) -> Box<dyn Search> {
    if let Strategy::Exhaustive { preemptions } = by {
        // The outcome of an interleaving is what all its threads have done.
        return faults(args).in_all(Exhaustive::new(preemptions).to_each_end());
    }
    let turns = |usual: &mut ReplaySearch| guest.execute(usual, false).map_or(0, |it| it.turns);
    faults(args).around(seed(args), by.prepare(seed(args), turns))
}

/// Executes interleavings, and groups them by their ends.
fn explore(
    args: &HostArgs,
    by: Strategy,
    schedules: u64,
    guest: &mut Guest,
    console: &mut Console<'_>,
) -> Result<Found, CliError> {
    let message = guest.generation.to_string();
    let progress = Progress::with_rate(console.progress, schedules, &message);
    let numbers = args.search.first..args.search.first.saturating_add(schedules);
    let jobs = args.search.jobs.processes();
    console.watch_interrupts();
    let found = if by.can_be_shared() && jobs > 1 {
        let prepare = |guest: &mut Guest| prepare(args, by, guest);
        share(numbers, jobs, &prepare, guest, &progress)
            .map_err(|died| CliError::new("--jobs", format_args!("a process ended: {died}")))
    } else {
        executor::stay_here();
        let search = prepare(args, by, guest);
        Ok(one_by_one(numbers, search, guest, !args.json.wanted, &progress))
    };
    progress.finish();
    found
}

/// Executes interleavings in several processes: each takes every N-th one.
fn share(
    numbers: Range<u64>,
    jobs: usize,
    prepare: &Prepare<'_>,
    guest: &mut Guest,
    progress: &Progress,
) -> Result<Found, Died> {
    let mut found = Found::default();
    let work =
        |worker: usize, search: &mut dyn Search, guest: &mut Guest, send: &mut dyn FnMut(&[u8])| {
            let mut left = 0;
            for number in numbers.clone().skip(worker).step_by(jobs) {
                if is_interrupted() {
                    return;
                }
                search.begin(number);
                let executed = Executed::new(number, &guest.execute(search, false));
                send(&serde_json::to_vec(&executed).unwrap_or_default());
                left += u64::from(executed.has_left());
                if left >= LEFT || executed.is_not_loaded() {
                    return;
                }
            }
        };
    executor::share(jobs, guest, prepare, &work, &mut |record| {
        if let Ok(executed) = serde_json::from_slice(record) {
            found.add(executed, numbers.start);
            progress.step();
        }
    })?;
    if found.total() < numbers.end - numbers.start {
        let is_loaded = found.groups.iter().all(|group| !group.first.is_not_loaded());
        found.stopped = Some(match (is_interrupted(), is_loaded) {
            (true, _) => STOPPED_INTERRUPTED,
            (false, true) => STOPPED_LEFT,
            (false, false) => STOPPED_NOT_LOADED,
        });
    }
    Ok(found)
}

/// Executes interleavings one after the other; a search that learns from them does. The output of a single interleaving,
/// such as a sanitizer's report, may be what is wanted: with `prints` it is printed.
fn one_by_one(
    numbers: Range<u64>,
    mut search: Box<dyn Search>,
    guest: &mut Guest,
    prints: bool,
    progress: &Progress,
) -> Found {
    let (mut found, mut left) = (Found::default(), 0);
    let prints = prints && numbers.end - numbers.start == 1;
    let first = numbers.start;
    for number in numbers {
        if is_interrupted() {
            found.stopped = Some(STOPPED_INTERRUPTED);
            break;
        }
        if !search.begin(number) {
            break;
        }
        let ended = guest.execute(&mut *search, prints);
        let executed = Executed::new(number, &ended);
        left += u64::from(executed.has_left());
        let is_loaded = !executed.is_not_loaded();
        found.add(executed, first);
        progress.step();
        if !is_loaded {
            found.stopped = Some(STOPPED_NOT_LOADED);
            break;
        }
        if search.observer().is_some() {
            let Ok(ending) = &ended else {
                found.stopped =
                    Some("the process of an interleaving has ended, and its choices with it");
                break;
            };
            ending.teach(&mut *search);
        }
        if left >= LEFT {
            found.stopped = Some(STOPPED_LEFT);
            break;
        }
    }
    found.covered = search.progress().covered.filter(|_| found.stopped.is_none());
    found
}

/// Executes the first interleaving of each outcome once more, and describes it.
fn outcomes(guest: &mut Guest, found: &Found) -> Vec<Outcome> {
    let mut groups: Vec<&Group> = found.groups.iter().collect();
    groups.sort_by_key(|group| (Reverse(group.count), group.first.number));
    groups.into_iter().map(|group| outcome(guest, group)).collect()
}

/// Returns the rules that interleavings break without harm.
fn broken(guest: &Guest, found: &Found) -> Vec<Broken> {
    let broken = found.broken.iter().filter_map(|(word, group)| {
        Some(Broken {
            rule: word,
            text: ProfilerRule::from_word(word)?.to_string(),
            count: group.count,
            first: group.first.number,
            replay: replay(guest, group)?,
        })
    });
    broken.collect()
}

/// Returns the threads that wait for ever at the end of interleavings that do not fail.
fn waiting(guest: &Guest, found: &Found) -> Vec<LeftWaiting> {
    let waiting = found.waiting.iter().filter_map(|((thread, what), group)| {
        Some(LeftWaiting {
            thread: thread.clone(),
            waits_for: what.clone(),
            count: group.count,
            first: group.first.number,
            replay: replay(guest, group)?,
        })
    });
    waiting.collect()
}

/// Returns the name of the first interleaving of a group.
fn replay(guest: &Guest, group: &Group) -> Option<String> {
    let schedule = group.first.choices.as_ref()?.1.parse().ok()?;
    Some(guest.name(&schedule).to_string())
}

fn outcome(guest: &mut Guest, group: &Group) -> Outcome {
    let Executed { number, end, choices, .. } = &group.first;
    let mut outcome = Outcome {
        end: group.first.words(),
        count: group.count,
        first: *number,
        replay: None,
        failed: None,
        findings: Vec::new(),
        repeats: true,
        story: Vec::new(),
    };
    let parse = |(digest, choices): &(u64, String)| Some((*digest, choices.parse().ok()?));
    let Some((digest, schedule)) = choices.as_ref().and_then(parse) else { return outcome };
    outcome.replay = Some(guest.name(&schedule).to_string());
    if end != ENDS {
        let mut replay = ReplaySearch::new(schedule);
        replay.begin(0);
        let (again, description) =
            guest.describe(&mut replay, &Drawing::default(), Output::Capture);
        outcome.repeats = again.is_ok_and(|again| again.digest == digest);
        (outcome.failed, outcome.story) = (description.failed, description.story);
        outcome.findings = description.findings;
    }
    outcome
}

impl Histories {
    /// Writes the outcomes, and the story of each failure.
    fn write(&self, guest: &Guest, args: &HostArgs, console: &mut Console<'_>) -> io::Result<()> {
        let Self { library, file, strategy, seed, first, schedules, outcomes, .. } = self;
        let out = &mut *console.out;
        let by = if *strategy == "random" { String::new() } else { format!(", {strategy}") };
        let histories = counted(*schedules, "interleaving", "interleavings");
        let all = if self.everything == Some(true) { ", which are all" } else { "" };
        let limits = self.limits.as_ref().map(|limits| format!(", {limits}")).unwrap_or_default();
        writeln!(
            out,
            "{HEAD}{library}{HEAD:#} over {file} on {}: {histories}{all}{limits} from {first}{by}, seed {seed}",
            self.runtime
        )?;
        for Outcome { end, count, first, .. } in outcomes {
            let style = if end == ENDS { GOOD } else { BAD };
            let since =
                if end == ENDS { String::new() } else { format!("   first: interleaving {first}") };
            writeln!(out, "  {count:>8}  {style}{end}{style:#}{since}")?;
        }
        if let Some(why) = self.stopped {
            writeln!(out, "  stopped: {why}")?;
        }
        for Broken { text, count, first, replay, .. } in &self.broken {
            writeln!(
                out,
                "  {count:>8}  break a rule without harm: {text}   first: interleaving {first}"
            )?;
            writeln!(out, "            {DIM}again:{DIM:#} {} --replay {replay}", guest.command())?;
        }
        if !self.broken.is_empty() && !guest.fails_by_rules {
            writeln!(
                out,
                "  {DIM}with `explore rules=#true` in the text these are failures{DIM:#}"
            )?;
        }
        for LeftWaiting { thread, waits_for, count, first, replay } in
            self.waiting.iter().take(WAITING)
        {
            let what = format!("end while {thread} still waits for {waits_for}");
            writeln!(out, "  {count:>8}  {what}   first: interleaving {first}")?;
            writeln!(out, "            {DIM}again:{DIM:#} {} --replay {replay}", guest.command())?;
        }
        if let others @ 1.. = self.waiting.len().saturating_sub(WAITING) {
            writeln!(out, "            {DIM}and {others} other waits at the end{DIM:#}")?;
        }
        self.coverage.write(*schedules, &args.allow, out)?;
        let way = match *strategy {
            "random" => format!("--seed {seed}"),
            strategy => format!("--strategy {strategy} --seed {seed}"),
        };
        let way = way + &strategy::fault_arguments(&args.search);
        for outcome in outcomes.iter().filter(|outcome| outcome.end != ENDS) {
            outcome.write(guest, &way, out)?;
        }
        Ok(())
    }
}

impl Outcome {
    /// Writes the failure; `by` is the way of the search, as arguments.
    fn write(&self, guest: &Guest, by: &str, out: &mut dyn io::Write) -> io::Result<()> {
        let Self { end, first, story, findings, repeats, replay, .. } = self;
        let headline = story.first().unwrap_or(end);
        writeln!(out, "\n{BAD}interleaving {first}:{BAD:#} {headline}")?;
        for line in story.iter().skip(1) {
            writeln!(out, "{}", format!("  {line}").trim_end())?;
        }
        for found in findings {
            writeln!(out, "  {BAD}{}{BAD:#} {}", found.finding, found.text)?;
        }
        if !repeats {
            writeln!(
                out,
                "  it did not come out the same once more: the profiler depends on something that is not scheduled"
            )?;
        }
        let again = match replay {
            Some(replay) => format!("--replay {replay}"),
            // The process took its choices along.
            None => format!("--on {} {by} --first {first} --schedules 1", guest.generation),
        };
        writeln!(out, "  {DIM}again:{DIM:#} {} {again}", guest.command())
    }
}
