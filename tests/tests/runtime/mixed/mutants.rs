//! Bugs of profilers, planted into a correct walker. The property of whole stacks finds each within
//! 1,200 walks, and shrinks the failing one to a text of a few lines.

use super::*;
use clr_tests::one_in;
use std::fmt::Write as _;
use std::thread;

const MAX_WALKS: u64 = 15_000;
const WALKS_OF_PROGRAM: u64 = 36;
/// Maximum number of steps between two stops.
const STRIDE: u32 = 60;
const MAX_LINES: usize = 12;

/// Shrinks a wrong walk, and returns the result with its text.
fn small(bug: Bug, wrong: WrongWalk) -> Option<(WrongWalk, String)> {
    let small = shrink(wrong, &mut ReferenceWalker::with_bug(bug));
    let text = Scenario::of_case(&small.case)?.to_string();
    let text: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    Some((small, text.join("\n")))
}

/// Returns the number of walks made, and the first wrong walk that shrinks to a few lines, with its
/// text.
fn find(bug: Bug) -> (u64, WrongWalk, String) {
    let mut walks = 0;
    let mut largest = String::new();
    for seed in 0.. {
        assert!(walks < MAX_WALKS, "{bug:?} was not found in {MAX_WALKS} walks\n{largest}");
        let program = world_program(&mut Seeded::new(seed));
        let plan = Plan { seed, walks: WALKS_OF_PROGRAM, stride: STRIDE, only: None };
        let wrong =
            match examine(&program, plan, &mut ReferenceWalker::with_bug(bug), |_| walks += 1) {
                Err(Failure::Walk(wrong)) => *wrong,
                Err(Failure::Build(_)) | Ok(_) => continue,
                Err(failure) => panic!("{bug:?}, seed {seed}: {failure}"),
            };
        walks += 1;
        match small(bug, wrong) {
            Some((small, text)) if text.lines().count() <= MAX_LINES => {
                return (walks, small, text);
            }
            Some((_, text)) => largest = text,
            None => {}
        }
    }
    unreachable!("there are always more programs")
}

/// The recorded way in which each bug is found.
const FOUND: &str = include_str!(
    "snapshots/runtime__mixed__mutants__each_planted_bug_is_found_and_shrinks_to_a_few_lines.snap"
);
/// The number of bugs, last in order, that take thousands of walks: a full run finds them.
const RARE: usize = 2;

#[test]
fn each_planted_bug_is_found_and_shrinks_to_a_few_lines() {
    let is_full = one_in() == 1;
    let bugs = &Bug::ALL[..Bug::ALL.len() - if is_full { 0 } else { RARE }];
    let found = thread::scope(|scope| {
        let searches: Vec<_> = bugs.iter().map(|bug| scope.spawn(|| activation(*bug))).collect();
        searches.into_iter().map(|search| search.join().unwrap()).collect::<String>()
    });
    if is_full {
        insta::assert_snapshot!(found);
    } else {
        assert!(FOUND.contains(&found), "{found}");
    }
}

fn activation(bug: Bug) -> String {
    let (walks, small, text) = find(bug);
    let (on, by) = (small.case.program.generation, small.policy.name());
    let what = small.what.to_string();
    let what = what.lines().next().unwrap_or_default();
    let mut activation = format!("// {bug:?}: {bug}\n");
    writeln!(activation, "// Found in walk {walks}; shrunk, on {on} by policy {by}:").unwrap();
    writeln!(activation, "// {what}\n{text}\n").unwrap();
    activation
}
