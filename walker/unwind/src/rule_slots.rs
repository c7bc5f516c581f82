//! Compiled rules by address, in memory given beforehand.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

/// Slots for rules of `WORDS` words, by place of code. Each is written once, by whichever thread or signal
/// handler comes first, and never changes afterwards, so that readers need no lock.
///
/// A slot that is being written counts as taken: nobody waits for it. If all slots of a place are
/// taken, its rule is computed each time.
#[derive(Debug, Default)]
pub(crate) struct RuleSlots<const WORDS: usize> {
    /// As many as a power of two, or none.
    sets: Box<[Set<WORDS>]>,
}

const WAYS: usize = 4;

/// The slots of the places that share a hash.
#[derive(Debug)]
#[repr(align(64))]
struct Set<const WORDS: usize>([Slot<WORDS>; WAYS]);

#[derive(Debug)]
struct Slot<const WORDS: usize> {
    /// 0 for a free slot, [`BUSY`] while it is written, then a [`CodePlace`].
    key: AtomicU64,
    rule: [AtomicU64; WORDS],
}

/// The slot is being written.
const BUSY: u64 = 1;

/// The place of code that a rule is for, as the key of its slot: neither 0 nor [`BUSY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodePlace(u64);

impl CodePlace {
    /// Creates the place of the byte before a return address (RVA); for rules that do not depend on it,
    /// of any instruction.
    pub(crate) const fn called(rva: u32) -> Self {
        Self(1 << 32 | rva as u64)
    }

    /// Creates the place of an instruction before which the thread was stopped (RVA).
    pub(crate) const fn interrupted(rva: u32) -> Self {
        Self(2 << 32 | rva as u64)
    }
}

/// Reads a word of a rule that was found.
#[inline]
pub(crate) fn word(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

impl<const WORDS: usize> Set<WORDS> {
    const fn free() -> Self {
        Self(
            [const { Slot { key: AtomicU64::new(0), rule: [const { AtomicU64::new(0) }; WORDS] } };
                WAYS],
        )
    }
}

impl<const WORDS: usize> RuleSlots<WORDS> {
    /// Creates free slots: at least `count`, as many as a power of two; none for 0.
    pub(crate) fn new(count: usize) -> Self {
        let sets = if count == 0 { 0 } else { count.div_ceil(WAYS).next_power_of_two() };
        Self { sets: (0..sets).map(|_| Set::free()).collect() }
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(&*self.sets)
    }

    #[inline]
    fn set(&self, CodePlace(place): CodePlace) -> Option<&Set<WORDS>> {
        // Fibonacci hashing.
        let hash = (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        self.sets.get(hash & self.sets.len().wrapping_sub(1))
    }

    /// Returns the words of the rule of a place, if a slot has it. They are complete and do not change, so
    /// [`word`] reads them in any order.
    #[inline]
    pub(crate) fn get(&self, place: CodePlace) -> Option<&[AtomicU64; WORDS]> {
        let Set(slots) = self.set(place)?;
        // A slot with the key has its rule, and keeps both.
        let slot = slots.iter().find(|slot| slot.key.load(Ordering::Acquire) == place.0)?;
        Some(&slot.rule)
    }

    /// Returns true if a slot is free for a place.
    pub(crate) fn has_room(&self, place: CodePlace) -> bool {
        self.set(place).is_some_and(|Set(slots)| {
            slots.iter().any(|slot| slot.key.load(Ordering::Relaxed) == 0)
        })
    }

    /// Keeps the rule of a place, if a slot is free.
    pub(crate) fn put(&self, place: CodePlace, rule: [u64; WORDS]) {
        let Some(Set(slots)) = self.set(place) else { return };
        for slot in slots {
            let taken = slot.key.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed);
            match taken {
                Ok(_) => {
                    for (word, value) in slot.rule.iter().zip(rule) {
                        word.store(value, Ordering::Relaxed);
                    }
                    slot.key.store(place.0, Ordering::Release);
                    return;
                }
                Err(other) if other == place.0 => return,
                Err(_) => {}
            }
        }
    }
}

impl<const WORDS: usize> Clone for RuleSlots<WORDS> {
    /// Returns as many free slots.
    fn clone(&self) -> Self {
        Self { sets: self.sets.iter().map(|_| Set::free()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a rule whose words differ.
    fn rule(n: u32) -> [u64; 3] {
        [1, 2, 3].map(|word| u64::from(n) << 8 | word)
    }

    fn get(slots: &RuleSlots<3>, place: CodePlace) -> Option<[u64; 3]> {
        slots.get(place).map(|words| words.each_ref().map(word))
    }

    const fn place(rva: u32) -> CodePlace {
        CodePlace::called(rva)
    }

    #[test]
    fn rules_come_back_by_place() {
        let slots = RuleSlots::new(64);
        for rva in [0, 1, 0x1234, u32::MAX] {
            for (n, place) in [(1, place(rva)), (2, CodePlace::interrupted(rva))] {
                assert_eq!(get(&slots, place), None);
                slots.put(place, rule(rva ^ n));
            }
        }
        for rva in [0, 1, 0x1234, u32::MAX] {
            assert_eq!(get(&slots, place(rva)), Some(rule(rva ^ 1)));
            assert_eq!(get(&slots, CodePlace::interrupted(rva)), Some(rule(rva ^ 2)));
        }
        assert_eq!(get(&slots, place(2)), None);
        assert_eq!(get(&slots.clone(), place(1)), None);
        assert_eq!(slots.clone().size(), slots.size());
    }

    #[test]
    fn a_full_set_takes_no_more_and_loses_nothing() {
        let slots = RuleSlots::new(1);
        for rva in 0..9 {
            assert_eq!(slots.has_room(place(rva)), rva < WAYS as u32);
            slots.put(place(rva), rule(16));
            slots.put(place(rva), rule(24));
        }
        let kept = (0..9).filter(|rva| get(&slots, place(*rva)) == Some(rule(16))).count();
        assert_eq!(kept, WAYS);
        assert!((0..9).all(|rva| get(&slots, place(rva)) != Some(rule(24))));
    }

    #[test]
    fn no_slots_keep_nothing() {
        let slots = RuleSlots::default();
        assert!(!slots.has_room(place(5)));
        slots.put(place(5), rule(16));
        assert_eq!((get(&slots, place(5)), slots.size()), (None, 0));
    }

    /// A signal handler may interrupt the thread that writes a slot.
    #[test]
    fn a_slot_that_is_being_written_is_passed_over() {
        let slots = RuleSlots::new(1);
        slots.sets[0].0[0].key.store(BUSY, Ordering::Relaxed);
        slots.put(place(5), rule(16));
        assert_eq!(get(&slots, place(5)), Some(rule(16)));
        assert_eq!(slots.sets[0].0[0].key.load(Ordering::Relaxed), BUSY);
        slots.sets[0].0[1].key.store(BUSY, Ordering::Relaxed);
        assert_eq!(get(&slots, place(5)), None);
    }

    #[test]
    #[cfg(feature = "std")]
    fn threads_share_slots() {
        let slots = RuleSlots::new(512);
        std::thread::scope(|scope| {
            for start in 0..4_u32 {
                let slots = &slots;
                scope.spawn(move || {
                    for n in 0..if cfg!(miri) { 200 } else { 20_000_u32 } {
                        let rva = (n.wrapping_mul(7) + start) % 1000;
                        match get(slots, place(rva)) {
                            Some(found) => assert_eq!(found, rule(rva)),
                            None => slots.put(place(rva), rule(rva)),
                        }
                    }
                });
            }
        });
        let kept = (0..1000).filter(|rva| get(&slots, place(*rva)).is_some()).count();
        assert!((200..=512).contains(&kept), "{kept}");
    }
}
