//! Placement of instructions in images and heaps.

use super::super::lower::{Cells, Lowered, Part, PartKind, lower};
use super::super::marks::PlacedInstruction;
use super::super::program::{CodeKind, Program};
use super::super::shape::CallingConvention;
use super::assemble::{Assembled, Layout, assemble};
use super::{Format, LinkError, LinkedProgram, MethodHeader, PlacedPart};
use core::ops::Range;

impl CodeKind {
    /// Minimum distance between the bases of images and heaps in bytes.
    pub(crate) const SPACING: u64 = 0x1000_0000;

    /// Returns the base address of the image or heap (VA). All of them are within reach of each
    /// other's branches.
    pub const fn base(self) -> u64 {
        match self {
            Self::Native => 0x1_8000_0000,
            Self::ReadyToRun => 0x1_9000_0000,
            Self::Jit => 0x1_A000_0000,
        }
    }

    /// Returns the end of the highest stack that functions of this kind switch to (VA).
    pub const fn other_stacks(self) -> u64 {
        match self {
            Self::Native => 0x1_0000_0000,
            Self::ReadyToRun => 0x1_2000_0000,
            Self::Jit => 0x1_4000_0000,
        }
    }

    /// Returns the file name of the image. On Unix, unmanaged code is in an ELF file; ready-to-run
    /// assemblies are PE files everywhere.
    pub const fn image_name(self, convention: CallingConvention) -> Option<&'static str> {
        match (self, convention) {
            (Self::Native, CallingConvention::WindowsX64) => Some("native.dll"),
            (Self::Native, CallingConvention::SystemV) => Some("libnative.so"),
            (Self::ReadyToRun, _) => Some("managed.dll"),
            (Self::Jit, _) => None,
        }
    }

    /// Returns the format of the unit's bytes.
    pub const fn format(self, convention: CallingConvention) -> Format {
        match (self, convention) {
            (Self::Native, CallingConvention::SystemV) => Format::Elf,
            (Self::Native | Self::ReadyToRun, _) => Format::Pe,
            (Self::Jit, _) => Format::Heap,
        }
    }

    /// Returns the alignment of functions in bytes. Native functions are not aligned, so that the
    /// return address of a call at the end of one function is the start of the next.
    const fn alignment(self) -> u64 {
        match self {
            Self::Native => 1,
            Self::ReadyToRun => 16,
            Self::Jit => 32,
        }
    }
}

/// Maximum number of bytes of code in an image or heap, so that it does not reach the next one.
const MAX_CODE: u64 = 0x0800_0000;

pub(super) const PAGE: u64 = 0x1000;
/// RVA of an image's cells.
pub(super) const CELLS_RVA: u64 = 0x1000;
/// Distance in bytes from the cells of a heap to the heap above them.
const HEAP_CELLS: u64 = 0x10_0000;

/// A unit whose instructions have addresses.
pub(super) struct Encoded {
    pub(super) kind: CodeKind,
    pub(super) format: Format,
    pub(super) lowered: Lowered,
    pub(super) cells: Cells,
    /// Address of the first byte of `code` (VA).
    pub(super) start: u64,
    pub(super) code: Vec<u8>,
    /// Address of each instruction, then the end of the last one (VA).
    pub(super) addresses: Vec<u64>,
    lengths: Vec<u8>,
}

pub(super) fn encode(
    program: &Program,
    kind: CodeKind,
    stack_stride: u64,
) -> Result<Encoded, LinkError> {
    let cells = Cells {
        base: match kind {
            CodeKind::Jit => kind.base() - HEAP_CELLS,
            CodeKind::ReadyToRun | CodeKind::Native => kind.base() + CELLS_RVA,
        },
        functions: program.functions.len() as u64,
    };
    let format = kind.format(program.convention);
    let count = match format {
        // The slots of the procedure linkage table need the second half.
        Format::Elf => 2 * (cells.functions + Cells::SERVICES),
        Format::Heap | Format::Pe => cells.functions + Cells::SERVICES,
    };
    let start = match kind {
        // After the header of the first method.
        CodeKind::Jit => kind.base() + kind.alignment(),
        CodeKind::ReadyToRun | CodeKind::Native => (cells.base + 8 * count).next_multiple_of(PAGE),
    };
    let failed = LinkError::Encoding { kind };
    let lowered = lower(program, kind, cells, stack_stride).map_err(|_| failed)?;
    let instructions = &lowered.stream.instructions;
    let alignment = kind.alignment();
    let pieces: Vec<_> = match alignment {
        1 => core::iter::once(0..instructions.len()).collect(),
        _ => ranges(&lowered).collect(),
    };
    let layout = Layout { start, alignment, gap: MethodHeader::SIZE as u64 };
    let assembled = assemble(instructions, &pieces, layout).map_err(|_| failed)?;
    let Assembled { code, addresses, lengths } = assembled;
    if code.len() as u64 > MAX_CODE {
        return Err(LinkError::TooLarge { kind });
    }
    Ok(Encoded { kind, format, lowered, cells, start, code, addresses, lengths })
}

/// Returns the range of instructions of each piece.
fn ranges(lowered: &Lowered) -> impl Iterator<Item = Range<usize>> + '_ {
    let begins = lowered.pieces.iter().map(|begin| *begin as usize);
    let ends = begins.clone().skip(1).chain([lowered.stream.instructions.len()]);
    begins.zip(ends).map(|(begin, end)| begin..end)
}

impl Encoded {
    pub(super) fn address(&self, index: u32) -> u64 {
        self.addresses.get(index as usize).copied().unwrap_or(self.start)
    }

    pub(super) fn rva(&self, index: u32) -> u32 {
        (self.address(index) - self.kind.base()) as u32
    }

    /// Returns the RVA of the end of the instruction before `index`.
    pub(super) fn end_rva(&self, index: u32) -> u32 {
        match (index as usize).checked_sub(1) {
            Some(last) => self.rva(last as u32) + u32::from(self.lengths[last]),
            None => self.rva(0),
        }
    }

    /// Adds the unit's instructions and parts to the linked program.
    pub(super) fn place(&self, program: &Program, linked: &mut LinkedProgram) {
        let stream = &self.lowered.stream;
        for (index, note) in stream.notes.iter().enumerate() {
            linked.instructions.push(PlacedInstruction {
                address: self.addresses[index],
                len: self.lengths[index],
                function: note.function,
                role: note.role,
                mistake: note.mistake.filter(|_| self.format != Format::Elf),
                cfi_mistake: self.lowered.rows.mistake(index as u32),
                landing: note.landing.and_then(|label| Some(self.address(stream.index_of(label)?))),
                handler: note.handler,
                switches_stack: note.switches_stack,
                arguments: note.arguments,
            });
        }
        let base = self.kind.base();
        for part in &self.lowered.parts {
            linked.parts.push(PlacedPart {
                begin: self.address(part.begin),
                end: base + u64::from(self.end_rva(part.end)),
                function: part.function,
                root: self.address(self.root(part).begin),
                is_entry: part.kind == PartKind::Root
                    && self.lowered.entries.contains(&(part.function, part.begin)),
                funclet: part.funclet,
            });
        }
        self.place_clauses(&mut linked.clauses);
        if self.format == Format::Elf {
            self.place_helpers(program, &mut linked.helpers);
        }
    }

    fn root<'a>(&'a self, mut part: &'a Part) -> &'a Part {
        while let PartKind::Chained(parent) = part.kind {
            part = &self.lowered.parts[parent];
        }
        part
    }
}
