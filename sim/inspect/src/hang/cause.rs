//! The mistake behind a circle of waits.

use super::edges::Reader;
use super::outline::Outline;
use super::{Edge, Evidence};
use crate::stack::StackWalker;
use crate::threads::Mode;
use clr_dump::StoppedProcess;
use std::ops::Range;

/// The mistake behind a circle, by the kinds of its waits and the modules on the stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A thread wants a lock in the handler of a signal that has interrupted the lock's owner: itself.
    LockInHandler,
    /// A thread is suspended that a handler keeps, by the one that would let it go on.
    ParkedThread,
    /// The owner of the loader's lock waits for a thread that wants it.
    LoaderLock,
    /// The owner of the lock of a heap is kept by a thread that wants it.
    HeapLock,
    /// A lock is wanted, while threads are stopped, whose owner is stopped: in a callback.
    LockInCallback,
    /// The same, not in a callback.
    LockWhileSuspended,
    /// The same, in a callback of a GC.
    LockInCollection,
    /// The owner of a lock waits for a GC or for the list of threads, and a thread in cooperative mode wants the lock.
    LockOverCollection,
    /// A thread is joined that wants a lock of the joining one.
    JoinUnderLock,
    /// A suspension waits for a thread that runs in cooperative mode.
    CooperativeCode,
    /// A thread takes a lock that it owns.
    LockTwice,
    /// Locks are taken in different orders.
    LockOrder,
    /// Monitors of objects are entered in different orders.
    Monitors,
    /// None that has a name.
    Other,
}

const fn is_monitor(evidence: &Evidence) -> bool {
    matches!(evidence, Evidence::Monitor { .. })
}

/// AT_BASE of elf.h: where the kernel has loaded the loader, or 0.
const LOADER: u64 = 7;

impl<P: StoppedProcess + ?Sized> Reader<'_, P> {
    /// Returns the mistake behind a circle.
    pub(super) fn cause(&self, circle: &[Edge], walker: &mut StackWalker<'_, '_, P>) -> Cause {
        let find = |is_it: fn(&Evidence) -> bool| circle.iter().find(|edge| is_it(&edge.evidence));
        let process = self.process;
        let mut outline =
            |id| process.thread(id).map(|thread| Outline::of(process, walker, thread));
        let lock =
            find(|it| matches!(it, Evidence::Mutex { .. } | Evidence::InterruptedOwner { .. }));
        let waiter = lock.and_then(|edge| outline(edge.from));
        let address = lock.and_then(|edge| edge.evidence.lock());
        if waiter.as_ref().is_some_and(|waiter| waiter.interrupted.is_some()) {
            return Cause::LockInHandler;
        }
        if address.is_some_and(|address| self.loader().contains(&address)) {
            return Cause::LoaderLock;
        }
        if find(|it| matches!(it, Evidence::Runs { .. })).is_some() {
            return Cause::CooperativeCode;
        }
        if find(|it| matches!(it, Evidence::Handler { .. })).is_some() {
            return match lock.map(|edge| edge.evidence) {
                None => Cause::ParkedThread,
                // What takes a lock and waits for it in one module is no lock of the profiler's.
                Some(Evidence::InterruptedOwner { .. })
                    if waiter.is_some_and(|waiter| waiter.leaves > 1) =>
                {
                    Cause::HeapLock
                }
                Some(_) => Cause::LockInCallback,
            };
        }
        if find(|it| matches!(it, Evidence::End { .. })).is_some() {
            return if lock.is_some() { Cause::JoinUnderLock } else { Cause::Other };
        }
        if find(|it| matches!(it, Evidence::CooperativeMode { .. })).is_some() {
            return if lock.is_some() { Cause::LockOverCollection } else { Cause::Other };
        }
        match (find(|it| it.is_of_suspension()), lock, waiter) {
            (Some(_), Some(lock), Some(waiter)) => {
                // A GC works in cooperative mode, a profiler's suspension does not.
                let mode = self.managed(lock.from).map(|thread| thread.mode);
                match mode {
                    Some(Mode::Cooperative) => Cause::LockInCollection,
                    _ if self.is_in_call(&waiter) => Cause::LockInCallback,
                    // What suspends without having been called is the runtime.
                    _ if self.is_called(&waiter) => Cause::LockInCollection,
                    _ => Cause::LockWhileSuspended,
                }
            }
            (None, Some(_), _) if circle.iter().all(|it| it.evidence.lock().is_some()) => {
                if circle.len() == 1 { Cause::LockTwice } else { Cause::LockOrder }
            }
            (None, None, _) if circle.iter().all(|it| is_monitor(&it.evidence)) => Cause::Monitors,
            _ => Cause::Other,
        }
    }

    /// Returns the addresses of the loader (VA).
    fn loader(&self) -> Range<u64> {
        let base = self.process.auxiliary(LOADER).filter(|base| *base != 0);
        let module = base.and_then(|base| self.process.module_at(base));
        module.map_or(0..0, |module| module.range.clone())
    }
}

impl Evidence {
    /// Returns true if the wait is for the end of a suspension, or may be.
    pub const fn is_of_suspension(self) -> bool {
        matches!(self, Self::Suspension { .. } | Self::Call { .. })
    }

    /// Returns the address of the lock that is wanted (VA).
    pub const fn lock(self) -> Option<u64> {
        match self {
            Self::Mutex { address } | Self::InterruptedOwner { address } => Some(address),
            Self::End { .. }
            | Self::ThreadStoreLock { .. }
            | Self::Suspension { .. }
            | Self::CooperativeMode { .. }
            | Self::Call { .. }
            | Self::Handler { .. }
            | Self::Runs { .. }
            | Self::Monitor { .. } => None,
        }
    }
}
