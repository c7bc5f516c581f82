//! The mistakes that can be planted in the model.

/// A wrong reading of the contract. A runtime with the same mistake differs from the model without
/// it on the same calls as the model with it differs from the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mistake {
    /// The second pass of any exception hides stack, not only that of the current one (C-086).
    AnyExceptionHides,
}

impl Mistake {
    /// All mistakes.
    pub const ALL: [Self; 1] = [Self::AnyExceptionHides];
}
