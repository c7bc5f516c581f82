//! The signature of a state: a hash of all that can determine what follows.
//!
//! If contents are known ([`Contents`]), it consists of them. Otherwise it stands for the partial order of the steps so far:
//! two interleavings have the same one if they differ in the order of independent steps alone.

use crate::contents::Contents;
use crate::footprint::{Footprint, Things};
use crate::ids::ThreadIndex;
use clr_machine::SplitMix64;

/// Number of bits of a footprint.
const BITS: usize = Things::BITS as usize;

/// The traces of the steps so far in each thing.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    /// For each bit of footprints its content, or else the hash of the last step that changed it.
    on: [u64; BITS],
    /// For each thread the hash of what its code on a coroutine has found so far; 0 if it has none.
    progress: [u64; Footprint::THREADS_WITH_BITS as usize],
    sum: u64,
    by_content: bool,
}

impl Default for Signature {
    fn default() -> Self {
        let progress = [0; Footprint::THREADS_WITH_BITS as usize];
        Self { on: [0; BITS], progress, sum: 0, by_content: false }
    }
}

/// Returns a word whose bits all depend on all bits of two others.
const fn mix(one: u64, other: u64) -> u64 {
    SplitMix64::mixed(one.rotate_left(23) ^ other.wrapping_mul(SplitMix64::STEP))
}

/// Returns the places of the bits that are set, the lowest first.
fn places(mut bits: Things) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (place < BITS).then_some(place)
    })
}

impl Signature {
    /// Creates the signature of a state with these contents.
    pub(super) fn of(contents: &Contents) -> Self {
        let mut signature = Self { by_content: true, ..Self::default() };
        for (place, content) in contents.things() {
            signature.set(*place, *content, None);
        }
        signature
    }

    /// Adds a step of a thread, with the contents that it has left, if the signature consists of contents.
    ///
    /// Without them, the step comes after the last steps that have changed what it accesses. Each step changes its
    /// thread's own state, so that the thread's last one is among these. A step that only reads is found by no other one:
    /// the order of such steps, and of a change that comes after them, follows from what they have found.
    pub(super) fn add(
        &mut self,
        thread: ThreadIndex,
        footprint: Footprint,
        left: Option<&Contents>,
    ) {
        let step = self.view(thread, footprint);
        if let Some(left) = left {
            let progress = match left.position() {
                Some((position, since)) => mix(!position, self.view_of(false, thread, since)),
                None => step,
            };
            // 0 stands for none.
            let progress = if left.goes_on() { progress | 1 } else { 0 };
            for (place, content) in left.things() {
                let progress = match *place {
                    own if own == thread.0 => Some(progress),
                    // The code that begins may know all that the turn has found.
                    started if left.has_started(started) => Some(mix(step, started.into())),
                    _ => None,
                };
                self.set(*place, *content, progress);
            }
            return;
        }
        let [changed, _] = footprint.bits();
        for bit in places(changed) {
            if let Some(last) = self.on.get_mut(bit) {
                *last = step;
            }
        }
        // The order of independent steps must not matter.
        self.sum = self.sum.wrapping_add(step);
    }

    /// Sets the content of a thing, and the progress of a thread.
    fn set(&mut self, place: u32, content: u64, progress: Option<u64>) {
        let at = place as usize;
        let Some(on) = self.on.get_mut(at) else { return };
        let made = self.progress.get_mut(at);
        let before = made.as_ref().map_or(0, |made| **made);
        let term = |content, progress| mix(mix(u64::from(place), content), progress);
        let after = progress.unwrap_or(before);
        self.sum = self.sum.wrapping_sub(term(*on, before)).wrapping_add(term(content, after));
        *on = content;
        if let Some(made) = made {
            *made = after;
        }
    }

    /// Returns a hash of what a step of a thread would find in the things that it accesses: of their contents, or of the last
    /// steps that have changed them.
    pub(super) fn view(&self, thread: ThreadIndex, footprint: Footprint) -> u64 {
        self.view_of(true, thread, footprint)
    }

    /// Returns such a hash, with or without the progress of the thread itself.
    fn view_of(&self, with_own: bool, thread: ThreadIndex, footprint: Footprint) -> u64 {
        let [changed, read] = footprint.bits();
        let word = |set: Things| mix(set as u64, (set >> 64) as u64);
        let about = mix(mix(word(changed), word(read)), u64::from(thread.0));
        places(changed | read).fold(about, |view, bit| {
            let view = mix(view, self.on.get(bit).copied().unwrap_or_default());
            match self.progress.get(bit).filter(|_| self.by_content) {
                Some(progress) if with_own || bit != thread.index() => mix(view, *progress),
                _ => view,
            }
        })
    }

    /// Returns true if a step has changed the state of a thread.
    pub(super) fn has_touched(&self, thread: ThreadIndex) -> bool {
        let [changed, _] = Footprint::thread(thread).bits();
        places(changed).any(|bit| self.on.get(bit).is_some_and(|last| *last != 0))
    }

    /// Returns the hash.
    pub(super) const fn hash(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(steps: &[(u32, Things)]) -> u64 {
        let mut order = Signature::default();
        for (thread, touched) in steps {
            let own = Footprint::thread(ThreadIndex(*thread));
            order.add(ThreadIndex(*thread), own | Footprint::from_bits([*touched << 60, 0]), None);
        }
        order.hash()
    }

    #[test]
    fn only_the_order_of_dependent_steps_matters() {
        assert_eq!(hash(&[(0, 1), (1, 2)]), hash(&[(1, 2), (0, 1)]));
        assert_eq!(hash(&[(0, 1), (1, 2), (0, 3)]), hash(&[(1, 2), (0, 1), (0, 3)]));
        assert_ne!(hash(&[(0, 1), (1, 1)]), hash(&[(1, 1), (0, 1)]));
        assert_ne!(hash(&[(0, 1), (1, 1), (0, 1)]), hash(&[(0, 1), (0, 1), (1, 1)]));
        assert_ne!(hash(&[(0, 1)]), hash(&[(1, 1)]));
        assert_ne!(hash(&[(0, 1)]), hash(&[(0, 2)]));
        assert_ne!(hash(&[]), hash(&[(0, 0)]));
        let reads = |threads: [u32; 3]| {
            let mut order = Signature::default();
            for thread in threads {
                let changes = Footprint::from_bits([1 << 60, 0]);
                // The thread 2 changes what the others read.
                order.add(
                    ThreadIndex(thread),
                    if thread == 2 { changes } else { changes.read() },
                    None,
                );
            }
            order.hash()
        };
        assert_eq!(reads([0, 1, 2]), reads([1, 0, 2]));
        assert_ne!(reads([0, 1, 2]), reads([0, 2, 1]));
        // A step between two others orders them.
        let (one, other) = ([(0, 1), (1, 3), (2, 2)], [(2, 2), (1, 3), (0, 1)]);
        assert_ne!(hash(&one), hash(&other));
    }

    const ONE: ThreadIndex = ThreadIndex(0);
    const OTHER: ThreadIndex = ThreadIndex(1);
    /// The bit of a thing that no thread is.
    const THING: u32 = 60;

    /// Returns the changes of a thing.
    fn thing() -> Footprint {
        Footprint::from_bits([1 << THING, 0])
    }

    /// Returns the hash after a step of the first thread that has read the thing and left `after`, where the thing was
    /// `found`; then another thread has changed the thing, and `last` steps have been made.
    fn hash_after(
        found: u64,
        after: &Contents,
        last: &[(ThreadIndex, Footprint, Contents)],
    ) -> u64 {
        let start = Contents::of_things(&[(0, 10), (1, 11), (2, 12), (THING, found)]);
        let mut signature = Signature::of(&start);
        signature.add(ONE, Footprint::thread(ONE) | thing().read(), Some(after));
        let changes = Footprint::thread(OTHER) | thing();
        signature.add(OTHER, changes, Some(&Contents::of_things(&[(1, 21), (THING, 7)])));
        for (thread, footprint, left) in last {
            signature.add(*thread, *footprint, Some(left));
        }
        signature.hash()
    }

    #[test]
    fn states_of_equal_contents_are_one_if_no_code_is_in_the_middle() {
        let ended = Contents::of_things(&[(0, 20)]);
        assert_eq!(hash_after(1, &ended, &[]), hash_after(2, &ended, &[]));
        assert_ne!(
            hash_after(1, &ended, &[]),
            hash_after(1, &Contents::of_things(&[(0, 30)]), &[])
        );
        // The contents of the beginning count, too.
        let of = |content| Signature::of(&Contents::of_things(&[(THING, content)])).hash();
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn code_in_the_middle_knows_what_it_has_found() {
        let going_on = Contents::of_things(&[(0, 20)]).in_code(None);
        assert_ne!(hash_after(1, &going_on, &[]), hash_after(2, &going_on, &[]));
        assert_eq!(hash_after(1, &going_on, &[]), hash_after(1, &going_on, &[]));
        // Another thread's step does not change that, even if it changes the first thread's state.
        let mine = Footprint::thread(OTHER) | Footprint::thread(ONE);
        let last = [(OTHER, mine, Contents::of_things(&[(0, 40), (1, 41)]))];
        assert_ne!(hash_after(1, &going_on, &last), hash_after(2, &going_on, &last));
        // When the code has ended, nothing is left of it.
        let end = [(ONE, Footprint::thread(ONE), Contents::of_things(&[(0, 50)]))];
        assert_eq!(hash_after(1, &going_on, &end), hash_after(2, &going_on, &end));
    }

    #[test]
    fn code_at_a_position_knows_what_it_has_found_since() {
        let at = |position, since| Contents::of_things(&[(0, 20)]).in_code(Some((position, since)));
        let nothing = at(5, Footprint::default());
        assert_eq!(hash_after(1, &nothing, &[]), hash_after(2, &nothing, &[]));
        assert_ne!(hash_after(1, &nothing, &[]), hash_after(1, &at(6, Footprint::default()), &[]));
        let since = at(5, thing().read());
        assert_ne!(hash_after(1, &since, &[]), hash_after(2, &since, &[]));
        // What it knew before it came to the position makes no difference, although its own state does.
        let before = Contents::of_things(&[(0, 20)]).in_code(None);
        let then = [(ONE, Footprint::thread(ONE), at(5, Footprint::thread(ONE).read()))];
        assert_eq!(hash_after(1, &before, &then), hash_after(2, &before, &then));
    }

    #[test]
    fn a_started_thread_may_know_what_its_starter_has_found() {
        let own = |number: u32| Contents::of_things(&[(0, 20), (2, 30)]).starting(2..number);
        assert_ne!(hash_after(1, &own(3), &[]), hash_after(2, &own(3), &[]));
        assert_eq!(hash_after(1, &own(2), &[]), hash_after(2, &own(2), &[]), "none was started");
    }

    #[test]
    fn a_view_is_that_of_all_things_and_of_the_thread() {
        let signature = Signature::default();
        let bits = |bit: u32| Footprint::from_bits([1 << bit, 0]);
        let views = [
            signature.view(ONE, bits(60)),
            signature.view(ONE, bits(61)),
            signature.view(ONE, bits(70)),
            signature.view(ONE, bits(71)),
            signature.view(ONE, bits(60).read()),
            signature.view(OTHER, bits(60)),
        ];
        let different: std::collections::BTreeSet<_> = views.into_iter().collect();
        assert_eq!(different.len(), views.len(), "{views:x?}");
    }

    #[test]
    fn a_thread_is_touched_by_the_first_step_that_changes_it() {
        let mut order = Signature::default();
        order.add(ONE, Footprint::thread(ONE) | Footprint::thread(OTHER).read(), None);
        assert!(order.has_touched(ONE) && !order.has_touched(OTHER));
        order.add(ONE, Footprint::thread(ONE) | Footprint::thread(OTHER), None);
        assert!(order.has_touched(OTHER));
    }
}
