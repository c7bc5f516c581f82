//! A jitted method: its code and unwind data, copied.

use alloc::boxed::Box;
use alloc::vec::Vec;
use clr_unwind::{
    CodeMapError, CodeRegion, Convention, FunctionTable, Run, RuntimeFunction, Section,
};
use core::ops::Range;

/// The code of a jitted method, with its funclets, and their unwind data: owned copies, which stay
/// valid when the runtime frees the method.
///
/// A method that is compiled again (tiered compilation, OSR, re-JIT) has a `JittedMethod` for each
/// body; they live beside each other.
#[derive(Clone, PartialEq, Eq)]
pub struct JittedMethod {
    pub(super) start: u64,
    pub(super) base: u64,
    pub(super) method_desc: u64,
    pub(super) code: Box<[u8]>,
    /// RUNTIME_FUNCTION entries; there is at least one.
    pub(super) entries: Box<[u8]>,
    /// RVA of `unwind_data`.
    pub(super) unwind_rva: u32,
    /// The UNWIND_INFO of all functions, one after the other.
    pub(super) unwind_data: Box<[u8]>,
}

impl JittedMethod {
    /// Returns the addresses of the code (VA): the method's body, then its funclets.
    pub const fn code_range(&self) -> Range<u64> {
        self.start..self.start + self.code.len() as u64
    }

    /// Returns the address from which RVAs count (VA): the low address of the code heap.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Returns the address of the runtime's `MethodDesc` (VA). In the runtimes since .NET Core 3.1
    /// it is also the `FunctionID` of the profiling interface.
    pub const fn method_desc(&self) -> u64 {
        self.method_desc
    }

    /// Returns the RUNTIME_FUNCTION entries, ascending by begin: the body, then the funclets.
    pub fn functions(&self) -> FunctionTable<'_> {
        FunctionTable::new(&self.entries)
    }

    /// Returns the code and its RVA.
    pub fn code(&self) -> Section<'_> {
        let rva = self.start.wrapping_sub(self.base) as u32;
        Section { rva, bytes: &self.code, executable: true }
    }

    /// Returns the UNWIND_INFO of all functions, one after the other, and the RVA of the first.
    pub fn unwind_data(&self) -> Section<'_> {
        Section { rva: self.unwind_rva, bytes: &self.unwind_data, executable: false }
    }

    /// Returns the region of a code map with this method alone. `convention` is that of the target's
    /// OS.
    ///
    /// # Errors
    /// [`CodeMapError::Range`] never, as [`read`](Self::read) has checked the addresses.
    pub fn region(&self, convention: Convention) -> Result<CodeRegion<'static>, CodeMapError> {
        let functions: Vec<_> = self.functions().iter().collect();
        let run = |section: Section<'_>| Run { rva: section.rva, bytes: section.bytes.to_vec() };
        let runs = alloc::vec![run(self.code()), run(self.unwind_data())];
        let region = CodeRegion::generated(self.code_range(), self.base, &functions, runs)?;
        Ok(region.with_convention(convention))
    }

    /// Returns the entry that covers `address` (VA).
    pub fn find_function(&self, address: u64) -> Option<RuntimeFunction> {
        let rva = u32::try_from(address.checked_sub(self.base)?).ok()?;
        self.functions().find(rva)
    }
}

impl core::fmt::Debug for JittedMethod {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("JittedMethod")
            .field("code", &format_args!("{:#x?}", self.code_range()))
            .field("base", &format_args!("{:#x}", self.base))
            .field("functions", &self.functions().len())
            .finish_non_exhaustive()
    }
}
