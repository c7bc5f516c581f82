//! The state of a process as hashes: what deadlocks depend on, and the contents of things.

use super::contents::Contents;
use super::footprint::{CONDITIONS, EVENTS, Footprint, PROFILER_LOCKS, RUNTIME_LOCKS, SINGLE};
use super::ids::ThreadIndex;
use super::kernel::Kernel;
use super::search::ProcessState;
use super::state::{State, Thread, Waiting};
use clr_machine::Fnv1a;
use clr_runtime::{Lock, Suspension};
use clr_world::content::ContentHasher;
use core::hash::{Hash, Hasher as _};

impl ProcessState for Kernel<'_> {
    fn contents(&self) -> Option<Contents> {
        self.all_contents(&|| 0)
    }

    fn abstract_state(&self) -> u64 {
        let mut hash = Fnv1a::default();
        let mut add = |value: u64| hash.add(value);
        let state = self.state.borrow();
        let world = self.world.borrow();
        let process = self.runtime.process.get();
        for lock in clr_runtime::Lock::ALL {
            add(process.owner(lock).map_or(0, |owner| u64::from(owner.0)));
        }
        add(match process.suspension {
            Suspension::None => 0,
            Suspension::Suspending(by) => 1 << 32 | u64::from(by.0),
            Suspension::Suspended(by) => 2 << 32 | u64::from(by.0),
        });
        for lock in &state.locks {
            let owner = lock.owner.map_or(0, |owner| u64::from(owner.0) + 1);
            add(owner | (lock.readers.len() as u64) << 32);
        }
        for condition in &state.conditions {
            add(condition.waiting() as u64);
        }
        let known = self.runtime.threads.borrow();
        for (index, thread) in state.threads.iter().enumerate() {
            let suspended = known.get(index).map_or(0, |known| known.suspended);
            add(u64::from(suspended) << 8 | u64::from(thread.ended));
            add(thread.walks.map_or(0, |walks| u64::from(walks.0) + 1));
            let activity = thread.activities.last();
            add(match activity.and_then(|activity| activity.waiting) {
                None => thread.activities.len() as u64,
                Some(Waiting::Lock(lock)) => 0x100 | u64::from(lock) << 12,
                Some(Waiting::Shared(lock)) => 0x600 | u64::from(lock) << 12,
                Some(Waiting::Condition(condition, _)) => 0x700 | u64::from(condition) << 12,
                Some(Waiting::Event(event)) => 0x200 | u64::from(event) << 12,
                Some(Waiting::Join(thread)) => 0x300 | u64::from(thread.0) << 12,
                Some(Waiting::Time) => 0x400,
                Some(Waiting::Runtime(_)) => 0x500,
            });
            if thread.kind.is_app() {
                add(u64::from(world.is_cooperative(index)));
                add(u64::from(world.waits_for(index).is_some()));
            }
        }
        hash.finish()
    }
}

impl Kernel<'_> {
    /// Returns the contents at the beginning of an interleaving, with those of the profiler's data; `None` if there are more
    /// threads than bits.
    pub(super) fn all_contents(&self, data: &dyn Fn() -> u64) -> Option<Contents> {
        self.contents_of(Footprint::ALL, data)
    }

    /// Returns the contents of what a turn has changed; `None` if it depends on time.
    pub(super) fn contents(&self, thread: ThreadIndex, data: &dyn Fn() -> u64) -> Option<Contents> {
        let footprint = self.turn.footprint();
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
            fallible_calls,
            callbacks: _,
            walk_callbacks,
            has_owned,
            in_system,
            unwinds,
            signals,
            uninterrupted,
            interrupted,
            waits: _,
            went_on: _,
            ended,
            // Only turns that depend on time depend on these.
            patience: _,
        } = self;
        (suspended_by, walks, calls, walk_callbacks, has_owned, interrupted).hash(hasher);
        (in_system, unwinds, signals, uninterrupted, ended, fallible_calls).hash(hasher);
    }
}
