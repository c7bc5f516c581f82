//! The explicit Frames of a thread. The kind of a Frame is read from memory; the place that it
//! leads to comes from the shadow stack.

use super::activations::{ActivationCode, ReferenceActivation};
use super::runtimes;
use clr_runtime::frame::{FrameShape, layout};
use clr_runtime::generation::Generation;
use clr_runtime::{FRAME_TOP, FrameIdentities, FrameKind, MethodKind};
use clr_unwind::{Memory, Position};

/// A Frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceFrame {
    /// Address of the Frame (VA).
    pub at: u64,
    /// Kind of the Frame.
    pub kind: FrameKind,
    /// The Frame has a method, so that a walk stops at it.
    pub has_method: bool,
    /// The Frame is around a call by managed exception handling, but not one of a handler (C-085, C-163).
    pub is_of_handling: bool,
    /// The place that the Frame leads to.
    pub lead: FrameTarget,
}

/// The place that a Frame leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameTarget {
    /// Nowhere, or to unmanaged code.
    Nowhere,
    /// An activation of managed code.
    To {
        /// Index of the activation.
        activation: usize,
        /// rip of the activation, as recorded in the Frame (VA).
        ip: u64,
        /// The other registers of the activation that the Frame provides.
        sets: FrameRegisters,
    },
    /// The unmanaged activation that an active call returns to: the walk looks at the Frame for ever (C-079).
    Unmanaged,
    /// The reference model does not cover the case.
    Beyond,
}

/// The registers that a Frame provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRegisters {
    /// rsp and rbp (C-070, C-098).
    FramePointer,
    /// rsp and all callee-saved integer registers (C-072, C-073).
    CalleeSaved,
    /// All registers of interrupted code, with ContextFlags (C-076).
    Interrupted,
    /// All registers of faulting code, with ContextFlags (C-160).
    Faulted,
}

/// Returns the Frames from `top` on. `None` if something on the chain is not a Frame.
pub(crate) fn chain<M: Memory>(
    generation: Generation,
    identities: &FrameIdentities,
    memory: &M,
    top: u64,
    activations: &[ReferenceActivation],
) -> Option<Vec<ReferenceFrame>> {
    let mut frames = Vec::new();
    let mut at = top;
    while at != FRAME_TOP {
        let word = |offset: u64| memory.read_u64(at.wrapping_add(offset)).ok();
        let kind = identities.kind(word(0)?)?;
        // The activation whose frame contains the Frame.
        let host = activations.iter().position(|activation| at < activation.caller_sp)?;
        let (has_method, lead) = match kind.shape() {
            FrameShape::InlinedCall => {
                let recorded = word(generation.inlined_call_frame().return_address)?;
                inlined_call(activations, host, recorded)
            }
            FrameShape::FramedMethod => (word(layout::METHOD)? != 0, transition(activations, host)),
            FrameShape::Transition | FrameShape::TailCall | FrameShape::Software => {
                (false, transition(activations, host))
            }
            // The code that saves the registers is between the Frame and the caller of the hijacked
            // function (C-074).
            FrameShape::Hijack => (false, to(activations, Some(host + 2))),
            FrameShape::HelperMethod => {
                let method = word(layout::HELPER_METHOD)? | word(layout::FCALL_ENTRY)?;
                let lead = activations.iter().skip(host).position(ReferenceActivation::is_managed);
                (method != 0, to(activations, lead.map(|activation| host + activation)))
            }
            FrameShape::Resumable => {
                (false, interrupted(activations, host, FrameRegisters::Interrupted))
            }
            FrameShape::Faulting => {
                (false, interrupted(activations, host, FrameRegisters::Faulted))
            }
            // The caller by COM is unmanaged.
            FrameShape::Mark | FrameShape::UnmanagedToManaged => (false, FrameTarget::Nowhere),
            FrameShape::FuncEval => (false, FrameTarget::Beyond),
        };
        let is_of_handling = kind == FrameKind::InlinedCall
            && runtimes::mark_of_handling(generation.family()) == Some(word(layout::DATUM)? & 7);
        frames.push(ReferenceFrame { at, kind, has_method, is_of_handling, lead });
        at = word(layout::NEXT)?;
    }
    Some(frames)
}

/// Finds the target of an InlinedCallFrame: the method that contains the Frame, while the call is
/// active (C-070, C-071).
fn inlined_call(
    activations: &[ReferenceActivation],
    host: usize,
    recorded: u64,
) -> (bool, FrameTarget) {
    let Some(activation) =
        activations.get(host).filter(|activation| activation.is_managed() && recorded != 0)
    else {
        return (false, FrameTarget::Nowhere);
    };
    // During the call, the Frame has the call's return address; in ready-to-run code, the return
    // address of a helper's call (C-156).
    let callee = host.checked_sub(1).and_then(|callee| activations.get(callee));
    let calls = activation.position == Position::ReturnAddress
        && callee.is_some_and(|callee| !callee.waits_to_come_back());
    let begins = activation.fact.is_some_and(|fact| fact.begins);
    let ip = if calls && !begins { activation.registers.rip } else { recorded };
    // The Frame of an IL stub of the runtime has the method of the P/Invoke; any other Frame has a
    // token.
    let is_stub = matches!(activation.code, ActivationCode::Managed(_, MethodKind::IlStub));
    let has_method = is_stub && activation.fact.is_some_and(|fact| !fact.is_source);
    (has_method, FrameTarget::To { activation: host, ip, sets: FrameRegisters::FramePointer })
}

/// Finds the target of a transition Frame: the caller of the runtime's code (C-073), if that is
/// managed code (C-079).
fn transition(activations: &[ReferenceActivation], host: usize) -> FrameTarget {
    let caller = activations.iter().skip(host).position(|activation| !activation.is_between());
    to(activations, caller.map(|activation| host + activation))
}

/// Finds the target of a Frame with a CONTEXT: the code that was interrupted (C-076) or has faulted
/// (C-160).
fn interrupted(
    activations: &[ReferenceActivation],
    host: usize,
    sets: FrameRegisters,
) -> FrameTarget {
    match to(activations, Some(host + 1)) {
        FrameTarget::To { activation, ip, .. } => FrameTarget::To { activation, ip, sets },
        other => other,
    }
}

fn to(activations: &[ReferenceActivation], index: Option<usize>) -> FrameTarget {
    match index.and_then(|index| Some((index, activations.get(index)?))) {
        Some((index, activation)) if activation.is_managed() => FrameTarget::To {
            activation: index,
            ip: activation.registers.rip,
            sets: FrameRegisters::CalleeSaved,
        },
        _ => FrameTarget::Nowhere,
    }
}
