//! Languages whose compilers follow a convention of their own.

use clr_unwind::named;
use clr_unwind::{Convention, Gpr, RegisterSet, Sections};
use core::ops::Range;

named! {
    /// A language whose functions preserve other registers than the platform's convention says. What it
    /// lets a callee overwrite is not judged: its unwind data has nothing to say of it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Language {
        /// Go by its own compiler: a function may overwrite all but rsp and rbp, and arguments are in rax, rbx,
        /// rcx and more ("Go internal ABI specification").
        Go = "Go",
        /// OCaml by ocamlopt: no register is preserved, arguments are in rax, rbx, rdi and more
        /// (`asmcomp/amd64/proc.ml`).
        OCaml = "OCaml",
        /// Haskell by GHC: code is entered by jumps, rbp is the stack pointer of the language, and no register is
        /// preserved.
        Haskell = "Haskell",
        /// Delphi: the platform's convention, but parts of functions are called with the frame of their
        /// parent.
        Delphi = "Delphi",
    }
}

impl Language {
    /// Returns the registers of the caller that a function preserves, of those that `convention` names.
    pub(crate) fn preserved(self, convention: Convention) -> RegisterSet {
        match self {
            Self::Go => RegisterSet::of(&[Gpr::Rsp, Gpr::Rbp]),
            Self::OCaml | Self::Haskell => RegisterSet::of(&[Gpr::Rsp]),
            Self::Delphi => convention.nonvolatile(),
        }
    }

    /// Returns the languages of an image that have a convention of their own, with the ranges of their
    /// functions (RVAs). `code` are the ranges of all code, `symbols` the names of functions, ascending by
    /// RVA, and `base` is the address that the image prefers.
    ///
    /// Only Go and, with symbols, OCaml say where their functions are. Of the others all functions of the
    /// image are taken to follow the convention, those in C as well.
    pub fn find(
        sections: &Sections<'_>,
        code: &[Range<u32>],
        symbols: &[(u32, &str)],
        base: u64,
    ) -> Vec<(Range<u32>, Self)> {
        let mut found = go(sections, base);
        let mut whole = |text: &str, language| {
            if has(sections, text) {
                found.extend(code.iter().map(|range| (range.clone(), language)));
            }
        };
        whole("GHCRTS", Self::Haskell);
        whole("Embarcadero Delphi for Win64 compiler", Self::Delphi);
        if has(sections, "OCAMLRUNPARAM") {
            let own = ocaml(symbols);
            let all = if own.is_empty() { code } else { &[] };
            let own = own.into_iter().chain(all.iter().cloned());
            found.extend(own.map(|range| (range, Self::OCaml)));
        }
        found
    }
}

/// Returns true if a text is anywhere in the sections.
fn has(sections: &Sections<'_>, text: &str) -> bool {
    sections.as_slice().iter().any(|section| position(section.bytes, text.as_bytes()).is_some())
}

/// Returns the first place of `wanted` in `bytes`.
fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let (first, mut from) = (*wanted.first()?, 0);
    loop {
        let left = bytes.get(from..)?;
        let at = from + left.iter().position(|byte| *byte == first)?;
        if bytes.get(at..)?.starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Returns the range of Go's functions, by the header of the table that Go's runtime finds them in
/// (`pclntab`, as Go 1.18 and later write it).
fn go(sections: &Sections<'_>, base: u64) -> Vec<(Range<u32>, Language)> {
    // The last bytes are the smallest size of an instruction, and the size of an address.
    const MAGIC: [[u8; 8]; 2] =
        [[0xF1, 0xFF, 0xFF, 0xFF, 0, 0, 1, 8], [0xF0, 0xFF, 0xFF, 0xFF, 0, 0, 1, 8]];
    for section in sections.as_slice() {
        for magic in MAGIC {
            let mut from = 0;
            while let Some(at) =
                section.bytes.get(from..).and_then(|left| Some(from + position(left, &magic)?))
            {
                let table = section.bytes.get(at..).unwrap_or_default();
                if let Some(range) = go_functions(table, sections, base) {
                    return vec![(range, Language::Go)];
                }
                from = at + magic.len();
            }
        }
    }
    Vec::new()
}

/// Returns the range of the functions in a table that begins with its header.
fn go_functions(table: &[u8], sections: &Sections<'_>, base: u64) -> Option<Range<u32>> {
    let word = |n: usize| {
        let bytes = table.get(8 + 8 * n..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    };
    let (count, text, functions) = (word(0)?, word(2)?, word(7)?);
    // Pairs of 32-bit offsets, and the end of the last function.
    let last = functions.checked_add(count.checked_mul(8)?)?;
    let end = table.get(usize::try_from(last).ok()?..)?.first_chunk()?;
    // Where the image is moved when it is loaded, the address may be left to the loader.
    let text = match text.checked_sub(base).and_then(|rva| u32::try_from(rva).ok()) {
        Some(rva) if sections.find(rva).is_some_and(|section| section.executable) => rva,
        _ => sections.code().map(|range| range.start).min()?,
    };
    Some(text..text.checked_add(u32::from_le_bytes(*end))?)
}

/// Returns the ranges between the symbols that ocamlopt puts around each module.
fn ocaml(symbols: &[(u32, &str)]) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    let mut begin = None;
    for (rva, name) in symbols {
        if !name.starts_with("caml") {
            continue;
        }
        if name.ends_with("code_begin") {
            begin = Some(*rva);
        } else if name.ends_with("code_end")
            && let Some(begin) = begin.take()
        {
            ranges.push(begin..*rva);
        }
    }
    ranges
}
