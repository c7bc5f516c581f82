//! The result of a search on one runtime, as it is printed.

use crate::args::Json;
use crate::commands::strategy;
use crate::input::Source;
use crate::interrupt::Cut;
use crate::render::console::{BAD, Console, DIM, GOOD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::style::Style;
use crate::render::words::counted;
use crate::render::wrap::write_wrapped;
use crate::report::history::{Failed, flags, flags_of, name, usual};
use clr_explore::{Coverage, Failure, LeftWaiting, Report, ThreadIndex, WaitedFor};
use clr_runtime::clause::Clause;
use clr_runtime::generation::Generation;
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

/// A text with the settings of a search.
pub(crate) struct Searching<'s> {
    pub(crate) source: &'s Source,
    pub(crate) scenario: &'s Scenario,
    pub(crate) settings: &'s Exploration,
    /// Number of the first interleaving.
    pub(crate) first: u64,
}

/// The result of a search on one runtime.
pub(crate) struct Found {
    pub(crate) generation: Generation,
    pub(crate) report: Report,
    /// Why the search was ended early, if it was.
    pub(crate) cut: Option<Cut>,
    /// True if calls were to fail, and none did.
    lacks_faults: bool,
    /// The failures of the report.
    pub(super) failed: Vec<FailedHistory>,
    /// Demands on coverage that the interleavings do not meet, callbacks that never came, and a clause that has decided
    /// nothing.
    unmet: Vec<String>,
    /// Clauses of the text's expectation that no search can judge.
    unjudged: Vec<Clause>,
}

/// A failed interleaving with the arguments that replay it.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct FailedHistory {
    number: u64,
    pub(super) replay: String,
    /// Flags that `clrsim replay` needs beside the string.
    #[serde(rename = "replay_flags")]
    pub(super) flags: Vec<&'static str>,
    /// Number of interleavings with the same fault.
    times: u64,
    #[serde(flatten)]
    pub(super) failed: Failed,
}

impl Found {
    /// Judges the result of a search on a runtime. One that was ended early is not asked what it has looked at.
    pub(crate) fn new(
        searching: &Searching<'_>,
        generation: Generation,
        report: Report,
        cut: Option<Cut>,
    ) -> Self {
        let Searching { source, scenario, settings, .. } = *searching;
        let usual = usual(scenario);
        let failed = |failure: &Failure| FailedHistory {
            number: failure.number,
            replay: name(&source.name, scenario, generation, &failure.schedule),
            flags: flags_of(&usual, settings, &failure.verdict),
            times: failure.times,
            failed: Failed::new(&failure.verdict, &failure.history),
        };
        let failed: Vec<_> = report.failures().map(failed).collect();
        let is_cut = cut.is_some();
        let lacks_faults =
            failed.is_empty() && !is_cut && !settings.faults.are_none() && report.injected == 0;
        let unmet =
            if is_cut { Vec::new() } else { unmet(settings, scenario, generation, &report) };
        let unjudged = settings.unjudged_on(generation).collect();
        Self { generation, report, cut, lacks_faults, failed, unmet, unjudged }
    }

    /// Prints the result: a line of JSON if that is `wanted`, else of text.
    pub(crate) fn write(
        &self,
        searching: &Searching<'_>,
        wanted: Json,
        console: &mut Console<'_>,
    ) -> Result<(), CliError> {
        if wanted.wanted {
            write_json(&self.as_json(searching), console)
        } else {
            self.write_line(searching.scenario, console)
        }
    }

    /// Returns true if an interleaving has failed, or the search does not say what it was to say.
    pub(super) fn fails(&self) -> bool {
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

    fn as_json<'e>(&'e self, searching: &Searching<'e>) -> Explored<'e> {
        let Searching { source, scenario, settings, first } = *searching;
        let usual = usual(scenario);
        let [of_rule, of_wait] = [true, false].map(|of_rule| flags(&usual, settings, of_rule));
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
