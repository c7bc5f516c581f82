//! Function shapes as compilers make them, and arbitrary ones.

use super::choices::Choices;
use super::repair;
use clr_codegen::{
    Allocation, CallingConvention, CodeKind, ColdForm, EntryForm, EpilogueCfi, FrameRegister,
    FrameSet, FunctionShape, MAX_ARGUMENTS, MAX_PUSHES, Realign, Release, SaveArea, UnwindData,
    Wrap,
};
use clr_unwind::Gpr;

/// The compiler whose habits a shape follows.
#[derive(Clone, Copy)]
enum Maker {
    Clang,
    Gcc,
    Msvc,
    RyuJit,
    Nobody,
}

/// Draws a shape for a function of this kind and entry, with at most `most_locals` bytes of locals.
pub(super) fn shape<C: Choices>(
    choices: &mut C,
    kind: CodeKind,
    convention: CallingConvention,
    entry: EntryForm,
    most_locals: u32,
) -> FunctionShape {
    let weights = match kind {
        CodeKind::Native => [3, 3, 4, 1, 3],
        CodeKind::Jit | CodeKind::ReadyToRun => [1, 1, 1, 6, 2],
    };
    let makers = [Maker::Clang, Maker::Gcc, Maker::Msvc, Maker::RyuJit, Maker::Nobody];
    let mut draw = Draw { choices, convention, most_locals };
    let mut shape = match makers[draw.choices.weighted(&weights)] {
        Maker::Clang => draw.clang(),
        Maker::Gcc => draw.gcc(),
        Maker::Msvc => draw.msvc(),
        Maker::RyuJit => draw.ryujit(),
        Maker::Nobody => draw.anything(),
    };
    shape.entry = entry;
    repair::shape(&mut shape, convention, kind);
    shape
}

/// Does the same; native code for Unix may also have features that exist only there.
pub(super) fn any_shape<C: Choices>(
    choices: &mut C,
    kind: CodeKind,
    convention: CallingConvention,
    entry: EntryForm,
    most_locals: u32,
) -> FunctionShape {
    let mut shape = shape(choices, kind, convention, entry, most_locals);
    if kind == CodeKind::Native && convention == CallingConvention::SystemV {
        Draw { choices, convention, most_locals }.unix(&mut shape);
        repair::shape(&mut shape, convention, kind);
    }
    shape
}

/// Maximum number of pages that RyuJIT touches one by one rather than in a loop.
const PROBED_PAGES: u32 = 3;

struct Draw<'a, C> {
    choices: &'a mut C,
    convention: CallingConvention,
    most_locals: u32,
}

impl<C: Choices> Draw<'_, C> {
    /// Adds features that gcc and clang have on Unix only.
    fn unix(&mut self, shape: &mut FunctionShape) {
        if self.choices.chance(1, 2) {
            let framed = self.choices.chance(2, 3);
            shape.pushes = self.callee_saved(framed, true);
            shape.frame = framed.then_some(FrameRegister {
                register: Gpr::Rbp,
                offset: 0,
                set: FrameSet::BehindPush,
                described: true,
            });
            shape.release = self.choices.one([Release::Add, Release::Lea, Release::Leave]);
            if framed && self.choices.chance(1, 3) {
                shape.realign = self.choices.one([Realign::To32, Realign::To64]);
            }
        }
        if self.choices.chance(1, 4) {
            shape.wrap = self.choices.one([Wrap::Inside, Wrap::Apart]);
        }
        if self.choices.chance(1, 4) {
            shape.arguments = 2 * self.choices.between(1, u32::from(MAX_ARGUMENTS) / 2) as u8;
        }
        // The difference is visible only after an exit in the middle, which few functions have.
        if self.choices.chance(1, 4) {
            shape.epilogue_cfi = EpilogueCfi::Continued;
        }
    }

    /// Draws a shape of clang: push rax for 8 bytes, rbp as a frame register after its push, lea or
    /// add.
    fn clang(&mut self) -> FunctionShape {
        let mut shape = FunctionShape::default();
        let framed = self.choices.chance(1, 3);
        shape.pushes = self.callee_saved(framed, true);
        shape.locals = if self.choices.chance(1, 3) { 8 } else { self.locals() };
        if framed {
            let set = self.choices.one([FrameSet::AfterAllocation, FrameSet::BeforeAllocation]);
            shape.frame = Some(self.frame(Gpr::Rbp, set));
            shape.release = self.choices.one([Release::Add, Release::Lea]);
        } else if shape.locals == 8 {
            shape.allocation = self.choices.one([Allocation::Push, Allocation::Sub]);
            shape.release = self.choices.one([Release::Pop, Release::Add]);
        }
        self.xmm(&mut shape);
        shape.handler = self.choices.chance(1, 8);
        shape
    }

    /// Draws a shape of gcc, optimised or not: a frame before the allocation and `leave`, or r12
    /// and r13 as frame registers; cold parts with their own UNWIND_INFO.
    fn gcc(&mut self) -> FunctionShape {
        let mut shape = FunctionShape { cold: ColdForm::Separate, ..FunctionShape::default() };
        shape.locals = self.locals();
        match self.choices.below(4) {
            0 => shape.pushes = self.callee_saved(false, false),
            1 => {
                let register = self.choices.one([Gpr::Rbp, Gpr::R12, Gpr::R13]);
                shape.pushes = self.callee_saved(false, false);
                add(&mut shape.pushes, register);
                shape.frame = Some(self.frame(register, FrameSet::AfterAllocation));
                shape.release = self.choices.one([Release::Add, Release::Lea]);
            }
            _ => {
                shape.pushes = self.callee_saved(false, false);
                shape.pushes.retain(|register| *register != Gpr::Rbp);
                shape.pushes.push(Gpr::Rbp);
                let mut frame = self.frame(Gpr::Rbp, FrameSet::BeforeAllocation);
                frame.offset = 0;
                shape.frame = Some(frame);
                shape.release =
                    self.choices.one([Release::Leave, Release::Add, Release::Mov, Release::Lea]);
            }
        }
        if shape.locals >= 0x1000 || self.choices.chance(1, 8) {
            shape.allocation = Allocation::Chkstk;
        }
        shape.scheduled = self.choices.chance(1, 3);
        self.xmm(&mut shape);
        shape
    }

    /// Draws a shape of MSVC: registers in the home space, any frame register with an offset, r11
    /// at the end.
    fn msvc(&mut self) -> FunctionShape {
        let mut shape = FunctionShape::default();
        let nonvolatile = [Gpr::Rbx, Gpr::Rsi, Gpr::Rdi, Gpr::Rbp];
        let arguments = [Gpr::Rcx, Gpr::Rdx, Gpr::R8, Gpr::R9];
        for slot in 0..4 {
            shape.home[slot] = match self.choices.below(4) {
                0 | 1 => None,
                2 => Some(nonvolatile[slot]),
                _ => Some(arguments[slot]),
            };
        }
        shape.pushes = self.callee_saved(false, true);
        shape.locals = self.locals();
        if shape.locals >= 0x1000 {
            shape.allocation = Allocation::Chkstk;
        }
        if self.choices.chance(1, 3) {
            let register = self.nonvolatile();
            shape.home.iter_mut().for_each(|slot| *slot = slot.filter(|r| *r != register));
            add(&mut shape.pushes, register);
            shape.frame = Some(self.frame(register, FrameSet::AfterAllocation));
            shape.release = self.choices.one([Release::Add, Release::Lea, Release::R11]);
        } else {
            shape.release = self.choices.one([Release::Add, Release::R11]);
        }
        self.xmm(&mut shape);
        shape.scheduled = self.choices.chance(1, 4);
        shape.handler = self.choices.chance(1, 4);
        shape.unwind = match self.choices.below(6) {
            3 => UnwindData::Version2,
            4 => UnwindData::Version2WithoutEpilogs,
            5 => UnwindData::Version3,
            _ => UnwindData::Version1,
        };
        shape
    }

    /// Draws a shape of RyuJIT: rbp set at the end of the prologue and mostly not described; pages
    /// touched before the stack grows over them.
    fn ryujit(&mut self) -> FunctionShape {
        let mut shape = FunctionShape::default();
        let framed = self.choices.chance(2, 3);
        shape.pushes = self.callee_saved(framed, true);
        shape.locals = self.locals();
        if framed {
            let mut frame = self.frame(Gpr::Rbp, FrameSet::AfterSaves);
            frame.described = self.choices.chance(1, 3);
            shape.frame = Some(frame);
            shape.release = if frame.described {
                self.choices.one([Release::Lea, Release::Add])
            } else {
                self.choices.one([Release::Add, Release::Lea])
            };
        }
        let pages = shape.locals / 0x1000;
        if shape.locals == 8 {
            shape.allocation = self.choices.one([Allocation::Push, Allocation::Sub]);
        } else if (1..=PROBED_PAGES).contains(&pages) {
            shape.allocation = Allocation::Probes;
        } else if pages > 0 {
            shape.allocation = Allocation::ProbeLoop;
        }
        self.xmm(&mut shape);
        shape.handler = self.choices.chance(1, 3);
        shape
    }

    /// Draws any shape that the rules allow.
    fn anything(&mut self) -> FunctionShape {
        let mut shape = FunctionShape { locals: self.locals(), ..FunctionShape::default() };
        for slot in &mut shape.home {
            if self.choices.chance(1, 4) {
                *slot = self.choices.pick(&Gpr::ALL);
            }
        }
        let most = self.choices.one([0, 2, 5, MAX_PUSHES]);
        // Nonvolatile registers are pushed once, so that twice as many draws mostly fill the list.
        for _ in 0..self.choices.between(0, 2 * most as u32) {
            let register = self.choices.pick(&Gpr::ALL).unwrap_or(Gpr::Rax);
            let again = self.convention.is_nonvolatile(register);
            let again = again && shape.pushes.contains(&register) || register == Gpr::Rsp;
            if shape.pushes.len() < most && !again {
                shape.pushes.push(register);
            }
        }
        if self.choices.chance(1, 3) {
            let nonvolatile = self.convention.nonvolatile();
            shape.saves = self.choices.subset(nonvolatile, 1, 3);
            shape.saves.retain(|register| !shape.pushes.contains(register));
        }
        if self.choices.chance(1, 4) {
            let from = self.choices.below(10) as u8;
            shape.xmm_saves = (0..10).map(|n| 6 + (from + 3 * n) % 10).collect();
            shape.xmm_saves.retain(|_| self.choices.chance(1, 2));
        }
        shape.save_area = self.choices.one([SaveArea::AboveLocals, SaveArea::BelowLocals]);
        shape.allocation = self.choices.one([
            Allocation::Sub,
            Allocation::SubImm32,
            Allocation::Push,
            Allocation::Probes,
            Allocation::ProbeLoop,
            Allocation::Chkstk,
        ]);
        if shape.allocation == Allocation::Probes {
            shape.locals = shape.locals.min((PROBED_PAGES + 1) * 0x1000);
        }
        if self.choices.chance(1, 2) {
            let register = self.nonvolatile();
            add(&mut shape.pushes, register);
            let set = self.choices.one([
                FrameSet::AfterAllocation,
                FrameSet::BeforeAllocation,
                FrameSet::AfterSaves,
            ]);
            let mut frame = self.frame(register, set);
            frame.described = self.choices.chance(2, 3);
            shape.frame = Some(frame);
        }
        shape.release = self.choices.one([
            Release::Add,
            Release::AddImm32,
            Release::Pop,
            Release::Lea,
            Release::LeaDisp32,
            Release::R11,
            Release::Mov,
            Release::Leave,
        ]);
        shape.scheduled = self.choices.chance(1, 3);
        shape.unwind = self.choices.one([
            UnwindData::Version1,
            UnwindData::Version2,
            UnwindData::Version2WithoutEpilogs,
            UnwindData::Version3,
        ]);
        shape.handler = self.choices.chance(1, 3);
        shape.cold = self.choices.one([ColdForm::Chained, ColdForm::Separate]);
        shape
    }

    fn nonvolatile(&mut self) -> Gpr {
        self.choices.pick(self.convention.nonvolatile()).unwrap_or(Gpr::Rbp)
    }

    fn frame(&mut self, register: Gpr, set: FrameSet) -> FrameRegister {
        let offset = match self.choices.below(3) {
            0 => 0,
            1 => self.choices.between(1, 4) as u8,
            _ => self.choices.below(16) as u8,
        };
        FrameRegister { register, offset, set, described: true }
    }

    /// Draws some nonvolatile registers, with rbp first or last if it is wanted.
    fn callee_saved(&mut self, rbp: bool, rbp_first: bool) -> Vec<Gpr> {
        let nonvolatile = self.convention.nonvolatile();
        let mut pushes = match self.choices.below(4) {
            0 => Vec::new(),
            1 => self.choices.subset(nonvolatile, 1, 6),
            2 => self.choices.subset(nonvolatile, 1, 2),
            _ => nonvolatile.to_vec(),
        };
        if self.choices.chance(1, 4) {
            pushes.reverse();
        }
        if rbp {
            pushes.retain(|register| *register != Gpr::Rbp);
            pushes.insert(if rbp_first { 0 } else { pushes.len() }, Gpr::Rbp);
        }
        pushes
    }

    /// Adds saves of some vector registers from xmm6 on, and sometimes of integer registers.
    fn xmm(&mut self, shape: &mut FunctionShape) {
        if repair::forbids_saves(shape) {
            return;
        }
        if self.choices.chance(1, 5) {
            shape.xmm_saves = (6..=self.choices.between(6, 15) as u8).collect();
        }
        if self.choices.chance(1, 8) {
            let nonvolatile = self.convention.nonvolatile();
            shape.saves = self.choices.subset(nonvolatile, 1, 3);
            shape.saves.retain(|register| !shape.pushes.contains(register));
            shape.save_area = self.choices.one([SaveArea::AboveLocals, SaveArea::BelowLocals]);
        }
    }

    /// Draws the bytes of locals: mostly few, sometimes at the limits of encodings, or pages.
    fn locals(&mut self) -> u32 {
        let locals = match self.choices.weighted(&[12, 16, 10, 10, 4, 3, 1]) {
            0 => 0,
            1 => 0x28,
            2 => 8 * self.choices.between(1, 15),
            3 => 8 * self.choices.between(15, 18),
            4 => 8 * self.choices.between(0x10, 0x200),
            5 => 8 * self.choices.between(0x1F0, 0xA00),
            // From 0x80000 bytes on, the size takes three slots of unwind codes.
            _ => self.choices.one([0x7_FFF8, 0x8_0000, 0x1_0008, self.most_locals & !7]),
        };
        locals.min(self.most_locals) & !7
    }
}

/// Adds a register to the pushes unless it is there already.
fn add(pushes: &mut Vec<Gpr>, register: Gpr) {
    if !pushes.contains(&register) {
        pushes.truncate(MAX_PUSHES - 1);
        pushes.push(register);
    }
}
