//! Stacks of real processes, recorded or read from a dump, as stacks placed by hand.

mod place;
mod space;

pub use place::PlacedObservation;

use clr_runtime::{ExceptionState, FrameKind, Funclet, MethodKind};
use clr_unwind::Gpr;
use clr_world::synthetic::CodeLocation;

/// An activation of a real thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedActivation {
    /// Name of the function.
    pub function: String,
    /// Offset of rip from the function's start in bytes.
    pub offset: u64,
    /// Location of the function's code.
    pub place: CodeLocation,
    /// Kind of method, if the function is managed.
    pub kind: MethodKind,
    /// The activation is in a funclet of its function.
    pub funclet: Option<Funclet>,
    /// Nonvolatile registers that unwinding restores, the ones pushed first in front.
    pub saves: Vec<Gpr>,
    /// rip (VA).
    pub ip: u64,
    /// rsp (VA).
    pub sp: u64,
}

/// An explicit Frame of a real thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedFrame {
    /// Kind of the Frame.
    pub kind: FrameKind,
    /// Address (VA).
    pub at: u64,
    /// rip and rsp (VA) of the code that the Frame leads to, if there is any.
    pub target: Option<(u64, u64)>,
    /// Name of the method in the Frame, if there is one.
    pub method: Option<String>,
    /// ContextFlags of its CONTEXT, if it has one.
    pub context_flags: u32,
}

/// The stack of a real thread, at its own addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedStack {
    /// Activations, leaf first, with ascending rsp.
    pub activations: Vec<ObservedActivation>,
    /// Frames, topmost first.
    pub frames: Vec<ObservedFrame>,
    /// Exceptions in progress.
    pub exceptions: ExceptionState,
}

impl ObservedActivation {
    /// Offset of native activations in their functions, in bytes: after any prologue.
    pub const NATIVE_OFFSET: u64 = 0x20;

    /// Creates an activation of native code with this rip and rsp (VA).
    #[must_use]
    pub const fn native(function: String, ip: u64, sp: u64) -> Self {
        Self {
            function,
            offset: Self::NATIVE_OFFSET,
            place: CodeLocation::Native,
            kind: MethodKind::Ordinary,
            funclet: None,
            saves: Vec::new(),
            ip,
            sp,
        }
    }

    /// Returns the name of a method as a label of a text can have it: `@` begins a version of the code.
    #[must_use]
    pub fn label(name: &str) -> String {
        name.replace('@', "_")
    }

    /// Returns true if the code is managed.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.place != CodeLocation::Native
    }
}

impl ObservedStack {
    /// Returns the index of the activation with this ip and rsp (VA).
    #[must_use]
    pub fn index_of(&self, (ip, sp): (u64, u64)) -> Option<usize> {
        self.activations.iter().position(|it| (it.ip, it.sp) == (ip, sp))
    }

    /// Returns the first rsp (VA), from the leaf to the root, that does not ascend by whole words.
    #[must_use]
    pub fn descent(&self) -> Option<u64> {
        let ascends = |size: u64| size >= 8 && size.is_multiple_of(8);
        let pairs = self.activations.iter().zip(self.activations.iter().skip(1));
        let mut falls =
            pairs.filter(|(one, next)| !next.sp.checked_sub(one.sp).is_some_and(ascends));
        falls.next().map(|(_, next)| next.sp)
    }
}
