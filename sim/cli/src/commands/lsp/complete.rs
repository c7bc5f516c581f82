//! Completion: nodes, properties and words of the grammar, and names that the text defines.

use super::document::Document;
use super::scan::Around;
use clr_scenario::{GrammarNode, Scenario, ValueForm};
use lsp_types::{CompletionItem, CompletionItemKind, Position};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The nodes of the grammar.
static GRAMMAR: LazyLock<Vec<GrammarNode>> = LazyLock::new(Scenario::grammar);

/// Nodes whose first argument is a name that others can be given.
const DEFINING: [&str; 4] = ["function", "thread", "lock", "event"];

/// Returns the nodes that may be in a place, by the names of the blocks around it. `None` if a name is unknown.
pub(super) fn nodes_in(
    blocks: &[&str],
) -> Option<impl Iterator<Item = &'static GrammarNode> + use<>> {
    let mut place = GRAMMAR.first()?.place;
    for name in blocks {
        let node = GRAMMAR.iter().find(|node| node.place == place && node.name == *name)?;
        place = node.block?;
    }
    Some(GRAMMAR.iter().filter(move |node| node.place == place))
}

/// Returns what may be written at a position.
pub(super) fn completions(document: &Document, position: Position) -> Vec<CompletionItem> {
    let around = document.around(position);
    let Around { blocks, words, begun, in_comment } = &around;
    let Some(mut nodes) = nodes_in(blocks).filter(|_| !in_comment) else { return Vec::new() };
    let Some((name, given)) = words.split_first() else {
        return nodes
            .map(|node| item(node.name, CompletionItemKind::KEYWORD, describe(node)))
            .collect();
    };
    let Some(node) = nodes.find(|node| node.name == *name) else { return Vec::new() };
    if let Some((property, _)) = begun.split_once('=') {
        let form = node.properties.iter().find(|it| it.name == property).map(|it| &it.form);
        return form.map(|form| values(form, document)).unwrap_or_default();
    }
    let arguments = given.iter().filter(|word| !word.contains('=')).count();
    let form = if arguments == 0 { node.first.as_ref() } else { node.rest.as_ref() };
    let mut items = form.map(|form| values(form, document)).unwrap_or_default();
    let is_given = |name: &str| {
        given.iter().any(|word| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    };
    let left = node.properties.iter().filter(|property| !is_given(property.name));
    items.extend(left.map(|property| {
        let words = words_of(&property.form);
        CompletionItem {
            insert_text: Some(format!("{}=", property.name)),
            ..item(property.name, CompletionItemKind::PROPERTY, words)
        }
    }));
    items
}

/// Returns the values of a form: its words, or names in the text.
fn values(form: &ValueForm, document: &Document) -> Vec<CompletionItem> {
    let word = |word: &str| item(word, CompletionItemKind::VALUE, String::new());
    match form {
        ValueForm::Word(words) => words.iter().map(|it| word(it)).collect(),
        ValueForm::Flag => ["#true", "#false"].map(word).into(),
        ValueForm::Text | ValueForm::TextOrNumber | ValueForm::TextOrFlag => names(&document.text)
            .into_iter()
            .map(|name| item(name, CompletionItemKind::REFERENCE, String::new()))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns the names that nodes of a text define.
fn names(text: &str) -> BTreeSet<&str> {
    let defined = text.lines().filter_map(|line| {
        let (node, rest) = line.trim_start().split_once(' ')?;
        let rest = rest.trim_start();
        let name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => rest.split([' ', '{', ';']).next(),
        };
        name.filter(|name| DEFINING.contains(&node) && !name.is_empty())
    });
    defined.collect()
}

fn item(label: &str, kind: CompletionItemKind, detail: String) -> CompletionItem {
    let detail = Some(detail).filter(|detail| !detail.is_empty());
    CompletionItem {
        label: label.to_owned(),
        kind: Some(kind),
        detail,
        ..CompletionItem::default()
    }
}

/// Returns the form of a value in words.
fn words_of(form: &ValueForm) -> String {
    match form {
        ValueForm::Number(least, most) => format!("{least} to {most}"),
        ValueForm::Flag => "#true or #false".to_owned(),
        ValueForm::Word(words) => words.join(", "),
        ValueForm::TextOrNumber => "text or number".to_owned(),
        ValueForm::TextOrFlag => "text, #true or #false".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Describes a node in a line: arguments, properties, block.
pub(super) fn describe(node: &GrammarNode) -> String {
    let mut parts = Vec::new();
    if let Some(first) = &node.first {
        let count = match (node.least, node.most) {
            (1, 1) => String::new(),
            (least, most) => format!(" ({least} to {most} arguments)"),
        };
        parts.push(format!("{}{count}", words_of(first)));
    }
    let properties = node.properties.iter().map(|property| {
        let sign = if property.required { "" } else { "?" };
        format!("{}={sign}", property.name)
    });
    parts.extend(properties);
    if let Some(block) = node.block {
        parts.push(format!("{{ {block} }}"));
    }
    parts.join(" ")
}
