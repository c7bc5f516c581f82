//! Scanning of a text that is being written: it need not be KDL yet.

/// The blocks and words around a place in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Around<'t> {
    /// Names of the nodes whose blocks the place is in, outermost first.
    pub(super) blocks: Vec<&'t str>,
    /// Words of the statement before the place; the first is the node's name.
    pub(super) words: Vec<&'t str>,
    /// The word that the place ends, without its quotes; empty at the start of one.
    pub(super) begun: &'t str,
    /// The place is in a comment.
    pub(super) in_comment: bool,
}

/// Returns the blocks and words around the byte offset `at` of a text.
pub(super) fn around(text: &str, at: usize) -> Around<'_> {
    let text = text.get(..at).unwrap_or(text);
    let mut found = Around::default();
    // Words of the statements around, innermost last.
    let mut outer: Vec<Vec<&str>> = Vec::new();
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let (part, after) = part(rest, char);
        found.in_comment = part.is_comment && after.is_empty() && !part.is_closed;
        found.begun = "";
        if let Some(word) = part.word {
            if after.is_empty() && !part.is_closed {
                found.begun = word;
            } else {
                found.words.push(word);
            }
        }
        match char {
            _ if part.is_comment || part.word.is_some() => {}
            '{' => outer.push(std::mem::take(&mut found.words)),
            '}' => {
                outer.pop();
                found.words.clear();
            }
            ';' | '\n' => found.words.clear(),
            _ => {}
        }
        rest = after;
    }
    found.blocks = outer.iter().filter_map(|words| words.first().copied()).collect();
    found
}

/// A part of a text: a word, a comment, or a sign.
struct Part<'t> {
    word: Option<&'t str>,
    is_comment: bool,
    /// The part has its end: a quote, or the end of a comment. That of a plain word is what follows.
    is_closed: bool,
}

/// Splits off the first part of a text that begins with `char`.
fn part(text: &str, char: char) -> (Part<'_>, &str) {
    let split = |at: usize| text.split_at(at.min(text.len()));
    let comment = |end: Option<usize>| {
        let (_, after) = split(end.unwrap_or(text.len()));
        (Part { word: None, is_comment: true, is_closed: end.is_some() }, after)
    };
    if text.starts_with("//") {
        return comment(text.find('\n'));
    }
    if text.starts_with("/*") {
        return comment(text.find("*/").map(|at| at + 2));
    }
    if char == '"' {
        let inside = text.get(1..).unwrap_or_default();
        let mut escaped = false;
        let end = inside.char_indices().find(|(_, char)| {
            let ends = *char == '"' && !escaped;
            escaped = *char == '\\' && !escaped;
            ends
        });
        let (word, after) = match end {
            Some((at, _)) => (inside.get(..at), inside.get(at + 1..)),
            None => (Some(inside), None),
        };
        let part = Part { word, is_comment: false, is_closed: end.is_some() };
        return (part, after.unwrap_or_default());
    }
    let is_word = |char: char| !char.is_whitespace() && !"{};\"".contains(char);
    if is_word(char) {
        let mut end = text.find(|char| !is_word(char)).unwrap_or(text.len());
        // A property's value in quotes belongs to its word.
        let is_quoted = text.get(..end).is_some_and(|word| word.ends_with('='));
        if is_quoted && text.get(end..).is_some_and(|rest| rest.starts_with('"')) {
            let value = text.get(end + 1..).unwrap_or_default();
            let close = value.find('"');
            let (word_end, closed) = match close {
                Some(at) => (end + at + 2, true),
                None => (text.len(), false),
            };
            end = word_end;
            let (word, after) = split(end);
            return (Part { word: Some(word), is_comment: false, is_closed: closed }, after);
        }
        let (word, after) = split(end);
        return (Part { word: Some(word), is_comment: false, is_closed: false }, after);
    }
    let (_, after) = split(char.len_utf8());
    (Part { word: None, is_comment: false, is_closed: true }, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> (Vec<&str>, Vec<&str>, &str) {
        let Around { blocks, words, begun, .. } = around(text, text.len());
        (blocks, words, begun)
    }

    #[test]
    fn blocks_and_words_are_found() {
        assert_eq!(at(""), (vec![], vec![], ""));
        assert_eq!(at("st"), (vec![], vec![], "st"));
        assert_eq!(at("stop at=\"A B\" {\n  snap"), (vec!["stop"], vec![], "snap"));
        assert_eq!(at("stop { snapshot; } func"), (vec![], vec![], "func"));
        assert_eq!(
            at("function \"A\" kind=\"jit\" { body { call \"B"),
            (vec!["function", "body"], vec!["call"], "B")
        );
        assert_eq!(at("stop at=\"Fo"), (vec![], vec!["stop"], "at=\"Fo"));
        assert_eq!(at("stop at=\"Foo\" "), (vec![], vec!["stop", "at=\"Foo\""], ""));
        assert_eq!(at("a { b { c } } d "), (vec![], vec!["d"], ""));
    }

    #[test]
    fn comments_and_strings_hide_braces() {
        assert_eq!(at("// {\nx \"{\" /* { */ "), (vec![], vec!["x", "{"], ""));
        assert!(around("x // no", 7).in_comment);
        assert!(around("x /* no", 7).in_comment);
        assert!(!around("x /* no */ ", 11).in_comment);
        assert_eq!(at("x \"a\\\"b\" "), (vec![], vec!["x", "a\\\"b"], ""));
        assert_eq!(at("} } }"), (vec![], vec![], ""));
    }
}
