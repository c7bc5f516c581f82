//! Comparison of the machine with a processor.

use super::*;

/// A processor's result of one instruction.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) outcome: Outcome,
    pub(crate) state: State,
    pub(crate) window: Window,
}

/// Executes one instruction on the machine. Returns `None` if the machine does not know the
/// instruction.
pub(crate) fn execute(machine: &mut Machine, start: &Start) -> Option<Outcome> {
    start.state.load_into(machine);
    machine.write(WINDOW, &start.window).unwrap();
    Outcome::of(machine.step())
}

/// Writes the instruction to the machine's memory, and returns true if the machine knows it.
pub(crate) fn is_known(machine: &mut Machine, encoding: &Encoding, start: &Start) -> bool {
    machine.write(encoding.at, &encoding.bytes).unwrap();
    execute(machine, start).is_some()
}

/// Compares all results that the manuals define. The instruction is in the machine's memory.
///
/// # Errors
/// A description of the differences.
pub(crate) fn check(
    machine: &mut Machine,
    encoding: &Encoding,
    start: &Start,
    truth: &Truth,
) -> Result<(), String> {
    let i = &encoding.instruction;
    let found = execute(machine, start);
    if found.is_none() && i.mnemonic() == Mnemonic::Ldmxcsr {
        // Only one rounding mode is implemented.
        return Ok(());
    }
    let mut after = State::of(machine);
    let mut expected = truth.state;
    if truth.outcome == Outcome::Done {
        if is_undefined(i, &start.state, &truth.state) {
            return Ok(());
        }
        let between = undefined_between(i, &start.state, &truth.state);
        let defined = FLAGS & !undefined_flags(i, &start.state) & !between;
        expected.flags &= defined;
        after.flags &= defined;
    }
    let memory = window(machine);
    if found == Some(truth.outcome) && after == expected && memory == truth.window {
        return Ok(());
    }
    let mut text = format!(
        "{i} ({:?}, {:02x?}): {found:?}, not {:?}; the machine has and should have\n{}",
        i.code(),
        encoding.bytes,
        truth.outcome,
        after.differences(&expected)
    );
    for (at, (a, b)) in (WINDOW..).zip(memory.iter().zip(truth.window)) {
        if *a != b {
            writeln!(text, "  byte at {at:#x}: {a:#x} and {b:#x}").unwrap();
        }
    }
    Err(format!("{text}before:\n{:?}", start.state))
}

/// The differences found, of which only the first ones are shown.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    count: usize,
    shown: Vec<String>,
}

impl Complaints {
    pub(crate) fn add(&mut self, result: Result<(), String>) {
        if let Err(text) = result {
            self.count += 1;
            if self.shown.len() < 8 {
                self.shown.push(text);
            }
        }
    }

    /// Fails the test if there are differences.
    ///
    /// # Panics
    /// If there are any.
    pub(crate) fn settle(self) {
        assert!(self.count == 0, "{} wrong, such as\n{}", self.count, self.shown.join("\n"));
    }
}
