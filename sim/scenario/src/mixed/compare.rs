//! What walks by each policy see of a thread, beside what is there.

use super::found::behind;
use super::make::{Ground, Ready};
use super::{FoundMixed, MixedFrameKind, MixedWalk};
use crate::execute::RunOnError;
use crate::{Scenario, StopAt};
use clr_runtime::MethodKind;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::CallbackKind;
use clr_walker::mixed::{FrameKind, Policy, Source};
use clr_walker::unwind::Position;

/// A frame that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrueFrame {
    /// What its code is.
    pub kind: MixedFrameKind,
    /// Where its ip is: a function and the distance from its start.
    pub label: String,
    /// The instruction that it is at, or its return address (VA).
    pub ip: u64,
    /// Its stack pointer (VA).
    pub sp: u64,
}

/// A thread, and what walks of it see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The place of the stop in [`Scenario::stops`]; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Its frames, leaf first.
    pub truth: Vec<TrueFrame>,
    /// The walks, each from the same state.
    pub walks: Vec<(Policy, FoundMixed)>,
}

/// A row of the truth, before it has a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SiteRow {
    pub kind: MixedFrameKind,
    pub ip: u64,
    pub sp: u64,
    pub position: Position,
}

impl SiteRow {
    /// What a method's code is.
    pub(crate) const fn kind_of(kind: MethodKind) -> MixedFrameKind {
        match kind {
            MethodKind::Ordinary | MethodKind::ExceptionHandling => MixedFrameKind::Managed,
            MethodKind::IlStub | MethodKind::Dynamic => MixedFrameKind::Hidden,
        }
    }
}

impl Ground<'_, '_> {
    fn truth(&self) -> Vec<TrueFrame> {
        let frame = |SiteRow { kind, ip, sp, position }: SiteRow| {
            let label = match position {
                Position::Interrupted => self.site.label_of(ip),
                Position::ReturnAddress => behind(&self.site.label_of(ip.wrapping_sub(1)), ip),
            };
            TrueFrame { kind, label, ip, sp }
        };
        self.site.rows().into_iter().map(frame).collect()
    }
}

impl Compared {
    /// For each frame of a walk, which frame of the truth it is; `None` if it is not there.
    #[must_use]
    pub fn places(&self, found: &FoundMixed) -> Vec<Option<usize>> {
        let mut first = 0;
        let place = |found: &super::FoundMixedFrame| {
            let frame = &found.frame;
            // Of calls out of ready-to-run code, the runtime knows another return address (C-156).
            let is_told =
                frame.source == Source::Snapshot && matches!(frame.kind, FrameKind::Managed(_));
            let is = |row: &TrueFrame| {
                let is_same = row.ip == frame.ip
                    || is_told && function_of(&row.label) == function_of(&found.label);
                is_same && row.sp == frame.sp
            };
            let rest = self.truth.get(first..).unwrap_or_default();
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
    /// The callback that the thread of a stop, or of a stack placed by hand, is in: that of the stop, or
    /// of the first call or walk of its own that says one.
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

    /// Walks the thread of a stop, or of a stack placed by hand, by each of some policies. One that is
    /// for callbacks is passed over where the thread is in none, and one for signals where there are
    /// none.
    ///
    /// # Errors
    /// [`RunOnError`].
    pub fn compare_on(
        &self,
        generation: Generation,
        stop: Option<usize>,
        policies: &[Policy],
    ) -> Result<Compared, RunOnError> {
        let callback = self.callback_at(stop);
        let fits = |policy: &Policy| match policy {
            Policy::Synchronous => callback.is_some(),
            Policy::Signal => generation.is_unix(),
            _ => true,
        };
        let walk = |policy: Policy| {
            let in_callback = callback.filter(|_| policy == Policy::Synchronous);
            MixedWalk { in_callback, ..MixedWalk::new(policy) }
        };
        let walks: Vec<_> = policies.iter().copied().filter(fits).map(walk).collect();
        let ready = Ready::new(self, generation)?;
        let truth = ready.look(self, stop, [()], |ground, ()| Ok(ground.truth()))?;
        let walk =
            |ground: &Ground<'_, '_>, walk: &MixedWalk| Ok((walk.policy, ground.walk(walk)?));
        let walks = ready.look(self, stop, &walks, walk)?;
        let truth = truth.into_iter().next().unwrap_or_default();
        Ok(Compared { stop, truth, walks })
    }
}
