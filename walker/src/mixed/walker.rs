//! A walker: the policies behind one interface.

use super::cursor::Steps;
use super::questions::{Ended, Questions};
use super::stack::MixedStack;
use super::stopped::{RuntimeSuspension, Stopped};
use super::{
    Policy, WalkBuffer, frame_pointers, runtime_suspended, seeded, signal, synchronous, unseeded,
};
use crate::profiling::{HResult, ModuleSource, ProfilerInfo, TargetThread};
use core::convert::Infallible;

/// A walker of threads by one policy.
#[derive(Debug)]
pub struct Walker<'s, I, M> {
    ask: Questions<'s, I, M>,
    policy: Policy,
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
        Self { ask: Questions { info, modules }, policy }
    }

    /// Makes the runtime prepare the calling thread for walks, by a snapshot of `target`, which
    /// must not be suspended. Call this on each thread that will suspend others, before it does,
    /// for as long as it returns [`Preparation::Again`] (C-151).
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn prepare<T: TargetThread>(&self, target: &T) -> Result<Preparation, I::Fatal> {
        let mut buffer = WalkBuffer::new(1);
        let map = self.ask.modules.code_map();
        self.ask.snapshot(&Steps::new(&map, target), None, &mut buffer)?;
        Ok(match buffer.snapshot {
            _ if !buffer.reports().is_empty() => Preparation::Done,
            Some(HResult::NOT_IMPLEMENTED) => Preparation::NotNeeded,
            _ => Preparation::Again,
        })
    }

    /// Walks a thread's stack as [`walk`](Self::walk) does, in a process that may end meanwhile: a simulated one.
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn try_walk<T: TargetThread>(
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
        let Self { ask, policy } = self;
        let taken = match policy {
            Policy::Unseeded => unseeded::take(ask, target, buffer).map_err(Ended::Fatal),
            Policy::Seeded => seeded::take(ask, target, buffer),
            Policy::RuntimeSuspended => runtime_suspended::take(ask, target, buffer),
            Policy::Signal => signal::take(ask.modules, target, buffer).map_err(Ended::Short),
            Policy::Synchronous => synchronous::take(ask, target, buffer),
            Policy::FramePointers => frame_pointers::take(ask, target, buffer),
        };
        noted(taken, buffer)
    }

    /// Walks a thread that is stopped, as [`take`](Self::take) does by [`Policy::Seeded`]: for those who do more
    /// during one stop. The calling thread must have [asked the runtime](Self::prepare) before.
    ///
    /// With [`Stopped::itself`] in a signal handler **this hangs processes**: the runtime waits for locks that the
    /// interrupted code holds (H-28).
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn take_stopped<T: TargetThread>(
        &self,
        stopped: &Stopped<'_, T>,
        buffer: &mut WalkBuffer,
    ) -> Result<(), I::Fatal> {
        buffer.clear();
        let map = self.ask.modules.code_map();
        let steps = Steps::new(&map, stopped.target());
        noted(seeded::take_stopped(&self.ask, stopped, &steps, buffer), buffer)
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
        runtime_suspended::take_suspended(&self.ask, target, buffer)
    }

    /// Returns the stack that a walk has left in the buffer. This allocates, and asks the runtime
    /// for the ids of hidden code, because no thread is stopped any more. Methods were named during
    /// the walk, when they could not be unloaded.
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn stitch(&self, buffer: &WalkBuffer) -> Result<MixedStack, I::Fatal> {
        self.ask.stitch(buffer)
    }
}

impl<I: ProfilerInfo<Fatal = Infallible>, M: ModuleSource> Walker<'_, I, M> {
    /// Walks a thread's stack: [`take`](Self::take), then [`stitch`](Self::stitch).
    pub fn walk<T: TargetThread>(&self, target: &T, buffer: &mut WalkBuffer) -> MixedStack {
        let Ok(stack) = self.try_walk(target, buffer);
        stack
    }
}

/// Notes the reason why a walk ended early.
fn noted<F>(taken: Result<(), Ended<F>>, buffer: &mut WalkBuffer) -> Result<(), F> {
    match taken {
        Ok(()) => Ok(()),
        Err(Ended::Short(reason)) => {
            buffer.gap(reason);
            Ok(())
        }
        Err(Ended::Fatal(fatal)) => Err(fatal),
    }
}
