//! Enumerations of metadata.

use clr_com::Token;

/// An enumeration of tokens: an `HCORENUM`.
pub(crate) struct TokenEnumeration {
    pub(crate) tokens: Vec<Token>,
    pub(crate) at: usize,
}
