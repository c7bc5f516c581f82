//! Details that a program says about its calls of the runtime.
//!
//! Code hands a detail to a helper only in a program that says such details: the code of all others stays as it is.

use super::{Plan, arranged};
use clr_codegen::{Program, RuntimeCall, RuntimeCallKind as Kind, Statement};
use std::collections::BTreeSet;

/// A detail of a call of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// The class of an object, or its heap, or that it refers to another one.
    Object,
    /// The assembly or class that is loaded.
    Load,
    /// The class of an exception.
    Exception,
    /// The generation of a GC, or that it compacts.
    Collection,
    /// A handle refers to no object.
    EmptyHandle,
}

impl Detail {
    const ALL: [Self; 5] =
        [Self::Object, Self::Load, Self::Exception, Self::Collection, Self::EmptyHandle];

    /// Returns true if a call says such a detail.
    fn is_said_by(self, call: &RuntimeCall) -> bool {
        let names = call.target.is_some();
        match self {
            Self::Object => names && call.kind == Kind::New || call.kind.says_heap(),
            Self::Load => names && matches!(call.kind, Kind::LoadAssembly | Kind::LoadClass),
            Self::Exception => call.names_exception(),
            Self::Collection => {
                matches!(call.kind, Kind::CollectYoungest | Kind::CollectYoung | Kind::Compact)
            }
            Self::EmptyHandle => call.kind == Kind::CreateEmptyHandle,
        }
    }

    /// Returns the details that a program says.
    pub(super) fn said_by(source: &Program) -> BTreeSet<Self> {
        let is_said = |detail: &Self| arranged::calls(source, &|call| detail.is_said_by(call));
        Self::ALL.into_iter().filter(is_said).collect()
    }
}

impl Plan {
    /// Returns the statement that hands over a detail, if the program says such details.
    pub(super) fn if_said(&self, detail: Detail, hands: Statement) -> Option<Statement> {
        self.details.contains(&detail).then_some(hands)
    }
}
