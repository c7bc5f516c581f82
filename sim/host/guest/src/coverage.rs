//! Coverage of an interleaving: what the runtime and the profiler called, and how far each thread came.

use clr_explore::visible;
#[cfg(scheduled)]
use clr_explore::{Ending, LastPlace, ThreadEnd, ThreadKind, ThreadSummary, TurnEvent, WaitedFor};
#[cfg(scheduled)]
use clr_scenario::Demands;
use clr_walker::profiling::HResult;
use clrsim::CallKind;
#[cfg(scheduled)]
use clrsim::Report;
use core::fmt::Display;
use core::str::FromStr;

/// Separators of sections, records and fields in a line. Names have no control characters.
const SECTION: char = '\u{1d}';
const RECORD: char = '\u{1e}';
const FIELD: char = '\u{1f}';

/// The name of the thread that loads the profiler. It is one of the runtime.
#[cfg(scheduled)]
pub(crate) const START: &str = "the runtime's start";

/// The words for what a thread waits for that sleeps, or whose wait has a limit.
const TIME: &str = "time to pass";

/// Calls of one callback or method on one thread with one result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedCall {
    /// The direction.
    pub kind: CallKind,
    /// The callback or the method.
    pub name: String,
    /// The thread, an index of [`GuestCoverage::threads`].
    pub thread: u32,
    /// The result. `None` if the calls have not returned.
    pub result: Option<HResult>,
    /// Number of calls.
    pub count: u32,
}

/// A thread of an interleaving: its waits, and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCoverage {
    /// The thread's name, with control characters escaped.
    pub name: String,
    /// True for a thread of the profiler.
    pub is_profilers: bool,
    /// Number of waits in which it was blocked.
    pub waits: u64,
    /// Number of these waits that are over.
    pub went_on: u64,
    /// True if it has ended.
    pub ended: bool,
    /// The reason why it could not go on at the end, if it could not.
    pub waits_for: Option<String>,
}

/// The calls of an interleaving, and how far its threads came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestCoverage {
    /// The reason why the profiler is not loaded.
    pub not_loaded: Option<String>,
    /// True if the profiler has asked for the right to walk stacks (`COR_PRF_ENABLE_STACK_SNAPSHOT`).
    pub asked_to_walk: bool,
    /// The calls.
    pub calls: Vec<CountedCall>,
    /// The methods that were called and are not simulated, with the numbers of calls.
    pub not_simulated: Vec<(String, u32)>,
    /// The threads.
    pub threads: Vec<ThreadCoverage>,
    /// The failures that the search has injected: `EnumThreads=E_OUTOFMEMORY`.
    pub injected: Vec<String>,
    /// Number of times that each point of the text's demands is passed ([`Demands::points`]).
    pub points: Vec<u32>,
}

impl GuestCoverage {
    /// Returns the coverage of an interleaving that has ended.
    #[cfg(scheduled)]
    pub(crate) fn of(ending: &Ending, report: &Report, demands: &Demands<'_>) -> Self {
        let calls = report.coverage().iter().map(|(call, count)| CountedCall {
            kind: call.kind,
            name: call.name.to_owned(),
            thread: call.thread,
            result: call.result,
            count,
        });
        let not_simulated = report.calls_not_simulated().iter();
        let threads = threads(ending);
        Self {
            not_loaded: report.why_not_loaded().map(str::to_owned),
            asked_to_walk: report.asked_to_walk(),
            calls: calls.collect(),
            not_simulated: not_simulated
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            injected: injected(ending),
            points: report.points(demands, &|thread| {
                threads.get(thread as usize).map_or("", |thread| &*thread.name)
            }),
            threads,
        }
    }

    /// Returns the coverage as a line.
    pub fn to_line(&self) -> String {
        let Self { not_loaded, asked_to_walk, calls, not_simulated, threads, injected, points } =
            self;
        let reason = not_loaded.as_deref().map(visible).unwrap_or_default();
        let head = record(&[&u8::from(not_loaded.is_some()), &reason, &u8::from(*asked_to_walk)]);
        let calls = calls.iter().map(|call| {
            let result = call.result.map(|result| result.0.to_string()).unwrap_or_default();
            let is_method = u8::from(call.kind == CallKind::Method);
            record(&[&is_method, &call.name, &call.thread, &result, &call.count])
        });
        let not_simulated = not_simulated.iter().map(|(name, count)| record(&[name, count]));
        let threads = threads.iter().map(|thread| {
            let ThreadCoverage { name, is_profilers, waits, went_on, ended, waits_for } = thread;
            let [is_profilers, ended] = [*is_profilers, *ended].map(u8::from);
            record(&[
                name,
                &is_profilers,
                waits,
                went_on,
                &ended,
                &waits_for.as_deref().unwrap_or_default(),
            ])
        });
        let injected = section(injected.iter().cloned());
        let points = section(points.iter().map(|count| record(&[count])));
        let (calls, not_simulated, threads) =
            (section(calls), section(not_simulated), section(threads));
        let sections = [head, calls, not_simulated, threads, injected, points];
        sections.join(&SECTION.to_string())
    }

    /// Reads a coverage from its line. `None` if it is none.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut sections = line.split(SECTION);
        let mut head = sections.next()?.split(FIELD);
        let is_refused = number::<u8>(&mut head)? != 0;
        let reason = head.next()?.to_owned();
        let asked_to_walk = number::<u8>(&mut head)? != 0;
        let calls = records(sections.next()?, |fields| {
            let is_method = number::<u8>(fields)? != 0;
            Some(CountedCall {
                kind: if is_method { CallKind::Method } else { CallKind::Callback },
                name: fields.next()?.to_owned(),
                thread: number(fields)?,
                result: number(fields).map(HResult),
                count: number(fields)?,
            })
        })?;
        let not_simulated =
            records(sections.next()?, |fields| Some((fields.next()?.to_owned(), number(fields)?)))?;
        let threads = records(sections.next()?, |fields| {
            let name = fields.next()?.to_owned();
            let is_profilers = number::<u8>(fields)? != 0;
            let (waits, went_on) = (number(fields)?, number(fields)?);
            let ended = number::<u8>(fields)? != 0;
            let waits_for = fields.next().filter(|what| !what.is_empty()).map(str::to_owned);
            Some(ThreadCoverage { name, is_profilers, waits, went_on, ended, waits_for })
        })?;
        let injected = records(sections.next()?, |fields| Some(fields.next()?.to_owned()))?;
        let points = records(sections.next()?, number)?;
        let not_loaded = is_refused.then_some(reason);
        Some(Self { not_loaded, asked_to_walk, calls, not_simulated, threads, injected, points })
    }

    /// Returns the threads of the profiler that wait for ever at the end, each with what it waits for.
    pub fn left_waiting(&self) -> impl Iterator<Item = (&str, &str)> {
        let threads = self.threads.iter().filter(|thread| thread.is_profilers);
        threads.filter_map(|thread| {
            let what = thread.waits_for.as_deref().filter(|what| *what != TIME)?;
            Some((thread.name.as_str(), what))
        })
    }

    /// Returns the name of a thread.
    pub fn thread_name(&self, thread: u32) -> &str {
        self.threads.get(thread as usize).map_or("", |thread| &thread.name)
    }
}

fn record(fields: &[&dyn Display]) -> String {
    let fields: Vec<_> = fields.iter().map(ToString::to_string).collect();
    fields.join(&FIELD.to_string())
}

fn section(records: impl Iterator<Item = String>) -> String {
    records.collect::<Vec<_>>().join(&RECORD.to_string())
}

fn records<T>(
    section: &str,
    mut read: impl FnMut(&mut core::str::Split<'_, char>) -> Option<T>,
) -> Option<Vec<T>> {
    let records = section.split(RECORD).filter(|record| !record.is_empty());
    records.map(|record| read(&mut record.split(FIELD))).collect()
}

fn number<T: FromStr>(fields: &mut core::str::Split<'_, char>) -> Option<T> {
    fields.next()?.parse().ok()
}

/// Returns how far the threads of a recorded interleaving came.
#[cfg(scheduled)]
fn threads(ending: &Ending) -> Vec<ThreadCoverage> {
    let threads = ending.history.iter().flat_map(|history| &history.threads);
    let one = |(thread, end): (&ThreadSummary, &ThreadEnd)| ThreadCoverage {
        name: visible(&thread.name),
        is_profilers: thread.kind != ThreadKind::App && thread.name != START,
        waits: end.waits,
        went_on: end.went_on,
        ended: end.at == LastPlace::Ended,
        waits_for: match end.at {
            LastPlace::Ended | LastPlace::CanGoOn => None,
            LastPlace::Sleeps => Some(TIME.to_owned()),
            LastPlace::Suspended => Some("being resumed".to_owned()),
            LastPlace::Waits(what) => Some(visible(&format!("{what}{}", missed(ending, what)))),
        },
    };
    threads.zip(&ending.threads).map(one).collect()
}

/// Returns whether a notification that a thread waits for at the end was given before: none was since.
#[cfg(scheduled)]
fn missed(ending: &Ending, what: WaitedFor) -> &'static str {
    let WaitedFor::Condition(condition) = what else { return "" };
    let mut turns = ending.history.iter().flat_map(|history| &history.turns);
    if turns.any(|turn| turn.events.contains(&TurnEvent::Unheard(condition))) {
        ", which came when no thread waited"
    } else {
        ", which no thread gave"
    }
}

/// Returns the failures that were injected in a recorded interleaving.
#[cfg(scheduled)]
fn injected(ending: &Ending) -> Vec<String> {
    let turns = ending.history.iter().flat_map(|history| &history.turns);
    let faults = turns.flat_map(|turn| &turn.events).filter_map(|event| match event {
        TurnEvent::Injected(fault) => Some(fault.to_string()),
        _ => None,
    });
    faults.collect()
}
