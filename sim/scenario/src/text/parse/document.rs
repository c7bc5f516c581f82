//! Nodes that are made from tokens.
//!
//! The parser of the `kdl` crate takes most of the time of reading a text. Its input has passed the syntax check, after
//! which the tokens of ordinary text leave nothing to decide; what is rare is left to that parser.

use crate::text::document::{Entry, Literal, Name, Node};
use crate::text::error::Span;
use crate::text::parse::tokens::Token;
use std::borrow::Cow;

/// Makes the nodes of a text without syntax errors from its tokens, with the names, values, blocks and spans that the `kdl` crate
/// finds. Returns `None` for a text with something rare: a part that is left out, a line that continues, a raw string,
/// or a number with an underscore, a fraction or another base than 10 and 16.
pub(super) fn of_tokens<'t>(text: &'t str, tokens: &[(Span, Token)]) -> Option<Vec<Node<'t>>> {
    let mut blocks = vec![Block::default()];
    for &(span, token) in tokens {
        let block = blocks.last_mut()?;
        match token {
            Token::Space | Token::BlockComment => {}
            Token::Newline | Token::LineComment | Token::Semicolon => block.end_node(),
            Token::Open => blocks.push(Block::default()),
            Token::Close => {
                block.end_node();
                let nodes = blocks.pop()?.nodes;
                blocks.last_mut()?.node.as_mut()?.block = Some(nodes);
            }
            Token::Equals => {
                let Entry { value: Literal::Text(text), span, .. } =
                    block.node.as_mut()?.entries.pop()?
                else {
                    return None;
                };
                block.key = Some(Name { text, span });
            }
            Token::Word | Token::String | Token::Number | Token::Keyword => {
                let raw = text.get(span.offset..span.end())?;
                block.value(span, value(token, raw)?)?;
            }
            Token::Slashdash | Token::Continuation => return None,
        }
    }
    let mut block = blocks.pop().filter(|_| blocks.is_empty())?;
    block.end_node();
    Some(block.nodes)
}

/// A block that is being read.
#[derive(Default)]
struct Block<'t> {
    nodes: Vec<Node<'t>>,
    /// The node that is being read.
    node: Option<Node<'t>>,
    /// The name of a property whose value follows.
    key: Option<Name<'t>>,
}

impl<'t> Block<'t> {
    fn value(&mut self, value_span: Span, value: Literal<'t>) -> Option<()> {
        if let Some(node) = &mut self.node {
            let name = self.key.take();
            let start = name.as_ref().map_or(value_span.offset, |name| name.span.offset);
            let span = Span::between(start, value_span.end());
            node.entries.push(Entry { name, value, span, value_span });
        } else {
            let Literal::Text(text) = value else { return None };
            let name = Name { text, span: value_span };
            self.node = Some(Node { name, entries: Vec::new(), block: None });
        }
        Some(())
    }

    /// Ends the node, if there is one.
    fn end_node(&mut self) {
        self.nodes.extend(self.node.take());
    }
}

fn value(token: Token, raw: &str) -> Option<Literal<'_>> {
    match token {
        Token::Word => Some(Literal::Text(Cow::Borrowed(raw))),
        Token::String => string(raw).map(Literal::Text),
        Token::Number => number(raw).map(Literal::Number),
        _ => Some(Literal::Flag(raw == "#true")),
    }
}

fn number(raw: &str) -> Option<i128> {
    let unsigned = raw.strip_prefix(['+', '-']).unwrap_or(raw);
    let number = match unsigned.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok()?,
        None => unsigned.parse().ok()?,
    };
    Some(if raw.starts_with('-') { -number } else { number })
}

/// Returns the content of a string in quotes.
fn string(raw: &str) -> Option<Cow<'_, str>> {
    let mut rest = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !rest.contains('\\') {
        return Some(Cow::Borrowed(rest));
    }
    let mut content = String::with_capacity(rest.len());
    while let Some((before, escape)) = rest.split_once('\\') {
        content.push_str(before);
        let mut characters = escape.chars();
        content.push(match characters.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' => '\u{8}',
            'f' => '\u{C}',
            's' => ' ',
            'u' => {
                let (digits, behind) = escape.strip_prefix("u{")?.split_once('}')?;
                characters = behind.chars();
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            same => same,
        });
        rest = characters.as_str();
    }
    content.push_str(rest);
    Some(Cow::Owned(content))
}

#[cfg(test)]
mod tests {
    use super::super::syntax;
    use super::*;
    use crate::text::document::nodes_of_kdl;
    use kdl::KdlDocument;

    /// Compares the nodes of a text. Returns false if it has errors, or is left to the parser.
    fn compare(text: &str) -> bool {
        let nodes = syntax::check(text).ok().and_then(|tokens| of_tokens(text, &tokens));
        let Some(nodes) = nodes else { return false };
        let other =
            KdlDocument::parse_v2(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        assert_eq!(nodes, nodes_of_kdl(&other), "{text:?}");
        true
    }

    #[test]
    fn nodes_are_those_of_the_parser() {
        const PARTS: [&str; 40] = [
            "a",
            "b-c",
            "+",
            "-x",
            ".y",
            "é",
            " ",
            "  ",
            "\t",
            "\n",
            "\n",
            "\r\n",
            ";",
            "{",
            "}",
            "{",
            "}",
            "=",
            "=",
            "\"q\"",
            "\"\"",
            r#""\"\\\n\r\t\b\f\s\u{7F}\u{1F600}é""#,
            "1",
            "-20",
            "+3",
            "007",
            "0x1F",
            "-0xa",
            "#true",
            "#false",
            "// c\n",
            "// é",
            "/* c */",
            "/* /* c */\n */",
            "a b=1",
            "a \"b\" 2 {\n",
            "x=y",
            "1_000",
            "0b1",
            "\\\n",
        ];
        let mut seed = 1_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let mut compared = 0;
        for _ in 0..60_000 {
            let count = random(14);
            let mut text: String = (0..count).map(|_| PARTS[random(PARTS.len())]).collect();
            let open = text.matches('{').count().saturating_sub(text.matches('}').count());
            text.push_str(&"}".repeat(open));
            compared += u32::from(compare(&text));
        }
        assert!(compared > 2000, "{compared} texts");
        for text in
            [include_str!("../../tests/everything.kdl"), include_str!("../../tests/stack.kdl")]
        {
            compare(text);
        }
    }
}
