//! Texts that are made from bytes: random bytes are hardly ever the text of a scenario.

use arbitrary::{Arbitrary as _, Result, Unstructured};
use clr_generate::{SmallProgram, WorldProgram};
use clr_scenario::Scenario;

/// Maximum number of characters in a description.
const LONGEST: usize = 6;

/// Makes a scenario from bytes: a program, with threads or without, with a description of any characters. Returns its
/// text, with semicolons between nodes if a bit says so.
///
/// # Panics
/// If the text does not parse to the scenario.
pub(super) fn made(data: &[u8]) -> Option<String> {
    let mut bytes = Unstructured::new(data);
    let separator = if bytes.arbitrary().ok()? { "\n" } else { "; " };
    let scenario = scenario(&mut bytes).ok()?;
    let text = scenario.to_string();
    assert_eq!(Scenario::parse(&text), Ok(scenario), "{text}");
    let ends = |line: &str| !line.ends_with(['{', '}']) && !line.is_empty();
    let lines = text.lines().map(|line| [line, if ends(line) { separator } else { "\n" }]);
    Some(lines.flatten().collect())
}

fn scenario(bytes: &mut Unstructured<'_>) -> Result<Scenario> {
    const SPECIAL: [char; 6] = ['"', '\\', '\n', '\u{7F}', 'é', '#'];
    let count = bytes.int_in_range(0..=LONGEST)?;
    let character = |bytes: &mut Unstructured<'_>| match bytes.int_in_range(0..=11_usize)? {
        special @ 0..6 => Ok(SPECIAL[special]),
        _ => bytes.arbitrary(),
    };
    let shows: String = (0..count).map(|_| character(bytes)).collect::<Result<_>>()?;
    let mut scenario = if bytes.arbitrary()? {
        Scenario::new(SmallProgram::arbitrary(bytes)?.0)
    } else {
        Scenario::of_world(&WorldProgram::arbitrary(bytes)?)
    };
    scenario.about.shows = Some(shows);
    Ok(scenario)
}
