//! Ends of a guest's interleavings, and what is kept of them.

use crate::coverage::GuestCoverage;
use crate::limits::Beyond;
use clr_explore::{Ending, Limits, NotedHistory, ProfilerRule, ScheduleString, Search, Verdict};
use clr_machine::Fnv1a;
use clr_scenario::Keyword as _;
use clrsim::Finding;
use core::fmt;
use std::collections::BTreeSet;

/// Numbers of signals on Linux.
const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;
const SIGALRM: i32 = 14;

/// The reason why a process has not reported the end of its interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Died {
    /// A signal ended it: the guest has crashed, or called `abort`.
    Signal(i32),
    /// The library of C found the heap damaged, said this, and ended it.
    DamagedHeap(String),
    /// The report of its ending is damaged or cut off.
    Garbled,
    /// The guest ended it with this code.
    Exit(i32),
    /// It was ended beyond this limit.
    Beyond(Beyond),
    /// The system has no process, or no pipe, for it: its error. Without one this process has other threads.
    NoProcess(Option<i32>),
}

impl fmt::Display for Died {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(SIGSEGV) => f.write_str("SIGSEGV ended the process"),
            Self::Signal(SIGALRM) => f.write_str("the process hung after a fault"),
            Self::Signal(SIGABRT) => f.write_str("SIGABRT ended the process"),
            Self::Signal(signal) => write!(f, "signal {signal} ended the process"),
            Self::DamagedHeap(message) => {
                write!(f, "SIGABRT ended the process, whose heap is damaged: {message}")
            }
            Self::Garbled => f.write_str(
                "the report of its process is damaged, or cut off: the profiler has written into the tool's \
                 pipe, or closed it",
            ),
            // A status of NT, such as the one of an access violation.
            Self::Exit(code @ ..0) => write!(f, "the profiler's process ended with {code:#x}"),
            Self::Exit(code) => write!(f, "the profiler ended its process with {code}"),
            Self::Beyond(beyond) => write!(f, "the profiler is beyond a limit: {beyond}"),
            Self::NoProcess(None) => f.write_str("its process has other threads before it begins"),
            Self::NoProcess(Some(error)) => {
                let error = std::io::Error::from_raw_os_error(*error);
                write!(f, "the system has no process for it: {error}")
            }
        }
    }
}

impl From<std::io::Error> for Died {
    fn from(error: std::io::Error) -> Self {
        Self::NoProcess(Some(error.raw_os_error().unwrap_or_default()))
    }
}

/// An interleaving that has ended, in the copy of the process in which it was executed.
#[derive(Debug)]
pub struct Executed<'e> {
    /// The end of the interleaving. The last turn has the stacks of the guest's threads.
    pub ending: &'e Ending,
    /// The mistakes of the guest that are no verdict of the search: references that are left, for example.
    pub findings: &'e [Finding],
    /// The calls of the interleaving, and how far its threads came.
    pub coverage: &'e GuestCoverage,
}

/// Makes bytes of an interleaving in the copy of the process in which it was executed.
pub type Describe<'d> = dyn Fn(&Executed<'_>) -> Vec<u8> + 'd;

/// The part of an interleaving that is kept.
#[derive(Clone, Copy)]
pub enum Detail<'k> {
    /// The ending. The guest's output is dropped.
    Ending,
    /// The ending, and what this function makes of the interleaving with its events, statuses and stacks. The
    /// guest's output is dropped.
    Description(&'k Describe<'k>),
    /// The same, and the guest's output is printed.
    Printed(&'k Describe<'k>),
    /// The same; the copy then stops, and this function is called with its process id.
    Stopped(&'k Describe<'k>, &'k dyn Fn(u32)),
}

impl fmt::Debug for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ending => "Ending",
            Self::Description(_) => "Description",
            Self::Printed(_) => "Printed",
            Self::Stopped(..) => "Stopped",
        })
    }
}

/// The end of an interleaving of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuestEnding {
    /// The fingerprint of the verdict, or the findings, if the interleaving failed.
    pub verdict: Option<String>,
    /// The rules that were broken, in order.
    pub broken: Vec<ProfilerRule>,
    /// Distinguishes failures with the same verdict: a digest of the guest's functions in which the threads of a
    /// deadlock or a lost wake-up wait, otherwise 0.
    pub place: u64,
    /// Number of turns.
    pub turns: u64,
    /// Digest of all turns: the same interleaving has the same digest.
    pub digest: u64,
    /// The choices of the interleaving.
    pub schedule: ScheduleString,
    /// True if a replay came to another interleaving.
    pub strayed: bool,
    /// True if the interleaving exceeded its limit of turns.
    pub in_turn: bool,
    /// True if a thread has waited with a limit while another one could run: limits
    /// [pass early](clr_explore::LimitBound::Early) then.
    pub has_limits: bool,
    /// The description of the interleaving, as the bytes that `Detail` asked for.
    pub description: Vec<u8>,
    /// The calls of the interleaving, and how far its threads came.
    pub coverage: GuestCoverage,
    pub(super) noted: NotedHistory,
}

impl GuestEnding {
    /// Returns the methods that were made to fail before the interleaving failed, each once.
    #[must_use]
    pub fn failed_methods(&self) -> Vec<String> {
        let injected = self.coverage.injected.iter().filter(|_| self.verdict.is_some());
        let methods: BTreeSet<_> = injected.filter_map(|fault| fault.split('=').next()).collect();
        methods.into_iter().map(str::to_owned).collect()
    }

    pub(super) fn of(ending: &Ending, findings: &[Finding], coverage: GuestCoverage) -> Self {
        let turns = ending.history.iter().flat_map(|history| &history.turns);
        let mut digest = Fnv1a::default();
        for turn in turns {
            let words = format!("{} {} {:?}\n", turn.at, turn.thread.0, turn.events);
            digest.write(words.as_bytes());
        }
        let verdict = ending.verdict.as_ref().map(Verdict::fingerprint);
        let verdict = verdict.or_else(|| in_words(findings));
        let mut broken: Vec<_> = ending.broken.iter().map(|(_, rule)| *rule).collect();
        broken.sort_unstable();
        broken.dedup();
        Self {
            verdict,
            broken,
            place: 0,
            turns: ending.turns,
            digest: digest.finish(),
            schedule: ending.schedule.clone(),
            strayed: false,
            in_turn: ending.in_turn,
            has_limits: ending.limits.is_some(),
            description: Vec::new(),
            coverage,
            noted: NotedHistory::default(),
        }
    }

    /// Makes the search learn from this interleaving, which it has begun.
    pub fn teach(&self, search: &mut dyn Search) {
        self.noted.teach(search, &self.schedule, self.in_turn);
    }

    /// Returns the ending for another process of the same build.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let broken: Vec<_> = self.broken.iter().map(|rule| rule.word()).collect();
        let (strayed, in_turn) = (u8::from(self.strayed), u8::from(self.in_turn));
        let limits = u8::from(self.has_limits);
        let lines = [
            format!("{} {} {strayed} {in_turn} {limits} {}", self.turns, self.digest, self.place),
            self.schedule.to_string(),
            self.verdict.clone().unwrap_or_default(),
            broken.join(" "),
            self.noted.to_string(),
            self.coverage.to_line(),
            String::new(),
        ];
        let mut bytes = lines.join("\n").into_bytes();
        bytes.extend(&self.description);
        bytes
    }

    /// Reads an ending. `None` if it is not one.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.splitn(7, |byte| *byte == b'\n');
        let mut line = || std::str::from_utf8(parts.next()?).ok();
        let mut numbers = line()?.split(' ').map(str::parse);
        let mut number = || numbers.next()?.ok();
        let (turns, digest, strayed, in_turn) = (number()?, number()?, number()?, number()?);
        let (limits, place) = (number()?, number()?);
        let schedule = line()?.parse().ok()?;
        let verdict = line().filter(|verdict| !verdict.is_empty()).map(str::to_owned);
        let broken =
            line()?.split_whitespace().map(ProfilerRule::from_word).collect::<Option<_>>()?;
        let noted = line()?.parse().ok()?;
        let coverage = GuestCoverage::from_line(line()?)?;
        let description = parts.next()?.to_vec();
        let (strayed, in_turn) = (strayed != 0, in_turn != 0);
        Some(Self {
            verdict,
            broken,
            place,
            turns,
            digest,
            schedule,
            strayed,
            in_turn,
            has_limits: limits != 0,
            description,
            coverage,
            noted,
        })
    }
}

/// The limits of interleavings, and what fails them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    pub(super) limits: Limits,
    /// A violation of any documented rule is a failure.
    pub(super) all: bool,
}

impl Rules {
    /// Returns the verdict on the first violation of a rule that is a failure. Of those that do no harm in the
    /// simulation a walk that outlives its thread does in a CLR, which has freed the thread.
    pub(super) fn broken(self, ending: &Ending) -> Option<Verdict> {
        let fails = |rule| self.all || rule == ProfilerRule::WalkOutlivesThread;
        let mut broken = ending.broken.iter();
        let of_rule = broken.find(|(_, rule)| fails(*rule));
        of_rule.map(|(by, rule)| Verdict::Broken { by: *by, rule: *rule })
    }
}

/// Returns findings in words, each kind once.
fn in_words(findings: &[Finding]) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for finding in findings {
        let one = match finding {
            Finding::Leak { interface, .. } => format!("references to {interface} are left"),
            other => other.to_string(),
        };
        if !words.contains(&one) {
            words.push(one);
        }
    }
    (!words.is_empty()).then(|| format!("findings: {}", words.join("; ")))
}

/// Returns the words for an outcome after failures of these methods.
#[must_use]
pub fn after_faults(outcome: &str, methods: &[String]) -> String {
    let methods = methods.join(", ");
    if methods.is_empty() {
        return outcome.to_owned();
    }
    format!("{outcome}, after an injected failure of {methods}")
}
