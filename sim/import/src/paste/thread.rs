//! A thread that was printed, and its frames.

use clr_runtime::FrameKind;

/// The code of a frame that was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PastedCode {
    Managed,
    Native,
    /// An explicit Frame of the runtime.
    Frame(FrameKind),
    /// Code without any name: managed, or where the debugger has lost its way.
    Unknown,
}

/// A frame that was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PastedFrame {
    pub(crate) code: PastedCode,
    /// The function, without arguments; of native code after its module and `!`.
    pub(crate) name: String,
    /// Offset of the ip in the function, in bytes.
    pub(crate) offset: Option<u64>,
    /// The stack pointer, or the address of a Frame (VA).
    pub(crate) sp: Option<u64>,
}

/// A thread that was printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastedThread {
    /// Id of the thread in the operating system, or 0 if none was printed.
    pub id: u32,
    /// True if the thread is in cooperative mode; `None` if that was not printed.
    pub is_cooperative: Option<bool>,
    /// Leafmost first.
    pub(crate) frames: Vec<PastedFrame>,
}

impl PastedThread {
    /// Returns the number of frames, Frames among them.
    pub const fn frame_count(&self) -> usize {
        self.frames.len()
    }
}
