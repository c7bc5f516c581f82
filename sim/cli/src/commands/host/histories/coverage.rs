//! The coverage of a search of a guest's interleavings, for people and as JSON.

use super::super::account::{Counted, named};
use crate::render::console::{BAD, DIM, HEAD};
use crate::render::shell::quoted;
use crate::render::style::Style;
use crate::render::wrap::write_wrapped;
use clr_guest::{CoveredName, CoveredThread, GuestCoverage, SearchCoverage, Unseen};
use clr_scenario::Unmet;
use clrsim::CallKind;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Most threads that are printed.
const THREADS: usize = 16;

/// The coverage of an interleaving, as the process that has executed it sends it: a line, empty if there is none.
pub(super) mod as_line {
    use clr_guest::GuestCoverage;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes the field")]
    pub(in super::super) fn serialize<S: Serializer>(
        coverage: &Option<GuestCoverage>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&coverage.as_ref().map(GuestCoverage::to_line).unwrap_or_default())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<GuestCoverage>, D::Error> {
        Ok(GuestCoverage::from_line(&String::deserialize(from)?))
    }
}

/// A callback or a method.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Calls {
    name: String,
    count: u64,
    /// Number of interleavings with such a call.
    interleavings: u64,
    results: Vec<Counted>,
    threads: Vec<Counted>,
}

/// A thread of the profiler: numbers of interleavings.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Thread {
    name: String,
    interleavings: u64,
    waited: u64,
    /// Number of interleavings in which it went on after its first wait.
    went_on: u64,
    ended: u64,
    /// The reasons why it could not go on at the end.
    still_waits_for: Vec<Counted>,
}

/// A fact that makes the answer empty.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Missing {
    /// The words of `--allow` for it.
    allow: String,
    text: String,
    allowed: bool,
}

/// The coverage of a search.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Looked {
    /// Number of different interleavings.
    different: u64,
    callbacks: Vec<Calls>,
    calls: Vec<Calls>,
    not_simulated: Vec<Counted>,
    threads: Vec<Thread>,
    /// The failures that the search has injected.
    injected: Vec<Counted>,
    /// The facts that nobody has looked at.
    unseen: Vec<Missing>,
    /// The demands of the text that are not met.
    unmet: Vec<String>,
}

impl Looked {
    pub(super) fn new(coverage: &SearchCoverage, unmet: &[Unmet], allowed: &[String]) -> Self {
        let calls =
            |kind| coverage.calls(kind).map(|(name, call)| Calls::new(name, call)).collect();
        let missing = coverage.unseen().into_iter().map(|fact| {
            let allow = fact.words();
            let is_of_class = |why: &str| why.starts_with("DllGetClassObject");
            let hint = match &fact {
                Unseen::NotLoaded(why) if is_of_class(why) => "; --clsid names the class",
                _ => "",
            };
            Missing { allowed: allowed.contains(&allow), text: format!("{fact}{hint}"), allow }
        });
        let not_simulated = coverage.not_simulated().iter();
        Self {
            different: coverage.different(),
            callbacks: calls(CallKind::Callback),
            calls: calls(CallKind::Method),
            not_simulated: not_simulated.map(|(name, count)| counted(name, *count)).collect(),
            threads: coverage.threads().iter().map(|(name, one)| Thread::new(name, one)).collect(),
            injected: coverage.injected().iter().map(|(it, count)| counted(it, *count)).collect(),
            unseen: missing.collect(),
            unmet: unmet.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns true if something that is not allowed to be left out was not looked at.
    pub(super) fn is_empty_answer(&self) -> bool {
        !self.unmet.is_empty() || self.unseen.iter().any(|missing| !missing.allowed)
    }

    /// Returns the lines of the summary of a number of interleavings: what each is about, and its items.
    fn lines(&self, of: u64) -> [(&'static str, Vec<String>); 4] {
        let injected =
            self.injected.iter().map(|Counted { name, count }| format!("{name} {count}"));
        [
            ("callbacks", self.callbacks.iter().map(|calls| calls.words(of)).collect()),
            ("calls", self.calls.iter().map(|calls| calls.words(of)).collect()),
            ("threads", threads(&self.threads)),
            ("made to fail", injected.collect()),
        ]
    }

    /// Writes the summary of a number of interleavings; `left` are the options `--allow` of the command.
    pub(super) fn write(&self, of: u64, left: &[String], out: &mut dyn Write) -> io::Result<()> {
        let mut line = |head: &str, items: Vec<String>| {
            if items.is_empty() {
                return Ok(());
            }
            write!(out, "  {DIM}{head}:{DIM:#} ")?;
            write_wrapped(out, 4, Style::new(), &items.join(", "), "")
        };
        line("different interleavings", vec![self.different.to_string()])?;
        for (head, items) in self.lines(of) {
            line(head, items)?;
        }
        for Missing { allow, text, allowed } in &self.unseen {
            if *allowed {
                write!(out, "  {DIM}allowed:{DIM:#} ")?;
                write_wrapped(out, 4, Style::new(), text, "")?;
                continue;
            }
            write!(out, "  {BAD}not looked at:{BAD:#} ")?;
            write_wrapped(out, 4, Style::new(), text, "")?;
            writeln!(out, "    {DIM}if it has to be so:{DIM:#} --allow {}", quoted(allow))?;
        }
        for unmet in &self.unmet {
            write!(out, "  {BAD}not as the scenario demands:{BAD:#} ")?;
            write_wrapped(out, 4, Style::new(), unmet, "")?;
        }
        let is_used = |word: &&String| self.unseen.iter().any(|missing| missing.allow == **word);
        for word in left.iter().filter(|word| !is_used(word)) {
            writeln!(out, "  {HEAD}note:{HEAD:#} --allow {} allows nothing here", quoted(word))?;
        }
        Ok(())
    }
}

/// A line about what a replayed interleaving covers.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Covered {
    /// `callbacks`, `calls` or `threads`.
    pub(super) what: String,
    pub(super) text: String,
}

impl Covered {
    /// Returns what an interleaving covers.
    pub(super) fn of(one: &GuestCoverage) -> Vec<Self> {
        let mut coverage = SearchCoverage::default();
        coverage.add(0, one);
        let lines = Looked::new(&coverage, &[], &[]).lines(1);
        let lines = lines.into_iter().filter(|(_, items)| !items.is_empty());
        lines.map(|(what, items)| Self { what: what.to_owned(), text: items.join(", ") }).collect()
    }
}

/// Returns the first threads in words, and how many others there are.
fn threads(all: &[Thread]) -> Vec<String> {
    let others = all.len().saturating_sub(THREADS);
    let others = (others > 0).then(|| format!("and {others} others"));
    all.iter().take(THREADS).map(Thread::words).chain(others).collect()
}

fn counted(name: &str, count: u64) -> Counted {
    Counted { name: name.to_owned(), count }
}

impl Calls {
    fn new(name: &str, call: &CoveredName) -> Self {
        let result = |result: &Option<_>| match result {
            Some(result) => named(*result),
            None => "not returned".to_owned(),
        };
        Self {
            name: name.to_owned(),
            count: call.count,
            interleavings: call.interleavings,
            results: call.results.iter().map(|(it, count)| counted(&result(it), *count)).collect(),
            threads: call.threads.iter().map(|(name, count)| counted(name, *count)).collect(),
        }
    }

    fn words(&self, of: u64) -> String {
        let Self { name, count, interleavings, results, .. } = self;
        let few = match interleavings {
            all if *all == of => String::new(),
            few => format!(" in {few} interleavings"),
        };
        let results = match results.as_slice() {
            [one] if one.name == "S_OK" => String::new(),
            all => {
                let all = all.iter().map(|one| format!("{} {}", one.count, one.name));
                format!(" ({})", all.collect::<Vec<_>>().join(", "))
            }
        };
        format!("{name} {count}{few}{results}")
    }
}

impl Thread {
    fn new(name: &str, thread: &CoveredThread) -> Self {
        let CoveredThread { interleavings, waited, went_on, ended, still_waits_for } = thread;
        let still = still_waits_for.iter();
        Self {
            name: name.to_owned(),
            interleavings: *interleavings,
            waited: *waited,
            went_on: *went_on,
            ended: *ended,
            still_waits_for: still.map(|(what, count)| counted(what, *count)).collect(),
        }
    }

    fn words(&self) -> String {
        let Self { name, interleavings, waited, went_on, ended, still_waits_for } = self;
        let waits = match waited {
            0 => String::new(),
            _ => format!(", waited in {waited} and went on in {went_on}"),
        };
        let still = still_waits_for.iter().map(|Counted { name, count }| {
            format!(", at the end still waited for {name} in {count}")
        });
        let still = still.collect::<String>();
        format!("{name} (in {interleavings}{waits}, ended in {ended}{still})")
    }
}
