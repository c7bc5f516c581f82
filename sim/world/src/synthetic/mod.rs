//! Threads set up by hand: a stack as a table of activations, leaf first, with Frames, modes and
//! seeds at will, and labels instead of addresses.
//!
//! What is not said has a default that makes the thread whole: return addresses and saved registers
//! lie where the unwind data of each function says, so that a walk finds the table's rows.
//!
//! ```
//! use clr_runtime::generation::Generation;
//! use clr_runtime::FrameKind;
//! use clr_world::synthetic::{SELF, Stage};
//!
//! // ObjectAllocated: a helper called by App.Foo has put up its Frame.
//! let stage = Stage::new(Generation::CoreClr31Windows)
//!     .cooperative()
//!     .native("coreclr.dll!JIT_New+0x80", 0x1F_E000)
//!     .jit("App.Foo+0x40", 0x1F_E300)
//!     .jit("App.Main+0x20", 0x1F_E340)
//!     .native("coreclr.dll!CallDescrWorkerInternal+0x7c", 0x1F_E380)
//!     .frame(FrameKind::HelperMethod, 0x1F_E1C0, "App.Foo");
//! let set = stage.set_up().expect("it fits together");
//! let runtime = set.runtime();
//! let shot = set.snapshot(&runtime, SELF, &set.call());
//! assert_eq!(
//!     shot.to_string(),
//!     "App.Foo+0x40, rsp 0x1fe300\n\
//!      App.Main+0x20, rsp 0x1fe340\n\
//!      marker: coreclr.dll!CallDescrWorkerInternal+0x7c, rsp 0x1fe380\n\
//!      S_OK\n"
//! );
//! ```

mod code;
mod manager;
mod set;
mod snapshot;

pub use code::{CODE, PROLOGUE, SIZE};
pub use set::{Set, StageError};
pub use snapshot::{Shot, Snapshot};

use clr_runtime::code_manager::StubKind;
use clr_runtime::frame::LazyFields;
use clr_runtime::generation::Generation;
use clr_runtime::{
    ContextSafety, ExceptionState, FrameKind, Funclet, MethodKind, OsThreadId, Process, ThreadLife,
};
use clr_walker::profiling::ThreadId;
use clr_walker::registers::Gpr;

/// The thread that is set up.
pub const SELF: OsThreadId = OsThreadId(1);
/// Another one, which the runtime does not know.
pub const NATIVE_WALKER: OsThreadId = OsThreadId(2);
/// Another one, which it does know, in preemptive mode.
pub const MANAGED_WALKER: OsThreadId = OsThreadId(3);

/// The Thread object of [`SELF`].
pub const SELF_OBJECT: ThreadId = ThreadId(0x10_0000_0000);
/// That of [`MANAGED_WALKER`].
pub const WALKER_OBJECT: ThreadId = ThreadId(SELF_OBJECT.0 + 0x800);

/// The default bounds of the stack (VA).
pub const STACK: (u64, u64) = (0x10_0000, 0x20_0000);

/// Where a function's code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the JIT's code heap.
    Heap,
    /// In a ready-to-run image.
    ReadyToRun,
    /// In a native module.
    Native,
}

/// An activation: a row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The function: `App.Foo`, `App.Foo@tier1` for another version of its code,
    /// `coreclr.dll!JIT_New`.
    pub function: String,
    /// Where control is, in bytes from the function's start: behind a call, or at the leaf's next
    /// instruction.
    pub offset: u32,
    /// Where the function is.
    pub place: Place,
    /// What kind of method it is, if it is managed.
    pub kind: MethodKind,
    /// rsp while control is there (VA). The frame reaches to the next row's.
    pub sp: u64,
    /// The registers that the function's prologue pushes.
    pub saves: Vec<Gpr>,
    /// The row is in a funclet of its function.
    pub funclet: Option<Funclet>,
    /// It has no unwind data: a leaf, rsp of which points at the return address.
    pub leaf: bool,
    /// Where its frame has the GS cookie: bytes below the caller SP.
    pub gs_cookie: Option<u32>,
}

/// An explicit Frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// Its kind.
    pub kind: FrameKind,
    /// Its address (VA).
    pub at: u64,
    /// The function of the row that it leads to; nowhere if there is none.
    pub leads_to: Option<String>,
    /// The function that is its method.
    pub method: Option<String>,
    /// A HelperMethodFrame that has not been asked: it is captured in the row of this function.
    pub captured_in: Option<(String, LazyFields)>,
    /// ContextFlags, if it has a CONTEXT.
    pub context_flags: u32,
}

/// A process with a thread, to be set up.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct Stage {
    /// Which runtime it is.
    pub generation: Generation,
    /// The stack, leaf first.
    pub rows: Vec<Row>,
    /// The Frame chain, topmost first.
    pub frames: Vec<FrameRow>,
    /// The thread's mode.
    pub cooperative: bool,
    /// The stack's bounds (VA).
    pub stack: (u64, u64),
    /// The process's state.
    pub process: Process,
    /// Whether its context may be used.
    pub safety: ContextSafety,
    /// Its exceptions.
    pub exceptions: ExceptionState,
    /// How often it has forbidden to be suspended.
    pub forbid_suspend: u32,
    /// Its hijack lock is taken.
    pub hijack_locked: bool,
    /// It belongs to the GC.
    pub gc_special: bool,
    /// Where it is in its life.
    pub life: ThreadLife,
    /// Suspending it does not work.
    pub resists_suspension: bool,
    /// It leaves cooperative mode while it is being looked at.
    pub leaves_cooperative_mode: bool,
    /// A debugger has a filter context on it.
    pub debugger_context: bool,
    /// The function whose return address is hijacked.
    pub hijacked: Option<String>,
    /// Blocks of the code heap that are no methods, by name.
    pub stubs: Vec<(String, StubKind)>,
    /// More memory, which holds zeros: address (VA) and size in bytes.
    pub blocks: Vec<(u64, u64)>,
    /// Words written over whatever lies there: address (VA) and value.
    pub overwritten: Vec<(u64, u64)>,
}

impl Stage {
    /// A process without a stack; its thread is preemptive.
    #[must_use]
    pub fn new(generation: Generation) -> Self {
        Self {
            generation,
            rows: Vec::new(),
            frames: Vec::new(),
            cooperative: false,
            stack: STACK,
            process: Process::default(),
            safety: ContextSafety::default(),
            exceptions: ExceptionState::default(),
            forbid_suspend: 0,
            hijack_locked: false,
            gc_special: false,
            life: ThreadLife::default(),
            resists_suspension: false,
            leaves_cooperative_mode: false,
            debugger_context: false,
            hijacked: None,
            stubs: Vec::new(),
            blocks: Vec::new(),
            overwritten: Vec::new(),
        }
    }

    /// The thread is in cooperative mode.
    #[must_use]
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Adds a row, below those that are there. `label` is `FUNCTION+OFFSET`, the offset in hex.
    fn row(mut self, label: &str, place: Place, kind: MethodKind, sp: u64) -> Self {
        let (function, offset) = label.rsplit_once("+0x").unwrap_or((label, "0"));
        self.rows.push(Row {
            function: function.to_owned(),
            offset: u32::from_str_radix(offset, 16).unwrap_or(0),
            place,
            kind,
            sp,
            saves: Vec::new(),
            funclet: None,
            leaf: false,
            gs_cookie: None,
        });
        self
    }

    /// Adds a row of a jitted method: `App.Foo+0x40`.
    #[must_use]
    pub fn jit(self, label: &str, sp: u64) -> Self {
        self.row(label, Place::Heap, MethodKind::Ordinary, sp)
    }

    /// Adds a row of a method compiled ahead of time.
    #[must_use]
    pub fn ready_to_run(self, label: &str, sp: u64) -> Self {
        self.row(label, Place::ReadyToRun, MethodKind::Ordinary, sp)
    }

    /// Adds a row of an IL stub.
    #[must_use]
    pub fn il_stub(self, label: &str, sp: u64) -> Self {
        self.row(label, Place::Heap, MethodKind::IlStub, sp)
    }

    /// Adds a row of a dynamic method.
    #[must_use]
    pub fn dynamic(self, label: &str, sp: u64) -> Self {
        self.row(label, Place::Heap, MethodKind::Dynamic, sp)
    }

    /// Adds a row of the managed exception handling.
    #[must_use]
    pub fn exception_handling(self, label: &str, sp: u64) -> Self {
        self.row(label, Place::ReadyToRun, MethodKind::ExceptionHandling, sp)
    }

    /// Adds a row of a native function: `coreclr.dll!JIT_New+0x80`.
    #[must_use]
    pub fn native(self, label: &str, sp: u64) -> Self {
        self.row(label, Place::Native, MethodKind::Ordinary, sp)
    }

    /// Adds a row of a native function without unwind data, rsp of which points at the return
    /// address.
    #[must_use]
    pub fn native_leaf(mut self, label: &str, sp: u64) -> Self {
        self = self.native(label, sp);
        self.change_row(|row| row.leaf = true)
    }

    /// The last row's function pushes these registers.
    #[must_use]
    pub fn saves(self, registers: &[Gpr]) -> Self {
        self.change_row(|row| registers.clone_into(&mut row.saves))
    }

    /// The last row's function pushes all nonvolatile registers, as methods with inlined P/Invokes
    /// do (C-099).
    #[must_use]
    pub fn saves_all(self) -> Self {
        let saved = clr_runtime::frame::layout::Convention::of(self.generation).callee_saved;
        self.saves(saved)
    }

    /// The last row is in a funclet of its function.
    #[must_use]
    pub fn in_funclet(self, funclet: Funclet) -> Self {
        self.change_row(|row| row.funclet = Some(funclet))
    }

    /// The last row's frame has a GS cookie, so many bytes below its caller SP.
    #[must_use]
    pub fn gs_cookie(self, below: u32) -> Self {
        self.change_row(|row| row.gs_cookie = Some(below))
    }

    /// Adds a block to the code heap that is no method. Its name is a label.
    #[must_use]
    pub fn stub(mut self, name: &str, kind: StubKind) -> Self {
        self.stubs.push((name.to_owned(), kind));
        self
    }

    fn change_row(mut self, change: impl FnOnce(&mut Row)) -> Self {
        if let Some(row) = self.rows.last_mut() {
            change(row);
        }
        self
    }

    /// Adds a Frame at `at` (VA), below those that are there, which leads to the row of `function`:
    /// to the first one below the Frame, if there are several.
    #[must_use]
    pub fn frame(self, kind: FrameKind, at: u64, function: &str) -> Self {
        let mut stage = self.mark(kind, at);
        if let Some(frame) = stage.frames.last_mut() {
            frame.leads_to = Some(function.to_owned());
        }
        stage
    }

    /// Adds a Frame at `at` (VA) that leads nowhere.
    #[must_use]
    pub fn mark(mut self, kind: FrameKind, at: u64) -> Self {
        self.frames.push(FrameRow {
            kind,
            at,
            leads_to: None,
            method: None,
            captured_in: None,
            context_flags: 0,
        });
        self
    }

    fn change_frame(mut self, change: impl FnOnce(&mut FrameRow)) -> Self {
        if let Some(frame) = self.frames.last_mut() {
            change(frame);
        }
        self
    }

    /// The last Frame's method.
    #[must_use]
    pub fn of_method(self, function: &str) -> Self {
        self.change_frame(|frame| frame.method = Some(function.to_owned()))
    }

    /// The last Frame, of a helper, has not been asked yet: it is captured in the row of `function`.
    #[must_use]
    pub fn captured_in(self, function: &str, fields: LazyFields) -> Self {
        self.change_frame(|frame| frame.captured_in = Some((function.to_owned(), fields)))
    }

    /// ContextFlags of the last Frame's CONTEXT.
    #[must_use]
    pub fn with_context_flags(self, flags: u32) -> Self {
        self.change_frame(|frame| frame.context_flags = flags)
    }
}
