//! Requests of the program for GCs.

use super::details::Detail;
use super::frames::{call, set};
use super::{Plan, Shared};
use crate::Collection;
use clr_codegen::{RuntimeCallKind, Statement, Value, Word};
use clr_unwind::Gpr;

impl Plan {
    /// Asks for a GC. Programs that ask for full ones alone do not say so.
    pub(super) fn collect(&self, kind: RuntimeCallKind) -> Vec<Statement> {
        let wanted = match kind {
            RuntimeCallKind::CollectYoungest => Collection::Youngest,
            RuntimeCallKind::CollectYoung => Collection::Young,
            RuntimeCallKind::Compact => Collection::Compacting,
            _ => Collection::Full,
        };
        let says = set(Word::Register(Gpr::R10), Value::Number(wanted.number()));
        let says = self.if_said(Detail::Collection, says);
        let helper = match kind {
            RuntimeCallKind::CollectInlined => Shared::CollectStub,
            _ => Shared::Collect,
        };
        says.into_iter().chain([call(self.helper(helper))]).collect()
    }
}
