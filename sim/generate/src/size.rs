//! How large a generated program may be.

use clr_codegen::{Convention, MAX_FUNCTIONS, MAX_NESTING};

/// Limits of a generated program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The least functions.
    pub least_functions: u32,
    /// The most functions.
    pub most_functions: u32,
    /// Every function calls the one behind it, so that the stack is as deep as there are functions.
    pub chain: bool,
    /// The most statements of one list.
    pub statements: u32,
    /// How deep statements may nest.
    pub nesting: u32,
    /// The most interrupts from outside.
    pub interrupts: u32,
    /// The most instructions that it executes, by a careful estimate.
    pub instructions: u64,
    /// The most bytes of stack that it takes, by a careful estimate.
    pub stack: u64,
    /// Its calling convention; either if there is none.
    pub convention: Option<Convention>,
}

impl Size {
    /// One function or two.
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

    /// A call chain of 32 frames, and a handler or one more.
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

    /// The same with this calling convention, and native code for the most part.
    #[must_use]
    pub const fn of(self, convention: Convention) -> Self {
        Self { convention: Some(convention), ..self }
    }

    /// The least and the most functions that the other limits leave room for.
    pub(super) fn functions(&self) -> (u32, u32) {
        let room = (self.instructions / 64).min(self.stack / 4096);
        let most = room.min(MAX_FUNCTIONS as u64) as u32;
        let most = self.most_functions.min(most).max(1);
        (self.least_functions.clamp(1, most), most)
    }

    /// The nesting that the rules allow.
    pub(super) fn nesting(&self) -> u32 {
        self.nesting.min(MAX_NESTING - 1)
    }
}

impl Default for Size {
    fn default() -> Self {
        Self::SMALL
    }
}
