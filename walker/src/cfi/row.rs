//! Rows of call frame information as DWARF has them: what holds from one address to the next.

use super::error::FrameSection;
use crate::registers::Gpr;
use core::ops::Range;

/// A column of the table of registers: a register by its DWARF number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Column(pub u16);

/// The integer registers in the order of DWARF's numbers (System V psABI, figure 3.36).
const DWARF_ORDER: [Gpr; 16] = [
    Gpr::Rax,
    Gpr::Rdx,
    Gpr::Rcx,
    Gpr::Rbx,
    Gpr::Rsi,
    Gpr::Rdi,
    Gpr::Rbp,
    Gpr::Rsp,
    Gpr::R8,
    Gpr::R9,
    Gpr::R10,
    Gpr::R11,
    Gpr::R12,
    Gpr::R13,
    Gpr::R14,
    Gpr::R15,
];

impl Column {
    /// rip; also the usual column of the return address.
    pub const RIP: Self = Self(16);

    /// The integer register that it is.
    #[inline]
    #[must_use]
    pub fn gpr(self) -> Option<Gpr> {
        DWARF_ORDER.get(usize::from(self.0)).copied()
    }
}

impl From<Gpr> for Column {
    fn from(register: Gpr) -> Self {
        const NUMBERS: [u16; 16] = {
            let mut numbers = [0; 16];
            let mut number = 0;
            while number < 16 {
                numbers[DWARF_ORDER[number] as usize] = number as u16;
                number += 1;
            }
            numbers
        };
        Self(NUMBERS[register as usize])
    }
}

/// An expression in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// The section.
    pub section: FrameSection,
    /// Where it begins there.
    pub offset: u32,
    /// Its length in bytes.
    pub len: u32,
}

/// How the canonical frame address is found: rsp as it was before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CfaRule {
    /// A register plus a distance in bytes.
    Register {
        /// The register.
        register: Column,
        /// The distance.
        offset: i32,
    },
    /// What an expression gives.
    Expression(Expression),
}

/// How the caller's value of a register is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterRule {
    /// It cannot be; of the return address: this is the outermost frame.
    Undefined,
    /// It is the frame's.
    SameValue,
    /// In memory, so many bytes from the canonical frame address.
    Offset(i32),
    /// It is the canonical frame address plus so many bytes.
    ValOffset(i32),
    /// It is the frame's value of another register.
    Register(Column),
    /// In memory, at what an expression gives.
    Expression(Expression),
    /// It is what an expression gives.
    ValExpression(Expression),
}

/// What holds in a range of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The range (RVAs). Where neighbours say the same, they may be one row.
    pub range: Range<u32>,
    /// The canonical frame address.
    pub cfa: CfaRule,
    /// The rules of the integer registers, by encoding; `None` where nothing is said, which means
    /// the same value, or of rsp the canonical frame address.
    pub registers: [Option<RegisterRule>; 16],
    /// The rule of the return address.
    pub return_address: Option<RegisterRule>,
    /// Whether this is the trampoline that a signal handler returns to.
    pub signal_frame: bool,
}
