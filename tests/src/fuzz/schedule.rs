//! Fuzz target of schedules: a program, a profiler and a schedule made from the same bytes.

use super::orders::Histories;
use super::script::Script;
use super::text;
use crate::scheduled::Noted;
use arbitrary::{Arbitrary as _, Unstructured};
use clr_explore::{
    Choice, Ending, Explorer, History, HistoryDetail, Limits, LockName, ReplaySearch,
    ScheduleString, Search, Setup, TestedProcess, ThreadIndex, TurnEvent, Verdict,
};
use clr_generate::WorldProgram;
use clr_runtime::generation::Generation;
use clr_scenario::{Exploring, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Limits of an interleaving.
const LIMITS: Limits = Limits { turns: 1500, instructions: 300, every_instruction: false };

/// A search that chooses the next thread by one byte for each choice. Once the bytes are used up,
/// the thread that had the last turn continues as long as it can.
struct Bytes<'a> {
    bytes: &'a [u8],
}

impl Search for Bytes<'_> {
    fn begin(&mut self, number: u64) -> bool {
        number == 0
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        let usual = at.last.filter(|last| at.runnable.contains(last));
        let usual = usual.or_else(|| at.runnable.first().copied());
        if at.runnable.len() < 2 {
            return usual;
        }
        let Some((byte, rest)) = self.bytes.split_first() else { return usual };
        self.bytes = rest;
        match byte.checked_sub(0x80) {
            Some(number) => at.runnable.get(usize::from(number) % at.runnable.len()).copied(),
            None => usual,
        }
    }

    fn end(&mut self, _: &Ending) {}
}

/// Makes a program, a profiler that acts in any order, and a schedule from `data`, and runs that
/// interleaving. Any verdict is allowed, but:
///
/// - replaying the choices yields the same interleaving, event by event, also from their string form,
///   and recorded or not;
/// - no thread has a turn while it is suspended, except to finish a call of the system, or after its end;
/// - no thread owns a lock that another thread owns;
/// - a deadlock names existing threads, and has a key;
/// - steps whose accesses do not meet can change places, and each thread observes the same; and if there is no
///   schedule, and there are few interleavings, a search that leaves out such changes finds each outcome.
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0 | bit 0: every instruction is a switch point; the others: share of the remaining bytes that is the schedule |
/// | then | the schedule |
/// | then | the profiler, and the program |
///
/// A text has all of these, and an interleaving is chosen by the first search in it.
///
/// # Panics
/// If a property does not hold, with the history's string.
pub fn schedule(data: &[u8]) {
    if let Some(scenario) = text::scenario(data) {
        return of_text(&scenario);
    }
    let Some(case) = Case::new(data) else { return };
    // A few programs are too large for the formats.
    let Some(process) = case.process() else { return };
    let number = case.schedule.first().copied();
    let (load, mut search) = (case.loader(), case.search());
    let ending = run(&process, &load, &mut search, case.limits, number, &case.script);
    // Scripts never report failures themselves, so this one is a panic.
    if let Some(Ending { schedule, verdict: Some(Verdict::Failed { words, .. }), .. }) = ending {
        panic!("assertion failed: a panic: {words}\n{schedule}\n{:?}", case.script);
    }
}

/// Runs one interleaving of a text: that of its first schedule string, as far as it can be followed, or
/// the first one of its search.
fn of_text(scenario: &Scenario) {
    let Some(settings) = scenario.explore.first() else { return };
    let Ok(exploring) = Exploring::new(scenario, text::generation(scenario)) else { return };
    let limits = Limits { every_instruction: settings.instructions, ..LIMITS };
    let replay = settings.expect.iter().find_map(|expect| expect.replay.clone());
    let mut search: Box<dyn Search> = match replay {
        Some(schedule) => Box::new(ReplaySearch::new(schedule)),
        None => settings.by.search(settings.seed),
    };
    let text = format_args!("{scenario}");
    run(exploring.process(), &|setup| exploring.load(setup), &mut *search, limits, Some(0), &text);
}

/// Runs an interleaving, and checks its properties. `number` selects two independent steps that change places; without, all
/// interleavings are explored, too. Returns `None` if the process cannot be created.
fn run<'p>(
    process: &'p TestedProcess,
    load: &(dyn Fn(&mut Setup<'p>) + 'p),
    search: &mut dyn Search,
    limits: Limits,
    number: Option<u8>,
    profiler: &dyn Debug,
) -> Option<Ending> {
    let mut explorer = Explorer::new(process).ok()?;
    let first = explorer.run(load, search, limits, HistoryDetail::Nothing);
    let text = first.schedule.to_string();
    let reported = || format!("{text}\n{profiler:?}");
    let schedule: ScheduleString =
        text.parse().unwrap_or_else(|error| panic!("{error}: {}", reported()));
    assert_eq!(schedule, first.schedule, "{}", reported());
    let again = |explorer: &mut Explorer<'_>, detail| {
        let ending = explorer.replay(load, &schedule, limits, detail);
        ending.unwrap_or_else(|| panic!("the replay diverges: {}", reported()))
    };
    let mut second = again(&mut explorer, HistoryDetail::Statuses);
    let mut history = second.history.take().expect("the interleaving was recorded");
    // A search gives an interleaving up where a turn depends on time: it is the beginning of the one compared here.
    let is_given_up = first.verdict.is_none() && first.turns < second.turns;
    let first = if is_given_up { again(&mut explorer, HistoryDetail::Nothing) } else { first };
    assert_eq!(first, second, "{}", reported());
    let judged = judge(&history, first.verdict.as_ref());
    // A new process has no state left from earlier interleavings. Recording statuses takes most of an interleaving's time.
    let mut other = Explorer::new(process).expect("the process could be created before");
    for turn in &mut history.turns {
        turn.statuses.clear();
    }
    second.history = Some(history);
    let mut noted = Noted::new(ReplaySearch::new(schedule.clone()), 0);
    assert_eq!(
        other.run(load, &mut noted, limits, HistoryDetail::Events),
        second,
        "{}",
        reported()
    );
    let mut histories = Histories { explorer: &mut other, load, limits };
    let same = histories.swap(&second, &noted.steps, number.unwrap_or(0));
    let same = if number.is_none() { same.and_then(|()| histories.explore_all()) } else { same };
    if let Err(wrong) = same.and(judged) {
        panic!("assertion failed: {wrong}\n{}\n{:?}", reported(), first.verdict);
    }
    Some(first)
}

/// Returns the generation and the ending of the interleaving of [`schedule`]. The seeds are chosen by
/// them.
#[must_use]
pub fn ending_of_schedule(data: &[u8]) -> Option<(Generation, Ending)> {
    let case = Case::new(data)?;
    let process = case.process()?;
    let mut explorer = Explorer::new(&process).ok()?;
    let ending =
        explorer.run(&case.loader(), &mut case.search(), case.limits, HistoryDetail::Nothing);
    Some((process.generation(), ending))
}

struct Case<'a> {
    schedule: &'a [u8],
    limits: Limits,
    script: Script,
    program: WorldProgram,
}

impl<'a> Case<'a> {
    fn new(data: &'a [u8]) -> Option<Self> {
        let (&head, rest) = data.split_first()?;
        let (schedule, story) = rest.split_at(rest.len() * usize::from(head >> 1) / 0x80);
        let mut story = Unstructured::new(story);
        let script = Script::arbitrary(&mut story).ok()?;
        let program = WorldProgram::arbitrary(&mut story).ok()?;
        let limits = Limits { every_instruction: head & 1 == 1, ..LIMITS };
        Some(Self { schedule, limits, script, program })
    }

    fn process(&self) -> Option<TestedProcess> {
        crate::scheduled::process(&self.program).ok()
    }

    fn loader<'p>(&'p self) -> impl Fn(&mut Setup<'p>) + 'p {
        |setup| self.script.load(setup, self.program.threads.len())
    }

    const fn search(&self) -> Bytes<'a> {
        Bytes { bytes: self.schedule }
    }
}

/// Checks the properties of all interleavings. The error does not contain names and numbers of threads.
fn judge(history: &History, verdict: Option<&Verdict>) -> Result<(), String> {
    let mut before = None;
    let mut owners = BTreeMap::new();
    for turn in &history.turns {
        for event in &turn.events {
            let wrong = match event {
                TurnEvent::Acquired(LockName::Profiler(lock)) => {
                    owners.insert(lock, turn.thread).is_some()
                }
                TurnEvent::Released(LockName::Profiler(lock)) => {
                    owners.remove(lock) != Some(turn.thread)
                }
                _ => false,
            };
            if wrong {
                return Err(
                    "a thread acquires or releases a lock that another thread owns".to_owned()
                );
            }
        }
        let statuses = turn.statuses.as_slice();
        if turn.thread.index() >= history.threads.len() {
            return Err("a turn of an unknown thread".to_owned());
        }
        if let Some((at, then)) = before.replace((turn.at, statuses)) {
            if turn.at < at {
                return Err("time decreases".to_owned());
            }
            let stood = then.get(turn.thread.index());
            if stood.is_some_and(|stood| !stood.suspended_by.is_empty() && !stood.in_system) {
                return Err("a suspended thread has a turn".to_owned());
            }
            if stood.is_some_and(|stood| stood.ended) {
                return Err("a thread has a turn after its end".to_owned());
            }
        }
        let mut owned = BTreeSet::new();
        for lock in statuses.iter().flat_map(|thread| &thread.holds) {
            if !owned.insert(lock) {
                let kind = match lock {
                    LockName::Runtime(lock) => lock.name(),
                    LockName::Profiler(_) => "profiler's lock",
                };
                return Err(format!("two threads own one {kind}"));
            }
        }
    }
    if let Some(Verdict::Deadlock(edges)) = verdict {
        let is_there = |thread: ThreadIndex| thread.index() < history.threads.len();
        if !edges.iter().all(|edge| is_there(edge.waits) && is_there(edge.for_whom)) {
            return Err("a deadlock of unknown threads".to_owned());
        }
    }
    Ok(())
}
