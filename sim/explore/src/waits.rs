//! Access sets that decide if threads wait.

use super::footprint::Footprint;
use super::ids::{LockName, ThreadIndex};
use super::kernel::Kernel;
use super::state::Waiting;
use clr_runtime::Wait;

impl Kernel<'_> {
    /// Collects the threads that have not ended and are not `runnable`, with what decides about that: while no turn changes
    /// it, and other threads can run, they wait.
    pub(super) fn waits(&self, runnable: &[ThreadIndex], into: &mut Vec<(ThreadIndex, Footprint)>) {
        into.clear();
        let state = self.state.borrow();
        let starter = self.starts(&state);
        for (index, thread) in state.threads.iter().enumerate() {
            let index = ThreadIndex(index as u32);
            if thread.ended || runnable.contains(&index) {
                continue;
            }
            let own = Footprint::thread(index).read();
            let activity = thread.activities.last();
            let waiting = activity.map(|activity| activity.waiting);
            let expires =
                state.limits_expire && activity.is_some_and(|activity| activity.until.is_some());
            let decides = if self.suspensions(index) > 0 && !thread.in_system {
                Footprint::default()
            } else if let Some(starter) = starter.filter(|_| thread.kind.is_app()) {
                Footprint::thread(starter).read()
            } else if expires {
                // Other deadlines, and what else can run, decide about the limit.
                Footprint::ALL
            } else {
                match waiting {
                    Some(Some(Waiting::Lock(lock) | Waiting::Shared(lock))) => {
                        Footprint::lock(LockName::Profiler(lock)).read()
                    }
                    Some(Some(Waiting::Condition(condition, _))) => {
                        Footprint::condition(condition).read()
                    }
                    Some(Some(Waiting::Event(event))) => Footprint::event(event).read(),
                    Some(Some(Waiting::Join(other))) => Footprint::thread(other).read(),
                    Some(Some(Waiting::Runtime(wait))) => self.decides(wait),
                    // Other sleepers, and what else can run, decide about a sleeper.
                    Some(Some(Waiting::Time) | None) => Footprint::ALL,
                    None => {
                        let wait = self.world.borrow().waits_for(index.index());
                        wait.map_or(Footprint::ALL, |wait| self.decides(wait))
                    }
                }
            };
            into.push((index, own | decides));
        }
    }

    /// Returns what decides about a wait.
    pub(super) fn decides(&self, wait: Wait) -> Footprint {
        let writes = Footprint::READERS.and(Footprint::CODE).read();
        match wait {
            Wait::Lock(lock @ clr_runtime::Lock::CodeManager) => {
                Footprint::lock(LockName::Runtime(lock)).read() | writes
            }
            Wait::Lock(lock) => Footprint::lock(LockName::Runtime(lock)).read(),
            Wait::CodeManagerReaders => writes,
            Wait::RuntimeRunning(_) => Footprint::SUSPENSION.and(Footprint::RUNTIME).read(),
            Wait::Gc(_) => Footprint::RUNTIME.read(),
            Wait::ThreadsToStop
            | Wait::WakeUpOfInterrupted
            | Wait::GcWanted
            | Wait::ForegroundThreads
            | Wait::Program => self.program().and(Footprint::RUNTIME).read(),
        }
    }
}
