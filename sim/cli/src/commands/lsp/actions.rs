//! Code actions: corrections of problems, and commands for a text without problems.

use super::document::Document;
use super::names::edit;
use super::{BLESS, RUN, check, command};
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Range, TextEdit, Uri,
};

/// Returns what can be done in a range of a text. An editor that knows no actions with changes gets commands alone.
pub(super) fn actions(
    document: &Document,
    params: &CodeActionParams,
    has_literals: bool,
) -> Vec<CodeActionOrCommand> {
    let uri = &params.text_document.uri;
    let problems = check::problems_of(document);
    if problems.is_empty() {
        let is_wanted = params.context.only.as_ref().is_none_or(Vec::is_empty);
        let all = [
            ("Run on all runtimes", RUN),
            ("Write what the simulator gives into the expectations", BLESS),
        ];
        let wanted = all.into_iter().filter(|_| is_wanted);
        return wanted
            .map(|(title, name)| CodeActionOrCommand::Command(command(title, name, uri)))
            .collect();
    }
    let is_wanted = |kind: &CodeActionKind| CodeActionKind::QUICKFIX.as_str() == kind.as_str();
    let only = params.context.only.as_deref().unwrap_or_default();
    if !has_literals || !only.is_empty() && !only.iter().any(is_wanted) {
        return Vec::new();
    }
    let there = problems.iter().filter(|it| touches(document.range(it.span), params.range));
    there.flat_map(|problem| corrections(document, problem, uri)).collect()
}

/// Returns the corrections that a problem suggests.
fn corrections(
    document: &Document,
    problem: &clr_scenario::Problem,
    uri: &Uri,
) -> Vec<CodeActionOrCommand> {
    let action = |correction: clr_scenario::Correction| CodeAction {
        title: correction.title,
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![check::diagnostic_of(document, problem)]),
        edit: Some(edit(
            uri.clone(),
            vec![TextEdit::new(document.range(correction.span), correction.text)],
        )),
        is_preferred: Some(correction.is_likely),
        ..CodeAction::default()
    };
    let actions = problem.corrections().into_iter().map(action);
    actions.map(CodeActionOrCommand::CodeAction).collect()
}

/// Returns true if two ranges have a position in common. A cursor is an empty range.
fn touches(one: Range, other: Range) -> bool {
    one.start <= other.end && other.start <= one.end
}
