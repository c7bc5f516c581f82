//! Demands on coverage, checked while interleavings are executed.

use crate::Scenario;
use crate::model::{CountDemand, Demand, Entrance, ProfilerScript, ThreadName};
use clr_explore::{PointCoverage, Report, SearchPoints, ThreadIndex, pass};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{CallbackKind, HResult};
use core::fmt;

/// A call between a profiler and the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverableCall<'c> {
    /// The runtime calls the profiler.
    Callback(CallbackKind),
    /// Actions of the text's own profiler begin.
    Actions(Entrance),
    /// The profiler calls a method of this name, with this result if it has returned.
    Method(&'c str, Option<HResult>),
}

/// A fact that a search should have found, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Index of the demand in [`Scenario::coverage`]; `None` for actions of the text's profiler that never began, for a
    /// clause that has decided nothing, and if no interleaving was judged.
    pub demand: Option<usize>,
    text: String,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The demands of a text on a generation. Actions of the text's own profiler that no demand names must begin in an
/// interleaving.
#[derive(Debug)]
pub struct Demands<'s> {
    all: &'s [Demand],
    generation: Generation,
    /// The beginnings of actions that must come.
    expected: Vec<CoverableCall<'static>>,
    /// The profiler is that of the text.
    is_own: bool,
}

/// The number of callbacks that have come in each order that is demanded, in an interleaving.
pub(crate) type OrderProgress = Vec<u32>;

impl<'s> Demands<'s> {
    /// Returns the demands of a text.
    #[must_use]
    pub fn of(scenario: &'s Scenario, generation: Generation) -> Self {
        let all = scenario.coverage.as_slice();
        let applying = all.iter().filter(|demand| demand.applies_to(generation));
        let is_named =
            |call: &CoverableCall<'_>| applying.clone().any(|demand| names(demand, *call));
        let calls = scenario.profiler.iter().flat_map(beginnings);
        let expected = calls.filter(|call| !is_named(call)).collect();
        Self { all, generation, expected, is_own: true }
    }

    /// Returns the demands for a profiler's library, which has callbacks of its own.
    #[must_use]
    pub const fn of_library(all: &'s [Demand], generation: Generation) -> Self {
        Self { all, generation, expected: Vec::new(), is_own: false }
    }

    /// Notes the points that a call on a thread passes: calls `passes` for each. A demand `n` has the points `2 * n`,
    /// for each call that counts or for the last callback of an order, and `2 * n + 1`, for a callback out of order.
    pub(crate) fn note(&self, call: CoverableCall<'_>, thread: &str, mut passes: impl FnMut(u32)) {
        for (number, demand) in self.applying() {
            if counts(demand, call, thread) {
                passes(2 * number);
            }
        }
        if let Some(place) = self.expected.iter().position(|expected| *expected == call) {
            passes((2 * self.all.len() + place) as u32);
        }
    }

    /// Notes the points that a callback on a thread passes because of its order.
    pub(crate) fn note_order(
        &self,
        kind: CallbackKind,
        thread: &str,
        progress: &mut OrderProgress,
        mut passes: impl FnMut(u32),
    ) {
        progress.resize(self.all.len(), 0);
        for ((number, demand), progress) in self.all.iter().enumerate().zip(progress) {
            let Demand::Order { callbacks, by, .. } = demand else { continue };
            if !callbacks.contains(&kind) || !is_by(by.as_deref(), thread) {
                continue;
            }
            let point = 2 * number as u32;
            let is_next = callbacks.get(*progress as usize) == Some(&kind);
            *progress += u32::from(is_next);
            if !is_next {
                passes(point + 1);
            } else if *progress as usize == callbacks.len() {
                passes(point);
            }
        }
    }

    /// Returns true if the demands include one on the order of callbacks.
    pub(crate) fn have_order(&self) -> bool {
        self.applying().any(|(_, demand)| matches!(demand, Demand::Order { .. }))
    }

    /// Returns true if nothing is demanded on the generation.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.expected.is_empty() && self.applying().next().is_none()
    }

    /// Returns how often a run passes each point: its calls with their threads and numbers, and its callbacks with their
    /// threads, in order.
    pub fn points<'c>(
        &self,
        calls: impl IntoIterator<Item = (CoverableCall<'c>, &'c str, u32)>,
        callbacks: impl IntoIterator<Item = (CallbackKind, &'c str)>,
    ) -> Vec<u32> {
        let (mut points, mut progress) = (Vec::new(), OrderProgress::new());
        for (call, thread, count) in calls {
            self.note(call, thread, |point| pass(&mut points, point, count));
        }
        for (kind, thread) in callbacks {
            self.note_order(kind, thread, &mut progress, |point| pass(&mut points, point, 1));
        }
        points
    }

    /// Returns what a single run, which passes the points so often, does not fulfil.
    #[must_use]
    pub fn unmet_by(&self, counts: &[u32]) -> Vec<Unmet> {
        let mut points = SearchPoints::default();
        points.add(counts);
        self.unmet(&points)
    }

    /// Returns what the interleavings of a search do not fulfil.
    #[must_use]
    pub fn unmet(&self, points: &SearchPoints) -> Vec<Unmet> {
        if points.interleavings() == 0 {
            return if self.are_none() { Vec::new() } else { vec![Unmet::nothing_judged()] };
        }
        let is_met = |number: u32, demand: &Demand| {
            let point = points.point(2 * number);
            match demand {
                Demand::Order { .. } => point.least > 0 && points.point(2 * number + 1).most == 0,
                Demand::Callback(_, count)
                | Demand::Actions(_, count)
                | Demand::Call { count, .. } => count.is_met(point),
                // Threads pass no points: `unmet_on` has them from the report.
                Demand::Stuck { .. } => true,
            }
        };
        let demands = self.applying().filter(|(number, demand)| !is_met(*number, demand));
        let unmet = demands.map(|(number, demand)| Unmet {
            demand: Some(number as usize),
            text: unmet_words(demand, points.point(2 * number)),
        });
        let first = 2 * self.all.len();
        let came = |place: usize| points.point((first + place) as u32).interleavings > 0;
        let absent = self.expected.iter().enumerate().filter(|(place, _)| !came(*place));
        unmet
            .chain(absent.map(|(_, call)| Unmet { demand: None, text: never_began(*call) }))
            .collect()
    }

    fn applying(&self) -> impl Iterator<Item = (u32, &'s Demand)> {
        let is_own = self.is_own;
        let applies = move |(_, demand): &(usize, &Demand)| {
            let is_of_text = matches!(demand, Demand::Actions(..) | Demand::Stuck { .. });
            demand.applies_to(self.generation) && (is_own || !is_of_text)
        };
        self.all.iter().enumerate().filter(applies).map(|(number, demand)| (number as u32, demand))
    }
}

impl CountDemand {
    /// Returns true if the interleavings pass a point as often as they have to.
    fn is_met(&self, point: PointCoverage) -> bool {
        let (few, many) =
            if self.each { (point.least, point.most) } else { (point.most, point.least) };
        self.least <= few && self.most.is_none_or(|most| many <= most)
    }
}

impl Unmet {
    /// Says that no interleaving was judged.
    fn nothing_judged() -> Self {
        let text = "no interleaving ended well, so what the text demands was not judged".to_owned();
        Self { demand: None, text }
    }
}

impl Scenario {
    /// Returns what the interleavings of a search of the text's own profiler do not cover. A failure hides the rest: then
    /// nothing is judged.
    #[must_use]
    pub fn unmet_on(&self, generation: Generation, found: &Report) -> Vec<Unmet> {
        if found.failure.is_some() || self.profiler.is_none() {
            return Vec::new();
        }
        let mut unmet = Demands::of(self, generation).unmet(&found.points);
        unmet.extend(self.stuck_on(generation, found));
        unmet
    }

    /// Returns the threads that never ran on after their first wait, though no demand says so, and the demands that say so
    /// of others.
    fn stuck_on(&self, generation: Generation, found: &Report) -> Vec<Unmet> {
        let name = |thread: u32| self.name_of(ThreadName::Thread(thread));
        let stuck: Vec<_> = found.stuck_at_once().map(|ThreadIndex(thread)| name(thread)).collect();
        let demands =
            self.coverage.iter().enumerate().filter_map(|(number, demand)| match demand {
                Demand::Stuck { thread, on } if on.contains(generation) => {
                    Some((number, &**thread))
                }
                _ => None,
            });
        let is_said = |thread: &str| demands.clone().any(|(_, said)| said == thread);
        let unsaid = stuck.iter().filter(|thread| !is_said(thread));
        let wrong = demands.clone().filter(|(_, thread)| !stuck.contains(thread));
        let unsaid = unsaid.map(|thread| Unmet { demand: None, text: never_went_on(thread) });
        let wrong = wrong.map(|(number, thread)| Unmet {
            demand: Some(number),
            text: format!("{thread} does not wait for ever at its first wait in each interleaving"),
        });
        unsaid.chain(wrong).collect()
    }
}

/// Returns the calls that begin actions of a text's profiler.
fn beginnings(profiler: &ProfilerScript) -> impl Iterator<Item = CoverableCall<'static>> {
    let callbacks = profiler.callbacks.iter().map(|(kind, _)| CoverableCall::Callback(*kind));
    let others = [
        (Entrance::Hook, &profiler.hook),
        (Entrance::Signal, &profiler.signal),
        (Entrance::Crash, &profiler.crash),
    ];
    let others = others.into_iter().filter(|(_, actions)| actions.is_some());
    callbacks.chain(others.map(|(entrance, _)| CoverableCall::Actions(entrance)))
}

/// Returns true if a demand is about a call.
fn names(demand: &Demand, call: CoverableCall<'_>) -> bool {
    match (demand, call) {
        (_, CoverableCall::Callback(kind)) => demand.names(kind),
        (Demand::Actions(entrance, _), CoverableCall::Actions(began)) => *entrance == began,
        _ => false,
    }
}

/// Returns true if a call on a thread is one of those that a demand counts.
fn counts(demand: &Demand, call: CoverableCall<'_>, thread: &str) -> bool {
    let by = |count: &CountDemand| is_by(count.by.as_deref(), thread);
    match (demand, call) {
        (Demand::Callback(kind, count), CoverableCall::Callback(came)) => {
            *kind == came && by(count)
        }
        (Demand::Actions(entrance, count), CoverableCall::Actions(began)) => {
            *entrance == began && by(count)
        }
        (Demand::Call { method, returns, count }, CoverableCall::Method(name, result)) => {
            method == name && (returns.is_none() || *returns == result) && by(count)
        }
        _ => false,
    }
}

/// Says what interleavings have instead of what a demand wants.
fn unmet_words(demand: &Demand, found: PointCoverage) -> String {
    let PointCoverage { least, most, .. } = found;
    let counted = |name: &str, count: &CountDemand| {
        let by = count.by.as_ref().map(|by| format!(" on {by}")).unwrap_or_default();
        let limit = count.most.map(|most| format!(", at most {most}")).unwrap_or_default();
        let each = if count.each { "each interleaving" } else { "an interleaving" };
        format!(
            "{name}{by} comes {least} to {most} times in an interleaving: in {each} it has to come at least {} times\
             {limit}",
            count.least
        )
    };
    match demand {
        Demand::Callback(kind, count) => counted(kind.name(), count),
        Demand::Actions(entrance, count) => counted(entrance.word(), count),
        Demand::Call { method, returns: None, count } => counted(method, count),
        Demand::Call { method, returns: Some(result), count } => {
            counted(&format!("{method} with {result}"), count)
        }
        Demand::Order { callbacks, .. } => {
            let names: Vec<_> = callbacks.iter().map(|kind| kind.name()).collect();
            format!("not every interleaving has the callbacks {} in this order", names.join(", "))
        }
        Demand::Stuck { thread, .. } => never_went_on(thread),
    }
}

/// Says that actions never began.
fn never_began(call: CoverableCall<'_>) -> String {
    let (name, node) = match call {
        CoverableCall::Callback(kind) => (kind.name(), format!("callback \"{}\"", kind.name())),
        CoverableCall::Actions(entrance) => (entrance.word(), entrance.word().to_owned()),
        CoverableCall::Method(name, _) => (name, format!("call \"{name}\"")),
    };
    format!(
        "{name} never came, so its actions were never executed; if it has to be so: coverage {{ {node} most=0 \
         in=\"each\" }}"
    )
}

/// Says that a thread never went on after its first wait.
fn never_went_on(thread: &str) -> String {
    format!(
        "{thread} never went on after its first wait, so its other actions were never executed; if it has to be so: \
         coverage {{ stuck \"{thread}\" }}"
    )
}

fn is_by(by: Option<&str>, thread: &str) -> bool {
    by.is_none_or(|by| by == thread)
}
