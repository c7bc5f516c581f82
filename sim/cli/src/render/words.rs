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

/// Returns a set of generations in as few words as possible.
pub(crate) fn in_words(generations: Generations) -> String {
    const WORDS: [(Generations, &str); 10] = [
        (Generations::ALL, "all"),
        (Generations::WINDOWS, "windows"),
        (Generations::UNIX, "unix"),
        (Generations::CORECLR_31, "coreclr-3.1"),
        (Generations::NEW, "net9 and newer"),
        (Generations::CORE, "core"),
        (Generations::FRAMEWORK, "framework"),
        (Generations::NET_8, "net8"),
        (Generations::NET_9, "net9"),
        (Generations::NET_10, "net10"),
    ];
    if let Some((_, word)) = WORDS.iter().find(|(set, _)| *set == generations) {
        return (*word).to_owned();
    }
    let names = |set: Generations| {
        let names: Vec<_> = set.iter().map(Generation::name).collect();
        names.join(", ")
    };
    let others = Generations::ALL.without(generations);
    if others.iter().count() < generations.iter().count() {
        return format!("all but {}", names(others));
    }
    names(generations)
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
