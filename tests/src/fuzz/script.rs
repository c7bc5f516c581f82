//! Profilers made from bytes, which perform any actions in any order.

use arbitrary::{Result, Unstructured};
use clr_explore::{CurrentThread, EventObject, ProfilerLock, Setup, ThreadIndex};
use clr_runtime::profiling::CallbackKind;
use clr_walker::profiling::{
    HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, SnapshotRequest, TargetThread as _,
};

const LOCKS: usize = 3;
const EVENTS: usize = 2;
/// Maximum number of threads of the profiler, and of callbacks in which the profiler acts.
const THREADS: usize = 3;
const CALLBACKS: usize = 3;
/// Maximum number of actions of one thread or callback.
const ACTIONS: usize = 8;
/// Maximum number of frames in a walk.
const FRAMES: u32 = 4;
/// Maximum duration of a wait or sleep (µs).
const LONGEST: u64 = 10_000;

/// Callbacks in which a profiler acts: those that programs often raise.
const KINDS: [CallbackKind; 8] = [
    CallbackKind::ThreadCreated,
    CallbackKind::ThreadDestroyed,
    CallbackKind::ObjectAllocated,
    CallbackKind::ExceptionThrown,
    CallbackKind::JITCompilationFinished,
    CallbackKind::ModuleLoadFinished,
    CallbackKind::GarbageCollectionStarted,
    CallbackKind::ManagedToUnmanagedTransition,
];

/// An action of a profiler. The numbers of locks, events and threads are taken modulo their count.
#[derive(Clone, Copy, Debug)]
enum Action {
    Lock(u8),
    TryLock(u8, u64),
    Unlock(u8),
    Set(u8),
    Reset(u8),
    WaitFor(u8, u64),
    Sleep(u64),
    Point,
    Suspend(u8),
    Resume(u8),
    Context(u8),
    /// A walk of another thread, with a lock that is acquired at each frame, if any.
    Snapshot(u8, Option<u8>),
    SuspendRuntime,
    ResumeRuntime,
    Initialize,
    Threads,
    ForceGc,
    Allocate,
    Log,
    LoadLibrary,
    LookUp,
    Signal(u8),
    Join(u8),
}

impl Action {
    fn arbitrary(bytes: &mut Unstructured<'_>) -> Result<Self> {
        let which = bytes.int_in_range(0..=26_u8)?;
        let mut micros = || bytes.int_in_range(0..=LONGEST);
        Ok(match which {
            0 | 1 => Self::Lock(bytes.arbitrary()?),
            2 => {
                let micros = micros()?;
                Self::TryLock(bytes.arbitrary()?, micros)
            }
            3 | 4 => Self::Unlock(bytes.arbitrary()?),
            5 => Self::Set(bytes.arbitrary()?),
            6 => Self::Reset(bytes.arbitrary()?),
            7 => {
                let micros = micros()?;
                Self::WaitFor(bytes.arbitrary()?, micros)
            }
            8 => Self::Sleep(micros()?),
            9 => Self::Point,
            10 | 11 => Self::Suspend(bytes.arbitrary()?),
            12 | 13 => Self::Resume(bytes.arbitrary()?),
            14 => Self::Context(bytes.arbitrary()?),
            15 | 16 => {
                let lock: u8 = bytes.arbitrary()?;
                Self::Snapshot(bytes.arbitrary()?, (lock & 1 == 1).then_some(lock >> 1))
            }
            17 => Self::SuspendRuntime,
            18 => Self::ResumeRuntime,
            19 => Self::Initialize,
            20 => Self::Threads,
            21 => Self::Allocate,
            22 => Self::Log,
            23 => Self::LoadLibrary,
            24 => Self::LookUp,
            25 => Self::ForceGc,
            _ if bytes.arbitrary()? => Self::Signal(bytes.arbitrary()?),
            _ => Self::Join(bytes.arbitrary()?),
        })
    }
}

/// The actions of a profiler's thread or callback.
type Actions = Vec<Action>;

/// A profiler made from bytes.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// The profiler's threads; true for those that have run managed code.
    threads: Vec<(bool, Actions)>,
    callbacks: Vec<(CallbackKind, Actions)>,
    hook: Actions,
    signal: Actions,
}

/// Objects shared by the profiler's threads.
#[derive(Clone, Copy)]
struct Shared {
    locks: [ProfilerLock; LOCKS],
    events: [EventObject; EVENTS],
    /// Number of threads, including those of the program.
    threads: usize,
}

impl Script {
    pub(super) fn arbitrary(bytes: &mut Unstructured<'_>) -> Result<Self> {
        let threads = bytes.int_in_range(0..=THREADS)?;
        let callbacks = bytes.int_in_range(0..=CALLBACKS)?;
        Ok(Self {
            threads: (0..threads)
                .map(|_| Ok((bytes.ratio(1_u8, 4_u8)?, actions(bytes)?)))
                .collect::<Result<_>>()?,
            callbacks: (0..callbacks)
                .map(|_| Ok((*bytes.choose(&KINDS)?, actions(bytes)?)))
                .collect::<Result<_>>()?,
            hook: if bytes.arbitrary()? { actions(bytes)? } else { Actions::new() },
            signal: actions(bytes)?,
        })
    }

    /// Loads the script into a process whose program has `apps` threads.
    pub(super) fn load<'p>(&'p self, setup: &mut Setup<'p>, apps: usize) {
        let locks = ["first", "second", "third"].map(|name| setup.lock(name));
        let events = [setup.event(), setup.event()];
        let shared = Shared { locks, events, threads: apps + self.threads.len() };
        for (managed, actions) in &self.threads {
            let body = move |me: &CurrentThread<'_, '_>| shared.act(me, actions);
            if *managed {
                setup.managed_thread("managed", body);
            } else {
                setup.thread("native", body);
            }
        }
        for (kind, actions) in &self.callbacks {
            setup.on(*kind, move |me| shared.act(me, actions));
        }
        if !self.hook.is_empty() {
            setup.on_hook(move |me| shared.act(me, &self.hook));
        }
        setup.on_signal(move |me| shared.act(me, &self.signal));
    }
}

fn actions(bytes: &mut Unstructured<'_>) -> Result<Actions> {
    let count = bytes.int_in_range(0..=ACTIONS)?;
    (0..count).map(|_| Action::arbitrary(bytes)).collect()
}

impl Shared {
    fn act(&self, me: &CurrentThread<'_, '_>, actions: &[Action]) {
        for action in actions {
            self.one(me, *action);
        }
    }

    fn lock(&self, number: u8) -> ProfilerLock {
        self.locks[usize::from(number) % LOCKS]
    }

    fn event(&self, number: u8) -> EventObject {
        self.events[usize::from(number) % EVENTS]
    }

    fn thread(&self, number: u8) -> ThreadIndex {
        ThreadIndex((usize::from(number) % self.threads.max(1)) as u32)
    }

    fn one(&self, me: &CurrentThread<'_, '_>, action: Action) {
        let target = |number| me.target(self.thread(number));
        match action {
            Action::Lock(lock) => me.acquire(self.lock(lock)),
            Action::TryLock(lock, micros) => {
                me.try_acquire(self.lock(lock), micros);
            }
            Action::Unlock(lock) => me.unlock(self.lock(lock)),
            Action::Set(event) => me.set(self.event(event)),
            Action::Reset(event) => me.reset(self.event(event)),
            Action::WaitFor(event, 0) => me.wait_for(self.event(event)),
            Action::WaitFor(event, micros) => {
                me.wait_at_most(self.event(event), micros);
            }
            Action::Sleep(micros) => me.sleep(micros),
            Action::Point => me.point(),
            // The results of these calls do not influence the following actions.
            Action::Suspend(thread) => {
                let _ = target(thread).map(|it| it.suspend());
            }
            Action::Resume(thread) => {
                let _ = target(thread).map(|it| it.resume());
            }
            Action::Context(thread) => {
                let _ = target(thread).map(|it| it.context());
            }
            Action::Snapshot(thread, lock) => self.walk(me, self.thread(thread), lock),
            Action::SuspendRuntime => {
                let _ = me.info().suspend_runtime();
            }
            Action::ResumeRuntime => {
                let _ = me.info().resume_runtime();
            }
            Action::Initialize => {
                let _ = me.info().initialize_current_thread();
            }
            Action::Threads => {
                let _ = me.info().enum_threads();
            }
            Action::ForceGc => {
                let _ = me.info().force_gc();
            }
            Action::Allocate => me.allocate(),
            Action::Log => me.log(),
            Action::LoadLibrary => me.load_library(),
            Action::LookUp => me.look_up_function_entry(),
            Action::Signal(thread) => me.signal(self.thread(thread)),
            Action::Join(thread) => me.join(self.thread(thread)),
        }
    }

    /// Calls `DoStackSnapshot` without a seed.
    fn walk(&self, me: &CurrentThread<'_, '_>, thread: ThreadIndex, lock: Option<u8>) {
        let Some(id) = me.target(thread).map(|target| target.id()) else { return };
        let mut frames = 0;
        let mut reported = |_: &mut SnapshotFrame<'_>| {
            if let Some(lock) = lock {
                drop(me.lock(self.lock(lock)));
            }
            frames += 1;
            if frames < FRAMES { HResult::OK } else { HResult::FALSE }
        };
        let _ = me.info().do_stack_snapshot(
            &SnapshotRequest::of(id, SnapshotFlags::DEFAULT),
            Some(&mut reported),
        );
    }
}
