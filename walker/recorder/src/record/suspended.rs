//! The recorder's own thread: calls for the threads of the runtime.

use super::Record;
use super::walk::{Call, Situation, Suspension, Thread};
use crate::os::OwnProcess;
use crate::recorder::Recorder;
use crate::threads;
use clr_walker::profiling::ProfilerInfo as _;
use std::time::{Duration, Instant};

/// The situation of calls for threads that run, until the runtime or the recorder suspends them.
pub(super) const CROSS_THREAD: &str = "cross-thread";
/// Time between turns as a multiple of the time that a turn took.
const REST: u32 = 3;
/// Time between turns where the settings want none: the runtime must go on.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// Makes calls for all threads until the recorder is over.
pub(crate) fn run(recorder: &'static Recorder, record: &Record) {
    #[cfg(windows)]
    let mut room = super::capture::Capture::new();
    let mut rest = Instant::now();
    while !recorder.is_over() {
        for walk in record.waiting.take(record.pause.max(SHORTEST_PAUSE)) {
            record.write(recorder, &walk);
        }
        recorder.beat();
        recorder.code.look_for_images();
        super::IS_BUSY.set(true);
        let start = Instant::now();
        if start < rest {
            continue;
        }
        if record.is_turn(CROSS_THREAD) {
            #[cfg(target_os = "linux")]
            record.others(recorder, CROSS_THREAD, Suspension::Nothing);
            #[cfg(windows)]
            record.suspended(recorder, &mut room);
        }
        #[cfg(target_os = "linux")]
        if record.is_turn("signal") {
            record.interrupt_all(recorder);
        }
        if record.is_turn("cross-thread-runtime-suspended")
            && recorder.info.suspend_runtime().is_ok()
        {
            record.others(recorder, "cross-thread-runtime-suspended", Suspension::Runtime);
            let _ = recorder.info.resume_runtime();
        }
        // The others go on meanwhile.
        rest = Instant::now() + REST * start.elapsed();
    }
    for walk in record.waiting.take(Duration::ZERO) {
        record.write(recorder, &walk);
    }
}

impl Record {
    /// Makes calls for all threads.
    fn others(&self, recorder: &Recorder, name: &'static str, suspended: Suspension) {
        let situation = Situation { name, is_own: false, is_managed_walker: false, suspended };
        let calls = Call::all_unseeded(Thread::Other);
        let Some(vtables) = self.vtables() else { return };
        for index in 0..threads::MOST {
            // The thread's end waits for this.
            let _walking = super::lock(&recorder.walking);
            let Some(thread) = recorder.threads.get(index) else { continue };
            for call in &calls {
                let target = (thread.id(), thread.stack());
                self.call(recorder, vtables, situation, call, target, &OwnProcess);
            }
        }
    }
}
