//! Coverage of a search: what its interleavings cover together, and what nobody has looked at.

use crate::coverage::GuestCoverage;
use clr_explore::SearchPoints;
use clr_runtime::profiling::CallFaults;
use clr_walker::profiling::HResult;
use clrsim::CallKind;
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

/// The method that walks a stack.
const WALK: &str = "DoStackSnapshot";
/// The callback that gets its frames.
const FRAME: &str = "StackSnapshotCallback";
/// Calls that each profiler makes and gets, whatever it does.
const USUAL: [&str; 5] =
    ["Initialize", "Shutdown", "QueryInterface", "SetEventMask", "SetEventMask2"];

/// The calls of a callback or a method in a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredName {
    /// Number of calls.
    pub count: u64,
    /// Number of interleavings with such a call.
    pub interleavings: u64,
    /// The results with their numbers; `None` for calls that have not returned.
    pub results: BTreeMap<Option<HResult>, u64>,
    /// The names of the threads with the numbers of their calls.
    pub threads: BTreeMap<String, u64>,
}

/// A thread of the profiler in a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredThread {
    /// Number of interleavings with the thread.
    pub interleavings: u64,
    /// Number of them in which it had to wait.
    pub waited: u64,
    /// Number of them in which it went on after its first wait.
    pub went_on: u64,
    /// Number of them in which it ended.
    pub ended: u64,
    /// The reasons why it could not go on at the end, with the numbers of interleavings.
    pub still_waits_for: BTreeMap<String, u64>,
}

/// A fact that makes the answer "all ends well" empty: something was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Unseen {
    /// The profiler is not loaded, for this reason.
    NotLoaded(String),
    /// The profiler called a method that a CLR answers, and this runtime does not simulate.
    NotSimulated(String),
    /// The profiler asked for the right to walk stacks, and no walk has given a frame: the results of its walks.
    NoWalk(Vec<String>),
    /// A thread of the profiler with this name never went on after its first wait.
    Stuck(String),
    /// The profiler called nothing, and nothing called it.
    Nothing,
    /// No call of this method was made to fail, though the search was to; of none at all, if it was to inject `all`
    /// failures.
    NoFault(&'static str),
    /// The text's `explore` expects something on this runtime, which no run of a library judges.
    NotJudged,
}

impl Unseen {
    /// Returns the words by which this fact is allowed: `no-walk`.
    pub fn words(&self) -> String {
        match self {
            Self::NotLoaded(_) => "not-loaded".to_owned(),
            Self::NotSimulated(method) => format!("not-simulated:{method}"),
            Self::NoWalk(_) => "no-walk".to_owned(),
            Self::Stuck(thread) => format!("stuck:{thread}"),
            Self::Nothing => "nothing".to_owned(),
            Self::NoFault(method) => format!("no-fault:{method}"),
            Self::NotJudged => "not-judged".to_owned(),
        }
    }
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoaded(why) => write!(f, "the profiler is not loaded: {why}"),
            Self::NotSimulated(method) => {
                write!(
                    f,
                    "{method} is not simulated: the profiler got E_NOTIMPL, and a CLR answers"
                )
            }
            Self::NoWalk(results) if results.is_empty() => f.write_str(
                "the profiler asked for the right to walk stacks, and no stack was walked",
            ),
            Self::NoWalk(results) => {
                write!(f, "no walk of a stack has given a frame: {}", results.join(", "))
            }
            Self::Stuck(thread) => write!(f, "{thread} never went on after its first wait"),
            Self::Nothing => {
                f.write_str("the profiler called no method, and no callback was raised")
            }
            Self::NoFault("all") => f.write_str("no call was made to fail"),
            Self::NoFault(method) => write!(f, "no call of {method} was made to fail"),
            Self::NotJudged => f.write_str(
                "what the text's `explore` expects is not judged: it is about the text's own profiler, in `clrsim run`",
            ),
        }
    }
}

/// The coverage of a search: the sums of that of its interleavings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchCoverage {
    /// Number of interleavings.
    pub interleavings: u64,
    /// The failures that the search was to inject.
    pub faults: CallFaults,
    /// True if the text expects something of searches with its own profiler.
    pub expects_of_own: bool,
    digests: BTreeSet<u64>,
    not_loaded: BTreeMap<String, u64>,
    asked_to_walk: bool,
    calls: BTreeMap<(CallKind, String), CoveredName>,
    not_simulated: BTreeMap<String, u64>,
    threads: BTreeMap<String, CoveredThread>,
    injected: BTreeMap<String, u64>,
    points: SearchPoints,
}

impl SearchCoverage {
    /// Adds an interleaving with the digest of its turns.
    pub fn add(&mut self, digest: u64, one: &GuestCoverage) {
        self.interleavings += 1;
        self.digests.insert(digest);
        self.asked_to_walk |= one.asked_to_walk;
        if let Some(why) = &one.not_loaded {
            *self.not_loaded.entry(why.clone()).or_default() += 1;
        }
        for (method, count) in &one.not_simulated {
            *self.not_simulated.entry(method.clone()).or_default() += u64::from(*count);
        }
        for fault in &one.injected {
            *self.injected.entry(fault.clone()).or_default() += 1;
        }
        let mut names = BTreeSet::new();
        for call in &one.calls {
            let known = self.calls.entry((call.kind, call.name.clone())).or_default();
            let count = u64::from(call.count);
            known.count += count;
            known.interleavings += u64::from(names.insert((call.kind, &call.name)));
            *known.results.entry(call.result).or_default() += count;
            *known.threads.entry(one.thread_name(call.thread).to_owned()).or_default() += count;
        }
        for thread in one.threads.iter().filter(|thread| thread.is_profilers) {
            let known = self.threads.entry(thread.name.clone()).or_default();
            known.interleavings += 1;
            known.waited += u64::from(thread.waits > 0);
            known.went_on += u64::from(thread.went_on > 0);
            known.ended += u64::from(thread.ended);
            if let Some(what) = &thread.waits_for {
                *known.still_waits_for.entry(what.clone()).or_default() += 1;
            }
        }
    }

    /// Adds an interleaving that ends well to what the text's demands judge.
    pub fn add_points(&mut self, one: &GuestCoverage) {
        self.points.add(&one.points);
    }

    /// Returns how often the interleavings that end well pass the points of the text's demands.
    pub const fn points(&self) -> &SearchPoints {
        &self.points
    }

    /// Returns the number of different interleavings.
    pub fn different(&self) -> u64 {
        self.digests.len() as u64
    }

    /// Returns the calls in one direction, by name.
    pub fn calls(&self, kind: CallKind) -> impl Iterator<Item = (&str, &CoveredName)> {
        let calls = self.calls.iter().filter(move |((it, _), _)| *it == kind);
        calls.map(|((_, name), covered)| (name.as_str(), covered))
    }

    /// Returns the methods that were called and are not simulated, with the numbers of calls.
    pub const fn not_simulated(&self) -> &BTreeMap<String, u64> {
        &self.not_simulated
    }

    /// Returns the failures that were injected, with their numbers: `EnumThreads=E_OUTOFMEMORY`.
    pub const fn injected(&self) -> &BTreeMap<String, u64> {
        &self.injected
    }

    /// Returns the threads of the profiler, by name.
    pub const fn threads(&self) -> &BTreeMap<String, CoveredThread> {
        &self.threads
    }

    /// Returns what nobody has looked at.
    pub fn unseen(&self) -> Vec<Unseen> {
        let mut unseen: Vec<_> = self.not_loaded.keys().cloned().map(Unseen::NotLoaded).collect();
        unseen.extend(self.not_simulated.keys().cloned().map(Unseen::NotSimulated));
        let is_loaded = unseen.iter().all(|fact| !matches!(fact, Unseen::NotLoaded(_)));
        let has_frames = self.calls.contains_key(&(CallKind::Callback, FRAME.to_owned()));
        if self.asked_to_walk && !has_frames {
            let walks = self.calls.get(&(CallKind::Method, WALK.to_owned()));
            unseen.push(Unseen::NoWalk(walks.map(results).unwrap_or_default()));
        }
        let stuck =
            self.threads.iter().filter(|(_, thread)| thread.waited > 0 && thread.went_on == 0);
        unseen.extend(stuck.map(|(name, _)| Unseen::Stuck(name.clone())));
        let is_unusual = |(_, name): &(CallKind, String)| !USUAL.contains(&name.as_str());
        if is_loaded && self.interleavings > 0 && !self.calls.keys().any(is_unusual) {
            unseen.push(Unseen::Nothing);
        }
        unseen.extend(self.not_injected());
        unseen.extend(self.expects_of_own.then_some(Unseen::NotJudged));
        unseen
    }

    /// Returns the methods that were to fail, and did not.
    fn not_injected(&self) -> Vec<Unseen> {
        if self.faults == CallFaults::ALL {
            return self
                .injected
                .is_empty()
                .then_some(Unseen::NoFault("all"))
                .into_iter()
                .collect();
        }
        let mut methods: Vec<_> = self.faults.iter().map(|fault| fault.method).collect();
        methods.dedup();
        let is_of = |fault: &String, method| fault.split('=').next() == Some(method);
        methods.retain(|method| !self.injected.keys().any(|fault| is_of(fault, *method)));
        methods.into_iter().map(Unseen::NoFault).collect()
    }
}

/// Returns the results of walks in words.
fn results(walks: &CoveredName) -> Vec<String> {
    let words = walks.results.iter().map(|(result, count)| match result {
        Some(result) => format!("{count} {result}"),
        None => format!("{count} have not returned"),
    });
    words.collect()
}
