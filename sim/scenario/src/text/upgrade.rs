//! Upgrades of texts: words of the format that have other names now.

use crate::text::problem::renamed;
use crate::{Scenario, Span};

/// Maximum number of times that a text is read again: problems of one kind can hide others.
const ROUNDS: usize = 8;

/// A word that an upgrade has renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenamedWord {
    /// Line of the word, from 1.
    pub line: u32,
    /// The word before.
    pub before: &'static str,
    /// The word now.
    pub now: &'static str,
}

/// Rewrites a text that was written for an earlier version of the format, and returns it with the words that were
/// renamed. All other parts of the text stay as they are, also those that are wrong.
///
/// ```
/// let old = "function \"f\"\nstop at=\"f\" { expect rules=\"windows\" { frame \"f\"; }; }\n";
/// let (new, renamed) = clr_scenario::upgrade_text(old);
/// assert_eq!(new, old.replace("windows", "coreclr"));
/// assert_eq!((renamed.len(), renamed[0].line), (1, 2));
/// ```
#[must_use]
pub fn upgrade_text(text: &str) -> (String, Vec<RenamedWord>) {
    let (mut text, mut all) = (text.to_owned(), Vec::new());
    for _ in 0..ROUNDS {
        let Err(error) = Scenario::parse(&text) else { break };
        let mut words: Vec<(Span, RenamedWord)> = Vec::new();
        for problem in error.problems() {
            if let Some((before, now)) = renamed(&problem.kind) {
                let line = problem.position.line;
                words.push((problem.span, RenamedWord { line, before, now }));
            }
        }
        words.sort_by_key(|(span, _)| span.offset);
        words.dedup_by_key(|(span, _)| span.offset);
        let count = all.len();
        // From the end, so that the spans before stay right.
        for (span, word) in words.iter().rev() {
            let Some(part) = text.get(span.offset..span.end()) else { continue };
            let new = part.replacen(word.before, word.now, 1);
            text.replace_range(span.offset..span.end(), &new);
            all.push(*word);
        }
        if all.len() == count {
            break;
        }
    }
    all.sort_by_key(|word| word.line);
    (text, all)
}
