//! The steps of a walk, from a running thread to its stack.

use super::buffer::{Named, Place};
use super::cursor::{Cursor, Steps, inside};
use super::fill::fill;
use super::reason::Reason;
use super::stack::{MixedStack, Source};
use super::{
    Policy, RuntimeSuspension, Seed, SeedRefused, SignalVeto, Stopped, WalkBuffer, unaided,
};
use crate::profiling::{
    CallError, FunctionId, HResult, ModuleSource, ProfilerInfo, SnapshotFlags, SnapshotFrame,
    SnapshotRequest, TargetThread,
};
use clr_unwind::{CodeMap, Gpr, Position, Registers, Trust};

/// A walker of threads by one policy.
#[derive(Debug)]
pub struct Walker<'s, I, M> {
    info: &'s I,
    modules: &'s M,
    policy: Policy,
    veto: Option<SignalVeto<'s>>,
}

/// The result of preparing a thread for walks of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// A frame was reported: the thread is prepared.
    Done,
    /// No frame was reported: the target had no managed frames, or could not be walked now. Try
    /// again, with another target or later.
    Again,
    /// The runtime does not let a thread walk another one (C-019), so there is nothing to prepare.
    NotNeeded,
}

impl<'s, I: ProfilerInfo, M: ModuleSource> Walker<'s, I, M> {
    /// Creates a walker.
    pub const fn new(info: &'s I, modules: &'s M, policy: Policy) -> Self {
        Self { info, modules, policy, veto: None }
    }

    /// Returns the walker with the veto without which [`Policy::SignalSnapshot`] never asks the
    /// runtime.
    #[must_use]
    pub const fn with_veto(self, veto: SignalVeto<'s>) -> Self {
        Self { veto: Some(veto), ..self }
    }

    pub(super) const fn info(&self) -> &'s I {
        self.info
    }

    pub(super) const fn modules(&self) -> &'s M {
        self.modules
    }

    /// Makes the runtime prepare the calling thread for walks, by a snapshot of `target`, which
    /// must not be suspended. Call this on each thread that will suspend others, before it does,
    /// for as long as it returns [`Preparation::Again`] (C-151).
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn prepare<T: TargetThread>(&self, target: &T) -> Result<Preparation, I::Fatal> {
        let mut buffer = WalkBuffer::new(1);
        let map = self.modules.code_map();
        self.snapshot(&Steps::new(&map, target), None, &mut buffer)?;
        Ok(match buffer.snapshot {
            _ if !buffer.reports().is_empty() => Preparation::Done,
            Some(HResult::NOT_IMPLEMENTED) => Preparation::NotNeeded,
            _ => Preparation::Again,
        })
    }

    /// Walks a thread's stack: [`take`](Self::take), then [`stitch`](Self::stitch).
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn walk<T: TargetThread>(
        &self,
        target: &T,
        buffer: &mut WalkBuffer,
    ) -> Result<MixedStack, I::Fatal> {
        self.take(target, buffer)?;
        self.stitch(buffer)
    }

    /// Makes the part of a walk during which the thread is stopped, if the policy stops it. This is
    /// the only part that is allowed in a signal handler. Failures are recorded in the buffer, as
    /// reasons for gaps.
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn take<T: TargetThread>(
        &self,
        target: &T,
        buffer: &mut WalkBuffer,
    ) -> Result<(), I::Fatal> {
        buffer.clear();
        match self.take_by_policy(target, buffer) {
            Ok(()) => Ok(()),
            Err(Ended::Short(reason)) => {
                buffer.gap(reason);
                Ok(())
            }
            Err(Ended::Fatal(fatal)) => Err(fatal),
        }
    }

    fn take_by_policy<T: TargetThread>(
        &self,
        target: &T,
        buffer: &mut WalkBuffer,
    ) -> Result<(), Ended<I::Fatal>> {
        match self.policy {
            Policy::Unseeded => {
                buffer.gap(Reason::NotUnwound);
                let map = self.modules.code_map();
                Ok(self.snapshot(&Steps::new(&map, target), None, buffer)?)
            }
            Policy::Seeded | Policy::FramePointers => {
                // A thread's first call makes preparations, which must not happen while another
                // thread is stopped (H-03).
                if let Err(CallError::Fatal(fatal)) = self.info.get_function_from_ip(0) {
                    return Err(Ended::Fatal(fatal));
                }
                let map = self.modules.code_map();
                let steps = Steps::new(&map, target);
                let stopped =
                    Stopped::suspend(target).map_err(|_| Ended::Short(Reason::NotStopped))?;
                let taken = match self.policy {
                    Policy::FramePointers => self.by_frame_pointers(&stopped, &steps, buffer),
                    _ => self.stopped(&stopped, &steps, buffer),
                };
                buffer.is_stuck = stopped.resume().is_err();
                taken
            }
            Policy::Signal => {
                let map = self.modules.code_map();
                unaided::walk(&Steps::new(&map, target), buffer).map_err(Ended::Short)
            }
            Policy::SignalSnapshot | Policy::Synchronous => {
                let map = self.modules.code_map();
                self.stopped(&Stopped::itself(target), &Steps::new(&map, target), buffer)
            }
            Policy::RuntimeSuspended => {
                let suspension =
                    RuntimeSuspension::new(self.info).map_err(|error| match error {
                        CallError::Failed(result) => Ended::Short(Reason::Suspend(result)),
                        CallError::Fatal(fatal) => Ended::Fatal(fatal),
                    })?;
                self.take_suspended(&suspension, target, buffer)?;
                match suspension.resume() {
                    Err(CallError::Fatal(fatal)) => return Err(Ended::Fatal(fatal)),
                    resumed => buffer.is_stuck = resumed.is_err(),
                }
                Ok(())
            }
        }
    }

    /// Does the same as [`take`](Self::take) by [`Policy::RuntimeSuspended`], for walking many
    /// threads during one suspension of the runtime, each into its own buffer.
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn take_suspended<T: TargetThread>(
        &self,
        _suspension: &RuntimeSuspension<'_, I>,
        target: &T,
        buffer: &mut WalkBuffer,
    ) -> Result<(), I::Fatal> {
        buffer.clear();
        buffer.leaf_runs = true;
        let map = self.modules.code_map();
        let steps = Steps::new(&map, target);
        self.snapshot(&steps, None, buffer)?;
        if buffer.reports().is_empty() {
            // There is nothing but what runs on, or the call was refused.
            return Ok(());
        }
        let mut frame = Cursor::NOWHERE;
        fill(&steps, buffer, &mut frame, false, |place| self.name(&map, place))
    }

    /// Walks from the registers of a stopped thread, by the runtime unless a veto forbids it.
    #[inline(never)]
    fn stopped<T: TargetThread>(
        &self,
        stopped: &Stopped<'_, T>,
        steps: &Steps<'_, '_, T>,
        buffer: &mut WalkBuffer,
    ) -> Result<(), Ended<I::Fatal>> {
        let mut registers = Registers::default();
        steps.read_registers(&mut registers).map_err(Ended::Short)?;
        let is_forbidden = || self.veto.is_none_or(|veto| veto.forbids(registers.rip));
        if self.policy == Policy::SignalSnapshot && is_forbidden() {
            return unaided::walk(steps, buffer).map_err(Ended::Short);
        }
        self.asking(stopped, steps, &registers, buffer)
    }

    /// Walks from `registers` with the runtime's help, and with a seed if the policy makes one.
    #[inline(never)]
    fn asking<T: TargetThread>(
        &self,
        stopped: &Stopped<'_, T>,
        steps: &Steps<'_, '_, T>,
        registers: &Registers,
        buffer: &mut WalkBuffer,
    ) -> Result<(), Ended<I::Fatal>> {
        let seeded = self.policy != Policy::Synchronous;
        let mut frame = Cursor { registers: *registers, ..Cursor::NOWHERE };
        let managed = loop {
            match self.leaf(steps, buffer, &mut frame)? {
                Leaf::Managed => break true,
                Leaf::Generated(reason) if seeded => {
                    if self.generated(stopped, steps, buffer, &mut frame, reason)? {
                        return Ok(());
                    }
                }
                Leaf::Generated(reason) | Leaf::Unknown(reason) => {
                    buffer.gap(reason);
                    break false;
                }
                // The stack has nothing managed, or the buffer is full.
                Leaf::Root | Leaf::Full => return Ok(()),
            }
        };
        let seed = if seeded && managed {
            match Seed::new(stopped, &frame, steps) {
                Ok(seed) => Some(seed),
                // If the thread has left managed code, the runtime begins at a Frame anyway;
                // otherwise, without a seed, it has no place to begin.
                Err(SeedRefused::NoCaller { .. }) if frame.source != Source::Context => None,
                // The runtime would not notice that the registers are wrong.
                Err(refused) => {
                    self.push(steps, buffer, &frame)?;
                    return Err(Ended::Short(Reason::Seed(refused)));
                }
            }
        } else {
            None
        };
        self.snapshot(steps, seed.as_ref(), buffer)?;
        let gives_up = buffer.snapshot == Some(HResult::FAIL) && buffer.reports().is_empty();
        // The stub of a redirected thread says by its code that the frame was interrupted, and restores
        // its registers.
        let is_restored =
            frame.source != Source::Context && frame.position == Position::Interrupted;
        if managed && gives_up && self.policy == Policy::Seeded && !is_restored {
            // The walk of a redirected and suspended thread ends like this: it pretends to have
            // been called from where the frame is, whose registers nobody knows (contract §3.8).
            return Err(Ended::Short(Reason::Snapshot(HResult::FAIL)));
        }
        let map = steps.unwinder.code_map();
        Ok(fill(steps, buffer, &mut frame, managed, |place| self.name(map, place))?)
    }

    /// Walks from code without unwind data. It may be a dynamic method or an IL stub:
    /// `GetFunctionFromIP` does not say so (C-115), but its frame is as good a seed as any (C-040),
    /// and `DoStackSnapshot` refuses other code (C-038): a stub, or a copied write barrier. If the stack
    /// has the stub's caller, that is the next seed. Returns false if the runtime has refused both, or
    /// names the caller's method: the search for a managed frame goes on from `frame`, the caller's.
    fn generated<T: TargetThread>(
        &self,
        stopped: &Stopped<'_, T>,
        steps: &Steps<'_, '_, T>,
        buffer: &mut WalkBuffer,
        frame: &mut Cursor,
        unknown: Reason,
    ) -> Result<bool, I::Fatal> {
        let map = steps.unwinder.code_map();
        let mut is_left = false;
        if self.is_seed_refused(stopped, steps, buffer, frame)? {
            is_left = self.leave_unknown(steps, frame)?;
            if is_left {
                let named = self.function(map, frame.registers.rip, frame.position);
                let is_named = matches!(named, Ok(Some(_)));
                if is_named || self.is_seed_refused(stopped, steps, buffer, frame)? {
                    return Ok(false);
                }
            } else {
                self.snapshot(steps, None, buffer)?;
            }
        }
        if !is_left {
            buffer.gap(unknown);
        }
        fill(steps, buffer, frame, is_left, |place| self.name(map, place))?;
        Ok(true)
    }

    /// Calls `DoStackSnapshot` with a seed at `frame`, or without one if it cannot be a seed. Returns true if the
    /// runtime has refused the seed because its code is not managed.
    fn is_seed_refused<T: TargetThread>(
        &self,
        stopped: &Stopped<'_, T>,
        steps: &Steps<'_, '_, T>,
        buffer: &mut WalkBuffer,
        frame: &Cursor,
    ) -> Result<bool, I::Fatal> {
        let seed = Seed::new(stopped, frame, steps).ok();
        self.snapshot(steps, seed.as_ref(), buffer)?;
        Ok(seed.is_some() && buffer.snapshot == Some(HResult::UNMANAGED_CONTEXT))
    }

    /// Calls `DoStackSnapshot`, and copies its reports.
    #[inline(never)]
    fn snapshot<T: TargetThread>(
        &self,
        steps: &Steps<'_, '_, T>,
        seed: Option<&Seed<'_>>,
        buffer: &mut WalkBuffer,
    ) -> Result<(), I::Fatal> {
        let context = seed.map(Seed::context);
        let context = context.as_ref().map(|context| context.0.as_slice());
        let mut callback = |frame: &mut SnapshotFrame<'_>| buffer.keep(frame);
        let flags = SnapshotFlags::REGISTER_CONTEXT;
        let request = SnapshotRequest::of(steps.target.id(), flags).seeded(context);
        let result = self.info.do_stack_snapshot(&request, Some(&mut callback));
        buffer.snapshot = Some(match result {
            Ok(()) => HResult::OK,
            Err(CallError::Failed(result)) => result,
            Err(CallError::Fatal(fatal)) => return Err(fatal),
        });
        buffer.believe(|address| steps.is_believable(address));
        Ok(())
    }

    /// Walks by return addresses next to frame pointers, for as long as these lead rootward.
    fn by_frame_pointers<T: TargetThread>(
        &self,
        stopped: &Stopped<'_, T>,
        steps: &Steps<'_, '_, T>,
        buffer: &mut WalkBuffer,
    ) -> Result<(), Ended<I::Fatal>> {
        let context = stopped.context().map_err(|_| Ended::Short(Reason::NotStopped))?;
        buffer.gap(Reason::FramePointers);
        let (target, stack) = (steps.target, steps.stack);
        let mut frame = Cursor { registers: context.registers, ..Cursor::NOWHERE };
        while self.push(steps, buffer, &frame)? {
            let pointer = frame.registers.get(Gpr::Rbp);
            let rises = pointer >= frame.registers.rsp() && stack.contain(pointer);
            if !rises || !pointer.is_multiple_of(8) {
                break;
            }
            let saved = target.read_u64(pointer);
            let address = target.read_u64(pointer.wrapping_add(8));
            let (Ok(saved), Ok(address)) = (saved, address) else { break };
            let caller_rsp = pointer.wrapping_add(16);
            if stack.end_at(address, caller_rsp) {
                break;
            }
            frame.registers.rip = address;
            frame.registers.set(Gpr::Rbp, saved);
            frame.registers.set(Gpr::Rsp, caller_rsp);
            frame.position = Position::ReturnAddress;
            frame.source = Source::Unwound(Trust::FramePointer);
        }
        Ok(())
    }

    /// Adds a frame with its name. Returns true if there was room.
    fn push<T: TargetThread>(
        &self,
        steps: &Steps<'_, '_, T>,
        buffer: &mut WalkBuffer,
        frame: &Cursor,
    ) -> Result<bool, I::Fatal> {
        let has_room = buffer.push(frame);
        if let Some(place) = buffer.unnamed().filter(|_| has_room) {
            self.name(steps.unwinder.code_map(), place)?;
        }
        Ok(has_room)
    }

    /// Asks the runtime for a frame's function.
    pub(super) fn name(&self, map: &CodeMap<'_>, place: &mut Place) -> Result<(), I::Fatal> {
        place.named = match self.function(map, place.ip, place.position) {
            Ok(function) => Named::As(function),
            Err(Ended::Short(reason)) => Named::Refused(reason),
            Err(Ended::Fatal(fatal)) => return Err(fatal),
        };
        Ok(())
    }

    /// Returns the managed function of a frame with this `ip`; `None` is an answer too.
    pub(super) fn function(
        &self,
        map: &CodeMap<'_>,
        ip: u64,
        position: Position,
    ) -> Result<Option<FunctionId>, Ended<I::Fatal>> {
        let inside = inside(ip, position);
        match self.info.get_function_from_ip(inside) {
            Ok(function) => Ok(Some(function).filter(|_| !is_padding(map, inside))),
            Err(CallError::Failed(HResult::FAIL)) => Ok(None),
            Err(CallError::Failed(result)) => Err(Ended::Short(Reason::Lookup(result))),
            Err(CallError::Fatal(fatal)) => Err(Ended::Fatal(fatal)),
        }
    }
}

/// Returns true if `address` (VA) is in a known image or heap, but in none of the functions in its
/// table: the runtime counts the bytes after a function's end as part of it (contract §2.6).
pub(super) fn is_padding(map: &CodeMap<'_>, address: u64) -> bool {
    let found = map.find(address);
    found.is_some_and(|(region, rva)| region.functions().find(rva).is_none())
}

/// The end of the native frames at a stack's leaf.
pub(super) enum Leaf {
    /// At a managed frame.
    Managed,
    /// At unknown code, which may be generated.
    Generated(Reason),
    /// At code that cannot be unwound.
    Unknown(Reason),
    /// At the thread's root.
    Root,
    /// At the buffer's end.
    Full,
}

/// The reason why a walk ended early.
pub(super) enum Ended<F> {
    /// Something is missing.
    Short(Reason),
    /// The process has ended.
    Fatal(F),
}

impl<F> From<F> for Ended<F> {
    fn from(fatal: F) -> Self {
        Self::Fatal(fatal)
    }
}
