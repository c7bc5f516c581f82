//! The Frames of a generated thread, at the places where the runtime would have put them.

use super::activations::{Draft, enlarge};
use crate::Choices;
use clr_runtime::FrameKind;
use clr_runtime::frame::layout::{self, FrameConvention};
use clr_runtime::frame::{FrameShape, LazyFields};
use clr_runtime::generation::Generation;
use clr_world::synthetic::{SyntheticActivation, SyntheticFrame};

/// Maximum number of Frames of a thread.
const MOST: usize = 8;
/// Maximum size of a Frame of any shape in bytes, with the cookie below it; and of the data at the
/// end of a native frame: a TransitionBlock, or HijackArgs.
const LARGEST: u64 = 0x3D0;
const BLOCK: u64 = 0x90;
/// Offset of an InlinedCallFrame from the rsp of its method, and its size in bytes.
const CALL_OFFSET: u64 = 8;
const CALL_SIZE: u64 = 0x40;

/// A draft of a Frame, which refers to activations by index.
pub(super) struct FrameDraft {
    kind: FrameKind,
    /// Index of the activation whose frame contains the Frame.
    host: usize,
    place: FramePlace,
    leads_to: Option<usize>,
    method: Option<String>,
    lazy: Option<LazyFields>,
    flags: u32,
}

/// The position of a Frame in its host's frame.
enum FramePlace {
    /// Bytes above the host's rsp.
    FromStart(u64),
    /// Bytes below the end of the frame.
    AtEnd(u64),
}

/// Draws Frames for the native runs of a stack, and enlarges frames to make room for them.
pub(super) fn generate<C: Choices>(
    choices: &mut C,
    generation: Generation,
    activations: &mut [Draft],
) -> Vec<FrameDraft> {
    let kinds = FrameKind::ALL.iter().copied().filter(|kind| kind.exists_in(generation));
    let kinds: Vec<_> = kinds.collect();
    let mut frames = Vec::new();
    for target in 1..activations.len() {
        let is_start = match activations.get(target - 1..=target) {
            Some([host, target]) => host.is_native() && !target.is_native(),
            _ => false,
        };
        if is_start && frames.len() < MOST && choices.chance(3, 4) {
            let mut run =
                Run { generation, activations, target, used: 8, has_block: false, last: None };
            for _ in 0..choices.one([1, 1, 1, 2, 3]) {
                frames.extend(run.frame(choices, &kinds));
            }
            frames.extend(run.last);
        }
    }
    frames.truncate(MOST);
    frames
}

/// A run of native activations called by the managed activation `target`; all its Frames are in the
/// frame of the last native one, next to `target`.
struct Run<'d> {
    generation: Generation,
    activations: &'d mut [Draft],
    target: usize,
    /// Number of bytes of the host's frame that are taken.
    used: u64,
    /// The run has a TransitionBlock, or similar data.
    has_block: bool,
    /// The Frame above all others of the run.
    last: Option<FrameDraft>,
}

impl Run<'_> {
    /// Draws another Frame; returns `None` if it is to be the last one, or there is no room.
    fn frame<C: Choices>(&mut self, choices: &mut C, kinds: &[FrameKind]) -> Option<FrameDraft> {
        let host = self.target - 1;
        // Most threads are in a call of native code, or in a helper.
        let usual = choices.chance(1, 3);
        let kind = choices.pick(kinds).filter(|_| !usual).unwrap_or(FrameKind::InlinedCall);
        let methods = ["App.Method", "App.Other", "App.F1"];
        let mut frame = FrameDraft {
            kind,
            host,
            place: FramePlace::FromStart(self.used),
            leads_to: Some(self.target),
            method: choices.chance(1, 2).then(|| choices.one(methods).to_owned()),
            lazy: None,
            flags: choices.one([0x10_000B, 0x10_005F, 0x810_004B]),
        };
        match kind.shape() {
            FrameShape::InlinedCall => {
                self.inlined_call(choices, frame);
                return None;
            }
            FrameShape::FramedMethod | FrameShape::Transition | FrameShape::Hijack => {
                if core::mem::replace(&mut self.has_block, true) {
                    return None;
                }
            }
            FrameShape::TailCall => {
                if self.last.is_some() || core::mem::replace(&mut self.has_block, true) {
                    return None;
                }
                let saved = FrameConvention::of(self.generation).saved_size();
                frame.place = FramePlace::AtEnd(layout::TAIL_CALL_REGISTERS + saved + 8);
            }
            FrameShape::HelperMethod => {
                let attributes = choices.one([0, 0, layout::EXACT_DEPTH]);
                let fcall_entry = choices.one([0, 0, 0x7FF8_2000_0000]);
                let lazy = LazyFields { fcall_entry, attributes };
                frame.lazy = choices.chance(1, 2).then_some(lazy);
            }
            FrameShape::UnmanagedToManaged => frame.leads_to = Some(host),
            FrameShape::Mark => frame.leads_to = None,
            FrameShape::Resumable
            | FrameShape::Faulting
            | FrameShape::Software
            | FrameShape::FuncEval => {}
        }
        let room = self.used + LARGEST + BLOCK.max(self.saved_by(host));
        if !enlarge(self.activations, host, room) {
            return None;
        }
        if let FramePlace::AtEnd(_) = frame.place {
            self.last = Some(frame);
            return None;
        }
        self.used += LARGEST;
        Some(frame)
    }

    /// Returns the bytes taken by the registers that an activation's function pushes, and by the
    /// return address.
    fn saved_by(&self, activation: usize) -> u64 {
        self.activations
            .get(activation)
            .map_or(8, |draft| 8 + 8 * draft.activation.saves.len() as u64)
    }

    /// Draws an InlinedCallFrame, which is in the frame of the calling method.
    fn inlined_call<C: Choices>(&mut self, choices: &mut C, mut frame: FrameDraft) {
        let room = CALL_OFFSET + CALL_SIZE + self.saved_by(self.target);
        if self.last.is_none() && enlarge(self.activations, self.target, room) {
            frame.host = self.target;
            frame.place = FramePlace::FromStart(CALL_OFFSET);
            frame.leads_to = frame.leads_to.filter(|_| !choices.chance(1, 6));
            self.last = Some(frame);
        }
    }
}

/// Returns the Frames, topmost first, after the activations have been placed.
pub(super) fn place(
    frames: Vec<FrameDraft>,
    activations: &[SyntheticActivation],
) -> Vec<SyntheticFrame> {
    let name = |activation: usize| {
        activations.get(activation).map(|activation| activation.function.clone())
    };
    let mut placed: Vec<_> = frames
        .into_iter()
        .filter_map(|frame| {
            let at = match frame.place {
                FramePlace::FromStart(offset) => activations.get(frame.host)?.sp + offset,
                FramePlace::AtEnd(size) => activations.get(frame.host + 1)?.sp - size,
            };
            let captured = frame.lazy.and_then(|lazy| Some((name(frame.host)?, lazy)));
            Some(SyntheticFrame {
                kind: frame.kind,
                at,
                leads_to: frame.leads_to.and_then(name),
                method: frame.method,
                captured_in: captured,
                context_flags: frame.flags,
            })
        })
        .collect();
    placed.sort_by_key(|frame| frame.at);
    placed
}
