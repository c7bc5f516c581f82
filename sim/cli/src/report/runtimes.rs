//! What is the same on several runtimes is told once.

use clr_runtime::generation::{Generation, Generations};
use serde::{Serialize, Serializer};

/// A set of runtimes: for machines, their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtimes(pub(crate) Generations);

impl Runtimes {
    /// Of one.
    pub(crate) const fn one(generation: Generation) -> Self {
        Self(Generations::of(&[generation]))
    }

    /// Adds others.
    pub(crate) const fn join(&mut self, others: Self) {
        self.0 = self.0.with(others.0);
    }

    /// How many they are.
    pub(crate) fn count(self) -> usize {
        self.0.iter().count()
    }
}

impl Serialize for Runtimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Generation::name))
    }
}

/// Something that is told of the runtimes on which it is so.
pub(crate) trait OnRuntimes {
    /// Which they are.
    fn runtimes(&mut self) -> &mut Runtimes;

    /// Adds the runtimes of another one, which tells the same.
    fn join(&mut self, mut other: Self)
    where
        Self: Sized,
    {
        let others = *other.runtimes();
        self.runtimes().join(others);
    }
}

/// Joins what a runtime gives to the first that is like it, or else keeps it beside the others.
pub(crate) fn keep<T: OnRuntimes>(new: T, all: &mut Vec<T>, is_like: impl Fn(&T, &T) -> bool) {
    match all.iter_mut().find(|other| is_like(other, &new)) {
        Some(other) => other.join(new),
        None => all.push(new),
    }
}
