//! Why a process hangs: who waits for whom, and whether they wait in a circle.

mod again;
mod cause;
mod circles;
mod doubtful;
mod edges;
mod monitors;
mod outline;

pub use cause::Cause;

use crate::error::InspectError;
use crate::runtime::Runtime;
use crate::stack::StackWalker;
use circles::circles;
use clr_dump::{StoppedProcess, Thread};
use edges::{Reader, runtime_module};
use outline::Outline;

/// A thread that cannot go on before another one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edge {
    /// Id of the thread that waits.
    pub from: u32,
    /// Id of the thread that has to go on first.
    pub to: u32,
    /// What says so.
    pub evidence: Evidence,
    /// Why the wait may be another one, or none. `None` if memory says all.
    pub doubt: Option<Doubt>,
}

/// What says that a thread waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The thread waits for a mutex, in which the other one stands as its owner.
    Mutex {
        /// Address of the mutex (VA).
        address: u64,
    },
    /// The thread waits for the other one's end: for a word in the other one's control block that has its id.
    End {
        /// Address of the word (VA).
        address: u64,
    },
    /// The thread waits for a word in the lock of the runtime's list of threads, which the other one holds.
    ThreadStoreLock {
        /// Address of the word (VA).
        address: u64,
        /// Address of the list (VA).
        store: u64,
    },
    /// A suspension keeps the thread from cooperative mode, until the other one, which holds the lock of the list of threads,
    /// resumes the runtime.
    Suspension {
        /// Address of the word that the thread waits for (VA).
        address: u64,
        /// Address of the list (VA).
        store: u64,
    },
    /// The thread suspends the runtime, and the other one is in cooperative mode.
    CooperativeMode {
        /// The other one's Thread object (VA).
        thread: u64,
    },
    /// The thread waits inside the runtime, and the other one is in a call of the runtime.
    Call {
        /// Address of the word that the thread waits for (VA).
        address: u64,
    },
    /// The thread waits for a lock that does not say who owns it. A signal has interrupted the other one, or the thread itself, in code
    /// that has to do with the lock: its address stands in a register or on the stack there, or it is data of the module there.
    InterruptedOwner {
        /// Address of the lock (VA).
        address: u64,
    },
    /// The thread waits in the handler of a signal, and the other one has code of the handler's module on its stack.
    Handler {
        /// Address of the instruction that the signal has interrupted (VA).
        interrupted: u64,
    },
    /// The thread waits for the monitor of an object, which the other one has entered.
    Monitor {
        /// Address of the object (VA).
        object: u64,
    },
    /// The thread keeps a suspension waiting, and runs: it is in native code, in cooperative mode. It waits for itself, so to speak.
    Runs {
        /// Address of the instruction (VA).
        address: u64,
    },
}

/// Why a wait is not proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The wait ends after some time.
    Timeout,
    /// The runtime does not say what the word is for. With `is_dumped` false, the dump lacks it, too.
    Word {
        /// Whether the dump has the word.
        is_dumped: bool,
    },
    /// The runtime does not say that the thread, which holds the lock of the list of threads, suspends the others.
    Holder,
    /// The lock does not say who owns it.
    Owner,
    /// Nothing says who ends the wait.
    Waker,
    /// One dump does not show whether the thread will come back.
    Moment,
}

/// What is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The runtime: nothing is known of modes and suspensions.
    Runtime(InspectError),
    /// The threads of the runtime from here on.
    Threads(InspectError),
    /// The rest of a thread's stack, which cannot be walked to its end: files of the process are missing.
    Stack {
        /// Id of the thread.
        thread: u32,
    },
    /// The word that a thread waits for.
    Word {
        /// Id of the thread.
        thread: u32,
        /// Address of the word (VA).
        address: u64,
    },
    /// What a thread waits for in the kernel of Windows: a minidump has no state of events and other locks.
    System {
        /// Id of the thread.
        thread: u32,
    },
    /// The owner of a lock for which a thread waits that keeps a suspension from going on. All threads that wait for the suspension may
    /// own it.
    Owner {
        /// Id of the thread.
        thread: u32,
        /// Address of the lock (VA).
        address: u64,
    },
}

impl Unknown {
    const fn is_owner(&self) -> bool {
        matches!(self, Self::Owner { .. })
    }

    /// Returns true if waits of any number of threads may be among it. Most words of waits are not in small dumps.
    const fn hides_waits(&self) -> bool {
        match self {
            Self::Runtime(_) | Self::Threads(_) | Self::Stack { .. } | Self::System { .. } => true,
            Self::Word { .. } | Self::Owner { .. } => false,
        }
    }
}

/// Threads that wait for one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// The waits: each for the thread of the next one, the last for that of the first.
    pub edges: Vec<Edge>,
    /// The mistake behind it.
    pub cause: Cause,
}

impl Circle {
    /// Returns true if memory says all.
    pub fn is_proved(&self) -> bool {
        self.edges.iter().all(|edge| edge.doubt.is_none())
    }
}

/// Returns true if native code of a thread has called the runtime, which has called native code. `walker` walks the stacks of the same
/// process.
pub fn is_in_call<P: StoppedProcess + ?Sized>(
    process: &P,
    runtime: Option<&Runtime>,
    walker: &mut StackWalker<'_, '_, P>,
    thread: &Thread,
) -> bool {
    let runtime = runtime_module(process, runtime);
    runtime.is_some_and(|runtime| Outline::of(process, walker, thread).is_in_call(&runtime))
}

/// What is found of a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No threads that wait in a circle. They may wait for something else that never comes.
    Nothing,
    /// No circle in what could be read, but the runtime, some of its threads, or what they wait for could not.
    Open,
    /// A circle, if doubtful waits are what they seem to be.
    Fits,
    /// A circle, of which each wait was read from memory.
    Proved,
}

/// Who waits for whom in a stopped process, and why it hangs.
///
/// That a GC or a suspension goes on is no hang: only threads that wait in a circle are. Names of functions decide nothing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// All waits for threads.
    pub edges: Vec<Edge>,
    /// Circles of waits, which have no thread in common: if there are such without doubt, those alone.
    pub circles: Vec<Circle>,
    /// Circles of doubtful waits that an earlier dump does not have: of threads that have moved.
    pub moved: Vec<Circle>,
    /// What could not be looked at.
    pub unknown: Vec<Unknown>,
}

impl Diagnosis {
    /// Finds who waits for whom, and circles of waits. `runtime` is that of the process, or why it is not known; `walker` walks the
    /// stacks of the same process.
    pub fn of<P: StoppedProcess + ?Sized>(
        process: &P,
        runtime: Result<&Runtime, InspectError>,
        walker: &mut StackWalker<'_, '_, P>,
    ) -> Self {
        let mut reader = Reader::new(process, runtime);
        reader.read_waits();
        if let Ok(runtime) = runtime {
            reader.read_monitors(runtime);
        }
        reader.read_system_waits();
        let mut found = circles(&reader.edges);
        if found.is_empty() {
            reader.read_doubtful_waits(walker);
            found = circles(&reader.edges);
        }
        let circles = found.into_iter().map(|edges| {
            let cause = reader.cause(&edges, walker);
            Circle { edges, cause }
        });
        let circles = circles.collect();
        Self { edges: reader.edges, circles, moved: Vec::new(), unknown: reader.unknown }
    }

    /// Returns the verdict.
    pub fn verdict(&self) -> Verdict {
        match self.circles.as_slice() {
            [] if self.unknown.iter().any(Unknown::is_owner) => Verdict::Fits,
            [] if self.unknown.iter().any(Unknown::hides_waits) => Verdict::Open,
            [] => Verdict::Nothing,
            circles if circles.iter().any(Circle::is_proved) => Verdict::Proved,
            _ => Verdict::Fits,
        }
    }

    /// Returns the waits of threads outside of the circles that lead to a thread of them, directly or through others.
    pub fn followers(&self) -> Vec<Edge> {
        let in_circles = self.circles.iter().flat_map(|circle| &circle.edges);
        let mut stuck: Vec<u32> = in_circles.map(|edge| edge.from).collect();
        let mut followers = Vec::new();
        loop {
            let is_new = |edge: &&Edge| stuck.contains(&edge.to) && !stuck.contains(&edge.from);
            let Some(edge) = self.edges.iter().find(is_new) else { return followers };
            stuck.push(edge.from);
            followers.push(*edge);
        }
    }
}
