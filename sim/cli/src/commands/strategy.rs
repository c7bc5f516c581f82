//! Strategies of searches, as the arguments of commands name them.

use crate::args::{SearchArgs, StrategyChoice};
use crate::render::console::DIM;
use crate::render::error::CliError;
use clap::ValueEnum as _;
use clr_explore::{Faults, Strategy};
use std::io::{self, Write};

/// Returns the word for a strategy.
pub(crate) const fn word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Random => "random",
        Strategy::Pct { .. } => "pct",
        Strategy::Exhaustive { .. } => "exhaustive",
        Strategy::Guided => "guided",
    }
}

/// Prints how to go on with a search that was interrupted: `command` with the strategy, its seed, and the interleavings that are
/// left, which are `left` from number `first` on.
pub(crate) fn write_how_to_go_on(
    out: &mut dyn Write,
    command: &str,
    (by, seed): (Strategy, u64),
    (first, left): (u64, u64),
) -> io::Result<()> {
    if !by.can_be_shared() {
        let what = "this strategy goes from one interleaving to the next, and has to begin anew";
        return writeln!(out, "\n  {DIM}to go on: {what}{DIM:#}");
    }
    let depth = match by {
        Strategy::Pct { depth } => format!(" --depth {depth}"),
        _ => String::new(),
    };
    let by = word(by);
    writeln!(
        out,
        "\n  {DIM}to go on:{DIM:#} {command} --strategy {by}{depth} --seed {seed} --first {first} --schedules {left}"
    )
}

/// Returns the strategy that the arguments name, or the usual one.
pub(crate) fn choose(usual: Strategy, args: &SearchArgs) -> Strategy {
    let by = match args.strategy {
        None => usual,
        Some(StrategyChoice::Random) => Strategy::Random,
        Some(StrategyChoice::Pct) => Strategy::Pct { depth: 3 },
        Some(StrategyChoice::Exhaustive) => Strategy::Exhaustive { preemptions: None },
        Some(StrategyChoice::Guided) => Strategy::Guided,
    };
    match by {
        Strategy::Pct { depth: usual } => Strategy::Pct { depth: args.depth.unwrap_or(usual) },
        Strategy::Exhaustive { preemptions: usual } => {
            Strategy::Exhaustive { preemptions: args.preemptions.or(usual) }
        }
        other => other,
    }
}

/// Returns the strategy of a word, with its number.
pub(crate) fn named(word: &str, depth: Option<u32>, preemptions: Option<u32>) -> Option<Strategy> {
    Some(match StrategyChoice::from_str(word, false).ok()? {
        StrategyChoice::Random => Strategy::Random,
        StrategyChoice::Pct => Strategy::Pct { depth: depth? },
        StrategyChoice::Exhaustive => Strategy::Exhaustive { preemptions },
        StrategyChoice::Guided => Strategy::Guided,
    })
}

/// Returns the failures that the arguments name, or the usual ones.
pub(crate) fn faults(usual: Faults, args: &SearchArgs) -> Faults {
    Faults {
        which: args.faults.unwrap_or(usual.which),
        most: args.most_faults.unwrap_or(usual.most),
    }
}

/// Returns the arguments that name failures, with a blank before each.
pub(crate) fn fault_arguments(args: &SearchArgs) -> String {
    let which = args.faults.map(|which| format!(" --faults {which}"));
    let most = args.most_faults.map(|most| format!(" --most-faults {most}"));
    which.into_iter().chain(most).collect()
}

/// Checks that the arguments fit the strategy.
pub(crate) fn check(by: Strategy, args: &SearchArgs) -> Result<(), CliError> {
    let SearchArgs { depth, preemptions, first, .. } = *args;
    let refuse = |flag: &str, only: &str| {
        let found = word(by);
        let what = format!("is for {only}, and the search is {found}: leave it out, or say {only}");
        Err(CliError::new(flag, what))
    };
    if depth.is_some() && !matches!(by, Strategy::Pct { .. }) {
        return refuse("--depth", "--strategy pct");
    }
    if preemptions.is_some() && !matches!(by, Strategy::Exhaustive { .. }) {
        return refuse("--preemptions", "--strategy exhaustive");
    }
    if first > 0 && !by.can_be_shared() {
        return refuse("--first", "--strategy random or pct");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is printed of a search that was interrupted after 30 of 100 interleavings.
    fn printed(by: Strategy) -> String {
        let mut out = Vec::new();
        write_how_to_go_on(&mut out, "clrsim explore it.kdl", (by, 7), (30, 70)).unwrap();
        crate::render::style::unstyled(str::from_utf8(&out).unwrap())
    }

    #[test]
    fn a_search_goes_on_by_its_own_strategy() {
        let command = "\n  to go on: clrsim explore it.kdl --strategy";
        let rest = "--seed 7 --first 30 --schedules 70\n";
        assert_eq!(printed(Strategy::Random), format!("{command} random {rest}"));
        let by = Strategy::Pct { depth: 5 };
        assert_eq!(printed(by), format!("{command} pct --depth 5 {rest}"));
        let by = Strategy::Exhaustive { preemptions: None };
        assert!(printed(by).contains("has to begin anew"), "{}", printed(by));
    }
}
