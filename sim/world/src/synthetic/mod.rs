//! Synthetic threads, set up by hand: a stack as a table of activations, leaf first, with arbitrary
//! Frames, modes and seeds, and labels instead of addresses.
//!
//! Defaults make the thread complete: return addresses and saved registers are where the unwind
//! data of each function expects them, so that a walk finds the activations of the table.
//!
//! ```
//! use clr_runtime::generation::Generation;
//! use clr_runtime::FrameKind;
//! use clr_world::synthetic::{SELF, SyntheticThread};
//!
//! // ObjectAllocated: a helper called by App.Foo has linked its Frame.
//! let thread = SyntheticThread::new(Generation::CoreClr31Windows)
//!     .cooperative()
//!     .native("coreclr.dll!JIT_New+0x80", 0x1F_E000)
//!     .jit("App.Foo+0x40", 0x1F_E300)
//!     .jit("App.Main+0x20", 0x1F_E340)
//!     .native("coreclr.dll!CallDescrWorkerInternal+0x7c", 0x1F_E380)
//!     .frame(FrameKind::HelperMethod, 0x1F_E1C0, "App.Foo");
//! let process = thread.build().expect("it fits together");
//! let runtime = process.runtime();
//! let snapshot = process.snapshot(&runtime, SELF, &process.call());
//! assert_eq!(
//!     snapshot.to_string(),
//!     "App.Foo+0x40, rsp 0x1fe300\n\
//!      App.Main+0x20, rsp 0x1fe340\n\
//!      marker: coreclr.dll!CallDescrWorkerInternal+0x7c, rsp 0x1fe380\n\
//!      S_OK\n"
//! );
//! ```

mod code;
mod manager;
mod process;
mod snapshot;

pub use code::{CODE, MAX_OFFSET, PROLOGUE, SIZE};
pub use process::{SyntheticError, SyntheticProcess};
pub use snapshot::{FrameReport, SyntheticSnapshot};

use clr_runtime::code_manager::StubKind;
use clr_runtime::frame::LazyFields;
use clr_runtime::generation::Generation;
use clr_runtime::metadata::ModuleNames;
use clr_runtime::{
    ContextSafety, ExceptionState, FrameKind, Funclet, MethodKind, OsThreadId, Process, ThreadLife,
};
use clr_unwind::Gpr;
use clr_walker::profiling::ThreadId;

/// The synthetic thread.
pub const SELF: OsThreadId = OsThreadId(1);
/// Another thread, which the runtime does not know.
pub const NATIVE_WALKER: OsThreadId = OsThreadId(2);
/// Another thread, which the runtime knows, in preemptive mode.
pub const MANAGED_WALKER: OsThreadId = OsThreadId(3);

/// The Thread object of [`SELF`].
pub const SELF_OBJECT: ThreadId = ThreadId(0x10_0000_0000);
/// The Thread object of [`MANAGED_WALKER`].
pub const WALKER_OBJECT: ThreadId = ThreadId(SELF_OBJECT.0 + 0x800);

/// The default bounds of the stack (VA).
pub const STACK: (u64, u64) = (0x10_0000, 0x20_0000);

/// The location of a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeLocation {
    /// The JIT's code heap.
    Heap,
    /// A ready-to-run image.
    ReadyToRun,
    /// A native module.
    Native,
}

/// An activation on the stack of a synthetic thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticActivation {
    /// The function: `App.Foo`, `App.Foo@tier1` for another version of its code,
    /// `coreclr.dll!JIT_New`.
    pub function: String,
    /// Offset of rip from the function's start, in bytes: after a call, or at the leaf's next
    /// instruction.
    pub offset: u32,
    /// Location of the function's code.
    pub place: CodeLocation,
    /// Kind of method, if the function is managed.
    pub kind: MethodKind,
    /// rsp at this rip (VA). The frame extends to the next activation's rsp.
    pub sp: u64,
    /// Registers that the function's prologue pushes.
    pub saves: Vec<Gpr>,
    /// The activation is in a funclet of its function.
    pub funclet: Option<Funclet>,
    /// The function has no unwind data: a leaf, whose rsp points at the return address.
    pub leaf: bool,
    /// Position of the GS cookie in the frame: bytes below the caller SP.
    pub gs_cookie: Option<u32>,
}

/// An explicit Frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticFrame {
    /// Kind of the Frame.
    pub kind: FrameKind,
    /// Address of the Frame (VA).
    pub at: u64,
    /// Function of the activation that the Frame leads to; `None` if it leads nowhere.
    pub leads_to: Option<String>,
    /// Function that is the Frame's method.
    pub method: Option<String>,
    /// Function of the activation in which the HelperMethodFrame is captured, if the Frame has not
    /// been resolved yet.
    pub captured_in: Option<(String, LazyFields)>,
    /// ContextFlags of the Frame's CONTEXT, if it has one.
    pub context_flags: u32,
}

/// A process with a synthetic thread, to be set up.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the runtime itself")]
pub struct SyntheticThread {
    /// Generation of the runtime.
    pub generation: Generation,
    /// Stack, leaf first.
    pub activations: Vec<SyntheticActivation>,
    /// Frame chain, topmost first.
    pub frames: Vec<SyntheticFrame>,
    /// The thread is in cooperative mode.
    pub cooperative: bool,
    /// Bounds of the stack (VA).
    pub stack: (u64, u64),
    /// State of the process.
    pub process: Process,
    /// Safety of the thread's context.
    pub safety: ContextSafety,
    /// Exceptions of the thread.
    pub exceptions: ExceptionState,
    /// Number of times that the thread has forbidden its suspension.
    pub forbid_suspend: u32,
    /// The thread's hijack lock is taken.
    pub hijack_locked: bool,
    /// The thread belongs to the GC.
    pub gc_special: bool,
    /// Phase of the thread's life.
    pub life: ThreadLife,
    /// Suspending the thread fails.
    pub resists_suspension: bool,
    /// The thread leaves cooperative mode while it is examined.
    pub leaves_cooperative_mode: bool,
    /// A debugger has set a filter context on the thread.
    pub debugger_context: bool,
    /// Function whose return address is hijacked.
    pub hijacked: Option<String>,
    /// Blocks of the code heap that are not methods, by name.
    pub stubs: Vec<(String, StubKind)>,
    /// Additional zeroed memory: address (VA) and size in bytes.
    pub blocks: Vec<(u64, u64)>,
    /// Words that overwrite the memory set up before: address (VA) and value.
    pub overwritten: Vec<(u64, u64)>,
    /// Modules and types with names of their own.
    pub modules: Vec<ModuleNames>,
}

impl SyntheticThread {
    /// Creates a process without a stack; its thread is preemptive.
    pub fn new(generation: Generation) -> Self {
        Self {
            generation,
            activations: Vec::new(),
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
            modules: Vec::new(),
        }
    }

    /// Puts the thread in cooperative mode.
    #[must_use]
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Adds an activation after the existing ones. `label` is `FUNCTION+OFFSET`, the offset in hex.
    fn activation(mut self, label: &str, place: CodeLocation, kind: MethodKind, sp: u64) -> Self {
        let (function, offset) = label.rsplit_once("+0x").unwrap_or((label, "0"));
        self.activations.push(SyntheticActivation {
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

    /// Adds an activation of a jitted method: `App.Foo+0x40`.
    #[must_use]
    pub fn jit(self, label: &str, sp: u64) -> Self {
        self.activation(label, CodeLocation::Heap, MethodKind::Ordinary, sp)
    }

    /// Adds an activation of a method compiled ahead of time.
    #[must_use]
    pub fn ready_to_run(self, label: &str, sp: u64) -> Self {
        self.activation(label, CodeLocation::ReadyToRun, MethodKind::Ordinary, sp)
    }

    /// Adds an activation of an IL stub.
    #[must_use]
    pub fn il_stub(self, label: &str, sp: u64) -> Self {
        self.activation(label, CodeLocation::Heap, MethodKind::IlStub, sp)
    }

    /// Adds an activation of a dynamic method.
    #[must_use]
    pub fn dynamic(self, label: &str, sp: u64) -> Self {
        self.activation(label, CodeLocation::Heap, MethodKind::Dynamic, sp)
    }

    /// Adds an activation of the managed exception handling.
    #[must_use]
    pub fn exception_handling(self, label: &str, sp: u64) -> Self {
        self.activation(label, CodeLocation::ReadyToRun, MethodKind::ExceptionHandling, sp)
    }

    /// Adds an activation of a native function: `coreclr.dll!JIT_New+0x80`.
    #[must_use]
    pub fn native(self, label: &str, sp: u64) -> Self {
        self.activation(label, CodeLocation::Native, MethodKind::Ordinary, sp)
    }

    /// Adds an activation of a native function without unwind data, whose rsp points at the return
    /// address.
    #[must_use]
    pub fn native_leaf(mut self, label: &str, sp: u64) -> Self {
        self = self.native(label, sp);
        self.change_activation(|activation| activation.leaf = true)
    }

    /// Sets the registers that the last activation's function pushes.
    #[must_use]
    pub fn saves(self, registers: &[Gpr]) -> Self {
        self.change_activation(|activation| registers.clone_into(&mut activation.saves))
    }

    /// Makes the last activation's function push all nonvolatile registers, as methods with inlined
    /// P/Invokes do (C-099).
    #[must_use]
    pub fn saves_all(self) -> Self {
        let saved = clr_runtime::frame::layout::FrameConvention::of(self.generation).callee_saved;
        self.saves(saved)
    }

    /// Puts the last activation in a funclet of its function.
    #[must_use]
    pub fn in_funclet(self, funclet: Funclet) -> Self {
        self.change_activation(|activation| activation.funclet = Some(funclet))
    }

    /// Gives the last activation's frame a GS cookie, `below` bytes below its caller SP.
    #[must_use]
    pub fn gs_cookie(self, below: u32) -> Self {
        self.change_activation(|activation| activation.gs_cookie = Some(below))
    }

    /// Adds a block to the code heap that is not a method. Its name can be used as a label.
    #[must_use]
    pub fn stub(mut self, name: &str, kind: StubKind) -> Self {
        self.stubs.push((name.to_owned(), kind));
        self
    }

    fn change_activation(mut self, change: impl FnOnce(&mut SyntheticActivation)) -> Self {
        if let Some(activation) = self.activations.last_mut() {
            change(activation);
        }
        self
    }

    /// Adds a Frame at `at` (VA), after the existing ones, which leads to the activation of
    /// `function`: to the first one that ends above the Frame, if there are several.
    #[must_use]
    pub fn frame(self, kind: FrameKind, at: u64, function: &str) -> Self {
        let mut thread = self.mark(kind, at);
        if let Some(frame) = thread.frames.last_mut() {
            frame.leads_to = Some(function.to_owned());
        }
        thread
    }

    /// Adds a Frame at `at` (VA) that leads nowhere.
    #[must_use]
    pub fn mark(mut self, kind: FrameKind, at: u64) -> Self {
        self.frames.push(SyntheticFrame {
            kind,
            at,
            leads_to: None,
            method: None,
            captured_in: None,
            context_flags: 0,
        });
        self
    }

    fn change_frame(mut self, change: impl FnOnce(&mut SyntheticFrame)) -> Self {
        if let Some(frame) = self.frames.last_mut() {
            change(frame);
        }
        self
    }

    /// Sets the method of the last Frame.
    #[must_use]
    pub fn of_method(self, function: &str) -> Self {
        self.change_frame(|frame| frame.method = Some(function.to_owned()))
    }

    /// Marks the last Frame, a HelperMethodFrame, as not resolved yet: it is captured in the
    /// activation of `function`.
    #[must_use]
    pub fn captured_in(self, function: &str, fields: LazyFields) -> Self {
        self.change_frame(|frame| frame.captured_in = Some((function.to_owned(), fields)))
    }
}
