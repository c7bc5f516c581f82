//! Who waits for whose monitor.

use super::edges::{Reader, timeout};
use super::{Edge, Evidence};
use crate::runtime::Runtime;
use crate::threads::ManagedThread;
use clr_dump::{StoppedProcess, System, Thread, Wait};
use clr_unwind::{Memory, Unreadable};
use clr_walker::jitted::contracts::{ContractDescriptor, ContractVersion};
use std::collections::BTreeSet;

/// Bytes of a stack, from its leaf on, in which what waits has the lock: 0x418 to 0x6e8 in dumps of 9.0.23, 10.0.15 and 11.0.0.
const SEARCHED: u64 = 0x1000;
/// Size of an entry of the table of sync blocks, and where it has the object (contract SyncBlock of 11.0.0; the same in dumps of 9.0.23
/// and 10.0.15).
const ENTRY: u64 = 16;
const OBJECT: u64 = 8;
/// Bits of an object's header, before the object: it has the index of a sync block, and no hash code (globals of 11.0.0).
const HEADER: u64 = 4;
const HAS_INDEX: u32 = 0x0C00_0000;
const INDEX_KIND: u32 = 0x0800_0000;
const INDEX: u32 = 0x03FF_FFFF;

/// Where monitors are.
#[derive(Clone, Copy, Debug)]
struct MonitorLayout {
    /// The variable with the table of sync blocks (VA).
    table: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The sync block begins with the lock (`AwareLock` in syncblk.h of dotnet/runtime), of which no contract tells. In dumps of 9.0.23
    /// and 10.0.15: its state at 0, the owner's id of the operating system at 16, and its own index at 28.
    Native,
    /// The sync block has, at this offset by contract, a handle of a managed lock (`System.Threading.Lock`), of which no contract tells. In
    /// a dump of 11.0.0: the owner's managed id at 16, and its state at 20.
    Managed { lock: u64 },
}

/// The state's bit of a lock that is owned, and those that count who waits: AwareLock (1, from 0x40 on) and Lock (1, from 0x80 on).
const OWNED: u32 = 1;
const WAITERS: [u32; 2] = [!0x3F, !0x7F];

/// A monitor that a thread owns, and others wait for.
struct Monitor {
    object: u64,
    owner: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// By the id of the operating system.
    System(u32),
    /// By the runtime's number.
    Managed(u32),
}

impl MonitorLayout {
    /// Returns the layout, or `None` for a runtime whose monitors are not known.
    fn new(descriptor: &ContractDescriptor) -> Option<Self> {
        let table = descriptor.global("SyncTableEntries").ok()?;
        let kind = match (descriptor.contract("SyncBlock"), descriptor.contract("Thread")) {
            (Ok(ContractVersion::C(1)), _) => {
                Kind::Managed { lock: descriptor.field("SyncBlock", "Lock").ok()?.into() }
            }
            (Err(_), Ok(ContractVersion::Number(1))) => Kind::Native,
            _ => return None,
        };
        Some(Self { table, kind })
    }

    /// Returns the object and the sync block at an index of the table.
    fn entry<M: Memory + ?Sized>(self, memory: &M, index: u32) -> Result<(u64, u64), Unreadable> {
        let entry = memory.read_u64(self.table)?.wrapping_add(ENTRY * u64::from(index));
        Ok((memory.read_u64(entry.wrapping_add(OBJECT))?, memory.read_u64(entry)?))
    }

    /// Returns the monitor whose lock, or whose object, is at an address that a thread has on its stack. `words` are all that it has.
    fn monitor<M: Memory + ?Sized>(
        self,
        memory: &M,
        address: u64,
        words: &BTreeSet<u64>,
    ) -> Result<Option<Monitor>, Unreadable> {
        let at = |offset: u64| address.wrapping_add(offset);
        match self.kind {
            Kind::Native => {
                let index = memory.read_u32(at(28))?;
                if index & !INDEX != 1 << 31 {
                    return Ok(None);
                }
                let (object, block) = self.entry(memory, index & INDEX)?;
                let state = memory.read_u32(address)?;
                let owner = Owner::System(memory.read_u32(at(16))?);
                let is_lock = block == address && is_contended(state, WAITERS[0]);
                Ok(is_lock.then_some(Monitor { object, owner }))
            }
            Kind::Managed { lock } => {
                let header = memory.read_u32(address.wrapping_sub(HEADER))?;
                if header & HAS_INDEX != INDEX_KIND {
                    return Ok(None);
                }
                let (object, block) = self.entry(memory, header & INDEX)?;
                if object != address {
                    return Ok(None);
                }
                let handle = memory.read_u64(block.wrapping_add(lock))? & !1;
                let lock = memory.read_u64(handle)?;
                let state = memory.read_u32(lock.wrapping_add(20))?;
                let owner = Owner::Managed(memory.read_u32(lock.wrapping_add(16))?);
                let is_lock = words.contains(&lock) && is_contended(state, WAITERS[1]);
                Ok(is_lock.then_some(Monitor { object, owner }))
            }
        }
    }
}

const fn is_contended(state: u32, waiters: u32) -> bool {
    state & OWNED != 0 && state & waiters != 0
}

impl Owner {
    fn is(self, thread: &ManagedThread) -> bool {
        match self {
            Self::System(id) => thread.os_id == id,
            Self::Managed(id) => thread.id == id,
        }
    }
}

impl<P: StoppedProcess + ?Sized> Reader<'_, P> {
    /// Reads who waits for a monitor: a thread that the runtime knows and that waits for a word, or in the kernel of Windows, with one lock
    /// of a monitor at its stack's leaf that another thread owns and somebody waits for.
    pub(super) fn read_monitors(&mut self, runtime: &Runtime) {
        let Some(layout) = MonitorLayout::new(runtime.descriptor()) else { return };
        let waiting: BTreeSet<_> = self.edges.iter().map(|edge| edge.from).collect();
        let threads = self.process.threads().iter().filter(|it| !waiting.contains(&it.id));
        let edges: Vec<_> = threads.filter_map(|it| self.monitor_of(layout, it)).collect();
        self.edges.extend(edges);
    }

    fn monitor_of(&self, layout: MonitorLayout, thread: &Thread) -> Option<Edge> {
        self.managed(thread.id)?;
        match (Wait::of(self.process, thread)?, self.process.system()) {
            (Wait::Word { .. }, System::Linux) | (Wait::Call { .. }, System::Windows) => {}
            _ => return None,
        }
        let start = thread.registers.rsp();
        let stack = (start..start.saturating_add(SEARCHED)).step_by(8);
        let words = stack.map_while(|at| self.process.read_u64(at).ok());
        let words: BTreeSet<_> = words.filter(|word| word % 8 == 0).collect();
        let monitors = words.iter().filter_map(|word| {
            let monitor = layout.monitor(self.process, *word, &words).ok().flatten()?;
            let owner = self.threads().iter().find(|thread| monitor.owner.is(thread))?;
            (owner.os_id != thread.id).then_some((owner.os_id, monitor.object))
        });
        let found: BTreeSet<_> = monitors.collect();
        // Of two, nothing says which one it is.
        let (to, object) = found.first().copied().filter(|_| found.len() == 1)?;
        let evidence = Evidence::Monitor { object };
        Some(Edge { from: thread.id, to, evidence, doubt: timeout(self.process, thread) })
    }
}
