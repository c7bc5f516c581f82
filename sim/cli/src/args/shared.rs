//! Arguments that several commands have.

#[cfg(feature = "pages")]
use super::candidates;
use crate::output::Replacing;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
#[cfg(feature = "pages")]
use clap_complete::engine::ArgValueCompleter;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{meaning, nearest};
use clr_unwind::compat::Rules;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub(crate) struct ScenarioArg {
    /// A scenario (*.kdl), or the name of an embedded one
    #[arg(id = "scenario", value_name = "SCENARIO")]
    #[cfg_attr(feature = "pages", arg(add = ArgValueCompleter::new(candidates::scenarios)))]
    pub(crate) path: PathBuf,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct On {
    /// The runtimes: names of runtimes, or windows, unix, clr4, new, framework, coreclr-3.1, net9,
    /// net10 [default: all, or those that the scenario is for]
    #[arg(long = "on", id = "on", value_name = "RUNTIMES", value_parser = sets)]
    #[cfg_attr(feature = "pages", arg(add = ArgValueCompleter::new(candidates::runtimes)))]
    pub(crate) runtimes: Option<Generations>,
}

impl On {
    /// Returns the runtimes, which are all if none are named.
    pub(crate) fn or_all(self) -> Generations {
        self.runtimes.unwrap_or(Generations::ALL)
    }
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Json {
    /// One JSON object a line
    #[arg(long = "json", id = "json")]
    pub(crate) wanted: bool,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Timeout {
    /// The longest time of each search of interleavings [default: as long as it takes]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

impl Timeout {
    /// Returns the longest time of a search.
    pub(crate) fn limit(self) -> Option<Duration> {
        self.timeout.map(Duration::from_secs)
    }
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Jobs {
    /// Threads to work on, of clrsim host processes; the output does not depend on it [default: one
    /// for each processor; of clrsim host 1]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl Jobs {
    /// Returns the number of threads.
    pub(crate) fn count(self) -> NonZeroUsize {
        let available = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.unwrap_or_else(available)
    }

    /// Returns the number of processes.
    #[cfg_attr(
        not(all(feature = "host", target_pointer_width = "64")),
        expect(dead_code, reason = "profilers are run with this feature, by processes of 64 bits")
    )]
    pub(crate) fn processes(self) -> usize {
        self.jobs.map_or(1, NonZeroUsize::get)
    }
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WalkArg {
    /// Of a recording: which walk, by its number, or by its name in the output of clrsim run [default:
    /// the first one; clrsim import lists them]
    #[arg(long = "walk", id = "walk", value_name = "WALK", value_parser = walk)]
    pub(crate) number: Option<u32>,
}

/// Parses the number of a walk, or its name: `FILE walk 7`.
fn walk(text: &str) -> Result<u32, String> {
    let number = text.rsplit_once("walk ").map_or(text, |(_, number)| number);
    number
        .parse()
        .map_err(|_| "say a number, such as 7, or a name, such as `FILE walk 7`".to_owned())
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SnapshotArg {
    /// Of a scenario: only this snapshot, by its number, from 1, or by its title [default: all]
    #[arg(long = "snapshot", id = "snapshot", value_name = "SNAPSHOT")]
    pub(crate) wanted: Option<String>,
}

/// The most things of a kind that are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) usize);

impl FromStr for Limit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = if text == "all" { Ok(usize::MAX) } else { text.parse() };
        number.map(Self).map_err(|_| "say a number, or all")
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OutputArg {
    /// Write it to this file [default: print it]
    #[arg(short = 'o', long = "output", id = "output", value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) replacing: Replacing,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FunctionArg {
    /// Of an image: only the function of this name, or the one that has code at this RVA (0x…)
    #[arg(long = "function", id = "function", value_name = "NAME|RVA")]
    pub(crate) wanted: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct RulesArg {
    /// Which rules decide where unwinders disagree
    #[arg(long = "unwind-rules", value_name = "RULES", default_value = "precise")]
    choice: RulesChoice,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RulesChoice {
    /// Rules by what execution shows, compared with the truth
    #[default]
    Precise,
    /// Rules of CoreCLR on Windows, mistakes included, compared with its answers
    #[value(name = "coreclr")]
    CoreClr,
}

impl RulesArg {
    /// Returns the walker's rules.
    pub(crate) const fn rules(self) -> Rules {
        match self.choice {
            RulesChoice::Precise => Rules::Precise,
            RulesChoice::CoreClr => Rules::CoreClr,
        }
    }

    /// Returns the name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self.choice {
            RulesChoice::Precise => "precise",
            RulesChoice::CoreClr => "coreclr",
        }
    }
}

/// Parses a set of generations: names of generations and of sets.
pub(super) fn sets(words: &str) -> Result<Generations, String> {
    let mut set = Generations::NONE;
    for word in words.split([',', ' ']).filter(|word| !word.is_empty()) {
        let known = Generations::from_word(word);
        let known = known.or_else(|| Generations::from_word(&word.to_lowercase()));
        set = set.with(known.ok_or_else(|| no_runtime(word))?);
    }
    if set.is_empty() { Err("no runtime is named".to_owned()) } else { Ok(set) }
}

/// Returns the error for a word that names no runtime.
fn no_runtime(word: &str) -> String {
    let names: Vec<_> = Generations::all_words().collect();
    let near = nearest(word, &names);
    match (near, meaning(word)) {
        (Some(near), _) => {
            format!("there is no runtime {word}; did you mean {near}? clrsim runtimes lists all")
        }
        (None, Some(meaning)) => format!("there is no runtime {word}: {}", meaning.here),
        (None, None) => format!("there is no runtime {word}; they are: {}", names.join(", ")),
    }
}

/// Returns a parser of the names of generations.
pub(super) fn generations() -> impl TypedValueParser<Value = Generation> {
    PossibleValuesParser::new(Generation::ALL.map(Generation::name))
        .try_map(|name| Generation::from_name(&name).ok_or("there is no such generation"))
}
