//! The simulated runtimes (generations of the CLR).
//!
//! Every difference between runtimes is a named question ([`QUESTIONS`]); no other code checks
//! which generation is simulated. The answers:
#![doc = include_str!("table.md")]

mod questions;

pub use questions::{
    EmptyWalk, FrameIdentity, InlinedCallFrameLayout, ProfilerSuspension, QUESTIONS, Question,
    StackCheck, WalkFault,
};

use core::fmt;

/// A runtime and the operating system that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// .NET Framework 2.0 to 3.5, which the documentation of `DoStackSnapshot` describes. Known
    /// from its published sources; no walk was recorded.
    Framework2,
    /// .NET Framework 4.x. Inferred from statements in CoreCLR's sources; no walk was recorded.
    Framework4,
    /// CoreCLR 3.1 on Windows.
    CoreClr31Windows,
    /// CoreCLR 3.1 on Unix.
    CoreClr31Unix,
    /// .NET 9 on Unix.
    Net9Unix,
    /// .NET 9 on Unix with the setting `LegacyExceptionHandling`: exceptions are dispatched by
    /// native code.
    Net9UnixLegacyExceptions,
    /// .NET 10 on Windows.
    Net10Windows,
    /// .NET 10 on Unix. Inferred from observations of .NET 9 on Unix and .NET 10 on Windows; no
    /// walk was recorded.
    Net10Unix,
}

impl Generation {
    /// All generations.
    pub const ALL: [Self; 8] = [
        Self::Framework2,
        Self::Framework4,
        Self::CoreClr31Windows,
        Self::CoreClr31Unix,
        Self::Net9Unix,
        Self::Net9UnixLegacyExceptions,
        Self::Net10Windows,
        Self::Net10Unix,
    ];

    /// Returns the name, which recordings use too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Framework2 => "framework-2",
            Self::Framework4 => "framework-4",
            Self::CoreClr31Windows => "coreclr-3.1-windows",
            Self::CoreClr31Unix => "coreclr-3.1-unix",
            Self::Net9Unix => "net9-unix",
            Self::Net9UnixLegacyExceptions => "net9-unix-legacy-exceptions",
            Self::Net10Windows => "net10-windows",
            Self::Net10Unix => "net10-unix",
        }
    }

    /// Returns the generation with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generation| generation.name() == name)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Generations(u16);

impl Generations {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// All generations.
    pub const ALL: Self = Self::of(&Generation::ALL);
    /// CoreCLR 3.1.
    pub const CORECLR_31: Self =
        Self::of(&[Generation::CoreClr31Windows, Generation::CoreClr31Unix]);
    /// .NET 9 and newer.
    pub const NEW: Self = Self::of(&[
        Generation::Net9Unix,
        Generation::Net9UnixLegacyExceptions,
        Generation::Net10Windows,
        Generation::Net10Unix,
    ]);
    /// All generations on Windows.
    pub const WINDOWS: Self = Self::of(&[
        Generation::Framework2,
        Generation::Framework4,
        Generation::CoreClr31Windows,
        Generation::Net10Windows,
    ]);
    /// All generations on Unix.
    pub const UNIX: Self = Self::ALL.without(Self::WINDOWS);
    /// .NET Framework.
    pub const FRAMEWORK: Self = Self::of(&[Generation::Framework2, Generation::Framework4]);
    /// .NET 9.
    pub const NET_9: Self = Self::of(&[Generation::Net9Unix, Generation::Net9UnixLegacyExceptions]);
    /// .NET 10.
    pub const NET_10: Self = Self::of(&[Generation::Net10Windows, Generation::Net10Unix]);
    /// .NET Framework 4 and newer.
    pub const CLR_4: Self = Self::ALL.without(Self::of(&[Generation::Framework2]));

    /// The sets that have a name in texts, largest first.
    pub const NAMED: [(&'static str, Self); 8] = [
        ("clr4", Self::CLR_4),
        ("windows", Self::WINDOWS),
        ("unix", Self::UNIX),
        ("new", Self::NEW),
        ("framework", Self::FRAMEWORK),
        ("coreclr-3.1", Self::CORECLR_31),
        ("net9", Self::NET_9),
        ("net10", Self::NET_10),
    ];

    /// Returns the set of these generations.
    #[must_use]
    pub const fn of(generations: &[Generation]) -> Self {
        let mut set = Self::NONE;
        let mut i = 0;
        while i < generations.len() {
            set.0 |= 1 << generations[i] as u8;
            i += 1;
        }
        set
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the generations that `other` lacks.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns true if the set contains `generation`.
    #[must_use]
    pub const fn contains(self, generation: Generation) -> bool {
        self.0 >> generation as u8 & 1 != 0
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the set for a word: a name of [`NAMED`](Self::NAMED) or of a generation.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let named = Self::NAMED.into_iter().find(|(name, _)| *name == word);
        let one = || Generation::from_name(word).map(|generation| Self::of(&[generation]));
        named.map(|(_, set)| set).or_else(one)
    }

    /// Returns a short list of words for the set: larger named sets first, then single generations.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        let mut rest = self;
        let mut words = Vec::new();
        for (name, set) in Self::NAMED {
            let inside = set.without(self).is_empty();
            if inside && set.both(rest).iter().count() > 1 {
                words.push(name);
                rest = rest.without(set);
            }
        }
        words.extend(rest.iter().map(Generation::name));
        words
    }

    /// Returns the members, in the order of [`Generation::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Generation> {
        Generation::ALL.into_iter().filter(move |generation| self.contains(*generation))
    }
}

/// Formats the [`words`](Generations::words) with blanks between them.
impl fmt::Display for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.words().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// Returns the table of this module's documentation.
    fn table() -> String {
        let mut table = String::from("\n| question |");
        for generation in Generation::ALL {
            write!(table, " {generation} |").unwrap();
        }
        table.push_str("\n| --- |");
        table.push_str(&" --- |".repeat(Generation::ALL.len()));
        for question in QUESTIONS {
            write!(table, "\n| `{}` |", question.name).unwrap();
            for generation in Generation::ALL {
                write!(table, " {} |", (question.answer)(generation)).unwrap();
            }
        }
        table.push('\n');
        table
    }

    /// `CLR_BLESS=1` writes the table.
    #[test]
    fn the_documentation_has_all_answers() {
        if std::env::var_os("CLR_BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/generation/table.md");
            std::fs::write(file, table()).unwrap();
        }
        assert_eq!(table(), include_str!("table.md"), "CLR_BLESS=1 writes it anew");
    }

    #[test]
    fn every_question_distinguishes_generations() {
        for question in QUESTIONS {
            let answers = Generation::ALL.map(question.answer);
            assert!(answers.iter().any(|answer| *answer != answers[0]), "{}", question.name);
            assert!(!question.meaning.is_empty(), "{}", question.name);
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        for generation in Generation::ALL {
            assert_eq!(Generation::from_name(generation.name()), Some(generation));
        }
        assert_eq!(Generation::from_name("net4"), None);
    }

    #[test]
    fn words_name_their_sets() {
        for bits in 0..=Generations::ALL.0 {
            let set = Generations(bits);
            let words = set.words();
            let read = words.iter().map(|word| Generations::from_word(word).unwrap());
            assert_eq!(read.fold(Generations::NONE, Generations::with), set, "{words:?}");
        }
        assert_eq!(Generations::ALL.to_string(), "clr4 framework-2");
        assert_eq!(Generations::NEW.to_string(), "new");
        let two = Generations::WINDOWS.with(Generations::CORECLR_31);
        assert_eq!(two.to_string(), "windows coreclr-3.1-unix");
        assert_eq!(Generations::from_word("net4"), None);
    }

    #[test]
    fn sets_have_their_members() {
        assert_eq!(Generations::ALL.iter().count(), Generation::ALL.len());
        assert_eq!(Generations::UNIX.iter().count(), 4);
        assert!(Generations::NEW.contains(Generation::Net10Unix));
        assert!(!Generations::NEW.contains(Generation::CoreClr31Unix));
        let both = Generations::NEW.without(Generations::WINDOWS);
        assert_eq!(
            both.iter().collect::<Vec<_>>(),
            [Generation::Net9Unix, Generation::Net9UnixLegacyExceptions, Generation::Net10Unix,]
        );
    }
}
