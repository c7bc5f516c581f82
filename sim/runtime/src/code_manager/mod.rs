//! The code manager: maps addresses to managed code and its method, and unwinds it (contract §2.6,
//! §8.3, §8.4).

mod il_versions;
mod method;
mod section;

pub use il_versions::IlVersions;
pub use method::{
    CodeIndex, CodeVersion, Funclet, FuncletRange, Method, MethodIndex, MethodKind, Tier,
};
pub use section::{Block, RangeSection, SectionError, StubKind};

use crate::generation::Generation;
use clr_unwind::compat::Rules;
use clr_unwind::win64::UnwindInfo;
use clr_unwind::{
    CodeMap, CodeMapError, CodeRegion, Memory, Position, Registers, RuntimeFunction, Step,
    UnwindError, Unwinder,
};
use clr_walker::profiling::FunctionId;
use core::cell::{Ref, RefCell};

/// Marks the entry of cold code, whose unwind data is the RVA of the hot part's entry (contract
/// §8.1). In other images bit 0 has this meaning.
const COLD: u32 = 0x8000_0000;

/// All managed code of a process.
#[derive(Clone, Debug, Default)]
pub struct CodeManager<'a> {
    methods: Vec<Method>,
    codes: Vec<CodeVersion>,
    /// Ascending by address, not overlapping.
    sections: Vec<RangeSection>,
    map: CodeMap<'a>,
    /// Methods whose code was freed, in the order of freeing.
    freed: RefCell<Vec<MethodIndex>>,
    /// Versions of IL that the profiler has requested.
    pub il_versions: RefCell<IlVersions>,
    /// Look-ups in code heaps read two slots of the nibble map (C-147).
    reads_two_slots: bool,
}

/// Managed code at an address.
#[derive(Clone, Copy, Debug)]
pub struct Managed<'c> {
    /// The method.
    pub method: &'c Method,
    /// The version of the method's code.
    pub code: &'c CodeVersion,
    section: &'c RangeSection,
}

impl<'a> CodeManager<'a> {
    /// Creates a code manager without code.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes look-ups in code heaps those of a runtime (C-147). Without a runtime they find the nearest start.
    #[must_use]
    pub const fn on(mut self, generation: Generation) -> Self {
        self.reads_two_slots = generation.reads_two_slots();
        self
    }

    /// Adds a method.
    pub fn add_method(&mut self, method: Method) -> MethodIndex {
        self.methods.push(method);
        MethodIndex(self.methods.len() as u32 - 1)
    }

    /// Returns all methods with their indexes.
    pub fn methods(&self) -> impl Iterator<Item = (MethodIndex, &Method)> {
        (0..).map(MethodIndex).zip(&self.methods)
    }

    /// Returns all methods, to complete what is known of them.
    pub(crate) fn methods_mut(&mut self) -> &mut [Method] {
        &mut self.methods
    }

    /// Adds a version of a method's code. Lookups find it after a section with it has been added.
    pub fn add_code(&mut self, code: CodeVersion) -> CodeIndex {
        self.codes.push(code);
        CodeIndex(self.codes.len() as u32 - 1)
    }

    /// Returns the code and unwind data of all sections.
    pub const fn map(&self) -> &CodeMap<'a> {
        &self.map
    }

    /// Adds a range section, with the code and unwind data of its range.
    ///
    /// # Errors
    /// Returns [`CodeMapError::Overlap`] if the section shares an address with another one; nothing
    /// changes then.
    pub fn add_section(
        &mut self,
        section: RangeSection,
        region: CodeRegion<'a>,
    ) -> Result<(), CodeMapError> {
        let index = self.sections.partition_point(|other| other.low() < section.low());
        let before = index.checked_sub(1).and_then(|before| self.sections.get(before));
        let overlaps =
            |other: &&RangeSection| other.low() < section.high() && section.low() < other.high();
        if let Some(other) = before.into_iter().chain(self.sections.get(index)).find(overlaps) {
            return Err(CodeMapError::Overlap { base: section.low(), other: other.low() });
        }
        self.map.insert(region)?;
        self.sections.insert(index, section);
        Ok(())
    }

    /// Unloads the section that contains `address` (VA), and its code. Returns true if there was
    /// one.
    pub fn remove_section(&mut self, address: u64) -> bool {
        let Some(index) = self.section_index(address) else { return false };
        let section = self.sections.remove(index);
        if let Some((region, _)) = self.map.find(section.low()) {
            let base = region.base();
            self.map.remove(base);
        }
        true
    }

    /// Frees the code of a method in its own heap, as unloading does: none of its addresses is
    /// managed code afterwards, and its FunctionID is dangling (H-18). Returns true if the method
    /// exists and its code had not been freed.
    pub fn free(&self, id: FunctionId) -> bool {
        let Some((method, _)) = self.method(id) else { return false };
        let mut freed = self.freed.borrow_mut();
        let is_new = !freed.contains(&method);
        if is_new {
            freed.push(method);
        }
        is_new
    }

    /// Returns the methods whose code was freed, in the order of freeing.
    pub fn freed(&self) -> Ref<'_, [MethodIndex]> {
        Ref::map(self.freed.borrow(), Vec::as_slice)
    }

    /// Returns the number of methods whose code was freed.
    pub fn freed_count(&self) -> usize {
        self.freed.borrow().len()
    }

    /// Restores the state in which only the code of the first `count` of these methods had been
    /// freed.
    pub fn unfree(&self, count: usize) {
        self.freed.borrow_mut().truncate(count);
    }

    /// Returns true if `id` was the FunctionID of a method whose code was freed.
    pub fn is_dangling(&self, id: FunctionId) -> bool {
        let freed = self.freed.borrow();
        !freed.is_empty() && self.method(id).is_some_and(|(method, _)| freed.contains(&method))
    }

    /// Returns true if `address` (VA) was in code that was freed.
    pub fn was_freed(&self, address: u64) -> bool {
        let freed = self.freed.borrow();
        !freed.is_empty()
            && self.codes.iter().any(|code| {
                let offset = address.checked_sub(code.start);
                freed.contains(&code.method) && offset.is_some_and(|offset| offset < code.size)
            })
    }

    fn section_index(&self, address: u64) -> Option<usize> {
        let after = self.sections.partition_point(|section| section.low() <= address);
        let index = after.checked_sub(1)?;
        self.sections.get(index).filter(|section| address < section.high())?;
        Some(index)
    }

    /// Returns the managed code that `ip` (VA) belongs to, or `None`; stubs are not managed code.
    pub fn find(&self, ip: u64) -> Option<Managed<'_>> {
        let section = self.sections.get(self.section_index(ip)?)?;
        let Block::Code(CodeIndex(index)) = section.find(ip)? else { return None };
        let code = self.codes.get(index as usize)?;
        let is_far = self.reads_two_slots && section.is_code_heap() && !code.is_near(ip);
        if is_far || self.freed.borrow().contains(&code.method) {
            return None;
        }
        let method = self.methods.get(code.method.0 as usize)?;
        Some(Managed { method, code, section })
    }

    /// Returns true if `address` (VA) is in an image that was compiled ahead of time.
    pub fn is_in_image(&self, address: u64) -> bool {
        let section = self.section_index(address).and_then(|index| self.sections.get(index));
        section.is_some_and(RangeSection::ignores_ends)
    }

    /// Returns the block that `address` (VA) belongs to, including stubs.
    pub fn block(&self, address: u64) -> Option<Block> {
        self.sections.get(self.section_index(address)?)?.find(address)
    }

    /// Returns the method with this FunctionID.
    pub fn method(&self, id: FunctionId) -> Option<(MethodIndex, &Method)> {
        let index = self.methods.iter().position(|method| method.id == id)?;
        Some((MethodIndex(index as u32), self.methods.get(index)?))
    }

    /// Returns all versions of a method's code that are still loaded, in the order of their
    /// creation.
    pub fn versions(&self, method: MethodIndex) -> impl Iterator<Item = &CodeVersion> {
        let codes = (0..).zip(&self.codes).filter(move |(_, code)| code.method == method);
        // The addresses may hold other code by now.
        codes.filter_map(|(index, code)| {
            let loaded = self.block(code.start) == Some(Block::Code(CodeIndex(index)));
            loaded.then_some(code)
        })
    }

    /// Unwinds `registers` from managed code to its caller, with the runtime's own tables (C-145);
    /// code without an entry is a leaf (C-146).
    ///
    /// # Errors
    /// Returns [`UnwindError`]; `registers` are then unchanged.
    pub fn unwind<M: Memory + ?Sized>(
        &self,
        managed: Managed<'_>,
        rules: Rules,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let unwinder = Unwinder::new(&self.map).with_rules(rules);
        if managed.section.ignores_ends()
            && let Some((region, mut function)) = self.entry(registers.rip)
        {
            if managed.section.has_cold_entries() && function.unwind_info & COLD != 0 {
                function.unwind_info = function.unwind_info & !COLD | 1;
            }
            unwinder.step_in_function(region, function, registers, memory)
        } else {
            unwinder.step(registers, Position::Interrupted, memory)
        }
    }

    /// Returns the size of the prologue of a version of code in bytes; 0 if it has none, or no unwind data.
    pub fn prologue_size(&self, code: &CodeVersion) -> u32 {
        let info = self
            .entry(code.start)
            .and_then(|(region, function)| UnwindInfo::read(region, function.unwind_info).ok());
        info.map_or(0, |info| u32::from(info.prologue_size()))
    }

    /// Returns the last entry that begins at or before `ip` (VA), regardless of its end.
    fn entry(&self, ip: u64) -> Option<(&CodeRegion<'a>, RuntimeFunction)> {
        let (region, rva) = self.map.find(ip)?;
        Some((region, region.functions().find_from_begin(rva)?))
    }
}

#[cfg(test)]
mod tests;
