//! A thread that samples between the callbacks: `sampler=1`.
//!
//! It suspends the runtime, walks each thread, and resumes the runtime. It asks for nothing but the
//! profiling interface, so that a search of interleavings can schedule it (`clrsim host --schedules`). Names are
//! not asked for while the runtime is suspended.

use clr_com::RuntimeInfo;
use clr_sampler::lock;
use clr_walker::profiling::{
    HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, SnapshotRequest,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Pause between two samples.
const PAUSE: Duration = Duration::from_millis(1);

/// The state that both threads share.
#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    /// Number of walks with frames.
    walks: AtomicUsize,
}

/// The thread, until it is stopped.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sampler {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system's message.
    pub(super) fn start(&self, info: RuntimeInfo) -> Result<(), String> {
        let shared = Arc::clone(&self.shared);
        let thread = Builder::new().name("clr-recorder".to_owned());
        let thread =
            thread.spawn(move || run(&info, &shared)).map_err(|error| error.to_string())?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    /// Stops the thread. Returns the number of its walks with frames, or `None` if there is no thread.
    pub(super) fn stop(&self) -> Option<usize> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        lock(&self.thread).take()?.join().ok()?;
        Some(self.shared.walks.load(Ordering::Relaxed))
    }
}

fn run(info: &RuntimeInfo, shared: &Shared) {
    let _ = info.initialize_current_thread();
    while !shared.is_over.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
        if info.suspend_runtime().is_err() {
            continue;
        }
        for thread in info.enum_threads().unwrap_or_default() {
            let mut frames = 0;
            let mut on_frame = |_: &mut SnapshotFrame<'_>| {
                frames += 1;
                HResult::OK
            };
            let flags = SnapshotFlags::DEFAULT;
            let _ =
                info.do_stack_snapshot(&SnapshotRequest::of(thread, flags), Some(&mut on_frame));
            shared.walks.fetch_add(usize::from(frames > 0), Ordering::Relaxed);
        }
        let _ = info.resume_runtime();
    }
}
