use clr_codegen::{Program, Statement};
use clr_generate::{Measure, Seeded, Size, Tree, program, programs, shrunk};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestError, TestRunner};

fn large() -> Program {
    let programs = (0..).map(|seed| program(&mut Seeded::new(seed), &Size::SMALL));
    programs.into_iter().find(|program| Measure::of(program).statements > 20).unwrap()
}

#[test]
fn complicate_brings_back_the_failing_value() {
    let original = large();
    let mut tree = Tree::new(original.clone());
    assert_eq!(tree.current(), original);
    assert!(!tree.complicate());
    assert!(tree.simplify());
    // No candidate fails: all are tried once, and then the original is current again.
    let mut tried = vec![tree.current()];
    while tree.complicate() {
        tried.push(tree.current());
    }
    assert_eq!(tried.pop(), Some(original.clone()));
    assert_eq!(tried, shrunk(&original).collect::<Vec<_>>());
    assert_eq!(tree.current(), original);
    assert!(!tree.complicate());
    assert!(!tree.simplify());
    assert!(!tree.simplify());
    assert_eq!(tree.current(), original);
}

#[test]
fn simplify_goes_down_to_the_smallest() {
    let mut tree = Tree::new(large());
    let mut last = Measure::of(&tree.current());
    while tree.simplify() {
        let next = Measure::of(&tree.current());
        assert!(next < last);
        last = next;
    }
    assert_eq!((last.functions, last.statements, last.details), (1, 0, 0));
    assert!(!tree.complicate());
}

#[test]
fn proptest_finds_the_smallest() {
    let throws = |statement: &Statement| matches!(statement, Statement::Throw);
    let config = Config { cases: 1_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let result = runner.run(&programs(Size::SMALL), |program| {
        let mut statements = program.functions.iter().flat_map(|function| &function.body);
        let fails = statements.any(|statement| statement.contains(&throws));
        proptest::prop_assert!(!fails);
        Ok(())
    });
    let Err(TestError::Fail(_, least)) = result else { panic!("{result:?}") };
    let measure = Measure::of(&least);
    assert_eq!((measure.functions, measure.statements), (1, 1), "{least:#?}");
    assert_eq!(least.functions[0].body, [Statement::Throw]);
}

#[test]
fn one_state_of_the_runner_gives_one_program() {
    let draw =
        || programs(Size::TINY).new_tree(&mut TestRunner::deterministic()).unwrap().current();
    assert_eq!(draw(), draw());
    assert_eq!(draw().check(), Ok(()));
}
