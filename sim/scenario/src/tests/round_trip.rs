//! Tests that printed texts parse to the same scenario.

use super::*;
use clr_codegen::{EntryForm, FunctionIndex, Program};
use clr_generate::minimize;
use clr_world::WaitPlace;

#[test]
fn everything_round_trips() {
    insta::assert_snapshot!(round_trip(&parse(EVERYTHING)));
}

#[test]
fn everything_of_a_stack_round_trips() {
    insta::assert_snapshot!(round_trip(&parse(STACK)));
}

/// Parts that a text omits have the default values of the types.
#[test]
fn omitted_nodes_have_defaults() {
    let scenario = parse("function main");
    let mut expected = Scenario::new(scenario.program.clone());
    assert_eq!(scenario, expected);
    assert_eq!(scenario.to_string(), "function \"main\"\n");
    assert_eq!(scenario.function("main"), Some(FunctionIndex(0)));
    assert_eq!(scenario.function("other"), None);
    assert_eq!((scenario.thread("main"), scenario.thread("other")), (Some(0), None));

    let at = StopAt::Instruction { function: FunctionIndex(0), index: 0, visit: 1 };
    let expect = vec![Expectation::default()];
    let (others, snapshots, mixed_walks) = (Vec::new(), Vec::new(), Vec::new());
    expected.stops.push(Stop { thread: 0, at, expect, others, snapshots, mixed_walks });
    assert_eq!(parse("function main\nstop at=main { expect }"), expected);
}

#[test]
fn names_of_any_characters_round_trip() {
    let mut scenario = parse("function main");
    for name in
        ["a b", "\"", "\\", "\n\r\t\0\u{7F}\u{85}\u{2028}\u{FEFF}\u{200F}", "äß語🦀", "#true", "1"]
    {
        let (name, start) = (name.to_owned(), FunctionIndex(0));
        scenario.threads.push(ScenarioThread { name, start, ..ScenarioThread::main() });
    }
    round_trip(&scenario);
}

fn one_of<T: Keyword>(choices: &mut Seeded) -> T {
    T::from_word(choices.pick(T::WORDS).unwrap()).unwrap()
}

fn frame(choices: &mut Seeded, functions: u32) -> ExpectedFrame {
    let value = u64::from(choices.below(u32::MAX)) << choices.below(33);
    ExpectedFrame {
        function: choices.below(functions + 1).checked_sub(1).map(FunctionIndex),
        trust: choices.chance(1, 2).then(|| one_of::<Trust>(choices)),
        registers: choices.subset(&Gpr::ALL, 1, 8).into_iter().map(|it| (it, value)).collect(),
    }
}

fn stop(choices: &mut Seeded, functions: u32, threads: u32) -> Stop {
    let at = match choices.below(4) {
        0 => StopAt::End,
        1 => StopAt::After(u64::from(choices.below(u32::MAX)) << choices.below(33)),
        2 => StopAt::Wait {
            place: choices.pick(&WaitPlace::ALL).unwrap(),
            visit: choices.between(1, u32::MAX),
        },
        _ => StopAt::Instruction {
            function: FunctionIndex(choices.below(functions)),
            index: choices.below(u32::MAX),
            visit: choices.between(1, u32::MAX),
        },
    };
    let expectation = |choices: &mut Seeded| Expectation {
        rules: one_of::<Rules>(choices),
        frames: (0..choices.below(4)).map(|_| frame(choices, functions)).collect(),
        ends: one_of::<WalkEnd>(choices),
    };
    let expect = (0..choices.below(3)).map(|_| expectation(choices)).collect();
    let (others, snapshots, mixed_walks) = (Vec::new(), Vec::new(), Vec::new());
    Stop { thread: choices.below(threads), at, expect, others, snapshots, mixed_walks }
}

/// Generates a program with threads and stops.
fn scenario(seed: u64, size: &Size) -> Scenario {
    let choices = &mut Seeded::new(seed);
    let program = program(choices, size);
    let functions = program.functions.len() as u32;
    let called = |index: &u32| program.functions[*index as usize].shape.entry == EntryForm::Call;
    let starts: Vec<u32> = (0..functions).filter(called).collect();
    let thread = |number| ScenarioThread {
        name: format!("thread {number}"),
        start: FunctionIndex(choices.pick(&starts).unwrap()),
        gc: choices.chance(1, 6),
        ..ScenarioThread::main()
    };
    let threads: Vec<_> = (0..=seed % 3).map(thread).collect();
    let count = choices.below(3);
    let stops = (0..count).map(|_| stop(choices, functions, threads.len() as u32)).collect();
    Scenario { program, threads, stops, ..Scenario::default() }
}

#[test]
fn generated_scenarios_round_trip() {
    let reads_back =
        |scenario: &Scenario| Scenario::parse(&scenario.to_string()).as_ref() == Ok(scenario);
    let scenarios = (0..400).map(|seed| (seed, scenario(seed, &Size::SMALL)));
    // The generator's own tests check that its programs are valid.
    let valid: Vec<_> = scenarios.filter(|(_, it)| it.program.check().is_ok()).collect();
    assert!(valid.len() > 200, "{}", valid.len());
    for (seed, scenario) in valid {
        if !reads_back(&scenario) {
            let fails = |program: &Program| {
                program.check().is_ok() && !reads_back(&Scenario::new(program.clone()))
            };
            let program = minimize(scenario.program.clone(), fails);
            let text = Scenario::new(program).to_string();
            panic!("seed {seed}: {:?}\n{text}", Scenario::parse(&text).map_err(|e| e.to_string()));
        }
        round_trip(&scenario);
    }
}

/// A property with its default value is the same as none.
#[test]
fn an_ordinary_method_is_no_other_than_one_without_the_word() {
    let text = |method: &str| format!("function f kind=jit {method} {{ body {{ work 1 }} }}");
    assert_eq!(super::parse(&text("method=ordinary")), super::parse(&text("")));
}
