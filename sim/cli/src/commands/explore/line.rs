//! The line of JSON that a shard of a search prints for each runtime: all that `clrsim merge` needs.

use clr_explore::{Coverage, Failure, LimitBound, PointCoverage, Report, SearchPoints};
use clr_scenario::Keyword as _;
use serde::{Deserialize, Serialize};

/// The kind of these lines.
pub(crate) const KIND: &str = "shard";

/// A shard of a search on one runtime.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct ShardLine {
    pub(crate) kind: String,
    /// The number of the shard, from 1.
    pub(crate) shard: u64,
    pub(crate) generation: String,
    /// What was searched: the same in all shards.
    pub(crate) search: SearchLine,
    /// The parts that the shard has searched, in their order.
    pub(crate) parts: Vec<PartLine>,
    /// Number of parts of all shards.
    pub(crate) all_parts: u64,
    /// True if Ctrl-C ended the shard.
    pub(crate) interrupted: bool,
    /// True if the shard has taken all of its time.
    pub(crate) timed_out: bool,
}

/// A search that is divided into shards.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct SearchLine {
    /// The version of clrsim.
    pub(crate) version: String,
    pub(crate) file: String,
    /// A digest of the text, layout and comments apart.
    pub(crate) text: String,
    pub(crate) runtimes: Vec<String>,
    /// Number of shards.
    pub(crate) shards: u64,
    pub(crate) strategy: String,
    pub(crate) depth: Option<u32>,
    pub(crate) preemptions: Option<u32>,
    pub(crate) seed: u64,
    pub(crate) first: u64,
    pub(crate) schedules: u64,
    pub(crate) rules: bool,
    pub(crate) instructions: bool,
    /// The calls that were made to fail, as for `--faults`.
    pub(crate) faults: Option<String>,
    pub(crate) most_faults: u32,
    pub(crate) keep_going: bool,
}

/// A part of a search.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct PartLine {
    /// The place among all parts, from 0.
    pub(crate) part: u64,
    pub(crate) schedules: u64,
    pub(crate) turns: u64,
    pub(crate) injected: u64,
    pub(crate) failures: Vec<FailureLine>,
    pub(crate) broken: Vec<BrokenLine>,
    pub(crate) waiting: Vec<WaitingLine>,
    pub(crate) points: PointsLine,
    pub(crate) clauses: Vec<String>,
    pub(crate) covered: Option<CoveredLine>,
}

/// The first interleaving with a fault.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct FailureLine {
    pub(crate) number: u64,
    pub(crate) schedule: String,
    pub(crate) times: u64,
}

/// The first interleaving in which a thread broke a rule.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct BrokenLine {
    pub(crate) thread: u32,
    pub(crate) rule: String,
    pub(crate) schedule: String,
}

/// The first interleaving at whose end a thread waits for a thing.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct WaitingLine {
    pub(crate) thread: u32,
    pub(crate) interleavings: u64,
    pub(crate) schedule: String,
}

/// The coverage points that were passed.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct PointsLine {
    pub(crate) interleavings: u64,
    /// Of each point the number of interleavings that pass it, and how often at least and at most.
    pub(crate) passed: Vec<(u64, u32, u32)>,
}

/// The share of a part that was searched.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct CoveredLine {
    pub(crate) everything: bool,
    pub(crate) millionths: u32,
    pub(crate) cut: u64,
    /// When limits of waits pass: `last`, only when no thread can go on, or `early`.
    pub(crate) limits: Option<String>,
}

impl PartLine {
    /// Describes the report of a part.
    pub(super) fn new(part: u64, report: &Report) -> Self {
        let failure = |it: &Failure| FailureLine {
            number: it.number,
            schedule: it.schedule.to_string(),
            times: it.times,
        };
        let broken = report.broken.iter().map(|(thread, rule, schedule)| BrokenLine {
            thread: thread.0,
            rule: rule.word().to_owned(),
            schedule: schedule.to_string(),
        });
        let waiting = report.waiting.iter().map(|it| WaitingLine {
            thread: it.thread.0,
            interleavings: it.interleavings,
            schedule: it.schedule.to_string(),
        });
        let passed = |it: &PointCoverage| (it.interleavings, it.least, it.most);
        Self {
            part,
            schedules: report.schedules,
            turns: report.turns,
            injected: report.injected,
            failures: report.failures().map(failure).collect(),
            broken: broken.collect(),
            waiting: waiting.collect(),
            points: PointsLine {
                interleavings: report.points.interleavings(),
                passed: report.points.all().iter().map(passed).collect(),
            },
            clauses: report.clauses.iter().map(ToString::to_string).collect(),
            covered: report.covered.map(CoveredLine::new),
        }
    }
}

impl PointsLine {
    /// Returns the coverage points.
    pub(crate) fn points(&self) -> SearchPoints {
        let passed = self.passed.iter();
        let points = passed.map(|&(interleavings, least, most)| PointCoverage {
            interleavings,
            least,
            most,
        });
        SearchPoints::of(self.interleavings, points.collect())
    }
}

impl CoveredLine {
    fn new(covered: Coverage) -> Self {
        let limits = covered.limits.map(|limits| match limits {
            LimitBound::Last => "last",
            LimitBound::Early => "early",
        });
        Self {
            everything: covered.everything,
            millionths: covered.millionths,
            cut: covered.cut,
            limits: limits.map(str::to_owned),
        }
    }

    /// Returns the share, of a search with a bound on preemptions or without; `None` if a word means nothing.
    pub(crate) fn coverage(&self, preemptions: Option<u32>) -> Option<Coverage> {
        let mut covered = Coverage::default();
        covered.limits = match self.limits.as_deref() {
            None => None,
            Some("last") => Some(LimitBound::Last),
            Some("early") => Some(LimitBound::Early),
            Some(_) => return None,
        };
        (covered.everything, covered.millionths) = (self.everything, self.millionths);
        (covered.cut, covered.preemptions) = (self.cut, preemptions);
        Some(covered)
    }
}
