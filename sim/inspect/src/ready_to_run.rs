//! Methods of ready-to-run images, by address.

use crate::error::InspectError;
use crate::hash_map::HashMapLayout;
use clr_unwind::{Memory, SIZE_OF_RUNTIME_FUNCTION};
use clr_walker::jitted::contracts::{ContractDescriptor, ContractError};

/// Functions before the one of an address that belong to the same method, at most: its other funclets.
const FUNCLET_LIMIT: u32 = 1 << 10;

/// Where the runtime keeps the methods of a ready-to-run image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyToRunLayout {
    info: u32,
    composite: u32,
    count: u32,
    functions: u32,
    hot_cold_count: u32,
    thunks: u32,
    entries: u32,
    map: HashMapLayout,
}

/// A method of a ready-to-run image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadyToRunMethod {
    /// Address of its MethodDesc (VA).
    pub(crate) desc: u64,
    /// Start of its code (VA).
    pub(crate) start: u64,
}

impl ReadyToRunLayout {
    pub(crate) fn new(descriptor: &ContractDescriptor) -> Result<Self, ContractError> {
        let field = |field| descriptor.field("ReadyToRunInfo", field);
        Ok(Self {
            info: descriptor.field("Module", "ReadyToRunInfo")?,
            composite: field("CompositeInfo")?,
            count: field("NumRuntimeFunctions")?,
            functions: field("RuntimeFunctions")?,
            hot_cold_count: field("NumHotColdMap")?,
            thunks: field("DelayLoadMethodCallThunks")?,
            entries: field("EntryPointToMethodDescMap")?,
            map: HashMapLayout::new(descriptor)?,
        })
    }

    /// Returns the method with the address (VA) in the image at `base`, whose runtime Module is at `module`, or `None` if the code
    /// is that of a stub, or of a method in two parts.
    pub(crate) fn find<M: Memory + ?Sized>(
        &self,
        memory: &M,
        module: u64,
        base: u64,
        address: u64,
    ) -> Result<Option<ReadyToRunMethod>, InspectError> {
        let info = memory.read_u64(module.wrapping_add(self.info.into()))?;
        // That of an image with several assemblies, or itself.
        let info = memory.read_u64(info.wrapping_add(self.composite.into()))?;
        let at = |offset: u32| info.wrapping_add(offset.into());
        let Some(rva) = address.checked_sub(base).and_then(|rva| u32::try_from(rva).ok()) else {
            return Ok(None);
        };
        let thunks = memory.read_u64(at(self.thunks))?;
        if thunks != 0 {
            // A data directory: RVA and size.
            let (start, size) = (memory.read_u32(thunks)?, memory.read_u32(thunks + 4)?);
            if rva.checked_sub(start).is_some_and(|offset| offset < size) {
                return Ok(None);
            }
        }
        if memory.read_u32(at(self.hot_cold_count))? != 0 {
            return Ok(None);
        }
        let functions = memory.read_u64(at(self.functions))?;
        let begin = |index: u32| {
            let size = SIZE_OF_RUNTIME_FUNCTION as u64;
            memory.read_u32(functions.wrapping_add(size * u64::from(index)))
        };
        let (mut low, mut high) = (0, memory.read_u32(at(self.count))?);
        while low < high {
            let middle = low + (high - low) / 2;
            if begin(middle)? <= rva {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // Entries of funclets follow that of their method, which alone is an entry point.
        for index in (0..low).rev().take(FUNCLET_LIMIT as usize) {
            let start = base.wrapping_add(begin(index)?.into());
            if let Some(desc) = self.map.get(memory, at(self.entries), start)? {
                return Ok(Some(ReadyToRunMethod { desc, start }));
            }
        }
        Ok(None)
    }
}
