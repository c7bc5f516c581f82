//! The words of diagnoses: waits, doubts, verdicts and causes.

use clr_dump::{CoreDump, StoppedProcess as _};
use clr_inspect::{Cause, Doubt, Edge, Evidence, Unknown, Verdict};
use clr_story::Hazard;

/// Returns the hazard that a mistake is an instance of, or `None` if it has no number.
pub(super) const fn hazard(cause: Cause) -> Option<Hazard> {
    Some(match cause {
        Cause::LockInHandler => Hazard::SignalHandler,
        Cause::ParkedThread => Hazard::ParkedBySignal,
        Cause::LoaderLock => Hazard::LoaderLock,
        Cause::HeapLock => Hazard::ProcessHeap,
        Cause::LockInCallback => Hazard::CallbackTakesLock,
        Cause::LockWhileSuspended => Hazard::RuntimeSuspended,
        Cause::LockInCollection => Hazard::LockOverGc,
        Cause::LockOverCollection => Hazard::LockOverGcTrigger,
        Cause::JoinUnderLock => Hazard::JoinUnderLock,
        Cause::CooperativeCode
        | Cause::LockTwice
        | Cause::LockOrder
        | Cause::Monitors
        | Cause::Other => return None,
    })
}

/// Returns the title of a mistake, and what avoids it, or `None` if nothing is known of it.
pub(super) const fn mistake(cause: Cause) -> Option<(&'static str, &'static str)> {
    if let Some(hazard) = hazard(cause) {
        return Some((hazard.title(), hazard.avoided_by()));
    }
    match cause {
        Cause::CooperativeCode => Some((
            "native code runs in cooperative mode, and a suspension waits for it",
            "call only short functions without a GC transition (SuppressGCTransition)",
        )),
        Cause::LockTwice => Some((
            "a thread takes a lock that it owns",
            "call nothing under a lock that takes it again",
        )),
        Cause::LockOrder => Some((
            "locks are taken in different orders",
            "take locks in one order, or only one at a time",
        )),
        Cause::Monitors => Some((
            "monitors are entered in different orders",
            "enter monitors in one order, or only one at a time",
        )),
        _ => None,
    }
}

pub(super) const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Nothing => "nothing found: no threads wait in a circle",
        Verdict::Open => "open: no threads wait in a circle in what could be read",
        Verdict::Fits => "fits, not proved: threads may wait in a circle",
        Verdict::Proved => "proved: threads wait in a circle",
    }
}

/// Returns an address, with the module that has it.
fn place(process: &CoreDump<'_>, address: u64) -> String {
    match process.module_at(address) {
        Some(module) => {
            format!("{address:#x} ({}+{:#x})", module.name(), address - module.range.start)
        }
        None => format!("{address:#x}"),
    }
}

/// Returns what says that a thread waits.
pub(super) fn evidence(process: &CoreDump<'_>, edge: &Edge) -> String {
    let Edge { from, to, .. } = *edge;
    match edge.evidence {
        Evidence::Mutex { address } => {
            format!("it wants the mutex {}, whose owner is {to}", place(process, address))
        }
        Evidence::End { address } => {
            format!("it joins {to}: the word at {address:#x} is that of {to}'s end")
        }
        Evidence::ThreadStoreLock { address, store } => format!(
            "it wants the lock of the runtime's list of threads at {store:#x} (word {address:#x}), \
             which {to} holds"
        ),
        Evidence::Suspension { address, store } => format!(
            "it waits (word {address:#x}) until {to} resumes the runtime: {to} holds the lock of \
             the list of threads at {store:#x}"
        ),
        Evidence::CooperativeMode { thread } => format!(
            "{from} suspends the runtime, and {to} (Thread {thread:#x}) is in cooperative mode"
        ),
        Evidence::Call { address } => format!(
            "it waits inside the runtime (word {address:#x}), and {to} is in a call of the runtime"
        ),
        Evidence::InterruptedOwner { address } => format!(
            "it wants the lock {}, and a signal has interrupted {to} in code that has to do with it",
            place(process, address)
        ),
        Evidence::Handler { interrupted } => format!(
            "it waits in the handler of a signal, which has interrupted {}; code of the handler's \
             module is on the stack of {to}",
            place(process, interrupted)
        ),
        Evidence::Runs { address } => format!(
            "it runs in native code, {}, in cooperative mode, and a suspension waits for it",
            place(process, address)
        ),
        Evidence::Monitor { object } => {
            format!("it enters the monitor of the object {object:#x}, which {to} has entered")
        }
    }
}

/// Returns the word for a wait in JSON, and the address that says most of it.
pub(super) const fn kind(evidence: Evidence) -> (&'static str, u64) {
    match evidence {
        Evidence::Mutex { address } => ("mutex", address),
        Evidence::End { address } => ("end", address),
        Evidence::ThreadStoreLock { address, .. } => ("thread-store-lock", address),
        Evidence::Suspension { address, .. } => ("suspension", address),
        Evidence::CooperativeMode { thread } => ("cooperative-mode", thread),
        Evidence::Call { address } => ("call", address),
        Evidence::InterruptedOwner { address } => ("interrupted-owner", address),
        Evidence::Handler { interrupted } => ("handler", interrupted),
        Evidence::Runs { address } => ("runs", address),
        Evidence::Monitor { object } => ("monitor", object),
    }
}

/// Returns why a wait is not proved.
pub(super) const fn doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Timeout => "the wait ends after some time",
        Doubt::Word { is_dumped: true } => "this runtime does not say what the word is for",
        Doubt::Word { is_dumped: false } => {
            "this runtime does not say what the word is for, and the dump lacks it: take a heap dump"
        }
        Doubt::Holder => "the runtime does not say that it suspends: others hold the lock, too",
        Doubt::Owner => "the lock does not say who owns it",
        Doubt::Waker => "nothing says who ends the wait",
        Doubt::Moment => "it may come back in a moment: take a second dump",
    }
}

pub(super) fn unknown(unknown: &Unknown) -> String {
    match unknown {
        Unknown::Runtime(error) => format!("the runtime: {error}"),
        Unknown::Threads(error) => format!("threads of the runtime: {error}"),
        Unknown::Stack { thread } => {
            format!(
                "the stack of thread {thread} to its end: name files of its modules with --files"
            )
        }
        Unknown::Word { thread, address } => {
            format!("the word that thread {thread} waits for: the dump lacks {address:#x}")
        }
        Unknown::System { thread } => {
            format!(
                "what thread {thread} waits for in the kernel of Windows: a minidump does not say"
            )
        }
        Unknown::Owner { thread, address } => format!(
            "the owner of the lock {address:#x}, for which thread {thread} keeps a suspension \
             waiting: the dump lacks it, take a full dump"
        ),
    }
}
