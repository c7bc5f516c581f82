//! Documents that are made from tokens.
//!
//! The parser of the `kdl` crate takes most of the time of reading a text. Its input has passed the syntax check, after
//! which the tokens of ordinary text leave nothing to decide; what is rare is left to that parser.

use super::tokens::Token;
use crate::error::Span;
use kdl::{KdlDocument, KdlEntry, KdlEntryFormat, KdlIdentifier, KdlNode, KdlValue};

/// Makes the document of a text without syntax errors from its tokens, with the names, values, children and spans that the `kdl` crate
/// finds. Returns `None` for a text with something rare: a part that is left out, a line that continues, a raw string,
/// or a number with an underscore, a fraction or another base than 10 and 16.
pub(super) fn document(text: &str, tokens: &[(Span, Token)]) -> Option<KdlDocument> {
    let mut blocks = vec![Block::default()];
    for &(span, token) in tokens {
        let block = blocks.last_mut()?;
        match token {
            Token::Space | Token::BlockComment => {}
            Token::Newline | Token::LineComment | Token::Semicolon => block.end_node(span.offset),
            Token::Open => blocks.push(Block::default()),
            Token::Close => {
                block.end_node(span.offset);
                let children = blocks.pop()?.into_document();
                blocks.last_mut()?.node.as_mut()?.set_children(children);
            }
            Token::Equals => {
                let key = block.node.as_mut()?.entries_mut().pop()?;
                let span = key.span().into();
                block.key = Some(identifier(key.value().as_string()?, span));
            }
            Token::Word | Token::String | Token::Number | Token::Keyword => {
                let raw = text.get(span.offset..span.end())?;
                block.value(span, raw, value(token, raw)?)?;
            }
            Token::Slashdash | Token::Continuation => return None,
        }
    }
    let mut block = blocks.pop().filter(|_| blocks.is_empty())?;
    block.end_node(text.len());
    Some(block.into_document())
}

/// A block that is being read.
#[derive(Default)]
struct Block {
    nodes: Vec<KdlNode>,
    /// The node that is being read.
    node: Option<KdlNode>,
    /// The name of a property whose value follows.
    key: Option<KdlIdentifier>,
}

impl Block {
    fn value(&mut self, span: Span, raw: &str, value: KdlValue) -> Option<()> {
        let Some(node) = &mut self.node else {
            let mut node = KdlNode::new(identifier(value.as_string()?, span));
            node.set_span(span);
            self.node = Some(node);
            return Some(());
        };
        let mut entry = KdlEntry::new(value);
        entry.set_span(span);
        if let Some(key) = self.key.take() {
            entry.set_span(Span::between(key.span().offset(), span.end()));
            entry.set_name(Some(key));
            // An argument's value is the whole argument.
            entry.set_format(KdlEntryFormat { value_repr: raw.to_owned(), ..Default::default() });
        }
        node.entries_mut().push(entry);
        Some(())
    }

    /// Ends the node, if there is one, before the byte at this offset.
    fn end_node(&mut self, end: usize) {
        if let Some(mut node) = self.node.take() {
            node.set_span(Span::between(node.span().offset(), end));
            self.nodes.push(node);
        }
    }

    fn into_document(self) -> KdlDocument {
        let mut document = KdlDocument::new();
        *document.nodes_mut() = self.nodes;
        document
    }
}

fn identifier(name: &str, span: Span) -> KdlIdentifier {
    let mut identifier = KdlIdentifier::from(name);
    identifier.set_span(span);
    identifier
}

fn value(token: Token, raw: &str) -> Option<KdlValue> {
    match token {
        Token::Word => Some(raw.into()),
        Token::String => string(raw).map(KdlValue::from),
        Token::Number => number(raw).map(KdlValue::from),
        _ => Some((raw == "#true").into()),
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
fn string(raw: &str) -> Option<String> {
    let mut rest = raw.strip_prefix('"')?.strip_suffix('"')?;
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
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::super::syntax;
    use super::*;

    /// Returns all that the crate reads of nodes.
    fn shown(nodes: &[KdlNode]) -> String {
        let entry = |entry: &KdlEntry| {
            let name = entry.name().map(|name| (name.value().to_owned(), name.span()));
            let len = entry.format().map_or(entry.span().len(), |it| it.value_repr.len());
            format!("{name:?} {:?} {:?} {len}", entry.value(), entry.span())
        };
        let node = |node: &KdlNode| {
            let entries: Vec<_> = node.entries().iter().map(entry).collect();
            let children = node.children().map(|children| shown(children.nodes()));
            let (name, spans) = (node.name().value(), (node.name().span(), node.span()));
            format!("{name} {spans:?} {entries:?} {children:?}\n")
        };
        nodes.iter().map(node).collect()
    }

    /// Compares the documents of a text. Returns false if it has errors, or is left to the parser.
    fn compare(text: &str) -> bool {
        let document = syntax::check(text).ok().and_then(|tokens| document(text, &tokens));
        let Some(document) = document else { return false };
        let other =
            KdlDocument::parse_v2(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        assert_eq!(shown(document.nodes()), shown(other.nodes()), "{text:?}");
        true
    }

    #[test]
    fn documents_are_those_of_the_parser() {
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
        for text in [include_str!("../tests/everything.kdl"), include_str!("../tests/stack.kdl")] {
            compare(text);
        }
    }
}
