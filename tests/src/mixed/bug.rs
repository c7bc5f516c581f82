//! The mistakes that can be planted in the second walker.

use std::fmt;

/// A mistake that profilers have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// The registers are read before the thread is suspended.
    ContextBeforeSuspension,
    /// The seed is the first word on the stack that points into managed code.
    SeedByScanning,
    /// A volatile register that points into managed code is taken for a leaf's return address.
    VolatileRegistersTrusted,
    /// Code without unwind data is treated as a leaf also in the middle of the stack.
    LeafRuleForCallers,
    /// The run of native code that a marker reports is unwound from the callback before.
    RunFromWrongFrame,
    /// The last frame of such a run is left out.
    RunEndsEarly,
    /// Such a run is inserted twice.
    HoleFilledTwice,
    /// The frames after the first run are left out.
    StopsAtFirstMarker,
    /// Addresses after a method's end, and before the next method's first instruction, are
    /// attributed to the method, as by the runtime (contract §2.6).
    OnePastEndBelieved,
}

impl Bug {
    /// All mistakes.
    pub const ALL: [Self; 9] = [
        Self::ContextBeforeSuspension,
        Self::SeedByScanning,
        Self::VolatileRegistersTrusted,
        Self::LeafRuleForCallers,
        Self::RunFromWrongFrame,
        Self::RunEndsEarly,
        Self::HoleFilledTwice,
        Self::StopsAtFirstMarker,
        Self::OnePastEndBelieved,
    ];
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ContextBeforeSuspension => {
                "The thread's registers are read before it is suspended."
            }
            Self::SeedByScanning => {
                "The seed is made from the first word on the stack that points into managed code."
            }
            Self::VolatileRegistersTrusted => {
                "A native leaf returns to the managed code that a volatile register points to."
            }
            Self::LeafRuleForCallers => {
                "A caller without unwind data is taken to have its return address at rsp."
            }
            Self::RunFromWrongFrame => {
                "A marker's run is unwound from the context of the callback before."
            }
            Self::RunEndsEarly => "The last frame of a run is left out.",
            Self::HoleFilledTwice => "The frames of a run are put in twice.",
            Self::StopsAtFirstMarker => "The walk ends with the run of the first marker.",
            Self::OnePastEndBelieved => {
                "GetFunctionFromIP is asked for ip - 1 always, and believed behind a method's end."
            }
        })
    }
}
