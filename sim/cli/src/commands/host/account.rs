//! The account of a run: what its journal says, in order and in numbers.

use super::child::Remains;
use super::journal::{Found, Line, Walked};
use clr_guest::{CountedCall, GuestCoverage, SearchCoverage, Unseen};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::CallbackKind;
use clr_scenario::{CoverableCall, Demands, Unmet};
use clr_walker::profiling::HResult;
use clrsim::{CallKind, reason};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitStatus;

/// The verdict of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Clean,
    Findings,
    NotSimulated,
    Unseen,
    Threads,
    Refused,
    Unloadable,
    ProcessEnded,
    Stuck,
    Died,
    Hung,
    Limit,
}

impl Verdict {
    /// Returns the word of the help.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::NotSimulated => "not-simulated",
            Self::Unseen => "unseen",
            Self::Threads => "threads",
            Self::Refused => "refused",
            Self::Unloadable => "unloadable",
            Self::ProcessEnded => "process-ended",
            Self::Stuck => "stuck",
            Self::Died => "died",
            Self::Hung => "hung",
            Self::Limit => "limit",
        }
    }
}

/// What a run is judged by, besides its end.
pub(super) struct Judged<'j> {
    /// The text's demands on coverage.
    pub(super) demands: Demands<'j>,
    /// True if the text expects something of searches with its own profiler.
    pub(super) expects_of_own: bool,
    /// The words of the facts that are allowed.
    pub(super) allowed: &'j [String],
}

/// A step of loading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) result: String,
}

/// A callback or a method, and its results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Calls {
    pub(super) name: String,
    pub(super) count: u32,
    /// The results with their numbers, successes first.
    pub(super) results: Vec<Counted>,
}

/// A name and a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Counted {
    pub(super) name: String,
    pub(super) count: u64,
}

/// A result that refuses a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(super) struct Refusal {
    pub(super) method: String,
    pub(super) result: String,
    /// The reason, if it is known.
    pub(super) why: Option<String>,
    pub(super) clauses: Vec<String>,
}

/// A run of a profiler on a runtime.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Account {
    pub(super) kind: &'static str,
    pub(super) library: String,
    pub(super) file: String,
    pub(super) runtime: &'static str,
    pub(super) verdict: Verdict,
    /// The reason of the verdict, if it is not the findings.
    pub(super) because: Option<String>,
    pub(super) steps: Vec<Step>,
    pub(super) callbacks: Vec<Calls>,
    pub(super) calls: Vec<Calls>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) not_simulated: Vec<Counted>,
    pub(super) not_raised: Vec<Counted>,
    pub(super) findings: Vec<Found>,
    pub(super) walks: Vec<Walked>,
    /// References to the profiler's object that are left after those of the runtime.
    pub(super) references_left: Option<u32>,
    /// References that the end of the process frees.
    pub(super) kept: Vec<String>,
    /// Number of processes that it had started, and that were ended after it.
    pub(super) processes_left: usize,
    /// The output of the profiler.
    pub(super) printed: String,
}

/// Names with the numbers of their results, in the order of the first calls.
#[derive(Default)]
struct Results(Vec<(String, BTreeMap<u32, u32>)>);

impl Results {
    fn add(&mut self, name: String, result: u32) {
        let known = self.0.iter().position(|(known, _)| *known == name);
        let at = known.unwrap_or(self.0.len());
        if known.is_none() {
            self.0.push((name, BTreeMap::new()));
        }
        if let Some((_, results)) = self.0.get_mut(at) {
            *results.entry(result).or_default() += 1;
        }
    }
}

/// The parts of an account that grow with the journal.
#[derive(Default)]
struct Reading {
    steps: Vec<Step>,
    callbacks: Results,
    calls: Results,
    not_simulated: BTreeMap<String, u32>,
    not_raised: BTreeMap<String, u32>,
    findings: Vec<Found>,
    walks: Vec<Walked>,
    left: Option<u32>,
    kept: Vec<String>,
    unloadable: Option<String>,
    stuck: Option<String>,
    refused: Option<String>,
    is_over: bool,
    is_hung: bool,
    limit: Option<String>,
    processes_left: usize,
    asked_to_walk: bool,
    /// The callbacks with their threads, in order.
    entered: Vec<(CallbackKind, String)>,
    /// The methods with their threads and results, and their numbers.
    returned: BTreeMap<(String, String, u32), u32>,
    /// The steps, callbacks and methods that the process is in, the outermost first.
    within: Vec<String>,
}

impl Reading {
    fn read(&mut self, line: Line) {
        match line {
            Line::Begins(name) | Line::Calls(name) => self.within.push(name),
            Line::Enters { callback, thread } => {
                let kind = CallbackKind::from_name(&callback);
                self.entered.extend(kind.map(|kind| (kind, thread)));
                self.within.push(callback);
            }
            Line::Loaded { step, result } => {
                self.leave(&step);
                let result = HResult(result);
                // An object need not have each callback; all other steps must succeed.
                let is_optional = step.starts_with("QueryInterface(ICorProfilerCallback")
                    && step != "QueryInterface(ICorProfilerCallback2)"
                    || step == "LoadAsNotificationOnly";
                if result.is_failure() && !is_optional {
                    // Some factories refuse another class with E_FAIL.
                    let is_other =
                        result == HResult::CLASS_NOT_AVAILABLE || step == "DllGetClassObject";
                    let hint = if is_other { ": --clsid names the class" } else { "" };
                    self.refused = Some(format!("{step}: {result}{hint}"));
                }
                if step != "Release" && step != "AddRef" {
                    self.steps.push(Step { name: step, result: result.to_string() });
                }
            }
            Line::Unloadable(why) => self.unloadable = Some(why),
            Line::Leaves { callback, result } => {
                self.leave(&callback);
                let begins = matches!(&*callback, "Initialize" | "InitializeForAttach");
                if begins && HResult(result).is_failure() {
                    self.refused = Some(format!("{callback}: {}", HResult(result)));
                }
                self.callbacks.add(callback, result);
            }
            Line::Returns { method, thread, result } => {
                self.leave(&method);
                *self.returned.entry((method.clone(), thread, result)).or_default() += 1;
                self.calls.add(method, result);
            }
            Line::NotSimulated(name) => *self.not_simulated.entry(name).or_default() += 1,
            Line::NotRaised(name) => *self.not_raised.entry(name).or_default() += 1,
            Line::Found(found) => {
                // `Initialize` says it.
                if found.finding != "refused" && !self.findings.contains(&found) {
                    self.findings.push(found);
                }
            }
            Line::AskedToWalk => self.asked_to_walk = true,
            Line::Walked(walk) => self.walks.push(walk),
            Line::Released(left) => self.left = Some(left),
            Line::Kept(leak) => self.kept.push(leak),
            Line::Stuck(why) => self.stuck = Some(why),
            Line::Over => self.is_over = true,
            Line::Hung => self.is_hung = true,
            Line::Limit(limit) => self.limit = Some(limit),
            Line::Left(count) => self.processes_left = count,
        }
    }

    /// Leaves the last thing of this name, with what was not left in it.
    fn leave(&mut self, name: &str) {
        if let Some(at) = self.within.iter().rposition(|one| one == name) {
            self.within.truncate(at);
        }
    }

    fn has(&self, kind: &str) -> bool {
        self.findings.iter().any(|found| found.finding == kind)
    }

    /// Returns the verdict and its reason. Of a profiler with threads nothing else is to be believed, but that it has
    /// crashed, or has gone beyond a limit.
    fn verdict(&self, status: ExitStatus, judged: &Judged<'_>) -> (Verdict, Option<String>) {
        let (verdict, because) = self.verdict_of_end(status, judged);
        let has_threads = self.has("started-threads") || self.has("wrong-thread");
        if has_threads && !matches!(verdict, Verdict::Died | Verdict::Limit) {
            return (Verdict::Threads, because);
        }
        (verdict, because)
    }

    fn verdict_of_end(&self, status: ExitStatus, judged: &Judged<'_>) -> (Verdict, Option<String>) {
        let place = || match self.within.as_slice() {
            [] if self.is_over => "the end of the process, after the release".to_owned(),
            [] => "the program".to_owned(),
            within => within.join(", in it "),
        };
        let died = |how: String| (Verdict::Died, Some(format!("{how} in {}", place())));
        if self.is_hung {
            return (Verdict::Hung, Some(format!("it did not return from {}", place())));
        }
        if let Some(limit) = &self.limit {
            return (Verdict::Limit, Some(format!("{limit}, in {}", place())));
        }
        if !status.success() {
            return died(ending(status));
        }
        if let Some(why) = &self.unloadable {
            return (Verdict::Unloadable, Some(why.clone()));
        }
        if !self.is_over {
            return died("it called exit".to_owned());
        }
        if let Some(why) = &self.refused {
            return (Verdict::Refused, Some(why.clone()));
        }
        if self.has("process-ended") {
            return (Verdict::ProcessEnded, None);
        }
        if let Some(why) = &self.stuck {
            return (Verdict::Stuck, Some(why.clone()));
        }
        if !self.findings.is_empty() {
            return (Verdict::Findings, None);
        }
        let mut unseen = self.unseen(judged.expects_of_own);
        unseen.retain(|fact| !judged.allowed.contains(&fact.words()));
        let unmet = self.unmet(&judged.demands);
        let words = unseen.iter().map(ToString::to_string);
        let words: Vec<_> = words.chain(unmet.iter().map(ToString::to_string)).collect();
        let because = (!words.is_empty()).then(|| words.join("; "));
        let is_method = |fact: &Unseen| matches!(fact, Unseen::NotSimulated(_));
        match (words.is_empty(), unseen.iter().any(is_method)) {
            (true, _) => (Verdict::Clean, None),
            (false, true) => (Verdict::NotSimulated, because),
            (false, false) => (Verdict::Unseen, because),
        }
    }

    /// Returns what nobody has looked at.
    fn unseen(&self, expects_of_own: bool) -> Vec<Unseen> {
        let calls = |kind, results: &Results| -> Vec<CountedCall> {
            let all = results.0.iter().flat_map(|(name, results)| {
                results.iter().map(|(result, count)| (name.clone(), HResult(*result), *count))
            });
            let call = |(name, result, count)| CountedCall {
                kind,
                name,
                thread: 0,
                result: Some(result),
                count,
            };
            all.map(call).collect()
        };
        let mut coverage = SearchCoverage::default();
        coverage.expects_of_own = expects_of_own;
        coverage.add(
            0,
            &GuestCoverage {
                asked_to_walk: self.asked_to_walk,
                calls: [
                    calls(CallKind::Callback, &self.callbacks),
                    calls(CallKind::Method, &self.calls),
                ]
                .concat(),
                not_simulated: self.not_simulated.clone().into_iter().collect(),
                ..GuestCoverage::default()
            },
        );
        coverage.unseen()
    }

    /// Returns what the run lacks of the text's demands.
    fn unmet(&self, demands: &Demands<'_>) -> Vec<Unmet> {
        let order = self.entered.iter().map(|(kind, thread)| (*kind, &**thread));
        let callbacks = order.clone().map(|(kind, on)| (CoverableCall::Callback(kind), on, 1));
        let calls = self.returned.iter().map(|((method, thread, result), count)| {
            (CoverableCall::Method(method, Some(HResult(*result))), &**thread, *count)
        });
        demands.unmet_by(&demands.points(callbacks.chain(calls), order))
    }

    /// Returns the results that refuse calls.
    fn refusals(&self) -> Vec<Refusal> {
        let mut refusals: Vec<Refusal> = Vec::new();
        for walk in &self.walks {
            let Some(line) = walk.story.iter().find(|line| line.decides) else { continue };
            let refusal = Refusal {
                method: "DoStackSnapshot".to_owned(),
                result: walk.result.clone(),
                why: Some(line.text.clone()),
                clauses: line.clauses.clone(),
            };
            // Places differ from walk to walk; a clause is enough.
            let is_same = |other: &Refusal| {
                (&other.result, other.clauses.first()) == (&refusal.result, refusal.clauses.first())
            };
            if walk.result != HResult::OK.to_string() && !refusals.iter().any(is_same) {
                refusals.push(refusal);
            }
        }
        for (method, results) in &self.calls.0 {
            for result in results.keys().map(|result| HResult(*result)) {
                let has_story = refusals
                    .iter()
                    .any(|known| known.method == *method && known.result == result.to_string());
                if !result.is_failure() || has_story {
                    continue;
                }
                let reason = reason(result);
                refusals.push(Refusal {
                    method: method.clone(),
                    result: named(result),
                    why: reason.map(|(why, _)| why.to_owned()),
                    clauses: reason
                        .and_then(|(_, clause)| clause)
                        .map(str::to_owned)
                        .into_iter()
                        .collect(),
                });
            }
        }
        refusals
    }
}

/// Returns a result's name; also for the tool's own codes.
pub(super) fn named(result: HResult) -> String {
    match result {
        clrsim::results::ENDED => "CLRSIM_E_ENDED".to_owned(),
        clrsim::results::WRONG_THREAD => "CLRSIM_E_WRONG_THREAD".to_owned(),
        clrsim::results::RELEASED => "CLRSIM_E_RELEASED".to_owned(),
        clrsim::results::INSUFFICIENT_BUFFER => "E_NOT_SUFFICIENT_BUFFER".to_owned(),
        clrsim::results::POINTER => "E_POINTER".to_owned(),
        result => result.to_string(),
    }
}

/// Returns the end of a process in words.
fn ending(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            4 => "SIGILL",
            5 => "SIGTRAP",
            6 => "SIGABRT",
            8 => "SIGFPE",
            9 => "SIGKILL",
            11 => "SIGSEGV",
            15 => "SIGTERM",
            _ => return format!("signal {signal}"),
        };
        return name.to_owned();
    }
    match status.code() {
        // The codes of exceptions are what NTSTATUS calls errors.
        Some(code) if code < 0 => format!("the exception {code:#x}"),
        Some(code) => format!("an exit with the code {code}"),
        None => "an end without a code".to_owned(),
    }
}

fn counted(counts: BTreeMap<String, u32>) -> Vec<Counted> {
    counts.into_iter().map(|(name, count)| Counted { name, count: count.into() }).collect()
}

fn calls(results: Results) -> Vec<Calls> {
    let one = |(name, results): (String, BTreeMap<u32, u32>)| Calls {
        name,
        count: results.values().sum(),
        results: results
            .into_iter()
            .map(|(result, count)| Counted { name: named(HResult(result)), count: count.into() })
            .collect(),
    };
    results.0.into_iter().map(one).collect()
}

impl Account {
    /// Reads the journal of a run.
    pub(super) fn new(
        library: String,
        file: String,
        generation: Generation,
        remains: Remains,
        judged: &Judged<'_>,
    ) -> Self {
        let mut reading = Reading::default();
        for line in remains.journal {
            reading.read(line);
        }
        let (verdict, because) = reading.verdict(remains.status, judged);
        let refusals = reading.refusals();
        Self {
            kind: "host",
            library,
            file,
            runtime: generation.name(),
            verdict,
            because,
            steps: reading.steps,
            callbacks: calls(reading.callbacks),
            calls: calls(reading.calls),
            refusals,
            not_simulated: counted(reading.not_simulated),
            not_raised: counted(reading.not_raised),
            findings: reading.findings,
            walks: reading.walks,
            references_left: reading.left,
            kept: reading.kept,
            processes_left: reading.processes_left,
            printed: remains.printed,
        }
    }
}
