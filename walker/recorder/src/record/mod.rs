//! `mode=record`: calls of `DoStackSnapshot` in all situations, written as a file that `clrsim run`
//! replays.
//!
//! | module | content |
//! |---|---|
//! | `callbacks` | the object that the runtime loads: each callback is a situation |
//! | `hooks` | enter, leave and tailcall hooks: situations, too |
//! | `suspended` | the recorder's own thread: calls for other threads |
//! | `signals` | calls in signal handlers |
//! | `windows` | the same for threads that it suspends |
//! | `suspensions` | whether a GC may have moved objects during a call |
//! | `waiting` | calls that the recorder's own thread writes |
//! | `capture` | calls for a stopped thread |
//! | `call` | a call and its seeds |
//! | `walk` | data structures: a call, the state before it, its result |
//! | `layout` | what is known of a runtime's own structures, by version |
//! | `vtables` | which vtable belongs to which kind of Frame |
//! | `frames` | a thread's GC mode and its Frames |
//! | `hidden` | what exceptions hide, deduced from the result |
//! | `own_stack` | the calling thread's stack |
//! | `reads` | the words of memory that the runtime reads in a walk |
//! | `managed` | the managed code among all code |
//! | `met` | the code that a walk meets |
//! | `mask` | what the file does not show |
//! | `text`, `file` | the lines of the file, and when they are written |
//!
//! A file has no environment, no arguments of the program, and no data of its threads: of stacks only
//! the words that the runtime reads, which are return addresses, saved registers and fields of
//! Frames; and of these, as of registers, only addresses on the stack and of code. All else is
//! replaced (`mask`).

mod call;
mod callbacks;
mod capture;
mod file;
mod frames;
mod hidden;
mod hooks;
mod layout;
mod managed;
mod mask;
mod met;
mod own_stack;
mod reads;
#[cfg(target_os = "linux")]
mod signals;
mod suspended;
mod suspensions;
#[cfg(test)]
mod tests;
mod text;
mod vtables;
mod waiting;
mod walk;
#[cfg(windows)]
mod windows;

pub(crate) use callbacks::RecordingProfiler;
pub(crate) use hooks::set as set_hooks;
pub(crate) use suspended::run;

use crate::os::{self, OwnProcess};
use crate::recorder::Recorder;
#[cfg(target_os = "linux")]
use crate::request::Slot;
use crate::settings::{Mode, Settings};
use clr_unwind::Memory;
use clr_walker::profiling::{
    FunctionId, HResult, ModuleSource as _, ProfilerInfo as _, StackBounds, ThreadId,
};
use file::Output;
use frames::Chain;
use hidden::Hidden;
use layout::Layout;
use managed::ManagedCode;
use met::Source;
use own_stack::OwnStack;
use reads::Noted;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use suspensions::Suspensions;
use vtables::Vtables;
use waiting::Waiting;
use walk::{Answer, Call, Situation, State, Suspension, Thread, Walk};

/// infoFlags of a call that wants registers.
const REGISTER_CONTEXT: u32 = 1;
/// infoFlags that x64 refuses: COR_PRF_SNAPSHOT_X86_OPTIMIZED.
const X86_OPTIMIZED: u32 = 2;

/// The recording of a process.
#[derive(Debug)]
pub(crate) struct Record {
    layout: Layout,
    vtables: OnceLock<Vtables>,
    output: Mutex<Output>,
    /// Number of calls with the same shape.
    shapes: Mutex<HashMap<u64, u32>>,
    /// The times of the last calls, by situation.
    last: Mutex<HashMap<&'static str, Instant>>,
    /// Numbers of threads.
    threads: Mutex<HashMap<ThreadId, u32>>,
    repeat: u32,
    pause: Duration,
    /// True as soon as the runtime has answered a call.
    has_started: AtomicBool,
    is_full: AtomicBool,
    suspensions: Suspensions,
    waiting: Waiting,
    /// For calls in signal handlers, if they are wanted.
    #[cfg(target_os = "linux")]
    signals: Option<signals::Signals>,
    /// True as soon as the recorder's own thread may ask for suspended threads.
    #[cfg(windows)]
    is_prepared: AtomicBool,
}

thread_local! {
    /// True while the thread makes and writes calls: callbacks that this raises are no situations.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record {
    /// Creates the file, if the settings want a recording.
    ///
    /// # Errors
    /// A text for people: the runtime is not one whose calls can be replayed, or the file cannot be
    /// written.
    pub(crate) fn of(settings: &Settings, version: [u16; 3]) -> Result<Option<Self>, String> {
        (settings.mode == Mode::Record).then(|| Self::new(settings, version)).transpose()
    }

    fn new(settings: &Settings, version: [u16; 3]) -> Result<Self, String> {
        let stated = os::contracts();
        let layout = Layout::of(version, os::CONVENTION, stated.as_ref()).ok_or_else(|| {
            let [major, minor, build] = version;
            format!("calls of a runtime {major}.{minor}.{build} cannot be replayed")
        })?;
        let path = settings.out.as_deref().ok_or("mode=record needs out=PATH")?;
        let [major, minor, build] = version;
        let runtime = match layout.generation {
            generation if generation.starts_with("coreclr-3.1") => "CoreCLR 3.1".to_owned(),
            _ => format!(".NET {major}.{minor}.{build}"),
        };
        let is_legacy = layout.generation == "net9-unix" && has_legacy_exceptions();
        let note = format!("event mask {:#x}", settings.events);
        let header = text::header(layout.generation, &runtime, is_legacy, &note);
        let limit = u64::from(settings.size) << 20;
        let output = Output::create(path, &header, limit, settings.label.clone())
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let vtables = OnceLock::new();
        if let Some(stated) = stated.filter(|_| layout.is_numbered()) {
            let _ = vtables.set(Vtables::numbered(&stated));
        }
        Ok(Self {
            layout,
            vtables,
            is_full: AtomicBool::new(output.is_full()),
            output: Mutex::new(output),
            shapes: Mutex::default(),
            last: Mutex::default(),
            threads: Mutex::default(),
            repeat: settings.repeat,
            pause: match settings.rate {
                0 => Duration::ZERO,
                rate => Duration::from_secs(1) / rate,
            },
            has_started: AtomicBool::new(false),
            suspensions: Suspensions::default(),
            waiting: Waiting::default(),
            #[cfg(target_os = "linux")]
            signals: settings.snapshots.then(|| Slot::new(signals::Interrupted::new())),
            #[cfg(windows)]
            is_prepared: AtomicBool::new(false),
        })
    }

    /// Returns the vtables of Frames. The runtime fills its table while it starts.
    fn vtables(&self) -> Option<&Vtables> {
        if self.vtables.get().is_none() {
            let (base, segments) = os::segments(os::RUNTIME)?;
            let found = Vtables::find(base, &segments, &self.layout, &OwnProcess)?;
            let _ = self.vtables.set(found);
        }
        self.vtables.get()
    }

    /// Returns true if a situation's turn has come, and begins its next pause.
    fn is_turn(&self, situation: &'static str) -> bool {
        if self.is_full.load(Ordering::Relaxed) {
            return false;
        }
        let (now, mut last) = (Instant::now(), lock(&self.last));
        let has_come = last.get(situation).is_none_or(|last| now - *last >= self.pause);
        if has_come {
            last.insert(situation, now);
        }
        has_come
    }

    /// Returns true if fewer calls than the limit had this shape.
    fn is_wanted(
        &self,
        situation: &Situation,
        call: &Call,
        chain: &Chain,
        answer: &Answer,
    ) -> bool {
        let mut hasher = DefaultHasher::new();
        (situation.name, call.variant, chain.is_cooperative, answer.result.0).hash(&mut hasher);
        for frame in &chain.frames {
            frame.kind.name.hash(&mut hasher);
        }
        for report in &answer.reports {
            report.function.map(|function| function.0).hash(&mut hasher);
        }
        let mut shapes = lock(&self.shapes);
        let count = shapes.entry(hasher.finish()).or_default();
        *count += 1;
        *count <= self.repeat
    }

    fn number(&self, thread: ThreadId) -> u32 {
        let mut threads = lock(&self.threads);
        let next = threads.len() as u32 + 1;
        *threads.entry(thread).or_insert(next)
    }

    /// Makes a call for a thread whose stack does not change meanwhile, and writes it.
    fn call(
        &self,
        recorder: &Recorder,
        vtables: &Vtables,
        situation: Situation,
        call: &Call,
        (thread, stack): (ThreadId, StackBounds),
        memory: &impl Memory,
    ) {
        let read = || Chain::of(thread, stack, &self.layout, vtables, memory);
        let quiet = self.suspensions.quiet();
        let Some(chain) = read() else { return };
        let answer = call.make(&recorder.info, thread);
        self.note_start(&answer);
        if !self.is_wanted(&situation, call, &chain, &answer) {
            return;
        }
        let walk = Walk::new(situation, call, self.number(thread), stack, chain, answer);
        let walk = self.complete(walk, recorder, memory);
        // A thread in preemptive mode waits for others, and a GC may come meanwhile.
        let was_quiet = quiet.is_some() && quiet == self.suspensions.quiet();
        let is_cooperative = walk.chain.is_cooperative;
        if !was_quiet && !is_cooperative || read().as_ref() != Some(&walk.chain) {
            return;
        }
        if situation.is_own && is_cooperative {
            self.waiting.push(walk);
        } else {
            self.write(recorder, &walk);
        }
    }

    /// Notes whether the runtime has started.
    fn note_start(&self, answer: &Answer) {
        if answer.result != HResult::UNSAFE {
            self.has_started.store(true, Ordering::Relaxed);
        }
    }

    /// Adds the state, the words and the frames that follow from a call and from the target's memory.
    fn complete(&self, mut walk: Walk, recorder: &Recorder, memory: &impl Memory) -> Walk {
        walk.state = self.state(&walk);
        let (map, images) = (recorder.code.code_map(), recorder.code.managed_images());
        let code = ManagedCode::new(&map, &images);
        let noted = Noted::new(memory);
        // Other results are those of checks before the walk.
        let result = walk.answer.result;
        if matches!(result, HResult::OK | HResult::FAIL | HResult::ABORTED) {
            let end = if result == HResult::ABORTED { walk.answer.last_sp() } else { None };
            let start = (walk.start(), end);
            walk.passed = reads::repeat(code, &self.layout, start, &walk.chain, &noted);
        }
        walk.words = noted.into_words();
        walk
    }

    /// Writes a call.
    ///
    /// This asks the runtime for names and code, which may trigger a GC: a thread in cooperative mode,
    /// whose caller may hold references to objects, leaves it to the recorder's own.
    fn write(&self, recorder: &Recorder, walk: &Walk) {
        let map = recorder.code.code_map();
        let source = Source { code: &recorder.code, info: &recorder.info };
        let mut known = lock(&self.output).known(walk);
        let Some(met) = source.collect(walk, &known) else { return };
        known.facts.extend(&met.facts);
        let hidden = Hidden::of(walk, &known.facts);
        let is_code = |address| map.find(address).is_some();
        let mut output = lock(&self.output);
        match output.append(walk, &hidden, &met, &is_code) {
            Ok(_) => self.is_full.store(output.is_full(), Ordering::Relaxed),
            Err(error) => {
                eprintln!("clr-recorder: {error}");
                self.is_full.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns the state that cannot be read, but follows from the result.
    fn state(&self, walk: &Walk) -> State {
        let (situation, is_cooperative) = (&walk.situation, walk.chain.is_cooperative);
        match walk.answer.result {
            HResult::UNSAFE if !self.has_started.load(Ordering::Relaxed) => State::NotStarted,
            HResult::UNSAFE if situation.suspended == Suspension::Target && is_cooperative => {
                State::InSystemCall
            }
            HResult::UNSAFE => State::ForbidsSuspension,
            // A suspended runtime refuses only threads in cooperative mode.
            HResult::NOT_IMPLEMENTED
                if situation.suspended == Suspension::Runtime && !is_cooperative =>
            {
                State::Cooperative
            }
            HResult::UNMANAGED_CONTEXT if walk.start().is_none() => State::SecondPass,
            _ => State::Usual,
        }
    }

    /// Notes that the runtime frees a function's code.
    fn unloaded(&self, recorder: &Recorder, function: FunctionId) {
        let starts = recorder.code.bodies(function);
        lock(&self.output).free(&starts);
    }

    /// Makes calls for the calling thread, in a callback.
    pub(crate) fn in_callback(&self, recorder: &Recorder, name: &'static str) {
        if IS_BUSY.replace(true) {
            return;
        }
        if self.is_turn(name) {
            self.own_calls(recorder, name);
        }
        IS_BUSY.set(false);
    }

    fn own_calls(&self, recorder: &Recorder, name: &'static str) {
        let Ok(own) = recorder.info.get_current_thread_id() else { return };
        let Some(vtables) = self.vtables() else { return };
        let Some(stack) = os::own_stack() else { return };
        let memory = OwnStack::new(stack);
        let situation = Situation {
            name,
            is_own: true,
            is_managed_walker: true,
            suspended: Suspension::Nothing,
        };
        let [unseeded, flags0, stop, bad_flags] = Call::all_unseeded(Thread::Null);
        let own_id = Call { variant: "own-id", thread: Thread::Own, ..unseeded };
        let mut calls = vec![unseeded, flags0, own_id, stop, bad_flags];
        let (map, images) = (recorder.code.code_map(), recorder.code.managed_images());
        let seeds = call::own_seeds(ManagedCode::new(&map, &images), &memory);
        drop(map);
        let seeded = seeds.into_iter().flatten();
        calls.extend(seeded.map(|seed| Call::seeded(Thread::Null, seed)));
        for call in &calls {
            self.call(recorder, vtables, situation, call, (own, stack), &memory);
        }
    }
}

/// Returns true if exceptions of .NET 9 are dispatched by native code.
fn has_legacy_exceptions() -> bool {
    let is_one = |name: &str| std::env::var(name).is_ok_and(|value| value.trim() == "1");
    is_one("DOTNET_LegacyExceptionHandling") || is_one("COMPlus_LegacyExceptionHandling")
}
