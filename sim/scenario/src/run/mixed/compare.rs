//! Comparison of what walks by each policy find on a thread with its shadow stack.

use crate::model::{MixedFrameKind, MixedWalk};
use crate::run::error::RunOnError;
use crate::run::mixed::FoundMixed;
use crate::run::mixed::found::behind;
use crate::run::mixed::make::{Ready, WalkedThread};
use crate::run::shadow_frame::UnlabelledFrame;
use crate::{Scenario, StopAt};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{CallbackKind, Policy};
use clr_unwind::Position;
use clr_walker::mixed::{FrameKind, Source};

/// A frame of the shadow stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowFrame {
    /// Kind of the code.
    pub kind: MixedFrameKind,
    /// Label of the ip: a function and the offset from its start.
    pub label: String,
    /// Current instruction, or return address (VA).
    pub ip: u64,
    /// Stack pointer (VA).
    pub sp: u64,
}

/// A thread, and the results of walks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Index of the stop in [`Scenario::stops`]; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Frames of the shadow stack, leaf first.
    pub shadow_frames: Vec<ShadowFrame>,
    /// Walks, each from the same state.
    pub walks: Vec<(Policy, FoundMixed)>,
}

impl WalkedThread<'_, '_> {
    fn shadow_frames(&self) -> Vec<ShadowFrame> {
        let frame = |UnlabelledFrame { kind, ip, sp, position }: UnlabelledFrame| {
            let label = match position {
                Position::Interrupted => self.site.label_of(ip),
                Position::ReturnAddress => behind(&self.site.label_of(ip.wrapping_sub(1)), ip),
            };
            ShadowFrame { kind, label, ip, sp }
        };
        self.site.frames().into_iter().map(frame).collect()
    }
}

impl Compared {
    /// Returns the index in the shadow stack for each frame of a walk; `None` for a frame that is
    /// not on the stack.
    #[must_use]
    pub fn places(&self, found: &FoundMixed) -> Vec<Option<usize>> {
        let mut first = 0;
        let place = |found: &super::FoundMixedFrame| {
            let frame = &found.frame;
            // For calls from ready-to-run code, the runtime knows another return address (C-156).
            let is_reported =
                frame.source == Source::Snapshot && matches!(frame.kind, FrameKind::Managed(_));
            let is = |row: &ShadowFrame| {
                let is_same = row.ip == frame.ip
                    || is_reported && function_of(&row.label) == function_of(&found.label);
                is_same && row.sp == frame.sp
            };
            let rest = self.shadow_frames.get(first..).unwrap_or_default();
            let at = first + rest.iter().position(is)?;
            first = at + 1;
            Some(at)
        };
        found.frames.iter().map(place).collect()
    }
}

fn function_of(label: &str) -> &str {
    label.rsplit_once("+0x").map_or(label, |(function, _)| function)
}

impl Scenario {
    /// Returns the profiler callback that the thread of a stop, or of a stack placed by hand, is
    /// in: that of the stop, or the first one named by a snapshot or walk there.
    #[must_use]
    pub fn callback_at(&self, stop: Option<usize>) -> Option<CallbackKind> {
        let (snapshots, walks) = if let Some(index) = stop {
            let stop = self.stops.get(index)?;
            if let StopAt::Callback { kind, .. } = stop.at {
                return Some(kind);
            }
            (&stop.snapshots, &stop.mixed_walks)
        } else {
            let stack = self.stack.as_ref()?;
            (&stack.snapshots, &stack.mixed_walks)
        };
        let mut snapshots = snapshots.iter();
        let mut walks = walks.iter();
        let of_walks = || walks.find_map(|walk| walk.in_callback);
        snapshots.find_map(|call| call.in_callback).or_else(of_walks)
    }

    /// Walks the thread of a stop, or of a stack placed by hand, with each of several policies. A
    /// policy for callbacks is skipped if the thread is in none, and one for signals on systems
    /// without signals.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn compare_on(
        &self,
        generation: Generation,
        stop: Option<usize>,
        policies: &[Policy],
    ) -> Result<Compared, RunOnError> {
        let callback = self.callback_at(stop);
        let fits = |policy: &Policy| match policy {
            Policy::Synchronous => callback.is_some(),
            Policy::Signal | Policy::SignalSnapshot => generation.is_unix(),
            _ => true,
        };
        let walk = |policy: Policy| {
            let in_callback = callback.filter(|_| policy == Policy::Synchronous);
            MixedWalk { in_callback, ..MixedWalk::new(policy) }
        };
        let walks: Vec<_> = policies.iter().copied().filter(fits).map(walk).collect();
        let ready = Ready::new(self, generation)?;
        let shadow_frames =
            ready.look(self, stop, [()], |thread, ()| Ok(thread.shadow_frames()))?;
        let walk =
            |thread: &WalkedThread<'_, '_>, walk: &MixedWalk| Ok((walk.policy, thread.walk(walk)?));
        let walks = ready.look(self, stop, &walks, walk)?;
        let shadow_frames = shadow_frames.into_iter().next().unwrap_or_default();
        Ok(Compared { stop, shadow_frames, walks })
    }
}
