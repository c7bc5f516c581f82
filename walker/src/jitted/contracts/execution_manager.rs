//! The contract ExecutionManager: from an address to the code there.

use super::descriptor::{ContractDescriptor, ContractVersion};
use super::error::{CodeLookupError, ContractError};
use super::nibble_map::NibbleMap;
use super::range_sections::{RangeSection, RangeSections};
use crate::jitted::{CodeHeaderLayout, JittedCodeError, JittedMethod, StubBlockKind};
use alloc::vec::Vec;
use clr_unwind::{Memory, SIZE_OF_RUNTIME_FUNCTION};
use core::ops::Range;

/// The code at an address, by the runtime's own data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeAt {
    /// A jitted method.
    Method(JittedMethod),
    /// A block of stubs in a code heap.
    StubBlock {
        /// Start of the block (VA).
        start: u64,
        /// Kind of the stubs.
        kind: StubBlockKind,
    },
    /// A ready-to-run image.
    ReadyToRun {
        /// Addresses of the image (VA).
        range: Range<u64>,
        /// The runtime's Module of the image (VA).
        module: u64,
    },
    /// Precode and other stubs outside code heaps.
    Stubs {
        /// Addresses of the stubs (VA).
        range: Range<u64>,
    },
}

/// The runtime's map of code, read by the contract ExecutionManager in version 1, 2 (.NET 10), or c1 (.NET 11).
///
/// Nothing is asked of the runtime and no lock is taken. Where the runtime unloads a collectible
/// assembly or frees a dynamic method at the same time, a read may meet freed memory: it fails, or
/// one of the checks does, and a walk goes on without the method.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionManager {
    sections: RangeSections,
    heap: HeapLayout,
    header: CodeHeaderLayout,
    has_pointers: bool,
}

/// Offsets in a `CodeHeapListNode`.
#[derive(Clone, Copy, Debug)]
struct HeapLayout {
    start: u32,
    end: u32,
    map_base: u32,
    header_map: u32,
}

/// A code heap's used addresses (VA), and its nibble map.
struct Heap {
    used: Range<u64>,
    map: NibbleMap,
}

impl ExecutionManager {
    /// Takes the offsets from a runtime's descriptor.
    ///
    /// # Errors
    /// [`ContractError`] if the contract, a field or a global is missing or unknown. .NET 9 has a
    /// descriptor without this contract.
    pub fn new(descriptor: &ContractDescriptor) -> Result<Self, ContractError> {
        let name = "ExecutionManager";
        let has_pointers = match descriptor.contract(name)? {
            ContractVersion::Number(1) => false,
            // The first of .NET 11 is the second of .NET 10: all methods of a process were found by it.
            ContractVersion::Number(2) | ContractVersion::C(1) => true,
            version => return Err(ContractError::ContractVersion { name, version }),
        };
        check_runtime_function(descriptor)?;
        // Methods in two parts: the second part's header word leads to the first.
        for (type_name, field) in
            [("RealCodeHeader", "ColdCodeHeader"), ("CodeHeapListNode", "BottomEndAddress")]
        {
            if descriptor.field(type_name, field).is_ok() {
                return Err(ContractError::UnknownField { type_name, field });
            }
        }
        let last = descriptor.global("StubCodeBlockLast")?;
        let last = u8::try_from(last)
            .map_err(|_| ContractError::MissingGlobal { name: "StubCodeBlockLast" })?;
        let heap = |field| descriptor.field("CodeHeapListNode", field);
        let header = |field| descriptor.field("RealCodeHeader", field);
        Ok(Self {
            sections: RangeSections::new(descriptor)?,
            heap: HeapLayout {
                start: heap("StartAddress")?,
                end: heap("EndAddress")?,
                map_base: heap("MapBase")?,
                header_map: heap("HeaderMap")?,
            },
            header: CodeHeaderLayout {
                method_desc: header("MethodDesc")?,
                unwind_info_count: header("NumUnwindInfos")?,
                unwind_infos: header("UnwindInfos")?,
                last_stub_block: StubBlockKind(last),
            },
            has_pointers,
        })
    }

    /// Returns the layout of code headers, by which [`JittedMethod::read`] reads a method whose
    /// start is known.
    pub const fn code_header(&self) -> &CodeHeaderLayout {
        &self.header
    }

    /// Returns the code at `address` (VA), or `None` if the runtime has none there.
    ///
    /// # Errors
    /// [`CodeLookupError`] if the runtime's data cannot be read, or is not what it should be.
    pub fn find<M: Memory + ?Sized>(
        &self,
        memory: &M,
        address: u64,
    ) -> Result<Option<CodeAt>, CodeLookupError> {
        let Some(section) = self.sections.find(memory, address)? else { return Ok(None) };
        let range = section.range.clone();
        if section.module != 0 {
            return Ok(Some(CodeAt::ReadyToRun { range, module: section.module }));
        }
        if section.is_stubs {
            return Ok(Some(CodeAt::Stubs { range }));
        }
        let heap = self.heap(memory, &section)?;
        if !heap.used.contains(&address) {
            return Ok(None);
        }
        let Some(start) = heap.map.find(memory, address)? else { return Ok(None) };
        match self.read(memory, &section, start) {
            // The map does not know where a method ends.
            Ok(method) if method.code_range().contains(&address) => {
                Ok(Some(CodeAt::Method(method)))
            }
            Ok(_) => Ok(None),
            Err(CodeLookupError::Method(JittedCodeError::StubBlock { start, kind })) => {
                Ok(Some(CodeAt::StubBlock { start, kind }))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns all code of code heaps at this moment, by heap: methods and stub blocks, or the error
    /// of one that cannot be read. For a profiler that attaches, and for dumps.
    ///
    /// # Errors
    /// [`CodeLookupError`] if the runtime's map of code itself cannot be read.
    pub fn all<M: Memory + ?Sized>(
        &self,
        memory: &M,
    ) -> Result<Vec<Result<CodeAt, CodeLookupError>>, CodeLookupError> {
        let mut code = Vec::new();
        for section in self.sections.all(memory)? {
            if section.module != 0 || section.is_stubs {
                continue;
            }
            let heap = self.heap(memory, &section)?;
            for start in heap.map.starts(memory, heap.used.end)? {
                code.push(match self.read(memory, &section, start) {
                    Ok(method) => Ok(CodeAt::Method(method)),
                    Err(CodeLookupError::Method(JittedCodeError::StubBlock { start, kind })) => {
                        Ok(CodeAt::StubBlock { start, kind })
                    }
                    Err(error) => Err(error),
                });
            }
        }
        Ok(code)
    }

    fn read<M: Memory + ?Sized>(
        &self,
        memory: &M,
        section: &RangeSection,
        start: u64,
    ) -> Result<JittedMethod, CodeLookupError> {
        let method = JittedMethod::read(memory, &self.header, start, None)?;
        if method.base() != section.range.start {
            let (base, range) = (method.base(), section.range.start);
            return Err(CodeLookupError::Base { start, base, range });
        }
        Ok(method)
    }

    fn heap<M: Memory + ?Sized>(
        &self,
        memory: &M,
        section: &RangeSection,
    ) -> Result<Heap, CodeLookupError> {
        let address = section.heap;
        let field = |offset: u32| memory.read_u64(address.wrapping_add(offset.into()));
        let used = field(self.heap.start)?..field(self.heap.end)?;
        let (base, units) = (field(self.heap.map_base)?, field(self.heap.header_map)?);
        let faulty = used.is_empty() || base > used.start || used.end > section.range.end;
        if faulty || used.start < section.range.start {
            return Err(CodeLookupError::CodeHeap { address });
        }
        Ok(Heap { used, map: NibbleMap { units, base, has_pointers: self.has_pointers } })
    }
}

/// Checks that RUNTIME_FUNCTION entries are those of x64.
fn check_runtime_function(descriptor: &ContractDescriptor) -> Result<(), ContractError> {
    let type_name = "RuntimeFunction";
    // `!` is the size.
    let fields = [("!", SIZE_OF_RUNTIME_FUNCTION as u32), ("BeginAddress", 0), ("EndAddress", 4)];
    for (field, expected) in fields.into_iter().chain([("UnwindData", 8)]) {
        if descriptor.field(type_name, field)? != expected {
            return Err(ContractError::UnknownField { type_name, field });
        }
    }
    Ok(())
}
