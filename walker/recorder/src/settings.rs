//! Settings, from the environment variable `CLR_RECORDER`.

use crate::events;
use crate::output;
use clr_sampler::{EVENTS, Log, Options, Walks, os, profile::Format};
use clr_walker::mixed::Policy;
use std::path::PathBuf;
use std::str::FromStr;

/// The task of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Counts stacks, and writes a profile.
    Sample,
    /// Judges each walk, and writes one JSON object.
    Check,
    /// Writes calls of `DoStackSnapshot` as a recording.
    Record,
    /// Writes what the runtime answers in each callback, as text without addresses.
    Calls,
    /// Writes all calls between the runtime and another profiler.
    Trace,
}

/// The settings of a recorder.
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `mode=sample`, `mode=check`, `mode=record`, `mode=calls` or `mode=trace`.
    pub(crate) task: Task,
    /// `policy=NAME`: on Linux `signal` or `runtime-suspended`, on Windows
    /// `seeded`, `unseeded` or `frame-pointers`.
    pub(crate) policy: Policy,
    /// `snapshots=1`: asks DoStackSnapshot in the signal handler, too, if the thread is in a method:
    /// `mode=check` compares, `mode=record` writes the calls.
    pub(crate) snapshots: bool,
    /// `judge=0`: makes no second walks, for durations that they do not disturb.
    pub(crate) judge: bool,
    /// `execute=N`: executes the leaf of each Nth request of `mode=check` to its return. 0: none. It takes 2 to 10 ms, in which no other
    /// walk is judged (Linux).
    pub(crate) execute: u32,
    /// `twice=1`: makes each walk of `mode=check` a second time at once, to compare durations with cold and
    /// with warm caches (Linux).
    pub(crate) twice: bool,
    /// `rate=N`: samples in a second, of all threads together. 0: as many as can be taken.
    pub(crate) rate: u32,
    /// `out=PATH`: the file of the profile, or the file that other results are appended to. Without
    /// it, stderr. `%p` in it is the process's id.
    pub(crate) out: Option<PathBuf>,
    /// `format=folded`, `speedscope` or `pprof`. Without it, the extension of the file says it:
    /// `.json` is speedscope's, `.pb` and `.pprof` are pprof's.
    pub(crate) format: Option<Format>,
    /// `label=TEXT`: the name of the workload in results.
    pub(crate) label: String,
    /// `hang=SECONDS`: the time without a sample after which the process is ended. 0: never.
    pub(crate) hang: u32,
    /// `module=NAME`: the file name of the module whose code `mode=calls` is about.
    pub(crate) module: String,
    /// `sampler=1`: a thread of `mode=calls` samples all threads meanwhile.
    pub(crate) sampler: bool,
    /// `collector=1`: a thread of `mode=calls` forces GCs once.
    pub(crate) collector: bool,
    /// `profiler=PATH`: the library that `mode=trace` is about.
    pub(crate) profiler: Option<PathBuf>,
    /// `events=LIST`: the groups of callbacks in which `mode=record` and `mode=calls` make calls, separated
    /// by commas (`events`); as an event mask.
    pub(crate) events: u32,
    /// `repeat=N`: calls of the same situation, arguments and result that `mode=record` writes.
    pub(crate) repeat: u32,
    /// `seeds=bad`: calls of `mode=record` in callbacks have seeds that are wrong on purpose, too.
    pub(crate) bad_seeds: bool,
    /// `size=N`: largest size of a recording, in MiB.
    pub(crate) size: u32,
    /// `log=1`: says on stderr what was refused.
    pub(crate) log: bool,
}

/// The groups of callbacks of `mode=record`, without those that slow everything down.
const USUAL_EVENTS: &str = "jit,loads,exceptions,gc,threads,suspensions";

impl Default for Settings {
    fn default() -> Self {
        Self {
            task: Task::Sample,
            policy: os::POLICIES[0],
            snapshots: false,
            judge: true,
            execute: 1,
            twice: false,
            rate: 100,
            out: None,
            format: None,
            label: String::new(),
            module: String::new(),
            sampler: false,
            collector: false,
            profiler: None,
            hang: 0,
            events: events::mask(USUAL_EVENTS).unwrap_or(EVENTS),
            repeat: 2,
            bad_seeds: false,
            size: 16,
            log: false,
        }
    }
}

impl Settings {
    /// Reads settings from the variable: `key=value` separated by white space, or `@PATH` of a file
    /// with the same.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let text = std::env::var("CLR_RECORDER").unwrap_or_default();
        match text.strip_prefix('@') {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                Self::parse(&text.map_err(|error| format!("{path}: {error}"))?)
            }
            None => Self::parse(&text),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut settings = Self::default();
        for word in text.split_whitespace() {
            let (key, value) =
                word.split_once('=').ok_or_else(|| format!("`{word}` has no `=`"))?;
            match key {
                "mode" => {
                    settings.task = match value {
                        "sample" => Task::Sample,
                        "check" => Task::Check,
                        "record" => Task::Record,
                        "calls" => Task::Calls,
                        "trace" => Task::Trace,
                        _ => {
                            return Err(format!(
                                "`{word}`: the modes are sample, check, record, calls and trace"
                            ));
                        }
                    }
                }
                "policy" => {
                    let policy = Policy::ALL.into_iter().find(|policy| policy.name() == value);
                    settings.policy = policy
                        .filter(|policy| os::POLICIES.contains(policy))
                        .ok_or_else(|| format!("`{word}`: no policy of this system"))?;
                }
                "snapshots" => settings.snapshots = number::<u32>(word, value)? != 0,
                "seeds" => {
                    settings.bad_seeds = match value {
                        "good" => false,
                        "bad" => true,
                        _ => return Err(format!("`{word}`: seeds are good or bad")),
                    }
                }
                "judge" => settings.judge = number::<u32>(word, value)? != 0,
                "execute" => settings.execute = number(word, value)?,
                "twice" => settings.twice = number::<u32>(word, value)? != 0,
                "rate" => settings.rate = number(word, value)?,
                "out" => settings.out = Some(output::path_of_process(value)),
                "format" => {
                    settings.format = Some(Format::of_name(value).ok_or_else(|| {
                        format!("`{word}`: the formats are folded, speedscope and pprof")
                    })?);
                }
                "module" => value.clone_into(&mut settings.module),
                "sampler" => settings.sampler = number::<u32>(word, value)? != 0,
                "collector" => settings.collector = number::<u32>(word, value)? != 0,
                "profiler" => settings.profiler = Some(value.into()),
                "label" => value.clone_into(&mut settings.label),
                "hang" => settings.hang = number(word, value)?,
                "events" => {
                    settings.events = events::mask(value)
                        .ok_or_else(|| format!("`{word}`: an unknown group of callbacks"))?;
                }
                "repeat" => settings.repeat = number(word, value)?,
                "size" => settings.size = number(word, value)?,
                "log" => settings.log = number::<u32>(word, value)? != 0,
                _ => return Err(format!("`{word}`: there is no such setting")),
            }
        }
        Ok(settings)
    }

    /// Returns what the sampler is asked to do.
    pub(crate) fn options(&self) -> Options {
        let is_check = self.task == Task::Check;
        // Only for judgements of walks that the runtime has a part in, because it hides the frames that an
        // exception has left.
        let wants_exceptions = is_check && self.policy == Policy::RuntimeSuspended;
        let events = match self.task {
            Task::Record => self.events,
            _ if wants_exceptions => EVENTS | events::EXCEPTIONS,
            _ => EVENTS,
        };
        let walks = Walks {
            policy: self.policy,
            copies: is_check && self.judge,
            snapshots: self.snapshots,
            twice: self.twice,
        };
        let log: Log = if self.log { |text| output::say(text) } else { |_| {} };
        Options { walks, events, rate: self.rate, hang: self.hang, log }
    }

    /// Returns the format of a profile.
    pub(crate) fn format(&self) -> Format {
        let by_path = || self.out.as_deref().map_or(Format::Folded, Format::of_path);
        self.format.unwrap_or_else(by_path)
    }
}

fn number<T: FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{word}`: not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_words() {
        let settings = Settings::parse("mode=check\trate=0\nout=/tmp/a label=linq hang=9").unwrap();
        assert_eq!(settings.task, Task::Check);
        assert_eq!((settings.rate, settings.hang), (0, 9));
        assert_eq!(settings.out, Some("/tmp/a".into()));
        let settings = Settings::parse("out=/tmp/a.%p.json").unwrap();
        assert_eq!(settings.out, Some(format!("/tmp/a.{}.json", std::process::id()).into()));
        let settings = Settings::parse("mode=calls module=App.dll").unwrap();
        assert_eq!((settings.task, settings.module.as_str()), (Task::Calls, "App.dll"));
        let settings = Settings::parse("mode=trace profiler=a.so").unwrap();
        assert_eq!((settings.task, settings.profiler), (Task::Trace, Some("a.so".into())));
        let settings = Settings::parse("mode=check rate=0 out=/tmp/a label=linq hang=9").unwrap();
        assert_eq!(settings.label, "linq");
        assert_eq!(Settings::parse(""), Ok(Settings::default()));
    }

    #[test]
    fn the_format_comes_before_the_extension() {
        let format = |text| Settings::parse(text).unwrap().format();
        assert_eq!(format(""), Format::Folded);
        assert_eq!(format("out=a.json"), Format::Speedscope);
        assert_eq!(format("out=a.json format=pprof"), Format::Pprof);
    }

    #[test]
    fn unknown_settings_are_refused() {
        for text in [
            "fast",
            "mode=fast",
            "rate=x",
            "rates=5",
            "format=svg",
            "log=yes",
            "events=none",
            "policy=synchronous",
            "seeds=1",
        ] {
            assert!(Settings::parse(text).is_err(), "{text}");
        }
    }
}
