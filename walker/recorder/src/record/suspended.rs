//! The recorder's own thread: calls for the threads of the runtime.

use super::recording::{IS_BUSY, Record};
use super::walk::{Call, Situation, Suspension, Thread};
use clr_sampler::{Process, Sampler, os::OwnProcess, threads};
use clr_walker::profiling::ProfilerInfo as _;
use std::time::{Duration, Instant};

/// The situation of calls for threads that run, until the runtime or the recorder suspends them.
pub(super) const CROSS_THREAD: &str = "cross-thread";
/// Time between turns as a multiple of the time that a turn took.
const REST: u32 = 3;
/// Time between turns where the settings want none: the runtime must go on.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// Makes calls for all threads until the recorder is over.
pub(super) fn run(sampler: &Sampler, record: &Record) {
    let process = &sampler.process;
    #[cfg(windows)]
    let mut room = super::capture::Capture::new();
    let mut rest = Instant::now();
    while !sampler.is_over() {
        for walk in record.waiting.take(record.pause.max(SHORTEST_PAUSE)) {
            record.write(process, &walk);
        }
        sampler.beat();
        process.code.look_for_images();
        IS_BUSY.set(true);
        let start = Instant::now();
        if start < rest {
            continue;
        }
        if record.is_turn(CROSS_THREAD) {
            #[cfg(target_os = "linux")]
            record.others(process, CROSS_THREAD, Suspension::Nothing);
            #[cfg(windows)]
            record.suspended(process, &mut room);
        }
        #[cfg(target_os = "linux")]
        if record.is_turn("signal") {
            record.interrupt_all(process);
        }
        if record.is_turn("cross-thread-runtime-suspended")
            && process.info.suspend_runtime().is_ok()
        {
            record.others(process, "cross-thread-runtime-suspended", Suspension::Runtime);
            let _ = process.info.resume_runtime();
        }
        // The others go on meanwhile.
        rest = Instant::now() + REST * start.elapsed();
    }
    for walk in record.waiting.take(Duration::ZERO) {
        record.write(process, &walk);
    }
}

impl Record {
    /// Makes calls for all threads.
    fn others(&self, process: &Process, name: &'static str, suspended: Suspension) {
        let situation = Situation { name, is_own: false, is_managed_walker: false, suspended };
        let calls = Call::all_unseeded(Thread::Other);
        let Some(vtables) = self.vtables() else { return };
        for index in 0..threads::MOST {
            // The thread's end waits for this.
            let _walking = process.walking();
            let Some(thread) = process.threads.get(index) else { continue };
            for call in &calls {
                let target = (thread.id(), thread.stack());
                self.call(process, vtables, situation, call, target, &OwnProcess);
            }
        }
    }
}
