//! The tokens of a text.

use crate::text::error::Span;
use crate::text::grammar::MAX_BLOCKS;
use crate::text::problem::SyntaxError;

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// Spaces and tabs.
    Space,
    /// The end of a line.
    Newline,
    /// `//` up to the end of the line, which is not included.
    LineComment,
    /// `/*` to `*/`.
    BlockComment,
    /// A string without quotes.
    Word,
    /// A string in quotes, on one line.
    String,
    /// A number without exponent.
    Number,
    /// `#true` or `#false`.
    Keyword,
    /// `=`.
    Equals,
    /// `{`.
    Open,
    /// `}`.
    Close,
    /// `;`.
    Semicolon,
    /// `/-`, which leaves out the following part.
    Slashdash,
    /// `\`, which makes the following line end count as a space.
    Continuation,
}

type Item = (Span, Result<Token, SyntaxError>);

/// An iterator over the tokens of a text. An invalid part is one error, and the iteration continues
/// after it.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(crate) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_while(&mut self, accepted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !accepted(c)).unwrap_or(rest.len());
    }

    fn word(&mut self) -> Result<Token, SyntaxError> {
        let start = self.at;
        // Nearly all words consist of these characters.
        self.at += self.rest().bytes().take_while(|byte| is_plain_word(*byte)).count();
        self.skip_while(is_word);
        let word = &self.text[start..self.at];
        let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
        let mut first = unsigned.chars();
        match (first.next(), first.next()) {
            (Some('0'..='9'), _) if is_number(unsigned) => Ok(Token::Number),
            (Some('0'..='9'), _) | (Some('.'), Some('0'..='9')) => Err(SyntaxError::Number),
            _ => match word {
                "true" | "false" | "null" | "inf" | "-inf" | "nan" => {
                    Err(SyntaxError::ReservedWord)
                }
                _ => Ok(Token::Word),
            },
        }
    }

    fn keyword_or_raw_string(&mut self) -> Result<Token, SyntaxError> {
        let start = self.at;
        self.skip_while(|c| c == '#');
        let hashes = &self.text[start..self.at];
        if self.rest().starts_with('"') {
            return self.raw_string(hashes);
        }
        self.skip_while(is_word);
        match &self.text[start..self.at] {
            "#true" | "#false" => Ok(Token::Keyword),
            _ => Err(SyntaxError::Keyword),
        }
    }

    fn raw_string(&mut self, hashes: &str) -> Result<Token, SyntaxError> {
        let several_lines = self.rest().starts_with(r#"""""#);
        self.at += 1;
        let line = self.rest().find('\n').map_or(self.rest(), |end| &self.rest()[..end]);
        let end = line.match_indices('"').find(|(at, _)| line[at + 1..].starts_with(hashes));
        match end {
            Some((end, _)) if !several_lines => {
                let bad = line[..end].chars().find(|c| is_disallowed(*c));
                self.at += end + 1 + hashes.len();
                bad.map_or(Ok(Token::String), |c| Err(SyntaxError::Character(c)))
            }
            _ => {
                self.at += line.len();
                Err(SyntaxError::UnclosedString)
            }
        }
    }

    fn string(&mut self) -> Result<Token, SyntaxError> {
        let several_lines = self.rest().starts_with(r#"""""#);
        self.at += 1;
        // Nearly all strings are of these characters.
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        let plain = self.rest().bytes().take_while(is_plain).count();
        if !several_lines && self.rest().as_bytes().get(plain) == Some(&b'"') {
            self.at += plain + 1;
            return Ok(Token::String);
        }
        let mut result = Ok(Token::String);
        let mut characters = self.rest().char_indices();
        while let Some((offset, c)) = characters.next() {
            match c {
                '"' if several_lines => {}
                '"' => {
                    self.at += offset + 1;
                    return result;
                }
                '\n' => {
                    self.at += offset;
                    return Err(SyntaxError::UnclosedString);
                }
                '\\' => match escape(characters.as_str()) {
                    Some(len) => {
                        // Escapes consist of ASCII characters.
                        for _ in 0..len {
                            characters.next();
                        }
                    }
                    None => result = Err(SyntaxError::Escape),
                },
                c if is_disallowed(c) => result = Err(SyntaxError::Character(c)),
                _ => {}
            }
        }
        self.at = self.text.len();
        Err(SyntaxError::UnclosedString)
    }

    fn line_comment(&mut self) -> Result<Token, SyntaxError> {
        let rest = self.rest();
        let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
        let line = line.strip_suffix('\r').unwrap_or(line);
        self.at += line.len();
        let bad = line.chars().find(|c| is_disallowed(*c));
        bad.map_or(Ok(Token::LineComment), |c| Err(SyntaxError::Character(c)))
    }

    fn block_comment(&mut self) -> Result<Token, SyntaxError> {
        let mut depth = 0_u32;
        let mut result = Ok(Token::BlockComment);
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                if depth > MAX_BLOCKS {
                    result = Err(SyntaxError::Nesting);
                }
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return result;
                }
            } else if let Some(c) = rest.chars().next() {
                if is_disallowed(c) && !rest.starts_with("\r\n") {
                    result = Err(SyntaxError::Character(c));
                }
                self.at += c.len_utf8();
            } else {
                return Err(SyntaxError::UnclosedComment);
            }
        }
    }

    /// Splits off a token that its first characters identify.
    fn punctuation(&mut self) -> Option<Token> {
        let rest = self.rest();
        let (len, token) = match rest.as_bytes() {
            [b'\n', ..] => (1, Token::Newline),
            [b'\r', b'\n', ..] => (2, Token::Newline),
            [b'=', ..] => (1, Token::Equals),
            [b'{', ..] => (1, Token::Open),
            [b'}', ..] => (1, Token::Close),
            [b';', ..] => (1, Token::Semicolon),
            [b'\\', ..] => (1, Token::Continuation),
            [b'/', b'-', ..] => (2, Token::Slashdash),
            _ => return None,
        };
        self.at += len;
        Some(token)
    }
}

impl Iterator for Tokens<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.at == 0 && self.text.starts_with('\u{FEFF}') {
            self.at = '\u{FEFF}'.len_utf8();
        }
        let start = self.at;
        let rest = self.rest();
        let c = rest.chars().next()?;
        if let Some(token) = self.punctuation() {
            return Some((Span::between(start, self.at), Ok(token)));
        }
        let token = match c {
            ' ' | '\t' => {
                self.skip_while(|c| matches!(c, ' ' | '\t'));
                Ok(Token::Space)
            }
            '"' => self.string(),
            '#' => self.keyword_or_raw_string(),
            '/' if rest.starts_with("//") => self.line_comment(),
            '/' if rest.starts_with("/*") => self.block_comment(),
            c if is_word(c) => self.word(),
            c => {
                self.at += c.len_utf8();
                Err(SyntaxError::Character(c))
            }
        };
        Some((Span::between(start, self.at), token))
    }
}

/// Returns true if the character is not allowed anywhere: control characters, marks that change the
/// direction of text, and characters that end a line in KDL but not in editors.
fn is_disallowed(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{B}'..='\u{1F}' | '\u{7F}' | '\u{85}' | '\u{200E}' | '\u{200F}'
        | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

const fn is_plain_word(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.')
}

fn is_word(c: char) -> bool {
    if u8::try_from(c).is_ok_and(is_plain_word) {
        return true;
    }
    let punctuation =
        matches!(c, '{' | '}' | ';' | '=' | '"' | '\\' | '/' | '(' | ')' | '[' | ']' | '#');
    !(punctuation || c.is_whitespace() || is_disallowed(c))
}

/// Maximum length of a number: it fits in 128 bits in any base.
const NUMBER_LIMIT: usize = 28;

fn is_number(unsigned: &str) -> bool {
    let digits = |text: &str, radix| {
        let mut digits = text.chars();
        digits.next().is_some_and(|c| c.is_digit(radix))
            && digits.all(|c| c == '_' || c.is_digit(radix))
    };
    let of_base = |prefix, radix| {
        unsigned.strip_prefix(prefix).is_some_and(|unprefixed| digits(unprefixed, radix))
    };
    let decimal = match unsigned.split_once('.') {
        Some((whole, fraction)) => digits(whole, 10) && digits(fraction, 10),
        None => digits(unsigned, 10),
    };
    unsigned.len() <= NUMBER_LIMIT
        && (decimal || of_base("0x", 16) || of_base("0o", 8) || of_base("0b", 2))
}

/// Returns the length of an escape without its backslash.
fn escape(text: &str) -> Option<usize> {
    match text.as_bytes().first()? {
        b'\\' | b'"' | b'n' | b'r' | b't' | b'b' | b'f' | b's' => Some(1),
        b'u' => {
            let digits = text.strip_prefix("u{")?.split_once('}')?.0;
            let hexadecimal = digits.bytes().all(|c| c.is_ascii_hexdigit());
            if !hexadecimal || !(1..=6).contains(&digits.len()) {
                return None;
            }
            char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            Some("u{}".len() + digits.len())
        }
        _ => None,
    }
}
