//! The threads that the runtime knows.

use crate::error::InspectError;
use crate::frames::ExplicitFrame;
use crate::runtime::Runtime;
use clr_unwind::{Memory, Unreadable};
use clr_walker::jitted::contracts::{ContractDescriptor, ContractError, ContractVersion};
use std::ops::Range;

/// A thread's mode towards the GC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A GC, or another suspension, must wait for the thread.
    Cooperative,
    /// The thread does not touch objects.
    Preemptive,
}

/// Flags of a thread (`Thread::ThreadState` in threads.h of dotnet/runtime).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState(pub u32);

impl ThreadState {
    /// Returns true if a suspension waits until the thread leaves cooperative mode (`TS_GCSuspendPending`), before .NET 11. There
    /// the bit has another meaning: [`is_trapped`](ManagedThread::is_trapped).
    pub const fn is_suspension_pending(self) -> bool {
        self.0 & 0x2 != 0
    }

    /// Returns true if the process does not wait for the thread at its end.
    pub const fn is_background(self) -> bool {
        self.0 & 0x200 != 0
    }

    /// Returns true if the thread was created but does not run yet.
    pub const fn is_unstarted(self) -> bool {
        self.0 & 0x400 != 0
    }

    /// Returns true if the thread has ended: the runtime has counted it as dead, or will do so when it next looks at its list.
    pub const fn has_ended(self) -> bool {
        self.0 & (0x800 | 0x1_0000) != 0
    }
}

/// The flag of a thread which waits for the end of a suspension (`TS_SuspensionTrapped`; .NET 11).
const TRAPPED: u32 = 0x2;

/// A thread that the runtime knows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ManagedThread {
    /// Address of the runtime's Thread object (VA): what the profiling interface calls a ThreadID.
    pub address: u64,
    /// The runtime's small number of it (`ManagedThreadId`).
    pub id: u32,
    /// Id of the operating system, or 0 of a thread that does not run.
    pub os_id: u32,
    /// Flags.
    pub state: ThreadState,
    /// The mode.
    pub mode: Mode,
    /// Whether a suspension keeps the thread, which waits for its end, from cooperative mode: `TS_SuspensionTrapped` of
    /// dotnet/runtime, PR 124019 (in a dump of 11.0.0 the two threads that wait so have it, and no other). `None` before .NET 11,
    /// whose threads do not say so.
    pub is_trapped: Option<bool>,
    /// The exception object that was thrown last on it and not left behind (VA), or why that is unknown: .NET 8 does not say where
    /// it is. It may have been caught already.
    pub last_thrown: Result<Option<u64>, InspectError>,
    /// Its Frames, leafmost first.
    pub frames: Vec<ExplicitFrame>,
    /// Whether the Frames are all: else why the chain breaks off.
    pub frames_end: Result<(), InspectError>,
}

/// The threads that the runtime knows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadList {
    /// The list itself, with its counts.
    pub store: ThreadStore,
    /// In the order of the runtime's list.
    pub threads: Vec<ManagedThread>,
    /// Whether they are all: else why the list breaks off.
    pub end: Result<(), InspectError>,
}

/// The runtime's list of threads, and the suspension of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadStore {
    /// Address of the object (VA).
    pub address: u64,
    /// Number of threads.
    pub count: u32,
    /// Number of those that do not run yet.
    pub unstarted: u32,
    /// Number of those that the process does not wait for.
    pub background: u32,
    /// Number of those that have begun, and are not in the list yet.
    pub pending: u32,
    /// Number of those that have ended.
    pub dead: u32,
    /// The Thread object (VA) of the thread that suspends the others, or `None` if nobody does, or a thread does that the runtime
    /// does not know.
    pub suspender: Option<u64>,
    /// The Thread object (VA) of the finalizer's thread.
    pub finalizer: Option<u64>,
    /// Id (of the operating system) of the thread that holds the list's lock: for a moment, or from the start of a suspension to its
    /// end. `None` if nobody does, or if what is there does not fit.
    pub holder: Option<u32>,
    /// Number of bytes of the lock, which lies at the object's start.
    lock_size: u32,
    first: u64,
}

impl ThreadStore {
    /// Returns the addresses of the list's lock (VA).
    pub fn lock(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.lock_size.into())
    }
}

/// Returns the offset of the holder of the list's lock: the Thread (or null), and then the system's id (`m_HoldingThread` and
/// `m_holderthreadid` of ThreadStore in threads.h of dotnet/runtime 5.0.2). They follow the number of dead threads, another number
/// and a flag. It is so in dumps of 8.0.34, 9.0.23 and 11.0.0; for 10 it is assumed. No contract names them, so both must fit to
/// each other and to the lock.
const fn holder_offset(dead: u32) -> u64 {
    (dead as u64 + 9).next_multiple_of(8)
}

/// Where threads and their list have their parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadLayout {
    store: u64,
    first: u32,
    counts: [u32; 5],
    id: u32,
    os_id: u32,
    state: u32,
    mode: u32,
    frame: u32,
    last_thrown: Result<u32, ContractError>,
    next: u32,
    /// The value of a link is the address of the next Thread's link, or (.NET 11) of the Thread.
    links_to_links: bool,
    suspender: Option<u64>,
    finalizer: Option<u64>,
}

impl ThreadLayout {
    pub(crate) fn new(descriptor: &ContractDescriptor) -> Result<Self, ContractError> {
        let name = "Thread";
        let links_to_links = match descriptor.contract(name)? {
            ContractVersion::Number(1) => true,
            ContractVersion::C(1) => false,
            version => return Err(ContractError::ContractVersion { name, version }),
        };
        let store = |field| descriptor.field("ThreadStore", field);
        let thread = |field| descriptor.field("Thread", field);
        Ok(Self {
            store: descriptor.global("ThreadStore")?,
            first: store("FirstThreadLink")?,
            counts: [
                store("ThreadCount")?,
                store("UnstartedCount")?,
                store("BackgroundCount")?,
                store("PendingCount")?,
                store("DeadCount")?,
            ],
            id: thread("Id")?,
            os_id: thread("OSId")?,
            state: thread("State")?,
            mode: thread("PreemptiveGCDisabled")?,
            frame: thread("Frame")?,
            last_thrown: thread("LastThrownObject"),
            next: thread("LinkNext")?,
            links_to_links,
            suspender: descriptor.global("GCThread").ok(),
            finalizer: descriptor.global("FinalizerThread").ok(),
        })
    }

    /// Returns the Thread that a link leads to.
    const fn thread_of(&self, link: u64) -> u64 {
        if self.links_to_links { link.wrapping_sub(self.next as u64) } else { link }
    }
}

impl Runtime {
    /// Reads the runtime's list of threads, without the threads.
    fn thread_store<M: Memory + ?Sized>(&self, memory: &M) -> Result<ThreadStore, InspectError> {
        let layout = &self.threads;
        let address = memory.read_u64(layout.store)?;
        let at = |offset: u32| address.wrapping_add(offset.into());
        let [count, unstarted, background, pending, dead] =
            layout.counts.map(|offset| memory.read_u32(at(offset)));
        // A variable of the runtime, which is null if there is no such thread.
        let variable = |address: Option<u64>| {
            let value = address.map(|address| memory.read_u64(address)).transpose()?;
            Ok::<_, Unreadable>(value.filter(|value| *value != 0))
        };
        Ok(ThreadStore {
            address,
            count: count?,
            unstarted: unstarted?,
            background: background?,
            pending: pending?,
            dead: dead?,
            suspender: variable(layout.suspender)?,
            finalizer: variable(layout.finalizer)?,
            holder: self.holder(memory, address).ok().flatten(),
            lock_size: layout.first,
            first: memory.read_u64(at(layout.first))?,
        })
    }

    /// Reads which thread holds the lock of the list at `store`.
    fn holder<M: Memory + ?Sized>(
        &self,
        memory: &M,
        store: u64,
    ) -> Result<Option<u32>, Unreadable> {
        let layout = &self.threads;
        let [.., dead] = layout.counts;
        let holder = store.wrapping_add(holder_offset(dead));
        let Ok(id) = u32::try_from(memory.read_u64(holder.wrapping_add(8))?) else {
            return Ok(None);
        };
        let thread = memory.read_u64(holder)?;
        // A thread that the runtime does not know holds it without a Thread.
        let is_thread =
            thread == 0 || memory.read_u32(thread.wrapping_add(layout.os_id.into()))? == id;
        let mut lock = (0..layout.first).step_by(4).map(|offset| store.wrapping_add(offset.into()));
        let is_in_lock = lock.any(|address| memory.read_u32(address) == Ok(id));
        Ok((id != 0 && is_thread && is_in_lock).then_some(id))
    }

    /// Reads the threads that the runtime knows, with their Frames.
    ///
    /// # Errors
    /// [`InspectError::Unreadable`] if the list itself is unknown. If a thread of it is, the list breaks off there.
    pub fn threads<M: Memory + ?Sized>(&self, memory: &M) -> Result<ThreadList, InspectError> {
        let store = self.thread_store(memory)?;
        let (mut threads, mut link) = (Vec::new(), store.first);
        while link != 0 {
            let address = self.threads.thread_of(link);
            if threads.len() >= store.count as usize {
                let end = Err(InspectError::EndlessList { list: "threads", address });
                return Ok(ThreadList { store, threads, end });
            }
            let next = memory.read_u64(address.wrapping_add(self.threads.next.into()));
            match self.thread(memory, address).and_then(|thread| Ok((thread, next?))) {
                Ok((thread, next)) => {
                    threads.push(thread);
                    link = next;
                }
                Err(error) => return Ok(ThreadList { store, threads, end: Err(error) }),
            }
        }
        Ok(ThreadList { store, threads, end: Ok(()) })
    }

    /// Reads the last exception of the Thread at `thread`: a handle, which leads to the object.
    fn last_thrown<M: Memory + ?Sized>(
        &self,
        memory: &M,
        thread: u64,
    ) -> Result<Option<u64>, InspectError> {
        let offset = self.threads.last_thrown?;
        let handle = memory.read_u64(thread.wrapping_add(offset.into()))?;
        let object = if handle == 0 { 0 } else { memory.read_u64(handle)? };
        Ok((object != 0).then_some(object))
    }

    /// Returns true if an exception is in progress on a thread: the runtime has state of one.
    ///
    /// # Errors
    /// [`InspectError`] if the dump lacks that word, or the descriptor does not say where it is.
    pub fn has_exception<M: Memory + ?Sized>(
        &self,
        memory: &M,
        thread: &ManagedThread,
    ) -> Result<bool, InspectError> {
        let offset = self.descriptor.field("Thread", "ExceptionTracker")?;
        Ok(memory.read_u64(thread.address.wrapping_add(offset.into()))? != 0)
    }

    fn thread<M: Memory + ?Sized>(
        &self,
        memory: &M,
        address: u64,
    ) -> Result<ManagedThread, InspectError> {
        let layout = &self.threads;
        let at = |offset: u32| address.wrapping_add(offset.into());
        let is_cooperative = memory.read_u32(at(layout.mode))? != 0;
        let first = memory.read_u64(at(layout.frame))?;
        let (frames, frames_end) = self.frames.chain(memory, first);
        let state = memory.read_u32(at(layout.state))?;
        Ok(ManagedThread {
            address,
            id: memory.read_u32(at(layout.id))?,
            os_id: memory.read_u32(at(layout.os_id))?,
            state: ThreadState(state),
            mode: if is_cooperative { Mode::Cooperative } else { Mode::Preemptive },
            // The contract with other links is that of .NET 11.
            is_trapped: (!layout.links_to_links).then_some(state & TRAPPED != 0),
            last_thrown: self.last_thrown(memory, address),
            frames,
            frames_end,
        })
    }
}
