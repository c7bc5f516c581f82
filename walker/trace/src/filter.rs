//! The calls of a trace that are compared: without what is chance, and what the text does not name.

use crate::ids::IdKind;
use crate::trace::{Call, CallKind, Value};
use std::collections::BTreeMap;

/// Numbers of calls that a comparison leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Callbacks about what the text does not name.
    pub unnamed: usize,
    /// Callbacks that come by chance: objects of the heap, suspensions.
    pub chance: usize,
    /// Calls of threads that the runtime does not know.
    pub native: usize,
}

/// Says whether the text names a function, class, module or assembly.
pub type IsNamed<'n> = &'n dyn Fn(IdKind, &str) -> bool;

/// Returns true for a callback about code of the text.
pub(crate) fn is_about_text(call: &Call, is_named: IsNamed<'_>) -> bool {
    matches!(subject(call), Some(Value::Id(kind, Some(name), _)) if is_named(*kind, name))
}

/// Returns the function, class, module or assembly that a call is about.
pub(crate) fn subject(call: &Call) -> Option<&Value> {
    let mut values = call.inputs.iter().map(|(_, value)| value);
    values.find(|value| matches!(value, Value::Id(kind, ..) if is_code(*kind)))
}

const fn is_code(kind: IdKind) -> bool {
    matches!(kind, IdKind::Function | IdKind::Class | IdKind::Module | IdKind::Assembly)
}

/// Callbacks about objects of the heap and events (rule 3): how many come depends on the heap.
const CHANCE: [&str; 15] = [
    "MovedReferences",
    "MovedReferences2",
    "SurvivingReferences",
    "SurvivingReferences2",
    "ObjectReferences",
    "RootReferences",
    "RootReferences2",
    "ObjectsAllocatedByClass",
    "ConditionalWeakTableElementReferences",
    "HandleCreated",
    "HandleDestroyed",
    "FinalizeableObjectQueued",
    "EventPipeEventDelivered",
    "EventPipeProviderCreated",
    "GetAssemblyReferences",
];

/// Callbacks without a subject, each with the one that begins what it ends (rule 2).
const ENDS: [(&str, &str); 5] = [
    ("ExceptionSearchFunctionLeave", "ExceptionSearchFunctionEnter"),
    ("ExceptionSearchFilterLeave", "ExceptionSearchFilterEnter"),
    ("ExceptionUnwindFunctionLeave", "ExceptionUnwindFunctionEnter"),
    ("ExceptionUnwindFinallyLeave", "ExceptionUnwindFinallyEnter"),
    ("ExceptionCatcherLeave", "ExceptionCatcherEnter"),
];

/// Callbacks of a suspension, from its start to its end (rule 3).
const SUSPENSION: [&str; 7] = [
    "RuntimeSuspendStarted",
    "RuntimeSuspendFinished",
    "RuntimeSuspendAborted",
    "RuntimeThreadSuspended",
    "RuntimeThreadResumed",
    "RuntimeResumeStarted",
    "RuntimeResumeFinished",
];
/// COR_PRF_SUSPEND_FOR_GC.
const FOR_GC: &str = "1";

/// Chooses the calls that are compared.
pub(crate) struct Filter<'f> {
    is_named: IsNamed<'f>,
    threads: &'f BTreeMap<String, usize>,
    /// The callbacks that have begun and not ended, with whether they are compared.
    begun: Vec<(&'static str, bool)>,
    /// True in a suspension that is not for a GC.
    in_other_suspension: bool,
}

impl<'f> Filter<'f> {
    pub(crate) fn new(is_named: IsNamed<'f>, threads: &'f BTreeMap<String, usize>) -> Self {
        Self { is_named, threads, begun: Vec::new(), in_other_suspension: false }
    }

    pub(crate) fn keeps(&mut self, call: &Call, left_out: &mut LeftOut) -> bool {
        if call.kind == CallKind::Method {
            return true;
        }
        if CHANCE.contains(&call.name.as_str()) || self.is_of_other_suspension(call) {
            left_out.chance += 1;
            return false;
        }
        let is_kept = self.is_known(call);
        left_out.unnamed += usize::from(!is_kept);
        is_kept
    }

    fn is_of_other_suspension(&mut self, call: &Call) -> bool {
        if call.name == "RuntimeSuspendStarted" {
            let reason = call.inputs.first().map(|(_, reason)| reason.to_string());
            self.in_other_suspension = reason.as_deref() != Some(FOR_GC);
        }
        self.in_other_suspension && SUSPENSION.contains(&call.name.as_str())
    }

    fn is_known(&mut self, call: &Call) -> bool {
        if let Some((_, begin)) = ENDS.iter().find(|(end, _)| *end == call.name) {
            let at = self.begun.iter().rposition(|(begun, _)| begun == begin);
            return at.is_some_and(|at| self.begun.remove(at).1);
        }
        let is_known = call.inputs.iter().all(|(_, value)| match value {
            Value::Id(IdKind::Thread, _, id) => self.threads.contains_key(id),
            Value::Id(kind, name, _) if is_code(*kind) => {
                name.as_ref().is_some_and(|name| (self.is_named)(*kind, name))
            }
            _ => true,
        });
        if let Some((_, begin)) = ENDS.iter().find(|(_, begin)| *begin == call.name) {
            self.begun.push((begin, is_known));
        }
        is_known
    }
}
