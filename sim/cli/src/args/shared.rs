//! Arguments that several commands have.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::nearest;
use clr_unwind::compat::Rules;
use std::num::NonZeroUsize;
use std::thread;

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct On {
    /// The runtimes: names of runtimes, or windows, unix, clr4, new, framework, coreclr-3.1, net9,
    /// net10 [default: all, or those that the text is for]
    #[arg(long = "on", id = "on", value_name = "RUNTIMES", value_parser = sets)]
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
pub(crate) struct Jobs {
    /// Threads to work on; the output does not depend on it [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl Jobs {
    /// Returns the number of threads.
    pub(crate) fn count(self) -> NonZeroUsize {
        let available = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.unwrap_or_else(available)
    }
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
    #[arg(long = "rules", value_name = "RULES", default_value = "precise")]
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
        set = set.with(Generations::from_word(word).ok_or_else(|| no_runtime(word))?);
    }
    if set.is_empty() { Err("no runtime is named".to_owned()) } else { Ok(set) }
}

/// Returns the error for a word that names no runtime.
fn no_runtime(word: &str) -> String {
    let names: Vec<_> = Generations::all_words().collect();
    let near = nearest(word, &names);
    let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    format!("there is no runtime {word}; {near}they are: {}", names.join(", "))
}

/// Returns a parser of the names of generations.
pub(super) fn generations() -> impl TypedValueParser<Value = Generation> {
    PossibleValuesParser::new(Generation::ALL.map(Generation::name))
        .try_map(|name| Generation::from_name(&name).ok_or("there is no such generation"))
}
