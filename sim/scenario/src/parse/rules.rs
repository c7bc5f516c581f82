//! Checking of the rules of programs and threads. Problems are reported at the violating node.

use super::fit::StackPlaces;
use crate::Scenario;
use crate::error::Span;
use crate::problem::ProblemKind;
use clr_codegen::{CodeKind, EntryForm, FunctionPart, ProgramError, ProgramRule};
use std::collections::BTreeSet;

/// Source ranges of the parts of a scenario.
#[derive(Default)]
pub(super) struct Places {
    pub(super) functions: Vec<FunctionPlaces>,
    pub(super) interrupts: Vec<Span>,
    pub(super) threads: Vec<Span>,
    pub(super) stops: Vec<Span>,
    /// First node that belongs to a program.
    pub(super) program: Option<(&'static str, Span)>,
    pub(super) stack: StackPlaces,
    pub(super) profiler: Span,
}

/// Source ranges of the parts of a function.
pub(super) struct FunctionPlaces {
    function: Span,
    /// Ranges of the nodes in the function's block, by name.
    pub(super) parts: Vec<(&'static str, Span)>,
    /// Ranges of the statements, in the order of the text.
    pub(super) statements: Vec<Span>,
    /// Range of the node that states the function's end.
    pub(super) end: Span,
}

impl FunctionPlaces {
    pub(super) const fn new(function: Span) -> Self {
        Self { function, parts: Vec::new(), statements: Vec::new(), end: function }
    }

    /// Returns the range of the shape's part that a rule is about.
    fn shape(&self, rule: ProgramRule) -> Span {
        let names: &[&str] = match rule {
            ProgramRule::FirstEntry => &["entry"],
            ProgramRule::Home => &["home"],
            ProgramRule::StackPointer => &["push", "home"],
            ProgramRule::Pushes => &["push"],
            ProgramRule::Locals => &["locals"],
            ProgramRule::Saved(_) => &["save", "push", "home"],
            ProgramRule::SavedXmm(_) | ProgramRule::SavesBelowFrame => &["save"],
            ProgramRule::FrameRegister => &["frame"],
            ProgramRule::Release => &["release"],
            ProgramRule::Chkstk => &["allocation"],
            ProgramRule::Unix => {
                &["wrap", "realign", "arguments", "epilogue-cfi", "entry", "frame"]
            }
            ProgramRule::Realign => &["realign"],
            ProgramRule::Wrap => &["wrap"],
            ProgramRule::Arguments => &["arguments"],
            ProgramRule::Leaf | ProgramRule::Version2 => &["unwind"],
            _ => &[],
        };
        let part = |name: &&str| self.parts.iter().find(|(part, _)| part == name);
        names.iter().find_map(part).map_or(self.function, |(_, span)| *span)
    }
}

impl Places {
    fn of(&self, error: &ProgramError) -> Span {
        let function = self.functions.get(error.function.index());
        let span = match error.place {
            FunctionPart::Interrupt(index) => self.interrupts.get(index as usize).copied(),
            FunctionPart::Function => function.map(|function| function.function),
            FunctionPart::Shape => function.map(|function| function.shape(error.rule)),
            FunctionPart::Statement(index) => {
                function.and_then(|function| function.statements.get(index as usize).copied())
            }
            FunctionPart::End => function.map(|function| function.end),
        };
        span.unwrap_or_default()
    }
}

/// Reports the first rule that the program violates, and the problems of threads.
pub(super) fn check(scenario: &Scenario, places: &Places, problems: &mut Vec<(Span, ProblemKind)>) {
    if let Err(error) = scenario.program.check() {
        problems.push((places.of(&error), ProblemKind::Rule(error.rule)));
        return;
    }
    let mut names = BTreeSet::new();
    for (thread, span) in scenario.threads.iter().zip(&places.threads) {
        if thread.name.is_empty() || !names.insert(&thread.name) {
            problems.push((*span, ProblemKind::ThreadName));
        }
        let start = scenario.program.functions.get(thread.start.index());
        if start.is_none_or(|start| start.shape.entry != EntryForm::Call) {
            problems.push((*span, ProblemKind::ThreadStart));
        }
    }
    for function in scenario.exports.keys() {
        let kind = scenario.program.functions.get(function.index()).map(|function| function.kind);
        let starts = scenario.threads.iter().any(|thread| !thread.gc && thread.start == *function);
        if let Some(places) = places.functions.get(function.index())
            && (kind != Some(CodeKind::Native) || starts)
        {
            let export = places.parts.iter().find(|(part, _)| *part == "export");
            let span = export.map_or(places.function, |(_, span)| *span);
            problems.push((span, ProblemKind::ExportPlace));
        }
    }
    let profiler = scenario.profiler.iter().flat_map(|profiler| &profiler.threads);
    for thread in profiler {
        if !names.insert(&thread.name) {
            problems.push((places.profiler, ProblemKind::ThreadName));
        }
    }
}
