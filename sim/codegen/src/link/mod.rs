//! Linking: from functions to images and heaps with all their bytes.

mod clauses;
mod place;
mod tables;
mod unix;

use super::guarded::FuncletKind;
use super::marks::{CfiMistake, PlacedHelper, PlacedInstruction, WindowsMistake};
use super::nibble_map::NibbleMap;
use super::program::{CodeKind, FunctionId, Program};
use super::rules::ProgramError;
pub use clauses::PlacedClause;
use clr_walker::code_map::{CodeMap, CodeMapError, CodeRegion};
use clr_walker::image::elf::{ElfError, ElfImage};
use clr_walker::image::pe::PeImage;
use clr_walker::image::{FunctionTable, ImageError};
use clr_walker::unwind::Position;
use thiserror::Error;

/// Why a program has no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The program is not valid.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// It goes through the runtime's code, which is not in it.
    #[error("function {}: the runtime's code is not there; only a world has it", function.0)]
    NeedsRuntime {
        /// The function.
        function: FunctionId,
    },
    /// An instruction cannot be encoded. No valid program is known to have one.
    #[error("an instruction of the {kind:?} code cannot be encoded")]
    Encoding {
        /// Where it should be.
        kind: CodeKind,
    },
    /// A prologue has more than 255 bytes.
    #[error("function {}: its prologue is longer than 255 bytes", function.0)]
    PrologueTooLong {
        /// The function.
        function: FunctionId,
    },
    /// UNWIND_INFO has more than 255 slots of codes.
    #[error("function {}: its unwind data has more than 255 slots", function.0)]
    TooManyCodes {
        /// The function.
        function: FunctionId,
    },
    /// An epilogue begins more than 4095 bytes before its function's end, or is longer than 255:
    /// version 2 cannot list it.
    #[error("function {}: version 2 cannot list an epilogue so far from the end", function.0)]
    EpilogueTooFar {
        /// The function.
        function: FunctionId,
    },
    /// The program may need more stack than can be had.
    #[error("the program may need {size:#x} bytes of stack, more than {MAX_STACK:#x}")]
    StackTooLarge {
        /// Its estimate, in bytes.
        size: u64,
    },
    /// The image cannot be written as a file. No valid program is known to be such.
    #[error("the image of the {kind:?} code cannot be written")]
    Image {
        /// The code.
        kind: CodeKind,
    },
    /// The code does not fit where it belongs.
    #[error("the {kind:?} code is too large")]
    TooLarge {
        /// The code.
        kind: CodeKind,
    },
}

impl LinkError {
    /// Whether the program is valid, but larger than the formats allow.
    #[must_use]
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

/// Why a linked program could not be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReadBackError {
    /// As an image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// As an ELF image.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// As a region of the map.
    #[error(transparent)]
    Map(#[from] CodeMapError),
}

/// A program with its machine code and unwind data.
#[derive(Clone, Debug)]
pub struct LinkedProgram {
    /// The images and the heap, ascending by base; kinds without functions have none.
    pub units: Vec<Unit>,
    /// The address of each function's first instruction (VA).
    pub entries: Vec<u64>,
    /// All instructions, ascending by address.
    pub instructions: Vec<PlacedInstruction>,
    /// Parts with unwind data of their own, ascending by address.
    pub parts: Vec<PlacedPart>,
    /// What handles exceptions, in the order in which the CLR searches: function by function, the
    /// innermost protected ranges first.
    pub clauses: Vec<PlacedClause>,
    /// The code of ELF images that belongs to no function, ascending by address.
    pub helpers: Vec<PlacedHelper>,
    /// Where handlers of signals return to (VA): `mov eax, 15; syscall`. `None` if nothing handles any.
    pub signal_return: Option<u64>,
    /// How much stack any call finds room in, in bytes: so far apart are stacks that are switched to.
    pub stack_stride: u64,
}

/// What a unit's bytes are, and so how its code is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A code heap: UNWIND_INFO, on every system.
    Heap,
    /// A PE file: UNWIND_INFO.
    Pe,
    /// An ELF file: DWARF's CFI.
    Elf,
}

/// An image or a code heap.
#[derive(Clone, Debug)]
pub struct Unit {
    /// What lies in it.
    pub kind: CodeKind,
    /// What its bytes are.
    pub format: Format,
    /// Its load address or low address (VA).
    pub base: u64,
    /// The image file, or the heap's bytes.
    pub bytes: Vec<u8>,
    /// RUNTIME_FUNCTION entries of a heap; those of an image are in its bytes.
    pub runtime_functions: Vec<u8>,
    /// RVA of its UNWIND_INFOs or its `.eh_frame`, and their size in bytes.
    pub unwind_data: (u32, u32),
    /// Where its indirection cells are (VA), and what they hold. Those of an image are in it too.
    pub cells: (u64, Vec<u8>),
    /// Where methods start in a heap, as offsets from its base.
    pub nibble_map: NibbleMap,
    /// The cell that says where the last stack that was switched to ends (VA).
    pub stack_cell: u64,
}

/// What stands right before a method in a heap (contract §8.4): 8 bytes that say whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodHeader {
    /// The method.
    pub function: FunctionId,
}

impl MethodHeader {
    /// Its size in bytes.
    pub const SIZE: usize = 8;

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::SIZE] {
        // A small number as the first word tells stubs' blocks from methods: 0 is neither.
        (self.function.0 as u64 + 1).to_le_bytes()
    }

    /// The header in these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        match u64::from_le_bytes(bytes).checked_sub(1) {
            Some(number) if number <= u32::MAX as u64 => {
                Some(Self { function: FunctionId(number as u32) })
            }
            _ => None,
        }
    }
}

/// A range of code with a RUNTIME_FUNCTION, or a leaf's without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedPart {
    /// Its first byte (VA).
    pub begin: u64,
    /// The byte behind its last (VA).
    pub end: u64,
    /// Its function.
    pub function: FunctionId,
    /// The begin (VA) of the part at the root of its chain.
    pub root: u64,
    /// It is a function's entry, not a funclet or cold part.
    pub is_entry: bool,
    /// The funclet that it is, or is a cold part of.
    pub funclet: Option<FuncletKind>,
}

/// The most bytes of stack that a program may need, all stacks of a kind of code together.
pub const MAX_STACK: u64 = 0x1000_0000;

/// Where the service lies that cuts the stack (VA).
pub const THROW: u64 = 0x1_7000_0000;

/// Where the services of the world outside lie (VA), by their number: 16 bytes apart.
pub const SERVICES: u64 = 0x1_7100_0000;
/// How far apart they are, in bytes.
pub const SERVICE_SIZE: u64 = 16;

/// Where a service lies (VA).
#[must_use]
pub const fn service_address(number: u8) -> u64 {
    SERVICES + SERVICE_SIZE * number as u64
}

impl Program {
    /// Makes machine code and unwind data of it.
    ///
    /// # Errors
    /// [`LinkError`] if the program is not valid, or does not fit the formats.
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
        linked.clauses.sort_by_key(PlacedClause::rank);
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
    /// Its images and heap, read back from their bytes.
    ///
    /// # Errors
    /// [`ReadBackError`] if they do not read as what they are: a mistake of the linker.
    pub fn code_map(&self) -> Result<CodeMap<'_>, ReadBackError> {
        let mut map = CodeMap::new();
        for unit in &self.units {
            map.insert(unit.region()?)?;
        }
        Ok(map)
    }

    /// The instruction that has a byte at `address` (VA).
    #[must_use]
    pub fn instruction(&self, address: u64) -> Option<&PlacedInstruction> {
        let after = self.instructions.partition_point(|placed| placed.address <= address);
        let placed = self.instructions.get(after.checked_sub(1)?)?;
        (address - placed.address < u64::from(placed.len)).then_some(placed)
    }

    /// Why Windows' rules unwind a frame wrongly whose rip is `rip` (VA); `None` if they do not.
    #[must_use]
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

    /// The code of no function of an ELF image that has `address` (VA).
    #[must_use]
    pub fn helper(&self, address: u64) -> Option<&PlacedHelper> {
        self.helpers.iter().find(|helper| helper.range.contains(&address))
    }

    /// What the call frame information of a frame gets wrong whose rip is `rip` (VA).
    #[must_use]
    pub fn cfi_mistake(&self, rip: u64, position: Position) -> Option<CfiMistake> {
        let address = match position {
            Position::ReturnAddress => rip.wrapping_sub(1),
            Position::Interrupted => rip,
        };
        self.instruction(address)?.cfi_mistake
    }

    /// The part that has `address` (VA).
    #[must_use]
    pub fn part(&self, address: u64) -> Option<&PlacedPart> {
        let after = self.parts.partition_point(|part| part.begin <= address);
        let part = self.parts.get(after.checked_sub(1)?)?;
        (address < part.end).then_some(part)
    }
}

impl Unit {
    /// The method of a heap whose code is nearest before `address` (VA), as the CLR finds it: by the
    /// nibble map, then the header. It does not know where a method ends.
    #[must_use]
    pub fn find_method(&self, address: u64) -> Option<(u64, MethodHeader)> {
        let offset = address.checked_sub(self.base)?;
        if self.kind != CodeKind::Jit || offset > self.bytes.len() as u64 {
            return None;
        }
        let start = self.nibble_map.find(u32::try_from(offset).ok()?)?;
        let header = self.bytes.get(..start as usize)?.last_chunk()?;
        Some((self.base + u64::from(start), MethodHeader::from_bytes(*header)?))
    }

    /// It as the walker reads it.
    ///
    /// # Errors
    /// [`ReadBackError`] if it does not read as what it is.
    pub fn region(&self) -> Result<CodeRegion<'_>, ReadBackError> {
        match self.format {
            Format::Pe => return Ok(CodeRegion::image(self.base, &PeImage::parse(&self.bytes)?)?),
            Format::Elf => return Ok(CodeRegion::elf(self.base, &ElfImage::parse(&self.bytes)?)?),
            Format::Heap => {}
        }
        let table = FunctionTable::new(&self.runtime_functions);
        Ok(CodeRegion::heap(self.base, &self.bytes, table)?)
    }
}
