//! Symbols: what an editor lists of a text.

use super::document::Document;
use clr_scenario::{OutlineNode, outline_of};
use lsp_types::{DocumentSymbol, SymbolKind};

/// Nodes without a block that are listed in the block of another one: they define a name, or say what is expected.
const LISTED: [&str; 6] = ["lock", "event", "thread", "type", "method", "result"];

/// Returns the nodes of a text, with those in their blocks that have blocks of their own, or names.
pub(super) fn symbols(document: &Document) -> Vec<DocumentSymbol> {
    outline_of(&document.text).iter().map(|node| symbol(document, node)).collect()
}

fn symbol(document: &Document, node: &OutlineNode) -> DocumentSymbol {
    let is_listed =
        |child: &&OutlineNode| !child.children.is_empty() || LISTED.contains(&child.node.as_str());
    let children: Vec<_> =
        node.children.iter().filter(is_listed).map(|child| symbol(document, child)).collect();
    // A symbol must have a name.
    let title = node.title.clone().filter(|title| !title.trim().is_empty());
    let (name, detail) = match title {
        Some(title) => (title, Some(node.node.clone())),
        None => (node.node.clone(), None),
    };
    #[expect(deprecated, reason = "the protocol's type has this field")]
    DocumentSymbol {
        name,
        detail,
        kind: kind(&node.node),
        tags: None,
        deprecated: None,
        range: document.range(node.span),
        selection_range: document.range(node.name_span),
        children: (!children.is_empty()).then_some(children),
    }
}

fn kind(node: &str) -> SymbolKind {
    match node {
        "module" => SymbolKind::MODULE,
        "type" => SymbolKind::CLASS,
        "method" => SymbolKind::METHOD,
        "function" | "body" => SymbolKind::FUNCTION,
        "buffer" => SymbolKind::VARIABLE,
        "lock" => SymbolKind::KEY,
        "event" | "stop" | "on" => SymbolKind::EVENT,
        "expect" | "result" => SymbolKind::BOOLEAN,
        "shows" | "tag" => SymbolKind::STRING,
        _ => SymbolKind::OBJECT,
    }
}
