//! Methods, and the code they were compiled to.

use clr_walker::profiling::{FunctionId, ReJitId};

/// Kind of a method, as far as walks distinguish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// A method with metadata.
    #[default]
    Ordinary,
    /// An IL stub, or another method that is hidden from diagnostics: walks skip it (C-067).
    IlStub,
    /// Another method without metadata: walks stop at it, but do not report it (C-066).
    Dynamic,
    /// A method of the managed exception handling, which is hidden from profilers (C-163).
    ExceptionHandling,
    /// A method with `UnmanagedCallersOnlyAttribute`: unmanaged code calls it without an IL stub. Walks
    /// report it like an ordinary one.
    UnmanagedCallersOnly,
    /// The entry point of the program: from .NET 11 on a method of the class library calls it. Walks report it like an
    /// ordinary one.
    EntryPoint,
    /// A method of the class library that calls the runtime itself, where other methods call the class library for it.
    /// Walks report it like an ordinary one.
    ClassLibrary,
}

impl MethodKind {
    /// Returns true if the method has metadata, so that profilers can ask for it.
    pub const fn has_metadata(self) -> bool {
        !matches!(self, Self::IlStub | Self::Dynamic)
    }
}

/// A method: a `MethodDesc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Method {
    /// FunctionID of the method.
    pub id: FunctionId,
    /// Name for explanations, such as `App.Foo`.
    pub name: String,
    /// Kind of the method.
    pub kind: MethodKind,
    /// `ClassID` of the class.
    pub class: u64,
    /// `ModuleID` of the module.
    pub module: u64,
    /// Metadata token.
    pub token: u32,
    /// `ClassID`s of its type arguments: canonical ones for shared code.
    pub type_arguments: Vec<u64>,
    /// The code is shared between instantiations, which it cannot distinguish (C-124).
    pub shared: bool,
    /// The method is not restored yet, so that it cannot be queried.
    pub unrestored: bool,
}

/// Compilation tier of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Code compiled ahead of time.
    Precompiled,
    /// Code compiled quickly.
    Tier0,
    /// Code compiled with optimizations.
    #[default]
    Optimized,
}

/// Purpose of a funclet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Funclet {
    /// A catch, finally or fault handler.
    Handler,
    /// A filter.
    Filter,
}

/// A funclet of a method's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuncletRange {
    /// First byte (VA).
    pub start: u64,
    /// End (VA, exclusive).
    pub end: u64,
    /// Purpose of the funclet.
    pub funclet: Funclet,
}

/// Size in bytes of a slot of a nibble map: the addresses of one u32 of it.
const SLOT: u64 = 0x100;

/// One version of a method's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeVersion {
    /// Method of the code: an index into the methods of the code manager.
    pub method: MethodIndex,
    /// First byte (VA).
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Part that was moved away as cold: first byte (VA) and size in bytes.
    pub cold: Option<(u64, u64)>,
    /// Funclets of the code.
    pub funclets: Vec<FuncletRange>,
    /// Compilation tier.
    pub tier: Tier,
    /// ReJIT request that the code was compiled for; 0 for none.
    pub rejit: ReJitId,
    /// Location of the GS cookie in frames of this code: bytes below the caller SP.
    pub gs_cookie: Option<u32>,
}

/// Index of a method in the code manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodIndex(pub(super) u32);

/// Index of a version of code in the code manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeIndex(pub(super) u32);

impl CodeVersion {
    /// Returns the purpose of the funclet at `ip` (VA), or `None` if the address is not in a
    /// funclet.
    pub fn funclet(&self, ip: u64) -> Option<Funclet> {
        let funclet = self.funclets.iter().find(|range| (range.start..range.end).contains(&ip))?;
        Some(funclet.funclet)
    }

    /// Returns true if a look-up of `ip` (VA), an address at or after the start, finds the code in one of two slots: that
    /// of the address and the one before (C-147). The slot of the start leads to it, and so does each that the code covers
    /// wholly. In a real heap the unwind data behind the code belongs to it; here that lies elsewhere.
    pub(super) fn is_near(&self, ip: u64) -> bool {
        let first = self.start / SLOT;
        let partial = self.start.saturating_add(self.size) / SLOT;
        let last = partial.saturating_sub(1).max(first);
        ip / SLOT <= last + 1
    }
}
