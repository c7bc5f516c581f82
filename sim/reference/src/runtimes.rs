//! The reference model's own table of runtimes.
//!
//! The table is a second opinion, written from the contract and not from the answers in
//! [`clr_runtime::generation`], which the model compares itself with. It names families, so that
//! another build of a known version needs no change here.

use clr_runtime::generation::{Family, Os, Product};

/// Returns true for .NET Framework 2 to 3.5.
pub const fn is_framework_2(family: Family) -> bool {
    matches!(family.product, Product::Framework) && family.version.0 < 4
}

/// Returns true if managed code handles the exceptions (C-087, C-163): since .NET 9, unless the
/// setting is on.
pub const fn handles_in_managed_code(family: Family) -> bool {
    family.is_core_since(9) && !family.legacy_exceptions
}

/// Returns the lowest three bits of the datum of Frames around calls by managed exception handling, but for those of handlers
/// (C-085).
pub(crate) const fn mark_of_handling(family: Family) -> Option<u64> {
    match family {
        _ if !handles_in_managed_code(family) => None,
        _ if family.is_core_since(11) => Some(1),
        _ => Some(2),
    }
}

/// Returns the ContextFlags of the context of a thread that the call has stopped (contract §3.7).
/// Framework 2 does not ask for more than CONTEXT_FULL.
pub(crate) const fn own_flags(family: Family) -> u32 {
    if is_framework_2(family) { 0x10_000B } else { 0xC010_000B }
}

/// Returns the ContextFlags after the Frame of a redirected thread (contract §3.7).
pub(crate) const fn redirected_flags(family: Family) -> u32 {
    match family.os {
        Os::Unix if family.is_core_since(10) => 0x10_000B,
        Os::Unix if family.is_core_since(8) => 0x10_004B,
        Os::Windows if family.is_core_since(10) => 0xC010_001B,
        Os::Windows if family.is_core_since(9) => 0xC010_005B,
        Os::Unix | Os::Windows => 0x10_000B,
    }
}

/// Returns the ContextFlags after a FaultingExceptionFrame (contract §3.7).
pub(crate) const fn faulted_flags(family: Family) -> u32 {
    match family.os {
        Os::Windows if family.is_core_since(10) => 0x810_001F,
        Os::Windows if family.is_core_since(9) => 0x810_0017,
        Os::Windows => 0x10_005F,
        Os::Unix if family.is_core_since(10) => 0x810_000B,
        Os::Unix if handles_in_managed_code(family) => 0x810_0003,
        Os::Unix if family.legacy_exceptions => 0x810_000B,
        Os::Unix => 0x810_004B,
    }
}

/// `CONTEXT_XSTATE`: bits of ContextFlags that decide how much of a seed is read (C-162).
pub const XSTATE: u32 = 0x10_0040;

/// Returns true if a call gives up where a code look-up would have to wait (C-036).
pub const fn refuses_to_wait(family: Family) -> bool {
    !is_framework_2(family) && !family.is_core_since(9)
}

/// Returns the size in bytes of the CONTEXT that callbacks get (C-102, C-103, C-161).
pub const fn context_size(family: Family) -> u32 {
    match family.os {
        Os::Unix if family.is_core_since(10) => 0xCA0,
        Os::Unix if family.is_core_since(8) => 0xC20,
        Os::Unix | Os::Windows => 0x4D0,
    }
}

/// Returns the number of bytes read of a seed with these ContextFlags and features (C-053, C-162).
pub const fn seed_size(family: Family, flags: u32, features: u64) -> u32 {
    let (extended, avx512) = (flags & XSTATE == XSTATE, features & 0xE0 != 0);
    match context_size(family) {
        0xCA0 if extended && features & 1 << 19 != 0 => 0xCA0,
        0xCA0 if !extended => 0x4D0,
        0x4D0 => 0x4D0,
        _ if !extended => 0x4D8,
        _ if avx512 => 0xC20,
        _ => 0x5E0,
    }
}
