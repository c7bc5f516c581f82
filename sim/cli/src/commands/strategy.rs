//! Strategies of searches, as the arguments of commands name them.

use crate::args::StrategyChoice;
use crate::render::error::CliError;
use clr_explore::Strategy;

/// Returns the word for a strategy.
pub(crate) const fn word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Random => "random",
        Strategy::Pct { .. } => "pct",
        Strategy::Exhaustive { .. } => "exhaustive",
        Strategy::Guided => "guided",
    }
}

/// Returns the strategy that the arguments name, or the usual one.
pub(crate) fn choose(
    usual: Strategy,
    choice: Option<StrategyChoice>,
    depth: Option<u32>,
    preemptions: Option<u32>,
) -> Strategy {
    let by = match choice {
        None => usual,
        Some(StrategyChoice::Random) => Strategy::Random,
        Some(StrategyChoice::Pct) => Strategy::Pct { depth: 3 },
        Some(StrategyChoice::Exhaustive) => Strategy::Exhaustive { preemptions: None },
        Some(StrategyChoice::Guided) => Strategy::Guided,
    };
    match by {
        Strategy::Pct { depth: usual } => Strategy::Pct { depth: depth.unwrap_or(usual) },
        Strategy::Exhaustive { preemptions: usual } => {
            Strategy::Exhaustive { preemptions: preemptions.or(usual) }
        }
        other => other,
    }
}

/// Checks that the arguments fit the strategy: `first` is the number of the first history.
pub(crate) fn check(
    by: Strategy,
    depth: Option<u32>,
    preemptions: Option<u32>,
    first: u64,
) -> Result<(), CliError> {
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
