//! Encoding of rows as `.eh_frame` and `.eh_frame_hdr`.

use super::{Cfa, Event, Row, Rule};
use clr_unwind::Gpr;
use gimli::constants::{
    DW_EH_PE_datarel, DW_EH_PE_omit, DW_EH_PE_pcrel, DW_EH_PE_sdata4, DW_EH_PE_udata4,
    DW_EH_PE_uleb128, DW_OP_and, DW_OP_ge, DW_OP_plus, DW_OP_shl,
};
use gimli::write::{
    Address, CallFrameInstruction as Instruction, CommonInformationEntry as Cie,
    EhFrame as Section, EndianVec, Expression, FrameDescriptionEntry as Fde, FrameTable,
};
use gimli::{DwEhPe, Encoding, Format, LittleEndian, Register, X86_64};

/// A range of code with an FDE.
#[derive(Clone, Debug)]
pub(in super::super) struct FrameRange {
    /// RVA of the first byte.
    pub begin: u32,
    /// Size in bytes.
    pub size: u32,
    /// The row at the first instruction.
    pub row: Row,
    /// Events with the offset in bytes from `begin` before which each takes effect, ascending.
    pub events: Vec<(u32, Event)>,
    /// RVAs of the language-specific handler and of its data.
    pub handler: Option<(u32, u32)>,
}

/// The sections that describe frames.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct EhFrame {
    /// Content of `.eh_frame_hdr`.
    pub header: Vec<u8>,
    /// Content of `.eh_frame`, which follows the header.
    pub frames: Vec<u8>,
}

impl EhFrame {
    /// Sizes of the header's fields before its table, and of an entry, in bytes.
    const HEADER: u32 = 12;
    const ENTRY: u32 = 8;

    /// Returns the distance in bytes from the start of `.eh_frame_hdr` to `.eh_frame` for `count`
    /// FDEs.
    pub(in super::super) const fn frames_from_header(count: u32) -> u32 {
        // Both sections are aligned to 8 bytes.
        (Self::HEADER + Self::ENTRY * count).next_multiple_of(8)
    }
}

const PCREL: DwEhPe = DwEhPe(DW_EH_PE_pcrel.0 | DW_EH_PE_sdata4.0);

/// Returns the DWARF number of a register.
pub(super) const fn dwarf(register: Gpr) -> Register {
    use X86_64 as X;
    let low = [X::RAX, X::RCX, X::RDX, X::RBX, X::RSP, X::RBP, X::RSI, X::RDI];
    let high = [X::R8, X::R9, X::R10, X::R11, X::R12, X::R13, X::R14, X::R15];
    let number = register.number() as usize;
    if number < 8 { low[number] } else { high[number - 8] }
}

/// The language-specific data of a function that catches nothing: no landing pads, no types, and no
/// call sites.
pub(in super::super) const EMPTY_LSDA: [u8; 4] =
    [DW_EH_PE_omit.0, DW_EH_PE_omit.0, DW_EH_PE_uleb128.0, 0];

/// Writes the sections for a `.eh_frame_hdr` at `rva`. Returns `None` if a value does not fit its
/// field.
pub(in super::super) fn write(ranges: &[FrameRange], rva: u32) -> Option<EhFrame> {
    let frames_rva = rva.checked_add(EhFrame::frames_from_header(ranges.len() as u32))?;
    let mut table = FrameTable::default();
    for range in ranges {
        let address = |rva: u32| Address::Constant(u64::from(rva).wrapping_sub(frames_rva.into()));
        let mut cie = Cie::new(ENCODING, 1, -8, X86_64::RA);
        cie.fde_address_encoding = PCREL;
        cie.signal_trampoline = range.row.signal;
        if let Some((handler, _)) = range.handler {
            cie.personality = Some((PCREL, address(handler)));
            cie.lsda_encoding = Some(PCREL);
        }
        // A register without a rule keeps the caller's value. Assemblers write no initial rules for
        // `.cfi_startproc simple`, which interrupt handlers use.
        let mut written = Written { row: None, fde: Fde::new(address(range.begin), range.size) };
        if !range.row.signal {
            let entry = Row::at_entry(super::EntryForm::Call);
            cie.add_instruction(Instruction::Cfa(X86_64::RSP, 8));
            cie.add_instruction(Instruction::Offset(X86_64::RA, -8));
            written.row = Some(entry);
        }
        let cie = table.add_cie(cie);
        written.fde.lsda = range.handler.map(|(_, data)| address(data));
        written.row(0, &range.row);
        written.events(&range.events);
        table.add_fde(cie, written.fde);
    }
    let mut section = Section(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut section).ok()?;
    let mut frames = section.0.into_vec();
    // A length of 0 ends the section.
    frames.extend([0; 4]);
    let header = header(&frames, rva, frames_rva)?;
    Some(EhFrame { header, frames })
}

const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: 8 };

/// An FDE being written.
struct Written {
    /// The row that the instructions written so far describe, `None` before the first row.
    row: Option<Row>,
    fde: Fde,
}

impl Written {
    fn events(&mut self, events: &[(u32, Event)]) {
        for (index, (at, event)) in events.iter().enumerate() {
            match event {
                Event::Row(row) => {
                    // A later row before the same instruction replaces this one.
                    let next = events.get(index + 1);
                    if !next.is_some_and(|next| matches!(next, (same, Event::Row(_)) if same == at))
                    {
                        self.row(*at, row);
                    }
                }
                Event::Remember => {
                    if comes_back(events.get(index + 1..).unwrap_or_default()) {
                        self.fde.add_instruction(*at, Instruction::RememberState);
                    }
                }
                Event::Restore(row) => {
                    self.fde.add_instruction(*at, Instruction::RestoreState);
                    self.row = Some(*row);
                }
            }
        }
    }

    /// Adds the instructions for the differences from the previous row.
    fn row(&mut self, at: u32, row: &Row) {
        let before = self.row.replace(*row);
        let mut add = |instruction| self.fde.add_instruction(at, instruction);
        if before.is_none_or(|before| before.cfa != row.cfa) {
            add(cfa(before.map(|before| before.cfa), row.cfa));
        }
        for register in Gpr::ALL {
            let of = |row: &Row| row.registers.get(usize::from(register.number())).copied();
            let rule = of(row).unwrap_or_default();
            if rule != before.as_ref().and_then(of).unwrap_or_default() {
                let register = dwarf(register);
                add(match rule {
                    Rule::Same => Instruction::Restore(register),
                    Rule::At(offset) => Instruction::Offset(register, offset),
                    Rule::By(base, offset) => {
                        Instruction::Expression(register, above(base, offset))
                    }
                    Rule::In(other) => Instruction::Register(register, dwarf(other)),
                });
            }
        }
        if before.is_none_or(|before| before.return_address != row.return_address) {
            match row.return_address {
                Rule::At(offset) => add(Instruction::Offset(X86_64::RA, offset)),
                Rule::By(base, offset) => {
                    add(Instruction::Expression(X86_64::RA, above(base, offset)));
                }
                Rule::Same | Rule::In(_) => {}
            }
        }
        if before.map_or(0, |before| before.arguments) != row.arguments {
            add(Instruction::ArgsSize(row.arguments.cast_unsigned()));
        }
    }
}

/// Returns true if the events restore the row that was remembered before them.
fn comes_back(events: &[(u32, Event)]) -> bool {
    let mut depth = 0_u32;
    for (_, event) in events {
        match event {
            Event::Row(_) => {}
            Event::Remember => depth += 1,
            Event::Restore(_) if depth == 0 => return true,
            Event::Restore(_) => depth -= 1,
        }
    }
    false
}

fn above(register: Gpr, offset: i32) -> Expression {
    let mut expression = Expression::new();
    expression.op_breg(dwarf(register), offset.into());
    expression
}

/// Returns the shortest instruction that describes the new CFA.
fn cfa(before: Option<Cfa>, now: Cfa) -> Instruction {
    let (register, offset) = match now {
        Cfa::Above(register, offset) => (register, offset),
        Cfa::Word(register, offset) => {
            let mut expression = above(register, offset);
            expression.op_deref();
            return Instruction::CfaExpression(expression);
        }
        Cfa::Plt => {
            // rsp + 8 + ((rip & 15) >= 11) << 3: the push ends 11 bytes into the entry.
            let mut expression = above(Gpr::Rsp, 8);
            expression.op_breg(X86_64::RA, 0);
            expression.op_constu(15);
            expression.op(DW_OP_and);
            expression.op_constu(11);
            expression.op(DW_OP_ge);
            expression.op_constu(3);
            expression.op(DW_OP_shl);
            expression.op(DW_OP_plus);
            return Instruction::CfaExpression(expression);
        }
    };
    match before {
        Some(Cfa::Above(same, _)) if same == register => Instruction::CfaOffset(offset),
        Some(Cfa::Above(_, same)) if same == offset => Instruction::CfaRegister(dwarf(register)),
        _ => Instruction::Cfa(dwarf(register), offset),
    }
}

/// Returns `.eh_frame_hdr`: the addresses of the FDEs, sorted by the start of their code.
fn header(frames: &[u8], rva: u32, frames_rva: u32) -> Option<Vec<u8>> {
    const VERSION: u8 = 1;
    let from = |to: u32, from: u32| to.wrapping_sub(from).to_le_bytes();
    let mut table = Vec::new();
    let mut at = 0;
    while let Some(length) = u32_at(frames, at).filter(|length| *length > 0) {
        // In a CIE this field is 0.
        if u32_at(frames, at + 4)? != 0 {
            let field = frames_rva.wrapping_add(at + 8);
            table.push((field.wrapping_add(u32_at(frames, at + 8)?), frames_rva.wrapping_add(at)));
        }
        at = at.checked_add(4)?.checked_add(length)?;
    }
    table.sort_unstable();
    let encodings = [PCREL.0, DW_EH_PE_udata4.0, DW_EH_PE_datarel.0 | DW_EH_PE_sdata4.0];
    let mut header = vec![VERSION];
    header.extend(encodings);
    header.extend(from(frames_rva, rva.wrapping_add(4)));
    header.extend((table.len() as u32).to_le_bytes());
    for (begin, fde) in table {
        header.extend(from(begin, rva));
        header.extend(from(fde, rva));
    }
    Some(header)
}

fn u32_at(bytes: &[u8], at: u32) -> Option<u32> {
    let bytes = bytes.get(at as usize..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}
