//! Each row of each FDE, against gimli. The object crate finds the section.

use super::Comparison;
use clr_unwind::cfi::{CfaRule, CfiTable, Column, Expression, FrameSection, RegisterRule, Row};
use clr_unwind::{ElfImage, Gpr, MachoImage};
use gimli::{
    BaseAddresses, CieOrFde, EhFrame, FrameDescriptionEntry, LittleEndian, UnwindContext,
    UnwindExpression, UnwindSection as _, UnwindTableRow,
};
use object::macho::MachHeader64;
use object::read::elf::ElfFile64;
use object::read::macho::MachOFile;
use object::{Object as _, ObjectSection as _};

type Reader<'a> = gimli::EndianSlice<'a, LittleEndian>;

pub(super) fn compare_elf(image: &[u8], comparison: &mut Comparison) -> Option<()> {
    let ours = ElfImage::parse(image).ok()?;
    let table = CfiTable::new(&ours.cfi(), ours.sections());
    let file = ElfFile64::<object::LittleEndian>::parse(image).ok()?;
    // A file without section headers has its frames all the same: the program headers name them.
    let section = file.section_by_name(".eh_frame");
    let section = section.and_then(|section| Some((section.address(), section.data().ok()?)));
    let base = ours.preferred_base();
    let own = || ours.cfi().eh_frame.map(|it| (base + u64::from(it.rva), it.bytes));
    let Some(section) = section.or_else(own) else { return Some(()) };
    compare(&table, base, section, comparison);
    Some(())
}

pub(super) fn compare_macho(image: &[u8], comparison: &mut Comparison) -> Option<()> {
    let ours = MachoImage::parse(image).ok()?;
    let table = CfiTable::new(&ours.cfi(), ours.sections());
    let file = MachOFile::<MachHeader64<object::LittleEndian>>::parse(image).ok()?;
    if let Some(section) = file.section_by_name("__eh_frame") {
        let section = (section.address(), section.data().ok()?);
        compare(&table, ours.preferred_base(), section, comparison);
    }
    Some(())
}

/// Compares all rows of `section` (VA, bytes) with those of `table`.
fn compare(
    table: &CfiTable<'_>,
    base: u64,
    (address, bytes): (u64, &[u8]),
    comparison: &mut Comparison,
) {
    let bases = BaseAddresses::default().set_eh_frame(address);
    let section = EhFrame::new(bytes, LittleEndian);
    let mut context = UnwindContext::new();
    let mut entries = section.entries(&bases);
    loop {
        let partial = match entries.next() {
            Ok(Some(CieOrFde::Fde(partial))) => partial,
            Ok(Some(CieOrFde::Cie(_))) => continue,
            Ok(None) => return,
            Err(_) => {
                return comparison.differ("rest of the section, which gimli refuses", 0);
            }
        };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else {
            comparison.differ("entry that gimli refuses", 0);
            continue;
        };
        let range = fde.initial_address().wrapping_sub(base)..fde.end_address().wrapping_sub(base);
        // Functions that the linker has removed keep entries at address 0, or with no bytes.
        if range.is_empty() || fde.initial_address() == 0 {
            continue;
        }
        let rva = range.start as u32;
        comparison.entries += 1;
        let Some(function) = table.function(rva) else {
            comparison.differ("function that clr-unwind does not have", rva);
            continue;
        };
        let own = u64::from(function.start)..u64::from(function.end);
        comparison.compare("range of a function", rva, &own, &range);
        compare_rows(table, base, &section, (&bases, &mut context), &fde, comparison);
    }
}

fn compare_rows<'a>(
    table: &CfiTable<'_>,
    base: u64,
    section: &EhFrame<Reader<'a>>,
    (bases, context): (&BaseAddresses, &mut UnwindContext<usize>),
    fde: &FrameDescriptionEntry<Reader<'a>>,
    comparison: &mut Comparison,
) {
    let column = fde.cie().return_address_register();
    let start = fde.initial_address().wrapping_sub(base) as u32;
    let Ok(mut rows) = fde.rows(section, bases, context) else {
        return comparison.differ("rows that gimli refuses", start);
    };
    loop {
        let theirs = match rows.next_row() {
            Ok(Some(theirs)) => theirs,
            Ok(None) => return,
            Err(_) => {
                // Both refuse a program if either does.
                if table.row(start).is_ok() {
                    comparison.differ("row that gimli refuses", start);
                }
                return;
            }
        };
        let first = theirs.start_address().wrapping_sub(base);
        let end = theirs.end_address().min(fde.end_address()).wrapping_sub(base);
        if first >= end {
            continue;
        }
        comparison.parts += 1;
        for rva in [first as u32, (end - 1) as u32] {
            let ours = match table.row(rva) {
                Ok(Some(ours)) => ours,
                Ok(None) => {
                    comparison.differ("row that clr-unwind does not have", rva);
                    continue;
                }
                Err(_) => {
                    let kind = match theirs.cfa() {
                        gimli::CfaRule::RegisterAndOffset { offset: ..0, .. } => {
                            "negative size of the frame, which clr-unwind refuses"
                        }
                        _ => "row that clr-unwind refuses",
                    };
                    comparison.differ(kind, rva);
                    continue;
                }
            };
            compare_row(&ours, theirs, column, rva, comparison);
            let is_signal_frame = fde.is_signal_trampoline();
            comparison.compare("signal frame", rva, &ours.signal_frame, &is_signal_frame);
        }
    }
}

pub(crate) fn compare_row(
    ours: &Row,
    theirs: &UnwindTableRow<usize>,
    return_address: gimli::Register,
    rva: u32,
    comparison: &mut Comparison,
) {
    let cfa = match theirs.cfa() {
        gimli::CfaRule::RegisterAndOffset { register, offset } => i32::try_from(*offset)
            .ok()
            .map(|offset| CfaRule::Register { register: Column(register.0), offset }),
        gimli::CfaRule::Expression(expression) => Some(CfaRule::Expression(convert(expression))),
    };
    comparison.compare("canonical frame address", rva, &Some(ours.cfa), &cfa);
    // A register without a rule keeps its value, too.
    let said = |rule: Option<RegisterRule>| rule.filter(|rule| *rule != RegisterRule::SameValue);
    for (register, own) in Gpr::ALL.into_iter().zip(ours.registers) {
        let column = gimli::Register(Column::from(register).0);
        match rule(theirs, column) {
            Ok(rule) => comparison.compare("register", rva, &said(own), &said(rule)),
            Err(kind) => comparison.differ(kind, rva),
        }
    }
    match rule(theirs, return_address) {
        Ok(rule) => comparison.compare("return address", rva, &ours.return_address, &rule),
        Err(kind) => comparison.differ(kind, rva),
    }
}

fn rule(
    row: &UnwindTableRow<usize>,
    column: gimli::Register,
) -> Result<Option<RegisterRule>, &'static str> {
    let small = |offset: i64| i32::try_from(offset).map_err(|_| "offset beyond 2 GB");
    let Some(rule) = row.register(column) else { return Ok(None) };
    Ok(Some(match rule {
        gimli::RegisterRule::Undefined => RegisterRule::Undefined,
        gimli::RegisterRule::SameValue => RegisterRule::SameValue,
        gimli::RegisterRule::Offset(offset) => RegisterRule::Offset(small(offset)?),
        gimli::RegisterRule::ValOffset(offset) => RegisterRule::ValOffset(small(offset)?),
        gimli::RegisterRule::Register(register) => RegisterRule::Register(Column(register.0)),
        gimli::RegisterRule::Expression(expression) => {
            RegisterRule::Expression(convert(&expression))
        }
        gimli::RegisterRule::ValExpression(expression) => {
            RegisterRule::ValExpression(convert(&expression))
        }
        _ => return Err("rule that clr-unwind does not know"),
    }))
}

pub(crate) fn convert(expression: &UnwindExpression<usize>) -> Expression {
    Expression {
        section: FrameSection::EhFrame,
        offset: expression.offset as u32,
        len: expression.length as u32,
    }
}
