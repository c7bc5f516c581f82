//! The syntax check for the subset of KDL that scenarios use.
//!
//! The check precedes the parser of the `kdl` crate, which recurses once for each block, comment
//! and error, and takes exponential time for some left-out blocks. Hostile text would overflow its
//! stack. Text that passes the check has few of each, and no errors.

use crate::text::error::Span;
use crate::text::grammar::{MAX_BLOCKS, MAX_TEXT};
use crate::text::parse::tokens::{Token, Tokens};
use crate::text::problem::SyntaxError;

/// The parts of the text that may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A node.
    Node,
    /// A node that is left out.
    LeftOutNode,
    /// An argument, a property, a block, or the end of the node.
    Entry,
    /// An argument, a property, a block, the end of the node, or `=`.
    EntryOrEquals,
    /// An argument or a property that is left out.
    LeftOutEntry,
    /// The value of a property.
    Value,
    /// The end of a node, after its block.
    End,
    /// Anything, because the node already has an error.
    Any,
}

/// An open block.
struct Block {
    start: Span,
    left_out: bool,
}

struct Syntax {
    state: State,
    /// Spaces or comments precede the token.
    apart: bool,
    /// The node continues on the next line.
    continued: bool,
    /// The node is left out.
    left_out: bool,
    blocks: Vec<Block>,
    errors: Vec<(Span, SyntaxError)>,
}

/// The syntax errors of a text, with their places.
pub(crate) type SyntaxErrors = Vec<(Span, SyntaxError)>;

/// Returns the tokens of a text, all of which are right, without spaces.
///
/// # Errors
/// Returns all syntax errors.
pub(crate) fn check(text: &str) -> Result<Vec<(Span, Token)>, SyntaxErrors> {
    if text.len() > MAX_TEXT {
        // The place, and not the rest of the text: who shows an error quotes its span.
        let end = text.floor_char_boundary(MAX_TEXT);
        return Err(vec![(Span::between(end, end), SyntaxError::TooLong)]);
    }
    // Few texts have more.
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut syntax = Syntax {
        state: State::Node,
        apart: false,
        continued: false,
        left_out: false,
        blocks: Vec::new(),
        errors: Vec::new(),
    };
    for (span, token) in Tokens::new(text) {
        match token {
            Ok(token) => {
                if token != Token::Space {
                    tokens.push((span, token));
                }
                syntax.token(span, token);
            }
            Err(error) => syntax.fail(span, error),
        }
    }
    let end = Span::between(text.len(), text.len());
    if syntax.continued {
        syntax.fail(end, SyntaxError::Entry);
    }
    syntax.end_node(end);
    let unclosed = syntax.blocks.iter().map(|block| (block.start, SyntaxError::UnclosedBlock));
    syntax.errors.extend(unclosed);
    if syntax.errors.is_empty() { Ok(tokens) } else { Err(syntax.errors) }
}

impl Syntax {
    /// Reports an error. The rest of the node is not checked.
    fn fail(&mut self, span: Span, error: SyntaxError) {
        if self.state != State::Any {
            self.errors.push((span, error));
        }
        self.state = State::Any;
    }

    fn token(&mut self, span: Span, token: Token) {
        match token {
            Token::Space | Token::LineComment | Token::BlockComment => {
                self.apart = true;
                return;
            }
            Token::Newline if self.continued => {
                self.continued = false;
                return;
            }
            _ => {}
        }
        if self.continued {
            self.continued = false;
            self.fail(span, SyntaxError::Entry);
        }
        match token {
            Token::Word | Token::String => self.value(span, true),
            Token::Number | Token::Keyword => self.value(span, false),
            Token::Equals => match self.state {
                State::EntryOrEquals => self.state = State::Value,
                State::Node | State::LeftOutNode => self.fail(span, SyntaxError::NodeName),
                State::End => self.fail(span, SyntaxError::BehindBlock),
                _ => self.fail(span, SyntaxError::Property),
            },
            Token::Open => self.open(span),
            Token::Close => self.close(span),
            Token::Semicolon if self.state == State::Node => {
                self.fail(span, SyntaxError::NodeName);
                self.state = State::Node;
            }
            Token::Semicolon if self.left_out => {
                self.fail(span, SyntaxError::SlashdashSemicolon);
                self.end_node(span);
            }
            Token::Newline | Token::Semicolon => self.end_node(span),
            Token::Slashdash => self.slashdash(span),
            Token::Continuation => match self.state {
                State::Entry | State::EntryOrEquals => self.continued = true,
                _ => self.fail(span, SyntaxError::Entry),
            },
            Token::Space | Token::LineComment | Token::BlockComment => {}
        }
        self.apart = token == Token::Continuation;
    }

    fn value(&mut self, span: Span, is_text: bool) {
        let next = match self.state {
            State::Node | State::LeftOutNode if is_text => State::Entry,
            State::Node | State::LeftOutNode => return self.fail(span, SyntaxError::NodeName),
            State::Entry | State::EntryOrEquals if !self.apart => {
                return self.fail(span, SyntaxError::Space);
            }
            State::Entry | State::EntryOrEquals | State::LeftOutEntry if is_text => {
                State::EntryOrEquals
            }
            State::Entry | State::EntryOrEquals | State::LeftOutEntry | State::Value => {
                State::Entry
            }
            State::End => return self.fail(span, SyntaxError::BehindBlock),
            State::Any => State::Any,
        };
        self.state = next;
    }

    fn slashdash(&mut self, span: Span) {
        if self.left_out || self.blocks.iter().any(|block| block.left_out) {
            return self.fail(span, SyntaxError::NestedSlashdash);
        }
        match self.state {
            State::Node => {
                self.state = State::LeftOutNode;
                self.left_out = true;
            }
            State::Entry | State::EntryOrEquals if self.apart => self.state = State::LeftOutEntry,
            State::Entry | State::EntryOrEquals => self.fail(span, SyntaxError::Space),
            State::End => self.fail(span, SyntaxError::BehindBlock),
            _ => self.fail(span, SyntaxError::Slashdash),
        }
    }

    fn open(&mut self, span: Span) {
        match self.state {
            State::Entry | State::EntryOrEquals | State::Any => {}
            State::Node => self.fail(span, SyntaxError::NodeName),
            State::LeftOutNode | State::LeftOutEntry => self.fail(span, SyntaxError::Slashdash),
            State::Value => self.fail(span, SyntaxError::Property),
            State::End => self.fail(span, SyntaxError::BehindBlock),
        }
        // A single error for all deeper blocks: a hostile text could have very many.
        if self.blocks.len() == MAX_BLOCKS as usize {
            self.errors.push((span, SyntaxError::Nesting));
        }
        self.blocks.push(Block { start: span, left_out: self.left_out });
        self.state = State::Node;
        self.left_out = false;
    }

    fn close(&mut self, span: Span) {
        self.end_node(span);
        if self.blocks.pop().is_none() {
            self.errors.push((span, SyntaxError::StrayBrace));
        }
        self.state = State::End;
    }

    fn end_node(&mut self, span: Span) {
        match self.state {
            State::LeftOutNode | State::LeftOutEntry => self.fail(span, SyntaxError::Slashdash),
            State::Value => self.fail(span, SyntaxError::Property),
            _ => {}
        }
        self.state = State::Node;
        self.left_out = false;
    }
}
