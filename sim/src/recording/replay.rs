//! Walks made again, and compared with what was recorded.

use super::load::registers;
use super::{CallbackLine, RecordedMemory, Recording, WalkLine};
use crate::profiling::{Answer, Callback, Death, HResult, Outcome, Runtime};
use crate::runtime::CodeManager;

/// What a replayed walk says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is as recorded.
    Same,
    /// Something differs.
    Different(Difference),
}

/// The first thing that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// How the call ended.
    Outcome(Outcome),
    /// A callback, by its index.
    Callback {
        /// Its index.
        index: u32,
        /// What was called back; `None` if there were fewer callbacks than recorded.
        found: Option<Box<Callback>>,
    },
    /// There were more callbacks than recorded.
    Count(u32),
}

impl Recording {
    /// Makes a walk again.
    #[must_use]
    pub fn replay(&self, code: &CodeManager<'_>, walk: &WalkLine) -> Verdict {
        let memory = RecordedMemory::new(walk.stack.as_ref());
        let runtime =
            Runtime { generation: self.generation, process: walk.process(), code, memory: &memory };
        let stop_at = walk.call.policy.as_ref().and_then(|policy| policy.stop_at);
        let mut count = 0;
        let mut difference = None;
        let outcome = runtime.do_stack_snapshot(&walk.thread(), &walk.call(), |found| {
            let index = count;
            count += 1;
            let recorded = walk.result.callbacks.get(index as usize);
            // Beyond what was recorded, callbacks are only counted.
            let missing = walk.result.callback_count.is_some();
            let same = recorded.map_or(missing, |recorded| is_same(found, recorded));
            if !same && difference.is_none() {
                difference = Some(Difference::Callback { index, found: Some(Box::new(*found)) });
            }
            if stop_at == Some(index) { Answer::Abort } else { Answer::Continue }
        });
        if let Some(difference) = difference {
            return Verdict::Different(difference);
        }
        if !is_outcome(outcome, walk) {
            return Verdict::Different(Difference::Outcome(outcome));
        }
        let expected = walk.result.callback_count.unwrap_or(walk.result.callbacks.len() as u32);
        if count < expected {
            return Verdict::Different(Difference::Callback { index: count, found: None });
        }
        if count > expected { Verdict::Different(Difference::Count(count)) } else { Verdict::Same }
    }
}

fn is_same(found: &Callback, recorded: &CallbackLine) -> bool {
    let context = match (&found.context, &recorded.registers) {
        (Some(found), Some(values)) => {
            let expected = registers(values);
            found.registers.gpr == expected.gpr
                && found.registers.rip == expected.rip
                && recorded.context_flags.is_none_or(|flags| u64::from(found.flags) == flags.0)
        }
        (_, None) => true,
        (None, Some(_)) => false,
    };
    found.function.map(|function| function.0) == recorded.function
        && found.ip == recorded.ip.0
        && found.context_size == recorded.context_size
        && context
}

fn is_outcome(outcome: Outcome, walk: &WalkLine) -> bool {
    match (outcome, walk.result.hr, walk.result.killed.as_deref()) {
        (Outcome::Returned(HResult(found)), Some(recorded), _) => u64::from(found) == recorded.0,
        (Outcome::Killed(Death::AccessViolation), None, Some("SIGSEGV")) => true,
        // What a wild id leads to depends on memory that nobody recorded.
        (Outcome::Killed(Death::InvalidTargetThread), None, Some(how)) => {
            how.ends_with("0x8013135E") || walk.state.target.as_deref() == Some("invalid")
        }
        _ => false,
    }
}
