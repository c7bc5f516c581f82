//! Managed code: which addresses are, and of which method.

use clr_walker::code_map::{CodeMap, CodeMapError};

/// A method as profilers know it: an index into what knows its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(
    /// The index.
    pub u32,
);

/// What kind of method code belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// One with metadata.
    Ordinary(FunctionId),
    /// An IL stub: walks pass over it.
    IlStub,
    /// Another method without metadata: walks stop at it, but report nothing (C-066).
    Dynamic,
    /// Of the managed exception handling, which profilers do not see (C-163).
    ExceptionHandling(FunctionId),
}

/// What a funclet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Funclet {
    /// catch, finally or fault.
    Handler,
    /// A filter.
    Filter,
}

/// The code of a method: a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its first byte (VA).
    pub begin: u64,
    /// The byte behind its last (VA).
    pub end: u64,
    /// The method.
    pub method: MethodKind,
    /// Its funclets: first byte, the byte behind the last (VA), and what it is for.
    pub funclets: Vec<(u64, u64, Funclet)>,
}

impl Code {
    /// What the code at `ip` is for, if it belongs to a funclet.
    #[must_use]
    pub fn funclet(&self, ip: u64) -> Option<Funclet> {
        let funclet = self.funclets.iter().find(|(begin, end, _)| (*begin..*end).contains(&ip))?;
        Some(funclet.2)
    }
}

/// What is managed code, and how to unwind it.
#[derive(Clone, Debug)]
pub struct CodeManager<'a> {
    /// Ascending by address.
    codes: Vec<Code>,
    map: CodeMap<'a>,
}

impl<'a> CodeManager<'a> {
    /// These methods' codes, unwound by the data in `map`.
    ///
    /// # Errors
    /// [`CodeMapError::Overlap`] if two codes share an address.
    pub fn new(mut codes: Vec<Code>, map: CodeMap<'a>) -> Result<Self, CodeMapError> {
        codes.sort_by_key(|code| code.begin);
        for pair in codes.windows(2) {
            if let [one, other] = pair
                && one.end > other.begin
            {
                return Err(CodeMapError::Overlap { base: other.begin, other: one.begin });
            }
        }
        Ok(Self { codes, map })
    }

    /// The managed code at `ip`.
    #[must_use]
    pub fn find(&self, ip: u64) -> Option<&Code> {
        let after = self.codes.partition_point(|code| code.begin <= ip);
        self.codes.get(after.checked_sub(1)?).filter(|code| ip < code.end)
    }

    /// The code with its unwind data.
    #[must_use]
    pub const fn map(&self) -> &CodeMap<'a> {
        &self.map
    }
}
