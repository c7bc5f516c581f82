//! The nodes of a text with their extents: what an editor lists, folds and jumps to.

use crate::text::document::{Literal, Node};
use crate::text::error::Span;
use crate::text::parse::{self, syntax, tokens::Token};

/// A node of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineNode {
    /// Name of the node.
    pub node: String,
    /// Its first argument, if that is a text.
    pub title: Option<String>,
    /// The name of the node.
    pub name_span: Span,
    /// The node with its arguments and its block.
    pub span: Span,
    /// The nodes of its block.
    pub children: Vec<Self>,
}

/// Returns the nodes of a text, which need not be a scenario. A text that is not KDL has none.
///
/// ```
/// let text = "function \"f\" {\n    body { work 1; }\n}\n";
/// let nodes = clr_scenario::outline_of(text);
/// assert_eq!((&*nodes[0].node, nodes[0].title.as_deref()), ("function", Some("f")));
/// assert_eq!(nodes[0].span.end(), text.trim_end().len());
/// assert_eq!(nodes[0].children[0].node, "body");
/// ```
#[must_use]
pub fn outline_of(text: &str) -> Vec<OutlineNode> {
    let (Ok(nodes), Ok(tokens)) = (parse::read(text), syntax::check(text)) else {
        return Vec::new();
    };
    let blocks = blocks(&tokens);
    nodes.iter().map(|node| of_node(node, &blocks)).collect()
}

/// Returns the start and the end of each block, in the order of the starts.
fn blocks(tokens: &[(Span, Token)]) -> Vec<(usize, usize)> {
    let (mut blocks, mut open) = (Vec::new(), Vec::new());
    for (span, token) in tokens {
        match token {
            Token::Open => {
                open.push(blocks.len());
                blocks.push((span.offset, span.end()));
            }
            Token::Close => {
                if let Some(block) = open.pop().and_then(|index| blocks.get_mut(index)) {
                    block.1 = span.end();
                }
            }
            _ => {}
        }
    }
    blocks
}

fn of_node(node: &Node<'_>, blocks: &[(usize, usize)]) -> OutlineNode {
    let start = node.name.span.offset;
    let entries = node.entries.iter().map(|entry| entry.span.end());
    let mut end = entries.fold(node.name.span.end(), usize::max);
    if node.block.is_some() {
        let index = blocks.partition_point(|(start, _)| *start < end);
        end = blocks.get(index).map_or(end, |(_, end)| *end);
    }
    OutlineNode {
        node: node.name.text.to_string(),
        title: node.args().next().and_then(Literal::text).map(str::to_owned),
        name_span: node.name.span,
        span: Span::between(start, end),
        children: node.children().iter().map(|child| of_node(child, blocks)).collect(),
    }
}
