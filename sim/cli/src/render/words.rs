//! Words for sets of generations and for numbers of things.

use clr_runtime::generation::{Generation, Generations};
use std::fmt::Display;

/// Returns a number with its noun, in the singular (`one`) or the plural (`many`).
pub(crate) fn counted(
    number: impl Copy + Display + From<u8> + PartialEq,
    one: &str,
    many: &str,
) -> String {
    format!("{number} {}", if number == 1.into() { one } else { many })
}

/// Returns clauses in brackets, or nothing if there are none.
pub(crate) fn brackets(clauses: &[String]) -> String {
    if clauses.is_empty() { String::new() } else { format!("[{}]", clauses.join(", ")) }
}

/// Returns a set of generations in few words: the named set that it is, or is all but a few of; else its members.
pub(crate) fn in_words(generations: Generations) -> String {
    let members = |set: Generations| {
        let names: Vec<_> = set.iter().map(Generation::name).collect();
        names.join(", ")
    };
    let few = |(word, set): (&'static str, Generations)| {
        let missing = set.without(generations);
        let is_near = 2 * missing.iter().count() < generations.iter().count();
        (generations.without(set).is_empty() && is_near).then_some((word, missing))
    };
    // In a sentence `clr4` would say less than what it leaves out.
    let named = Generations::NAMED.into_iter().filter(|(word, _)| *word != "clr4").filter_map(few);
    let Some((word, missing)) = named.min_by_key(|(_, missing)| missing.iter().count()) else {
        return generations.words().join(", ");
    };
    let word = if word == "new" { "net9 and newer" } else { word };
    if missing.is_empty() { word.to_owned() } else { format!("{word} but {}", members(missing)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Generation::{CoreClr31Windows, Framework2, Net9Unix, Net10Windows};

    #[test]
    fn generations_are_printed_in_few_words() {
        let words = |generations: &[Generation]| in_words(Generations::of(generations));
        assert_eq!(words(&Generation::ALL), "all");
        assert_eq!(in_words(Generations::WINDOWS), "windows");
        assert_eq!(in_words(Generations::CORECLR_31), "coreclr-3.1");
        assert_eq!(in_words(Generations::NEW), "net9 and newer");
        assert_eq!(in_words(Generations::NET_8), "net8");
        assert_eq!(words(&[Net9Unix]), "net9-unix");
        assert_eq!(words(&[Net10Windows, CoreClr31Windows]), "net10-windows, coreclr-3.1-windows");
        let but_2 = in_words(Generations::of(&[Framework2]).inverse());
        assert_eq!(but_2, "all but framework-2");
    }

    /// No two sets have the same words.
    #[test]
    fn no_two_sets_have_the_same_text() {
        let count = 1_u32 << Generation::ALL.len();
        let mut texts: Vec<String> = (0..count)
            .map(|bits| {
                let members = Generation::ALL.iter().enumerate();
                let members: Vec<_> =
                    members.filter(|(i, _)| bits >> i & 1 != 0).map(|(_, g)| *g).collect();
                in_words(Generations::of(&members))
            })
            .collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), count as usize);
    }
}
