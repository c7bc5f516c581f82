//! The parts of texts that raise callbacks in searches, of callbacks that not every program gets.

use super::scenario::Scenario;
use clr_codegen::{CodeKind, RuntimeCallKind as Call, Statement};
use clr_runtime::profiling::CallbackKind;

/// A part of a text without which no interleaving has a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaisedBy {
    /// One of these statements.
    Statements(&'static [Call]),
    /// An `inlines` of a method, or one of these statements.
    Inlined(&'static [Call]),
    /// A method of an image.
    Image,
    /// Nothing of a text: searches begin in a runtime that has started, and have neither requests of ReJIT nor sessions of events.
    Nothing,
}

impl RaisedBy {
    /// Returns what raises a callback. `None` if programs get it without a statement of their own, or for many reasons.
    pub(crate) const fn of(kind: CallbackKind) -> Option<Self> {
        use CallbackKind as Kind;
        Some(match kind {
            Kind::AssemblyLoadStarted
            | Kind::AssemblyLoadFinished
            | Kind::ModuleLoadStarted
            | Kind::ModuleLoadFinished
            | Kind::ModuleAttachedToAssembly => Self::Inlined(&[Call::LoadAssembly]),
            Kind::JITInlining => Self::Inlined(&[]),
            Kind::AssemblyUnloadStarted
            | Kind::AssemblyUnloadFinished
            | Kind::ModuleUnloadStarted
            | Kind::ModuleUnloadFinished
            | Kind::ClassUnloadStarted
            | Kind::ClassUnloadFinished
            | Kind::FunctionUnloadStarted => Self::Statements(&[Call::UnloadAssembly]),
            Kind::DynamicMethodUnloaded => Self::Statements(&[Call::UnloadDynamicMethod]),
            Kind::HandleCreated => Self::Statements(&[Call::CreateHandle, Call::CreateEmptyHandle]),
            Kind::HandleDestroyed => Self::Statements(&[Call::DestroyHandle]),
            Kind::FinalizeableObjectQueued => Self::Statements(&[Call::NewFinalizable]),
            Kind::ThreadNameChanged => Self::Statements(&[Call::NameThread]),
            Kind::JITCachedFunctionSearchStarted | Kind::JITCachedFunctionSearchFinished => {
                Self::Image
            }
            Kind::AppDomainCreationStarted
            | Kind::AppDomainCreationFinished
            | Kind::GetReJITParameters
            | Kind::ReJITCompilationStarted
            | Kind::ReJITCompilationFinished
            | Kind::RuntimeSuspendAborted
            | Kind::EventPipeEventDelivered
            | Kind::EventPipeProviderCreated => Self::Nothing,
            _ => return None,
        })
    }

    /// Returns true if a text has it.
    pub(crate) fn is_in(self, scenario: &Scenario) -> bool {
        let has = |calls: &[Call]| {
            let is_one = |statement: &Statement| matches!(statement, Statement::Runtime(call) if calls.contains(&call.kind));
            let functions = &scenario.program.functions;
            functions.iter().flat_map(|one| &one.body).any(|part| part.contains(&is_one))
        };
        match self {
            Self::Statements(calls) => has(calls),
            Self::Inlined(calls) => {
                scenario.inlines.values().any(|inlined| !inlined.is_empty()) || has(calls)
            }
            Self::Image => {
                let mut functions = scenario.program.functions.iter();
                functions.any(|function| function.kind == CodeKind::ReadyToRun)
            }
            Self::Nothing => false,
        }
    }

    /// Says what a text needs for the callback.
    pub(crate) fn help(self) -> String {
        let (calls, inlines) = match self {
            Self::Statements(calls) => (calls, None),
            Self::Inlined(calls) => (calls, Some("`inlines` of a method")),
            Self::Image => {
                return "it needs a function of kind `ready-to-run` in the program".to_owned();
            }
            Self::Nothing => return "no statement of a text raises it: remove the `on`".to_owned(),
        };
        let words = calls.iter().map(|call| format!("`{}`", call.word()));
        let needed: Vec<_> = words.chain(inlines.map(str::to_owned)).collect();
        format!("it needs {} in the program", needed.join(" or "))
    }
}
