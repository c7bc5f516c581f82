//! Layout of texts written by people: comments, numbers and order are kept.

use crate::text::error::ScenarioError;
use crate::text::parse::syntax;
use crate::text::parse::tokens::{Token, Tokens};

/// Formats a text with one node per line, four spaces for each enclosing block, and one space
/// between the parts of a node. Consecutive blank lines are reduced to one.
///
/// # Errors
/// Returns [`ScenarioError`] if the text is not KDL. It need not be a scenario.
pub fn format_text(text: &str) -> Result<String, ScenarioError> {
    let tokens = syntax::check(text).map_err(|errors| {
        let problems = errors.into_iter().map(|(span, error)| (span, error.into()));
        ScenarioError::new(text, problems.collect())
    })?;
    let mut layout = Layout::default();
    for (span, token) in tokens {
        if let Some(part) = text.get(span.offset..span.end()) {
            layout.token(token, part);
        }
    }
    Ok(layout.finish())
}

/// Returns the number of comments in a text.
#[must_use]
pub fn comment_count(text: &str) -> usize {
    let is_comment = |token| matches!(token, Ok(Token::LineComment | Token::BlockComment));
    Tokens::new(text).filter(|(_, token)| is_comment(*token)).count()
}

/// The state of the current line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    /// The line is empty.
    #[default]
    Empty,
    /// The line has at least one part.
    Started,
    /// The line is complete, unless a comment follows.
    Over,
}

#[derive(Default)]
struct Layout {
    out: String,
    depth: usize,
    line: Line,
    /// The next part follows without a space.
    joined: bool,
    continued: bool,
    /// Number of line ends since the last part.
    newlines: u32,
}

impl Layout {
    fn token(&mut self, token: Token, part: &str) {
        match token {
            Token::Space => {}
            Token::Newline if self.continued => {
                self.continued = false;
                self.out.push('\n');
                self.indent(self.depth + 1);
                self.joined = true;
            }
            Token::Newline => {
                self.end_line();
                self.newlines += 1;
            }
            Token::Semicolon => self.line = Line::Over,
            Token::Open => {
                self.part(part);
                self.depth += 1;
                self.line = Line::Over;
            }
            Token::Close => {
                self.end_line();
                self.depth = self.depth.saturating_sub(1);
                self.newlines = 0;
                self.part(part);
            }
            Token::Equals => {
                self.out.push('=');
                self.joined = true;
            }
            Token::Slashdash => {
                self.part(part);
                self.joined = true;
            }
            Token::LineComment => {
                if self.line == Line::Over {
                    self.line = Line::Started;
                }
                self.part(part.trim_end());
            }
            Token::Continuation => {
                self.part(part);
                self.continued = true;
            }
            Token::BlockComment | Token::Word | Token::String | Token::Number | Token::Keyword => {
                self.part(part);
            }
        }
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.out.push_str("    ");
        }
    }

    fn part(&mut self, part: &str) {
        if self.line == Line::Over {
            self.end_line();
        }
        if self.line == Line::Empty {
            if self.newlines > 1 && !self.out.is_empty() && !self.out.ends_with("{\n") {
                self.out.push('\n');
            }
            self.indent(self.depth);
        } else if !self.joined {
            self.out.push(' ');
        }
        self.out.push_str(part);
        self.line = Line::Started;
        self.joined = false;
        self.newlines = 0;
    }

    fn end_line(&mut self) {
        if self.line != Line::Empty {
            self.out.push('\n');
        }
        self.line = Line::Empty;
        self.joined = false;
    }

    fn finish(mut self) -> String {
        self.end_line();
        self.out
    }
}
