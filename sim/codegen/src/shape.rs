//! The shape of a function: what its prologue does to the stack, how it leaves, and which unwind
//! data it carries. One description, from which come its instructions and its tables.

use clr_walker::registers::Gpr;

/// Which registers a callee must preserve, and what a caller leaves for it on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Convention {
    /// rbx rbp rsi rdi r12–r15 and xmm6–15 are nonvolatile; a caller leaves 32 bytes of home space.
    #[default]
    WindowsX64,
    /// rbx rbp r12–r15 are nonvolatile; there is no home space.
    SystemV,
}

impl Convention {
    /// The nonvolatile integer registers but rsp.
    #[must_use]
    pub const fn nonvolatile(self) -> &'static [Gpr] {
        match self {
            Self::WindowsX64 => &Gpr::NONVOLATILE,
            Self::SystemV => &[Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15],
        }
    }

    /// The integer registers that a callee may change: what an interrupt handler must save besides.
    #[must_use]
    pub const fn volatile(self) -> &'static [Gpr] {
        use Gpr::{R8, R9, R10, R11, Rax, Rcx, Rdi, Rdx, Rsi};
        match self {
            Self::WindowsX64 => &[Rax, Rcx, Rdx, R8, R9, R10, R11],
            Self::SystemV => &[Rax, Rcx, Rdx, Rsi, Rdi, R8, R9, R10, R11],
        }
    }

    /// Whether a callee must preserve `register`.
    #[must_use]
    pub fn is_nonvolatile(self, register: Gpr) -> bool {
        self.nonvolatile().contains(&register)
    }

    /// Whether a callee must preserve xmm6 to xmm15.
    #[must_use]
    pub const fn has_nonvolatile_xmm(self) -> bool {
        matches!(self, Self::WindowsX64)
    }

    /// Bytes that a caller leaves between its return address and its own data.
    #[must_use]
    pub const fn home_space(self) -> u32 {
        match self {
            Self::WindowsX64 => 32,
            Self::SystemV => 0,
        }
    }
}

/// What a function does with the stack.
///
/// From the caller's frame downwards: home space (the caller's), return address or machine frame,
/// pushed registers, fixed allocation, dynamic stack. Where things lie inside the fixed allocation
/// follows from the shape ([`FrameLayout`](super::FrameLayout)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionShape {
    /// How control comes to it.
    pub entry: Entry,
    /// Registers that the prologue stores in the caller's home space, by slot: slot 0 is right
    /// above the return address. A nonvolatile register is saved so; a volatile one is an argument.
    pub home: [Option<Gpr>; 4],
    /// Registers pushed, the first one first. A volatile one only takes space.
    pub pushes: Vec<Gpr>,
    /// Bytes of locals in the fixed allocation, a multiple of 8.
    pub locals: u32,
    /// Nonvolatile registers saved by mov into the fixed allocation.
    pub saves: Vec<Gpr>,
    /// Of xmm6 to xmm15, those saved into the fixed allocation.
    pub xmm_saves: Vec<u8>,
    /// On which side of the locals these saves lie.
    pub save_area: SaveArea,
    /// How the fixed allocation is made.
    pub allocation: Allocation,
    /// The frame register.
    pub frame: Option<FrameRegister>,
    /// How the fixed allocation is given back.
    pub release: Release,
    /// Instructions that touch neither stack nor nonvolatile registers stand between those of the
    /// prologue, as compilers schedule them.
    pub scheduled: bool,
    /// The unwind data.
    pub unwind: UnwindData,
    /// The unwind data names a language-specific handler.
    pub handler: bool,
    /// How parts that lie elsewhere are described.
    pub cold: ColdForm,
    /// Where its prologue and epilogue stand. Anything but the default is for native code of Unix.
    pub wrap: Wrap,
    /// To what its stack is aligned. Anything but the default is for native code of Unix.
    pub realign: Realign,
    /// How many arguments it pushes for each call: an even number. Any is for native code of Unix.
    pub arguments: u8,
    /// What its CFI says behind an epilogue in the middle. Anything but the default is for native
    /// code of Unix.
    pub epilogue_cfi: EpilogueCfi,
}

impl FunctionShape {
    /// Whether the unwind data names a frame register, so that rsp may move in the body.
    #[must_use]
    pub fn has_described_frame(&self) -> bool {
        self.frame.is_some_and(|frame| frame.described)
    }

    /// Whether saves in the fixed allocation would lie below the frame base that unwind codes count
    /// from, so that none can describe them.
    pub(super) fn saves_lie_below_frame(&self) -> bool {
        self.frame.is_some_and(|frame| frame.described && frame.set == FrameSet::BeforeAllocation)
    }

    /// Whether something in it is made by compilers for Unix alone, where CFI describes it.
    #[must_use]
    pub fn is_of_unix(&self) -> bool {
        self.wrap != Wrap::Whole
            || self.realign != Realign::No
            || self.arguments > 0
            || self.epilogue_cfi != EpilogueCfi::Restored
            || self.entry == Entry::Signal
            || self.frame.is_some_and(|frame| frame.set == FrameSet::BehindPush)
    }

    /// How many of its pushes follow that of its frame register.
    #[must_use]
    pub(super) fn pushes_behind_frame(&self) -> u32 {
        let register = self.frame.map(|frame| frame.register);
        let pushes = self.pushes.iter().rev();
        pushes.take_while(|push| Some(**push) != register).count() as u32
    }

    /// Whether the prologue saves `register`.
    #[must_use]
    pub fn saves_register(&self, register: Gpr) -> bool {
        self.pushes.contains(&register)
            || self.saves.contains(&register)
            || self.home.contains(&Some(register))
    }
}

/// How control comes to a function, and so what lies on the stack at its first instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A call: the return address.
    #[default]
    Call,
    /// An interrupt: the machine frame rip, cs, rflags, rsp, ss. It ends with iretq.
    Interrupt,
    /// An interrupt with an error code below its machine frame.
    InterruptWithErrorCode,
    /// A signal of Unix: as a call, with the return address of the trampoline that ends the signal;
    /// above that the kernel has saved all registers.
    Signal,
}

impl Entry {
    /// Whether the processor has left a machine frame, so that `iretq` is its return.
    #[must_use]
    pub const fn has_machine_frame(self) -> bool {
        matches!(self, Self::Interrupt | Self::InterruptWithErrorCode)
    }
}

/// Where a function's prologue and epilogue stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wrap {
    /// Around all of it.
    #[default]
    Whole,
    /// Around its middle: some instructions before it and behind it have no frame.
    Inside,
    /// Around what is not put behind the last epilogue: instructions without a frame, which are
    /// executed first.
    Apart,
}

/// To what a function aligns its stack, more than its callers do: gcc's way, by which nothing but a
/// saved r10 tells where the caller's frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Realign {
    /// Nothing more.
    #[default]
    No,
    /// 32 bytes.
    To32,
    /// 64 bytes.
    To64,
}

impl Realign {
    /// In bytes, if it does.
    #[must_use]
    pub const fn bytes(self) -> Option<u8> {
        match self {
            Self::No => None,
            Self::To32 => Some(32),
            Self::To64 => Some(64),
        }
    }
}

/// What call frame information says behind an epilogue that is not the function's last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EpilogueCfi {
    /// What it said before the epilogue.
    #[default]
    Restored,
    /// What the epilogue has left, and it counts on from there: assembly that remembers and restores
    /// nothing. It is wrong up to the function's end.
    Continued,
}

/// On which side of the locals registers are saved by mov.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SaveArea {
    /// Above: with many locals the offsets are large.
    #[default]
    AboveLocals,
    /// Below.
    BelowLocals,
}

/// How the fixed allocation is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// `sub rsp, imm`, with an immediate as short as can be.
    #[default]
    Sub,
    /// `sub rsp, imm32`, however small.
    SubImm32,
    /// `push rax`, where it takes 8 bytes; else as `Sub`.
    Push,
    /// A read of each page, then `sub rsp, imm`: RyuJIT for some pages.
    Probes,
    /// A loop that reads each page, then `sub rsp, imm`: RyuJIT for many pages.
    ProbeLoop,
    /// `mov eax, imm; call ___chkstk_ms; sub rsp, rax`: gcc.
    Chkstk,
}

/// A register that keeps the frame's address while rsp moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRegister {
    /// A nonvolatile register that the function saves.
    pub register: Gpr,
    /// Its distance above rsp where it is set, in units of 16 bytes: 0 to 15.
    pub offset: u8,
    /// Where in the prologue it is set.
    pub set: FrameSet,
    /// The unwind data names it. RyuJIT leaves it out where rsp does not move (contract §8.5).
    pub described: bool,
}

/// Where in the prologue the frame register is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FrameSet {
    /// Behind its own push, whatever is pushed then: gcc and clang for Unix.
    BehindPush,
    /// Behind the pushes: gcc and clang without optimisation.
    BeforeAllocation,
    /// Behind the allocation: MSVC, gcc.
    #[default]
    AfterAllocation,
    /// At the prologue's end: RyuJIT.
    AfterSaves,
}

/// How the fixed allocation is given back before registers are popped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Release {
    /// `add rsp, imm`, with an immediate as short as can be.
    #[default]
    Add,
    /// `add rsp, imm32`, however small.
    AddImm32,
    /// `pop rcx`, where it is 8 bytes; else as `Add`.
    Pop,
    /// `lea rsp, [frame register + disp]`.
    Lea,
    /// The same with a disp of 32 bits, however small.
    LeaDisp32,
    /// `lea r11, [rsp + disp]`, registers restored from there, `mov rsp, r11`: MSVC.
    R11,
    /// `mov rsp, frame register`, where it points at the last pushed register.
    Mov,
    /// `leave`, where that register is rbp.
    Leave,
}

/// What describes a function to unwinders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnwindData {
    /// Nothing: a leaf that never moves rsp nor changes a nonvolatile register.
    None,
    /// UNWIND_INFO version 1: epilogues are found by their instructions.
    #[default]
    Version1,
    /// Version 2: epilogues are listed by EPILOG codes.
    Version2,
    /// Version 2 without EPILOG codes.
    Version2WithoutEpilogs,
}

/// How a part of a function that lies apart from the rest is described.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColdForm {
    /// By an info chained to the function's own: MSVC, clang.
    #[default]
    Chained,
    /// By an info of its own that repeats all codes and has no prologue: gcc.
    Separate,
}
