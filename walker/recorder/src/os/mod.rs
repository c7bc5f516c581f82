//! The operating system. Each file has what one system offers, under the same names where two systems
//! offer the same.

use std::ops::Range;

mod linux;
pub(crate) use linux::*;

/// A loaded native image, as the loader describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The address where the lowest segment is (VA).
    pub(crate) base: u64,
    pub(crate) path: String,
    /// The addresses of its segments (VA).
    pub(crate) code: Range<u64>,
    /// Address of `.eh_frame_hdr` (VA).
    pub(crate) eh_frame_hdr: u64,
}
