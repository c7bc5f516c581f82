//! The hazards of sampling profilers that the field knows: what a verdict is an instance of.

use super::deeds::{ESCAPES, REDIRECTS, UNTRUE};
use super::history::{Happening, History, Kind, ThreadIndex};
use super::lock::LockName;
use super::verdict::{Edge, Rule, Verdict, Why};
use clr_runtime::Lock;
use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::profiling::{CallbackKind, HResult};
use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;
use thiserror::Error;

/// Each hazard: its number, its name, the clauses that say so, and what avoids it.
macro_rules! hazards {
    ($($(#[doc = $doc:literal])* $hazard:ident $number:literal [$($clause:literal)*] $title:literal, $avoided:literal;)*) => {
        /// A way in which sampling goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Hazard {
            $($(#[doc = $doc])* $hazard,)*
        }

        impl Hazard {
            /// All of them, by number.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$hazard,)*];

            /// Its number: 1 is H-01.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self { $(Self::$hazard => $number,)* }
            }

            /// What it is, in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$hazard => $title,)* }
            }

            /// What avoids it.
            #[must_use]
            pub const fn avoided_by(self) -> &'static str {
                match self { $(Self::$hazard => $avoided,)* }
            }

            /// The clauses that are behind it.
            #[must_use]
            pub fn clauses(self) -> &'static [Clause] {
                match self { $(Self::$hazard => const { &[$(Clause::new($clause)),*] },)* }
            }
        }
    };
}

hazards! {
    /// H-01.
    MutualSuspension 1 [] "two threads suspend each other",
        "let one thread of the profiler alone suspend others";
    /// H-02.
    ManagedWalker 2 [148 157] "the walker has run managed code",
        "suspend threads only from a thread that has never run managed code";
    /// H-03.
    FirstCall 3 [151] "the first call of a thread is made while another one is suspended",
        "call a method of the runtime once on the walker before anybody is suspended";
    /// H-04.
    DestroyedThread 4 [149] "a thread is walked that has been destroyed",
        "block in ThreadDestroyed until the walk of that thread is over";
    /// H-05.
    BlockedDestruction 5 [149] "ThreadDestroyed waits for a walker that waits for it",
        "wait in ThreadDestroyed for nothing but the walk; need neither a GC nor the thread store in one";
    /// H-06.
    LockOverGcTrigger 6 [150] "a lock is held over a call that may trigger a GC",
        "hold no lock over calls of the runtime that callbacks of the GC take too";
    /// H-07.
    LockOverGc 7 [150] "a lock is held by a thread that a GC has stopped",
        "take in callbacks of the GC no lock that threads own when they run managed code or allocate";
    /// H-08.
    CallbackTakesLock 8 [152] "a lock is wanted that the suspended thread owns",
        "while a thread is suspended take no lock that it may own: collect into memory made before";
    /// H-09.
    FrozenWriter 9 [18 36] "the suspended thread writes to the code manager's tables",
        "look code up behind the resume, or on a thread that the runtime does not know";
    /// H-10.
    FrozenReader 10 [] "the suspended thread reads the code manager's tables",
        "wait for nobody while a thread is suspended";
    /// H-11.
    FunctionTables 11 [] "the suspended thread owns the lock of the system's function tables",
        "unwind by tables of your own while a thread is suspended, or give up after a time";
    /// H-12.
    LoaderLock 12 [] "the suspended thread owns the loader lock",
        "load nothing and look no symbol up while a thread is suspended";
    /// H-13.
    ProcessHeap 13 [152] "the suspended thread owns the lock of the process's heap",
        "allocate nothing while a thread is suspended: use memory made before";
    /// H-14.
    StaleContext 14 [] "the registers of the thread are older than its stack",
        "ask the system whether the context may be used, and try later if not";
    /// H-15.
    Hijacked 15 [] "the return address is the GC's",
        "at an unknown address of the runtime go on by DoStackSnapshot from the last good frame";
    /// H-16.
    TwoHijackers 16 [] "the profiler and the GC redirect the same thread",
        "redirect no thread between RuntimeThreadSuspended and RuntimeThreadResumed";
    /// H-17.
    BogusSeed 17 [] "the seed is wrong",
        "make seeds of a context that was checked, and of frames that were unwound to without doubt";
    /// H-18.
    UnloadedMethod 18 [] "a method is used that has been unloaded",
        "resolve ids at once, and drop those of what is unloaded";
    /// H-19.
    WalkDuringGc 19 [] "a walk during a GC looks at objects",
        "look at no object during a walk";
    /// H-20.
    CooperativeWalker 20 [] "a walker in cooperative mode keeps the GC waiting",
        "wait for nobody in callbacks that are made in cooperative mode";
    /// H-21.
    NestedWalk 21 [15] "a walk of a thread is made while another one is",
        "let one walker at a time walk a thread, and try again only behind the first";
    /// H-22.
    HijackKept 22 [] "a walk keeps the GC from stopping its target",
        "keep the callback of a walk short";
    /// H-23.
    RuntimeSuspended 23 [126] "the profiler waits for a thread while it has the runtime suspended",
        "between SuspendRuntime and ResumeRuntime wait for nobody, and call nothing that needs a GC";
    /// H-24.
    Detach 24 [1] "the profiler is detached in a walk",
        "stop the sampler before the detach is requested";
    /// H-25.
    GsCookie 25 [] "a GS cookie is not right",
        "make no seed with a stack pointer that was not checked";
    /// H-26.
    Fiber 26 [] "another fiber runs on the thread",
        "suspend no thread that is switched out";
    /// H-27.
    ExceptionWindow 27 [] "the thread is handling an exception",
        "take the walk as lost, and try later";
    /// H-28.
    SignalHandler 28 [] "a signal's handler needs what the interrupted thread owns",
        "take no lock in a signal's handler";
    /// H-29.
    UnlockedRead 29 [] "code is looked up without a lock while it is unloaded",
        "look code up on threads that the runtime knows, or while nothing is unloaded";
    /// H-30.
    CallbackEscapes 30 [] "the callback of a walk does not return",
        "let nothing escape from the callback of a walk";
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("H-{:02}", self.number()))
    }
}

/// A text names no hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is no such hazard; they are H-01 to H-30")]
pub struct NoHazard;

/// Understands `H-06`.
impl FromStr for Hazard {
    type Err = NoHazard;

    fn from_str(text: &str) -> Result<Self, NoHazard> {
        Self::ALL.into_iter().find(|hazard| hazard.to_string() == text).ok_or(NoHazard)
    }
}

/// The method that walks.
const WALK: &str = "DoStackSnapshot";

/// What a thread is in the middle of, as far as its happenings tell.
#[derive(Clone, Debug, Default)]
struct Doing {
    /// The callbacks that it is in, outermost first.
    callbacks: Vec<CallbackKind>,
    /// The methods of the runtime that it has called, outermost first.
    calls: Vec<&'static str>,
    /// It was called back by a walk, and has gone no further.
    in_walk: bool,
    signals: u32,
    /// How many calls it has made.
    called: u32,
    /// What it has called last.
    last_called: Option<&'static str>,
    /// It has made a walk in the callback of a walk.
    nested: bool,
    /// It has left the callback of a walk by a jump.
    escaped: bool,
    /// The last call that it has come back from, if it was refused because the profiler is being detached.
    refused: Option<&'static str>,
}

impl Doing {
    fn of(thread: ThreadIndex, history: &History) -> Self {
        let mut doing = Self::default();
        let slices = history.slices.iter().filter(|slice| slice.thread == thread);
        for happening in slices.flat_map(|slice| &slice.happenings) {
            match happening {
                Happening::Callback(kind) => doing.callbacks.push(*kind),
                Happening::CallbackOver(_) => drop(doing.callbacks.pop()),
                Happening::Called(method) => {
                    doing.called += 1;
                    doing.last_called = Some(method);
                    doing.nested |= *method == WALK && doing.calls.contains(method);
                    doing.calls.push(method);
                }
                Happening::Returned(method, outcome) => {
                    let refused = *outcome == Outcome::Returned(HResult::PROFILER_DETACHING);
                    doing.refused = refused.then_some(*method);
                    doing.calls.pop();
                    doing.in_walk = doing.in_walk && !doing.calls.is_empty();
                }
                Happening::SnapshotCallback => doing.in_walk = true,
                // A jump leaves the call without returning.
                Happening::System(ESCAPES) => {
                    doing.calls.pop();
                    doing.in_walk = false;
                    doing.escaped = true;
                }
                Happening::Signal => doing.signals += 1,
                Happening::SignalOver => doing.signals = doing.signals.saturating_sub(1),
                _ => {}
            }
        }
        doing
    }

    fn is_first_call(&self) -> bool {
        self.called == 1 && !self.calls.is_empty() && !self.in_walk
    }
}

impl Hazard {
    /// The hazard that a verdict is an instance of, if it is one that has a number.
    #[must_use]
    pub fn of(verdict: &Verdict, history: &History) -> Option<Self> {
        match verdict {
            Verdict::Deadlock(edges) => of_deadlock(edges, history),
            Verdict::DestroyedThread { .. } => Some(Self::DestroyedThread),
            Verdict::UnloadedCode { by } => {
                // What the id points to, or what lies at the address.
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
            Verdict::Broken { rule: Rule::ResumeForgotten, .. } => {
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

fn happenings(history: &History) -> impl Iterator<Item = &Happening> {
    history.slices.iter().flat_map(|slice| &slice.happenings)
}

fn doings(history: &History) -> impl Iterator<Item = Doing> {
    (0..history.lanes.len()).map(|lane| Doing::of(ThreadIndex(lane as u32), history))
}

fn escapes(history: &History) -> bool {
    happenings(history).any(|happening| *happening == Happening::System(ESCAPES))
}

/// The runtime is suspended, or was to be, while a walk is being made.
fn is_kept_from_stopping(history: &History) -> bool {
    let mut walking = BTreeSet::new();
    let mut suspends = false;
    history.slices.iter().any(|slice| {
        for happening in &slice.happenings {
            match happening {
                Happening::SnapshotCallback => drop(walking.insert(slice.thread)),
                Happening::Returned(WALK, _) => drop(walking.remove(&slice.thread)),
                Happening::Callback(CallbackKind::RuntimeSuspendStarted) => suspends = true,
                // Whoever suspends the runtime has its list of threads locked until it goes on.
                Happening::Callback(CallbackKind::RuntimeResumeStarted)
                | Happening::Released(LockName::Runtime(Lock::ThreadStore)) => suspends = false,
                _ => {}
            }
        }
        suspends && !walking.is_empty()
    })
}

/// Something that the profiler has noticed on this thread.
fn of_failure(by: ThreadIndex, history: &History) -> Option<Hazard> {
    let is_last = |what: &'static str| {
        let slices = history.slices.iter().filter(|slice| slice.thread == by);
        let mut happenings = slices.flat_map(|slice| &slice.happenings);
        let last = happenings.rfind(|happening| **happening != Happening::Waits);
        last == Some(&Happening::System(what))
    };
    if Doing::of(by, history).refused.is_some() {
        return Some(Hazard::Detach);
    }
    if escapes(history) {
        return Some(Hazard::CallbackEscapes);
    }
    if is_last(REDIRECTS) {
        return Some(Hazard::TwoHijackers);
    }
    if is_last(UNTRUE) {
        // It walked from registers that it had read, or while somebody else had the runtime suspended.
        let slices = history.slices.iter().filter(|slice| slice.thread == by);
        let mut own = slices.flat_map(|slice| &slice.happenings);
        let reads = own.any(|it| matches!(it, Happening::Context(_)));
        let suspends = happenings(history).any(|it| *it == Happening::Called("SuspendRuntime"));
        return Some(if suspends && !reads {
            Hazard::RuntimeSuspended
        } else {
            Hazard::StaleContext
        });
    }
    (Doing::of(by, history).signals > 0).then_some(Hazard::SignalHandler)
}

const fn of_rule(rule: Rule) -> Option<Hazard> {
    Some(match rule {
        Rule::SuspenderRanManagedCode => Hazard::ManagedWalker,
        Rule::AllocationWhileSuspended => Hazard::ProcessHeap,
        Rule::LockWhileSuspended | Rule::LogWhileSuspended | Rule::CallbackTakesTargetsLock => {
            Hazard::CallbackTakesLock
        }
        Rule::LoadingWhileSuspended => Hazard::LoaderLock,
        Rule::LockOverGcTrigger => Hazard::LockOverGcTrigger,
        Rule::WalkOutlivesThread => Hazard::DestroyedThread,
        Rule::FirstCallWhileSuspended => Hazard::FirstCall,
        Rule::ResumeForgotten | Rule::ResumeDoubled => return None,
    })
}

fn of_deadlock(edges: &[Edge], history: &History) -> Option<Hazard> {
    let has = |why: fn(Why) -> bool| edges.iter().any(|edge| why(edge.why));
    let suspended = || edges.iter().filter(|edge| edge.why == Why::Suspended);
    let doing = |thread: ThreadIndex| Doing::of(thread, history);
    let by_gc = |why: Why| matches!(why, Why::Collection | Why::RuntimeSuspended | Why::ToStop);
    // What was to be undone is not.
    if edges.iter().any(|edge| doing(edge.for_whom).refused == Some("ResumeRuntime")) {
        return Some(Hazard::Detach);
    }
    if edges.iter().any(|edge| edge.why == Why::Suspended && doing(edge.for_whom).escaped) {
        return Some(Hazard::CallbackEscapes);
    }
    // Who suspends is suspended.
    let is_suspender = |thread| suspended().any(|edge| edge.for_whom == thread);
    if suspended().any(|edge| is_suspender(edge.waits)) {
        return Some(Hazard::MutualSuspension);
    }
    if edges.iter().any(|edge| doing(edge.waits).signals > 0 && matches!(edge.why, Why::Lock(_))) {
        return Some(Hazard::SignalHandler);
    }
    if let Some(edge) = suspended().next() {
        if has(|why| why == Why::CodeManagerReader) {
            return Some(Hazard::FrozenReader);
        }
        let (target, walker) = (edge.waits, edge.for_whom);
        // What is wanted of the suspended thread, by the walker or by somebody that it waits for.
        let wanted = edges.iter().find(|edge| edge.for_whom == target);
        let first = doing(walker).is_first_call();
        return match wanted?.why {
            Why::Lock(LockName::Runtime(lock)) => Some(match lock {
                Lock::ThreadInit | Lock::StressLog => Hazard::FirstCall,
                Lock::ProcessHeap if first => Hazard::FirstCall,
                Lock::ProcessHeap => Hazard::ProcessHeap,
                Lock::Loader => Hazard::LoaderLock,
                Lock::FunctionTables => Hazard::FunctionTables,
                Lock::CodeManager => Hazard::FrozenWriter,
                Lock::ThreadStore | Lock::Gc => Hazard::ManagedWalker,
                Lock::LoaderHeap => return None,
            }),
            Why::Lock(LockName::Profiler(_)) => Some(Hazard::CallbackTakesLock),
            why if by_gc(why) => Some(Hazard::ManagedWalker),
            _ => None,
        };
    }
    let destroys =
        |edge: &Edge| doing(edge.waits).callbacks.contains(&CallbackKind::ThreadDestroyed);
    if edges.iter().any(destroys) {
        return Some(Hazard::BlockedDestruction);
    }
    if !has(|why| matches!(why, Why::Collection | Why::RuntimeSuspended | Why::ToStop)) {
        return None;
    }
    let is_profilers = |thread: ThreadIndex| {
        history.lanes.get(thread.index()).is_some_and(|lane| lane.kind != Kind::App)
    };
    let by_profiler = |edge: &Edge| {
        let who = if edge.why == Why::ToStop { edge.waits } else { edge.for_whom };
        by_gc(edge.why) && is_profilers(who)
    };
    if edges.iter().any(by_profiler) {
        return Some(Hazard::RuntimeSuspended);
    }
    // The GC's own thread waits for a lock in a callback: what does the owner do?
    let lock = edges.iter().find(|edge| matches!(edge.why, Why::Lock(LockName::Profiler(_))));
    let in_gc = |doing: &Doing| {
        let last = doing.callbacks.last();
        last.is_some_and(|kind| {
            kind.name().starts_with("Garbage") || kind.name().starts_with("Runtime")
        })
    };
    match lock {
        Some(edge) if in_gc(&doing(edge.waits)) => {
            let owner = doing(edge.for_whom);
            let calls = !owner.calls.is_empty();
            Some(if calls { Hazard::LockOverGcTrigger } else { Hazard::LockOverGc })
        }
        _ => Some(Hazard::CooperativeWalker),
    }
}
