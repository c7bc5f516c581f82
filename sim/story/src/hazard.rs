//! Known hazards of sampling profilers, and their assignment to verdicts.

use clr_explore::{
    BlockReason, Edge, History, LockName, ProfilerRule, ThreadIndex, ThreadKind, TurnEvent,
    Verdict, shortest_path,
};
use clr_runtime::Lock;
use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::profiling::{CallbackKind, HResult};
use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;
use thiserror::Error;

/// Defines each hazard with its number, its title, the clauses behind it, and the way to avoid it.
macro_rules! hazards {
    ($($(#[doc = $doc:literal])* $hazard:ident $number:literal [$($clause:literal)*] $title:literal, $avoided:literal;)*) => {
        /// A known way in which sampling fails.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Hazard {
            $($(#[doc = $doc])* $hazard,)*
        }

        impl Hazard {
            /// All hazards, by number.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$hazard,)*];

            /// Returns the number: 1 is H-01.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self { $(Self::$hazard => $number,)* }
            }

            /// Returns the title.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$hazard => $title,)* }
            }

            /// Returns the way to avoid the hazard.
            #[must_use]
            pub const fn avoided_by(self) -> &'static str {
                match self { $(Self::$hazard => $avoided,)* }
            }

            /// Returns the clauses behind the hazard.
            #[must_use]
            pub fn clauses(self) -> &'static [Clause] {
                match self { $(Self::$hazard => const { &[$(Clause::new($clause)),*] },)* }
            }
        }
    };
}

hazards! {
    /// Mutual suspension: H-01.
    MutualSuspension 1 [] "two threads suspend each other",
        "let one thread of the profiler alone suspend others";
    /// Walker with managed code: H-02.
    ManagedWalker 2 [148 157] "the walker has run managed code",
        "suspend threads only from a thread that has never run managed code";
    /// First call of a thread: H-03.
    FirstCall 3 [151] "the first call of a thread is made while another one is suspended",
        "call a method of the runtime once on the walker before any thread is suspended";
    /// Destroyed thread: H-04.
    DestroyedThread 4 [149] "a thread is walked that has been destroyed",
        "block in ThreadDestroyed until the walk of that thread is over";
    /// Blocked destruction: H-05.
    BlockedDestruction 5 [149] "ThreadDestroyed waits for a walker that waits for it",
        "in ThreadDestroyed wait for the walk only, and hold no lock that the walker takes";
    /// Lock over a GC trigger: H-06.
    LockOverGcTrigger 6 [150] "a lock is held over a call that may trigger a GC",
        "hold no lock over calls of the runtime that callbacks of the GC take too";
    /// Lock over a GC: H-07.
    LockOverGc 7 [150] "a lock is held by a thread that a GC has stopped",
        "in callbacks of the GC take no lock that threads own when they run managed code or \
         allocate";
    /// Lock in the callback of a walk: H-08.
    CallbackTakesLock 8 [152] "a lock is wanted that the suspended thread owns",
        "while a thread is suspended take no lock that it may own: collect into memory allocated \
         before";
    /// Suspended writer of the code manager's tables: H-09.
    FrozenWriter 9 [18 36] "the suspended thread writes to the code manager's tables",
        "look code up after the resume, or on a thread that the runtime does not know";
    /// Suspended reader of the code manager's tables: H-10.
    FrozenReader 10 [] "the suspended thread reads the code manager's tables",
        "wait for no other thread while a thread is suspended";
    /// Lock of the function tables: H-11.
    FunctionTables 11 [] "the suspended thread owns the lock of the system's function tables",
        "unwind by tables of your own while a thread is suspended, or give up after a time";
    /// Loader lock: H-12.
    LoaderLock 12 [] "a thread that cannot go on owns the loader lock",
        "load nothing and look no symbol up while a thread is suspended, and wait for no thread \
         while a library is being loaded";
    /// Lock of the process's heap: H-13.
    ProcessHeap 13 [152] "the suspended thread owns the lock of the process's heap",
        "allocate nothing while a thread is suspended: use memory allocated before";
    /// Outdated registers: H-14.
    StaleContext 14 [] "the registers of the thread are older than its stack",
        "ask the system whether the context may be used, and try later if not";
    /// Hijacked return address: H-15.
    Hijacked 15 [] "the return address is the GC's",
        "at an unknown address of the runtime continue with DoStackSnapshot from the last good \
         frame";
    /// Two redirections of one thread: H-16.
    TwoHijackers 16 [] "the profiler and the GC redirect the same thread",
        "redirect no thread between RuntimeThreadSuspended and RuntimeThreadResumed";
    /// Wrong seed: H-17.
    BogusSeed 17 [] "the seed is wrong",
        "make seeds from a checked context, and from frames that were found without doubt";
    /// Unloaded method: H-18.
    UnloadedMethod 18 [] "a method is used that has been unloaded",
        "resolve ids at once, and drop the ids of unloaded code";
    /// Access to objects during a GC: H-19.
    WalkDuringGc 19 [] "a walk during a GC looks at objects",
        "look at no object during a walk";
    /// Walker in cooperative mode: H-20.
    CooperativeWalker 20 [] "a walker in cooperative mode keeps the GC waiting",
        "wait for no other thread in callbacks that are made in cooperative mode";
    /// Nested walk: H-21.
    NestedWalk 21 [15] "a walk of a thread is made while another one is",
        "let one walker at a time walk a thread, and try again only after the first";
    /// Hijack lock kept by a walk: H-22.
    HijackKept 22 [] "a walk keeps the GC from stopping its target",
        "keep the callback of a walk short";
    /// Wait while the runtime is suspended: H-23.
    RuntimeSuspended 23 [126] "the profiler waits for a thread while it has the runtime suspended",
        "between SuspendRuntime and ResumeRuntime wait for no thread, and call nothing that needs \
         a GC";
    /// Detach during a walk: H-24.
    Detach 24 [1] "the profiler is detached in a walk",
        "stop the sampler before the detach is requested";
    /// Wrong GS cookie: H-25.
    GsCookie 25 [] "a GS cookie is wrong",
        "make no seed with a stack pointer that was not checked";
    /// Fiber switched in: H-26.
    Fiber 26 [] "another fiber runs on the thread",
        "suspend no thread that is switched out";
    /// Thread in exception handling: H-27.
    ExceptionWindow 27 [] "the thread is handling an exception",
        "take the walk as lost, and try later";
    /// Lock in a signal handler: H-28.
    SignalHandler 28 [] "a signal handler needs a resource that the interrupted thread owns",
        "take no lock in a signal handler";
    /// Lookup without a lock: H-29.
    UnlockedRead 29 [] "code is looked up without a lock while it is unloaded",
        "look code up in a map of your own, or while nothing is unloaded";
    /// Jump out of the callback of a walk: H-30.
    CallbackEscapes 30 [] "the callback of a walk does not return",
        "let no jump or exception leave the callback of a walk";
    /// Question to the runtime in a signal handler: H-31.
    AskedInHandler 31 [] "a signal handler asks the runtime",
        "walk in the handler by the code map and the stack alone (Policy::Signal), and ask for names \
         on another thread, later";
    /// Return value in the slot of a hijacked return: H-32.
    ValueInSlot 32 [] "a return value lies where a return address is looked for",
        "on Unix let a walk end at an undefined return address, or at a known one near the stack's \
         base, and at no 0";
    /// Thread kept by a signal while the runtime is being suspended: H-33.
    ParkedBySignal 33 [] "a thread that a signal handler keeps cannot stop for a suspension",
        "let handlers return before the runtime is suspended: a handler waits for nothing, and no \
         call that suspends the runtime is made while one runs";
    /// Join of a thread that wants a lock of the joining one: H-34.
    JoinUnderLock 34 [] "a thread is joined that wants a lock of the joining thread",
        "join threads, in Shutdown above all, under no lock that they take: tell them to end, join \
         them, then take the lock";
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("H-{:02}", self.number()))
    }
}

/// Error for a text that names no hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is no such hazard; they are {first} to {last}", first = Hazard::ALL[0], last = Hazard::ALL[Hazard::ALL.len() - 1])]
pub struct NoHazard;

/// Parses `H-06`.
impl FromStr for Hazard {
    type Err = NoHazard;

    fn from_str(text: &str) -> Result<Self, NoHazard> {
        Self::ALL.into_iter().find(|hazard| hazard.to_string() == text).ok_or(NoHazard)
    }
}

/// Name of the method that walks.
const WALK: &str = "DoStackSnapshot";

/// Current activity of a thread, derived from its turn events.
#[derive(Clone, Debug, Default)]
struct Doing {
    /// Callbacks that the thread is in, outermost first.
    callbacks: Vec<CallbackKind>,
    /// Methods of the runtime that the thread has called, outermost first.
    calls: Vec<&'static str>,
    /// A walk of the thread has called back.
    called_back: bool,
    signals: u32,
    /// Number of calls so far.
    called: u32,
    /// Last method called.
    last_called: Option<&'static str>,
    /// The thread has made a walk in the callback of a walk.
    nested: bool,
    /// The thread has left the callback of a walk by a jump.
    escaped: bool,
    /// Last method that returned, if it was refused because the profiler is being detached.
    refused: Option<&'static str>,
}

impl Doing {
    fn of(thread: ThreadIndex, history: &History) -> Self {
        let mut doing = Self::default();
        let turns = history.turns.iter().filter(|turn| turn.thread == thread);
        for event in turns.flat_map(|turn| &turn.events) {
            match event {
                TurnEvent::Callback(kind) => doing.callbacks.push(*kind),
                TurnEvent::CallbackOver(_) => drop(doing.callbacks.pop()),
                TurnEvent::Called(method, _) => {
                    doing.called += 1;
                    doing.last_called = Some(method);
                    doing.nested |= *method == WALK && doing.calls.contains(method);
                    doing.calls.push(method);
                }
                TurnEvent::Returned(method, outcome) => {
                    let refused = *outcome == Outcome::Returned(HResult::PROFILER_DETACHING);
                    doing.refused = refused.then_some(*method);
                    doing.calls.pop();
                }
                TurnEvent::SnapshotCallback => doing.called_back = true,
                // A jump leaves the call without returning.
                event if *event == TurnEvent::ESCAPES => {
                    doing.calls.pop();
                    doing.escaped = true;
                }
                TurnEvent::Signal => doing.signals += 1,
                TurnEvent::SignalOver => doing.signals = doing.signals.saturating_sub(1),
                _ => {}
            }
        }
        doing
    }

    fn is_first_call(&self) -> bool {
        self.called == 1 && !self.calls.is_empty() && !self.called_back
    }
}

impl Hazard {
    /// Returns the hazard that a verdict is an instance of, or `None` if it is no known hazard.
    #[must_use]
    pub fn of(verdict: &Verdict, history: &History) -> Option<Self> {
        match verdict {
            Verdict::Deadlock(edges) => of_deadlock(edges, history),
            Verdict::DestroyedThread { .. } => Some(Self::DestroyedThread),
            Verdict::UnloadedCode { by } => {
                // The freed memory was the object of an id, or code at an address.
                let by_address = |method: &str| method.starts_with("GetFunctionFromIP");
                let called = Doing::of(*by, history).last_called;
                Some(if called.is_some_and(by_address) {
                    Self::UnlockedRead
                } else {
                    Self::UnloadedMethod
                })
            }
            Verdict::ProcessKilled { outcome: Outcome::ProcessKilled { code }, .. }
                if *code == HResult::INVALID_TARGET_THREAD.0 =>
            {
                Some(Self::DestroyedThread)
            }
            Verdict::Broken { rule: ProfilerRule::ResumeForgotten, .. } => {
                escapes(history).then_some(Self::CallbackEscapes)
            }
            Verdict::Broken { rule, .. } => of_rule(*rule),
            Verdict::LiveLock if escapes(history) => Some(Self::CallbackEscapes),
            Verdict::LiveLock => {
                doings(history).any(|doing| doing.nested).then_some(Self::NestedWalk)
            }
            Verdict::Watchdog(_) => is_kept_from_stopping(history).then_some(Self::HijackKept),
            Verdict::Failed { by, .. } => of_failure(*by, history),
            Verdict::ProcessKilled { by, .. } => {
                (Doing::of(*by, history).signals > 0).then_some(Self::SignalHandler)
            }
            Verdict::LostWakeUp(_) => None,
        }
    }
}

fn events(history: &History) -> impl Iterator<Item = &TurnEvent> {
    history.turns.iter().flat_map(|turn| &turn.events)
}

fn doings(history: &History) -> impl Iterator<Item = Doing> {
    (0..history.threads.len()).map(|thread| Doing::of(ThreadIndex(thread as u32), history))
}

fn escapes(history: &History) -> bool {
    events(history).any(|event| *event == TurnEvent::ESCAPES)
}

/// Returns true if the runtime is suspended, or being suspended, during a walk.
fn is_kept_from_stopping(history: &History) -> bool {
    let mut walking = BTreeSet::new();
    let mut suspends = false;
    history.turns.iter().any(|turn| {
        for event in &turn.events {
            match event {
                TurnEvent::SnapshotCallback => drop(walking.insert(turn.thread)),
                TurnEvent::Returned(WALK, _) => drop(walking.remove(&turn.thread)),
                TurnEvent::Callback(CallbackKind::RuntimeSuspendStarted) => suspends = true,
                // The suspending thread holds the lock of the thread list until the runtime is
                // resumed.
                TurnEvent::Callback(CallbackKind::RuntimeResumeStarted)
                | TurnEvent::Released(LockName::Runtime(Lock::ThreadStore)) => suspends = false,
                _ => {}
            }
        }
        suspends && !walking.is_empty()
    })
}

/// Returns the hazard behind a failure that the profiler has noticed on this thread.
fn of_failure(by: ThreadIndex, history: &History) -> Option<Hazard> {
    let is_last = |what: TurnEvent| {
        let turns = history.turns.iter().filter(|turn| turn.thread == by);
        let mut events = turns.flat_map(|turn| &turn.events);
        let last = events.rfind(|event| **event != TurnEvent::Waits);
        last == Some(&what)
    };
    if Doing::of(by, history).refused.is_some() {
        return Some(Hazard::Detach);
    }
    if escapes(history) {
        return Some(Hazard::CallbackEscapes);
    }
    if is_last(TurnEvent::REDIRECTS) {
        return Some(Hazard::TwoHijackers);
    }
    if is_last(TurnEvent::CLAIMS) {
        return Some(Hazard::ValueInSlot);
    }
    if is_last(TurnEvent::UNTRUE_SEED) {
        return Some(Hazard::BogusSeed);
    }
    if is_last(TurnEvent::UNTRUE) {
        // The walk started from registers that the thread had read, or happened while another
        // thread had the runtime suspended.
        let turns = history.turns.iter().filter(|turn| turn.thread == by);
        let mut own = turns.flat_map(|turn| &turn.events);
        let reads = own.any(|it| matches!(it, TurnEvent::Context(_)));
        let suspends =
            events(history).any(|it| matches!(it, TurnEvent::Called("SuspendRuntime", _)));
        return Some(if suspends && !reads {
            Hazard::RuntimeSuspended
        } else {
            Hazard::StaleContext
        });
    }
    (Doing::of(by, history).signals > 0).then_some(Hazard::SignalHandler)
}

const fn of_rule(rule: ProfilerRule) -> Option<Hazard> {
    Some(match rule {
        ProfilerRule::SuspenderRanManagedCode => Hazard::ManagedWalker,
        ProfilerRule::AllocationWhileSuspended => Hazard::ProcessHeap,
        ProfilerRule::LockWhileSuspended
        | ProfilerRule::LogWhileSuspended
        | ProfilerRule::CallbackTakesTargetsLock => Hazard::CallbackTakesLock,
        ProfilerRule::LoadingWhileSuspended => Hazard::LoaderLock,
        ProfilerRule::AllocationInHandler
        | ProfilerRule::LockInHandler
        | ProfilerRule::LogInHandler
        | ProfilerRule::LoadingInHandler => Hazard::SignalHandler,
        ProfilerRule::LockOverGcTrigger => Hazard::LockOverGcTrigger,
        ProfilerRule::WalkOutlivesThread => Hazard::DestroyedThread,
        ProfilerRule::FirstCallWhileSuspended => Hazard::FirstCall,
        ProfilerRule::ResumeForgotten | ProfilerRule::ResumeDoubled => return None,
    })
}

fn of_deadlock(edges: &[Edge], history: &History) -> Option<Hazard> {
    let has = |why: fn(BlockReason) -> bool| edges.iter().any(|edge| why(edge.why));
    let suspended = || edges.iter().filter(|edge| edge.why == BlockReason::Suspended);
    let doing = |thread: ThreadIndex| Doing::of(thread, history);
    let by_gc: fn(BlockReason) -> bool = |why| {
        matches!(why, BlockReason::Collection | BlockReason::RuntimeSuspended | BlockReason::ToStop)
    };
    // A resume was refused because of the detach.
    if edges.iter().any(|edge| doing(edge.for_whom).refused == Some("ResumeRuntime")) {
        return Some(Hazard::Detach);
    }
    if edges.iter().any(|edge| edge.why == BlockReason::Suspended && doing(edge.for_whom).escaped) {
        return Some(Hazard::CallbackEscapes);
    }
    // The suspending thread is itself suspended.
    let is_suspender = |thread| suspended().any(|edge| edge.for_whom == thread);
    if suspended().any(|edge| is_suspender(edge.waits)) {
        return Some(Hazard::MutualSuspension);
    }
    let asks = |edge: &Edge| {
        let doing = doing(edge.waits);
        let waits =
            matches!(edge.why, BlockReason::InterruptedWait | BlockReason::RuntimeSuspended);
        doing.signals > 0 && !doing.calls.is_empty() && waits
    };
    if edges.iter().any(asks) {
        return Some(Hazard::AskedInHandler);
    }
    if edges
        .iter()
        .any(|edge| doing(edge.waits).signals > 0 && matches!(edge.why, BlockReason::Lock(_)))
    {
        return Some(Hazard::SignalHandler);
    }
    if edges.iter().any(|edge| edge.why == BlockReason::ToStop && doing(edge.for_whom).signals > 0)
    {
        return Some(Hazard::ParkedBySignal);
    }
    if let Some(edge) = suspended().next() {
        if has(|why| why == BlockReason::CodeManagerReader) {
            return Some(Hazard::FrozenReader);
        }
        let (target, walker) = (edge.waits, edge.for_whom);
        // The resource of the suspended thread that the walker waits for, directly or through other
        // threads.
        let wanted = edges.iter().find(|edge| edge.for_whom == target);
        let first = doing(walker).is_first_call();
        return match wanted?.why {
            BlockReason::Lock(LockName::Runtime(lock)) => Some(match lock {
                Lock::ThreadInit | Lock::StressLog => Hazard::FirstCall,
                Lock::ProcessHeap if first => Hazard::FirstCall,
                Lock::ProcessHeap => Hazard::ProcessHeap,
                Lock::Loader => Hazard::LoaderLock,
                Lock::FunctionTables => Hazard::FunctionTables,
                Lock::CodeManager => Hazard::FrozenWriter,
                Lock::ThreadStore | Lock::Gc => Hazard::ManagedWalker,
                // Code in the callback of a walk loads a class.
                Lock::LoaderHeap if doing(walker).calls.contains(&WALK) => {
                    Hazard::CallbackTakesLock
                }
                Lock::LoaderHeap | Lock::NativeUnwinder => return None,
            }),
            BlockReason::Lock(LockName::Profiler(_)) => Some(Hazard::CallbackTakesLock),
            why if by_gc(why) => Some(Hazard::ManagedWalker),
            _ => None,
        };
    }
    let in_gc = |thread| {
        doing(thread).callbacks.last().is_some_and(|kind| {
            kind.name().starts_with("Garbage") || kind.name().starts_with("Runtime")
        })
    };
    // A GC holds the lock of the thread list while it makes its callbacks.
    let for_gc = |edge: &Edge| {
        let list = BlockReason::Lock(LockName::Runtime(Lock::ThreadStore));
        by_gc(edge.why) || edge.why == list && in_gc(edge.for_whom)
    };
    if !edges.iter().any(for_gc) {
        if is_blocked_destruction(edges, history) {
            return Some(Hazard::BlockedDestruction);
        }
        return is_joined_under_a_lock(edges).then_some(Hazard::JoinUnderLock);
    }
    let is_profilers = |thread: ThreadIndex| {
        history.threads.get(thread.index()).is_some_and(|thread| thread.kind != ThreadKind::App)
    };
    let forces = |thread| doing(thread).calls.contains(&"ForceGC");
    let by_profiler = |edge: &Edge| {
        let who = if edge.why == BlockReason::ToStop { edge.waits } else { edge.for_whom };
        by_gc(edge.why) && is_profilers(who) && !forces(who)
    };
    if edges.iter().any(by_profiler) {
        return Some(Hazard::RuntimeSuspended);
    }
    // The GC's own thread waits for a lock in a callback: the hazard depends on the activity of the
    // owner.
    let lock =
        edges.iter().find(|edge| matches!(edge.why, BlockReason::Lock(LockName::Profiler(_))));
    match lock {
        Some(edge) if in_gc(edge.waits) => {
            let owner = doing(edge.for_whom);
            let calls = !owner.calls.is_empty();
            Some(if calls { Hazard::LockOverGcTrigger } else { Hazard::LockOverGc })
        }
        Some(edge) if forces(edge.for_whom) => Some(Hazard::LockOverGcTrigger),
        _ => Some(Hazard::CooperativeWalker),
    }
}

/// Returns true if a thread wants a lock of the profiler whose owner waits for its end.
fn is_joined_under_a_lock(edges: &[Edge]) -> bool {
    edges.iter().any(|edge| {
        let wants = |wanted: &Edge| {
            wanted.waits == edge.for_whom
                && wanted.for_whom == edge.waits
                && matches!(wanted.why, BlockReason::Lock(LockName::Profiler(_)))
        };
        edge.why == BlockReason::Join && edges.iter().any(wants)
    })
}

/// Returns true if a thread in ThreadDestroyed waits, directly or through others, for one that walks or is the
/// profiler's own, and that waits for a lock of the first: one of the profiler's, or the thread store, which the
/// runtime may hold in that callback.
fn is_blocked_destruction(edges: &[Edge], history: &History) -> bool {
    let destroys = |thread: ThreadIndex| {
        Doing::of(thread, history).callbacks.last() == Some(&CallbackKind::ThreadDestroyed)
    };
    let walks = |thread: ThreadIndex| {
        let own = history.threads.get(thread.index()).is_some_and(|it| !it.kind.is_app());
        own || Doing::of(thread, history).calls.contains(&WALK)
    };
    let is_lock = |why| {
        let list = LockName::Runtime(Lock::ThreadStore);
        matches!(why, BlockReason::Lock(lock) if lock == list || matches!(lock, LockName::Profiler(_)))
    };
    edges.iter().any(|edge| {
        let (walker, destroyed) = (edge.waits, edge.for_whom);
        is_lock(edge.why)
            && destroys(destroyed)
            && walks(walker)
            && shortest_path(edges, edge).is_some()
    })
}
