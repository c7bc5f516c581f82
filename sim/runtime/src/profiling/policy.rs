//! The policies of walks in simulated processes: those of `clr-walker`, and one that hangs processes.

use clr_unwind::named;
use clr_walker::mixed::{MixedStack, Policy as Shipped, Stopped, WalkBuffer, Walker};
use clr_walker::profiling::{ModuleSource, ProfilerInfo, TargetThread};

named! {
    /// The method of a walk: a policy of [`clr_walker`], or one that only a simulator should run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Policy {
        /// [`Shipped::Unseeded`].
        Unseeded = "unseeded",
        /// [`Shipped::Seeded`].
        Seeded = "seeded",
        /// [`Shipped::RuntimeSuspended`].
        RuntimeSuspended = "runtime-suspended",
        /// [`Shipped::Signal`].
        Signal = "signal",
        /// The calling thread in a signal handler, by `DoStackSnapshot` with the interrupted registers
        /// as its seed. **It hangs processes.** The handler waits for every lock that the interrupted
        /// thread holds: of the native unwinder, of exception dispatch, of the code tables, and of the
        /// end of a suspension. Two threads that only allocate hung CoreCLR 3.1 and .NET 9 on Linux
        /// after 118 to 769 samples in 6 of 6 processes; with a flag for suspensions 2 of 8 processes
        /// still did. Nothing supports it officially. Native code and stubs at the leaf are unwound
        /// first, because they are no seeds (C-039).
        SignalSnapshot = "signal-snapshot",
        /// [`Shipped::Synchronous`].
        Synchronous = "synchronous",
        /// [`Shipped::FramePointers`].
        FramePointers = "frame-pointers",
    }
}

impl From<Shipped> for Policy {
    fn from(policy: Shipped) -> Self {
        match policy {
            Shipped::Unseeded => Self::Unseeded,
            Shipped::Seeded => Self::Seeded,
            Shipped::RuntimeSuspended => Self::RuntimeSuspended,
            Shipped::Signal => Self::Signal,
            Shipped::Synchronous => Self::Synchronous,
            Shipped::FramePointers => Self::FramePointers,
        }
    }
}

impl Policy {
    /// Returns the walker's own policy. The one that it does not have is its walk of a suspended thread, made of
    /// the calling thread.
    const fn shipped(self) -> Shipped {
        match self {
            Self::Unseeded => Shipped::Unseeded,
            Self::Seeded | Self::SignalSnapshot => Shipped::Seeded,
            Self::RuntimeSuspended => Shipped::RuntimeSuspended,
            Self::Signal => Shipped::Signal,
            Self::Synchronous => Shipped::Synchronous,
            Self::FramePointers => Shipped::FramePointers,
        }
    }

    /// Returns true if the policy is for the calling thread only.
    pub const fn is_for_itself(self) -> bool {
        matches!(self, Self::SignalSnapshot) || self.shipped().is_for_itself()
    }
}

/// A [`Walker`] by any [`Policy`].
#[derive(Debug)]
pub struct PolicyWalker<'s, I, M> {
    walker: Walker<'s, I, M>,
    policy: Policy,
}

impl<'s, I: ProfilerInfo, M: ModuleSource> PolicyWalker<'s, I, M> {
    /// Creates a walker.
    pub const fn new(info: &'s I, modules: &'s M, policy: Policy) -> Self {
        Self { walker: Walker::new(info, modules, policy.shipped()), policy }
    }

    /// Makes the part of a walk during which the thread is stopped, as [`Walker::take`] does.
    ///
    /// # Errors
    /// The event that ends the simulated process.
    pub fn take<T: TargetThread>(
        &self,
        target: &T,
        buffer: &mut WalkBuffer,
    ) -> Result<(), I::Fatal> {
        match self.policy {
            Policy::SignalSnapshot => self.walker.take_stopped(&Stopped::itself(target), buffer),
            _ => self.walker.take(target, buffer),
        }
    }

    /// Returns the stack that a walk has left in the buffer.
    ///
    /// # Errors
    /// The event that ends the simulated process.
    pub fn stitch(&self, buffer: &WalkBuffer) -> Result<MixedStack, I::Fatal> {
        self.walker.stitch(buffer)
    }

    /// Walks a thread's stack.
    ///
    /// # Errors
    /// The event that ends the simulated process.
    pub fn walk<T: TargetThread>(
        &self,
        target: &T,
        buffer: &mut WalkBuffer,
    ) -> Result<MixedStack, I::Fatal> {
        self.take(target, buffer)?;
        self.stitch(buffer)
    }
}
