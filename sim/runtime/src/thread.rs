//! Threads: the operating system's view of them, and their Thread objects. These are stored in the
//! target's memory, like everything that a runtime reads without checking that it exists.

use super::exception::ExceptionState;
use super::frame::FRAME_TOP;
use super::memory::{TargetMemory, read_u32};
use crate::Context;
use clr_unwind::{Memory, Unreadable};
use clr_walker::profiling::ThreadId;
use core::hash::{Hash, Hasher};

/// A thread of the operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OsThreadId(
    /// Number of the thread.
    pub u32,
);

/// Life cycle of a thread (contract §6, ThreadCreated to ThreadDestroyed).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ThreadLife {
    /// The thread has a Thread object and has not started.
    Created,
    /// The thread is running.
    #[default]
    Running,
    /// The thread has ended; its Thread object still exists.
    Dead,
}

/// Usability of the context that the system reports for a stopped thread (contract §2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ContextSafety {
    /// The context may be used.
    #[default]
    Safe,
    /// The thread is in a system call: SERVICE_ACTIVE.
    InSystemCall,
    /// The kernel is dispatching an exception: EXCEPTION_ACTIVE.
    InExceptionDispatch,
    /// The system does not report the state: no EXCEPTION_REPORTING.
    NotReported,
    /// The context cannot be read at all.
    Unreadable,
}

/// Bits that describe from where a thread calls a profiling method (contract §2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallbackState(
    /// The bits: INCALLBACK 1, IN_TRIGGERS_SCOPE 2, FORCEGC_WAS_CALLED 4, REJIT_WAS_CALLED 8.
    pub u8,
);

impl CallbackState {
    /// The thread is in a callback.
    pub const IN_CALLBACK: Self = Self(1);
    /// The thread is in a callback in which a GC may be triggered.
    pub const IN_TRIGGERS_SCOPE: Self = Self(2);
    /// The thread has called ForceGC.
    pub const FORCED_GC: Self = Self(4);
    /// The thread has called ForceGC or requested a ReJIT: every check passes.
    const PASSES: u8 = 4 | 8;

    /// Returns true if all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if a check that all bits of `other` are set passes.
    pub const fn passes(self, other: Self) -> bool {
        self.contains(other) || self.0 & Self::PASSES != 0
    }
}

/// State of a thread outside of its Thread object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct Thread {
    /// Id in the operating system.
    pub os: OsThreadId,
    /// Thread object; `None` for a thread that the runtime does not know.
    pub object: Option<ThreadId>,
    /// Life cycle state.
    pub life: ThreadLife,
    /// Registers of the thread, with ContextFlags as the system reports them.
    pub current: Context,
    /// Usability of `current` as the system's context.
    pub safety: ContextSafety,
    /// Suspend count.
    pub suspended: u32,
    /// Handle of the thread: 0 if it is invalid.
    pub handle: u64,
    /// Callback-state bits of the thread.
    pub callback_state: CallbackState,
    /// The thread is a native thread of the GC.
    pub is_gc_special: bool,
    /// The state that the runtime creates at a thread's first profiling call exists (H-03).
    pub initialized: bool,
    /// Number of times the thread has the code manager's reader lock (H-10).
    pub code_manager_reads: u32,
    /// A signal has interrupted the thread while it waited on its condition variable, of which it
    /// has one for all its waits: a wait of the handler on it never ends (H-31, Unix).
    pub waits_interrupted: bool,
    /// The thread leaves the callback of a walk for code beyond the walk, for example by longjmp:
    /// the runtime's code between them never completes (H-30).
    pub escapes: bool,
    /// The thread cannot be suspended: another fiber runs on it, or its stress log cannot be
    /// created (C-027).
    pub resists_suspension: bool,
    /// The thread leaves cooperative mode while it is being examined, which is possible only while
    /// it is not stopped (C-034).
    pub leaves_cooperative_mode: bool,
    /// The profiler has got ThreadDestroyed for the thread, or gets it now.
    pub reported_dead: bool,
    /// ThreadDestroyed has returned for the thread: the profiler must not use its id any more
    /// (C-149), though the runtime removes the thread later.
    pub id_is_over: bool,
    /// Exceptions in progress.
    pub exceptions: ExceptionState,
}

impl Thread {
    /// Hashes all but the registers, which follow from what the thread executes.
    pub fn hash_without_registers(&self, hasher: &mut impl Hasher) {
        let Self {
            os,
            object,
            life,
            current: _,
            safety,
            suspended,
            handle,
            callback_state,
            is_gc_special,
            initialized,
            code_manager_reads,
            waits_interrupted,
            escapes,
            resists_suspension,
            leaves_cooperative_mode,
            reported_dead,
            id_is_over,
            exceptions,
        } = self;
        (os, object, life, safety, suspended, handle, callback_state, code_manager_reads)
            .hash(hasher);
        let flags = [
            is_gc_special,
            initialized,
            waits_interrupted,
            escapes,
            resists_suspension,
            leaves_cooperative_mode,
            reported_dead,
            id_is_over,
        ];
        (flags, exceptions).hash(hasher);
    }
}

/// Offsets of the fields of a Thread object, in bytes. They are the simulator's own: the contract
/// specifies the fields that are read, not their offsets.
pub mod offset {
    /// Offset of the state bits.
    pub const STATE: u64 = 0x00;
    /// Offset of the GC mode: 1 is cooperative.
    pub const COOPERATIVE: u64 = 0x04;
    /// Offset of the pointer to the topmost Frame.
    pub const TOP_FRAME: u64 = 0x08;
    pub(super) const HIJACK_LOCK: u64 = 0x10;
    pub(super) const FORBID_SUSPEND: u64 = 0x14;
    pub(super) const EXTERNAL_COUNT: u64 = 0x18;
    pub(super) const STACK_BASE: u64 = 0x20;
    pub(super) const STACK_LIMIT: u64 = 0x28;
    pub(super) const HIJACKED_SLOT: u64 = 0x30;
    /// Offset of the return address that a hijack has replaced.
    pub const HIJACKED_ADDRESS: u64 = 0x38;
    pub(super) const PROFILER_CONTEXT: u64 = 0x40;
    pub(super) const DEBUGGER_CONTEXT: u64 = 0x48;
    /// Offset of the class of the exception that the thread has thrown last (`m_LastThrownObjectHandle`).
    pub const LAST_THROWN: u64 = 0x50;
    /// Offset of the address of the method that the class library calls on the thread (`m_StartThread`, the delegate).
    pub const START: u64 = 0x58;
    /// Offset of the class of the object that the thread allocates.
    pub const ALLOCATED: u64 = 0x60;
    /// Offset of a flag: the class constructor that managed code has called for the runtime has thrown.
    pub const CONSTRUCTOR_FAILED: u64 = 0x68;
}

/// Size of a Thread object in bytes.
pub const THREAD_OBJECT_SIZE: u64 = 0x70;

/// `TS_Hijacked`.
const HIJACKED: u32 = 1;
/// The thread belongs to the GC.
const GC_SPECIAL: u32 = 2;

/// Contents of a Thread object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct ThreadFields {
    /// `m_fPreemptiveGCDisabled`.
    pub cooperative: bool,
    /// The thread belongs to the GC (C-011).
    pub gc_special: bool,
    /// `m_pFrame` (VA), or [`FRAME_TOP`].
    pub top_frame: u64,
    /// `m_hijackLock` is taken.
    pub hijack_locked: bool,
    /// `m_dwForbidSuspendThread`.
    pub forbid_suspend: u32,
    /// The external reference count: 0 when the thread is no longer needed.
    pub external_count: u32,
    /// Bounds of the stack (VA): its lowest address, and its end (exclusive).
    pub stack: (u64, u64),
    /// The slot with the hijacked return address (VA), and the original address.
    pub hijacked: Option<(u64, u64)>,
    /// The debugger has set a filter context on the thread.
    pub debugger_context: bool,
}

impl Default for ThreadFields {
    fn default() -> Self {
        Self {
            cooperative: false,
            gc_special: false,
            top_frame: FRAME_TOP,
            hijack_locked: false,
            forbid_suspend: 0,
            external_count: 1,
            stack: (0, u64::MAX),
            hijacked: None,
            debugger_context: false,
        }
    }
}

impl ThreadFields {
    /// Writes a Thread object at `at` (VA).
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the object is not in writable memory.
    pub fn write<M: TargetMemory + ?Sized>(
        &self,
        memory: &mut M,
        at: ThreadId,
    ) -> Result<(), Unreadable> {
        let state = if self.hijacked.is_some() { HIJACKED } else { 0 }
            | if self.gc_special { GC_SPECIAL } else { 0 };
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (slot, address) = self.hijacked.unwrap_or_default();
        for (offset, value) in [
            (offset::STATE, pair(state, self.cooperative.into())),
            (offset::TOP_FRAME, self.top_frame),
            (offset::HIJACK_LOCK, pair(self.hijack_locked.into(), self.forbid_suspend)),
            (offset::EXTERNAL_COUNT, self.external_count.into()),
            (offset::STACK_BASE, self.stack.1),
            (offset::STACK_LIMIT, self.stack.0),
            (offset::HIJACKED_SLOT, slot),
            (offset::HIJACKED_ADDRESS, address),
            (offset::PROFILER_CONTEXT, 0),
            (offset::DEBUGGER_CONTEXT, self.debugger_context.into()),
        ] {
            memory.write_u64(at.0.wrapping_add(offset), value)?;
        }
        Ok(())
    }
}

/// A Thread object at an unverified address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadObject(pub ThreadId);

impl ThreadObject {
    fn at(self, offset: u64) -> u64 {
        self.0.0.wrapping_add(offset)
    }

    fn word<M: Memory + ?Sized>(self, memory: &M, offset: u64) -> Result<u32, Unreadable> {
        read_u32(memory, self.at(offset))
    }

    fn set_word<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
        offset: u64,
        value: u32,
    ) -> Result<(), Unreadable> {
        // Memory is written in units of eight bytes: the other half keeps its value.
        let (whole, shift) = (offset & !7, 8 * (offset & 4));
        let old = memory.read_u64(self.at(whole))?;
        let new = old & !(0xFFFF_FFFF << shift) | u64::from(value) << shift;
        memory.write_u64(self.at(whole), new)
    }

    pub(crate) fn is_gc_special<M: Memory + ?Sized>(self, memory: &M) -> Result<bool, Unreadable> {
        Ok(self.word(memory, offset::STATE)? & GC_SPECIAL != 0)
    }
    /// Returns true if the thread is in cooperative GC mode.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be accessed.
    pub fn is_cooperative<M: Memory + ?Sized>(self, memory: &M) -> Result<bool, Unreadable> {
        Ok(self.word(memory, offset::COOPERATIVE)? != 0)
    }
    /// Sets the GC mode of the thread.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be accessed.
    pub fn set_cooperative<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
        cooperative: bool,
    ) -> Result<(), Unreadable> {
        self.set_word(memory, offset::COOPERATIVE, cooperative.into())
    }
    /// Returns the address of the topmost Frame of the thread (VA).
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be accessed.
    pub fn top_frame<M: Memory + ?Sized>(self, memory: &M) -> Result<u64, Unreadable> {
        memory.read_u64(self.at(offset::TOP_FRAME))
    }

    /// Returns true if a walk of the thread has the hijack lock (C-014).
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be accessed.
    pub fn is_hijack_locked<M: Memory + ?Sized>(self, memory: &M) -> Result<bool, Unreadable> {
        Ok(self.word(memory, offset::HIJACK_LOCK)? != 0)
    }

    /// Takes the hijack lock if it is free. Returns true if the lock was taken (C-014).
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be accessed.
    pub fn try_hijack_lock<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
    ) -> Result<bool, Unreadable> {
        let free = self.word(memory, offset::HIJACK_LOCK)? == 0;
        if free {
            self.set_word(memory, offset::HIJACK_LOCK, 1)?;
        }
        Ok(free)
    }

    /// Releases the hijack lock.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be accessed.
    pub fn release_hijack_lock<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
    ) -> Result<(), Unreadable> {
        self.set_word(memory, offset::HIJACK_LOCK, 0)
    }
    /// Returns the count of regions in which the thread must not be suspended.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be accessed.
    pub fn forbid_suspend<M: Memory + ?Sized>(self, memory: &M) -> Result<u32, Unreadable> {
        self.word(memory, offset::FORBID_SUSPEND)
    }
    /// Sets the count of regions in which the thread must not be suspended.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be accessed.
    pub fn set_forbid_suspend<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
        count: u32,
    ) -> Result<(), Unreadable> {
        self.set_word(memory, offset::FORBID_SUSPEND, count)
    }

    pub(crate) fn external_count<M: Memory + ?Sized>(self, memory: &M) -> Result<u32, Unreadable> {
        self.word(memory, offset::EXTERNAL_COUNT)
    }

    pub(crate) fn set_external_count<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
        count: u32,
    ) -> Result<(), Unreadable> {
        self.set_word(memory, offset::EXTERNAL_COUNT, count)
    }

    /// Returns the bounds of the stack (VA).
    pub(crate) fn stack<M: Memory + ?Sized>(self, memory: &M) -> Result<(u64, u64), Unreadable> {
        let limit = memory.read_u64(self.at(offset::STACK_LIMIT))?;
        Ok((limit, memory.read_u64(self.at(offset::STACK_BASE))?))
    }

    /// Returns true if a return address is hijacked.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be read.
    pub fn is_hijacked<M: Memory + ?Sized>(self, memory: &M) -> Result<bool, Unreadable> {
        Ok(self.word(memory, offset::STATE)? & HIJACKED != 0)
    }

    /// Replaces the return address in `slot`, which is `address`, by `to`.
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be read, or it or the slot cannot be written.
    pub fn hijack<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
        slot: u64,
        address: u64,
        to: u64,
    ) -> Result<(), Unreadable> {
        let state = self.word(memory, offset::STATE)?;
        self.set_word(memory, offset::STATE, state | HIJACKED)?;
        memory.write_u64(self.at(offset::HIJACKED_SLOT), slot)?;
        memory.write_u64(self.at(offset::HIJACKED_ADDRESS), address)?;
        memory.write_u64(slot, to)
    }

    /// Restores a hijacked return address. Returns the slot and the address, or `None` if nothing
    /// was hijacked (C-077).
    ///
    /// # Errors
    /// Returns [`Unreadable`] if the Thread object cannot be read, or it or the slot cannot be written.
    pub fn unhijack<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
    ) -> Result<Option<(u64, u64)>, Unreadable> {
        let state = self.word(memory, offset::STATE)?;
        if state & HIJACKED == 0 {
            return Ok(None);
        }
        let slot = memory.read_u64(self.at(offset::HIJACKED_SLOT))?;
        let address = memory.read_u64(self.at(offset::HIJACKED_ADDRESS))?;
        memory.write_u64(slot, address)?;
        self.set_word(memory, offset::STATE, state & !HIJACKED)?;
        Ok(Some((slot, address)))
    }

    pub(crate) fn profiler_context<M: Memory + ?Sized>(
        self,
        memory: &M,
    ) -> Result<bool, Unreadable> {
        Ok(memory.read_u64(self.at(offset::PROFILER_CONTEXT))? != 0)
    }

    /// Publishes or removes the seed as the profiler's filter context.
    pub(crate) fn set_profiler_context<M: TargetMemory + ?Sized>(
        self,
        memory: &mut M,
        set: bool,
    ) -> Result<(), Unreadable> {
        memory.write_u64(self.at(offset::PROFILER_CONTEXT), set.into())
    }

    pub(crate) fn debugger_context<M: Memory + ?Sized>(
        self,
        memory: &M,
    ) -> Result<bool, Unreadable> {
        Ok(memory.read_u64(self.at(offset::DEBUGGER_CONTEXT))? != 0)
    }
}

#[cfg(test)]
mod tests;
