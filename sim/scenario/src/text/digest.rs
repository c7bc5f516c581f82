//! A short digest of a text, by which the string of an interleaving tells whether the text was edited.

use crate::{Description, Scenario};
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// Offset basis and prime of the hash function FNV-1a with 64 bits.
const FNV: (u64, u64) = (0xCBF2_9CE4_8422_2325, 0x100_0000_01B3);
/// Number of hexadecimal digits.
const DIGITS: usize = 8;

/// A digest of the parts of a text that its interleavings depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextDigest(u32);

/// The reason why a word is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the digest of a text has 8 hexadecimal digits")]
pub struct TextDigestError;

impl Scenario {
    /// Returns the digest of the program, its threads and the profiler. Layout, comments, stops,
    /// searches and expectations do not count.
    #[must_use]
    pub fn digest(&self) -> TextDigest {
        let played = Self {
            about: Description::default(),
            stops: Vec::new(),
            explore: Vec::new(),
            ..self.clone()
        };
        TextDigest::of(&played)
    }

    /// Returns the digest of all that the text says, layout and comments apart.
    #[must_use]
    pub fn whole_digest(&self) -> TextDigest {
        TextDigest::of(self)
    }
}

impl TextDigest {
    fn of(scenario: &Scenario) -> Self {
        let (basis, prime) = FNV;
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(prime);
        let hash = scenario.to_string().bytes().fold(basis, step);
        Self((hash >> 32) as u32 ^ hash as u32)
    }
}

impl fmt::Display for TextDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl FromStr for TextDigest {
    type Err = TextDigestError;

    fn from_str(text: &str) -> Result<Self, TextDigestError> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let are_digits = text.len() == DIGITS && text.bytes().all(is_digit);
        let number = u32::from_str_radix(text, 16).ok().filter(|_| are_digits);
        number.map(Self).ok_or(TextDigestError)
    }
}
