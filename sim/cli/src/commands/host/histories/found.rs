//! Executed interleavings of a guest, grouped by their ends.

use super::coverage;
use super::guest::{ENDS, Ended, NOT_LOADED, fingerprint};
use clr_explore::{Coverage, ProfilerRule};
use clr_guest::scheduled::{GuestEnding, after_faults};
use clr_guest::{GuestCoverage, SearchCoverage};
use clr_scenario::Keyword as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The words of the verdict of an interleaving that has left the simulation.
const HAS_LEFT: &str = "left the simulation";

/// An interleaving, as the process that has executed it reports it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Executed {
    pub(super) number: u64,
    pub(super) end: String,
    /// The methods that were made to fail before it failed.
    after: Vec<String>,
    /// Distinguishes failures with the same end.
    place: u64,
    /// The digest of its turns, and its choices. `None` if its process has ended.
    pub(super) choices: Option<(u64, String)>,
    /// The rules that it breaks.
    broken: Vec<String>,
    /// True if a thread has waited with a limit while another one could run.
    has_limits: bool,
    /// The calls and threads of the interleaving. `None` if its process has ended.
    #[serde(with = "coverage::as_line")]
    #[cfg_attr(feature = "pages", schemars(with = "String"))]
    coverage: Option<GuestCoverage>,
}

impl Executed {
    pub(super) fn new(number: u64, ended: &Ended) -> Self {
        let choices = ended.as_ref().ok().map(|it| (it.digest, it.schedule.to_string()));
        let broken = ended.iter().flat_map(|it| &it.broken);
        let broken = broken.map(|rule| rule.word().to_owned()).collect();
        let coverage = ended.as_ref().ok().map(|it| it.coverage.clone());
        let place = ended.as_ref().map_or(0, |it| it.place);
        let after = ended.as_ref().map(GuestEnding::failed_methods).unwrap_or_default();
        let has_limits = ended.as_ref().is_ok_and(|it| it.has_limits);
        let end = fingerprint(ended);
        Self { number, end, after, place, choices, broken, has_limits, coverage }
    }

    /// Returns the words for the end.
    pub(super) fn words(&self) -> String {
        after_faults(&self.end, &self.after)
    }

    /// Returns true if the profiler is not loaded.
    pub(super) fn is_not_loaded(&self) -> bool {
        self.end.starts_with(NOT_LOADED)
    }

    /// Returns true if the profiler has left the simulation.
    pub(super) fn has_left(&self) -> bool {
        self.end.contains(HAS_LEFT)
    }
}

/// The interleavings with the same end at the same place: their number, and the first of them.
pub(super) struct Group {
    pub(super) count: u64,
    pub(super) first: Executed,
}

impl Group {
    /// Creates a group without interleavings, to which this one is to be added first.
    fn of(executed: &Executed) -> Self {
        Self { count: 0, first: executed.clone() }
    }

    /// Adds an interleaving.
    fn add(&mut self, executed: &Executed) {
        self.count += 1;
        if executed.number < self.first.number {
            self.first = executed.clone();
        }
    }
}

/// The results of a search.
#[derive(Default)]
pub(super) struct Found {
    pub(super) groups: Vec<Group>,
    /// For each rule that is broken without harm, the number of interleavings, and the first of them.
    pub(super) broken: BTreeMap<&'static str, Group>,
    /// For each thread of the profiler that waits for ever at the end of interleavings that do not fail, and what it waits
    /// for, their number, and the first of them.
    pub(super) waiting: BTreeMap<(String, String), Group>,
    pub(super) covered: Option<Coverage>,
    /// True if limits of waits may have passed early in some interleaving.
    pub(super) has_limits: bool,
    pub(super) coverage: SearchCoverage,
    pub(super) stopped: Option<&'static str>,
    /// Numbers of executed interleavings that lie behind one that was not executed.
    ahead: BTreeSet<u64>,
    /// Number of interleavings before the first one that was not executed.
    pub(super) done: u64,
}

impl Found {
    /// Adds an interleaving of a search that begins with number `first`.
    pub(super) fn add(&mut self, mut executed: Executed, first: u64) {
        self.ahead.insert(executed.number.saturating_sub(first));
        while self.ahead.remove(&self.done) {
            self.done += 1;
        }
        self.has_limits |= executed.has_limits;
        if let (Some(covered), Some((digest, _))) = (executed.coverage.take(), &executed.choices) {
            self.coverage.add(*digest, &covered);
            if executed.end == ENDS {
                self.coverage.add_points(&covered);
                self.add_waiting(&executed, &covered);
            }
        }
        if executed.end == ENDS {
            let rules = executed.broken.iter().filter_map(|word| ProfilerRule::from_word(word));
            for rule in rules {
                self.broken
                    .entry(rule.word())
                    .or_insert_with(|| Group::of(&executed))
                    .add(&executed);
            }
        }
        let is_same = |known: &&mut Group| {
            let Executed { end, place, after, .. } = &known.first;
            (end, place, after) == (&executed.end, &executed.place, &executed.after)
        };
        match self.groups.iter_mut().find(is_same) {
            Some(known) => known.add(&executed),
            None => self.groups.push(Group { count: 1, first: executed }),
        }
    }

    /// Adds the threads that wait for ever at the end of an interleaving that does not fail.
    fn add_waiting(&mut self, executed: &Executed, covered: &GuestCoverage) {
        for (thread, what) in covered.left_waiting() {
            let known = self.waiting.entry((thread.to_owned(), what.to_owned()));
            known.or_insert_with(|| Group::of(executed)).add(executed);
        }
    }

    /// Joins outcomes after injected failures with the same outcome without: the failures are not the reason.
    pub(super) fn join_faults(&mut self) {
        let all = std::mem::take(&mut self.groups);
        let (after, mut groups): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|group| !group.first.after.is_empty());
        for group in after {
            match groups.iter_mut().find(|other| other.first.end == group.first.end) {
                Some(other) => other.count += group.count,
                None => self.groups.push(group),
            }
        }
        self.groups.append(&mut groups);
    }

    pub(super) fn total(&self) -> u64 {
        self.groups.iter().map(|group| group.count).sum()
    }
}
