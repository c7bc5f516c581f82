//! Limits on the size of generated programs.

use clr_codegen::{CallingConvention, MAX_FUNCTIONS, MAX_NESTING};

/// Limits of a generated program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Minimum number of functions.
    pub least_functions: u32,
    /// Maximum number of functions.
    pub most_functions: u32,
    /// Every function calls the next one, so that the stack is as deep as the number of functions.
    pub chain: bool,
    /// Maximum number of statements in a list.
    pub statements: u32,
    /// Maximum nesting of statements.
    pub nesting: u32,
    /// Maximum number of interrupts from outside.
    pub interrupts: u32,
    /// Maximum number of executed instructions, by a conservative estimate.
    pub instructions: u64,
    /// Maximum stack usage in bytes, by a conservative estimate.
    pub stack: u64,
    /// Calling convention; `None` allows both.
    pub convention: Option<CallingConvention>,
}

impl Size {
    /// One or two functions.
    pub const TINY: Self = Self {
        least_functions: 1,
        most_functions: 2,
        chain: false,
        statements: 3,
        nesting: 2,
        interrupts: 1,
        instructions: 1_000,
        stack: 8 << 20,
        convention: None,
    };

    /// A few functions.
    pub const SMALL: Self = Self {
        least_functions: 1,
        most_functions: 7,
        chain: false,
        statements: 4,
        nesting: 3,
        interrupts: 2,
        instructions: 3_000,
        stack: 8 << 20,
        convention: None,
    };

    /// A call chain of 32 frames, followed by a handler or one more frame.
    pub const DEEP: Self = Self {
        least_functions: 33,
        most_functions: 33,
        chain: true,
        statements: 2,
        nesting: 2,
        interrupts: 2,
        instructions: 10_000,
        stack: 8 << 20,
        convention: None,
    };

    /// Returns the same size with this calling convention, and mostly native code.
    #[must_use]
    pub const fn of(self, convention: CallingConvention) -> Self {
        Self { convention: Some(convention), ..self }
    }

    /// Returns the minimum and maximum number of functions that the other limits allow.
    pub(super) fn functions(&self) -> (u32, u32) {
        let room = (self.instructions / 64).min(self.stack / 4096);
        let most = room.min(MAX_FUNCTIONS as u64) as u32;
        let most = self.most_functions.min(most).max(1);
        (self.least_functions.clamp(1, most), most)
    }

    /// Returns the nesting allowed by the rules.
    pub(super) fn nesting(&self) -> u32 {
        self.nesting.min(MAX_NESTING - 1)
    }
}

impl Default for Size {
    fn default() -> Self {
        Self::SMALL
    }
}
