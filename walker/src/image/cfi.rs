//! Where an image keeps its call frame information.

use super::Section;

/// The sections of an image that say how to unwind by DWARF call frame information. Any of them may
/// be missing.
///
/// Addresses in them are those of the image at its preferred base; RVAs count from there.
#[derive(Clone, Copy, Debug, Default)]
pub struct CfiSections<'a> {
    /// The address that the image would like to be loaded at (VA); often 0.
    pub preferred_base: u64,
    /// `.eh_frame` (Mach-O: `__eh_frame`). Where only the header tells its place, it goes to the end
    /// of its segment, and ends with an entry of length 0.
    pub eh_frame: Option<Section<'a>>,
    /// `.eh_frame_hdr`.
    pub eh_frame_hdr: Option<Section<'a>>,
    /// `.debug_frame`, which is not loaded; a compressed one is left out.
    pub debug_frame: Option<&'a [u8]>,
    /// What text-relative pointers count from: RVA of `.text`.
    pub text: Option<u32>,
    /// What data-relative pointers count from: RVA of `.got`.
    pub got: Option<u32>,
}
