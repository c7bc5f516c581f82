//! Each entry of compact unwind information, against macho-unwind-info. The object crate finds the
//! section.

use super::Comparison;
use clr_unwind::MachoImage;
#[cfg(test)]
use clr_unwind::compact::Encoding;
use clr_unwind::compact::{Layout, SavedRegisters};
use macho_unwind_info::UnwindInfo;
use macho_unwind_info::opcodes::{OpcodeX86_64, RegisterNameX86_64};
use object::macho::MachHeader64;
use object::read::macho::MachOFile;
use object::{LittleEndian, Object as _, ObjectSection as _};

/// A layout as both readers can say it: its form, its two numbers, and the saved registers with the
/// distances of their slots below the canonical frame address (bytes).
pub(super) type Described = (&'static str, u32, u32, Vec<(&'static str, u32)>);

pub(super) fn compare(image: &[u8], comparison: &mut Comparison) -> Option<()> {
    let ours = MachoImage::parse(image).ok()?;
    let file = MachOFile::<MachHeader64<LittleEndian>>::parse(image).ok()?;
    let Some(section) = file.section_by_name("__unwind_info") else { return Some(()) };
    let section = UnwindInfo::parse(section.data().ok()?).ok()?;
    let table = ours.compact_unwind();
    let mut listed = table.entries();
    let mut functions = section.functions();
    while let Ok(Some(theirs)) = functions.next() {
        let Some(Ok(own)) = listed.next() else {
            comparison.differ("entry that clr-unwind does not list", theirs.start_address);
            return Some(());
        };
        let rva = own.range.start;
        comparison.entries += 1;
        comparison.parts += 1;
        let range = theirs.start_address..theirs.end_address;
        comparison.compare("range of an entry", rva, &own.range, &range);
        comparison.compare("encoding", rva, &own.encoding.0, &theirs.opcode);
        for rva in own.range.clone() {
            let found = table.find(rva).ok().flatten();
            comparison.compare("look-up", rva, &found.as_ref(), &Some(&own));
        }
        let layout = own.encoding.layout().ok().map(own_layout);
        let described = described(&OpcodeX86_64::parse(theirs.opcode));
        comparison.compare("layout", rva, &layout, &described);
    }
    if listed.next().is_some() {
        comparison.differ("entry that macho-unwind-info does not list", 0);
    }
    Some(())
}

fn own_layout(layout: Layout) -> Described {
    let sorted = |saved: SavedRegisters| {
        let saved = saved.iter().map(|(register, below)| (register.name(), u32::from(below)));
        let mut saved: Vec<_> = saved.collect();
        saved.sort_unstable();
        saved
    };
    match layout {
        Layout::Nothing => ("nothing", 0, 0, Vec::new()),
        Layout::FramePointer(saved) => ("rbp", 0, 0, sorted(saved)),
        Layout::Frameless { size, saved } => ("rsp", size, 0, sorted(saved)),
        Layout::FramelessIndirect { size_at, adjustment, saved } => {
            ("rsp, size in code", size_at.into(), adjustment.into(), sorted(saved))
        }
        Layout::Dwarf { fde } => ("DWARF", fde, 0, Vec::new()),
    }
}

/// Returns the meaning of an encoding by both readers; `None` if it has none.
#[cfg(test)]
pub(super) fn meanings(encoding: u32) -> [Option<Described>; 2] {
    let own = Encoding(encoding).layout().ok().map(own_layout);
    [own, described(&OpcodeX86_64::parse(encoding))]
}

/// Returns the meaning of an encoding; `None` if it has none.
fn described(opcode: &OpcodeX86_64) -> Option<Described> {
    // The slots next to one another, from the lowest, which is `below` the frame address, or to the
    // highest, which is directly below the return address.
    let sorted = |mut saved: Vec<_>| {
        saved.sort_unstable();
        saved
    };
    let from_return_address = |saved: &[Option<RegisterNameX86_64>]| {
        let saved = saved.iter().rev().flatten().zip(0_u32..);
        sorted(saved.map(|(register, n)| (name(*register), 16 + 8 * n)).collect())
    };
    Some(match opcode {
        OpcodeX86_64::Null => ("nothing", 0, 0, Vec::new()),
        OpcodeX86_64::FrameBased { stack_offset_in_bytes, saved_regs } => {
            let lowest = u32::from(*stack_offset_in_bytes) + 16;
            let saved = saved_regs.iter().rev().zip(0_u32..);
            let saved =
                saved.filter_map(|(register, n)| Some((name((*register)?), lowest - 8 * n)));
            ("rbp", 0, 0, sorted(saved.collect()))
        }
        OpcodeX86_64::FramelessImmediate { stack_size_in_bytes, saved_regs } => {
            ("rsp", (*stack_size_in_bytes).into(), 0, from_return_address(saved_regs))
        }
        OpcodeX86_64::FramelessIndirect {
            immediate_offset_from_function_start,
            stack_adjust_in_bytes,
            saved_regs,
        } => {
            let (at, adjustment) = (*immediate_offset_from_function_start, *stack_adjust_in_bytes);
            ("rsp, size in code", at.into(), adjustment.into(), from_return_address(saved_regs))
        }
        OpcodeX86_64::Dwarf { eh_frame_fde } => ("DWARF", *eh_frame_fde, 0, Vec::new()),
        OpcodeX86_64::InvalidFrameless | OpcodeX86_64::UnrecognizedKind(_) => return None,
    })
}

const fn name(register: RegisterNameX86_64) -> &'static str {
    match register {
        RegisterNameX86_64::Rbx => "rbx",
        RegisterNameX86_64::R12 => "r12",
        RegisterNameX86_64::R13 => "r13",
        RegisterNameX86_64::R14 => "r14",
        RegisterNameX86_64::R15 => "r15",
        RegisterNameX86_64::Rbp => "rbp",
    }
}
