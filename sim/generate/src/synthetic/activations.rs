//! The activations of a generated thread: alternating managed and native runs.

use crate::Choices;
use clr_runtime::frame::layout::FrameConvention;
use clr_runtime::{Funclet, MethodKind};
use clr_world::synthetic::{CodeLocation, PROLOGUE, SIZE, SyntheticActivation, SyntheticThread};

/// Size of the root's frame in bytes, whatever the root is.
const ROOT_SIZE: u64 = 0x40;

/// A draft of an activation, with the size of its frame in bytes.
pub(super) struct Draft {
    pub activation: SyntheticActivation,
    pub size: u64,
}

impl Draft {
    /// Returns true if the draft is in the same function as `activation`.
    fn is_of(&self, activation: &SyntheticActivation) -> bool {
        self.activation.function == activation.function
            && self.activation.place == activation.place
            && self.activation.funclet == activation.funclet
    }

    pub(super) const fn is_native(&self) -> bool {
        matches!(self.activation.place, CodeLocation::Native)
    }
}

/// Draws the activations of a stack, leaf first.
pub(super) fn generate<C: Choices>(choices: &mut C, target: &SyntheticThread) -> Vec<Draft> {
    let (least, most) = choices.one([(0, 6), (3, 12), (3, 12), (6, 20), (12, 39)]);
    let count = choices.between(least, most) as usize;
    let mut drafts: Vec<Draft> = Vec::with_capacity(count + 5);
    let mut native = choices.chance(2, 3);
    while drafts.len() < count {
        for _ in 0..choices.between(1, if native { 2 } else { 5 }) {
            let draft = if native {
                native_activation(choices, target, drafts.len())
            } else {
                managed_activation(choices, target, &drafts)
            };
            drafts.push(draft);
        }
        native = !native;
    }
    drafts.truncate(count);
    if count > 0 {
        let mut root = if choices.chance(1, 8) {
            managed_activation(choices, target, &[])
        } else {
            native_activation(choices, target, count)
        };
        let name = if root.is_native() { "host!main" } else { "App.Last" };
        name.clone_into(&mut root.activation.function);
        root.activation.leaf = false;
        root.activation.saves.truncate(4);
        root.size = ROOT_SIZE;
        drafts.push(root);
    }
    drafts
}

/// Draws an offset after a call that comes after the prologue.
fn offset<C: Choices>(choices: &mut C) -> u32 {
    choices.between(u32::from(PROLOGUE) + 1, SIZE - 1)
}

fn frame_size<C: Choices>(choices: &mut C, activation: &SyntheticActivation) -> u64 {
    let words = match choices.below(12) {
        0..8 => choices.below(0x20),
        8..11 => choices.below(0x80),
        _ => choices.below(0x400),
    };
    8 + 8 * activation.saves.len() as u64 + 8 * u64::from(words)
}

fn native_activation<C: Choices>(choices: &mut C, target: &SyntheticThread, index: usize) -> Draft {
    let saved = FrameConvention::of(target.generation).callee_saved;
    let leaf = choices.chance(1, 8);
    let activation = SyntheticActivation {
        function: format!("coreclr.dll!N{index}"),
        offset: offset(choices),
        place: CodeLocation::Native,
        kind: MethodKind::Ordinary,
        sp: 0,
        saves: if leaf { Vec::new() } else { choices.subset(saved, 1, 4) },
        funclet: None,
        leaf,
        gs_cookie: None,
    };
    let size = if leaf { 8 } else { frame_size(choices, &activation) };
    Draft { activation, size }
}

fn managed_activation<C: Choices>(
    choices: &mut C,
    target: &SyntheticThread,
    drafts: &[Draft],
) -> Draft {
    let offset = offset(choices);
    let mut activation = match drafts.get(choices.below(drafts.len() as u32) as usize) {
        // Recursion, and the methods of funclets.
        Some(draft) if !draft.is_native() && choices.chance(1, 2) => {
            let mut activation = draft.activation.clone();
            activation.funclet = activation.funclet.filter(|_| choices.chance(1, 3));
            if !activation.function.contains('@') && choices.chance(1, 6) {
                activation.function.push_str("@tier1");
            }
            activation
        }
        _ => fresh(choices, target, drafts.len()),
    };
    activation.offset = offset;
    if let Some(same) = drafts.iter().find(|draft| draft.is_of(&activation)) {
        return Draft {
            activation: SyntheticActivation { offset, ..same.activation.clone() },
            size: same.size,
        };
    }
    let size = frame_size(choices, &activation);
    Draft { activation, size }
}

fn fresh<C: Choices>(
    choices: &mut C,
    target: &SyntheticThread,
    index: usize,
) -> SyntheticActivation {
    let saved = FrameConvention::of(target.generation).callee_saved;
    let kinds = [
        MethodKind::Ordinary,
        MethodKind::IlStub,
        MethodKind::Dynamic,
        MethodKind::ExceptionHandling,
    ];
    let kind = kinds[choices.weighted(&[12, 2, 2, 2])];
    let version = if choices.chance(1, 8) { "@tier1" } else { "" };
    let all = choices.chance(1, 4);
    SyntheticActivation {
        function: format!("App.F{index}{version}"),
        offset: 0,
        place: choices.one([CodeLocation::Heap, CodeLocation::ReadyToRun]),
        kind,
        sp: 0,
        saves: if all { saved.to_vec() } else { choices.subset(saved, 1, 3) },
        funclet: if choices.chance(1, 10) {
            Some(choices.one([Funclet::Handler, Funclet::Filter]))
        } else {
            None
        },
        leaf: false,
        gs_cookie: None,
    }
}

/// Enlarges the frame of an activation's function to at least `size` bytes. Returns false if that
/// is impossible.
pub(super) fn enlarge(drafts: &mut [Draft], index: usize, size: u64) -> bool {
    let last = index + 1 == drafts.len();
    let Some(draft) = drafts.get(index) else { return false };
    if draft.size >= size {
        return true;
    }
    if draft.activation.leaf || last {
        return false;
    }
    let activation = draft.activation.clone();
    for draft in drafts.iter_mut().filter(|draft| draft.is_of(&activation)) {
        draft.size = size;
    }
    true
}

/// Places the activations, from the base of the stack downwards.
pub(super) fn place(drafts: Vec<Draft>, base: u64) -> Vec<SyntheticActivation> {
    let mut end = base;
    let mut activations = Vec::with_capacity(drafts.len());
    for Draft { mut activation, size } in drafts.into_iter().rev() {
        end -= size;
        activation.sp = end;
        activations.push(activation);
    }
    activations.reverse();
    activations
}
