//! The first difference of two traces, without what is chance.
//!
//! `there` is the story that is right, of a real CLR; `here` is the simulated one. The rules that say what is chance are in the
//! book, chapter "Traces: your profiler in both worlds" (`sim/src/book/traces.md`); numbers in this crate are theirs.

use crate::difference::{Difference, Place};
use crate::filter::{Filter, IsNamed, LeftOut, is_about_text, subject};
use crate::ids::IdKind;
use crate::trace::{Call, CallKind, Frame, Trace, TraceThread, Value, Values};
use std::collections::BTreeMap;

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The first difference of each thread, the first one first.
    pub differences: Vec<Difference>,
    /// Number of callbacks that were compared.
    pub callbacks: usize,
    /// Number of those among them that are about the program: not only its start and its end.
    pub callbacks_of_program: usize,
    /// Number of calls that were compared.
    pub calls: usize,
    /// Numbers of calls of `there` that were left out.
    pub left_out: LeftOut,
}

impl Comparison {
    /// Returns true if there is no difference, and something of the program was compared.
    #[must_use]
    pub const fn is_same(&self) -> bool {
        self.differences.is_empty() && self.callbacks_of_program > 0
    }
}

/// Callbacks that each profiler gets, whatever it asks for.
const LIFE: [&str; 4] = ["Initialize", "InitializeForAttach", "ProfilerAttachComplete", "Shutdown"];

/// Compares two traces.
#[must_use]
pub fn compare(there: &Trace, here: &Trace, is_named: IsNamed<'_>) -> Comparison {
    let mut found = Comparison::default();
    let finalizers = finalizer(there, is_named).zip(finalizer(here, is_named)).unzip();
    let theirs = compared_threads(there, is_named, finalizers.0, &mut found.left_out);
    let ours = compared_threads(here, is_named, finalizers.1, &mut LeftOut::default());
    let count = theirs.len().min(ours.len());
    let ids = |threads: &[&TraceThread]| {
        let ids = threads.iter().take(count).enumerate();
        ids.filter_map(|(at, thread)| Some((thread.id.clone()?, at))).collect()
    };
    let pairs = Pairs { there: ids(&theirs), here: ids(&ours) };
    for (one, other) in theirs.iter().zip(&ours) {
        let mut comparer = Comparer { pairs: &pairs, is_named, found: &mut found };
        let mut place = Place { thread: one.name.clone(), within: Vec::new(), line: None };
        let [theirs, ours] = [one, other].map(|thread| thread.calls.iter().collect());
        let difference = comparer.calls(theirs, ours, &mut place).err();
        found.differences.extend(difference.map(|found| *found));
    }
    let place = |thread: &TraceThread| Place {
        thread: thread.name.clone(),
        within: Vec::new(),
        line: thread.calls.first().map(|call| call.line),
    };
    let only = |thread: &&TraceThread, there| Difference::Thread(place(thread), there);
    found.differences.extend(theirs.iter().skip(count).map(|thread| only(thread, true)));
    found.differences.extend(ours.iter().skip(count).map(|thread| only(thread, false)));
    found.differences.sort_by_key(|one| one.place().line.unwrap_or(usize::MAX));
    found
}

/// Returns the finalizer's thread of a trace.
fn finalizer<'t>(trace: &'t Trace, is_named: IsNamed<'_>) -> Option<&'t TraceThread> {
    let all = trace.threads.iter().flat_map(|thread| &thread.calls);
    let begin = all.filter(|call| is_about_text(call, is_named)).map(|call| call.line).min();
    trace.finalizer(begin?)
}

/// Returns the threads of a trace that are compared (rules 1, 4): the one of `Initialize`, the finalizer's, and those with
/// callbacks about code of the text.
fn compared_threads<'t>(
    trace: &'t Trace,
    is_named: IsNamed<'_>,
    finalizer: Option<&'t TraceThread>,
    left_out: &mut LeftOut,
) -> Vec<&'t TraceThread> {
    let is_first =
        |thread: &&TraceThread| thread.calls.iter().any(|call| call.name.starts_with("Initialize"));
    let mut threads: Vec<_> = trace.threads.iter().filter(is_first).take(1).collect();
    threads.extend(finalizer);
    let is_paired =
        |thread: &TraceThread| finalizer.is_some_and(|paired| std::ptr::eq(paired, thread));
    for thread in trace.threads.iter().filter(|thread| !is_first(thread) && !is_paired(thread)) {
        if thread.id.is_none() {
            left_out.native += thread.calls.len();
        } else if thread.calls.iter().any(|call| is_about_text(call, is_named)) {
            threads.push(thread);
        } else {
            left_out.unnamed += thread.calls.len();
        }
    }
    threads
}

/// The numbers of the threads that are pairs, by id.
struct Pairs {
    there: BTreeMap<String, usize>,
    here: BTreeMap<String, usize>,
}

struct Comparer<'c> {
    pairs: &'c Pairs,
    is_named: IsNamed<'c>,
    found: &'c mut Comparison,
}

impl Comparer<'_> {
    /// Compares the calls of a thread, or those in a call.
    fn calls(
        &mut self,
        mut there: Vec<&Call>,
        mut here: Vec<&Call>,
        place: &mut Place,
    ) -> Result<(), Box<Difference>> {
        let mut filter = Filter::new(self.is_named, &self.pairs.there);
        there.retain(|call| filter.keeps(call, &mut self.found.left_out));
        let mut filter = Filter::new(self.is_named, &self.pairs.here);
        here.retain(|call| filter.keeps(call, &mut LeftOut::default()));
        for at in 0..there.len().max(here.len()) {
            let (one, other) = (there.get(at).copied(), here.get(at).copied());
            place.line = one.map(|call| call.line);
            match (one, other) {
                (Some(one), Some(other)) if self.is_same(one, other) => {
                    self.call(one, other, place)?;
                }
                _ => {
                    let rest = |all: &[_]| all.get(at..).unwrap_or_default().to_vec();
                    let (there, here) = (rest(&there), rest(&here));
                    return Err(Box::new(self.parting(&there, &here, place.clone())));
                }
            }
        }
        Ok(())
    }

    /// Says how two lists of calls part at their first ones.
    fn parting(&self, there: &[&Call], here: &[&Call], place: Place) -> Difference {
        match (there.first(), here.first()) {
            (Some(one), Some(other)) => {
                let is_later = here.iter().any(|later| self.is_same(one, later));
                if is_later && there.iter().any(|later| self.is_same(later, other)) {
                    Difference::Order(place, one.to_string(), other.to_string())
                } else if is_later {
                    Difference::Extra(place, other.to_string())
                } else {
                    Difference::Missing(place, one.to_string())
                }
            }
            (None, Some(other)) => Difference::Extra(place, other.to_string()),
            (one, None) => {
                Difference::Missing(place, one.map(ToString::to_string).unwrap_or_default())
            }
        }
    }

    /// Returns true for the same call about the same.
    fn is_same(&self, there: &Call, here: &Call) -> bool {
        let subjects = subject(there).zip(subject(here));
        (there.kind, &there.name) == (here.kind, &here.name)
            && subjects.is_none_or(|(there, here)| self.is_equal(there, here, true))
    }

    fn call(
        &mut self,
        there: &Call,
        here: &Call,
        place: &mut Place,
    ) -> Result<(), Box<Difference>> {
        match there.kind {
            CallKind::Callback => {
                self.found.callbacks += 1;
                self.found.callbacks_of_program +=
                    usize::from(!LIFE.contains(&there.name.as_str()));
            }
            CallKind::Method => self.found.calls += 1,
        }
        self.values(there, &there.inputs, &here.inputs, true, place)?;
        place.within.push(there.to_string());
        self.calls(self.calls_in(there), self.calls_in(here), place)?;
        place.within.pop();
        place.line = Some(there.line);
        self.frames(there, here, place)?;
        let [one, other] = [there, here].map(|call| call.result.clone());
        if one != other {
            let text = |result: Option<String>| result.unwrap_or_else(|| "never".to_owned());
            let (there_text, here_text) = (text(one), text(other));
            let (place, call) = (place.clone(), there.to_string());
            return Err(Box::new(Difference::Result(place, call, there_text, here_text)));
        }
        self.values(there, &there.outputs, &here.outputs, false, place)
    }

    /// Compares the frames of a walk.
    fn frames(&self, there: &Call, here: &Call, place: &Place) -> Result<(), Box<Difference>> {
        let [theirs, ours] = [there, here].map(|call| self.named_frames(call));
        for at in 0..theirs.len().max(ours.len()) {
            let [one, other] = [&theirs, &ours].map(|frames| frames.get(at).copied());
            let shown = |frame: Option<&Frame>| {
                frame.map(|frame| (frame.function.clone(), frame.answer.clone()))
            };
            if shown(one) != shown(other) {
                let text = |frame: Option<&Frame>| frame.map(|frame| frame.function.clone());
                let (place, call) = (place.clone(), there.to_string());
                return Err(Box::new(Difference::Frame(place, call, text(one), text(other))));
            }
        }
        Ok(())
    }

    /// Returns the frames of functions that the text names, and the markers between them.
    fn named_frames<'w>(&self, walk: &'w Call) -> Vec<&'w Frame> {
        let mut frames: Vec<_> = walk.frames.iter().filter(|frame| self.is_kept(frame)).collect();
        frames.dedup_by(|one, other| one.is_marker() && other.is_marker());
        frames
    }

    fn is_kept(&self, frame: &Frame) -> bool {
        frame.is_marker() || (self.is_named)(IdKind::Function, &frame.function)
    }

    /// Returns the calls in a call; of a walk without those about frames that are left out.
    fn calls_in<'w>(&self, call: &'w Call) -> Vec<&'w Call> {
        let mut kept = Vec::new();
        let mut begin = 0;
        for frame in &call.frames {
            if self.is_kept(frame) {
                kept.extend(call.calls.get(begin..frame.calls).unwrap_or_default());
            }
            begin = frame.calls;
        }
        kept.extend(call.calls.get(begin..).unwrap_or_default());
        kept
    }

    fn values(
        &self,
        call: &Call,
        there: &Values,
        here: &Values,
        are_inputs: bool,
        place: &Place,
    ) -> Result<(), Box<Difference>> {
        for (name, one) in there {
            let Some((_, other)) = here.iter().find(|(known, _)| known == name) else { continue };
            let counts = are_inputs && is_meant(call.kind, name);
            if !self.is_equal(one, other, counts) {
                let (one, other) = (one.to_string(), other.to_string());
                let (place, call) = (place.clone(), call.to_string());
                return Err(Box::new(Difference::Value(place, call, name.clone(), one, other)));
            }
        }
        Ok(())
    }

    /// Compares two values; numbers only if they count.
    fn is_equal(&self, there: &Value, here: &Value, counts: bool) -> bool {
        match (there, here) {
            (Value::Id(IdKind::Thread, _, one), Value::Id(IdKind::Thread, _, other)) => {
                let pairs = self.pairs;
                pairs.there.get(one) == pairs.here.get(other)
            }
            (Value::Id(IdKind::AppDomain, ..), Value::Id(IdKind::AppDomain, ..)) => true,
            (Value::Id(_, one, _), Value::Id(_, other, _)) => match (one, other) {
                (Some(one), Some(other)) => one == other,
                // What a runtime does not name cannot be compared.
                _ => true,
            },
            (Value::Other(one), Value::Other(other)) => is_equal_text(one, other, counts),
            _ => false,
        }
    }
}

/// Returns true for a number that the profiler passes, or the runtime gives as a reason (rule 5).
fn is_meant(kind: CallKind, name: &str) -> bool {
    let is_size = ["capacity", "_len", "_size"].iter().any(|end| name.ends_with(end));
    match kind {
        CallKind::Callback => name.ends_with("reason"),
        CallKind::Method => !is_size && name != "os_thread",
    }
}

fn is_equal_text(there: &str, here: &str, counts: bool) -> bool {
    if there == here {
        return true;
    }
    let are = |is_it: fn(&str) -> bool| is_it(there) && is_it(here);
    if are(|text| text.starts_with(|first: char| first.is_ascii_digit())) {
        // HRESULTs without a name begin so, and no token does.
        let are_results = are(|text| text.starts_with("0x8"));
        return !are_results && (are(|text| text.starts_with("0x")) || !counts);
    }
    let last =
        |text: &str| text.rsplit(['/', '\\']).next().map(|text| text.trim_matches('"').to_owned());
    there.starts_with('"') && last(there) == last(here)
}
