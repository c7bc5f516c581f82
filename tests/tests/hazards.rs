//! The texts of the gallery whose histories are searched: each must come to what it expects, on every
//! generation that it is for. `CLR_TEST_TEXT` names a part of the names of those that are wanted.

use clr_sim::generation::Generation;
use clr_sim::scenario::Scenario;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What is wrong with a text.
fn problems(name: &str, scenario: &Scenario) -> String {
    let mut problems = String::new();
    for generation in Generation::ALL {
        let explored = match scenario.explore_on(generation) {
            Ok(explored) => explored,
            Err(error) => {
                writeln!(problems, "{name}, {generation}: {error}").unwrap();
                continue;
            }
        };
        for explored in explored {
            let failure = explored.found.failure.as_ref();
            for difference in &explored.differences {
                let verdict = failure.map(|failure| &failure.verdict);
                let trail = failure.map(|failure| failure.trail.to_string());
                writeln!(
                    problems,
                    "{name}, {generation}, explore {}: {difference} ({verdict:?}, {trail:?}, {} histories)",
                    explored.explore, explored.found.schedules
                )
                .unwrap();
            }
        }
    }
    problems
}

#[test]
fn the_histories_of_each_text_come_to_what_it_expects() {
    let wanted = std::env::var("CLR_TEST_TEXT").unwrap_or_default();
    let texts = clr_fixtures::gallery().iter().filter(|fixture| fixture.name.contains(&wanted));
    let texts: Vec<_> = texts
        .filter_map(|fixture| {
            let scenario = Scenario::parse(core::str::from_utf8(fixture.bytes).unwrap()).unwrap();
            (!scenario.explore.is_empty()).then_some((fixture.name, scenario))
        })
        .collect();
    assert!(!texts.is_empty(), "no text is searched");
    let next = AtomicUsize::new(0);
    let problems: String = thread::scope(|scope| {
        let work = || {
            let mut found = String::new();
            while let Some((name, scenario)) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
                found.push_str(&problems(name, scenario));
            }
            found
        };
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(problems.is_empty(), "\n{problems}");
}
