//! Layout of a function's frame.

use super::program::{Function, Statement};
use super::shape::{CallingConvention, EntryForm, FrameSet, FunctionShape, Realign, SaveArea};
use clr_unwind::Gpr;

/// The layout of a function's frame. Offsets count bytes from the value of rsp after the fixed
/// allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameLayout {
    /// Size in bytes of the home space for callees, which is at offset 0.
    pub outgoing: u32,
    /// Offset of the slot that keeps the frame's own rsp for its funclets (the PSPSym).
    pub psp: Option<u32>,
    /// Offset of the loops' counters: 8 bytes each.
    pub counters: u32,
    /// Offset of the saves of regions: 8 bytes for each register of each region.
    pub region_saves: u32,
    /// Offset of the locals.
    pub locals: u32,
    /// Registers saved by mov, with their offsets.
    pub saves: Vec<(Gpr, u32)>,
    /// Saved vector registers, with their offsets.
    pub xmm_saves: Vec<(u8, u32)>,
    /// Size of the fixed allocation in bytes.
    pub allocation: u32,
    /// Size of the pushed registers in bytes.
    pub pushed: u32,
    /// Size in bytes of the data on the stack at the first instruction: the return address, or the
    /// machine frame with its error code.
    pub entry: u32,
}

impl FrameLayout {
    /// Creates the layout of a valid function's frame.
    pub fn new(function: &Function, convention: CallingConvention) -> Self {
        let Function { shape, body, .. } = function;
        let needs = Needs::of(body);
        let mut at = 0;
        let mut take = |bytes: u32| {
            let start = at;
            at = u32::saturating_add(at, bytes);
            start
        };
        let outgoing = if needs.calls { convention.home_space() } else { 0 };
        take(outgoing);
        let psp = needs.funclets.then(|| take(8));
        let counters = take(8 * needs.loops);
        let region_saves = take(8 * needs.region_saves);
        let (mut saves, mut xmm_saves, mut locals) = (Vec::new(), Vec::new(), 0);
        for part in 0..2 {
            if (part == 0) == (shape.save_area == SaveArea::BelowLocals) {
                saves.extend(shape.saves.iter().map(|register| (*register, take(8))));
                if !shape.xmm_saves.is_empty() {
                    let misaligned = take(0) % 16;
                    take((16 - misaligned) % 16);
                }
                xmm_saves.extend(shape.xmm_saves.iter().map(|n| (*n, take(16))));
            } else {
                locals = take(shape.locals);
            }
        }
        let entry = match shape.entry {
            EntryForm::Call | EntryForm::Signal => 8,
            EntryForm::Interrupt => 40,
            EntryForm::InterruptWithErrorCode => 48,
        };
        // A realigned function copies its return address and pushes r10, which holds the CFA.
        let copied = u32::from(shape.realign != Realign::No);
        let pushed = 8 * (shape.all_pushes(convention).count() as u32 + copied);
        // A function that calls or saves vector registers must align the stack.
        if needs.calls || needs.moves_rsp || !xmm_saves.is_empty() {
            let misaligned = (entry + pushed + take(0)) % 16;
            take((16 - misaligned) % 16);
        }
        let allocation = take(0);
        Self {
            outgoing,
            psp,
            counters,
            region_saves,
            locals,
            saves,
            xmm_saves,
            allocation,
            pushed,
            entry,
        }
    }

    /// Returns the distance in bytes from the origin of the offsets to the caller's rsp: the CFA.
    /// In a realigned function the CFA is the end of the copied return address.
    pub const fn cfa(&self) -> u32 {
        self.allocation + self.pushed + self.entry
    }

    /// Returns the establisher frame (VA) that funclets get as their argument. `caller_rsp` is the
    /// caller's rsp after the call has returned (VA).
    pub fn establisher(&self, caller_rsp: u64) -> u64 {
        caller_rsp.wrapping_sub(self.cfa().into())
    }

    /// Returns the establisher frame for a funclet that is called by a funclet of the function. The
    /// slot of either will do.
    pub fn funclet_establisher(&self, caller_rsp: u64) -> u64 {
        caller_rsp.wrapping_sub((self.funclet_allocation() + self.pushed + 8).into())
    }

    /// Returns the size of a funclet's fixed allocation in bytes.
    pub fn funclet_allocation(&self) -> u32 {
        // The rest after the pushes and the return address aligns the stack.
        let taken = self.psp.unwrap_or(0) + 8;
        taken + (16 - (8 + self.pushed + taken) % 16) % 16
    }

    /// Returns the offset of home slot `slot`.
    pub const fn home(&self, slot: u32) -> u32 {
        self.allocation + self.pushed + self.entry + 8 * slot
    }

    /// Returns the frame register and the offset from the origin that it points to.
    pub fn frame_register(&self, shape: &FunctionShape) -> Option<(Gpr, u32)> {
        let frame = shape.frame?;
        let below = match frame.set {
            FrameSet::BeforeAllocation => self.allocation,
            FrameSet::BehindPush => {
                let copied = u32::from(shape.realign != Realign::No);
                self.allocation + 8 * (shape.pushes_behind_frame() + copied)
            }
            FrameSet::AfterAllocation | FrameSet::AfterSaves => 0,
        };
        Some((frame.register, below + 16 * u32::from(frame.offset)))
    }
}

impl FunctionShape {
    /// Returns all registers that the prologue pushes, in order. The volatile registers of an
    /// interrupt handler come before those of the shape.
    pub(super) fn all_pushes(
        &self,
        convention: CallingConvention,
    ) -> impl DoubleEndedIterator<Item = Gpr> + '_ {
        let volatile = if self.entry.has_machine_frame() { convention.volatile() } else { &[] };
        volatile.iter().chain(&self.pushes).copied()
    }
}

/// The requirements that a body puts on its frame.
#[derive(Default)]
struct Needs {
    calls: bool,
    funclets: bool,
    moves_rsp: bool,
    loops: u32,
    region_saves: u32,
}

impl Needs {
    fn of(body: &[Statement]) -> Self {
        let mut needs = Self::default();
        needs.add(body);
        needs
    }

    fn add(&mut self, body: &[Statement]) {
        for statement in body {
            match statement {
                Statement::Call(..) | Statement::Throw => self.calls = true,
                Statement::SwitchStack(_) | Statement::Alloca(_) => {
                    self.calls = true;
                    self.moves_rsp = true;
                }
                Statement::Loop(_, body) => {
                    self.loops += 1;
                    self.add(body);
                }
                Statement::If(_, body) | Statement::Cold(body) => self.add(body),
                Statement::Region(registers, body) => {
                    self.region_saves += registers.len() as u32;
                    self.add(body);
                }
                Statement::Funclet(body) => {
                    self.calls = true;
                    self.funclets = true;
                    self.add(body);
                }
                Statement::Guarded(..) => {
                    self.calls = true;
                    self.funclets = true;
                    statement.bodies().for_each(|body| self.add(body));
                }
                Statement::Try(body, catch) => {
                    self.add(body);
                    self.add(catch);
                }
                Statement::Clobber(_)
                | Statement::ClobberXmm(_)
                | Statement::Store(_)
                | Statement::Work(_)
                | Statement::Exit(_)
                | Statement::Trap(_)
                | Statement::Runtime(_)
                | Statement::Stop => {}
                Statement::Primitive(primitive) => {
                    self.calls |= primitive.calls();
                    self.add(primitive.body().unwrap_or_default());
                }
            }
        }
    }
}
