//! Hints on how to mend problems.

use crate::synonyms::meaning;
use crate::text::grammar::{Kind, Level, NodeRule, all_generations};
use crate::text::hresult::{names, without_prefix};
use crate::text::problem::{ProblemKind, SyntaxError, renamed};
use crate::text::suggest::{function_of, list, nearest, suggest};
use clr_runtime::clause::{ClauseEntry, entries};
use clr_runtime::generation::Generations;
use clr_story::Hazard;

/// Advice on single and typographic quotes.
pub(crate) const DOUBLE_QUOTES: &str = "strings are in double quotes: \"…\"";

/// Maximum number of places of a node that a hint names.
const MOST_PLACES: usize = 3;

/// Maximum number of allowed names that a hint lists beside a meaning.
const FEW: usize = 8;

/// Pairs of quotes that people write instead of double ones.
const OTHER_QUOTES: [[char; 2]; 3] =
    [['\'', '\''], ['\u{2018}', '\u{2019}'], ['\u{201C}', '\u{201D}']];

/// Returns true for a quote that begins no string.
pub(crate) fn is_other_quote(c: char) -> bool {
    OTHER_QUOTES.as_flattened().contains(&c)
}

impl ProblemKind {
    /// Returns a hint on how to fix the problem.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        if let Some((before, now)) = renamed(self) {
            return Some(format!("`{before}` is `{now}` now: `clrsim fmt --upgrade` rewrites it"));
        }
        let help = match self {
            Self::UnknownNode { found, place, allowed } => of_node(found, place, allowed),
            Self::UnknownProperty { node, found, allowed } => of_property(node, found, allowed),
            Self::UnknownFunction { found, allowed } => of_name(found, allowed, "a function"),
            Self::UnknownThread { found, allowed } => of_name(found, allowed, "a thread"),
            Self::UnknownBuffer { found, allowed } if allowed.is_empty() => {
                format!("none is defined: `buffer \"{found}\"` declares it")
            }
            Self::UnknownBuffer { found, allowed } => suggest(found, allowed, "a buffer"),
            Self::UnknownOfProfiler { what, found, allowed } if allowed.is_empty() => {
                format!("none is defined: `{what} \"{found}\"` in the `profiler` declares it")
            }
            Self::UnknownOfProfiler { found, allowed, .. } => suggest(found, allowed, "one of"),
            Self::UnknownWord { found, expected } => of_word(found, *expected),
            Self::NotOnThisStack { found, allowed, .. } => {
                suggest(function_of(found), allowed, "a function")
            }
            Self::Foreign | Self::Empty => "`clrsim new` writes a text to start from".to_owned(),
            Self::FunctionTwice { .. } => "give one of them another name".to_owned(),
            Self::FunctionCharacter { found } => match found {
                quote if is_other_quote(*quote) => DOUBLE_QUOTES.to_owned(),
                _ => "a name has the letters and digits of ASCII, and `_ . : + < >` and a grave accent".to_owned(),
            },
            Self::NoSuchFrame { .. } => "use `on=` to exclude these generations".to_owned(),
            Self::MissingProperty { expected, .. }
            | Self::MissingArgument { expected, .. }
            | Self::WrongType { expected, .. }
            | Self::OutOfRange { expected, .. } => expected.to_string(),
            Self::Excluded(..) | Self::DuplicateNode(_) | Self::DuplicateProperty(_) => {
                "remove one of them".to_owned()
            }
            Self::SmallBuffer(_) => "give the buffer a larger `size=`".to_owned(),
            Self::DeadExpectation => {
                "the first `expect` for a runtime is used: put this one before it, or remove it"
                    .to_owned()
            }
            Self::MissingNode { missing, .. } => format!("expected `{missing} …` in its block"),
            Self::NeverRaised { needed, .. } => needed.help(),
            Self::Without(part, other) => format!("add `{other}`, or remove `{part}`"),
            Self::ExtraBlock(_) => "expected the end of the line".to_owned(),
            Self::InlinedExit => {
                "remove `on`, or what leaves the function or names it otherwise".to_owned()
            }
            Self::CatchWithoutTry => "expected `try { … }` before it".to_owned(),
            Self::ClauseWithoutGuarded(_) => "expected `guarded { … }` before it".to_owned(),
            Self::FilterWithoutCatch => "expected `on-catch { … }` after it".to_owned(),
            Self::StopPlace => "expected one of: `after=`, `at=`, `callback=`, `hook=`, \"end\"; \
                                `instruction=` goes with `at=` a function, `visit=` with `at=` or `callback=`"
                .to_owned(),
            Self::Syntax(error) => error.help()?.to_owned(),
            Self::SnapshotOfNothing => {
                "expected `stack { … }` beside it, or `stop … { … }` around it".to_owned()
            }
            Self::NoPreviousStop => {
                "expected a `stop` of that thread before this one, and in this \
                                     one its position"
                    .to_owned()
            }
            Self::NoInstruction { count, .. } => {
                format!("its instructions are 0 to {}", count.saturating_sub(1))
            }
            _ => return None,
        };
        Some(help)
    }
}

impl SyntaxError {
    const fn help(self) -> Option<&'static str> {
        Some(match self {
            Self::UnclosedString => "expected `\"`",
            Self::UnclosedComment => "expected `*/`",
            Self::UnclosedBlock => "expected `}`",
            Self::Escape => r#"expected one of: \\ \" \n \r \t \b \f \s \u{1 to 6 hex digits}"#,
            Self::Number => "expected decimal digits, or 0x and hexadecimal ones",
            Self::Keyword | Self::ReservedWord => "expected one of: `#true`, `#false`",
            Self::NodeName => "expected a word or a string; numbers and blocks come after it",
            Self::Entry => "expected an argument, a property, a block, `;`, or the line's end",
            Self::Space => "a string before it may lack its end; there are no commas",
            Self::BehindBlock => "expected `;`, `}`, or the line's end",
            Self::Character('(') => "a call is a node: `call \"Name\"`; values have no types",
            Self::Slashdash => "expected a node's name after it, or a value; not a block",
            _ => return None,
        })
    }
}

/// Returns the hint for a node that is not allowed in a place.
fn of_node(found: &str, place: &str, allowed: &[String]) -> String {
    let elsewhere: Vec<_> =
        Level::ALL.into_iter().filter(|level| level.node(found).is_some()).collect();
    if let [first, ..] = elsewhere[..] {
        let places: Vec<_> =
            elsewhere.iter().take(MOST_PLACES).map(|level| level.place()).collect();
        let more = if elsewhere.len() > MOST_PLACES { ", and more" } else { "" };
        let blocks = if elsewhere.len() == 1 { around(first) } else { Vec::new() };
        let block = blocks.first().map(|name| format!(": put it into `{name} {{ … }}`"));
        return format!(
            "`{found}` is allowed {}{more}{}",
            places.join(", "),
            block.unwrap_or_default()
        );
    }
    let own = Level::ALL.into_iter().find(|level| level.place() == place);
    let owner = own
        .and_then(|own| rules().find(|rule| rule.block == Some(own) && has_property(rule, found)));
    if let Some(owner) = owner {
        return format!("`{found}` is a property: `{} … {found}=…`", owner.name);
    }
    if allowed.is_empty() {
        return "nothing is allowed there".to_owned();
    }
    of_name(found, allowed, "one of")
}

/// Returns the hint for a property that a node does not have.
fn of_property(node: &str, found: &str, allowed: &[String]) -> String {
    let is_node_inside = |rule: &&NodeRule| {
        rule.name == node && rule.block.is_some_and(|block| block.node(found).is_some())
    };
    if rules().any(|rule| is_node_inside(&rule)) {
        return format!("`{found}` is a node: `{node} {{ {found} … }}`");
    }
    if allowed.is_empty() {
        return "nothing is allowed there".to_owned();
    }
    of_name(found, allowed, "one of")
}

/// Returns the hint for a word that is not allowed in a place of this kind.
fn of_word(found: &str, expected: Kind) -> String {
    let is_in = |quotes: &[char; 2]| {
        found.len() > 1 && found.starts_with(quotes[0]) && found.ends_with(quotes[1])
    };
    if OTHER_QUOTES.iter().any(is_in) {
        return DOUBLE_QUOTES.to_owned();
    }
    match expected {
        Kind::Word(words) => of_name(found, words, "one of"),
        Kind::Generations => of_generations(found),
        Kind::HResult | Kind::Outcome => {
            let names = names();
            let short: Vec<_> = names.iter().map(|name| without_prefix(name)).collect();
            match nearest(found, &short).filter(|_| nearest(found, &names).is_none()) {
                Some(near) => format!("did you mean `{near}`? names may lack their prefix"),
                None => suggest(found, &names, "one of"),
            }
        }
        Kind::Clause => match entries().last() {
            Some(ClauseEntry { clause: last, .. }) => {
                format!("the clauses are C-001 to {last}: `clrsim rules` prints them")
            }
            None => expected.to_string(),
        },
        Kind::Hazard => match Hazard::ALL.last() {
            Some(last) => format!("the hazards are H-01 to {last}: `clrsim rules H-01` prints one"),
            None => expected.to_string(),
        },
        Kind::Label | Kind::Address => match decimal_offset(found) {
            Some((function, offset)) => {
                format!("the offset is hexadecimal: `{function}+{offset:#x}`")
            }
            None => expected.to_string(),
        },
        _ => expected.to_string(),
    }
}

/// Returns the hint for names of runtimes, of which the first that does not exist is meant.
fn of_generations(found: &str) -> String {
    let words = found.split([' ', ',']).filter(|word| !word.is_empty());
    let wrong = words.into_iter().find(|word| Generations::from_word(word).is_none());
    let names = all_generations();
    match wrong {
        None if found.trim().is_empty() => Kind::Generations.to_string(),
        // Each exists: something else than blanks is between them.
        None => {
            "names of runtimes are separated by blanks: \"net8-windows net9-windows\"".to_owned()
        }
        Some(wrong) if wrong == found => {
            of_name(wrong, &names, "one or more of these, separated by blanks")
        }
        Some(wrong) => format!("`{wrong}`: {}", of_name(wrong, &names, "one of")),
    }
}

/// Returns the hint for a name or a word: a similar one; else what this project has for a word of the field; else the
/// nearest ones.
fn of_name<S: AsRef<str>>(found: &str, allowed: &[S], what: &str) -> String {
    let names: Vec<&str> = allowed.iter().map(AsRef::as_ref).collect();
    match meaning(found).filter(|_| nearest(found, &names).is_none()) {
        Some(meaning) if allowed.len() <= FEW => {
            format!("{}; here: {}", meaning.here, list(allowed))
        }
        Some(meaning) => meaning.here,
        None => suggest(found, allowed, what),
    }
}

/// Returns the function and the offset of a label whose offset is decimal.
fn decimal_offset(text: &str) -> Option<(&str, u32)> {
    let (function, digits) =
        text.rsplit_once('+').filter(|(name, _)| !name.is_empty() && !name.ends_with("+0x"))?;
    Some((function, digits.parse().ok()?))
}

/// Returns all nodes of the grammar.
fn rules() -> impl Iterator<Item = &'static NodeRule> {
    Level::ALL.into_iter().flat_map(Level::nodes)
}

/// Returns the names of the nodes whose block has nodes of a level.
fn around(level: Level) -> Vec<&'static str> {
    rules().filter(|rule| rule.block == Some(level)).map(|rule| rule.name).collect()
}

fn has_property(rule: &NodeRule, name: &str) -> bool {
    rule.properties.iter().any(|property| property.name == name)
}
