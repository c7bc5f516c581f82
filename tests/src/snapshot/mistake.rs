//! The mistakes that can be planted in the model.

/// A wrong reading of the contract. A runtime with the same mistake differs from the model without
/// it on the same calls as the model with it differs from the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mistake {
    /// The second pass of any exception hides stack, not only that of the current one (C-086).
    AnyExceptionHides,
    /// An InlinedCallFrame with an active call that returns to native code is dropped like others
    /// (C-079).
    ActiveCallIsDropped,
}

impl Mistake {
    /// All mistakes.
    pub const ALL: [Self; 2] = [Self::AnyExceptionHides, Self::ActiveCallIsDropped];
}
