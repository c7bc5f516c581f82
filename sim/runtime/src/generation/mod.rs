//! The simulated runtimes (generations of the CLR).
//!
//! Each runtime is a file of this folder, which answers every question ([`QUESTIONS`]) and says how
//! the answer is known. No other code checks which generation is simulated: it asks, or names a
//! [`Family`]. The answers:
#![doc = include_str!("table.md")]

mod answers;
mod questions;
pub(crate) mod sets;
#[cfg(test)]
mod tests;
mod values;

pub use answers::{Family, Known, Os, Product, Version};
pub use questions::{QUESTIONS, Question};
pub use sets::Generations;
pub use values::{
    CheckFailures, EmptyWalk, ExceptionHelper, FrameIdentity, HijackArgsLayout,
    InlinedCallFrameLayout, InvokePath, ProfilerSuspension, SeedSize, StackCheck, StartPath,
    WalkFault,
};

use answers::Answers;
use core::fmt;

/// Defines the generations, each with the file of its answers.
macro_rules! generations {
    ($($variant:ident $file:ident $doc:literal;)*) => {
        $(mod $file;)*

        /// A runtime and the operating system that it runs on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Generation {
            $(#[doc = $doc] $variant,)*
        }

        impl Generation {
            /// All generations.
            pub const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant,)*];

            /// Returns the runtime's name in a sentence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }

            /// Returns the answers of the runtime's file.
            const fn answers(self) -> &'static Answers {
                match self { $(Self::$variant => &$file::ANSWERS,)* }
            }
        }
    };
}

// What people run comes first.
generations! {
    Net11Windows net11_windows ".NET 11 on Windows.";
    Net11Unix net11_unix ".NET 11 on Unix.";
    Net10Windows net10_windows ".NET 10 on Windows.";
    Net10Unix net10_unix ".NET 10 on Unix.";
    Net9Windows net9_windows ".NET 9 on Windows.";
    Net9Unix net9_unix ".NET 9 on Unix.";
    Net9UnixLegacyExceptions net9_unix_legacy_exceptions ".NET 9 on Unix with legacy exception handling.";
    Net8Windows net8_windows ".NET 8 on Windows.";
    Net8Unix net8_unix ".NET 8 on Unix.";
    CoreClr31Windows coreclr_3_1_windows "CoreCLR 3.1 on Windows.";
    CoreClr31Unix coreclr_3_1_unix "CoreCLR 3.1 on Unix.";
    Framework4 framework_4 ".NET Framework 4.x.";
    Framework2 framework_2 ".NET Framework 2.0 to 3.5.";
}

impl Generation {
    /// Returns the name, which recordings use too.
    pub const fn name(self) -> &'static str {
        self.answers().name
    }

    /// Returns what the runtime is.
    pub const fn family(self) -> Family {
        self.answers().family
    }

    /// Returns true if the runtime runs on Unix: the System V convention determines the
    /// callee-saved registers, and single threads cannot be suspended (C-019).
    pub const fn is_unix(self) -> bool {
        matches!(self.family().os, Os::Unix)
    }

    /// Returns true if the runtime is CoreCLR, not .NET Framework.
    pub const fn is_core(self) -> bool {
        matches!(self.family().product, Product::Core)
    }

    /// Returns the generation with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generation| generation.name() == name)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
