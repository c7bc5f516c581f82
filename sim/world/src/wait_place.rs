//! The waits that a thread can be stopped in.

use super::World;
use super::arrangement::Awaited;
use super::step::Step;
use clr_codegen::Service;

/// A wait of a thread in the runtime or in the operating system, as a place to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WaitPlace {
    /// The thread sleeps.
    Sleep,
    /// The thread waits for the lock of a monitor.
    Monitor,
    /// The thread waits for the end of another one, or the first thread, having returned, for the ends of all others.
    Join,
    /// The thread waits until all finalizers have run.
    Finalizers,
    /// The thread waits for a lock of the runtime or of the process.
    Lock,
    /// The thread waits until the runtime is no longer suspended, or until all others have stopped.
    Suspension,
    /// The thread waits for a GC of the server GC's thread.
    Gc,
    /// A thread of the runtime waits for work: the finalizer's, one of tiered compilation, or the server GC's.
    Idle,
}

impl WaitPlace {
    /// All places.
    pub const ALL: [Self; 8] = [
        Self::Sleep,
        Self::Monitor,
        Self::Join,
        Self::Finalizers,
        Self::Lock,
        Self::Suspension,
        Self::Gc,
        Self::Idle,
    ];

    /// Returns the name of the place: that of the statement which waits, if only one does.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Monitor => "monitor-wait",
            Self::Join => "join-thread",
            Self::Finalizers => "await-finalizers",
            Self::Lock => "lock",
            Self::Suspension => "suspension",
            Self::Gc => "gc",
            Self::Idle => "idle",
        }
    }

    /// Returns the place with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.name() == name)
    }
}

impl World<'_> {
    /// Returns the wait that a thread is in after a step that was [`StepEvent::Waits`](crate::StepEvent::Waits). `None` if
    /// the thread was not started yet, or is stopped by the operating system.
    pub fn wait_place(&self, thread: usize) -> Option<WaitPlace> {
        if self.waits_to_come_back(thread).is_some() {
            return Some(WaitPlace::Suspension);
        }
        let executed = self.threads.get(thread)?;
        Some(match executed.pending.front()? {
            Step::Wait(_) if executed.served == Some(Service::AwaitMonitor) => WaitPlace::Monitor,
            Step::Wait(_) => WaitPlace::Sleep,
            Step::AwaitProgram(Awaited::Start | Awaited::Runtime) => return None,
            Step::AwaitProgram(Awaited::End(_)) | Step::AwaitForeground => WaitPlace::Join,
            Step::AwaitProgram(Awaited::Finalizers) => WaitPlace::Finalizers,
            Step::AwaitProgram(Awaited::Tiers | Awaited::Finalizable) | Step::ServeGc => {
                WaitPlace::Idle
            }
            Step::Acquire(_) | Step::Write(_) => WaitPlace::Lock,
            Step::AwaitGc(_) => WaitPlace::Gc,
            // A callback waits until the runtime is no longer suspended.
            _ => WaitPlace::Suspension,
        })
    }
}
