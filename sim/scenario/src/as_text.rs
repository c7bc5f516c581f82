//! Generated values as texts, for the messages of tests that fail.

use super::Scenario;
use clr_codegen::Program;
use clr_generate::{SyntheticCall, WorldCase, WorldProgram};
use core::fmt;
use core::ops::Deref;

/// A generated value with a text that describes it.
pub trait HasText: fmt::Debug {
    /// Returns the value as a scenario, or `None` if no text describes it.
    fn scenario(&self) -> Option<Scenario>;
}

impl HasText for Program {
    fn scenario(&self) -> Option<Scenario> {
        Some(Scenario { program: self.clone(), ..Scenario::default() })
    }
}

impl HasText for SyntheticCall {
    fn scenario(&self) -> Option<Scenario> {
        Scenario::from_call(self)
    }
}

impl HasText for WorldProgram {
    fn scenario(&self) -> Option<Scenario> {
        Some(Scenario::of_world(self))
    }
}

impl HasText for WorldCase {
    fn scenario(&self) -> Option<Scenario> {
        Scenario::of_case(self)
    }
}

/// A generated value whose `Debug` is its text: a few lines, where its fields would be hundreds, and an input of
/// `clrsim`. With proptest, `programs(size).prop_map(AsText)` is a strategy whose failures are printed so.
///
/// ```
/// use clr_generate::{Seeded, Size, program};
/// use clr_scenario::{AsText, Scenario};
///
/// let drawn = AsText(program(&mut Seeded::new(7), &Size::SMALL));
/// let text = format!("{drawn:?}");
/// assert_eq!(Scenario::parse(&text)?.program, *drawn);
/// # Ok::<(), clr_scenario::ScenarioError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AsText<T>(
    /// The value.
    pub T,
);

impl<T> Deref for AsText<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Formats the value's text, or its fields if it has none.
impl<T: HasText> fmt::Debug for AsText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.scenario() {
            // The message that it stands in begins on the line before.
            Some(scenario) => write!(f, "\n{scenario}"),
            None => self.0.fmt(f),
        }
    }
}
