//! Steps towards a smaller thread and a plainer call.

use super::{SyntheticCall, SyntheticSeed};
use crate::Shrink;
use clr_runtime::generation::Generation;
use clr_runtime::{ContextSafety, ExceptionState, MethodKind, Process, ThreadLife};
use clr_walker::profiling::SnapshotFlags;
use clr_world::synthetic::{
    CodeLocation, PROLOGUE, SELF, SELF_OBJECT, SyntheticActivation, SyntheticThread,
};

/// A step towards a smaller thread or a plainer call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Drops activations, given the index of the first one and their number.
    Activations(usize, usize),
    /// Drops a Frame.
    Frame(usize),
    /// Drops overwritten words, given the index of the first one and their number.
    Words(usize, usize),
    /// Makes an overwritten word 0.
    Zero(usize),
    /// Drops an exception.
    Tracker(usize),
    /// Simplifies an activation, and all others of its function, in one way.
    Plainer(usize, usize),
    /// Simplifies a Frame.
    PlainFrame(usize),
    /// Resets a part of the process or the call to its default.
    Default(usize),
}

/// The ways to simplify an activation.
const PLAINER: &[fn(&mut SyntheticActivation)] = &[
    |activation| activation.kind = MethodKind::Ordinary,
    |activation| activation.funclet = None,
    |activation| activation.saves.clear(),
    |activation| activation.offset = u32::from(PROLOGUE) + 1,
    |activation| {
        if activation.place == CodeLocation::ReadyToRun {
            activation.place = CodeLocation::Heap;
        }
    },
];

/// The way that makes the frame as small as possible.
const SMALL: usize = PLAINER.len();

const DEFAULTS: &[fn(&mut SyntheticCall)] = &[
    |call| call.seed = None,
    |call| call.target.exceptions = ExceptionState::default(),
    |call| call.target.process = Process::default(),
    |call| call.target.hijacked = None,
    |call| call.target.hijack_locked = false,
    |call| call.target.forbid_suspend = 0,
    |call| call.target.gc_special = false,
    |call| call.target.life = ThreadLife::Running,
    |call| call.target.safety = ContextSafety::Safe,
    |call| call.target.exceptions.inconsistent = false,
    |call| call.stop_at = None,
    |call| call.null_callback = false,
    |call| call.context_size = 0,
    |call| call.flags = SnapshotFlags::REGISTER_CONTEXT,
    |call| call.caller = SELF,
    |call| call.thread = SELF_OBJECT,
    |call| call.target.cooperative = false,
    |call| call.target.generation = Generation::ALL[0],
    |call| {
        call.seed = call
            .seed
            .and_then(|seed| seed.activation)
            .map(SyntheticSeed::of_activation)
            .or(call.seed);
    },
    |call| change_seed(call, |seed| seed.rip = None),
    |call| change_seed(call, |seed| seed.rsp = None),
    |call| change_seed(call, |seed| seed.rbp = None),
    |call| change_seed(call, |seed| seed.flags = SyntheticSeed::of_activation(0).flags),
    |call| change_seed(call, |seed| seed.features = 0),
    |call| change_seed(call, |seed| seed.len = SyntheticSeed::of_activation(0).len),
];

fn change_seed(call: &mut SyntheticCall, change: impl FnOnce(&mut SyntheticSeed)) {
    if let Some(seed) = &mut call.seed {
        change(seed);
    }
}

impl Shrink for SyntheticCall {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        let SyntheticThread { activations, frames, overwritten, exceptions, .. } = &self.target;
        let mut steps = Vec::new();
        let spans = |count: usize, most: usize| {
            let sizes = (0..).map(|power| 1 << power).take_while(move |size| *size <= most);
            let sizes: Vec<usize> = sizes.collect();
            sizes.into_iter().rev().flat_map(move |size| {
                (0..count).step_by(size).map(move |first| (first, size.min(count - first)))
            })
        };
        let (activations, words) = (activations.len(), overwritten.len());
        steps.extend(
            spans(activations, activations).map(|(first, count)| Step::Activations(first, count)),
        );
        steps.extend(spans(words, words).map(|(first, count)| Step::Words(first, count)));
        steps.extend((0..frames.len()).map(Step::Frame));
        steps.extend((0..exceptions.trackers.len()).map(Step::Tracker));
        steps.extend((0..DEFAULTS.len()).map(Step::Default));
        steps.extend((0..words).map(Step::Zero));
        steps.extend((0..frames.len()).map(Step::PlainFrame));
        for activation in 0..activations {
            steps.extend((0..=SMALL).map(|way| Step::Plainer(activation, way)));
        }
        steps
    }

    /// Returns the call after a step; `None` if it cannot be set up, or is unchanged.
    fn take(&self, step: Step) -> Option<Self> {
        let mut simpler = self.clone();
        let target = &mut simpler.target;
        match step {
            Step::Activations(first, count) => drop_activations(&mut simpler, first, count),
            Step::Frame(index) => {
                target.frames.remove(index);
            }
            Step::Words(first, count) => {
                target.overwritten.drain(first..first + count);
            }
            Step::Zero(index) => target.overwritten.get_mut(index)?.1 = 0,
            Step::Tracker(index) => {
                target.exceptions.trackers.remove(index);
            }
            Step::Plainer(activation, way) => plainer(&mut simpler, activation, way)?,
            Step::PlainFrame(index) => {
                let frame = target.frames.get_mut(index)?;
                frame.method = None;
                frame.captured_in = None;
                frame.context_flags = 0;
            }
            Step::Default(part) => DEFAULTS.get(part)?(&mut simpler),
        }
        // A thread that could be set up still can be; others need not become valid.
        let valid = simpler.target.build().is_ok() || self.target.build().is_err();
        (simpler != *self && valid).then_some(simpler)
    }
}

/// Drops activations; everything below them moves up.
fn drop_activations(call: &mut SyntheticCall, first: usize, count: usize) {
    let target = &mut call.target;
    let end_of = |target: &SyntheticThread, activation: usize| {
        let last = target.activations.last().map_or(0, |activation| activation.sp + 0x40);
        target.activations.get(activation).map_or(last, |activation| activation.sp)
    };
    let (from, to) = (end_of(target, first), end_of(target, first + count));
    let dropped: Vec<_> = target.activations.drain(first..first + count).collect();
    target.frames.retain(|frame| !(from..to).contains(&frame.at));
    shift(target, from, to - from);
    let gone = |name: &String| {
        let is_dropped = dropped.iter().any(|activation| activation.function == *name);
        is_dropped && target.activations.iter().all(|activation| activation.function != *name)
    };
    target.hijacked = target.hijacked.take().filter(|name| !gone(name));
    target.frames.retain(|frame| {
        let captured = frame.captured_in.as_ref().map(|(name, _)| name);
        !frame.leads_to.iter().chain(captured).any(gone)
    });
    let (first, count) = (first as u32, count as u32);
    change_seed(call, |seed| {
        seed.activation = seed.activation.map(|activation| {
            if activation >= first + count { activation - count } else { activation }
        });
    });
}

/// Moves everything below `from` (VA) up by `by` bytes.
fn shift(target: &mut SyntheticThread, from: u64, by: u64) {
    let lowest = target.stack.0;
    let move_up = |address: &mut u64| {
        if (lowest..from).contains(address) {
            *address += by;
        }
    };
    target.activations.iter_mut().for_each(|activation| move_up(&mut activation.sp));
    target.frames.iter_mut().for_each(|frame| move_up(&mut frame.at));
    for (at, value) in &mut target.overwritten {
        move_up(at);
        move_up(value);
    }
    for tracker in &mut target.exceptions.trackers {
        if let Some((lower, upper)) = &mut tracker.unwound {
            move_up(lower);
            move_up(upper);
        }
        if let Some(funclet) = &mut tracker.funclet {
            move_up(&mut funclet.caller_sp);
            funclet.parent_caller_sp.iter_mut().for_each(move_up);
        }
    }
}

/// Simplifies an activation, and all others of its function, in one way.
fn plainer(call: &mut SyntheticCall, activation: usize, way: usize) -> Option<()> {
    let target = &mut call.target;
    let key = |activation: &SyntheticActivation| {
        (activation.function.clone(), activation.place, activation.funclet)
    };
    let wanted = key(target.activations.get(activation)?);
    let same: Vec<_> = (0..target.activations.len())
        .filter(|index| {
            target.activations.get(*index).is_some_and(|activation| key(activation) == wanted)
        })
        .collect();
    for index in same {
        if let Some(plain) = PLAINER.get(way) {
            plain(target.activations.get_mut(index)?);
        } else if let Some(end) = target.activations.get(index + 1).map(|activation| activation.sp)
        {
            let activation = target.activations.get(index)?;
            let (size, least) = (end - activation.sp, 8 + 8 * activation.saves.len() as u64);
            shift(target, activation.sp + 1, size.checked_sub(least)?);
        }
    }
    Some(())
}
