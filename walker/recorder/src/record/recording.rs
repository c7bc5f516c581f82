//! The recording of a process.

use super::async_methods::AsyncMethods;
use super::bad_seeds::bad_seeds;
use super::file::Output;
use super::frames::Chain;
use super::hidden::Hidden;
use super::layout::Layout;
use super::managed::ManagedCode;
use super::own_stack::OwnStack;
use super::reads::Noted;
use super::referenced_code::Source;
#[cfg(target_os = "linux")]
use super::signals;
use super::suspensions::Suspensions;
use super::vtables::Vtables;
use super::waiting::Waiting;
use super::walk::{Answer, Call, Situation, State, Suspension, Thread, Walk};
use super::wanted::Wanted;
use super::{call, reads, text};
use crate::output;
use crate::settings::Settings;
#[cfg(target_os = "linux")]
use clr_sampler::Slot;
use clr_sampler::{
    Process, lock,
    os::{self, OwnProcess},
};
use clr_unwind::Memory;
use clr_walker::profiling::{
    FunctionId, HResult, ModuleSource as _, ProfilerInfo as _, StackBounds, ThreadId,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The recording of a process.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) layout: Layout,
    /// From .NET 11 on.
    async_methods: Option<AsyncMethods>,
    pub(super) vtables: OnceLock<Vtables>,
    output: Mutex<Output>,
    pub(super) wanted: Wanted,
    /// Calls of the own thread have wrong seeds, too.
    bad_seeds: bool,
    /// The times of the last calls, by situation.
    last: Mutex<HashMap<&'static str, Instant>>,
    /// Numbers of threads.
    threads: Mutex<HashMap<ThreadId, u32>>,
    pub(super) pause: Duration,
    /// True as soon as the runtime has answered a call.
    has_started: AtomicBool,
    is_full: AtomicBool,
    pub(super) suspensions: Suspensions,
    pub(super) waiting: Waiting,
    /// For calls in signal handlers, if they are wanted.
    #[cfg(target_os = "linux")]
    pub(super) signals: Option<signals::Signals>,
    /// True as soon as the recorder's own thread may ask for suspended threads.
    #[cfg(windows)]
    pub(super) is_prepared: AtomicBool,
}

thread_local! {
    /// True while the thread makes and writes calls: callbacks that this raises are no situations.
    pub(super) static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

impl Record {
    /// Creates the file.
    ///
    /// # Errors
    /// A text for people: the runtime is not one whose calls can be replayed, or the file cannot be
    /// written.
    pub(super) fn new(settings: &Settings, version: [u16; 3]) -> Result<Self, String> {
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
        let is_legacy = layout.generation.starts_with("net9-") && has_legacy_exceptions();
        let note = format!("event mask {:#x}, threads stop by {}", settings.events, os::stops_by());
        let header = text::header(layout.generation, &runtime, is_legacy, &note);
        let limit = u64::from(settings.size) << 20;
        let output = Output::create(path, &header, limit, settings.label.clone())
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let async_methods = stated.as_ref().and_then(AsyncMethods::new);
        let vtables = OnceLock::new();
        if let Some(stated) = stated.filter(|_| layout.is_numbered()) {
            let _ = vtables.set(Vtables::numbered(&stated));
        }
        Ok(Self {
            layout,
            async_methods,
            vtables,
            is_full: AtomicBool::new(output.is_full()),
            output: Mutex::new(output),
            wanted: Wanted::new(settings.repeat),
            bad_seeds: settings.bad_seeds,
            last: Mutex::default(),
            threads: Mutex::default(),
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
    pub(super) fn vtables(&self) -> Option<&Vtables> {
        if self.vtables.get().is_none() {
            let (base, segments) = os::segments(os::RUNTIME)?;
            let found = Vtables::find(base, &segments, &self.layout, &OwnProcess)?;
            let _ = self.vtables.set(found);
        }
        self.vtables.get()
    }

    /// Returns true if a situation's turn has come, and begins its next pause.
    pub(super) fn is_turn(&self, situation: &'static str) -> bool {
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

    pub(super) fn number(&self, thread: ThreadId) -> u32 {
        let mut threads = lock(&self.threads);
        let next = threads.len() as u32 + 1;
        *threads.entry(thread).or_insert(next)
    }

    /// Makes a call for a thread whose stack does not change meanwhile, and writes it.
    pub(super) fn call(
        &self,
        process: &Process,
        vtables: &Vtables,
        situation: Situation,
        call: &Call,
        (thread, stack): (ThreadId, StackBounds),
        memory: &impl Memory,
    ) {
        let read = || Chain::of(thread, stack, &self.layout, vtables, memory);
        let quiet = self.suspensions.quiet();
        let Some(chain) = read() else { return };
        let answer = call.make(&process.info, thread);
        self.note_start(&answer);
        if !self.wanted.takes(&situation, call, &chain, &answer) {
            return;
        }
        let walk = Walk::new(situation, call, self.number(thread), stack, chain, answer);
        let walk = self.complete(walk, process, memory);
        // A thread in preemptive mode waits for others, and a GC may come meanwhile.
        let was_quiet = quiet.is_some() && quiet == self.suspensions.quiet();
        let is_cooperative = walk.chain.is_cooperative;
        if !was_quiet && !is_cooperative || read().as_ref() != Some(&walk.chain) {
            return;
        }
        if situation.is_own && is_cooperative {
            self.waiting.push(walk);
        } else {
            self.write(process, &walk);
        }
    }

    /// Notes whether the runtime has started.
    pub(super) fn note_start(&self, answer: &Answer) {
        if answer.result != HResult::UNSAFE {
            self.has_started.store(true, Ordering::Relaxed);
        }
    }

    /// Adds the state, the words and the frames that follow from a call and from the target's memory.
    pub(super) fn complete(&self, mut walk: Walk, process: &Process, memory: &impl Memory) -> Walk {
        walk.state = State::of(&walk, self.has_started.load(Ordering::Relaxed));
        let (map, images) = (process.code.code_map(), process.code.managed_images());
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
    /// A call that has met code which has ended since is left out; so is one while an end is under way, for which a thread
    /// that has suspended the runtime must not wait.
    pub(super) fn write(&self, process: &Process, walk: &Walk) {
        // Before the map: who ends code waits for those who read the map.
        let Some(_asking) = process.try_asking() else { return };
        let passed = walk.passed.iter().map(|frame| frame.ip);
        let reported = walk.answer.reports.iter().map(|report| report.ip);
        if passed.chain(reported).any(|ip| process.code.has_ended(ip, walk.made_at)) {
            return;
        }
        let map = process.code.code_map();
        let source = Source {
            code: &process.code,
            info: &process.info,
            async_methods: self.async_methods.as_ref(),
        };
        let mut known = lock(&self.output).known(walk);
        let Some(met) = source.collect(walk, &known) else { return };
        known.facts.extend(&met.facts);
        let hidden = Hidden::of(walk, &known.facts);
        let is_code = |address| map.find(address).is_some();
        let mut file = lock(&self.output);
        match file.append(walk, &hidden, &met, &is_code) {
            Ok(_) => self.is_full.store(file.is_full(), Ordering::Relaxed),
            Err(error) => {
                output::say(format_args!("{error}"));
                self.is_full.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Notes that the runtime frees a function's code.
    pub(super) fn unloaded(&self, process: &Process, function: FunctionId) {
        let starts = process.code.bodies(function);
        lock(&self.output).free(function, &starts);
    }

    /// Makes calls for the calling thread, in a callback.
    pub(super) fn in_callback(&self, process: &Process, name: &'static str) {
        if IS_BUSY.replace(true) {
            return;
        }
        if self.is_turn(name) {
            self.own_calls(process, name);
        }
        IS_BUSY.set(false);
    }

    fn own_calls(&self, process: &Process, name: &'static str) {
        let Ok(own) = process.info.get_current_thread_id() else { return };
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
        let (map, images) = (process.code.code_map(), process.code.managed_images());
        let seeds = call::own_seeds(ManagedCode::new(&map, &images), &memory);
        drop(map);
        let [native, first, deeper] = seeds;
        let bad = first.filter(|_| self.bad_seeds).map(|(_, seed)| bad_seeds(&seed));
        let seeded = [native, first, deeper].into_iter().flatten().chain(bad.into_iter().flatten());
        calls.extend(seeded.map(|seed| Call::seeded(Thread::Null, seed)));
        for call in &calls {
            self.call(process, vtables, situation, call, (own, stack), &memory);
        }
    }
}

/// Returns true if exceptions of .NET 9 are dispatched by native code.
fn has_legacy_exceptions() -> bool {
    let is_one = |name: &str| std::env::var(name).is_ok_and(|value| value.trim() == "1");
    is_one("DOTNET_LegacyExceptionHandling") || is_one("COMPlus_LegacyExceptionHandling")
}
