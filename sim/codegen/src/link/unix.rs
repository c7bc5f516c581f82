//! ELF images with CFI for Unix.

use super::super::cfi::{self, EhFrame, FrameRange};
use super::super::elf::{ElfFile, ElfSection, ElfSymbol, SectionKind};
use super::super::lower::{Helper, HelperKind, Part, PartKind};
use super::super::marks::PlacedHelper;
use super::super::nibble_map::NibbleMap;
use super::super::program::Program;
use super::super::shape::CallingConvention;
use super::place::{CELLS_RVA, Encoded, PAGE};
use super::{Format, LinkError, Unit};

/// Instructions that one FDE describes.
struct Run<'a> {
    /// First part.
    part: &'a Part,
    /// Index of the instruction after the last one.
    end: u32,
}

impl Encoded {
    /// Returns the unit with the bytes of an ELF file.
    pub(super) fn finish_elf(
        &self,
        program: &Program,
        name: &'static str,
        cells: &[u8],
    ) -> Result<Unit, LinkError> {
        let unwritable = LinkError::Image { kind: self.kind };
        let code_rva = (self.start - self.kind.base()) as u32;
        let lsda_rva = (code_rva + self.code.len() as u32).next_multiple_of(PAGE as u32);
        let (ranges, symbols) = self.frames(program, lsda_rva);
        let handlers = ranges.iter().filter(|range| range.handler.is_some()).count();
        let lsda = cfi::EMPTY_LSDA.repeat(handlers);
        let header_rva = (lsda_rva + lsda.len() as u32).next_multiple_of(8);
        let EhFrame { header, frames } = cfi::write(&ranges, header_rva).ok_or(unwritable)?;
        let frames_rva = header_rva + EhFrame::frames_from_header(ranges.len() as u32);

        let section = |name, rva, bytes, kind| ElfSection { name, rva, bytes, kind };
        let linkage = self.linkage_end().map_or(0, |end| end.saturating_sub(code_rva));
        let (plt, text) = self.code.split_at_checked(linkage as usize).ok_or(unwritable)?;
        let mut sections = vec![section(".data", CELLS_RVA as u32, cells, SectionKind::ReadWrite)];
        if !plt.is_empty() {
            sections.push(section(".plt", code_rva, plt, SectionKind::Linkage));
        }
        sections.push(section(".text", code_rva + linkage, text, SectionKind::Code));
        if !lsda.is_empty() {
            sections.push(section(".gcc_except_table", lsda_rva, &lsda, SectionKind::ReadOnly));
        }
        sections.push(section(".eh_frame_hdr", header_rva, &header, SectionKind::ReadOnly));
        sections.push(section(".eh_frame", frames_rva, &frames, SectionKind::Frames));
        let file = ElfFile {
            name,
            sections: &sections,
            frame_header: (header_rva, header.len() as u32),
            symbols: &symbols,
        };
        Ok(Unit {
            kind: self.kind,
            format: Format::Elf,
            convention: CallingConvention::SystemV,
            base: self.kind.base(),
            bytes: file.write().map_err(|_| unwritable)?,
            runtime_functions: Vec::new(),
            unwind_data: (frames_rva, frames.len() as u32),
            cells: (self.cells.base, cells.to_vec()),
            nibble_map: NibbleMap::new(),
            stack_cell: self.cells.stack(),
        })
    }

    /// Returns the end of the procedure linkage table (RVA), which begins at the start of the code.
    fn linkage_end(&self) -> Option<u32> {
        let mut helpers = self.lowered.helpers.iter();
        let table = helpers.find(|helper| helper.kind == HelperKind::Plt)?;
        Some(self.end_rva(table.end))
    }

    /// Returns the ranges that FDEs describe, and the symbols of the same ranges.
    fn frames(&self, program: &Program, lsda_rva: u32) -> (Vec<FrameRange>, Vec<ElfSymbol>) {
        let (mut ranges, mut symbols) = (Vec::new(), Vec::new());
        let mut next_lsda = lsda_rva;
        for Run { part, end } in self.frame_runs() {
            let Some(function) = program.functions.get(part.function.index()) else { continue };
            let mut range = self.frame(part.begin, end);
            if function.shape.handler {
                range.handler = Some((self.rva(self.lowered.personality), next_lsda));
                next_lsda += cfi::EMPTY_LSDA.len() as u32;
            }
            let is_entry = self.lowered.entries.contains(&(part.function, part.begin));
            let suffix = match (is_entry, part.funclet) {
                (true, _) => "",
                (false, Some(_)) if part.kind == PartKind::Root => ".funclet",
                (false, _) => ".cold",
            };
            symbols.push(ElfSymbol {
                name: format!("{}{suffix}", function.name),
                rva: range.begin,
                size: range.size,
                exported: is_entry,
            });
            ranges.push(range);
        }
        for helper in &self.lowered.helpers {
            let range = self.frame(helper.begin, helper.end);
            symbols.extend(helper.kind.symbol().map(|name| ElfSymbol {
                name: name.to_owned(),
                rva: range.begin,
                size: range.size,
                exported: false,
            }));
            ranges.push(range);
        }
        (ranges, symbols)
    }

    /// Returns the runs of parts. Consecutive parts of one function form one run; only a funclet or
    /// a separate part has an FDE of its own.
    fn frame_runs(&self) -> Vec<Run<'_>> {
        let mut runs: Vec<Run<'_>> = Vec::new();
        for part in &self.lowered.parts {
            let chained = matches!(part.kind, PartKind::Chained(_));
            let apart = self.lowered.pieces.contains(&part.begin);
            match runs.last_mut() {
                Some(run) if chained && !apart => run.end = part.end,
                _ => runs.push(Run { part, end: part.end }),
            }
        }
        runs
    }

    /// Adds the helpers: code that belongs to no function.
    pub(super) fn place_helpers(&self, program: &Program, into: &mut Vec<PlacedHelper>) {
        let end = |index: u32| self.kind.base() + u64::from(self.end_rva(index));
        for helper in &self.lowered.helpers {
            let mut begin = helper.begin;
            let mut name = helper.kind.name().to_owned();
            if helper.kind == HelperKind::Plt {
                for (id, entry) in &self.lowered.plt {
                    into.push(PlacedHelper { range: self.address(begin)..end(*entry), name });
                    let function = program.functions.get(id.index());
                    name = format!("{}@plt", function.map_or("", |function| &function.name));
                    begin = *entry;
                }
            }
            into.push(PlacedHelper { range: self.address(begin)..end(helper.end), name });
        }
    }

    /// Returns the contents of the procedure linkage table's slots (VAs).
    pub(super) fn plt_slots(&self) -> impl Iterator<Item = u64> {
        self.lowered.plt_slots.iter().map(|index| self.address(*index))
    }

    /// Returns the return address of signal handlers (VA).
    pub(super) fn signal_return(&self) -> Option<u64> {
        let is_it = |helper: &&Helper| helper.kind == HelperKind::SignalTrampoline;
        let trampoline = self.lowered.helpers.iter().find(is_it)?;
        Some(self.address(trampoline.begin + 1))
    }

    fn frame(&self, begin: u32, end: u32) -> FrameRange {
        let (row, events) = self.lowered.rows.of(begin, end);
        let first = self.rva(begin);
        let events = events.iter().map(|(before, event)| (self.rva(*before) - first, *event));
        FrameRange {
            begin: first,
            size: self.end_rva(end) - first,
            row,
            events: events.collect(),
            handler: None,
        }
    }
}
