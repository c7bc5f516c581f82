//! The shape of a function: its prologue's changes of the stack, the way it leaves, and its unwind
//! data. Instructions and tables are both generated from this description.

use clr_unwind::Gpr;

/// The calling convention: the registers that a callee must preserve, and the space that a caller
/// leaves on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallingConvention {
    /// rbx rbp rsi rdi r12–r15 and xmm6–15 are nonvolatile; a caller leaves 32 bytes of home space.
    #[default]
    WindowsX64,
    /// rbx rbp r12–r15 are nonvolatile; there is no home space.
    SystemV,
}

impl CallingConvention {
    /// Returns the nonvolatile integer registers except rsp.
    pub const fn nonvolatile(self) -> &'static [Gpr] {
        match self {
            Self::WindowsX64 => &Gpr::NONVOLATILE,
            Self::SystemV => &[Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15],
        }
    }

    /// Returns the integer registers that a callee may change. An interrupt handler must save them
    /// too.
    pub const fn volatile(self) -> &'static [Gpr] {
        use Gpr::{R8, R9, R10, R11, Rax, Rcx, Rdi, Rdx, Rsi};
        match self {
            Self::WindowsX64 => &[Rax, Rcx, Rdx, R8, R9, R10, R11],
            Self::SystemV => &[Rax, Rcx, Rdx, Rsi, Rdi, R8, R9, R10, R11],
        }
    }

    /// Returns true if a callee must preserve `register`.
    pub fn is_nonvolatile(self, register: Gpr) -> bool {
        self.nonvolatile().contains(&register)
    }

    /// Returns true if a callee must preserve xmm6 to xmm15.
    pub const fn has_nonvolatile_xmm(self) -> bool {
        matches!(self, Self::WindowsX64)
    }

    /// Returns the number of bytes that a caller reserves between its own data and the return
    /// address.
    pub const fn home_space(self) -> u32 {
        match self {
            Self::WindowsX64 => 32,
            Self::SystemV => 0,
        }
    }
}

/// The use of the stack by a function.
///
/// From the caller's frame downwards: home space (the caller's), return address or machine frame,
/// pushed registers, fixed allocation, dynamic stack. The layout of the fixed allocation follows
/// from the shape ([`FrameLayout`](super::FrameLayout)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionShape {
    /// Way in which control enters the function.
    pub entry: EntryForm,
    /// Registers that the prologue stores in the caller's home space, by slot: slot 0 is directly
    /// above the return address. A nonvolatile register is saved in this way; a volatile one is an
    /// argument.
    pub home: [Option<Gpr>; 4],
    /// Pushed registers, in order. A volatile register is pushed only to take space.
    pub pushes: Vec<Gpr>,
    /// Bytes of locals in the fixed allocation, a multiple of 8.
    pub locals: u32,
    /// Nonvolatile registers saved by mov into the fixed allocation.
    pub saves: Vec<Gpr>,
    /// Vector registers of xmm6 to xmm15 that are saved into the fixed allocation.
    pub xmm_saves: Vec<u8>,
    /// Position of the saves relative to the locals.
    pub save_area: SaveArea,
    /// Instructions of the fixed allocation.
    pub allocation: Allocation,
    /// Frame register, if the function uses one.
    pub frame: Option<FrameRegister>,
    /// Instructions that release the fixed allocation.
    pub release: Release,
    /// Instructions that touch neither the stack nor nonvolatile registers are mixed into the
    /// prologue, as compilers schedule them.
    pub scheduled: bool,
    /// Kind of the unwind data.
    pub unwind: UnwindData,
    /// The unwind data names a language-specific handler.
    pub handler: bool,
    /// Unwind data of parts that are placed separately.
    pub cold: ColdForm,
    /// Extent of the code with a frame. Values other than the default are for native code on Unix.
    pub wrap: Wrap,
    /// Alignment of the stack. Values other than the default are for native code on Unix.
    pub realign: Realign,
    /// Number of arguments that the function pushes for each call, which is even. Values other than
    /// 0 are for native code on Unix.
    pub arguments: u8,
    /// Content of the CFI after an epilogue in the middle. Values other than the default are for
    /// native code on Unix.
    pub epilogue_cfi: EpilogueCfi,
}

impl FunctionShape {
    /// Returns true if the unwind data names a frame register, so that rsp may move in the body.
    pub fn has_described_frame(&self) -> bool {
        self.frame.is_some_and(|frame| frame.described)
    }

    /// Returns true if saves in the fixed allocation would be below the frame base that unwind
    /// codes count from, so that no unwind code can describe them.
    pub(super) fn saves_lie_below_frame(&self) -> bool {
        self.frame.is_some_and(|frame| frame.described && frame.set == FrameSet::BeforeAllocation)
    }

    /// Returns true if compilers generate some part of the shape only for Unix, where CFI describes
    /// it.
    pub fn is_of_unix(&self) -> bool {
        self.wrap != Wrap::Whole
            || self.realign != Realign::No
            || self.arguments > 0
            || self.epilogue_cfi != EpilogueCfi::Restored
            || self.entry == EntryForm::Signal
            || self.frame.is_some_and(|frame| frame.set == FrameSet::BehindPush)
    }

    /// Returns the number of pushes after the push of the frame register.
    pub(super) fn pushes_behind_frame(&self) -> u32 {
        let register = self.frame.map(|frame| frame.register);
        let pushes = self.pushes.iter().rev();
        pushes.take_while(|push| Some(**push) != register).count() as u32
    }

    /// Returns true if the prologue saves `register`.
    pub fn saves_register(&self, register: Gpr) -> bool {
        self.pushes.contains(&register)
            || self.saves.contains(&register)
            || self.home.contains(&Some(register))
    }
}

/// The way in which control enters a function, which determines the content of the stack at its
/// first instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EntryForm {
    /// A call, which pushes the return address.
    #[default]
    Call,
    /// An interrupt, which pushes the machine frame rip, cs, rflags, rsp, ss. The function ends
    /// with iretq.
    Interrupt,
    /// An interrupt with an error code below its machine frame.
    InterruptWithErrorCode,
    /// A Unix signal. The stack is as after a call from the trampoline that ends the signal; the
    /// kernel has saved all registers above the return address.
    Signal,
}

impl EntryForm {
    /// Returns true if the processor has pushed a machine frame, so that the function returns with
    /// `iretq`.
    pub const fn has_machine_frame(self) -> bool {
        matches!(self, Self::Interrupt | Self::InterruptWithErrorCode)
    }
}

/// The extent of the code between prologue and epilogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wrap {
    /// All of the function has a frame.
    #[default]
    Whole,
    /// The middle has a frame; some instructions before and after it do not.
    Inside,
    /// All code has a frame except instructions placed after the last epilogue, which are executed
    /// first.
    Apart,
}

/// A stack alignment larger than the callers'. With gcc's way of realigning, only a saved r10 leads
/// to the caller's frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Realign {
    /// No realignment.
    #[default]
    No,
    /// 32 bytes.
    To32,
    /// 64 bytes.
    To64,
}

impl Realign {
    /// Returns the alignment in bytes, or `None` without realignment.
    pub const fn bytes(self) -> Option<u8> {
        match self {
            Self::No => None,
            Self::To32 => Some(32),
            Self::To64 => Some(64),
        }
    }
}

/// The content of the CFI after an epilogue that is not the function's last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EpilogueCfi {
    /// The CFI restores the row from before the epilogue.
    #[default]
    Restored,
    /// The CFI continues from the row at the end of the epilogue, as in assembly that remembers and
    /// restores nothing. The CFI is wrong up to the function's end.
    Continued,
}

/// The position of the registers saved by mov relative to the locals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SaveArea {
    /// Above the locals: with many locals the offsets are large.
    #[default]
    AboveLocals,
    /// Below the locals.
    BelowLocals,
}

/// The instructions that make the fixed allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// `sub rsp, imm`, with the shortest possible immediate.
    #[default]
    Sub,
    /// `sub rsp, imm32`, however small.
    SubImm32,
    /// `push rax` for an allocation of 8 bytes, otherwise as `Sub`.
    Push,
    /// A read of each page, then `sub rsp, imm`, as RyuJIT does for a few pages.
    Probes,
    /// A loop that reads each page, then `sub rsp, imm`, as RyuJIT does for many pages.
    ProbeLoop,
    /// `mov eax, imm; call ___chkstk_ms; sub rsp, rax`, as gcc does.
    Chkstk,
}

/// A register that keeps the address of the frame while rsp moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRegister {
    /// The register, which is nonvolatile and saved by the function.
    pub register: Gpr,
    /// Distance above rsp where the register is set, in units of 16 bytes: 0 to 15.
    pub offset: u8,
    /// Position in the prologue where the register is set.
    pub set: FrameSet,
    /// The unwind data names the register. RyuJIT omits it if rsp does not move (contract §8.5).
    pub described: bool,
}

/// The position in the prologue where the frame register is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FrameSet {
    /// Directly after its own push, before later pushes, as gcc and clang do for Unix.
    BehindPush,
    /// After the pushes, as gcc and clang do without optimisation.
    BeforeAllocation,
    /// After the allocation, as MSVC and gcc do.
    #[default]
    AfterAllocation,
    /// At the end of the prologue, as RyuJIT does.
    AfterSaves,
}

/// The instructions that release the fixed allocation before registers are popped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Release {
    /// `add rsp, imm`, with the shortest possible immediate.
    #[default]
    Add,
    /// `add rsp, imm32`, however small.
    AddImm32,
    /// `pop rcx` for an allocation of 8 bytes, otherwise as `Add`.
    Pop,
    /// `lea rsp, [frame register + disp]`.
    Lea,
    /// `lea rsp, [frame register + disp32]`, however small the displacement.
    LeaDisp32,
    /// `lea r11, [rsp + disp]`, registers restored relative to r11, `mov rsp, r11`, as MSVC does.
    R11,
    /// `mov rsp, frame register`, if the frame register points at the last pushed register.
    Mov,
    /// `leave`, if that frame register is rbp.
    Leave,
}

/// The kind of a function's unwind data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnwindData {
    /// No unwind data: a leaf function that never moves rsp nor changes a nonvolatile register.
    None,
    /// UNWIND_INFO version 1: epilogues are recognized by their instructions.
    #[default]
    Version1,
    /// UNWIND_INFO version 2: epilogues are listed by EPILOG codes.
    Version2,
    /// UNWIND_INFO version 2 without EPILOG codes.
    Version2WithoutEpilogs,
    /// UNWIND_INFO version 3: epilogues have descriptors.
    Version3,
}

/// The unwind data of a part that is placed separately from its function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColdForm {
    /// An UNWIND_INFO chained to the function's own, as MSVC and clang use.
    #[default]
    Chained,
    /// An UNWIND_INFO of its own that repeats all unwind codes and has no prologue, as gcc uses.
    Separate,
}
