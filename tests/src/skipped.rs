//! Tests that cannot check anything on a machine.

use std::fmt::Display;
use std::io::Write as _;

/// The variable that makes every skipped test a failure.
const COMPLETE: &str = "CLR_TESTS_COMPLETE";

/// Reports on stderr that the running test is skipped, and why.
///
/// # Panics
/// If the variable `CLR_TESTS_COMPLETE` is set, or `required`, the variable for tests of this kind.
pub fn skipped(required: &str, why: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let set = [COMPLETE, required].into_iter().find(|name| std::env::var_os(name).is_some());
    let message = message(test, set, &why).unwrap_or_else(|message| panic!("{message}"));
    // The macros that print are captured by the harness of a test that passes.
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// Returns the message for a skipped test, as an error if the variable `set` forbids to skip it.
fn message(test: &str, set: Option<&str>, why: &dyn Display) -> Result<String, String> {
    match set {
        Some(variable) => Err(format!("{test} cannot be skipped ({variable} is set): {why}")),
        None => Ok(format!("skipped: {test}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPLETE, message};

    #[test]
    fn a_skipped_test_says_so_or_fails() {
        let why = "no processor";
        assert_eq!(message("steps", None, &why), Ok("skipped: steps: no processor".to_owned()));
        let error = "steps cannot be skipped (CLR_TESTS_COMPLETE is set): no processor";
        assert_eq!(message("steps", Some(COMPLETE), &why), Err(error.to_owned()));
    }
}
