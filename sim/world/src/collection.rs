//! Extents of GCs.

/// The extent of a GC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Collection {
    /// All generations.
    #[default]
    Full,
    /// Generation 0.
    Youngest,
    /// Generations 0 and 1.
    Young,
    /// All generations; objects are moved.
    Compacting,
}

impl Collection {
    const ALL: [Self; 4] = [Self::Full, Self::Youngest, Self::Young, Self::Compacting];

    /// Returns the number by which the runtime's code asks for the GC. It is no id of a method.
    pub(crate) const fn number(self) -> u64 {
        const FIRST: u64 = 0x6C0_0000;
        FIRST + self as u64
    }

    /// Returns the GC with this number, if it is one.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|collection| collection.number() == number)
    }

    /// Returns the generations that are collected, generation 0 first, of this number with the heaps beside them.
    #[must_use]
    pub fn generations(self, count: usize) -> Vec<bool> {
        let last = match self {
            Self::Youngest => 1,
            Self::Young => 2,
            Self::Full | Self::Compacting => count,
        };
        (0..count).map(|generation| generation < last).collect()
    }
}
