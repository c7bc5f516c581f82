//! Tests of generated values that print as texts.

use super::*;

/// Returns what a message prints of a value that has a text.
fn printed<T: HasText>(value: T) -> String {
    let printed = format!("{:?}", AsText(value));
    assert!(printed.starts_with('\n'), "{printed}");
    printed
}

#[test]
fn generated_values_print_as_their_texts() {
    let mut without_text = 0;
    for seed in 0..200 {
        let drawn = program(&mut Seeded::new(seed), &Size::default());
        assert_eq!(Scenario::parse(&printed(drawn.clone())).unwrap().program, drawn);
        let case = world_case(&mut Seeded::new(seed));
        match case.scenario() {
            Some(scenario) => assert_eq!(Scenario::parse(&printed(case)).unwrap(), scenario),
            None => without_text += 1,
        }
        let call = synthetic_call(&mut Seeded::new(seed));
        match call.scenario() {
            // Some runtimes may not have its Frames: the text does not say which runtime it is for.
            Some(scenario) => assert_eq!(printed(call), format!("\n{scenario}")),
            // Its fields are better than nothing.
            None => assert_eq!(format!("{:?}", AsText(call.clone())), format!("{call:?}")),
        }
    }
    assert!(without_text < 100, "{without_text}");
}
