//! Hover: the rule behind an id, or the form of a node.

use super::complete::{describe, level};
use super::document::Document;
use clr_sim::book::references::find;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};

/// Returns what is known of the word at a position.
pub(super) fn hover(document: &Document, position: Position) -> Option<Hover> {
    let word = document.word(position);
    let value = rule(word).or_else(|| node(document, position, word))?;
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: None })
}

/// Returns the text of a clause, a hazard, or another rule. A number alone is none here.
fn rule(word: &str) -> Option<String> {
    let is_id = word.starts_with(|char: char| char.is_alphabetic() || char == '\u{A7}');
    let reference =
        Some(word).filter(|_| is_id && word.contains(|char: char| char.is_ascii_digit()));
    let reference = find(reference?).ok()?;
    Some(format!("**{}** ({})\n\n{}", reference.id, reference.title, reference.text))
}

/// Returns the form of a node.
fn node(document: &Document, position: Position, word: &str) -> Option<String> {
    let around = document.around(position);
    if around.in_comment {
        return None;
    }
    let level = level(&around.blocks)?;
    let node = level.nodes().iter().find(|node| node.name == word)?;
    let once = if node.once { ", at most once" } else { "" };
    Some(format!("**{}** in {}{once}\n\n`{}`", node.name, level.name(), describe(node)))
}
