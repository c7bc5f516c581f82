//! Calls for threads that the recorder's own has suspended.

use super::call::SUSPENDED;
use super::capture::{Capture, Stop};
use super::managed::ManagedCode;
use super::recording::Record;
use super::suspended::CROSS_THREAD;
use super::walk::{Call, Situation, Suspension, Thread};
use clr_sampler::{Process, Suspended, threads};
use clr_walker::profiling::{ModuleSource as _, TargetThread as _};

impl Record {
    /// Makes calls for all threads, each of which is suspended meanwhile.
    pub(super) fn suspended(&self, process: &Process, room: &mut Capture) {
        let situation = Situation {
            name: CROSS_THREAD,
            is_own: false,
            is_managed_walker: false,
            suspended: Suspension::Target,
        };
        let Some(vtables) = self.vtables() else { return };
        for index in 0..threads::MOST {
            // The thread's end waits for this.
            let _walking = process.walking();
            let Some(thread) = process.threads.get(index) else { continue };
            let Some(target) = Suspended::open(thread) else { continue };
            if !self.is_prepared(process, &target) {
                continue;
            }
            let quiet = self.suspensions.quiet();
            // Leaving the map may wake a thread that changes it, which takes a lock.
            let (map, images) = (process.code.code_map(), process.code.managed_images());
            let code = ManagedCode::new(&map, &images);
            room.take_stopped(&target, |room, registers| {
                let stop = Stop {
                    target: thread.id(),
                    thread: Thread::Other,
                    stack: thread.stack(),
                    registers,
                    low: target.low(),
                    origin: &SUSPENDED,
                };
                // SAFETY: the thread is suspended, and the lowest byte in use is that of its registers.
                unsafe { room.take(&process.info, code, &stop, (&self.layout, vtables)) };
            });
            drop(map);
            self.write_capture(process, vtables, situation, room, quiet);
        }
    }

    /// Returns true if the calling thread may ask for others that are suspended: the first call of a
    /// thread that finds a frame allocates.
    fn is_prepared(&self, process: &Process, target: &Suspended) -> bool {
        use std::sync::atomic::Ordering;
        if !self.is_prepared.load(Ordering::Relaxed) {
            let call = Call::unseeded(Thread::Other);
            let has_frames = call.make(&process.info, target.id()).count > 0;
            self.is_prepared.store(has_frames, Ordering::Relaxed);
        }
        self.is_prepared.load(Ordering::Relaxed)
    }
}
