//! The leaves of samples, judged by execution.

use super::frame::{Frame, StackCopy};
use clr_sampler::Sample;
use clr_sampler::os::OwnProcess;
use clr_unwind::Memory as _;
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[cfg(target_os = "linux")]
use super::execute::Found;

/// What is known of leaves.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// Number of leaves that were executed to their return.
    pub(super) executed: u64,
    /// Numbers of those that were not, by the reason.
    pub(super) unjudged: BTreeMap<&'static str, u64>,
    /// Number of executed leaves that the second reader or libunwind has left for another caller.
    pub(super) opinions_wrong: u64,
    /// Number of leaves that could not be executed, where walk and second walk differ.
    pub(super) disputed: u64,
}

#[cfg(target_os = "linux")]
impl Leaves {
    /// Counts leaves whose copies nobody has executed.
    pub(super) fn add_unused(&mut self, unused: u64) {
        if unused > 0 {
            *self.unjudged.entry("walked later").or_default() += unused;
        }
    }

    /// Counts an execution, and returns the caller that it has found.
    pub(super) fn add(&mut self, found: Found) -> Option<Frame> {
        match found {
            Ok(_) => self.executed += 1,
            Err(why) => *self.unjudged.entry(why).or_default() += 1,
        }
        found.ok()
    }
}

/// Returns a text with which a case can be made of a leaf: its code, registers and stack, and the caller if it is known.
pub(super) fn describe(sample: &Sample, caller: Option<Frame>) -> String {
    let registers = &sample.registers;
    let mut code = [0; 64];
    let has_code = OwnProcess.read(registers.rip, &mut code).is_ok();
    let mut text = format!("  leaf {:#x} code", registers.rip);
    for byte in code.iter().filter(|_| has_code) {
        let _ = write!(text, " {byte:02x}");
    }
    let _ = writeln!(text, "\n  registers {:x?}", registers.gpr);
    let stack = StackCopy { from: sample.copy_from, bytes: &sample.copy };
    let words = (0..64).map_while(|n| stack.read(registers.rsp() + 8 * n));
    let _ = writeln!(text, "  stack {:x?}", words.collect::<Vec<_>>());
    let _ = match caller {
        Some(caller) => writeln!(text, "  executed to {:#x} {:#x}", caller.rip, caller.rsp()),
        None => writeln!(text, "  not executed to its return"),
    };
    text
}
