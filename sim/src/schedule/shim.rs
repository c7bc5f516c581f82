use crate::runtime::{Lock, OsThreadId, Runtime, Wait};
use crate::world::World;
impl World<'_> {
    pub(super) fn waits_for(&self, _: usize) -> Option<Wait> {
        None
    }
    pub(super) fn others(&self, _: Wait, _: OsThreadId) -> Vec<OsThreadId> {
        Vec::new()
    }
    pub(super) fn is_waiting(&self, wait: Wait, os: OsThreadId) -> bool {
        self.as_synced().has_ended(wait, os) == Some(false)
    }
    pub(super) fn signal(&mut self, _: usize) -> bool {
        false
    }
}
impl Runtime<'_> {
    pub(super) fn try_acquire(&self, lock: Lock, os: OsThreadId) -> bool {
        let mut ok = false;
        self.change_process(|p| ok = p.try_acquire(lock, os));
        ok
    }
    pub(super) fn release(&self, lock: Lock, os: OsThreadId) {
        self.change_process(|p| {
            p.release(lock, os);
        });
    }
}
