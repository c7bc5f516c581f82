//! Tests of the text format.

mod bless;
mod errors;
mod execute;
mod format;
mod grammar;
mod histories;
mod hostile;
mod mixed;
mod of_world;
mod restage;
mod round_trip;
mod run;
mod snapshot;
mod told;
mod walk;

use super::Scenario;

/// A text in which everything occurs.
const EVERYTHING: &str = include_str!("everything.kdl");

/// The same of stacks placed by hand.
const STACK: &str = include_str!("stack.kdl");

/// Reads a text that must be right.
fn parse(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The canonical text, after it has been read back.
fn round_trip(scenario: &Scenario) -> String {
    let text = scenario.to_string();
    let again = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again, *scenario, "\n{text}");
    assert_eq!(again.to_string(), text);
    text
}

/// The document of the grammar.
const DOCUMENT: &str = include_str!("../grammar.md");

/// The texts that the document shows.
fn examples() -> impl Iterator<Item = &'static str> {
    DOCUMENT.split("```kdl\n").skip(1).map(|rest| rest.split_once("```").unwrap().0)
}
