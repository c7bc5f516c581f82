//! What a call gave, held against what is expected. Where labels and true registers come from does
//! not matter here: a stack placed by hand has them, and so has a program that was executed.

use super::snapshot::{ExpectedFlags, ExpectedOutcome, ExpectedShot, ExpectedSnapshot, Stale};
use clr_runtime::Outcome;
use clr_walker::registers::{Gpr, Registers};
use clr_world::synthetic::Shot;
use core::fmt;
use thiserror::Error;

/// A callback that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundShot {
    /// What it got.
    pub shot: Shot,
    /// The name of the function whose FunctionID it got; `None` for a marker.
    pub function: Option<String>,
    /// The registers of the activation that it is about, where that is known: its nonvolatile
    /// registers must be these (C-098).
    pub truth: Option<Registers>,
}

/// How the calls ended that were made within the callbacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundNested {
    /// How each ended.
    pub outcomes: Vec<Outcome>,
    /// How many callbacks they made.
    pub callbacks: usize,
}

/// What contexts must be like, whatever is expected of the call; what is `None` is not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextRules {
    /// The call asks for contexts (C-092).
    pub wanted: bool,
    /// Their size in bytes, where there are any.
    pub size: Option<u32>,
    /// Their ContextFlags, if the expectation says nothing of them.
    pub flags: Option<u32>,
    /// ContextFlags of the context that the runtime takes of a stopped thread.
    pub own_flags: u32,
    /// The registers that the walk started with.
    pub start: Option<Registers>,
    /// The nonvolatile registers.
    pub nonvolatile: &'static [Gpr],
}

/// The callbacks of a call, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSnapshot {
    /// The callbacks, in order.
    pub shots: Vec<FoundShot>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the nested calls gave, in the order of the calls.
    pub nested: Vec<FoundNested>,
    /// What its contexts must be like.
    pub rules: ContextRules,
}

/// Something that is not as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SnapshotDifference {
    /// An expected callback was not made.
    #[error("expected callback {frame} is not made")]
    Missing {
        /// Its place among the expected ones, from 0.
        frame: usize,
    },
    /// A callback was made that is not expected.
    #[error("callback {shot} is not expected")]
    Surplus {
        /// Its place among those made, from 0.
        shot: usize,
    },
    /// A callback is about something else.
    #[error("callback {shot} is about something else")]
    Place {
        /// The callback.
        shot: usize,
    },
    /// A callback got the FunctionID of another function than its ip is in.
    #[error("callback {shot} has the FunctionID of another function than its ip")]
    Function {
        /// The callback.
        shot: usize,
    },
    /// A callback got a context though none was asked for, or the other way round.
    #[error("callback {shot} has a context and should have none, or the other way round")]
    Context {
        /// The callback.
        shot: usize,
    },
    /// `contextSize` is another one.
    #[error("callback {shot} has contextSize {found:#x}, expected {expected:#x}")]
    ContextSize {
        /// The callback.
        shot: usize,
        /// What it should be.
        expected: u32,
        /// What it is.
        found: u32,
    },
    /// ContextFlags are others.
    #[error("callback {shot} has ContextFlags {found:#x}, expected {expected:#x}")]
    ContextFlags {
        /// The callback.
        shot: usize,
        /// What they should be.
        expected: u32,
        /// What they are.
        found: u32,
    },
    /// rip of the context is not the callback's ip.
    #[error("callback {shot} has rip {found:#x}, but ip {expected:#x}")]
    Rip {
        /// The callback.
        shot: usize,
        /// Its ip.
        expected: u64,
        /// rip of its context.
        found: u64,
    },
    /// A register holds something else.
    #[error("callback {shot} has {} {found:#x}, expected {expected:#x}", register.name())]
    Register {
        /// The callback.
        shot: usize,
        /// The register.
        register: Gpr,
        /// What it should hold.
        expected: u64,
        /// What it holds.
        found: u64,
    },
    /// The call ended in another way.
    #[error("expected: {expected}; found: {found}")]
    Outcome {
        /// How it should.
        expected: ExpectedOutcome,
        /// How it did.
        found: Outcome,
    },
    /// A nested call ended in another way.
    #[error("nested call {call}: expected: {expected}; found: {found}")]
    Nested {
        /// Which call, from 0.
        call: usize,
        /// How it should.
        expected: ExpectedOutcome,
        /// How it did.
        found: Outcome,
    },
    /// A nested call made callbacks.
    #[error("nested call {call} makes callbacks")]
    NestedCallbacks {
        /// Which call, from 0.
        call: usize,
    },
}

impl SnapshotDifference {
    /// The callback that it is about, if it is about one that was made.
    #[must_use]
    pub const fn shot(self) -> Option<usize> {
        match self {
            Self::Surplus { shot }
            | Self::Place { shot }
            | Self::Function { shot }
            | Self::Context { shot }
            | Self::ContextSize { shot, .. }
            | Self::ContextFlags { shot, .. }
            | Self::Rip { shot, .. }
            | Self::Register { shot, .. } => Some(shot),
            Self::Missing { .. }
            | Self::Outcome { .. }
            | Self::Nested { .. }
            | Self::NestedCallbacks { .. } => None,
        }
    }
}

impl FoundShot {
    /// Whether it is what is expected, registers apart.
    #[must_use]
    pub fn is_at(&self, expected: &ExpectedShot) -> bool {
        let inside = || self.shot.label.rsplit_once("+0x").map_or("", |(function, _)| function);
        let label = expected.label.as_deref();
        expected.marker == self.shot.function.is_none()
            && label.is_none_or(|label| label == self.shot.label || label == inside())
    }

    /// Whether the given registers hold what they should.
    fn has_registers(&self, expected: &ExpectedShot) -> bool {
        let registers = self.shot.context.map(|context| context.registers).unwrap_or_default();
        expected.registers.iter().all(|(register, value)| registers.get(*register) == *value)
    }

    /// The name that its label gives the function: without the version of its code.
    fn function_of_label(&self) -> &str {
        let label = &self.shot.label;
        let function = label.rsplit_once("+0x").map_or(label.as_str(), |(function, _)| function);
        function.split('@').next().unwrap_or(function)
    }
}

impl ExpectedSnapshot {
    /// What is not as expected, in the order of the callbacks.
    #[must_use]
    pub fn differences(&self, found: &FoundSnapshot) -> Vec<SnapshotDifference> {
        let mut differences = Vec::new();
        let pairs = self.pairs(found, &mut differences);
        for (shot, (made, frame)) in found.shots.iter().zip(&pairs).enumerate() {
            let frame = frame.and_then(|frame| self.frames.get(frame));
            self.context(shot, made, frame, &found.rules, &mut differences);
        }
        for (call, (expected, nested)) in self.nested.iter().zip(&found.nested).enumerate() {
            let expected = *expected;
            let other = nested.outcomes.iter().find(|outcome| !expected.is(**outcome));
            let other =
                other.map(|found| SnapshotDifference::Nested { call, expected, found: *found });
            differences.extend(other);
            if nested.callbacks > 0 {
                differences.push(SnapshotDifference::NestedCallbacks { call });
            }
        }
        if !self.result.is(found.outcome) {
            let (expected, found) = (self.result, found.outcome);
            differences.push(SnapshotDifference::Outcome { expected, found });
        }
        differences
    }

    /// Which expected callback each one made is.
    fn pairs(
        &self,
        found: &FoundSnapshot,
        differences: &mut Vec<SnapshotDifference>,
    ) -> Vec<Option<usize>> {
        let mut pairs = vec![None; found.shots.len()];
        if self.others {
            let mut shots = found.shots.iter().zip(&mut pairs);
            for (frame, expected) in self.frames.iter().enumerate() {
                let is = |shot: &FoundShot| shot.is_at(expected) && shot.has_registers(expected);
                match shots.find(|(shot, _)| is(shot)) {
                    Some((_, pair)) => *pair = Some(frame),
                    None => differences.push(SnapshotDifference::Missing { frame }),
                }
            }
            return pairs;
        }
        for (shot, (made, pair)) in found.shots.iter().zip(&mut pairs).enumerate() {
            match self.frames.get(shot) {
                Some(expected) if made.is_at(expected) => *pair = Some(shot),
                Some(_) => differences.push(SnapshotDifference::Place { shot }),
                None => differences.push(SnapshotDifference::Surplus { shot }),
            }
        }
        let missing = found.shots.len()..self.frames.len();
        differences.extend(missing.map(|frame| SnapshotDifference::Missing { frame }));
        pairs
    }

    /// Holds a callback's context against what is expected and what contexts must be like.
    fn context(
        &self,
        shot: usize,
        made: &FoundShot,
        frame: Option<&ExpectedShot>,
        rules: &ContextRules,
        differences: &mut Vec<SnapshotDifference>,
    ) {
        if made.function.as_deref().is_some_and(|name| name != made.function_of_label()) {
            differences.push(SnapshotDifference::Function { shot });
        }
        let size = if rules.wanted { rules.size } else { Some(0) };
        if let Some(expected) = size.filter(|size| *size != made.shot.context_size) {
            let found = made.shot.context_size;
            differences.push(SnapshotDifference::ContextSize { shot, expected, found });
        }
        if made.shot.context.is_some() != rules.wanted {
            differences.push(SnapshotDifference::Context { shot });
        }
        let Some(context) = made.shot.context else {
            let given = frame.is_some_and(|frame| !frame.registers.is_empty());
            if given && !rules.wanted {
                differences.push(SnapshotDifference::Context { shot });
            }
            return;
        };
        let flags = frame.and_then(|frame| frame.context_flags).or(self.context_flags);
        let flags = flags.map(|flags| match flags {
            ExpectedFlags::Own => rules.own_flags,
            ExpectedFlags::Value(flags) => flags,
        });
        if let Some(expected) = flags.or(rules.flags).filter(|flags| *flags != context.flags) {
            let found = context.flags;
            differences.push(SnapshotDifference::ContextFlags { shot, expected, found });
        }
        let registers = context.registers;
        if registers.rip != made.shot.ip {
            let (expected, found) = (made.shot.ip, registers.rip);
            differences.push(SnapshotDifference::Rip { shot, expected, found });
        }
        let mut check = |register: Gpr, expected: u64| {
            let found = registers.get(register);
            if found != expected {
                let other = SnapshotDifference::Register { shot, register, expected, found };
                differences.push(other);
            }
        };
        for (register, value) in frame.iter().flat_map(|frame| &frame.registers) {
            check(*register, *value);
        }
        let is_given = |register: &&Gpr| {
            frame.is_some_and(|frame| frame.registers.iter().any(|(given, _)| given == *register))
        };
        // Nothing on a walk sets rax (C-158), but for Frames that know all registers.
        if let Some(start) = rules.start.filter(|_| !is_given(&&Gpr::Rax)) {
            check(Gpr::Rax, start.get(Gpr::Rax));
        }
        let Some(truth) = made.truth else { return };
        let stale = frame.map_or(&Stale::None, |frame| &frame.stale);
        if let (Stale::Only(registers), Some(start)) = (stale, rules.start) {
            let volatile = |register: &&Gpr| !rules.nonvolatile.contains(register);
            registers.iter().filter(volatile).for_each(|one| check(*one, start.get(*one)));
        }
        for register in rules.nonvolatile.iter().filter(|register| !is_given(register)) {
            match rules.start {
                Some(start) if stale.contains(*register) => {
                    check(*register, start.get(*register));
                }
                _ => check(*register, truth.get(*register)),
            }
        }
    }
}

/// The callbacks with their ip and rsp, one in a line, and how it ended.
impl fmt::Display for FoundSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for FoundShot { shot, .. } in &self.shots {
            writeln!(f, "{shot}")?;
        }
        writeln!(f, "{}", self.outcome)
    }
}
