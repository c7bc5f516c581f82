//! Requests of the program for GCs.

use super::frames::{call, set};
use super::{Plan, Shared};
use crate::Collection;
use clr_codegen::{RuntimeCallKind, Statement, Value, Word};
use clr_unwind::Gpr;

/// A request for a GC, as the argument of the runtime's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collected(Collection);

impl Collected {
    /// All requests.
    pub(crate) const ALL: [Self; 4] = [
        Self(Collection::Full),
        Self(Collection::Youngest),
        Self(Collection::Young),
        Self(Collection::Compacting),
    ];

    pub(crate) const fn collection(self) -> Collection {
        self.0
    }

    /// Returns the number that stands for the request. It is no id of a method.
    pub(crate) const fn number(self) -> u64 {
        const FIRST: u64 = 0x6C0_0000;
        FIRST + self.0 as u64
    }
}

impl Plan {
    /// Asks for a GC. Programs that ask for full ones alone do not say so.
    pub(super) fn collect(&self, kind: RuntimeCallKind) -> Vec<Statement> {
        let wanted = Collected(match kind {
            RuntimeCallKind::CollectYoungest => Collection::Youngest,
            RuntimeCallKind::CollectYoung => Collection::Young,
            RuntimeCallKind::Compact => Collection::Compacting,
            _ => Collection::Full,
        });
        let says = set(Word::Register(Gpr::R10), Value::Number(wanted.number()));
        let says = self.says_collections.then_some(says);
        let helper = match kind {
            RuntimeCallKind::CollectInlined => Shared::CollectStub,
            _ => Shared::Collect,
        };
        says.into_iter().chain([call(self.helper(helper))]).collect()
    }
}
