//! The questions that walks ask the runtime.

use super::WalkBuffer;
use super::buffer::{Named, Place};
use super::cursor::{Cursor, Steps, inside};
use super::reason::Reason;
use super::seed::Seed;
use super::stopped::Stopped;
use crate::profiling::{
    CallError, FunctionId, HResult, ModuleSource, ProfilerInfo, SnapshotFlags, SnapshotFrame,
    SnapshotRequest, TargetThread,
};
use clr_unwind::{CodeMap, Position};

/// A runtime, and the code of its process.
#[derive(Debug)]
pub(super) struct Questions<'s, I, M> {
    pub info: &'s I,
    pub modules: &'s M,
}

impl<I: ProfilerInfo, M: ModuleSource> Questions<'_, I, M> {
    /// Suspends a thread, takes its stack, and resumes it.
    #[inline]
    pub(super) fn while_suspended<T: TargetThread>(
        &self,
        target: &T,
        buffer: &mut WalkBuffer,
        take: impl FnOnce(
            &Self,
            &Stopped<'_, T>,
            &Steps<'_, '_, T>,
            &mut WalkBuffer,
        ) -> Result<(), Ended<I::Fatal>>,
    ) -> Result<(), Ended<I::Fatal>> {
        // A thread's first call makes preparations, which must not happen while another thread is
        // stopped (H-03).
        if let Err(CallError::Fatal(fatal)) = self.info.get_function_from_ip(0) {
            return Err(Ended::Fatal(fatal));
        }
        let map = self.modules.code_map();
        let steps = Steps::new(&map, target);
        let stopped = Stopped::suspend(target).map_err(|_| Ended::Short(Reason::NotStopped))?;
        let taken = take(self, &stopped, &steps, buffer);
        buffer.is_stuck = stopped.resume().is_err();
        taken
    }

    /// Calls `DoStackSnapshot`, and copies its reports.
    #[inline(never)]
    pub(super) fn snapshot<T: TargetThread>(
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

    /// Adds a frame with its name. Returns true if there was room.
    pub(super) fn push<T: TargetThread>(
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
            // The runtime need not be asked what is native, and before it is up it has no answer.
            Err(CallError::Failed(_)) if is_native(map, inside) => Ok(None),
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

/// Returns true if `address` (VA) is in a native image of Unix, which has no methods.
fn is_native(map: &CodeMap<'_>, address: u64) -> bool {
    map.find(address).is_some_and(|(region, _)| region.cfi().is_some())
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
