//! Checking of the rules of programs and threads. Problems are reported at the violating node.

use crate::Scenario;
use crate::text::document::{Node, named};
use crate::text::error::Span;
use crate::text::nodes::ENDS;
use crate::text::parse::Problems;
use crate::text::problem::ProblemKind;
use clr_codegen::{
    CodeKind, EntryForm, FunctionIndex, FunctionPart, ProgramError, ProgramRule, is_name_character,
};
use std::collections::BTreeSet;

/// The nodes of a text, in which the places of problems are found.
struct Places<'n>(&'n [Node<'n>]);

impl Places<'_> {
    /// Returns the range of a node outside all blocks, by its name and index.
    fn node(&self, name: &'static str, index: usize) -> Span {
        named(self.0, name).nth(index).map_or_else(Span::default, |node| node.name.span)
    }

    /// Returns the range of a node in the block of a function; the function's if there is none.
    fn part(&self, function: FunctionIndex, names: &[&str]) -> Span {
        let node = named(self.0, "function").nth(function.index());
        let parts = || node.into_iter().flat_map(Node::children);
        let part = |name: &&str| parts().find(|part| part.name.text == **name);
        let found = names.iter().find_map(part).or(node);
        found.map_or_else(Span::default, |node| node.name.span)
    }

    /// Returns the range of a statement of a function, by its index in the order of the text.
    fn statement(&self, function: FunctionIndex, index: usize) -> Option<Span> {
        let node = named(self.0, "function").nth(function.index())?;
        let mut all = Vec::new();
        named(node.children(), "body").for_each(|body| statements(body, &mut all));
        all.get(index).copied()
    }

    fn of(&self, error: &ProgramError) -> Span {
        let function = error.function;
        match error.place {
            FunctionPart::Interrupt(index) => self.node("interrupt", index as usize),
            FunctionPart::Function => self.part(function, &[]),
            FunctionPart::Shape => self.part(function, shape(error.rule)),
            FunctionPart::Statement(index) => {
                self.statement(function, index as usize).unwrap_or_default()
            }
            FunctionPart::End => self.part(function, &ENDS),
        }
    }
}

/// Adds the ranges of the statements in a block. The parts of other statements have none.
fn statements(block: &Node<'_>, all: &mut Vec<Span>) {
    for node in block.children() {
        let is_part = matches!(
            &*node.name.text,
            "catch" | "on-filter" | "on-catch" | "on-finally" | "on-fault"
        );
        all.extend((!is_part).then_some(node.name.span));
        statements(node, all);
    }
}

/// Returns the nodes that a rule of shapes is about.
const fn shape(rule: ProgramRule) -> &'static [&'static str] {
    match rule {
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
        ProgramRule::Unix => &["wrap", "realign", "arguments", "epilogue-cfi", "entry", "frame"],
        ProgramRule::Realign => &["realign"],
        ProgramRule::Wrap => &["wrap"],
        ProgramRule::Arguments => &["arguments"],
        ProgramRule::Leaf | ProgramRule::Version2 => &["unwind"],
        _ => &[],
    }
}

/// Returns the problem that a violated rule is.
fn broken(scenario: &Scenario, places: &Places<'_>, error: &ProgramError) -> (Span, ProblemKind) {
    let span = places.of(error);
    let kind = match error.rule {
        ProgramRule::FunctionCount if places.0.is_empty() => ProblemKind::Empty,
        ProgramRule::Name => named_wrongly(scenario, places, error.function),
        rule => ProblemKind::Rule(rule),
    };
    (span, kind)
}

/// Returns the problem of a function's name: one that another function has, or a character that no name has.
fn named_wrongly(scenario: &Scenario, places: &Places<'_>, wrong: FunctionIndex) -> ProblemKind {
    let functions = &scenario.program.functions;
    let name = functions.get(wrong.index()).map_or("", |function| &function.name);
    if let Some(first) = functions.iter().take(wrong.index()).position(|other| other.name == name) {
        let first = places.node("function", first).offset;
        return ProblemKind::FunctionTwice { name: name.to_owned(), first };
    }
    match name.chars().find(|c| !is_name_character(*c)) {
        Some(found) => ProblemKind::FunctionCharacter { found },
        None => ProblemKind::Rule(ProgramRule::Name),
    }
}

/// Reports the first rule that the program violates, and the problems of threads.
pub(super) fn check(scenario: &Scenario, nodes: &[Node<'_>], problems: &mut Problems) {
    let places = Places(nodes);
    if let Err(error) = scenario.program.check() {
        problems.push(broken(scenario, &places, &error));
        return;
    }
    let mut names = BTreeSet::new();
    // The thread of a text that names none has no node.
    let spans = named(nodes, "thread").map(|node| node.name.span).chain([Span::default()]);
    for (thread, span) in scenario.threads.iter().zip(spans) {
        if thread.name.is_empty() || !names.insert(&thread.name) {
            problems.push((span, ProblemKind::ThreadName));
        }
        let start = scenario.program.functions.get(thread.start.index());
        if start.is_none_or(|start| start.shape.entry != EntryForm::Call) {
            problems.push((span, ProblemKind::ThreadStart));
        }
    }
    for function in scenario.only_on.keys() {
        let inlined = scenario.program.functions.get(function.index());
        let starts = scenario.threads.iter().any(|thread| thread.start == *function);
        let is_named =
            function.index() == 0 || starts || scenario.program.names_otherwise(*function);
        let cannot_be =
            inlined.is_none_or(|inlined| inlined.has_exits() || inlined.kind == CodeKind::Native);
        if cannot_be || is_named {
            problems.push((places.part(*function, &["body"]), ProblemKind::InlinedExit));
        }
    }
    for function in scenario.entries() {
        let kind = scenario.program.functions.get(function.index()).map(|function| function.kind);
        let starts = scenario
            .threads
            .iter()
            .any(|thread| thread.starts_in_function() && thread.start == function);
        if kind != Some(CodeKind::Native) || starts {
            let span = places.part(function, &["export", "attach"]);
            problems.push((span, ProblemKind::ExportPlace));
        }
    }
    let mut buffers = BTreeSet::new();
    for (buffer, node) in scenario.buffers.iter().zip(named(nodes, "buffer")) {
        let name = buffer.name.as_str();
        if name.is_empty() || name.starts_with('*') || !buffers.insert(name) {
            problems.push((node.name.span, ProblemKind::BufferName));
        }
    }
    let profiler = scenario.profiler.iter().flat_map(|profiler| &profiler.threads);
    for thread in profiler {
        if !names.insert(&thread.name) {
            problems.push((places.node("profiler", 0), ProblemKind::ThreadName));
        }
    }
}
