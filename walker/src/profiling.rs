//! The names that a profiler sees.

use core::fmt;

/// An HRESULT (contract §1.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HResult(
    /// Its number.
    pub u32,
);

impl HResult {
    /// `S_OK`.
    pub const OK: Self = Self(0);
    /// `E_INVALIDARG`.
    pub const INVALID_ARGUMENT: Self = Self(0x8007_0057);
    /// `E_FAIL`.
    pub const FAIL: Self = Self(0x8000_4005);
    /// `E_UNEXPECTED`.
    pub const UNEXPECTED: Self = Self(0x8000_FFFF);
    /// `E_NOTIMPL`.
    pub const NOT_IMPLEMENTED: Self = Self(0x8000_4001);
    /// `CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX`.
    pub const UNMANAGED_CONTEXT: Self = Self(0x8013_135F);
    /// `CORPROF_E_STACKSNAPSHOT_UNSAFE`.
    pub const UNSAFE: Self = Self(0x8013_1360);
    /// `CORPROF_E_STACKSNAPSHOT_ABORTED`.
    pub const ABORTED: Self = Self(0x8013_1361);
    /// `CORPROF_E_INCONSISTENT_WITH_FLAGS`.
    pub const INCONSISTENT_WITH_FLAGS: Self = Self(0x8013_1374);

    /// Its name, if it can come out of `DoStackSnapshot`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::OK => "S_OK",
            Self::INVALID_ARGUMENT => "E_INVALIDARG",
            Self::FAIL => "E_FAIL",
            Self::UNEXPECTED => "E_UNEXPECTED",
            Self::NOT_IMPLEMENTED => "E_NOTIMPL",
            Self::UNMANAGED_CONTEXT => "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX",
            Self::UNSAFE => "CORPROF_E_STACKSNAPSHOT_UNSAFE",
            Self::ABORTED => "CORPROF_E_STACKSNAPSHOT_ABORTED",
            Self::INCONSISTENT_WITH_FLAGS => "CORPROF_E_INCONSISTENT_WITH_FLAGS",
            _ => return None,
        })
    }
}

impl fmt::Debug for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Display for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
