//! Grouping of equal results by runtime.

use clr_runtime::generation::{Generation, Generations};
use serde::{Serialize, Serializer};

/// A set of runtimes; in JSON their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtimes(pub(crate) Generations);

impl Runtimes {
    /// Creates a set of one runtime.
    pub(crate) const fn one(generation: Generation) -> Self {
        Self(Generations::of(&[generation]))
    }

    /// Adds the runtimes of another set.
    pub(crate) const fn join(&mut self, others: Self) {
        self.0 = self.0.with(others.0);
    }

    /// Returns the number of runtimes.
    pub(crate) fn count(self) -> usize {
        self.0.iter().count()
    }
}

impl Serialize for Runtimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Generation::name))
    }
}

#[cfg(feature = "pages")]
impl schemars::JsonSchema for Runtimes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Runtimes".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names = Generation::ALL.map(Generation::name);
        schemars::json_schema!({ "type": "array", "items": { "enum": names } })
    }
}

/// A result with the runtimes that share it.
pub(crate) trait OnRuntimes {
    /// Returns the runtimes that share the result.
    fn runtimes(&mut self) -> &mut Runtimes;

    /// Adds the runtimes of an equal result.
    fn join(&mut self, mut other: Self)
    where
        Self: Sized,
    {
        let others = *other.runtimes();
        self.runtimes().join(others);
    }
}

/// Adds a result to the first one that is like it, or to the end of the list.
pub(crate) fn keep<T: OnRuntimes>(new: T, all: &mut Vec<T>, is_like: impl Fn(&T, &T) -> bool) {
    match all.iter_mut().find(|other| is_like(other, &new)) {
        Some(other) => other.join(new),
        None => all.push(new),
    }
}
