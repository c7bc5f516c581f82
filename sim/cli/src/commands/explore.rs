//! `clrsim explore`: searches the interleavings of a program for one that fails.

use crate::args::ExploreArgs;
use crate::commands::history::{Searched, find, read, refused, search, usual_but, write_smallest};
use crate::commands::smaller::Output;
use crate::commands::strategy::{self, choose};
use crate::input::program::ProgramFixture;
use crate::input::{Source, slashed};
use crate::interrupt::{Cut, INTERRUPTED};
use crate::output::Replacing;
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::shell::quoted;
use crate::render::style::Style;
use crate::render::words::{counted, in_words};
use crate::render::wrap::write_wrapped;
use crate::report::history::{
    Failed, flags, flags_of, name, replay_arguments, usual, write_failure,
};
use crate::report::walk::refuse_unchecked;
use crate::{FAILED, PASSED};
use clr_explore::{
    Budget, Coverage, Failure, LeftWaiting, Report, Strategy, ThreadIndex, WaitedFor,
};
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{Exploration, HistoryDifference, Scenario, ThreadName};
use serde::Serialize;

/// The result of a search on one runtime, for JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Explored<'e> {
    kind: &'static str,
    file: &'e str,
    generation: &'static str,
    strategy: &'static str,
    seed: u64,
    first: u64,
    /// Number of interleavings.
    schedules: u64,
    /// Number of turns of all interleavings.
    turns: u64,
    injected: u64,
    covered: Option<Share>,
    broken: Vec<Broken>,
    waiting: Vec<Waiting>,
    /// Demands on coverage that the interleavings do not meet, callbacks that never came, and a clause that has decided
    /// nothing.
    unmet: &'e [String],
    /// Clauses of the text's expectation that no search can judge.
    unjudged: Vec<String>,
    /// True if Ctrl-C ended the search.
    interrupted: bool,
    /// True if the search has taken all of its time.
    timed_out: bool,
    /// Number of the failed interleaving.
    number: Option<u64>,
    replay: Option<&'e str>,
    /// Flags that `clrsim replay` needs beside the string.
    replay_flags: Vec<&'static str>,
    /// Number of interleavings with the same fault.
    times: Option<u64>,
    #[serde(flatten)]
    failed: Option<&'e Failed>,
    /// The first interleavings with other faults.
    further: &'e [FailedHistory],
}

/// The part of all interleavings that was searched.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Share {
    everything: bool,
    millionths: u32,
    cut: u64,
    /// The bound on limits of waits that pass, in words. `None` if no interleaving has such a wait.
    limits: Option<String>,
}

/// A documented rule that was broken without harm.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Broken {
    rule: String,
    replay: String,
    replay_flags: Vec<&'static str>,
}

/// A thread of the profiler that waits for ever at the end of interleavings that do not fail.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Waiting {
    thread: String,
    waits_for: String,
    interleavings: u64,
    /// The string that replays the first of them.
    replay: String,
    replay_flags: Vec<&'static str>,
}

/// The result of a search on one runtime.
struct Found {
    generation: Generation,
    report: Report,
    /// Why the search was ended early, if it was.
    cut: Option<Cut>,
    /// True if calls were to fail, and none did.
    lacks_faults: bool,
    /// The failures of the report.
    failed: Vec<FailedHistory>,
    /// Demands on coverage that the interleavings do not meet, callbacks that never came, and a clause that has decided
    /// nothing.
    unmet: Vec<String>,
    /// Clauses of the text's expectation that no search can judge.
    unjudged: Vec<Clause>,
}

/// A failed interleaving with the arguments that replay it.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct FailedHistory {
    number: u64,
    replay: String,
    /// Flags that `clrsim replay` needs beside the string.
    #[serde(rename = "replay_flags")]
    flags: Vec<&'static str>,
    /// Number of interleavings with the same fault.
    times: u64,
    #[serde(flatten)]
    failed: Failed,
}

/// Returns the settings of the search: those of the arguments, then those of the text.
fn settings(args: &ExploreArgs, scenario: &Scenario) -> Exploration {
    let usual = usual_but(scenario, args.settings);
    Exploration {
        by: choose(usual.by, &args.search),
        schedules: args.search.schedules.unwrap_or(usual.schedules),
        seed: args.search.seed.unwrap_or(usual.seed),
        faults: strategy::faults(usual.faults, &args.search),
        ..usual
    }
}

/// Returns the runtimes to search on.
fn runtimes(args: &ExploreArgs, settings: &Exploration) -> Generations {
    let expected = || Generations::of(&settings.generations().collect::<Vec<_>>());
    let on = args.on.runtimes.unwrap_or_else(expected);
    if on.is_empty() { Generations::ALL } else { on }
}

/// Searches the interleavings that `args` name and returns the exit code.
pub(crate) fn explore(args: &ExploreArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = find(&slashed(&args.scenario.path))?;
    let fixture = read(&source)?;
    let scenario = &fixture.scenario;
    let settings = settings(args, scenario);
    check(args, &settings)?;
    if let Some(path) = &args.minimize {
        Replacing::check_is_not(path, &source)?;
        args.replacing.check(path)?;
    }
    refuse_unchecked(&source, scenario, runtimes(args, &settings))?;
    let usual = usual(scenario);
    let keep_going = args.keep_going;
    let budget = Budget { first: args.search.first, keep_going, ..settings.budget() };
    console.watch_interrupts();
    if !args.json.wanted {
        head(&source, scenario, &settings, console)?;
    }
    let mut all: Vec<Found> = Vec::new();
    for generation in runtimes(args, &settings).iter() {
        let searched =
            search(scenario, generation, &budget, (args.search.jobs, args.timeout), console);
        let Searched { report, cut } =
            searched.map_err(|error| refused(&source, scenario, generation, error))?;
        let failed = |failure: &Failure| FailedHistory {
            number: failure.number,
            replay: name(&source.name, scenario, generation, &failure.schedule),
            flags: flags_of(&usual, &settings, &failure.verdict),
            times: failure.times,
            failed: Failed::new(&failure.verdict, &failure.history),
        };
        let failed: Vec<_> = report.failures().map(failed).collect();
        let is_cut = cut.is_some();
        let lacks_faults =
            failed.is_empty() && !is_cut && !settings.faults.are_none() && report.injected == 0;
        let unmet =
            if is_cut { Vec::new() } else { unmet(&settings, scenario, generation, &report) };
        let unjudged = settings.unjudged_on(generation).collect();
        let found = Found { generation, report, cut, lacks_faults, failed, unmet, unjudged };
        if args.json.wanted {
            let flags = [true, false].map(|of_rule| flags(&usual, &settings, of_rule));
            let found = found.as_json(&source, scenario, &settings, args.search.first, &flags);
            write_json(&found, console)?;
        } else {
            found.write_line(scenario, console)?;
        }
        all.push(found);
        if cut == Some(Cut::Interrupted) {
            break;
        }
    }
    if !args.json.wanted {
        stories(&all, console)?;
        for cut in all.iter().filter(|found| found.cut.is_some()) {
            cut.write_how_to_go_on(args, &budget, console)?;
        }
    }
    if let Some(path) = &args.minimize {
        let output = Output { path, replacing: args.replacing };
        minimize(&fixture, &settings, &all, output, console)?;
    }
    Ok(if all.iter().any(Found::fails) {
        FAILED
    } else if all.iter().any(|found| found.cut == Some(Cut::Interrupted)) {
        INTERRUPTED
    } else {
        PASSED
    })
}

/// Says what the interleavings do not cover.
fn unmet(
    settings: &Exploration,
    scenario: &Scenario,
    generation: Generation,
    found: &Report,
) -> Vec<String> {
    let clause = settings.unfounded_on(generation, found).map(HistoryDifference::Clause);
    let unmet = scenario.unmet_on(generation, found).into_iter().map(HistoryDifference::Coverage);
    clause.into_iter().chain(unmet).map(|it| it.to_string()).collect()
}

/// Checks that the arguments fit together and fit the settings of the text.
fn check(args: &ExploreArgs, settings: &Exploration) -> Result<(), CliError> {
    strategy::check(settings.by, &args.search)?;
    if args.search.first.checked_add(settings.schedules).is_none() {
        let most = u64::MAX - settings.schedules;
        let what = format!("{} interleavings from there on have no numbers", settings.schedules);
        return Err(CliError::new("--first", format!("{what}: it is at most {most}")));
    }
    Ok(())
}

/// Writes the smallest text that fails as one of the interleavings does, or prints that no such text
/// exists.
fn minimize(
    fixture: &ProgramFixture,
    settings: &Exploration,
    all: &[Found],
    output: Output<'_>,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let failures = all.iter().filter_map(|found| Some((found, found.report.failure.as_ref()?)));
    let mut why = "no interleaving fails";
    for (found, failure) in failures {
        if write_smallest(fixture, found.generation, settings, failure, output, console)? {
            return Ok(());
        }
        why = "no interleaving that fails could be replayed";
    }
    let name = slashed(output.path);
    writeln!(console.out, "\n{HEAD}{name}{HEAD:#} is not written: {why}")?;
    Ok(())
}

fn head(
    source: &Source,
    scenario: &Scenario,
    settings: &Exploration,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    source.write_head(scenario, console.out)?;
    let by = match settings.by {
        Strategy::Pct { depth } => format!("pct of depth {depth}"),
        Strategy::Exhaustive { preemptions: Some(preemptions) } => {
            format!("exhaustive up to {preemptions} preemptions")
        }
        other => strategy::word(other).to_owned(),
    };
    let Exploration { schedules, seed, .. } = settings;
    let rules = if settings.rules { ", rules as failures" } else { "" };
    let faults = match settings.faults {
        none if none.are_none() => String::new(),
        faults => format!(", made to fail: {}", faults.which),
    };
    let what = format!(
        "{by}, seed {seed}, at most {schedules} interleavings on each runtime{rules}{faults}"
    );
    writeln!(console.out, "  {DIM}{what}{DIM:#}")?;
    if scenario.profiler.is_none() {
        let what = "note: the scenario has no `profiler`: nothing acts beside its program, so little can fail";
        writeln!(console.out, "  {DIM}{what}{DIM:#}")?;
    }
    Ok(())
}

/// Prints each failure once.
fn stories(all: &[Found], console: &mut Console<'_>) -> Result<(), CliError> {
    let mut distinct: Vec<&Failed> = Vec::new();
    let histories = all.iter().flat_map(|found| found.failed.iter().zip(found.report.failures()));
    for (FailedHistory { failed, replay, flags, .. }, failure) in histories {
        if distinct.iter().any(|other| other.is_like(failed)) {
            continue;
        }
        distinct.push(failed);
        let alike = all
            .iter()
            .filter(|other| other.failed.iter().any(|other| other.failed.is_like(failed)));
        let on: Vec<_> = alike.map(|found| found.generation).collect();
        let Failure { verdict, history, repeats, .. } = failure;
        writeln!(console.out, "\n{HEAD}{}{HEAD:#}", in_words(Generations::of(&on)))?;
        write_failure(verdict, history, console)?;
        let replay = replay_arguments(flags, replay);
        writeln!(console.out, "\n  {DIM}again:{DIM:#} clrsim replay {replay}")?;
        if !repeats {
            // A text's code depends on the interleaving alone, so that this is a fault of the simulator.
            writeln!(console.out, "  {BAD}that does not replay it: please report this{BAD:#}")?;
        }
    }
    Ok(())
}

impl Found {
    /// Returns true if an interleaving has failed, or the search does not say what it was to say.
    fn fails(&self) -> bool {
        let is_empty = self.failed.is_empty() && self.unmet.is_empty();
        !is_empty || self.lacks_faults || self.cut == Some(Cut::OutOfTime)
    }

    fn write_line(&self, scenario: &Scenario, console: &mut Console<'_>) -> Result<(), CliError> {
        let Self { generation, report, failed, .. } = self;
        let count = counted(report.schedules, "interleaving", "interleavings");
        let width = Generation::ALL.iter().map(|it| it.name().len()).max().unwrap_or(0);
        let name = generation.name();
        write!(console.out, "  {name:width$}  ")?;
        let cut = match self.cut {
            None => "",
            Some(Cut::Interrupted) => ", then interrupted",
            Some(Cut::OutOfTime) => ", then out of time",
        };
        match failed.first() {
            None if self.lacks_faults => {
                writeln!(console.out, "{BAD}no call was made to fail{BAD:#} in {count}")?;
            }
            None if self.cut == Some(Cut::OutOfTime) => {
                writeln!(console.out, "{BAD}has not ended in its time{BAD:#}, after {count}")?;
            }
            None => {
                let seen = covered(report.covered);
                let style = if self.unmet.is_empty() { GOOD } else { DIM };
                writeln!(console.out, "{style}survives{style:#} {count}{seen}{cut}")?;
            }
            Some(FailedHistory { failed: first, .. }) => {
                let hazard = first.hazard().map(|it| format!(" {it}")).unwrap_or_default();
                let further = match failed.len() - 1 {
                    0 => String::new(),
                    others => format!(" and {}", counted(others, "other fault", "other faults")),
                };
                let ends = &first.ends;
                writeln!(
                    console.out,
                    "{BAD}{ends}{BAD:#}{hazard}{further}, found in {count}{cut}"
                )?;
            }
        }
        for (by, rule, _) in report.broken.iter().filter(|_| failed.is_empty()) {
            let indent = width + 4;
            let by = thread_name(scenario, *by);
            writeln!(console.out, "{:indent$}{DIM}{by} breaks a rule: {rule}{DIM:#}", "")?;
        }
        for LeftWaiting { thread, what, interleavings, .. } in self.left_waiting() {
            let indent = width + 4;
            let (who, what) = (thread_name(scenario, *thread), waited_for(scenario, *what));
            let of = counted(*interleavings, "interleaving", "interleavings");
            writeln!(
                console.out,
                "{:indent$}{DIM}{who} still waits for {what} at the end of {of}{DIM:#}",
                ""
            )?;
        }
        for unmet in &self.unmet {
            write!(console.out, "    {BAD}not looked at:{BAD:#} ")?;
            write_wrapped(console.out, 6, Style::new(), unmet, "")?;
        }
        if !self.unjudged.is_empty() {
            let names: Vec<_> = self.unjudged.iter().map(ToString::to_string).collect();
            let text = format!("{}: no decision of a call names such a clause", names.join(", "));
            write!(console.out, "    {DIM}not judged:{DIM:#} ")?;
            write_wrapped(console.out, 6, Style::new(), &text, "")?;
        }
        Ok(())
    }

    /// Returns the threads that wait for ever at the end, if no interleaving fails: a failure comes first.
    fn left_waiting(&self) -> impl Iterator<Item = &LeftWaiting> {
        self.report.waiting.iter().filter(|_| self.failed.is_empty())
    }

    /// Prints the command that goes on with a search that was ended early.
    fn write_how_to_go_on(
        &self,
        args: &ExploreArgs,
        budget: &Budget,
        console: &mut Console<'_>,
    ) -> Result<(), CliError> {
        let (file, done) = (quoted(&slashed(&args.scenario.path)), self.report.schedules);
        let faults = strategy::fault_arguments(&args.search);
        let command = format!("clrsim explore {file} --on {}{faults}", self.generation);
        let (by, left) = ((budget.strategy, budget.seed), budget.schedules - done);
        Ok(strategy::write_how_to_go_on(console.out, &command, by, (budget.first + done, left))?)
    }

    fn as_json<'e>(
        &'e self,
        source: &'e Source,
        scenario: &Scenario,
        settings: &Exploration,
        first: u64,
        [of_rule, of_wait]: &[Vec<&'static str>; 2],
    ) -> Explored<'e> {
        let Self { generation, report, failed, cut, unmet, unjudged, .. } = self;
        let earliest = failed.first();
        let broken = report.broken.iter().map(|(_, rule, schedule)| Broken {
            rule: clr_scenario::Keyword::word(*rule).to_owned(),
            replay: name(&source.name, scenario, *generation, schedule),
            replay_flags: of_rule.clone(),
        });
        let waiting = report.waiting.iter().map(|left| Waiting {
            thread: thread_name(scenario, left.thread),
            waits_for: waited_for(scenario, left.what),
            interleavings: left.interleavings,
            replay: name(&source.name, scenario, *generation, &left.schedule),
            replay_flags: of_wait.clone(),
        });
        Explored {
            kind: "explored",
            file: &source.name,
            generation: generation.name(),
            strategy: strategy::word(settings.by),
            seed: settings.seed,
            first,
            schedules: report.schedules,
            turns: report.turns,
            injected: report.injected,
            covered: report.covered.map(|covered| Share {
                everything: covered.everything,
                millionths: covered.millionths,
                cut: covered.cut,
                limits: covered.limits.map(|limits| limits.to_string()),
            }),
            broken: broken.collect(),
            waiting: waiting.collect(),
            unmet,
            unjudged: unjudged.iter().map(ToString::to_string).collect(),
            number: earliest.map(|first| first.number),
            interrupted: *cut == Some(Cut::Interrupted),
            timed_out: *cut == Some(Cut::OutOfTime),
            replay: earliest.map(|first| first.replay.as_str()),
            replay_flags: earliest.map_or_else(Vec::new, |first| first.flags.clone()),
            times: earliest.map(|first| first.times),
            failed: earliest.map(|first| &first.failed),
            further: failed.get(1..).unwrap_or_default(),
        }
    }
}

/// Returns the name of a thread in the text.
fn thread_name(scenario: &Scenario, thread: ThreadIndex) -> String {
    match scenario.name_of(ThreadName::Thread(thread.0)) {
        "" => format!("thread {}", thread.0),
        name => name.to_owned(),
    }
}

/// Returns what a thread waits for, by its name in the text.
fn waited_for(scenario: &Scenario, what: WaitedFor) -> String {
    let events = || scenario.profiler.iter().flat_map(|profiler| &profiler.events);
    match what {
        WaitedFor::Event(event) => match events().nth(event as usize) {
            Some(name) => format!("the event \"{name}\""),
            None => what.to_string(),
        },
        WaitedFor::Lock(lock) => format!("the lock \"{}\"", scenario.name_of_lock(lock)),
        WaitedFor::Thread(thread) => format!("the end of {}", thread_name(scenario, thread)),
        WaitedFor::Condition(_) | WaitedFor::Runtime(_) => what.to_string(),
    }
}

/// Returns the searched part of all interleavings, in words.
fn covered(covered: Option<Coverage>) -> String {
    let Some(covered) = covered else { return String::new() };
    let bound = covered.preemptions.map(|bound| format!(" with at most {bound} preemptions"));
    let limits = covered.limits.map(|limits| format!(", {limits}")).unwrap_or_default();
    let bound = bound.unwrap_or_default() + &limits;
    if covered.everything {
        return format!(", which are all{bound}");
    }
    let tenths = covered.millionths / 1000;
    format!(", about {}.{} % of all{bound}", tenths / 10, tenths % 10)
}
