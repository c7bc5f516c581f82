//! A walk at a stop, and how it differs from what is expected and from the truth.

use super::expect::{Expectation, UnwindErrorKind, WalkEnd};
use clr_codegen::execution::BASE;
use clr_codegen::shadow_stack::Caller;
use clr_codegen::{Convention, FunctionId, LinkedProgram, PlacedInstruction, Role};
use clr_walker::code_map::CodeMap;
use clr_walker::memory::Memory;
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::{Position, Rules, Trust, UnwindError, Unwinder};
use thiserror::Error;

/// The most frames that a walk takes.
const FRAME_LIMIT: u32 = 1 << 16;

/// A frame that a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFrame {
    /// Its registers.
    pub registers: Registers,
    /// What its rip is.
    pub position: Position,
    /// Its function, if it is in one.
    pub function: Option<FunctionId>,
    /// How far its rip lies from the function's first instruction, which may be behind it.
    pub offset: i64,
    /// What the instruction does for its frame: the call's, where rip is a return address.
    pub role: Option<Role>,
    /// How its caller was found; `None` if the step failed.
    pub trust: Option<Trust>,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FoundEnd {
    /// It came to the caller outside the program.
    #[error("the base")]
    Base,
    /// The step from the last frame failed.
    #[error("{0}")]
    Error(UnwindError),
}

impl FoundEnd {
    /// The same as in an expectation.
    #[must_use]
    pub fn kind(self) -> WalkEnd {
        match self {
            Self::Base => WalkEnd::Base,
            Self::Error(error) => WalkEnd::Error(UnwindErrorKind::from(error)),
        }
    }
}

/// What a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundWalk {
    /// The frames, innermost first. The caller outside the program is not among them.
    pub frames: Vec<FoundFrame>,
    /// Where a walk that came to the base ended.
    pub base: Option<(Registers, Position)>,
    /// What came behind the last of them.
    pub end: FoundEnd,
}

/// Something that is not as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// An expected frame was not found.
    Missing {
        /// Its place among the expected ones.
        frame: usize,
    },
    /// A frame was found that is not expected.
    Surplus {
        /// Its place among those found.
        frame: usize,
    },
    /// A frame is in another function.
    Function {
        /// The frame.
        frame: usize,
    },
    /// A frame's caller was found in another way.
    Trust {
        /// The frame.
        frame: usize,
    },
    /// A register holds something else.
    Register {
        /// The frame.
        frame: usize,
        /// The register.
        register: Gpr,
        /// What it should hold.
        expected: u64,
        /// What it holds.
        found: u64,
    },
    /// The walk ended in another way.
    End,
}

impl Difference {
    /// The frame that it is about.
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

/// Where a walk by precise rules first left the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Untrue {
    /// A frame's caller is another one.
    #[error("the caller of frame {frame} is at {found:#x}, truly at {truth:#x}")]
    Rip {
        /// The frame.
        frame: usize,
        /// The caller's rip.
        truth: u64,
        /// What the walk found.
        found: u64,
    },
    /// The caller's register held something else.
    #[error("the caller of frame {frame} has {} = {found:#x}, truly {truth:#x}", register.name())]
    Register {
        /// The frame.
        frame: usize,
        /// The register.
        register: Gpr,
        /// What it held.
        truth: u64,
        /// What the walk found.
        found: u64,
    },
    /// The caller's vector register held something else.
    #[error("the caller of frame {frame} has xmm{number} = {found:#x}, truly {truth:#x}")]
    Xmm {
        /// The frame.
        frame: usize,
        /// The register's number.
        number: u8,
        /// What it held.
        truth: u128,
        /// What the walk found.
        found: u128,
    },
    /// A return address was taken for an interrupted place, or the other way round.
    #[error("the caller of frame {frame} is {found:?}, truly {truth:?}")]
    Position {
        /// The frame.
        frame: usize,
        /// What the caller's rip is.
        truth: Position,
        /// What the walk found.
        found: Position,
    },
    /// The walk ended before the stack did.
    #[error("the walk ends behind {found} frames, truly there are {truth}")]
    Ended {
        /// How many frames there are.
        truth: usize,
        /// How many the walk found.
        found: usize,
    },
    /// The walk went on behind the stack's end.
    #[error("the walk finds {found} frames, truly there are {truth}")]
    WentOn {
        /// How many frames there are.
        truth: usize,
        /// How many the walk found.
        found: usize,
    },
}

/// Where a walk starts, and in what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a, M> {
    pub(super) linked: &'a LinkedProgram,
    pub(super) map: &'a CodeMap<'a>,
    pub(super) memory: &'a M,
    pub(super) registers: Registers,
    pub(super) position: Position,
}

impl<M: Memory> Start<'_, M> {
    /// Walks by one set of rules.
    pub(super) fn walk(&self, rules: Rules) -> FoundWalk {
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
                // Below a machine frame the stack may be another one. Steps by call frame information
                // have been checked: the first may leave the stack pointer where it is, if the return
                // address is in a register.
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
    /// What is not as expected, from the innermost frame out.
    #[must_use]
    pub fn differences(&self, expectation: &Expectation) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (frame, expected) in expectation.frames.iter().enumerate() {
            let Some(found) = self.frames.get(frame) else {
                differences.push(Difference::Missing { frame });
                continue;
            };
            if found.function != expected.function {
                differences.push(Difference::Function { frame });
            }
            if expected.trust.is_some() && found.trust != expected.trust {
                differences.push(Difference::Trust { frame });
            }
            for &(register, expected) in &expected.registers {
                let found = found.registers.get(register);
                if found != expected {
                    differences.push(Difference::Register { frame, register, expected, found });
                }
            }
        }
        if expectation.ends != WalkEnd::Any {
            let surplus = expectation.frames.len()..self.frames.len();
            differences.extend(surplus.map(|frame| Difference::Surplus { frame }));
            if self.end.kind() != expectation.ends {
                differences.push(Difference::End);
            }
        }
        differences
    }

    /// Where it first leaves the truth: the callers, the outermost one first.
    pub(super) fn untrue(&self, callers: &[Caller], convention: Convention) -> Option<Untrue> {
        let found = self.frames.iter().skip(1).map(|frame| (frame.registers, frame.position));
        let first = self.frames.is_empty();
        let found = found.chain(self.base.filter(|_| !first));
        for (frame, (caller, (registers, position))) in callers.iter().rev().zip(found).enumerate()
        {
            let untrue = differs(frame, caller, &registers, position, convention);
            if untrue.is_some() {
                return untrue;
            }
        }
        let (truth, found) = (callers.len(), self.frames.len());
        match found.cmp(&truth) {
            core::cmp::Ordering::Greater => Some(Untrue::WentOn { truth, found }),
            core::cmp::Ordering::Less => Some(Untrue::Ended { truth, found }),
            core::cmp::Ordering::Equal if self.end != FoundEnd::Base => {
                Some(Untrue::Ended { truth, found: found.saturating_sub(1) })
            }
            core::cmp::Ordering::Equal => None,
        }
    }
}

/// How a found caller differs from the true one in what a callee preserves.
fn differs(
    frame: usize,
    caller: &Caller,
    registers: &Registers,
    position: Position,
    convention: Convention,
) -> Option<Untrue> {
    let truth = &caller.registers;
    if registers.rip != truth.rip {
        return Some(Untrue::Rip { frame, truth: truth.rip, found: registers.rip });
    }
    if position != caller.position {
        return Some(Untrue::Position { frame, truth: caller.position, found: position });
    }
    let kept: &[Gpr] = match position {
        Position::ReturnAddress => convention.nonvolatile(),
        Position::Interrupted => &Gpr::ALL,
    };
    for &register in kept.iter().chain(&[Gpr::Rsp]) {
        let (found, truth) = (registers.get(register), truth.get(register));
        if found != truth {
            return Some(Untrue::Register { frame, register, truth, found });
        }
    }
    if !convention.has_nonvolatile_xmm() {
        return None;
    }
    let mut xmm = (6..).zip(truth.xmm.into_iter().zip(registers.xmm));
    xmm.find(|(_, (truth, found))| truth != found).map(|(number, (truth, found))| Untrue::Xmm {
        frame,
        number,
        truth,
        found,
    })
}
