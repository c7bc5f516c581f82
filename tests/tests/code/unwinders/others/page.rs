//! Tests of the statements in `UNWINDERS.md`.

use super::*;
use crate::unwinders::others::disagreements::Mistake;
use crate::unwinders::others::framehop::Framehop;
use clr_tests::every_instruction::windows;

/// Returns the scenarios of the page, each with the name in its heading.
fn scenarios() -> Vec<(&'static str, Scenario)> {
    let page = include_str!("../../../../UNWINDERS.md");
    let mut name = "";
    let mut scenarios = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("### ") {
            name = heading.trim_matches('`');
        }
        if line.starts_with("```kdl") {
            let text: String =
                lines.by_ref().take_while(|line| *line != "```").flat_map(|l| [l, "\n"]).collect();
            let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            scenarios.push((name, scenario));
        }
    }
    scenarios
}

/// Returns the minimal case that the page has under a name.
fn case(name: &str) -> Program {
    let mut cases = scenarios().into_iter().filter(|(found, _)| *found == name);
    let (_, scenario) = cases.next().unwrap_or_else(|| panic!("UNWINDERS.md has no {name}"));
    assert!(cases.next().is_none(), "UNWINDERS.md has two scenarios under {name}");
    scenario.program
}

#[test]
fn every_listed_mistake_is_made_in_its_minimal_case() {
    for mistake in Mistake::ALL {
        let tested = test(&case(&format!("{mistake:?}")));
        assert_eq!(tested.unlisted, None, "{mistake:?}");
        for which in Which::ALL {
            let made = tested.mistakes.contains_key(&(which, mistake));
            assert_eq!(made, mistake.is_of(which), "{mistake:?}: {tested:?}");
        }
    }
}

#[test]
fn windows_makes_its_mistakes() {
    for mistake in WindowsMistake::ALL {
        let mut made = BTreeSet::new();
        let program = case(&format!("WindowsMistake::{mistake:?}"));
        windows(&program, clr_unwind::compat::Rules::CoreClr, LIMIT, |mistake| {
            made.insert(mistake);
        })
        .unwrap();
        assert_eq!(made, BTreeSet::from([mistake]));
    }
}

/// Runs a program until `stop`, and passes the run to `check`.
fn stopped(
    program: &Program,
    stop: impl Fn(&Execution<'_>) -> bool,
    check: impl FnOnce(&Execution<'_>, &LinkedProgram),
) {
    let linked = program.link().unwrap();
    let mut run = Execution::new(program, &linked, FunctionIndex(0), 0).unwrap();
    while !stop(&run) {
        run.step().unwrap();
    }
    check(&run, &linked);
}

#[test]
fn framehop_leaves_rip_behind() {
    let stop = |run: &Execution<'_>| run.machine().executed() == 2;
    stopped(&case("StaleRip"), stop, |run, linked| {
        let all = Code::all(linked);
        let frame = run.machine().cpu().registers();
        let (rip, registers) = Framehop::new(&all).unwind(&frame, run.machine());
        assert_eq!(rip, run.shadow_stack().callers()[0].registers.rip);
        assert_eq!(registers.ip(), frame.rip);
    });
}

#[test]
fn framehop_remembers_a_failed_step() {
    let stop = |run: &Execution<'_>| run.machine().executed() == 2;
    stopped(&case("FailureRemembered"), stop, |run, linked| {
        let all = Code::all(linked);
        let frame = run.machine().cpu().registers();
        let truth = run.shadow_stack().callers()[0].registers.rip;
        let framehop = Framehop::new(&all);
        assert_eq!(framehop.unwind_after_failure(&frame, run.machine(), false), Some(truth));
        assert_ne!(framehop.unwind_after_failure(&frame, run.machine(), true), Some(truth));
    });
}

#[test]
fn framehop_takes_an_interrupted_frame_for_a_caller() {
    let stop = |run: &Execution<'_>| run.shadow_stack().callers().len() == 2;
    stopped(&case("InterruptedCaller"), stop, |run, linked| {
        let all = Code::all(linked);
        let found = Framehop::new(&all).walk(&run.machine().cpu().registers(), run.machine());
        let callers = run.shadow_stack().callers().iter().rev();
        let truth: Vec<_> = callers.map(|caller| caller.registers.rip).collect();
        assert_eq!(found.first(), truth.first());
        assert_ne!(found.get(1), truth.get(1));
    });
}

#[test]
fn every_scenario_of_the_page_is_tested() {
    let tested = Mistake::ALL.len() + WindowsMistake::ALL.len() + 3;
    assert_eq!(scenarios().len(), tested);
}
