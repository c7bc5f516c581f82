//! Groups of callbacks that a runtime is asked for.

use clr_sampler::EVENTS;
use clr_walker::profiling::EventMask;

/// MONITOR_EXCEPTIONS.
pub(crate) const EXCEPTIONS: u32 = 0x40;
/// MONITOR_ENTERLEAVE, ENABLE_FRAME_INFO.
const HOOKS: u32 = 0x0800_1000;

/// The groups in which `mode=record` makes calls: their names in settings, and bits of the event mask.
const GROUPS: [(&str, u32); 9] = [
    ("jit", 0x20),
    // APPDOMAIN_LOADS, ASSEMBLY_LOADS, MODULE_LOADS, CLASS_LOADS.
    ("loads", 0x1E),
    ("exceptions", EXCEPTIONS),
    ("gc", 0x80),
    // OBJECT_ALLOCATED, ENABLE_OBJECT_ALLOCATED.
    ("allocations", 0x0080_0100),
    ("threads", EventMask::MONITOR_THREADS.0),
    ("hooks", HOOKS),
    // CODE_TRANSITIONS: P/Invokes are not inlined then.
    ("transitions", 0x800),
    ("suspensions", EventMask::MONITOR_SUSPENDS.0),
];

/// Returns true if an event mask has enter, leave and tailcall hooks.
pub(crate) const fn has_hooks(mask: u32) -> bool {
    mask & HOOKS == HOOKS
}

/// Returns the event mask with these groups, whose names are separated by commas. `None` if there is
/// no such group.
pub(crate) fn mask(groups: &str) -> Option<u32> {
    groups.split(',').try_fold(EVENTS, |mask, group| {
        let (_, bits) = GROUPS.iter().find(|(name, _)| *name == group)?;
        Some(mask | bits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_their_own_group_has_hooks() {
        for (name, _) in GROUPS {
            assert_eq!(mask(name).map(has_hooks), Some(name == "hooks"), "{name}");
        }
        assert_eq!(mask("jit,hooks").map(has_hooks), Some(true));
    }
}
