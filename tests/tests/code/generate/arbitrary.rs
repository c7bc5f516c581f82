use arbitrary::{Arbitrary, Unstructured};
use clr_generate::SmallProgram;
use clr_generate::{Choices, Measure, Seeded, Size, program};

#[test]
fn no_bytes_give_the_smallest_program() {
    let SmallProgram(empty) = SmallProgram::arbitrary(&mut Unstructured::new(&[])).unwrap();
    let measure = Measure::of(&empty);
    assert_eq!((measure.functions, measure.statements, measure.details), (1, 0, 0));
}

#[test]
fn any_bytes_give_a_valid_program() {
    let mut seeded = Seeded::new(0);
    let mut most = 0;
    for _ in 0..3_000 {
        let bytes: Vec<u8> = (0..seeded.below(400)).map(|_| seeded.bits() as u8).collect();
        let program = program(&mut Unstructured::new(&bytes), &Size::SMALL);
        assert_eq!(program.check(), Ok(()));
        // After the last byte no more statements follow.
        assert!(Measure::of(&program).statements <= bytes.len());
        most = most.max(program.functions.len());
    }
    assert_eq!(most, Size::SMALL.most_functions as usize);
}

#[test]
fn choices_from_bytes_are_in_range_and_end_in_zeros() {
    let mut bytes = Unstructured::new(&[200, 3, 250]);
    assert_eq!(bytes.below(0), 0);
    assert_eq!(bytes.below(1), 0);
    assert!(bytes.below(7) < 7);
    assert!(bytes.below(u32::MAX) < u32::MAX);
    assert_eq!(bytes.below(100), 0);
    assert!(!bytes.chance(99, 100));
    assert_eq!(bytes.between(3, 9), 3);
}
