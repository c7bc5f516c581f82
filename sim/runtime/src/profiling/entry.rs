//! The ordered checks before the walk (contract §2.2).

use super::iterator::Walk;
use super::{Caller, HResult, SnapshotRequest};
use crate::context::{RIP_END, rip_of, seed_size};
use crate::explain::{EntryCheck, Event, WalkStart};
use crate::thread::ThreadObject;
use crate::{
    CallbackState, ContextSafety, ExceptionState, FRAME_TOP, Lock, Managed, ProfilerStatus,
    Suspension, TargetMemory, Wait,
};
use crate::{Context, Outcome};
use clr_unwind::Unreadable;
use clr_walker::profiling::{SnapshotCallback, ThreadId};

/// Target of a call whose arguments have been checked.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub object: ThreadObject,
    /// The target is not the caller.
    pub other: bool,
    /// The caller has a Thread object.
    pub caller_known: bool,
}

impl<'r, M: TargetMemory> Caller<'r, '_, M> {
    fn refuse<T>(&self, result: HResult, event: Event) -> Result<T, Outcome> {
        self.runtime.record(|| event);
        Err(result.into())
    }

    fn pass(&self, check: EntryCheck) {
        self.runtime.record(|| Event::Passed(check));
    }

    /// Reads from the target's Thread object, which no guard protects.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&M) -> Result<T, Unreadable>,
    ) -> Result<T, Outcome> {
        let read = read(&self.runtime.memory.borrow());
        read.map_err(|unreadable| self.runtime.fault(unreadable))
    }

    /// Changes the target's Thread object, which no guard protects.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut M) -> Result<T, Unreadable>,
    ) -> Result<T, Outcome> {
        let changed = change(&mut self.runtime.memory.borrow_mut());
        changed.map_err(|unreadable| self.runtime.fault(unreadable))
    }

    /// Executes the whole call.
    pub(super) fn enter(
        &self,
        call: &SnapshotRequest<'_>,
        callback: Option<&mut SnapshotCallback<'_>>,
    ) -> Outcome {
        let target = match self.target(call) {
            Ok(target) => target,
            Err(outcome) => return outcome,
        };
        let mut suspended = false;
        let outcome =
            self.checked(call, target, callback, &mut suspended).unwrap_or_else(|outcome| outcome);
        let escapes = self.runtime.thread(self.os, |thread| thread.escapes) == Some(true);
        if matches!(outcome, Outcome::Returned(_)) && !escapes {
            // Row 18 of contract §2.2: all changes are undone (C-025), unless the callback never returned (H-30).
            if suspended {
                self.resume(target);
            }
            let released = self.change(|memory| {
                target.object.set_profiler_context(memory, false)?;
                target.object.release_hijack_lock(memory)
            });
            if let Err(fault) = released {
                return fault;
            }
        }
        outcome
    }

    /// Executes rows 1 to 7 of contract §2.2: up to the target's hijack lock.
    fn target(&self, call: &SnapshotRequest<'_>) -> Result<Target, Outcome> {
        let runtime = self.runtime;
        let process = runtime.process.get();
        if runtime.generation.has_detach() && process.profiler == ProfilerStatus::Detaching {
            return self.refuse(HResult::PROFILER_DETACHING, Event::Detaching);
        }
        self.pass(EntryCheck::NotDetaching);
        self.initialize()?;
        if !process.started {
            return self.refuse(HResult::UNSAFE, Event::NotStarted);
        }
        self.pass(EntryCheck::Started);
        if !process.enables_stack_snapshot() {
            let result = runtime.generation.missing_snapshot_flag();
            return self.refuse(result, Event::SnapshotNotEnabled);
        }
        self.pass(EntryCheck::SnapshotEnabled);
        let current = runtime.object_of(self.os);
        let target = if call.thread == ThreadId(0) { current } else { Some(call.thread) };
        if call.flags.0 & !1 != 0 {
            return self.refuse(HResult::INVALID_ARGUMENT, Event::BadFlags(call.flags));
        }
        self.pass(EntryCheck::InfoFlags);
        let Some(id) = target else {
            return self.refuse(HResult::OK, Event::NoManagedThread);
        };
        let object = ThreadObject(id);
        if runtime.generation.passes_over_gc_special()
            && self.read(|memory| object.is_gc_special(memory))?
        {
            return self.refuse(HResult::OK, Event::GcSpecial);
        }
        if !process.gc_initialized {
            return self.refuse(HResult::OK, Event::NoGc);
        }
        let other = current != Some(id);
        runtime.record(|| Event::Target { object: id, other });
        if !self.change(|memory| object.try_hijack_lock(memory))? {
            return self.refuse(HResult::UNSAFE, Event::HijackLocked);
        }
        self.pass(EntryCheck::HijackLock);
        Ok(Target { object, other, caller_known: current.is_some() })
    }

    /// Executes rows 8 to 17 of contract §2.2, with the hijack lock held.
    fn checked(
        &self,
        call: &SnapshotRequest<'_>,
        target: Target,
        callback: Option<&mut SnapshotCallback<'_>>,
        suspended: &mut bool,
    ) -> Result<Outcome, Outcome> {
        let runtime = self.runtime;
        let process = runtime.process.get();
        let Target { object, other, caller_known } = target;
        if other && caller_known && matches!(process.suspension, Suspension::Suspending(_)) {
            return self.refuse(HResult::UNSAFE, Event::SuspensionInProgress);
        }
        self.pass(EntryCheck::NoSuspensionInProgress);
        let forbidden = self.read(|memory| object.forbid_suspend(memory))?;
        if forbidden != 0 {
            return self.refuse(HResult::UNSAFE, Event::SuspensionForbidden(forbidden));
        }
        self.pass(EntryCheck::ForbidSuspend);
        if other && process.suspended_by_profiler {
            runtime.record(|| Event::NoSuspensionNeeded);
        } else if other {
            if runtime.generation.is_unix() {
                return self.refuse(HResult::NOT_IMPLEMENTED, Event::OtherThread);
            }
            self.suspend(target)?;
            *suspended = true;
        }
        let start = self.start(call, target)?;
        if !matches!(start, WalkStart::Seed | WalkStart::OwnContext)
            && self.exceptions(object, ExceptionState::is_unwinding_natively)
        {
            return self.refuse(HResult::UNMANAGED_CONTEXT, Event::UnwindingNatively);
        }
        if self.exceptions(object, |exceptions| exceptions.inconsistent) {
            return self.refuse(HResult::UNSAFE, Event::InconsistentExceptions);
        }
        self.pass(EntryCheck::Exceptions);
        let context = match start {
            WalkStart::FrameChain => Context::default(),
            WalkStart::OwnContext | WalkStart::DebuggerContext => self.own_context(object),
            WalkStart::Seed => self.copied_seed(call)?,
        };
        let looks_up = matches!(start, WalkStart::Seed | WalkStart::OwnContext);
        let gives_up = looks_up && !self.allows_host_calls(target);
        let fault = self.fault("DoStackSnapshot", |fault| {
            fault.result != HResult::ASYNCHRONOUS_UNSAFE || gives_up
        });
        if let Some(fault) = fault.filter(|fault| fault.frames == 0) {
            return self.refuse(fault.result, Event::Injected(fault.result));
        }
        runtime.record(|| Event::Started(start));
        Ok(Walk {
            caller: *self,
            target,
            call,
            context,
            seeded: start == WalkStart::Seed,
            suspended: *suspended,
            fault,
        }
        .run(callback))
    }

    fn exceptions(&self, object: ThreadObject, ask: impl FnOnce(&ExceptionState) -> bool) -> bool {
        let asked = self.runtime.thread_of(object.0, |thread| ask(&thread.exceptions));
        asked.unwrap_or(false)
    }

    fn own_context(&self, object: ThreadObject) -> Context {
        self.runtime.thread_of(object.0, |thread| thread.current).unwrap_or_default()
    }

    /// Executes rows 12 to 14 of contract §2.2: determines the start of the walk.
    fn start(&self, call: &SnapshotRequest<'_>, target: Target) -> Result<WalkStart, Outcome> {
        let runtime = self.runtime;
        let object = target.object;
        if target.other && call.seed.is_none() && runtime.generation.reads_context_first() {
            let safety = runtime.thread_of(object.0, |thread| thread.safety);
            if safety.is_none_or(|safety| safety == ContextSafety::Unreadable) {
                return self.refuse(HResult::FAIL, Event::ContextUnreadable);
            }
        }
        let cooperative = self.read(|memory| object.is_cooperative(memory))?;
        runtime.record(|| Event::Mode { cooperative });
        if !cooperative {
            if call.seed.is_some() {
                runtime.record(|| Event::SeedIgnored);
            }
            return self.without_seed(object);
        }
        if target.other {
            if runtime.generation.is_unix() {
                return self.refuse(HResult::NOT_IMPLEMENTED, Event::OtherCooperativeThread);
            }
            self.check_own_context(target)?;
        }
        match call.seed {
            Some(seed) => {
                // No guard protects this read (contract §2.8).
                let unreadable = Unreadable { address: seed.len() as u64, len: 8 };
                let ip = rip_of(seed).ok_or_else(|| {
                    let readable = seed.len() as u64;
                    runtime.record(|| Event::SeedTooShort { readable, needed: RIP_END });
                    runtime.fault(unreadable)
                })?;
                self.check_seed(ip, target, false)?;
                Ok(WalkStart::Seed)
            }
            None if target.other => {
                let ip = self.own_context(object).registers.rip;
                runtime.record(|| Event::OwnContext { ip });
                self.check_seed(ip, target, true)?;
                Ok(WalkStart::OwnContext)
            }
            None => self.without_seed(object),
        }
    }

    /// Returns the Frame chain as the start, unless a debugger has set a context of the thread
    /// (contract §3.1).
    fn without_seed(&self, object: ThreadObject) -> Result<WalkStart, Outcome> {
        if !self.read(|memory| object.debugger_context(memory))? {
            return Ok(WalkStart::FrameChain);
        }
        let safety = self.runtime.thread_of(object.0, |thread| thread.safety);
        if safety == Some(ContextSafety::Unreadable) {
            return self.refuse(HResult::FAIL, Event::ContextUnreadable);
        }
        Ok(WalkStart::DebuggerContext)
    }

    /// Executes rows 13a to 13d of contract §2.2, even if a seed was given (C-032 to C-034).
    fn check_own_context(&self, target: Target) -> Result<(), Outcome> {
        let runtime = self.runtime;
        let object = target.object;
        if !runtime.generation.checks_redirection() {
            return Ok(());
        }
        let known = runtime.thread_of(object.0, |thread| {
            (thread.safety, thread.current.registers, thread.leaves_cooperative_mode)
        });
        let (safety, registers, leaves) =
            known.unwrap_or((ContextSafety::Unreadable, Context::default().registers, false));
        if safety != ContextSafety::Safe || self.read(|memory| object.debugger_context(memory))? {
            return self.refuse(HResult::UNSAFE, Event::ContextUnsafe { safety });
        }
        let ip = registers.rip;
        if self.is_managed(ip, target)? && leaves {
            return self.refuse(HResult::UNSAFE, Event::ManagedButPreemptive { ip });
        }
        let frame = self.read(|memory| object.top_frame(memory))?;
        let rsp = registers.rsp();
        if frame != FRAME_TOP && frame < rsp {
            return self.refuse(HResult::UNSAFE, Event::FrameBelowSp { frame, rsp });
        }
        self.pass(EntryCheck::ContextSafe);
        Ok(())
    }

    /// Executes row 14 of contract §2.2: a seed's rip must be managed code (C-038 to C-044).
    fn check_seed(&self, ip: u64, target: Target, own: bool) -> Result<(), Outcome> {
        if !self.is_managed(ip, target)? {
            return self.refuse(HResult::UNMANAGED_CONTEXT, Event::SeedUnmanaged { ip, own });
        }
        self.runtime.record(|| Event::SeedManaged { ip });
        self.change(|memory| target.object.set_profiler_context(memory, true))
    }

    /// Returns true if `ip` is managed code. A lookup that would have to wait for a lock is refused
    /// where it must not wait (C-036), and waits elsewhere.
    fn is_managed(&self, ip: u64, target: Target) -> Result<bool, Outcome> {
        let runtime = self.runtime;
        if self.is_code_manager_busy()
            && runtime.generation.refuses_to_wait()
            && !self.allows_host_calls(target)
        {
            return self.refuse(HResult::ASYNCHRONOUS_UNSAFE, Event::CodeManagerBusy { ip });
        }
        Ok(self.find_code(ip)?.is_some())
    }

    /// Returns true if the caller may wait (row 11 of contract §2.2): threads of the runtime outside of callbacks,
    /// and native threads of the GC, must not.
    fn allows_host_calls(&self, target: Target) -> bool {
        let thread = self.runtime.thread(self.os, |thread| {
            (thread.callback_state.passes(CallbackState::IN_CALLBACK), thread.is_gc_special)
        });
        let (in_callback, gc_special) = thread.unwrap_or_default();
        if target.caller_known { in_callback } else { !gc_special }
    }

    /// Returns true if another thread writes to the code manager's tables.
    pub(super) fn is_code_manager_busy(&self) -> bool {
        self.runtime.process.get().code_manager_writer.is_some_and(|os| os != self.os)
    }

    /// Looks up the managed code at `ip` (VA), with or without the reader lock (contract §2.6).
    pub(super) fn find_code(&self, ip: u64) -> Result<Option<Managed<'r>>, Outcome> {
        self.wait_for_code_manager()?;
        let reads = self.takes_reader_lock()?;
        let count = |by: u32| {
            if reads {
                self.runtime.change_thread(self.os, |thread| {
                    thread.code_manager_reads = thread.code_manager_reads.wrapping_add(by);
                });
            }
            self.between();
        };
        count(1);
        let found = self.look_up_image(ip).map(|()| self.runtime.code.find(ip));
        count(u32::MAX);
        if reads || !matches!(found, Ok(Some(_))) || !self.is_code_manager_busy() {
            return found;
        }
        // The result may be freed before it has been read (H-29).
        if let Some(profiler) = self.profiler {
            profiler.reads_unlocked(self.runtime, self.os);
        }
        if self.runtime.code.was_freed(ip) {
            return Err(self.runtime.fault(Unreadable { address: ip, len: 8 }));
        }
        found
    }

    /// Makes the caller cooperative if the lookup of ready-to-run code requires it: then it waits
    /// while another thread has the runtime suspended (C-157). Without a profiler to decide about
    /// waits, no suspension lasts.
    pub(super) fn look_up_image(&self, ip: u64) -> Result<(), Outcome> {
        let runtime = self.runtime;
        let looks_up = self.profiler.is_some()
            && runtime.generation.looks_images_up_cooperatively()
            && runtime.code.is_in_image(ip);
        if looks_up {
            self.become_cooperative()?;
        }
        Ok(())
    }

    /// Makes the caller cooperative: a preemptive thread that the runtime knows waits until the
    /// runtime is no longer suspended by another thread. Without a profiler to decide about waits,
    /// no suspension lasts.
    pub(super) fn become_cooperative(&self) -> Result<(), Outcome> {
        let runtime = self.runtime;
        let Some(id) = runtime.object_of(self.os) else { return Ok(()) };
        if self.read(|memory| ThreadObject(id).is_cooperative(memory))? {
            return Ok(());
        }
        while let Some(by) = runtime.process.get().suspension.by().filter(|by| *by != self.os) {
            let interrupted = runtime.thread(self.os, |thread| thread.waits_interrupted);
            let wait = match interrupted {
                Some(true) => Wait::WakeUpOfInterrupted,
                _ => Wait::RuntimeRunning(by),
            };
            if !self.wait(wait) {
                break;
            }
        }
        Ok(())
    }

    /// Waits before a lookup of code until no other thread writes to the tables.
    pub(super) fn wait_for_code_manager(&self) -> Result<(), Outcome> {
        self.wait_while(|| {
            let waits = self.is_code_manager_busy() && self.takes_reader_lock()?;
            Ok(waits.then_some(Wait::Lock(Lock::CodeManager)))
        })
    }

    /// Returns true if a lookup by the caller takes the code manager's reader lock (contract §2.6).
    fn takes_reader_lock(&self) -> Result<bool, Outcome> {
        let Some(id) = self.runtime.object_of(self.os) else { return Ok(false) };
        let object = ThreadObject(id);
        if self.read(|memory| object.profiler_context(memory))? {
            return Ok(true);
        }
        let suspends = matches!(
            self.runtime.process.get().suspension,
            Suspension::Suspending(os) | Suspension::Suspended(os) if os == self.os
        );
        Ok(!suspends && !self.read(|memory| object.is_cooperative(memory))?)
    }

    /// Returns the seed as the walk copies it, regardless of contextSize (C-022, C-053, C-162).
    fn copied_seed(&self, call: &SnapshotRequest<'_>) -> Result<Context, Outcome> {
        let seed = call.seed.unwrap_or_default();
        let size = seed_size(seed, self.runtime.generation.seed_size());
        let short = Unreadable { address: seed.len() as u64, len: 8 };
        let readable = seed.get(..size).and_then(Context::from_bytes);
        readable.ok_or_else(|| {
            let readable = seed.len() as u64;
            self.runtime.record(|| Event::SeedTooShort { readable, needed: size as u64 });
            self.runtime.fault_in_walk(short)
        })
    }
}
