//! Marks of the objects that code allocates.

/// A mark of an object that code allocates: a heap of its own, or a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocated {
    Large,
    Pinned,
    Referring,
}

impl Allocated {
    const ALL: [Self; 3] = [Self::Large, Self::Pinned, Self::Referring];

    /// Returns the number by which code says so, in the place of a class. It is no id of a method.
    pub(crate) const fn number(self) -> u64 {
        const FIRST: u64 = 0x6C1_0000;
        FIRST + self as u64
    }

    /// Returns what has this number.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.number() == number)
    }
}
