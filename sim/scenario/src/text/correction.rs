//! Corrections: the changes of a text that a problem itself suggests.

use crate::text::codec::quoted;
use crate::text::error::{Problem, Span};
use crate::text::grammar::{Kind, all_generations};
use crate::text::hresult::names;
use crate::text::problem::{ProblemKind, renamed};
use crate::text::suggest::{function_of, nearest};

/// Maximum number of words of which each is offered.
const MOST_WORDS: usize = 8;

/// A change of a text that removes a problem, if it is what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The change in a few words.
    pub title: String,
    /// The part of the text that goes.
    pub span: Span,
    /// The text in its place.
    pub text: String,
    /// The change is the likely one: a similar name, or the new name of a word.
    pub is_likely: bool,
}

impl Problem {
    /// Returns the corrections that the problem suggests, the likely ones first. They are about this text alone: applied to
    /// another one they are wrong.
    ///
    /// ```
    /// let text = "function \"main\"\nstop at=\"mian\"\n";
    /// let error = clr_scenario::Scenario::parse(text).unwrap_err();
    /// let correction = &error.problems()[0].corrections()[0];
    /// assert_eq!((&*correction.title, &*correction.text), ("change to `main`", "\"main\""));
    /// ```
    #[must_use]
    pub fn corrections(&self) -> Vec<Correction> {
        if let Some((before, now)) = renamed(&self.kind) {
            return vec![self.replace(before, now)];
        }
        match &self.kind {
            ProblemKind::DuplicateProperty(name) => {
                let margin =
                    self.before().len() - self.before().trim_end_matches([' ', '\t']).len();
                let start = self.span.offset - margin;
                let span = Span::between(start, self.span.end());
                vec![change(format!("remove this `{name}=`"), span, String::new(), true)]
            }
            ProblemKind::MissingProperty { property, expected: Kind::Word(words), .. }
                if words.len() <= MOST_WORDS =>
            {
                let end = Span { offset: self.span.end(), len: 0 };
                let add = |word: &&str| {
                    let text = format!("{property}={}", quoted(word));
                    change(format!("add `{text}`"), end, format!(" {text}"), words.len() == 1)
                };
                words.iter().map(add).collect()
            }
            kind => {
                let Some((found, allowed)) = candidates(kind) else { return Vec::new() };
                nearest(found, &allowed).map(|name| self.replace(found, name)).into_iter().collect()
            }
        }
    }

    /// Returns the change of a word, in quotes where it was.
    fn replace(&self, before: &str, now: &str) -> Correction {
        let old = self.text();
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.:+".contains(c);
        let text = match old.find(before) {
            Some(_) if old.starts_with(['"', '#']) => old.replacen(before, now, 1),
            // A plain word stays one; one that is written with escapes does not.
            _ if old == before && now.chars().all(is_word) => now.to_owned(),
            _ => quoted(now),
        };
        change(format!("change to `{now}`"), self.span, text, true)
    }
}

fn change(title: String, span: Span, text: String, is_likely: bool) -> Correction {
    Correction { title, span, text, is_likely }
}

/// Returns a wrong name, and those that may be in its place; `None` for a problem of another kind.
fn candidates(problem: &ProblemKind) -> Option<(&str, Vec<&str>)> {
    let (found, allowed): (&str, &[String]) = match problem {
        ProblemKind::UnknownNode { found, allowed, .. }
        | ProblemKind::UnknownProperty { found, allowed, .. } => (found, allowed),
        ProblemKind::UnknownFunction { found, allowed }
        | ProblemKind::UnknownThread { found, allowed }
        | ProblemKind::UnknownBuffer { found, allowed }
        | ProblemKind::UnknownOfProfiler { found, allowed, .. } => (found, allowed),
        ProblemKind::NotOnThisStack { found, allowed, .. } => (function_of(found), allowed),
        ProblemKind::UnknownWord { found, expected } => {
            let words = match expected {
                Kind::Word(words) => words.to_vec(),
                Kind::Generations => all_generations(),
                Kind::HResult | Kind::Outcome => names(),
                _ => return None,
            };
            return Some((found, words));
        }
        _ => return None,
    };
    Some((found, allowed.iter().map(String::as_str).collect()))
}
