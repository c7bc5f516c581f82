//! The thread that samples, and what it shares with callbacks, signal handler and watchdog.

use crate::at_time::AtTime;
use crate::code::{Code, Log};
use crate::lock::lock;
use crate::process::Process;
use crate::request::{Answer, Missed, Request, RuntimeSuspended, Sample, Walks};
#[cfg(target_os = "linux")]
use crate::retry::Retry;
use crate::watchdog::Watchdog;
#[cfg(target_os = "linux")]
use crate::{
    os,
    threads::{self, Thread},
};
use clr_com::{ICorProfilerInfo5, IUnknown, RuntimeInfo};
#[cfg(target_os = "linux")]
use clr_unwind::Registers;
use clr_walker::mixed::{MixedStack, Policy, Reason, Walker};
use clr_walker::profiling::{EventMask, HResult};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The event mask that sampling needs: JIT_COMPILATION, FUNCTION_UNLOADS, MODULE_LOADS, THREADS, SUSPENDS,
/// ENABLE_STACK_SNAPSHOT.
pub const EVENTS: u32 = 0x20
    | 0x1
    | 0x4
    | EventMask::MONITOR_THREADS.0
    | EventMask::MONITOR_SUSPENDS.0
    | EventMask::ENABLE_STACK_SNAPSHOT.0;
/// COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS.
const HIGH_EVENTS: u32 = 0x4;
/// Number of times that a name is asked for again.
const MOST_RETRIES: usize = 100;
/// The pause where there is nothing to do, or where the runtime refuses.
const SHORT: Duration = Duration::from_millis(1);

/// The sampler of this process. It is never freed: a handler may run at any time.
static SAMPLER: OnceLock<Sampler> = OnceLock::new();

/// A use of samples: a profiler implements it.
pub trait Mode: Debug + Send + Sync {
    /// Does what only `Initialize` may do, after the event mask was set.
    ///
    /// # Errors
    /// A text for people: a refusal of the runtime.
    fn on_initialize(&self, _info: &ICorProfilerInfo5) -> Result<(), String> {
        Ok(())
    }

    /// Runs on the sampler's thread until the sampler [is over](Sampler::is_over). Samples, unless a mode does
    /// something else.
    fn run(&self, sampler: &'static Sampler) {
        sampler.sample();
    }

    /// Runs in the signal handler of `thread`, interrupted with these registers, for the request of this number.
    #[cfg(target_os = "linux")]
    fn in_signal(&self, sampler: &Sampler, number: u32, thread: &Thread, registers: &Registers) {
        sampler.take(number, thread, registers);
    }

    /// Gets a sample, and its frames with their names. The sampler has [`Process::asking`] meanwhile.
    fn on_sample(&self, process: &Process, sample: &Sample, stack: &MixedStack);

    /// Is called for a request that led to no sample.
    fn on_missed(&self, _why: Missed) {}

    /// Is called when no more samples come, in `Shutdown`.
    fn on_end(&self, _process: &Process) {}

    /// Gets the stacks of all threads as text when no sample has come for the time of the options. The process
    /// is in no state to go on.
    fn on_hang(&self, _process: &Process, _stacks: &str) {}
}

/// The wishes of a profiler.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The walks.
    pub walks: Walks,
    /// The event mask: [`EVENTS`], and those that the mode needs.
    pub events: u32,
    /// Samples in a second, of all threads together. 0: as many as can be taken.
    pub rate: u32,
    /// The time without a sample that is a hang, in seconds. 0: none is.
    pub hang: u32,
    /// Gets messages for people: what was refused.
    pub log: Log,
}

impl Default for Options {
    fn default() -> Self {
        let walks = Walks::new(crate::os::POLICIES[0]);
        Self { walks, events: EVENTS, rate: 100, hang: 0, log: |_| {} }
    }
}

/// The sampler.
#[derive(Debug)]
pub struct Sampler {
    /// The runtime, the code and the threads of the process.
    pub process: Process,
    options: Options,
    mode: Box<dyn Mode>,
    request: Request,
    watchdog: Watchdog,
    beats: AtomicU32,
    is_over: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sampler {
    /// Returns the sampler of this process, after [`start`](Self::start).
    pub fn get() -> Option<&'static Self> {
        SAMPLER.get()
    }

    /// Starts the sampler, in `Initialize`.
    ///
    /// # Errors
    /// A text for people: a refusal of the runtime or of the system.
    pub fn start(info: &IUnknown, options: Options, mode: Box<dyn Mode>) -> Result<(), String> {
        let said = |what: &'static str| move |result: HResult| format!("{what}: {result}");
        let interface: ICorProfilerInfo5 = info.cast().map_err(said("ICorProfilerInfo5"))?;
        // SAFETY: the call has no pointers.
        let result = unsafe { interface.SetEventMask2(options.events, HIGH_EVENTS) };
        if result.is_failure() {
            return Err(said("SetEventMask2")(result));
        }
        mode.on_initialize(&interface)?;
        let sampler = Self {
            process: Process::new(info, options.log).map_err(said("ICorProfilerInfo2"))?,
            options,
            mode,
            request: Request::new(options.walks),
            watchdog: Watchdog::new(),
            beats: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            thread: Mutex::new(None),
        };
        SAMPLER.set(sampler).map_err(|_| "the sampler runs already")?;
        let sampler = SAMPLER.get().ok_or("no sampler")?;
        #[cfg(target_os = "linux")]
        if !os::install(on_signal) {
            return Err("the signal handler cannot be installed".to_owned());
        }
        sampler.spawn().map_err(|error| error.to_string())
    }

    fn spawn(&'static self) -> std::io::Result<()> {
        let thread = Builder::new().name("clr-sampler".to_owned());
        *lock(&self.thread) = Some(thread.spawn(move || self.mode.run(self))?);
        if self.options.hang > 0 {
            Builder::new().name("clr-watchdog".to_owned()).spawn(move || self.watch())?;
        }
        Ok(())
    }

    /// Waits for a hang, and reports it to the mode.
    fn watch(&self) {
        loop {
            Watchdog::wait(&self.beats, Duration::from_secs(self.options.hang.into()));
            let stacks = self.watchdog.stacks(&self.process, &self.request);
            self.mode.on_hang(&self.process, &stacks);
        }
    }

    /// Takes the sample of this number, in the signal handler of `thread`: what [`Mode::in_signal`] does.
    #[cfg(target_os = "linux")]
    pub fn take(&self, number: u32, thread: &Thread, registers: &Registers) {
        self.request.take(&self.process, number, thread, registers);
    }

    /// Returns true if no more samples shall be taken.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Counts a turn of the sampler's thread, without which the watchdog sees a hang.
    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends sampling, in `Shutdown`, and waits for the thread.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.mode.on_end(&self.process);
    }

    /// Samples one thread after the other until the sampler is over.
    fn sample(&'static self) {
        let mut turns = Turns::new(self);
        let pause = match self.options.rate {
            0 => Duration::ZERO,
            rate => Duration::from_secs(1) / rate,
        };
        let mut next = Instant::now();
        while !self.is_over() {
            self.beat();
            self.process.code.look_for_images();
            next += pause;
            if !turns.take() {
                std::thread::sleep(SHORT);
            }
            let now = Instant::now();
            if let Some(early) = next.checked_duration_since(now) {
                std::thread::sleep(early);
            } else {
                next = now;
            }
        }
        #[cfg(target_os = "linux")]
        turns.finish_late(true);
    }
}

/// The turns of the sampler's thread.
struct Turns {
    sampler: &'static Sampler,
    walker: Walker<'static, RuntimeInfo, Code>,
    suspended: RuntimeSuspended,
    #[cfg(target_os = "linux")]
    late: Retry,
    /// Index of the thread that was walked last.
    last: usize,
}

impl Turns {
    fn new(sampler: &'static Sampler) -> Self {
        let (process, walks) = (&sampler.process, sampler.options.walks);
        Self {
            sampler,
            walker: Walker::new(&process.info, &process.code, walks.policy),
            suspended: RuntimeSuspended::new(walks.copies),
            #[cfg(target_os = "linux")]
            late: Retry::default(),
            last: 0,
        }
    }

    /// Walks the next thread, or the next ones during one suspension of the runtime. Returns false if there is
    /// none, or if the runtime refuses.
    fn take(&mut self) -> bool {
        let Some(index) = self.sampler.process.threads.after(self.last) else { return false };
        let is_taken = if self.sampler.options.walks.policy == Policy::RuntimeSuspended {
            self.many()
        } else {
            self.last = index;
            self.one(index);
            true
        };
        #[cfg(target_os = "linux")]
        self.finish_late(false);
        is_taken
    }

    fn many(&mut self) -> bool {
        let Sampler { process, request, mode, .. } = self.sampler;
        // SAFETY: this is the only sampler, and the last samples are not used any more.
        let samples =
            unsafe { self.suspended.take(process, request, &self.walker, &mut self.last) };
        let Some(samples) = samples else {
            mode.on_missed(Missed::NotSuspended);
            return false;
        };
        for sample in samples {
            add(self.sampler, sample);
        }
        true
    }

    fn one(&mut self, index: usize) {
        let Sampler { process, request, mode, .. } = self.sampler;
        #[cfg(target_os = "linux")]
        let changes = process.code.changes();
        let answer = {
            let _walking = process.walking();
            let Some(thread) = process.threads.get(index) else { return };
            // SAFETY: this is the only sampler, and the last sample is not used any more.
            unsafe { request.ask(process, thread, index) }
        };
        match answer {
            // Other policies ask the runtime, which knows all of its code.
            #[cfg(target_os = "linux")]
            Answer::Taken(sample)
                if self.sampler.options.walks.policy == Policy::Signal
                    && self.late.keep(sample, changes) => {}
            Answer::Taken(sample) => add(self.sampler, sample),
            Answer::Missed(why) => mode.on_missed(why),
        }
    }

    /// Adds the samples whose walks have been finished later.
    #[cfg(target_os = "linux")]
    fn finish_late(&mut self, is_over: bool) {
        let process = &self.sampler.process;
        let changes = process.code.changes();
        while let Some(sample) = self.late.finish(&process.info, &process.code, changes, is_over) {
            add(self.sampler, sample);
        }
    }
}

/// Names the frames of a sample, and gives it to the mode.
fn add(sampler: &Sampler, sample: &Sample) {
    let Sampler { process, mode, options, .. } = sampler;
    let _asking = process.asking();
    let then = AtTime { process, time: sample.taken_at };
    let walker = Walker::new(&then, &process.code, options.walks.policy);
    let Ok(mut stack) = walker.stitch(&sample.buffer);
    // The runtime cannot name code while its tables are being written.
    for _ in 0..MOST_RETRIES {
        if !stack.gaps.iter().any(|gap| matches!(gap.reason, Reason::Lookup(_))) {
            break;
        }
        std::thread::yield_now();
        let Ok(again) = walker.stitch(&sample.buffer);
        stack = again;
    }
    let has_ended = |ip| process.code.has_ended(ip, sample.taken_at);
    if sample.is_late && stack.frames.iter().any(|frame| has_ended(frame.ip)) {
        // The second walk may have taken the data of other code at this address.
        mode.on_missed(Missed::CodeGone);
        return;
    }
    mode.on_sample(process, sample, &stack);
}

/// Handles the signal.
#[cfg(target_os = "linux")]
fn on_signal(value: usize, registers: &Registers) {
    let Some(sampler) = Sampler::get() else { return };
    let (index, number) = (value >> 32, value as u32);
    if index == threads::WATCHDOG {
        sampler.watchdog.take(&sampler.process, number, registers);
    } else if let Some(thread) = sampler.process.threads.get(index) {
        sampler.mode.in_signal(sampler, number, thread, registers);
    }
}
