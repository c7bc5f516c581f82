//! Shared libraries of Unix whose functions consist of a prologue and filler: ELF files with CFI
//! around code that the caller has laid out.

use super::cfi::{self, EhFrame, Event, FrameRange, Row};
use super::elf::{ElfFile, ElfSection, ElfSymbol, SectionKind};
use super::shape::EntryForm;
use clr_unwind::Gpr;

/// Alignment of segments in bytes.
const PAGE: u32 = 0x1000;

/// A function. Each of its first instructions is one byte long and pushes a register; its locals
/// are allocated some bytes later.
#[derive(Clone, Debug)]
pub struct PlainFunction<'a> {
    /// Name of its symbol.
    pub name: &'a str,
    /// RVA of the first byte.
    pub begin: u32,
    /// Size in bytes.
    pub size: u32,
    /// Pushed registers, in order.
    pub pushes: &'a [Gpr],
    /// Bytes of locals.
    pub locals: u64,
    /// Offset of the instruction after the allocation of the locals, from the beginning.
    pub prologue: u8,
}

/// Returns the bytes of a library whose code is `text`, after a page of headers. Returns `None` if
/// a value does not fit its field.
pub fn library(name: &str, text: &[u8], functions: &[PlainFunction<'_>]) -> Option<Vec<u8>> {
    let text_end = PAGE.checked_add(u32::try_from(text.len()).ok()?)?;
    let header_rva = text_end.checked_next_multiple_of(PAGE)?;
    let ranges: Vec<_> = functions.iter().map(PlainFunction::range).collect::<Option<_>>()?;
    let EhFrame { header, frames } = cfi::write(&ranges, header_rva)?;
    let frames_rva = header_rva + EhFrame::frames_from_header(ranges.len() as u32);
    let section = |name, rva, bytes, kind| ElfSection { name, rva, bytes, kind };
    let symbols: Vec<_> = functions.iter().map(PlainFunction::symbol).collect();
    let file = ElfFile {
        name,
        sections: &[
            section(".text", PAGE, text, SectionKind::Code),
            section(".eh_frame_hdr", header_rva, &header, SectionKind::ReadOnly),
            section(".eh_frame", frames_rva, &frames, SectionKind::Frames),
        ],
        frame_header: (header_rva, header.len() as u32),
        symbols: &symbols,
    };
    file.write().ok()
}

/// RVA of a library's code.
pub const LIBRARY_TEXT: u32 = PAGE;

impl PlainFunction<'_> {
    fn range(&self) -> Option<FrameRange> {
        let row = Row::at_entry(EntryForm::Call);
        let mut now = row;
        let mut events = Vec::new();
        for (register, pushed) in self.pushes.iter().zip(1..) {
            now.pushed(*register, true);
            events.push((pushed, Event::Row(now)));
        }
        if self.locals > 0 {
            let cfa = i32::try_from(self.locals).ok()?.checked_add(now.rsp)?;
            now.at_rsp(cfa);
            events.push((u32::from(self.prologue), Event::Row(now)));
        }
        Some(FrameRange { begin: self.begin, size: self.size, row, events, handler: None })
    }

    fn symbol(&self) -> ElfSymbol {
        let Self { name, begin, size, .. } = *self;
        ElfSymbol { name: name.to_owned(), rva: begin, size, exported: true }
    }
}
