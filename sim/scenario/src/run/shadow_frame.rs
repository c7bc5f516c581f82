//! Frames of the shadow stack of a stopped thread.

use crate::model::MixedFrameKind;
use clr_runtime::MethodKind;
use clr_unwind::Position;

/// A frame of the shadow stack, before it has a label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnlabelledFrame {
    pub kind: MixedFrameKind,
    pub ip: u64,
    pub sp: u64,
    pub position: Position,
}

impl UnlabelledFrame {
    /// Returns the kind of a method's code.
    pub(crate) const fn kind_of(kind: MethodKind) -> MixedFrameKind {
        if kind.has_metadata() { MixedFrameKind::Managed } else { MixedFrameKind::Hidden }
    }
}
