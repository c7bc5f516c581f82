//! Stub blocks: code of a code heap that is no method.

use core::fmt;

/// A kind of stub block: the small number in place of the pointer to a code header.
///
/// The numbers are `STUB_CODE_BLOCK_*` in codeman.h: 1 to 3 in dotnet/coreclr v3.1.23, 1 and 3 to 9 in
/// dotnet/runtime after .NET 9. 2 was recorded in 3.1.23, 6 to 9 in .NET 9 and 10. .NET 11.0.0 counts otherwise:
/// a process of it had dispatch stubs as 5, resolve stubs as 6, lookup stubs as 7 and vtable call stubs as 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StubBlockKind(pub u8);

impl StubBlockKind {
    /// The last number that may be a stub block, `STUB_CODE_BLOCK_LAST`: higher ones are pointers.
    pub const LAST: Self = Self(0xF);

    /// Returns the name of the kind in runtimes until .NET 10, or `None` for a number without a known meaning.
    pub const fn name_until_net_10(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "jump stubs",
            2 => "precode",
            3 => "dynamic helpers",
            4 => "stub precode",
            5 => "fixup precode",
            6 => "dispatch stubs",
            7 => "resolve stubs",
            8 => "lookup stubs",
            9 => "vtable call stubs",
            _ => return None,
        })
    }
}

impl fmt::Display for StubBlockKind {
    /// Writes the number, since names depend on the runtime.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a stub block of kind {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn kinds_are_reported_by_number_and_named_until_net_10() {
        assert_eq!(StubBlockKind(7).to_string(), "a stub block of kind 7");
        let named = (0..=255).filter(|kind| StubBlockKind(*kind).name_until_net_10().is_some());
        assert!(named.eq(1..=9));
    }
}
