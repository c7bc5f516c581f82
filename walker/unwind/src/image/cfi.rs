//! The sections with an image's call frame information.

use super::Section;

/// The sections of an image with DWARF call frame information. Any of them may be missing.
///
/// Addresses in these sections assume that the image is at its preferred base; RVAs count from
/// there.
#[derive(Clone, Copy, Debug, Default)]
pub struct CfiSections<'a> {
    /// The preferred load address (VA); often 0.
    pub preferred_base: u64,
    /// `.eh_frame` (Mach-O: `__eh_frame`). If its place is known only from the header, it extends
    /// to the end of its segment, and an entry of length 0 ends it.
    pub eh_frame: Option<Section<'a>>,
    /// `.eh_frame_hdr`.
    pub eh_frame_hdr: Option<Section<'a>>,
    /// `.debug_frame`, which is not loaded; `None` if it is compressed.
    pub debug_frame: Option<&'a [u8]>,
    /// RVA of `.text`, the base of text-relative pointers.
    pub text: Option<u32>,
    /// RVA of `.got`, the base of data-relative pointers.
    pub got: Option<u32>,
}
