//! Hover: the rule behind an id, the meaning of a node, the values of a property, or where a name is defined.

use super::complete::{describe, level, words_of};
use super::document::Document;
use clr_scenario::{Level, names_of};
use clr_sim::book::references::find;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};

/// Returns what is known of the word at a position.
pub(super) fn hover(document: &Document, position: Position) -> Option<Hover> {
    let word = document.word(position);
    let value = rule(word)
        .or_else(|| name(document, position))
        .or_else(|| node_or_property(document, position, word))?;
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

/// Returns where the name at a position is defined, and how often it is used.
fn name(document: &Document, position: Position) -> Option<String> {
    let offset = document.offset(position);
    let names = names_of(&document.text);
    let name = names.iter().find(|it| it.is_at(offset))?;
    let all = || names.iter().filter(|it| it.is_of_same(name));
    let line =
        all().find(|it| it.is_definition).map(|it| document.range(it.span).start.line + 1)?;
    let (kind, uses) = (name.kind, all().filter(|it| !it.is_definition).count());
    let uses = if uses == 1 { "used once".to_owned() } else { format!("used {uses} times") };
    Some(format!("{kind} `{}`: defined in line {line}, {uses}", name.name))
}

/// Returns the meaning of a node with an example, or the values of a property.
fn node_or_property(document: &Document, position: Position, word: &str) -> Option<String> {
    let around = document.around(position);
    if around.in_comment {
        return None;
    }
    let level = level(&around.blocks)?;
    match around.words.first() {
        Some(node) if *node != word => property(level, node, word),
        _ => node(level, word),
    }
}

fn node(level: Level, word: &str) -> Option<String> {
    let node = level.nodes().iter().find(|node| node.name == word)?;
    let once = if node.once { ", at most once" } else { "" };
    let mut parts = vec![format!("**{}** in {}{once}", node.name, level.name())];
    // Links of the document lead into the library's documentation.
    parts.extend(node.meaning(level).map(|text| text.replace("[`", "`").replace("`]", "`")));
    parts.push(format!("`{}`", describe(node)));
    parts.extend(node.example(level).map(|text| format!("```kdl\n{text}\n```")));
    Some(parts.join("\n\n"))
}

fn property(level: Level, node: &str, word: &str) -> Option<String> {
    let node = level.nodes().iter().find(|it| it.name == node)?;
    let property = node.properties.iter().find(|it| it.name == word)?;
    let needed = if property.required { ", required" } else { "" };
    let values = words_of(property.kind);
    Some(format!("**{word}=** of `{}`{needed}\n\n{values}", node.name))
}
