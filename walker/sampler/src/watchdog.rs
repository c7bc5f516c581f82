//! The thread that sees hangs.

use crate::no_runtime::NoRuntime;
use crate::os;
use crate::process::Process;
use crate::request::{Answer, Request, Sample, Walks};
use crate::threads::{self, Thread};
#[cfg(target_os = "linux")]
use clr_unwind::Registers;
use clr_walker::mixed::{Policy, Walker};
use clr_walker::profiling::StackBounds;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// The buffers of the watchdog. Those of the sampler may be in use for ever.
#[derive(Debug)]
pub(crate) struct Watchdog {
    thread: Thread,
    request: Request,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        let walks = Walks::new(Policy::Signal);
        Self { thread: Thread::default(), request: Request::new(walks) }
    }

    /// Waits until `beats` has not changed for the time of `limit`.
    pub(crate) fn wait(beats: &AtomicU32, limit: Duration) {
        let (mut last, mut since) = (beats.load(Ordering::Relaxed), Instant::now());
        while since.elapsed() <= limit {
            std::thread::sleep(PAUSE);
            let now = beats.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
    }

    /// Takes the watchdog's own sample, in the signal handler.
    #[cfg(target_os = "linux")]
    pub(crate) fn take(&self, process: &Process, number: u32, registers: &Registers) {
        self.request.take(process, number, &self.thread, registers);
    }

    /// Returns the stacks of all threads of the process. `asked`: the sampler's request.
    pub(crate) fn stacks(&self, process: &Process, asked: &Request) -> String {
        let mut text = self.before(process, asked);
        let own = os::own_tid();
        for tid in os::tasks().into_iter().filter(|tid| *tid != own) {
            let _ = writeln!(text, "thread {tid}: {}", os::describe_task(tid));
            let known = process.threads.with_tid(tid).map(Thread::stack);
            let Some(stack) = known.or_else(|| os::stack_of_task(tid)) else { continue };
            if let Some(sample) = self.sample(process, tid, stack) {
                text.push_str(&frames(process, sample));
            }
        }
        text
    }

    /// Returns the sampler's stack while it still waits, and lets the thread run that it has suspended: that
    /// may hold the heap's lock, so it has to run before anything is allocated.
    #[cfg(windows)]
    fn before(&self, process: &Process, asked: &Request) -> String {
        let sampler = asked.asking();
        let stack = os::stack_of_task(sampler);
        let sample = stack.and_then(|stack| self.sample(process, sampler, stack));
        asked.let_go();
        let frames = sample.map(|sample| frames(process, sample)).unwrap_or_default();
        format!("thread {sampler}, which samples, before the suspended one runs on:\n{frames}")
    }

    #[cfg(not(windows))]
    #[expect(clippy::unused_self, reason = "another system needs it")]
    const fn before(&self, _process: &Process, _asked: &Request) -> String {
        String::new()
    }

    /// Asks a thread for a sample, into the watchdog's own room.
    fn sample(&self, process: &Process, tid: i32, stack: StackBounds) -> Option<&Sample> {
        self.thread.set(tid, stack);
        // SAFETY: only the watchdog's thread asks, and the answer ends before the next question.
        match unsafe { self.request.ask(process, &self.thread, threads::WATCHDOG) } {
            Answer::Taken(sample) => Some(sample),
            Answer::Missed(_) => None,
        }
    }
}

/// Returns the frames of a sample as text.
fn frames(process: &Process, sample: &Sample) -> String {
    // The real one may not answer.
    let walker = Walker::new(&NoRuntime, &process.code, Policy::Signal);
    let Ok(stack) = walker.stitch(&sample.buffer);
    let mut text = String::new();
    for frame in &stack.frames {
        let _ = writeln!(text, "  {:#x} {}", frame.sp, process.code.describe(frame.ip));
    }
    text
}
