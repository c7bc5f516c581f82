//! The thread that ends hangs.

use crate::os;
use crate::recorder::Recorder;
use crate::request::{Answer, Request, Sample};
use crate::threads::Thread;
use clr_walker::mixed::{Policy, Walker};
use clr_walker::profiling::{CallError, FunctionId, HResult, ProfilerInfo, StackBounds};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The index of the watchdog's thread in signals.
pub(crate) const INDEX: usize = u32::MAX as usize;
/// The status with which a process that hung ends.
const STATUS: i32 = 86;

/// Room for the stacks of a process that hangs. The sampler's may be in use for ever.
#[derive(Debug)]
pub(crate) struct Watchdog {
    pub(crate) thread: Thread,
    pub(crate) request: Request,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        Self { thread: Thread::default(), request: Request::new(false) }
    }
}

/// A runtime that is not asked: in a process that hangs, the real one may not answer.
pub(crate) struct Silent;

impl ProfilerInfo for Silent {
    type Fatal = Infallible;

    fn get_function_from_ip(&self, _: u64) -> Result<FunctionId, CallError<Infallible>> {
        Err(HResult::FAIL.into())
    }
}

/// Waits until no sample has come for the time of the settings. Then writes the stacks of all threads
/// and the result, and ends the process.
pub(crate) fn run(recorder: &'static Recorder) {
    let limit = Duration::from_secs(recorder.settings.hang.into());
    let (mut last, mut since) = (recorder.beats(), Instant::now());
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = recorder.beats();
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > limit {
            eprint!("clr-recorder: no sample for {limit:?}\n{}", stacks(recorder));
            recorder.write_result(1);
            os::end(STATUS);
        }
    }
}

/// Returns the stacks of all threads of the process.
fn stacks(recorder: &'static Recorder) -> String {
    // The thread that the sampler has suspended may hold the heap's lock: it has to run before
    // anything is allocated. The sampler's stack is taken first, while it still waits.
    #[cfg(windows)]
    let mut text = {
        let sampler = recorder.request.asking();
        let sample = os::stack_of_task(sampler).and_then(|stack| sample(recorder, sampler, stack));
        recorder.request.let_go();
        let frames = sample.map(|sample| frames(recorder, sample)).unwrap_or_default();
        format!("thread {sampler}, which samples, before the suspended one runs on:\n{frames}")
    };
    #[cfg(not(windows))]
    let mut text = String::new();
    let own = os::own_tid();
    for tid in os::tasks().into_iter().filter(|tid| *tid != own) {
        let _ = writeln!(text, "thread {tid}: {}", os::describe_task(tid));
        let known = recorder.threads.with_tid(tid).map(Thread::stack);
        let Some(stack) = known.or_else(|| os::stack_of_task(tid)) else { continue };
        if let Some(sample) = sample(recorder, tid, stack) {
            text.push_str(&frames(recorder, sample));
        }
    }
    text
}

/// Asks a thread for a sample, into the watchdog's own room.
fn sample(recorder: &'static Recorder, tid: i32, stack: StackBounds) -> Option<&'static Sample> {
    let watchdog = &recorder.watchdog;
    watchdog.thread.set(tid, stack);
    // SAFETY: only this thread asks, and the answer ends before the next question.
    match unsafe { watchdog.request.ask(&watchdog.thread, INDEX) } {
        Answer::Taken(sample) => Some(sample),
        Answer::Missed => None,
    }
}

/// Returns the frames of a sample as text.
fn frames(recorder: &Recorder, sample: &Sample) -> String {
    let walker = Walker::new(&Silent, &recorder.code, Policy::Signal);
    let Ok(stack) = walker.stitch(&sample.buffer);
    let mut text = String::new();
    for frame in &stack.frames {
        let _ = writeln!(text, "  {:#x} {}", frame.sp, recorder.code.describe(frame.ip));
    }
    text
}
