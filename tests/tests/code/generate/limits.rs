use super::*;
use clr_machine::Fnv1a;

#[test]
fn programs_are_valid_and_within_their_limits() {
    for (size, count) in [(Size::SMALL, 20_000), (Size::TINY, 5_000), (Size::DEEP, 1_000)] {
        for (seed, program) in programs(&size, count).enumerate() {
            if let Err(error) = program.check() {
                panic!("seed {seed}: {error:?}\n{program:#?}");
            }
            let functions = program.functions.len() as u32;
            assert!((size.least_functions..=size.most_functions).contains(&functions));
            let estimate = estimate::program(&program);
            assert!(estimate.instructions <= size.instructions, "seed {seed}: {estimate:?}");
            assert!(estimate.stack <= size.stack, "seed {seed}: {estimate:?}");
        }
    }
}

/// Returns FNV-1a of all programs as printed, which is the same on every platform.
fn digest(size: &Size) -> String {
    let mut hash = Fnv1a::default();
    programs(size, 200).for_each(|program| hash.write(format!("{program:?}").as_bytes()));
    format!("{:016x}", hash.finish())
}

#[test]
fn a_seed_gives_the_same_program_everywhere() {
    insta::assert_snapshot!(digest(&Size::TINY), @"e9d230b1ddd899aa");
    insta::assert_snapshot!(digest(&Size::SMALL), @"d1c8218bfbda38b4");
    insta::assert_snapshot!(digest(&Size::DEEP), @"1f562176c3ac4a94");
}

#[test]
fn choices_of_a_seed() {
    let mut seeded = Seeded::new(1_234_567);
    let mut counts = [0_u32; 5];
    for _ in 0..10_000 {
        counts[seeded.below(5) as usize] += 1;
    }
    assert!(counts.iter().all(|count| (1_850..2_150).contains(count)), "{counts:?}");
    assert_eq!((seeded.below(0), seeded.below(1)), (0, 0));
    assert_eq!(seeded.pick::<u8>(&[]), None);
    assert_eq!(seeded.weighted(&[]), 0);
    assert_eq!(seeded.weighted(&[0, 3, 0]), 1);
    assert!((0..100).all(|_| (3..=5).contains(&seeded.between(3, 5))));
    assert_eq!(seeded.between(5, 3), 5);
}

#[test]
fn any_limits_can_be_asked_for() {
    for (instructions, stack) in [(0, 0), (100, 1 << 20), (500, 1 << 14), (3_000, 100)] {
        let size = Size { instructions, stack, nesting: 99, ..Size::SMALL };
        for program in programs(&size, 500) {
            assert_eq!(program.check(), Ok(()));
        }
    }
    let size = Size { nesting: 99, statements: 3, instructions: 20_000, ..Size::SMALL };
    assert!(programs(&size, 2_000).all(|program| program.check() == Ok(())));
}

#[test]
fn little_stack_is_enough() {
    let size = Size { stack: 1 << 12, statements: 12, nesting: 4, ..Size::SMALL };
    for program in programs(&size, 5_000) {
        let estimate = estimate::program(&program);
        assert!(estimate.stack <= size.stack, "{estimate:?}\n{program:#?}");
    }
}

#[test]
fn caught_exceptions_leave_no_function() {
    use clr_codegen::{Function, FunctionShape, Program, Statement};
    let function = |name: &str, body| Function {
        name: name.into(),
        kind: clr_codegen::CodeKind::Native,
        shape: FunctionShape::default(),
        body,
        end: None,
    };
    let throws = |body| {
        let functions = vec![function("f0", body), function("f1", vec![Statement::Throw])];
        let program = Program { functions, ..Program::default() };
        estimate::functions(&program)[0].throws
    };
    let call = || Statement::Call(clr_codegen::CallForm::Near, clr_codegen::FunctionIndex(1));
    assert!(throws(vec![call()]));
    assert!(!throws(vec![Statement::Try(vec![call()], vec![])]));
    assert!(throws(vec![Statement::Try(vec![call()], vec![call()])]));
    assert!(!throws(vec![Statement::Stop, call()]));
    assert!(!throws(vec![Statement::If(false, vec![call()])]));
}
