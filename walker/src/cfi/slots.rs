//! Compiled rules by address, in memory given beforehand.

use super::rule::Rule;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

/// Slots for the compiled rules of addresses. Each is written once, by whichever thread or signal handler
/// comes first, and never changes afterwards, so that readers need no lock.
///
/// A slot that is being written counts as taken: nobody waits for it. If all slots of an address are
/// taken, its rule is computed each time.
#[derive(Debug, Default)]
pub(super) struct RuleSlots {
    /// As many as a power of two.
    sets: Box<[Set]>,
}

const WAYS: usize = 4;

/// The slots of the addresses that share a hash.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Set([Slot; WAYS]);

#[derive(Debug, Default)]
struct Slot {
    /// 0 for a free slot, [`BUSY`] while it is written, then [`key`].
    key: AtomicU64,
    rule: [AtomicU64; 3],
}

/// The slot is being written.
const BUSY: u64 = 1;

/// Returns the key of an address, which is neither 0 nor [`BUSY`].
const fn key(rva: u32) -> u64 {
    1 << 32 | rva as u64
}

impl RuleSlots {
    /// Creates free slots: at least `count`, as many as a power of two.
    pub(super) fn new(count: usize) -> Self {
        let sets = count.div_ceil(WAYS).next_power_of_two();
        Self { sets: (0..sets).map(|_| Set::default()).collect() }
    }

    /// Returns the size in bytes.
    pub(super) fn size(&self) -> usize {
        size_of_val(&*self.sets)
    }

    #[inline]
    fn set(&self, rva: u32) -> Option<&Set> {
        // Fibonacci hashing.
        let hash = (u64::from(rva).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        self.sets.get(hash & self.sets.len().wrapping_sub(1))
    }

    /// Returns the rule of `rva`, if a slot has it.
    #[inline]
    pub(super) fn get(&self, rva: u32) -> Option<Rule> {
        let Set(slots) = self.set(rva)?;
        // A slot with the key has its rule, and keeps both.
        let slot = slots.iter().find(|slot| slot.key.load(Ordering::Acquire) == key(rva))?;
        Some(Rule::from_words(slot.rule.each_ref().map(|word| word.load(Ordering::Relaxed))))
    }

    /// Keeps the rule of `rva`, if a slot is free.
    pub(super) fn put(&self, rva: u32, rule: &Rule) {
        let Some(Set(slots)) = self.set(rva) else { return };
        for slot in slots {
            let taken = slot.key.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed);
            match taken {
                Ok(_) => {
                    for (word, value) in slot.rule.iter().zip(rule.to_words()) {
                        word.store(value, Ordering::Relaxed);
                    }
                    slot.key.store(key(rva), Ordering::Release);
                    return;
                }
                Err(other) if other == key(rva) => return,
                Err(_) => {}
            }
        }
    }
}

impl Clone for RuleSlots {
    /// Returns as many free slots.
    fn clone(&self) -> Self {
        Self { sets: self.sets.iter().map(|_| Set::default()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(offset: i32) -> Rule {
        let rule = Rule::new().with_load(3, offset).and_then(|rule| rule.with_load(12, -4096));
        let rule = rule.and_then(|rule| rule.with_cfa(super::super::Column(7), -offset));
        rule.unwrap()
    }

    #[test]
    fn rules_come_back_by_address() {
        let slots = RuleSlots::new(64);
        for rva in [0, 1, 0x1234, u32::MAX] {
            assert_eq!(slots.get(rva), None);
            slots.put(rva, &rule(-16 - (rva & 0xF0).cast_signed()));
        }
        for rva in [0, 1, 0x1234, u32::MAX] {
            assert_eq!(slots.get(rva), Some(rule(-16 - (rva & 0xF0).cast_signed())));
        }
        assert_eq!(slots.get(2), None);
        assert_eq!(slots.clone().get(1), None);
        assert_eq!(slots.clone().size(), slots.size());
    }

    #[test]
    fn a_full_set_takes_no_more_and_loses_nothing() {
        let slots = RuleSlots::new(1);
        for rva in 0..9 {
            slots.put(rva, &rule(-16));
            slots.put(rva, &rule(-24));
        }
        let kept = (0..9).filter(|rva| slots.get(*rva) == Some(rule(-16))).count();
        assert_eq!(kept, WAYS);
        assert!((0..9).all(|rva| slots.get(rva) != Some(rule(-24))));
    }

    /// A signal handler may interrupt the thread that writes a slot.
    #[test]
    fn a_slot_that_is_being_written_is_passed_over() {
        let slots = RuleSlots::new(1);
        slots.sets[0].0[0].key.store(BUSY, Ordering::Relaxed);
        slots.put(5, &rule(-16));
        assert_eq!(slots.get(5), Some(rule(-16)));
        assert_eq!(slots.sets[0].0[0].key.load(Ordering::Relaxed), BUSY);
        slots.sets[0].0[1].key.store(BUSY, Ordering::Relaxed);
        assert_eq!(slots.get(5), None);
    }

    #[test]
    #[cfg(feature = "std")]
    fn threads_share_slots() {
        let slots = RuleSlots::new(512);
        let offset = |rva: u32| -8 * (2 + (rva % 400).cast_signed());
        std::thread::scope(|scope| {
            for start in 0..4_u32 {
                let slots = &slots;
                scope.spawn(move || {
                    for n in 0..20_000_u32 {
                        let rva = (n.wrapping_mul(7) + start) % 1000;
                        match slots.get(rva) {
                            Some(found) => assert_eq!(found, rule(offset(rva))),
                            None => slots.put(rva, &rule(offset(rva))),
                        }
                    }
                });
            }
        });
        let kept = (0..1000).filter(|rva| slots.get(*rva).is_some()).count();
        assert!((200..=512).contains(&kept), "{kept}");
    }
}
