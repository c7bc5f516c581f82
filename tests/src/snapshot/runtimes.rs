//! Facts about runtimes, by family, that the properties need beside the table of the reference model. Their source is
//! the contract.

use clr_runtime::generation::{Family, Os};
pub(super) use clr_world::reference::runtimes::is_framework_2;

/// `CONTEXT_XSTATE`: bits of ContextFlags that decide how much of a seed is read (C-162).
pub(super) const XSTATE: u32 = 0x10_0040;

/// Returns true if a call gives up where a code look-up would have to wait (C-036).
pub(super) const fn refuses_to_wait(family: Family) -> bool {
    !is_framework_2(family) && !family.is_core_since(9)
}

/// Returns the size in bytes of the CONTEXT that callbacks get (C-102, C-103, C-161).
pub(super) const fn context_size(family: Family) -> u32 {
    match family.os {
        Os::Unix if family.is_core_since(10) => 0xCA0,
        Os::Unix if family.is_core_since(8) => 0xC20,
        Os::Unix | Os::Windows => 0x4D0,
    }
}

/// Returns the number of bytes read of a seed with these ContextFlags and features (C-053, C-162).
pub(super) const fn seed_size(family: Family, flags: u32, features: u64) -> u32 {
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
