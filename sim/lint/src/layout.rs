//! What the headers of an image say of its code, beside its unwind data.

use crate::language::Language;
use clr_unwind::Section;
use core::ops::Range;

/// What the headers of an image say of its code. Of a region without headers nothing is known, and what has no
/// unwind data there is not looked for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Layout<'a> {
    /// The ranges of code (RVAs), ascending.
    pub code: Vec<Range<u32>>,
    /// RVAs at which a function starts, ascending: by symbols, or by a table of them.
    pub starts: Vec<u32>,
    /// RVA at which the system enters the image. Every stack ends there, so it needs no unwind data.
    pub entry: Option<u32>,
    /// RVA of the table of RUNTIME_FUNCTIONs.
    pub function_table: Option<u32>,
    /// `.eh_frame_hdr`, which unwinders search for a function.
    pub search_table: Option<Section<'a>>,
    /// The languages whose functions follow a convention of their own, with their ranges (RVAs).
    pub languages: Vec<(Range<u32>, Language)>,
}

impl Layout<'_> {
    /// Returns true if a function starts at `rva`.
    pub(crate) fn is_start(&self, rva: u32) -> bool {
        self.starts.binary_search(&rva).is_ok()
    }

    /// Returns the language of the function at `rva`, if it has a convention of its own.
    pub(crate) fn language(&self, rva: u32) -> Option<Language> {
        self.languages.iter().find(|(range, _)| range.contains(&rva)).map(|(_, it)| *it)
    }
}
