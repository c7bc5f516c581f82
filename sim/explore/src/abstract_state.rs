//! The state that deadlocks depend on, as a number: a guided search looks for new ones.

use super::kernel::{Kernel, Waiting};
use clr_machine::Fnv1a;
use clr_runtime::Suspension;

impl Kernel<'_> {
    /// Returns a hash of the state that deadlocks depend on.
    pub(super) fn abstract_state(&self) -> u64 {
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
