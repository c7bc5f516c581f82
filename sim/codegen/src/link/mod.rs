//! Linker: turns functions into images and heaps with all their bytes.

mod assemble;
mod eh_clauses;
mod place;
mod tables;
mod unix;

use super::guarded::FuncletKind;
use super::marks::{CfiMistake, PlacedHelper, PlacedInstruction, WindowsMistake};
use super::nibble_map::NibbleMap;
use super::program::{CodeKind, FunctionIndex, Program};
use super::rules::ProgramError;
use super::shape::CallingConvention;
use clr_unwind::{
    CodeMap, CodeMapError, CodeRegion, Convention, ElfError, ElfImage, FunctionTable, ImageError,
    PeImage, Position,
};
pub use eh_clauses::PlacedEhClause;
use thiserror::Error;

/// The reason why a program cannot be linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The program is not valid.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A function calls the runtime, whose code the program does not contain.
    #[error("function {}: calls the runtime, whose code exists only in a world", function.0)]
    NeedsRuntime {
        /// The function.
        function: FunctionIndex,
    },
    /// An instruction cannot be encoded. No valid program is known to cause this.
    #[error("an instruction of the {kind:?} code cannot be encoded")]
    Encoding {
        /// Kind of the code.
        kind: CodeKind,
    },
    /// A prologue has more than 255 bytes.
    #[error("function {}: its prologue is longer than 255 bytes", function.0)]
    PrologueTooLong {
        /// The function.
        function: FunctionIndex,
    },
    /// UNWIND_INFO has more than 255 slots of unwind codes.
    #[error("function {}: its unwind data has more than 255 slots", function.0)]
    TooManyCodes {
        /// The function.
        function: FunctionIndex,
    },
    /// UNWIND_INFO version 3 has more than 31 operations, more than 7 epilogues, or epilogues that are
    /// more than 32,767 bytes apart.
    #[error("function {}: version 3 cannot describe this many operations or epilogues", function.0)]
    TooMuchToDescribe {
        /// The function.
        function: FunctionIndex,
    },
    /// An epilogue begins more than 4095 bytes before its function's end, or is longer than 255
    /// bytes, so that UNWIND_INFO version 2 cannot list it.
    #[error("function {}: version 2 cannot list an epilogue this far from the end", function.0)]
    EpilogueTooFar {
        /// The function.
        function: FunctionIndex,
    },
    /// The program may need more stack than is available.
    #[error("the program may need {size:#x} bytes of stack, more than {MAX_STACK:#x}")]
    StackTooLarge {
        /// Estimated size in bytes.
        size: u64,
    },
    /// The image cannot be written as a file. No valid program is known to cause this.
    #[error("the image of the {kind:?} code cannot be written")]
    Image {
        /// Kind of the code in the image.
        kind: CodeKind,
    },
    /// The code is larger than the space reserved for its kind.
    #[error("the {kind:?} code is too large")]
    TooLarge {
        /// Kind of the code.
        kind: CodeKind,
    },
}

impl LinkError {
    /// Returns true if the program is valid but exceeds a size limit of the formats.
    pub const fn is_size(self) -> bool {
        !matches!(
            self,
            Self::Program(_)
                | Self::NeedsRuntime { .. }
                | Self::Encoding { .. }
                | Self::Image { .. }
        )
    }
}

/// The reason why a linked program cannot be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadBackError {
    /// The PE image is malformed.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The ELF image is malformed.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// The region does not fit into the code map.
    #[error(transparent)]
    Map(#[from] CodeMapError),
}

/// A program with its machine code and unwind data.
#[derive(Clone, Debug)]
pub struct LinkedProgram {
    /// Images and heap, ascending by base. A kind of code without functions has none.
    pub units: Vec<Unit>,
    /// Address of each function's first instruction (VA).
    pub entries: Vec<u64>,
    /// All instructions, ascending by address.
    pub instructions: Vec<PlacedInstruction>,
    /// Parts that have unwind data of their own, ascending by address.
    pub parts: Vec<PlacedPart>,
    /// EH clauses in the order in which the CLR searches: function by function, innermost protected
    /// ranges first.
    pub clauses: Vec<PlacedEhClause>,
    /// Code in ELF images that belongs to no function, ascending by address.
    pub helpers: Vec<PlacedHelper>,
    /// Return address of signal handlers (VA), at `mov eax, 15; syscall`. `None` if the program
    /// handles no signals.
    pub signal_return: Option<u64>,
    /// Distance in bytes between the stacks that the program switches to. Any call fits into one
    /// stack.
    pub stack_stride: u64,
}

/// The format of a unit's bytes, which determines its unwind data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A code heap with UNWIND_INFO, on every system.
    Heap,
    /// A PE file with UNWIND_INFO.
    Pe,
    /// An ELF file with DWARF CFI.
    Elf,
}

/// An image or a code heap.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Kind of the code.
    pub kind: CodeKind,
    /// Format of the bytes.
    pub format: Format,
    /// Calling convention of the code.
    pub convention: CallingConvention,
    /// Load address of an image or low address of a heap (VA).
    pub base: u64,
    /// Image file, or the heap's bytes.
    pub bytes: Vec<u8>,
    /// RUNTIME_FUNCTION entries of a heap. Those of an image are in its bytes.
    pub runtime_functions: Vec<u8>,
    /// RVA and size in bytes of the UNWIND_INFOs or of `.eh_frame`.
    pub unwind_data: (u32, u32),
    /// Address (VA) and content of the indirection cells. The cells of an image are in its bytes
    /// too.
    pub cells: (u64, Vec<u8>),
    /// Starts of the methods in a heap, as offsets from its base.
    pub nibble_map: NibbleMap,
    /// Address (VA) of the cell that holds the end of the last stack that was switched to.
    pub stack_cell: u64,
}

/// The 8 bytes directly before a method in a heap (contract §8.4), which identify the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodHeader {
    /// The method.
    pub function: FunctionIndex,
}

impl MethodHeader {
    /// Size of a header in bytes.
    pub const SIZE: usize = 8;

    /// Encodes the header.
    pub const fn to_bytes(self) -> [u8; Self::SIZE] {
        // A small number as the first word distinguishes methods from stub blocks; 0 is neither.
        (self.function.0 as u64 + 1).to_le_bytes()
    }

    /// Decodes a header, or returns `None` if the bytes belong to no method.
    pub const fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        match u64::from_le_bytes(bytes).checked_sub(1) {
            Some(number) if number <= u32::MAX as u64 => {
                Some(Self { function: FunctionIndex(number as u32) })
            }
            _ => None,
        }
    }
}

/// A range of code with a RUNTIME_FUNCTION, or a leaf function without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedPart {
    /// First byte (VA).
    pub begin: u64,
    /// End, exclusive (VA).
    pub end: u64,
    /// Function that the part belongs to.
    pub function: FunctionIndex,
    /// First byte (VA) of the part at the root of the chain of UNWIND_INFOs.
    pub root: u64,
    /// The part is a function's entry, not a funclet or a cold part.
    pub is_entry: bool,
    /// Kind of the funclet that the part is, or is a cold part of.
    pub funclet: Option<FuncletKind>,
}

/// Maximum size of the stack that a program may need, in bytes, for all stacks of one kind of code
/// together.
pub const MAX_STACK: u64 = 0x1000_0000;

/// Address of the service that throws an exception and cuts the stack (VA).
pub const THROW: u64 = 0x1_7000_0000;

/// Address of service 0 (VA). The services are called by generated code and executed by the world.
pub const SERVICES: u64 = 0x1_7100_0000;
/// Distance between services in bytes.
pub const SERVICE_SIZE: u64 = 16;

/// Returns the address of a service (VA).
pub const fn service_address(number: u8) -> u64 {
    SERVICES + SERVICE_SIZE * number as u64
}

impl Program {
    /// Generates the program's machine code and unwind data.
    ///
    /// # Errors
    /// Returns [`LinkError`] if the program is not valid, or exceeds a limit of the formats.
    pub fn link(&self) -> Result<LinkedProgram, LinkError> {
        self.check()?;
        if let Some(function) = self.first_with_runtime_calls() {
            return Err(LinkError::NeedsRuntime { function });
        }
        let stack_stride = self.stack_stride();
        let size = stack_stride.saturating_mul(self.most_stacks());
        if size > MAX_STACK {
            return Err(LinkError::StackTooLarge { size });
        }
        let mut kinds: Vec<_> = CodeKind::ALL
            .into_iter()
            .filter(|kind| self.functions.iter().any(|f| f.kind == *kind))
            .collect();
        kinds.sort_by_key(|kind| kind.base());
        let encoded = kinds
            .into_iter()
            .map(|kind| place::encode(self, kind, stack_stride))
            .collect::<Result<Vec<_>, _>>()?;
        let mut linked = LinkedProgram {
            units: Vec::new(),
            entries: vec![0; self.functions.len()],
            instructions: Vec::new(),
            parts: Vec::new(),
            clauses: Vec::new(),
            helpers: Vec::new(),
            signal_return: None,
            stack_stride,
        };
        for unit in &encoded {
            for &(id, index) in &unit.lowered.entries {
                linked.entries[id.index()] = unit.addresses[index as usize];
            }
            unit.place(self, &mut linked);
        }
        linked.parts.sort_by_key(|part| part.begin);
        linked.clauses.sort_by_key(PlacedEhClause::rank);
        for unit in &encoded {
            let cells: Vec<u8> = [THROW, unit.kind.other_stacks()]
                .into_iter()
                .chain(linked.entries.iter().copied())
                .chain(unit.plt_slots())
                .flat_map(u64::to_le_bytes)
                .collect();
            if let Some(trampoline) = unit.signal_return() {
                linked.signal_return = Some(trampoline);
            }
            linked.units.push(unit.finish(self, &cells)?);
        }
        Ok(linked)
    }
}

impl LinkedProgram {
    /// Reads the images and the heap back from their bytes.
    ///
    /// # Errors
    /// Returns [`ReadBackError`] if the bytes cannot be read in their format, which is a bug in the
    /// linker.
    pub fn code_map(&self) -> Result<CodeMap<'_>, ReadBackError> {
        let mut map = CodeMap::new();
        for unit in &self.units {
            map.insert(unit.region()?)?;
        }
        Ok(map)
    }

    /// Returns the instruction that has a byte at `address` (VA).
    pub fn instruction(&self, address: u64) -> Option<&PlacedInstruction> {
        let after = self.instructions.partition_point(|placed| placed.address <= address);
        let placed = self.instructions.get(after.checked_sub(1)?)?;
        (address - placed.address < u64::from(placed.len)).then_some(placed)
    }

    /// Returns the reason why the Windows rules unwind a frame at `rip` (VA) wrongly, or `None` if
    /// they unwind it correctly.
    pub fn windows_mistake(&self, rip: u64, position: Position) -> Option<WindowsMistake> {
        let in_elf = |unit: &Unit| {
            unit.format == Format::Elf && rip.wrapping_sub(unit.base) < CodeKind::SPACING
        };
        if self.units.iter().any(in_elf) {
            return None;
        }
        if position == Position::ReturnAddress {
            let caller = self.part(rip.wrapping_sub(1));
            if caller.is_some()
                && self.part(rip).map(|part| part.root) != caller.map(|part| part.root)
            {
                return Some(WindowsMistake::CallAtEnd);
            }
        }
        self.instruction(rip)?.mistake
    }

    /// Returns the helper code of an ELF image that contains `address` (VA).
    pub fn helper(&self, address: u64) -> Option<&PlacedHelper> {
        self.helpers.iter().find(|helper| helper.range.contains(&address))
    }

    /// Returns the mistake in the call frame information for a frame at `rip` (VA), if any.
    pub fn cfi_mistake(&self, rip: u64, position: Position) -> Option<CfiMistake> {
        let address = match position {
            Position::ReturnAddress => rip.wrapping_sub(1),
            Position::Interrupted => rip,
        };
        self.instruction(address)?.cfi_mistake
    }

    /// Returns the part that contains `address` (VA).
    pub fn part(&self, address: u64) -> Option<&PlacedPart> {
        let after = self.parts.partition_point(|part| part.begin <= address);
        let part = self.parts.get(after.checked_sub(1)?)?;
        (address < part.end).then_some(part)
    }
}

impl Unit {
    /// Returns the start (VA) and the header of the nearest method before `address` (VA) in a heap,
    /// as the CLR finds it: by the nibble map, then by the header. The lookup does not check where
    /// the method ends.
    pub fn find_method(&self, address: u64) -> Option<(u64, MethodHeader)> {
        let offset = address.checked_sub(self.base)?;
        if self.kind != CodeKind::Jit || offset > self.bytes.len() as u64 {
            return None;
        }
        let start = self.nibble_map.find(u32::try_from(offset).ok()?)?;
        let header = self.bytes.get(..start as usize)?.last_chunk()?;
        Some((self.base + u64::from(start), MethodHeader::from_bytes(*header)?))
    }

    /// Returns the unit as a code region for the walker.
    ///
    /// # Errors
    /// Returns [`ReadBackError`] if the bytes cannot be read in their format.
    pub fn region(&self) -> Result<CodeRegion<'_>, ReadBackError> {
        Ok(match self.format {
            Format::Pe => CodeRegion::image(self.base, &PeImage::parse(&self.bytes)?)?,
            Format::Elf => CodeRegion::elf(self.base, &ElfImage::parse(&self.bytes)?)?,
            Format::Heap => {
                let table = FunctionTable::new(&self.runtime_functions);
                let region = CodeRegion::heap(self.base, &self.bytes, table)?;
                region.with_convention(match self.convention {
                    CallingConvention::WindowsX64 => Convention::WindowsX64,
                    CallingConvention::SystemV => Convention::SystemV,
                })
            }
        })
    }
}
