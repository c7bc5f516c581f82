//! Completion: nodes, properties and words of the grammar, and names that the text defines.

use super::document::Document;
use super::scan::Around;
use clr_scenario::{Kind, Level, NodeRule};
use lsp_types::{CompletionItem, CompletionItemKind, Documentation, Position};
use std::collections::BTreeSet;

/// Nodes whose first argument is a name that others can be given.
const DEFINING: [&str; 5] = ["function", "thread", "buffer", "lock", "event"];

/// Returns the level of a place, by the names of the blocks around it. `None` if a name is unknown.
pub(super) fn level(blocks: &[&str]) -> Option<Level> {
    blocks.iter().try_fold(Level::Text, |level, name| {
        level.nodes().iter().find(|node| node.name == *name)?.block
    })
}

/// Returns what may be written at a position.
pub(super) fn completions(document: &Document, position: Position) -> Vec<CompletionItem> {
    let around = document.around(position);
    let Around { blocks, words, begun, in_comment } = &around;
    let Some(level) = level(blocks).filter(|_| !in_comment) else { return Vec::new() };
    let mut nodes = level.nodes().iter();
    let Some((name, given)) = words.split_first() else {
        return nodes
            .map(|node| CompletionItem {
                documentation: node.meaning(level).map(|it| Documentation::String(it.to_owned())),
                ..item(node.name, CompletionItemKind::KEYWORD, describe(node))
            })
            .collect();
    };
    let Some(node) = nodes.find(|node| node.name == *name) else { return Vec::new() };
    if let Some((property, _)) = begun.split_once('=') {
        let kind = node.properties.iter().find(|it| it.name == property).map(|it| it.kind);
        return kind.map(|kind| values(kind, document)).unwrap_or_default();
    }
    let arguments = given.iter().filter(|word| !word.contains('=')).count();
    let kind = node.kind_of_arg(arguments.min(1));
    let mut items = kind.map(|kind| values(kind, document)).unwrap_or_default();
    let is_given = |name: &str| {
        given.iter().any(|word| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    };
    let left = node.properties.iter().filter(|property| !is_given(property.name));
    items.extend(left.map(|property| {
        let words = words_of(property.kind);
        CompletionItem {
            insert_text: Some(format!("{}=", property.name)),
            ..item(property.name, CompletionItemKind::PROPERTY, words)
        }
    }));
    items
}

/// Returns the values of a kind: its words, or names in the text.
fn values(kind: Kind, document: &Document) -> Vec<CompletionItem> {
    let word = |word: &str| item(word, CompletionItemKind::VALUE, String::new());
    match kind {
        Kind::Word(words) => words.iter().map(|it| word(it)).collect(),
        Kind::Flag => ["#true", "#false"].map(word).into(),
        Kind::Number(..) => Vec::new(),
        _ => names(&document.text)
            .into_iter()
            .map(|name| item(name, CompletionItemKind::REFERENCE, String::new()))
            .collect(),
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

/// Returns the kind of a value in words.
pub(super) fn words_of(kind: Kind) -> String {
    match kind {
        Kind::Number(least, most, _) => format!("{least} to {most}"),
        Kind::Flag => "#true or #false".to_owned(),
        Kind::Word(words) => words.join(", "),
        kind if kind.is_text_or_number() => "text or number".to_owned(),
        Kind::Stale => "text, #true or #false".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Describes a node in a line: arguments, properties, block.
pub(super) fn describe(node: &NodeRule) -> String {
    let mut parts = Vec::new();
    if let Some(first) = node.kind_of_arg(0) {
        let count = match node.arity() {
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
        parts.push(format!("{{ {} }}", block.name()));
    }
    parts.join(" ")
}
