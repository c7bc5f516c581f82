//! Names of HRESULTs, with and without their prefixes.

use clr_runtime::profiling::HResult;

/// Prefixes of the names of HRESULTs, the longest first.
const PREFIXES: [&str; 4] = ["CORPROF_E_STACKSNAPSHOT_", "CORPROF_E_", "E_", "S_"];

/// Returns the names of all HRESULTs that have one.
pub(crate) fn names() -> Vec<&'static str> {
    HResult::NAMED.iter().filter_map(|it| it.name()).collect()
}

/// Returns the name of an HRESULT without its prefix.
pub(crate) fn without_prefix(name: &str) -> &str {
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

/// Returns the HRESULT of a name, which may lack its prefix (`UNMANAGED_CTX`). Case does not count.
#[must_use]
pub fn hresult(text: &str) -> Option<HResult> {
    let is_meant = |name: &str| {
        let short = PREFIXES.iter().filter_map(|prefix| name.strip_prefix(prefix));
        core::iter::once(name).chain(short).any(|name| name.eq_ignore_ascii_case(text))
    };
    HResult::NAMED.iter().copied().find(|it| it.name().is_some_and(is_meant))
}
