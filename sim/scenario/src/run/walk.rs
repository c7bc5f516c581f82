//! Bare unwinder walks at stops, and their differences from the expectation and the shadow stack.

use crate::model::{Expectation, UnwindErrorKind, WalkEnd};
use clr_codegen::execution::BASE;
use clr_codegen::shadow_stack::CallerState;
use clr_codegen::{CallingConvention, FunctionIndex, LinkedProgram, PlacedInstruction, Role};
use clr_unwind::compat::Rules;
use clr_unwind::{CodeMap, Gpr, Memory, Position, Registers, Trust, UnwindError, Unwinder};
use thiserror::Error;

/// Maximum number of frames of a walk.
const FRAME_LIMIT: u32 = 1 << 16;

/// A frame that a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFrame {
    /// Register values in the frame.
    pub registers: Registers,
    /// Position of rip: a return address or an interrupted instruction.
    pub position: Position,
    /// Function that contains rip; `None` if there is none.
    pub function: Option<FunctionIndex>,
    /// Distance of rip from the function's first instruction, negative if rip precedes it.
    pub offset: i64,
    /// Role of the instruction in its frame; where rip is a return address, the role of the call.
    pub role: Option<Role>,
    /// Trust of the step to the caller; `None` if the step failed.
    pub trust: Option<Trust>,
}

/// The end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FoundEnd {
    /// The walk reached the caller outside the program.
    #[error("the base")]
    Base,
    /// The step from the last frame failed.
    #[error("{0}")]
    Error(UnwindError),
}

impl FoundEnd {
    /// Returns the end in the form of an expectation.
    #[must_use]
    pub fn kind(self) -> WalkEnd {
        match self {
            Self::Base => WalkEnd::Base,
            Self::Error(error) => WalkEnd::Error(UnwindErrorKind::from(error)),
        }
    }
}

/// The result of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundWalk {
    /// Frames, leaf first. The caller outside the program is not included.
    pub frames: Vec<FoundFrame>,
    /// State in the caller outside the program, if the walk reached it.
    pub base: Option<(Registers, Position)>,
    /// End of the walk after the last frame.
    pub end: FoundEnd,
}

/// A difference between the result of a walk and its expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindDifference {
    /// An expected frame was not found.
    Missing {
        /// Index among the expected frames, from 0.
        frame: usize,
    },
    /// A frame was found that is not expected.
    Surplus {
        /// Index among the frames found, from 0.
        frame: usize,
    },
    /// A frame is in another function.
    Function {
        /// Index of the frame.
        frame: usize,
    },
    /// The step to a frame's caller has another trust.
    Trust {
        /// Index of the frame.
        frame: usize,
    },
    /// A register has another value.
    Register {
        /// Index of the frame.
        frame: usize,
        /// Register that differs.
        register: Gpr,
        /// Expected value.
        expected: u64,
        /// Actual value.
        found: u64,
    },
    /// The walk ended differently.
    End,
}

impl UnwindDifference {
    /// Returns the index of the frame that differs.
    #[must_use]
    pub const fn frame(self) -> Option<usize> {
        match self {
            Self::Missing { frame }
            | Self::Surplus { frame }
            | Self::Function { frame }
            | Self::Trust { frame }
            | Self::Register { frame, .. } => Some(frame),
            Self::End => None,
        }
    }
}

/// The first difference between a walk by precise rules and the shadow stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShadowStackDifference {
    /// The caller of a frame has another rip.
    #[error(
        "the caller of frame {frame} is at {found:#x}, but at {expected:#x} on the shadow stack"
    )]
    Rip {
        /// Index of the frame.
        frame: usize,
        /// rip of the caller in the shadow stack (VA).
        expected: u64,
        /// rip that the walk found (VA).
        found: u64,
    },
    /// A register of the caller has another value.
    #[error(
        "the caller of frame {frame} has {} = {found:#x}, but {expected:#x} on the shadow stack",
        register.name()
    )]
    Register {
        /// Index of the frame.
        frame: usize,
        /// Register that differs.
        register: Gpr,
        /// Value in the shadow stack.
        expected: u64,
        /// Value that the walk found.
        found: u64,
    },
    /// A vector register of the caller has another value.
    #[error(
        "the caller of frame {frame} has xmm{number} = {found:#x}, but {expected:#x} on the shadow stack"
    )]
    Xmm {
        /// Index of the frame.
        frame: usize,
        /// Number of the register.
        number: u8,
        /// Value in the shadow stack.
        expected: u128,
        /// Value that the walk found.
        found: u128,
    },
    /// A return address was taken for an interrupted instruction, or the reverse.
    #[error("the caller of frame {frame} is {found:?}, but {expected:?} on the shadow stack")]
    Position {
        /// Index of the frame.
        frame: usize,
        /// Position of the caller in the shadow stack.
        expected: Position,
        /// Position that the walk found.
        found: Position,
    },
    /// The walk ended before the end of the stack.
    #[error("the walk ends after {found} frames, but the shadow stack has {expected}")]
    Ended {
        /// Number of frames in the shadow stack.
        expected: usize,
        /// Number of frames that the walk found.
        found: usize,
    },
    /// The walk continued past the end of the stack.
    #[error("the walk finds {found} frames, but the shadow stack has {expected}")]
    WentOn {
        /// Number of frames in the shadow stack.
        expected: usize,
        /// Number of frames that the walk found.
        found: usize,
    },
}

/// The start of a walk, with its program, code map and memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a, M> {
    pub(crate) linked: &'a LinkedProgram,
    pub(crate) map: &'a CodeMap<'a>,
    pub(crate) memory: &'a M,
    pub(crate) registers: Registers,
    pub(crate) position: Position,
}

impl<M: Memory> Start<'_, M> {
    /// Walks by one set of rules.
    pub(crate) fn walk(&self, rules: Rules) -> FoundWalk {
        let unwinder = Unwinder::new(self.map).with_rules(rules);
        let (mut registers, mut position) = (self.registers, self.position);
        let mut frames = Vec::new();
        loop {
            if registers.rip == BASE {
                return FoundWalk {
                    frames,
                    base: Some((registers, position)),
                    end: FoundEnd::Base,
                };
            }
            if frames.len() >= FRAME_LIMIT as usize {
                let error = UnwindError::TooManyFrames { limit: FRAME_LIMIT };
                return FoundWalk { frames, base: None, end: FoundEnd::Error(error) };
            }
            let mut frame = self.frame(&registers, position);
            let rsp = registers.rsp();
            let step = unwinder.step(&mut registers, position, self.memory).and_then(|step| {
                let caller_rsp = registers.rsp();
                // Below a machine frame the stack may be another one. Steps by call frame
                // information were checked already: the first one may keep the stack pointer, if
                // the return address is in a register.
                let checked = step.trust == Trust::Cfi;
                if caller_rsp <= rsp && step.caller != Position::Interrupted && !checked {
                    return Err(UnwindError::NoProgress { rsp, caller_rsp });
                }
                Ok(step)
            });
            frame.trust = step.ok().map(|step| step.trust);
            frames.push(frame);
            match step {
                Ok(step) => position = step.caller,
                Err(error) => {
                    return FoundWalk { frames, base: None, end: FoundEnd::Error(error) };
                }
            }
        }
    }

    fn frame(&self, registers: &Registers, position: Position) -> FoundFrame {
        let rip = registers.rip;
        let function = self.linked.function_of(rip, position);
        let entry = function.and_then(|id| self.linked.entries.get(id.index()).copied());
        let inside = rip.wrapping_sub(u64::from(position == Position::ReturnAddress));
        FoundFrame {
            registers: *registers,
            position,
            function,
            offset: entry.map_or(0, |entry| rip.wrapping_sub(entry).cast_signed()),
            role: self.linked.instruction(inside).map(|placed: &PlacedInstruction| placed.role),
            trust: None,
        }
    }
}

impl FoundWalk {
    /// Returns the differences between the walk and an expectation, leaf first.
    #[must_use]
    pub fn differences(&self, expectation: &Expectation) -> Vec<UnwindDifference> {
        let mut differences = Vec::new();
        for (frame, expected) in expectation.frames.iter().enumerate() {
            let Some(found) = self.frames.get(frame) else {
                differences.push(UnwindDifference::Missing { frame });
                continue;
            };
            if found.function != expected.function {
                differences.push(UnwindDifference::Function { frame });
            }
            if expected.trust.is_some() && found.trust != expected.trust {
                differences.push(UnwindDifference::Trust { frame });
            }
            for &(register, expected) in &expected.registers {
                let found = found.registers.get(register);
                if found != expected {
                    differences.push(UnwindDifference::Register {
                        frame,
                        register,
                        expected,
                        found,
                    });
                }
            }
        }
        if expectation.ends != WalkEnd::Any {
            let surplus = expectation.frames.len()..self.frames.len();
            differences.extend(surplus.map(|frame| UnwindDifference::Surplus { frame }));
            if self.end.kind() != expectation.ends {
                differences.push(UnwindDifference::End);
            }
        }
        differences
    }

    /// Returns the first difference from the shadow stack, leaf first. `callers` are given root
    /// first.
    pub(crate) fn shadow_stack_difference(
        &self,
        callers: &[CallerState],
        convention: CallingConvention,
    ) -> Option<ShadowStackDifference> {
        let found = self.frames.iter().skip(1).map(|frame| (frame.registers, frame.position));
        let first = self.frames.is_empty();
        let found = found.chain(self.base.filter(|_| !first));
        for (frame, (caller, (registers, position))) in callers.iter().rev().zip(found).enumerate()
        {
            let difference = differs(frame, caller, &registers, position, convention);
            if difference.is_some() {
                return difference;
            }
        }
        let (expected, found) = (callers.len(), self.frames.len());
        match found.cmp(&expected) {
            core::cmp::Ordering::Greater => Some(ShadowStackDifference::WentOn { expected, found }),
            core::cmp::Ordering::Less => Some(ShadowStackDifference::Ended { expected, found }),
            core::cmp::Ordering::Equal if self.end != FoundEnd::Base => {
                Some(ShadowStackDifference::Ended { expected, found: found.saturating_sub(1) })
            }
            core::cmp::Ordering::Equal => None,
        }
    }
}

/// Returns the first difference between a caller that was found and the actual one, in the
/// registers that a callee preserves.
fn differs(
    frame: usize,
    caller: &CallerState,
    registers: &Registers,
    position: Position,
    convention: CallingConvention,
) -> Option<ShadowStackDifference> {
    let expected = &caller.registers;
    if registers.rip != expected.rip {
        return Some(ShadowStackDifference::Rip {
            frame,
            expected: expected.rip,
            found: registers.rip,
        });
    }
    if position != caller.position {
        return Some(ShadowStackDifference::Position {
            frame,
            expected: caller.position,
            found: position,
        });
    }
    let kept: &[Gpr] = match position {
        Position::ReturnAddress => convention.nonvolatile(),
        Position::Interrupted => &Gpr::ALL,
    };
    for &register in kept.iter().chain(&[Gpr::Rsp]) {
        let (found, expected) = (registers.get(register), expected.get(register));
        if found != expected {
            return Some(ShadowStackDifference::Register { frame, register, expected, found });
        }
    }
    if !convention.has_nonvolatile_xmm() {
        return None;
    }
    let mut xmm = (6..).zip(expected.xmm.into_iter().zip(registers.xmm));
    xmm.find(|(_, (expected, found))| expected != found).map(|(number, (expected, found))| {
        ShadowStackDifference::Xmm { frame, number, expected, found }
    })
}
