//! The nodes of a text.
//!
//! Names and values are parts of the text wherever it writes them without escapes.

use crate::text::error::Span;
use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};
use std::borrow::Cow;

/// A node with its block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'t> {
    pub(crate) name: Name<'t>,
    pub(crate) entries: Vec<Entry<'t>>,
    /// The nodes of the block, if there is one.
    pub(crate) block: Option<Vec<Self>>,
}

/// The name of a node or a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) span: Span,
}

/// An argument or a property.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry<'t> {
    /// The name of a property; arguments have none.
    pub(crate) name: Option<Name<'t>>,
    pub(crate) value: Literal<'t>,
    pub(crate) span: Span,
    /// The part of the span that is the value.
    pub(crate) value_span: Span,
}

/// A value as it is written, before its rule gives it a meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal<'t> {
    Text(Cow<'t, str>),
    Number(i128),
    Flag(bool),
    Fraction(f64),
    Null,
}

impl Node<'_> {
    /// Returns the nodes of the block.
    pub(crate) fn children(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns true if the node has a property with this name.
    pub(crate) fn has_property(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name.as_ref().is_some_and(|it| it.text == name))
    }

    /// Returns the arguments.
    pub(crate) fn args(&self) -> impl Iterator<Item = &Literal<'_>> {
        self.entries.iter().filter(|entry| entry.name.is_none()).map(|entry| &entry.value)
    }
}

impl Literal<'_> {
    /// Returns the text, if the value is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Returns the nodes with the given name.
pub(crate) fn named<'d>(
    nodes: &'d [Node<'d>],
    name: &'static str,
) -> impl Iterator<Item = &'d Node<'d>> {
    nodes.iter().filter(move |node| node.name.text == name)
}

/// Converts the nodes that the parser of the `kdl` crate has read.
pub(crate) fn nodes_of_kdl(document: &KdlDocument) -> Vec<Node<'static>> {
    document.nodes().iter().map(node_of_kdl).collect()
}

fn node_of_kdl(node: &KdlNode) -> Node<'static> {
    Node {
        name: name_of_kdl(node.name()),
        entries: node.entries().iter().map(entry_of_kdl).collect(),
        block: node.children().map(nodes_of_kdl),
    }
}

fn name_of_kdl(name: &kdl::KdlIdentifier) -> Name<'static> {
    Name { text: Cow::Owned(name.value().to_owned()), span: name.span().into() }
}

fn entry_of_kdl(entry: &KdlEntry) -> Entry<'static> {
    let span: Span = entry.span().into();
    // A property's value is at its end.
    let len = entry.format().map_or(span.len, |format| format.value_repr.len().min(span.len));
    Entry {
        name: entry.name().map(name_of_kdl),
        value: match entry.value() {
            KdlValue::String(text) => Literal::Text(Cow::Owned(text.clone())),
            KdlValue::Integer(number) => Literal::Number(*number),
            KdlValue::Bool(flag) => Literal::Flag(*flag),
            KdlValue::Float(fraction) => Literal::Fraction(*fraction),
            KdlValue::Null => Literal::Null,
        },
        span,
        value_span: Span { offset: span.end() - len, len },
    }
}
