//! What GCs collect.

/// What a GC collects.
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
