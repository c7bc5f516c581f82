//! The difference between an unwound frame and the truth.

use clr_codegen::shadow_stack::CallerState;
use clr_codegen::{CfiMistake, FunctionIndex, WindowsMistake};
use clr_unwind::{Gpr, Position, Registers};
use std::fmt;
use thiserror::Error;

/// An unwound frame that differs from the truth.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Wrong {
    /// Number of instructions executed before.
    pub executed: u64,
    /// rip at the boundary (VA).
    pub rip: u64,
    /// Number of frames unwound correctly before.
    pub depth: usize,
    /// The frame's own registers.
    pub frame: Registers,
    /// The frame's function, with the offset of rip.
    pub function: Option<(FunctionIndex, u64)>,
    /// The frame's true caller.
    pub truth: CallerState,
    /// Result of unwinding.
    pub answer: Result<(Registers, Position), String>,
    /// The reason why the answer is expected to be wrong here, if it is.
    pub expected: Option<Mistake>,
}

/// A reason why an answer is expected to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Windows' rules are wrong.
    Windows(WindowsMistake),
    /// The call frame information is wrong.
    Cfi(CfiMistake),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} instructions, at {:#x}, ", self.executed, self.rip)?;
        write!(f, "frame {} at {:#x}", self.depth, self.frame.rip)?;
        if let Some((function, offset)) = self.function {
            write!(f, " (function {} + {offset:#x})", function.0)?;
        }
        match &self.answer {
            Err(error) => write!(f, ": {error}")?,
            Ok((answer, position)) => {
                let truth = &self.truth.registers;
                write!(f, ":")?;
                if answer.rip != truth.rip {
                    write!(f, " rip {:#x}, truly {:#x};", answer.rip, truth.rip)?;
                }
                for register in Gpr::ALL {
                    let (got, truly) = (answer.get(register), truth.get(register));
                    if got != truly {
                        write!(f, " {} {got:#x}, truly {truly:#x};", register.name())?;
                    }
                }
                for (n, (got, truly)) in (6..).zip(answer.xmm.iter().zip(truth.xmm)) {
                    if *got != truly {
                        write!(f, " xmm{n} {got:#x}, truly {truly:#x};")?;
                    }
                }
                if *position != self.truth.position {
                    write!(f, " {position:?}, truly {:?}", self.truth.position)?;
                }
            }
        }
        match self.expected {
            Some(Mistake::Windows(mistake)) => {
                write!(f, " (Windows is expected to be wrong: {mistake:?})")
            }
            Some(Mistake::Cfi(mistake)) => {
                write!(f, " (call frame information is expected to be wrong: {mistake:?})")
            }
            None => Ok(()),
        }
    }
}
