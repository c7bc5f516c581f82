//! Checks of stops that need the code of the program.

use crate::model::place_of;
use crate::text::error::Span;
use crate::text::parse::Problems;
use crate::text::problem::ProblemKind;
use crate::{Scenario, StopAt};
use clr_runtime::generation::Generation;

/// Reports the stops at instructions that the function has on no generation.
///
/// # Errors
/// Returns the problems.
pub(super) fn check(scenario: &Scenario, spans: &[Span]) -> Result<(), Problems> {
    let places = scenario.stops.iter().zip(spans).flat_map(|(stop, span)| {
        let others = stop.others.iter().map(|(_, at)| *at);
        others.chain([stop.at]).map(move |at| (at, *span))
    });
    let is_counted = |at: StopAt| {
        matches!(at, StopAt::Instruction { index: 1.., .. } | StopAt::Runtime { index: 1.., .. })
    };
    let mut unknown: Vec<_> =
        places.filter(|(at, _)| is_counted(*at)).map(|(at, span)| (at, span, 0)).collect();
    // One generation mostly settles all of them.
    for generation in Generation::ALL {
        if unknown.is_empty() {
            return Ok(());
        }
        // A program that cannot be built has another problem, which its run reports.
        let Ok(build) = scenario.build_on(generation) else { return Ok(()) };
        unknown.retain_mut(|(at, _, most)| match place_of(*at, build.expanded(), build.linked()) {
            Ok(Some(_)) => false,
            Ok(None) => true,
            Err(count) => {
                *most = count.max(*most);
                true
            }
        });
    }
    let problem = |(at, span, count): (StopAt, Span, u32)| {
        let function = match at {
            StopAt::Instruction { function, .. } => {
                scenario.function_name(function).unwrap_or_default().to_owned()
            }
            StopAt::Runtime { function, .. } => scenario.runtime_function_name(function),
            _ => return None,
        };
        // A function of the runtime that no program of the text calls has no code.
        (count > 0).then_some((span, ProblemKind::NoInstruction { function, count }))
    };
    let problems: Problems = unknown.into_iter().filter_map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
