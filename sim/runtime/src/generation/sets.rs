//! Sets of generations, and the words for them.

use super::{Generation, Question};
use core::fmt;

/// Returns the set of all generations for which an expression of their families and answers is
/// true, as a constant.
macro_rules! all_with {
    (|$generation:ident| $holds:expr) => {{
        let mut set = $crate::generation::Generations::NONE;
        let mut rest: &[$crate::generation::Generation] = &$crate::generation::Generation::ALL;
        while let [$generation, others @ ..] = rest {
            if $holds {
                set = set.with($crate::generation::Generations::of(&[*$generation]));
            }
            rest = others;
        }
        set
    }};
}
pub(crate) use all_with;

/// A set of generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Generations(pub(super) u32);

impl Generations {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// All generations.
    pub const ALL: Self = Self::of(&Generation::ALL);
    /// CoreCLR 3.1.
    pub const CORECLR_31: Self = all_with!(|it| it.is_core() && it.family().version.0 == 3);
    /// .NET 9 and newer.
    pub const NEW: Self = all_with!(|it| it.family().is_core_since(9));
    /// All generations on Windows.
    pub const WINDOWS: Self = Self::UNIX.inverse();
    /// All generations on Unix.
    pub const UNIX: Self = all_with!(|it| it.is_unix());
    /// .NET Framework.
    pub const FRAMEWORK: Self = all_with!(|it| !it.is_core());
    /// .NET 8.
    pub const NET_8: Self = all_with!(|it| it.family().is_core_since(8)).without(Self::NEW);
    /// .NET 9.
    pub const NET_9: Self = all_with!(|it| it.family().version.0 == 9);
    /// .NET 10.
    pub const NET_10: Self = all_with!(|it| it.family().version.0 == 10);
    /// .NET 11.
    pub const NET_11: Self = all_with!(|it| it.family().version.0 == 11);
    /// .NET Framework 4 and newer.
    pub const CLR_4: Self = all_with!(|it| it.is_core() || it.family().version.0 >= 4);

    /// CoreCLR: .NET Core, and .NET since version 5.
    pub const CORE: Self = Self::FRAMEWORK.inverse();
    /// The newest version, on all systems.
    pub const NEWEST: Self = all_with!(|it| {
        let mut newer = Generation::ALL.as_slice();
        let mut is_newest = it.is_core();
        while let [other, others @ ..] = newer {
            let (mine, its) = (it.family().version, other.family().version);
            is_newest &= its.0 < mine.0 || its.0 == mine.0 && its.1 <= mine.1;
            newer = others;
        }
        is_newest
    });

    /// The sets that have a name in texts, largest first.
    pub const NAMED: [(&'static str, Self); 12] = [
        ("all", Self::ALL),
        ("clr4", Self::CLR_4),
        ("core", Self::CORE),
        ("windows", Self::WINDOWS),
        ("unix", Self::UNIX),
        ("new", Self::NEW),
        ("framework", Self::FRAMEWORK),
        ("coreclr-3.1", Self::CORECLR_31),
        ("net8", Self::NET_8),
        ("net9", Self::NET_9),
        ("net10", Self::NET_10),
        ("net11", Self::NET_11),
    ];

    /// Further words, which are read, but not printed.
    pub const ALIASES: [(&'static str, Self); 2] =
        [("linux", Self::UNIX), ("newest", Self::NEWEST)];

    /// Returns the set of these generations.
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

    /// Returns the generations that the set lacks.
    #[must_use]
    pub const fn inverse(self) -> Self {
        Self::ALL.without(self)
    }

    /// Returns the generations that `other` lacks.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns true if the set contains `generation`.
    pub const fn contains(self, generation: Generation) -> bool {
        self.0 >> generation as u8 & 1 != 0
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the words that are read, except for questions with answers: families, then
    /// generations.
    pub fn all_words() -> impl Iterator<Item = &'static str> {
        let families = Self::NAMED.into_iter().chain(Self::ALIASES).map(|(name, _)| name);
        families.chain(Generation::ALL.map(Generation::name))
    }

    /// Returns the set for a word: a name of [`NAMED`](Self::NAMED) or [`ALIASES`](Self::ALIASES),
    /// of a generation, or a question with its answer, such as `context_size=0xc20` or
    /// `hides_exception_handling=no`.
    pub fn from_word(word: &str) -> Option<Self> {
        if let Some((question, answer)) = word.split_once('=') {
            return Self::with_answer(Question::from_name(question)?, answer);
        }
        let mut named = Self::NAMED.into_iter().chain(Self::ALIASES);
        let one = || Generation::from_name(word).map(|generation| Self::of(&[generation]));
        named.find(|(name, _)| *name == word).map(|(_, set)| set).or_else(one)
    }

    /// Returns the generations with this answer, or `None` if there are none.
    fn with_answer(question: &Question, answer: &str) -> Option<Self> {
        let has = |generation: &Generation| (question.answer)(*generation) == answer;
        let all: Vec<_> = Generation::ALL.into_iter().filter(has).collect();
        (!all.is_empty()).then(|| Self::of(&all))
    }

    /// Returns a short list of words for the set: larger named sets first, then single generations.
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
