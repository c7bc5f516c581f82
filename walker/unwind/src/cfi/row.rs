//! Rows of call frame information in DWARF's terms.

use super::error::FrameSection;
use crate::registers::Gpr;
use core::ops::Range;

/// A column of DWARF's table of registers: a register by its DWARF number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Column(pub u16);

/// The integer registers in the order of DWARF's numbers (System V psABI, figure 3.36).
const DWARF_ORDER: [Gpr; 16] = {
    use Gpr::{R8, R9, R10, R11, R12, R13, R14, R15, Rax, Rbp, Rbx, Rcx, Rdi, Rdx, Rsi, Rsp};
    [Rax, Rdx, Rcx, Rbx, Rsi, Rdi, Rbp, Rsp, R8, R9, R10, R11, R12, R13, R14, R15]
};

impl Column {
    /// rip, which is also the usual column of the return address.
    pub const RIP: Self = Self(16);

    /// Returns the integer register of this column, or `None` for any other column.
    #[inline]
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
    /// The section with the expression.
    pub section: FrameSection,
    /// Offset of the expression in the section.
    pub offset: u32,
    /// Length of the expression in bytes.
    pub len: u32,
}

/// The rule for the canonical frame address: rsp as it was before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CfaRule {
    /// A register plus an offset in bytes.
    Register {
        /// The register.
        register: Column,
        /// The offset in bytes.
        offset: i32,
    },
    /// The result of an expression.
    Expression(Expression),
}

/// The rule for the caller's value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterRule {
    /// The value is lost. For the return address: this is the outermost frame.
    Undefined,
    /// The value is the frame's.
    SameValue,
    /// The value is in memory, N bytes from the canonical frame address.
    Offset(i32),
    /// The value is the canonical frame address plus N bytes.
    ValOffset(i32),
    /// The value is the frame's value of another register.
    Register(Column),
    /// The value is in memory, at the address that an expression computes.
    Expression(Expression),
    /// The value is the result of an expression.
    ValExpression(Expression),
}

/// The rules for a range of code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The range (RVAs). Neighbouring ranges with the same rules may be one row.
    pub range: Range<u32>,
    /// The rule for the canonical frame address.
    pub cfa: CfaRule,
    /// The rules for the integer registers, by encoding; `None` without a rule, which means the
    /// same value, or for rsp the canonical frame address.
    pub registers: [Option<RegisterRule>; 16],
    /// The rule for the return address.
    pub return_address: Option<RegisterRule>,
    /// True if the code is the trampoline that a signal handler returns to.
    pub signal_frame: bool,
}
