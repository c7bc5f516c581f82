//! Tests of every file of the gallery on every generation: the results of its calls, and the
//! required parts of each text.

use super::*;
use clr_scenario::format_text;

/// The problems found, by file. Dropping them fails the test if there are any.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn check(&mut self, right: bool, problem: impl FnOnce() -> String) {
        if !right {
            self.0.push(problem());
        }
    }
}

impl Drop for Problems {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "{} problems:\n{}", self.0.len(), self.0.join("\n"));
        }
    }
}

fn all_calls(scenario: &Scenario) -> impl Iterator<Item = &SnapshotCall> {
    let placed = scenario.stack.iter().flat_map(|stack| &stack.snapshots);
    scenario.stops.iter().flat_map(|stop| &stop.snapshots).chain(placed)
}

#[test]
fn every_call_has_the_expected_result() {
    let mut problems = Problems::default();
    for (name, _, scenario) in gallery() {
        for generation in Generation::ALL {
            let reports = match calls(name, generation) {
                Ok(reports) => reports,
                Err(error) => {
                    problems.0.push(format!("{name}, {generation}: {error}"));
                    continue;
                }
            };
            for report in reports {
                let call = scenario.call(report.stop, report.snapshot).unwrap();
                problems.check(report.is_right(), || {
                    let title = call.title.as_deref().unwrap_or_default();
                    let differences: Vec<_> =
                        report.differences.iter().map(ToString::to_string).collect();
                    format!(
                        "{name}, {generation}, snapshot {} ({title}): {}; found\n{}",
                        report.snapshot + 1,
                        differences.join("; "),
                        report.found
                    )
                });
            }
        }
    }
}

#[test]
fn every_walk_of_a_whole_stack_has_the_expected_result() {
    let mut problems = Problems::default();
    for (name, _, scenario) in gallery() {
        for generation in Generation::ALL {
            for (at, made) in scenario.each_mixed_on(generation) {
                let title = at.says.title.as_deref().unwrap_or_default();
                let place =
                    || format!("{name}, {generation}, mixed walk {} ({title})", at.walk + 1);
                match made {
                    Ok(report) => problems.check(report.is_right(), || {
                        let differences = report.differences.iter().map(ToString::to_string);
                        let differences: Vec<_> = differences.collect();
                        let (place, found) = (place(), &report.found);
                        format!("{place}: {}; found\n{found}", differences.join("; "))
                    }),
                    Err(error) => problems.0.push(format!("{}: {error}", place())),
                }
            }
        }
    }
}

/// Checks walks at the stops of programs, without a runtime.
#[test]
fn every_walk_has_the_expected_result() {
    let mut problems = Problems::default();
    let mut walks = 0;
    for (name, _, scenario) in gallery() {
        if scenario.stops.iter().all(|stop| stop.expect.is_empty()) {
            continue;
        }
        let reports = scenario.run().unwrap_or_else(|error| panic!("{name}: {error}"));
        for (report, stop) in reports.iter().zip(&scenario.stops) {
            if stop.expect.is_empty() {
                continue;
            }
            let place = format!("{name}, stop {}", report.stop + 1);
            let reached = match &report.reached {
                Ok(reached) => reached,
                Err(why) => {
                    problems.0.push(format!("{place}: {why}"));
                    continue;
                }
            };
            for walk in &reached.walks {
                walks += 1;
                problems.check(walk.is_right(), || {
                    let found = &walk.found;
                    let shadow_stack_difference = walk
                        .shadow_stack_difference
                        .map(|shadow_stack_difference| shadow_stack_difference.to_string());
                    format!(
                        "{place}: {:?}, {shadow_stack_difference:?}; found {found:#x?}",
                        walk.differences
                    )
                });
            }
        }
    }
    assert!(walks > 10, "{walks}");
}

/// Folder of texts that expect observed results, and need not name clauses.
const SITUATIONS: &str = "situations/";

/// Returns a file's name if the name states the subject, so that the expectations need not:
/// `c-044-….kdl` is about a clause, `e-05-….kdl` about a worked stack of the contract,
/// `section-3.3-….kdl` about a section.
fn subject(name: &str) -> Option<&str> {
    let (_, file) = name.rsplit_once('/')?;
    let starts = ["c-", "e-", "section-"];
    starts.iter().any(|start| file.starts_with(start)).then_some(file)
}

#[test]
fn every_file_says_what_it_shows() {
    let mut problems = Problems::default();
    for (name, text, scenario) in gallery() {
        let shows = scenario.about.shows.as_deref().unwrap_or_default();
        problems.check(shows.ends_with('.') && shows.len() > 20, || {
            format!("{name}: `shows` is too short, or does not end with a period")
        });
        problems.check(!scenario.about.tags.is_empty(), || format!("{name}: no tag"));
        problems.check(format_text(text).as_deref() == Ok(text), || {
            format!("{name}: not formatted by `clrsim fmt`")
        });
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "/-.".contains(c);
        let parts: Vec<_> = name.strip_suffix(".kdl").unwrap_or_default().split('/').collect();
        problems.check(parts.len() == 2 && name.chars().all(allowed), || {
            format!("{name}: the name should have the form chapter/name.kdl")
        });
        let walks = scenario.stops.iter().any(|stop| !stop.expect.is_empty());
        let mixed = scenario.mixed_walks().next().is_some();
        let searched = !scenario.explore.is_empty();
        problems.check(walks || mixed || searched || all_calls(scenario).next().is_some(), || {
            format!("{name}: neither a snapshot nor a walk nor a search")
        });
        for at in scenario.mixed_walks() {
            let title = at.says.title.as_deref().unwrap_or_default();
            let expect = &at.says.expect;
            problems.check(!expect.is_empty(), || format!("{name}, {title}: expects nothing"));
            let counts = |one| {
                let mut on = Generation::ALL.into_iter();
                on.any(|it| at.says.expected_on(it).is_some_and(|(first, _)| first == one))
            };
            problems.check((0..expect.len()).all(counts), || {
                format!("{name}, {title}: an expectation is hidden by an earlier one")
            });
        }
        for call in all_calls(scenario) {
            let title = call.title.as_deref().unwrap_or_default();
            problems.check(!call.expect.is_empty(), || format!("{name}, {title}: expects nothing"));
            for expect in &call.expect {
                let reported = subject(name).is_some() || name.starts_with(SITUATIONS);
                problems.check(!expect.clauses.is_empty() || reported, || {
                    format!("{name}, {title}: no clause")
                });
                let counts = |generation| {
                    call.expected_on(generation).is_some_and(|(_, first)| first == expect)
                };
                problems.check(expect.on.iter().any(counts), || {
                    format!("{name}, {title}: an expectation is hidden by an earlier one")
                });
            }
        }
    }
}

/// Files must differ in their stated purpose.
#[test]
fn no_two_files_show_the_same() {
    let mut shown: Vec<_> =
        gallery().map(|(name, _, scenario)| (&scenario.about.shows, name)).collect();
    shown.sort_unstable();
    let same = shown.windows(2).find(|pair| pair[0].0 == pair[1].0);
    assert_eq!(same, None);
}

/// The worked stacks of the contract, on every generation. Frames of COM exist on Windows until .NET 10.
#[test]
fn all_worked_stacks_are_there() {
    for number in 1..=21 {
        let start = format!("e-{number:02}-");
        let files = gallery()
            .filter(|(name, ..)| subject(name).is_some_and(|subject| subject.starts_with(&start)));
        let on = files.filter_map(|(_, _, scenario)| scenario.stack.as_ref());
        let on = on.fold(Generations::NONE, |all, stack| all.with(stack.generations()));
        let com = Generation::ALL.into_iter().filter(|generation| generation.has_com_frames());
        let com = Generations::of(&com.collect::<Vec<_>>());
        let expected = if number == 17 { com } else { Generations::ALL };
        assert_eq!(on, expected, "{start}");
    }
}

#[test]
fn clauses_in_names_are_there() {
    for (name, ..) in gallery() {
        let number = subject(name).and_then(|subject| subject.strip_prefix("c-")?.get(..3));
        if let Some(number) = number {
            let clause: Clause = format!("C-{number}").parse().unwrap();
            assert!(clause.entry().is_some(), "{name}");
        }
    }
}

/// Checks the claims of walks of a text's thread: a whole walk has all frames and no others; a
/// reportable one has no invented frames.
#[test]
fn walks_of_every_text_are_as_complete_as_they_claim() {
    let mut problems = Problems::default();
    let (mut walks, mut whole) = (0, 0);
    for (name, _, scenario) in gallery() {
        let stops = (0..scenario.stops.len()).map(Some);
        let stops: Vec<_> = if scenario.stack.is_some() { vec![None] } else { stops.collect() };
        for (generation, stop) in
            Generation::ALL.into_iter().flat_map(|on| stops.iter().map(move |stop| (on, *stop)))
        {
            // Some stops are for some generations only, and some threads are unknown to the
            // runtime.
            let Ok(compared) = scenario.compare_on(generation, stop, &Policy::ALL) else {
                continue;
            };
            for (policy, found) in &compared.walks {
                walks += 1;
                let places = compared.places(found);
                let invents = places.contains(&None);
                let right = match found.completeness {
                    Some(Completeness::Whole) => {
                        whole += 1;
                        !invents && places.len() == compared.shadow_frames.len()
                    }
                    Some(Completeness::Reportable) => !invents,
                    _ => true,
                };
                problems.check(right, || {
                    format!("{name}, {generation}, stop {stop:?}, {policy:?}: found\n{found}")
                });
            }
        }
    }
    println!("{walks} walks, {whole} whole");
    assert!(whole > 1_000, "{whole} of {walks}");
}
