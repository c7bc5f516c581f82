//! Contents of the things that access sets name: a search recognises states by them.
//!
//! They are known if the profiler's code has no data between its calls but what [`Setup::keeps`](super::Setup::keeps) names,
//! and no turn depends on time: then what follows is determined by the contents, and by what the code that is on a
//! coroutine has found so far.

use super::footprint::{
    CONDITIONS, EVENTS, Footprint, PROFILER_LOCKS, RUNTIME_LOCKS, SINGLE, Things,
};
use super::history::ThreadIndex;
use super::kernel::{Kernel, State, Thread};
use clr_runtime::Lock;
use clr_world::content::ContentHasher;
use core::hash::{Hash, Hasher as _};

/// Contents after a turn: those of what it has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The things by the numbers of their bits, ascending, with a hash of the content of each.
    things: Vec<(u32, u64)>,
    /// The thread of the turn is in the middle of code on a coroutine.
    goes_on: bool,
    position: Option<(u64, Footprint)>,
    /// The threads that were started in the turn: the first one, and the next one after the last.
    started: (u32, u32),
}

impl Contents {
    /// Returns the access set of the things whose contents are others than before.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Footprint {
        let pairs = self.things.iter().zip(&before.things);
        let bits = pairs.filter(|(now, before)| now != before).map(|((place, _), _)| 1 << place);
        Footprint::from_bits([bits.fold(0, |all: Things, bit: Things| all | bit), 0])
    }

    /// Creates contents of these things.
    #[cfg(test)]
    pub(super) fn of_things(things: &[(u32, u64)]) -> Self {
        Self { things: things.to_vec(), ..Self::default() }
    }

    /// Makes these the contents in the middle of code, at a position if it is known.
    #[cfg(test)]
    pub(super) fn in_code(mut self, position: Option<(u64, Footprint)>) -> Self {
        (self.goes_on, self.position) = (true, position);
        self
    }

    /// Makes these the contents after the start of threads with these numbers.
    #[cfg(test)]
    pub(super) fn starting(mut self, threads: core::ops::Range<u32>) -> Self {
        self.started = (threads.start, threads.end);
        self
    }

    /// Returns the numbers of things with their contents.
    pub(super) fn things(&self) -> &[(u32, u64)] {
        &self.things
    }

    /// Returns true if the thread of the turn is in the middle of code on a coroutine.
    pub(super) const fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Returns true if the thread with this number was started in the turn.
    pub(super) const fn has_started(&self, thread: u32) -> bool {
        let (first, end) = self.started;
        first <= thread && thread < end
    }

    /// Returns the position that determines what that code does next, together with what was accessed since it was
    /// there, if there is one.
    pub(super) const fn position(&self) -> Option<(u64, Footprint)> {
        self.position
    }
}

impl Kernel<'_> {
    /// Returns the contents at the beginning of a history, with those of the profiler's data; `None` if there are more
    /// threads than bits.
    pub(super) fn all_contents(&self, data: &dyn Fn() -> u64) -> Option<Contents> {
        self.contents_of(Footprint::ALL, data)
    }

    /// Returns the contents of what a turn has changed; `None` if it depends on time.
    pub(super) fn contents(&self, thread: ThreadIndex, data: &dyn Fn() -> u64) -> Option<Contents> {
        let footprint = self.footprint();
        let mut contents =
            self.contents_of(footprint, data).filter(|_| !self.turn.depends_on_time())?;
        let state = self.state.borrow();
        let me = state.threads.get(thread.index())?;
        contents.goes_on = !me.activities.is_empty();
        contents.started = (self.turn.first_started(), state.threads.len() as u32);
        // Other code on the thread would have a position of its own.
        contents.position = self.turn.position().filter(|(_, since)| {
            let others = since.without(Footprint::thread(thread));
            me.activities.len() == 1 && !footprint.changed().meets(others)
        });
        Some(contents)
    }

    fn contents_of(&self, footprint: Footprint, data: &dyn Fn() -> u64) -> Option<Contents> {
        let state = self.state.borrow();
        if state.threads.len() > Footprint::THREADS_WITH_BITS as usize {
            return None;
        }
        let [mut changed, _] = footprint.bits();
        let mut things = Vec::with_capacity(changed.count_ones() as usize);
        let mut common = None;
        while changed != 0 {
            let place = changed.trailing_zeros();
            changed &= changed - 1;
            let content = match place {
                0..RUNTIME_LOCKS => self.content_of_thread(&state, place),
                RUNTIME_LOCKS..PROFILER_LOCKS => self.content_of_lock(place - RUNTIME_LOCKS),
                PROFILER_LOCKS..EVENTS => {
                    content(&state.locks, place - PROFILER_LOCKS, EVENTS - PROFILER_LOCKS)
                }
                EVENTS..CONDITIONS => content(&state.events, place - EVENTS, CONDITIONS - EVENTS),
                CONDITIONS..SINGLE => {
                    content(&state.conditions, place - CONDITIONS, SINGLE - CONDITIONS)
                }
                _ => {
                    let common = common.get_or_insert_with(|| self.world.borrow().common_content());
                    match Footprint::from_bits([1 << place, 0]) {
                        Footprint::SUSPENSION => common.suspension,
                        Footprint::CODE => common.code,
                        Footprint::READERS => common.readers,
                        Footprint::RUNTIME => common.runtime,
                        Footprint::THREADS => common.threads,
                        Footprint::OBJECTS => common.objects,
                        Footprint::MEMORY => data(),
                        // Locks and condition variables are never removed.
                        _ => (state.locks.len() + state.conditions.len()) as u64,
                    }
                }
            };
            things.push((place, content));
        }
        Some(Contents { things, ..Contents::default() })
    }

    fn content_of_thread(&self, state: &State, place: u32) -> u64 {
        let Some(thread) = state.threads.get(place as usize) else { return 0 };
        let mut hasher = ContentHasher::default();
        hasher.write_u64(self.world.borrow().content_of(place as usize));
        thread.hash_without_code(&mut hasher);
        hasher.finish()
    }

    fn content_of_lock(&self, place: u32) -> u64 {
        let world = self.world.borrow();
        let here = |lock: &Lock| *lock as u32 % (PROFILER_LOCKS - RUNTIME_LOCKS) == place;
        let mut hasher = ContentHasher::default();
        Lock::ALL.into_iter().filter(here).for_each(|lock| {
            hasher.write_u64(world.content_of_lock(lock));
        });
        hasher.finish()
    }
}

/// Returns the content of the objects of a list that share a bit: each `bits`-th one.
fn content<T: Hash>(of: &[T], place: u32, bits: u32) -> u64 {
    let mut hasher = ContentHasher::default();
    of.iter().skip(place as usize).step_by(bits as usize).for_each(|one| one.hash(&mut hasher));
    hasher.finish()
}

impl Thread {
    /// Hashes all but the code that the thread executes, and what follows from that.
    fn hash_without_code(&self, hasher: &mut ContentHasher) {
        let Self {
            kind: _,
            name: _,
            os: _,
            activities: _,
            suspended_by,
            walks,
            calls,
            callbacks: _,
            walk_callbacks,
            has_owned,
            in_system,
            unwinds,
            signals,
            interrupted,
            ended,
        } = self;
        (suspended_by, walks, calls, walk_callbacks, has_owned, interrupted).hash(hasher);
        (in_system, unwinds, signals, ended).hash(hasher);
    }
}
