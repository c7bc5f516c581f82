//! Rules in the compiled form: what a step does, without an instruction left to interpret.

use super::error::{CfiError, CfiProblem};
use super::expression::{Failure, Machine};
use super::row::{CfaRule, Column, Expression, RegisterRule};
use super::table::CfiTable;
use crate::memory::Memory;
use crate::registers::{Convention, Gpr, RegisterSet, Registers};
use crate::unwind::{Position, Step, Trust, UnwindError};

/// Registers that a simple rule restores at most: the six that System V has callees preserve, and
/// one more.
const MAX_LOADS: usize = 7;

/// A register in the upper 4 bits, and how many 8-byte units below the canonical frame address it
/// is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load(u16);

impl Load {
    fn new(register: u8, offset: i32) -> Option<Self> {
        let below = u16::try_from(offset.checked_neg()? / 8).ok()?;
        let fits = offset % 8 == 0 && 0 < below && below < 1 << 12;
        fits.then_some(Self(u16::from(register) << 12 | below))
    }

    #[inline]
    const fn register(self) -> usize {
        (self.0 >> 12) as usize
    }

    /// Distance below the canonical frame address in bytes.
    #[inline]
    const fn below(self) -> u16 {
        (self.0 & 0xFFF) * 8
    }
}

/// The rule of nearly all code: the canonical frame address is a register plus a constant, the return
/// address lies right below it, and registers are saved further below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Rule {
    loads: [Load; MAX_LOADS],
    count: u8,
    cfa_register: u8,
    cfa_offset: i32,
    /// Bytes from the lowest saved register to the canonical frame address.
    window: u16,
    /// The registers that are loaded, as bits by encoding.
    found: u16,
}

/// What native code preserves unless more is said.
pub(super) const NONVOLATILE: RegisterSet = Convention::SystemV.nonvolatile();

/// Multiplied by it, numbers that differ in few bits differ in many.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Where the return address is in nearly all code.
pub(super) const USUAL_RETURN_ADDRESS: RegisterRule = RegisterRule::Offset(-8);

impl Rule {
    /// The rule that saves nothing, as yet without a canonical frame address.
    pub(super) fn new() -> Self {
        Self { window: 8, ..Self::default() }
    }

    /// The same rule with this canonical frame address.
    #[inline]
    pub(super) fn with_cfa(self, cfa: CfaRule) -> Option<Self> {
        let CfaRule::Register { register, offset } = cfa else { return None };
        let cfa_register = register.gpr()?.number();
        Some(Self { cfa_register, cfa_offset: offset, ..self })
    }

    /// Adds what is said of the register with this encoding; `None` if that is of another form.
    #[inline]
    pub(super) fn with(mut self, register: u8, rule: RegisterRule) -> Option<Self> {
        match rule {
            // Of a volatile register that is worth saying, but hardly anyone does.
            RegisterRule::SameValue if NONVOLATILE.contains(Gpr::from_number(register)) => {
                (register != Gpr::Rsp.number()).then_some(self)
            }
            RegisterRule::Offset(offset) if register != Gpr::Rsp.number() => {
                let load = Load::new(register, offset)?;
                *self.loads.get_mut(usize::from(self.count))? = load;
                self.count += 1;
                self.window = self.window.max(load.below());
                self.found |= 1 << (register & 15);
                Some(self)
            }
            _ => None,
        }
    }

    /// What the saved registers have to do with [`hash`](Self::hash).
    pub(super) fn hash_of_saved(&self) -> u64 {
        let mix = |all: u64, load: &Load| (all ^ u64::from(load.0)).wrapping_mul(FACTOR);
        self.loads.iter().take(usize::from(self.count)).fold(0, mix)
    }

    /// A number that is the same for the same rules and rarely for others.
    #[inline]
    pub(super) fn hash(&self, of_saved: u64) -> u64 {
        let cfa = u64::from(self.cfa_register) << 32 | u64::from(self.cfa_offset.cast_unsigned());
        let mixed = (of_saved ^ cfa).wrapping_mul(FACTOR);
        mixed ^ mixed >> 32
    }

    pub(super) fn cfa(&self) -> CfaRule {
        let register = Column::from(Gpr::from_number(self.cfa_register));
        CfaRule::Register { register, offset: self.cfa_offset }
    }

    /// Registers by encoding, and where they are saved.
    pub(super) fn saved(&self) -> impl Iterator<Item = (usize, RegisterRule)> + '_ {
        let loads = self.loads.iter().take(usize::from(self.count));
        loads.map(|load| (load.register(), RegisterRule::Offset(-i32::from(load.below()))))
    }

    /// Makes the step.
    #[expect(clippy::inline_always, reason = "measured: a Step in memory costs 2 ns")]
    #[inline(always)]
    pub(in super::super) fn apply<M: Memory + ?Sized>(
        &self,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let rsp = registers.rsp();
        let base = registers.gpr[usize::from(self.cfa_register & 15)];
        let cfa = base.wrapping_add_signed(self.cfa_offset.into());
        if cfa <= rsp {
            return Err(UnwindError::NoProgress { rsp, caller_rsp: cfa });
        }
        let len = usize::from(self.window);
        if let Some(window) = memory.window(cfa.wrapping_sub(self.window.into()), len) {
            let word = |below: usize| {
                let at = len.wrapping_sub(below);
                let bytes = window.get(at..).and_then(<[u8]>::first_chunk);
                bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
            };
            for load in self.loads.iter().take(usize::from(self.count)) {
                registers.gpr[load.register() & 15] = word(load.below().into());
            }
            registers.rip = word(8);
        } else {
            self.load(cfa, registers, memory)?;
        }
        registers.set(Gpr::Rsp, cfa);
        let found = RegisterSet::from_gpr_bits(self.found).with(Gpr::Rsp);
        Ok(Step {
            trust: Trust::Cfi,
            establisher_frame: cfa,
            handler: None,
            caller: Position::ReturnAddress,
            found,
            kept: NONVOLATILE.difference(found),
            needed: RegisterSet::from_gpr_bits(1 << (self.cfa_register & 15)),
        })
    }

    /// Loads all but rsp one by one, where memory does not show its bytes.
    fn load<M: Memory + ?Sized>(
        &self,
        cfa: u64,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<(), UnwindError> {
        let mut gpr = registers.gpr;
        let rip = memory.read_u64(cfa.wrapping_sub(8))?;
        for load in self.loads.iter().take(usize::from(self.count)) {
            let address = cfa.wrapping_sub(load.below().into());
            gpr[load.register() & 15] = memory.read_u64(address)?;
        }
        (registers.gpr, registers.rip) = (gpr, rip);
        Ok(())
    }
}

/// A rule of any other form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GeneralRule {
    pub(super) cfa: CfaRule,
    pub(super) return_address: Option<RegisterRule>,
    pub(super) signal_frame: bool,
    /// Which of the table's register rules are its own: the first, and how many.
    pub(super) registers: (u32, u8),
    /// Where the entry is that it comes from.
    pub(super) place: Place,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) section: super::error::FrameSection,
    pub(super) offset: u32,
}

impl Place {
    pub(super) const fn error(self, problem: CfiProblem) -> CfiError {
        CfiError { problem, section: self.section, offset: self.offset }
    }
}

impl GeneralRule {
    /// Makes the step.
    pub(super) fn apply<M: Memory + ?Sized>(
        &self,
        table: &CfiTable<'_>,
        slide: u64,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let machine = Machine::new(registers, memory, slide);
        let frame = Frame { table, place: self.place, machine };
        let cfa = match self.cfa {
            CfaRule::Register { register, offset } => {
                frame.register(register)?.wrapping_add_signed(offset.into())
            }
            CfaRule::Expression(expression) => frame.evaluate(expression, None)?,
        };
        let mut gpr = registers.gpr;
        gpr[Gpr::Rsp as usize] = cfa;
        let mut found = RegisterSet::of(&[Gpr::Rsp]);
        // What interrupts at will must preserve all.
        let preserved = if self.signal_frame { RegisterSet::of(&Gpr::ALL) } else { NONVOLATILE };
        let mut kept = preserved.without(Gpr::Rsp);
        for (register, rule) in table.register_rules(self.registers) {
            let (register, before) = (*register, registers.get(*register));
            // An undefined register is lost; what it held is no worse than any other value.
            gpr[register as usize] = frame.value(*rule, cfa)?.unwrap_or(before);
            (found, kept) = (found.without(register), kept.without(register));
            match rule {
                RegisterRule::Undefined => {}
                RegisterRule::SameValue => kept = kept.with(register),
                _ => found = found.with(register),
            }
        }
        let rip = match self.return_address {
            Some(RegisterRule::Undefined) => {
                return Err(UnwindError::EndOfStack { address: registers.rip });
            }
            Some(RegisterRule::SameValue) | None => {
                return Err(self.place.error(CfiProblem::NoReturnAddress).into());
            }
            Some(rule) => frame.value(rule, cfa)?.unwrap_or(0),
        };
        let (rsp, caller_rsp) = (registers.rsp(), gpr[Gpr::Rsp as usize]);
        // What a signal interrupted may have another stack. A function that was interrupted may have
        // taken its return address off the stack, as vfork does.
        let stays = position == Position::Interrupted
            && matches!(self.return_address, Some(RegisterRule::Register(_)));
        let goes_up = caller_rsp > rsp || (stays && caller_rsp == rsp);
        if !goes_up && !self.signal_frame {
            return Err(UnwindError::NoProgress { rsp, caller_rsp });
        }
        let needed = frame.machine.needed();
        (registers.gpr, registers.rip) = (gpr, rip);
        Ok(Step {
            trust: if self.signal_frame { Trust::SignalFrame } else { Trust::Cfi },
            establisher_frame: cfa,
            handler: None,
            caller: Position::below(self.signal_frame),
            found,
            kept,
            needed,
        })
    }
}

/// A frame whose caller's values are computed.
struct Frame<'f, 't, M: ?Sized> {
    table: &'f CfiTable<'t>,
    place: Place,
    machine: Machine<'f, M>,
}

impl<M: Memory + ?Sized> Frame<'_, '_, M> {
    fn register(&self, column: Column) -> Result<u64, UnwindError> {
        Ok(self.machine.register(column).map_err(|problem| self.place.error(problem))?)
    }

    /// The caller's value of a register; `None` if it is undefined or the same.
    fn value(&self, rule: RegisterRule, cfa: u64) -> Result<Option<u64>, UnwindError> {
        let read = |address| self.machine.memory.read_u64(address);
        Ok(Some(match rule {
            RegisterRule::Undefined | RegisterRule::SameValue => return Ok(None),
            RegisterRule::Offset(offset) => read(cfa.wrapping_add_signed(offset.into()))?,
            RegisterRule::ValOffset(offset) => cfa.wrapping_add_signed(offset.into()),
            RegisterRule::Register(column) => self.register(column)?,
            RegisterRule::Expression(expression) => read(self.evaluate(expression, Some(cfa))?)?,
            RegisterRule::ValExpression(expression) => self.evaluate(expression, Some(cfa))?,
        }))
    }

    fn evaluate(&self, expression: Expression, cfa: Option<u64>) -> Result<u64, UnwindError> {
        let code = self.table.expression(expression);
        self.machine.evaluate(code, cfa).map_err(|failure| match failure {
            Failure::Memory(error) => error,
            Failure::Expression(problem) => {
                let Expression { section, offset, .. } = expression;
                CfiError { problem, section, offset }.into()
            }
        })
    }
}
