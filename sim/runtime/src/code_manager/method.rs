//! Methods, and the code they were compiled to.

use clr_walker::profiling::{FunctionId, ReJitId};

/// What kind of method it is, as far as walks tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// One with metadata.
    #[default]
    Ordinary,
    /// An IL stub: walks pass over it (C-067).
    IlStub,
    /// Another method without metadata: walks stop at it, but report nothing (C-066).
    Dynamic,
    /// Of the managed exception handling, which profilers do not see (C-163).
    ExceptionHandling,
}

/// A method: a `MethodDesc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Method {
    /// Its FunctionID.
    pub id: FunctionId,
    /// `App.Foo`, for explanations.
    pub name: String,
    /// Its kind.
    pub kind: MethodKind,
    /// `ClassID`.
    pub class: u64,
    /// `ModuleID`.
    pub module: u64,
    /// Its metadata token.
    pub token: u32,
    /// `ClassID`s of its type arguments: canonical ones for shared code.
    pub type_arguments: Vec<u64>,
    /// Whether its code is shared between instantiations, which it cannot tell apart (C-124).
    pub shared: bool,
    /// Whether it is not restored yet: nothing about it can be asked.
    pub unrestored: bool,
}

/// How code came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Compiled ahead of time.
    Precompiled,
    /// Compiled quickly.
    Tier0,
    /// Compiled to stay.
    #[default]
    Optimized,
}

/// What a funclet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Funclet {
    /// catch, finally or fault.
    Handler,
    /// A filter.
    Filter,
}

/// A funclet of a method's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuncletRange {
    /// Its first byte (VA).
    pub start: u64,
    /// The byte behind its last (VA).
    pub end: u64,
    /// What it is for.
    pub funclet: Funclet,
}

/// One version of a method's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The method: an index into those of the code manager.
    pub method: MethodIndex,
    /// Its first byte (VA).
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The part that was moved away as cold: first byte (VA) and size in bytes.
    pub cold: Option<(u64, u64)>,
    /// Its funclets.
    pub funclets: Vec<FuncletRange>,
    /// How it came to be.
    pub tier: Tier,
    /// Which request of ReJIT it is for; 0 for none.
    pub rejit: ReJitId,
    /// Where the frames of this code have their GS cookie: bytes below the caller SP.
    pub gs_cookie: Option<u32>,
}

/// A method, by its place in the code manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodIndex(pub(super) u32);

/// A version of code, by its place in the code manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeIndex(pub(super) u32);

impl Code {
    /// What the code at `ip` (VA) is for, if it belongs to a funclet.
    #[must_use]
    pub fn funclet(&self, ip: u64) -> Option<Funclet> {
        let funclet = self.funclets.iter().find(|range| (range.start..range.end).contains(&ip))?;
        Some(funclet.funclet)
    }
}
