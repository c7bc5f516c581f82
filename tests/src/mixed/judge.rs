//! Verdicts on walks: the claims that a walk may make about a thread.

use super::truth::{Leaf, Truth, lacks_metadata};
use clr_codegen::{CallingConvention, FuncletKind};
use clr_reference::{ActivationCode, ExpectedReport, ReferenceActivation, ThreadFacts};
use clr_runtime::MethodKind;
use clr_runtime::Outcome;
use clr_runtime::profiling::{HResult, Policy};
use clr_unwind::{Gpr, Position, Trust, UnwindError};
use clr_walker::mixed::{Completeness, FrameKind, Gap, MixedFrame, MixedStack, Reason, Source};
use thiserror::Error;

/// The result of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The frames, leaf first.
    pub frames: Vec<MixedFrame>,
    /// Gaps, where frames are missing.
    pub gaps: Vec<Gap>,
    /// Result of `DoStackSnapshot`, if it was called.
    pub snapshot: Option<HResult>,
    /// Claimed completeness.
    pub completeness: Completeness,
}

impl From<MixedStack> for Found {
    fn from(stack: MixedStack) -> Self {
        let completeness = stack.completeness();
        let MixedStack { frames, gaps, snapshot, .. } = stack;
        Self { frames, gaps, snapshot, completeness }
    }
}

/// An error in a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// A frame is not on the stack, or no longer, or in another place.
    #[error("frame {0} is not on the stack")]
    Invented(usize),
    /// A frame is reported as something else.
    #[error("frame {frame} is no {found:?}, but {truth:?}")]
    Kind {
        /// Index of the frame in the walk.
        frame: usize,
        /// Reported kind.
        found: FrameKind,
        /// True kind.
        truth: ActivationCode,
    },
    /// The reported position of an ip is wrong.
    #[error("the ip of frame {0} is not a {1:?}")]
    Position(usize, Position),
    /// A frame's registers do not come from the reported source.
    #[error("the registers of frame {0} are not from {1:?}")]
    Source(usize, Source),
    /// A frame is missing where the walk claims that none is.
    #[error("row {activation} is missing before frame {frame}")]
    Missing {
        /// Index of the row in the truth.
        activation: usize,
        /// Index of the walk's frame rootward of the row.
        frame: usize,
    },
    /// The reported reason of a gap is not true.
    #[error("the reason {reason:?} before frame {frame} is not true")]
    Untrue {
        /// Index of the walk's frame rootward of the gap.
        frame: usize,
        /// Reported reason.
        reason: Reason,
    },
    /// The walk reports another result of `DoStackSnapshot` than the required one.
    #[error("the walk reports that DoStackSnapshot returned {found:?}; expected {expected}")]
    Snapshot {
        /// Reported result.
        found: Option<HResult>,
        /// Required result.
        expected: Outcome,
    },
    /// The walk's reported frames are not those that `DoStackSnapshot` must report.
    #[error("the frame of callback {0} does not match what DoStackSnapshot must report")]
    Reported(usize),
    /// The walk claims less than it could.
    #[error("the walk claims only {0:?}")]
    Incomplete(Completeness),
}

/// Returns true if `DoStackSnapshot` hides a row even without exceptions: code without metadata,
/// and funclets that their method has called (C-084).
fn is_hidden(activation: &ReferenceActivation) -> bool {
    activation.funclet == Some(FuncletKind::Handler) || lacks_metadata(activation)
}

/// Returns true if exceptions are in flight: the frames that they have skipped are not reported.
pub(super) fn is_excepted(seen: &ThreadFacts) -> bool {
    let handles = |activation: &ReferenceActivation| {
        matches!(activation.code, ActivationCode::Managed(_, MethodKind::ExceptionHandling))
    };
    seen.exceptions.count > 0 || seen.activations.iter().any(handles)
}

/// A walk that is compared with the thread's true state.
struct Judged<'j> {
    truth: &'j Truth,
    policy: Policy,
    found: &'j Found,
    /// The rows of the frames.
    activations: Vec<usize>,
    capacity: usize,
}

/// Compares a walk with the thread's true state.
///
/// # Errors
/// The first error in the walk.
pub fn judge(truth: &Truth, policy: Policy, found: &Found, capacity: usize) -> Result<(), Wrong> {
    let mut judged = Judged { truth, policy, found, activations: Vec::new(), capacity };
    if policy == Policy::FramePointers {
        return judged.guesses();
    }
    judged.frames()?;
    judged.reasons()?;
    judged.snapshot()?;
    judged.completeness()
}

impl Judged<'_> {
    fn activation(&self, activation: usize) -> Option<&ReferenceActivation> {
        self.truth.seen.activations.get(activation)
    }

    fn has_gap(&self, at: usize) -> bool {
        self.found.gaps.iter().any(|gap| gap.at == at)
    }

    /// Checks that each frame is a row, in order, and that no row is missing without a reason.
    fn frames(&mut self) -> Result<(), Wrong> {
        let mut activation = 0;
        for (frame, found) in self.found.frames.iter().enumerate() {
            let at = self.place_of(found, activation).or_else(|| self.pretended(frame));
            let at = at.ok_or(Wrong::Invented(frame))?;
            self.missing(activation..at, frame)?;
            self.is_fact(frame, at)?;
            self.activations.push(at);
            activation = at + 1;
        }
        self.missing(activation..self.truth.seen.activations.len(), self.found.frames.len())
    }

    /// Checks a walk that guesses by frame pointers. Only the thread's own registers may be marked
    /// as certain. Guessed frames need not be rows; a frame that is one must have its kind.
    fn guesses(&self) -> Result<(), Wrong> {
        let claim = self.found.completeness;
        if claim != Completeness::Partial(Reason::FramePointers) {
            return Err(Wrong::Incomplete(claim));
        }
        let mut leafward = None;
        for (frame, found) in self.found.frames.iter().enumerate() {
            let activation = self.place_of(found, 0);
            let (first, source) = (frame == 0, found.source);
            let is_marked = match source {
                Source::Context => first && activation == Some(0),
                Source::Unwound(Trust::FramePointer) => !first,
                Source::Unwound(_) | Source::Snapshot | Source::CallFrame => false,
            };
            if !is_marked || found.reported {
                return Err(Wrong::Source(frame, source));
            }
            if leafward.replace(found.sp).is_some_and(|leafward| found.sp <= leafward) {
                return Err(Wrong::Invented(frame));
            }
            let truth = activation
                .and_then(|activation| Some((activation, self.activation(activation)?.code)));
            if let Some((activation, truth)) = truth
                && !self.is_kind(found, activation, truth)
            {
                return Err(Wrong::Kind { frame, found: found.kind, truth });
            }
        }
        if self.found.frames.is_empty() {
            Err(Wrong::Missing { activation: 0, frame: 0 })
        } else {
            Ok(())
        }
    }

    /// Returns the index of a frame's row in the truth, searching from `first` on.
    fn place_of(&self, frame: &MixedFrame, first: usize) -> Option<usize> {
        // For calls out of ready-to-run code, the runtime reports another return address (C-156).
        let reported =
            frame.source == Source::Snapshot && matches!(frame.kind, FrameKind::Managed(_));
        let is = |index: usize, activation: &ReferenceActivation| {
            let same = activation.registers.rip == frame.ip
                || reported && self.is_kind(frame, index, activation.code);
            same && activation.registers.rsp() == frame.sp
        };
        let mut activations = self.truth.seen.activations.iter().enumerate().skip(first);
        activations.find(|(index, activation)| is(*index, activation)).map(|(at, _)| at)
    }

    /// Returns the row that appears to have called a redirected thread's code. Its frame is in
    /// another place, since only the runtime knows the row's registers; and the runtime does not
    /// report the row if it refuses to walk or hides the method.
    fn pretended(&self, frame: usize) -> Option<usize> {
        let activation = self
            .truth
            .redirected
            .filter(|activation| self.activations.last() == Some(activation))?
            + 1;
        let registers = &self.activation(activation)?.registers;
        let tells = |frame: &MixedFrame| frame.reported && frame.sp == registers.rsp();
        let reported = self.found.frames.iter().any(tells);
        (registers.rip == self.found.frames.get(frame)?.ip && !reported).then_some(activation)
    }

    /// Returns true if a frame is that of the pretended caller, whose place differs from its row's.
    fn is_misplaced(&self, frame: usize) -> bool {
        let activation =
            self.activations.get(frame).and_then(|activation| self.activation(*activation));
        activation
            .is_some_and(|activation| activation.registers.rsp() != self.found.frames[frame].sp)
    }

    /// Returns true if a frame's kind is that of a row.
    fn is_kind(&self, frame: &MixedFrame, activation: usize, code: ActivationCode) -> bool {
        let known = self.truth.known[activation];
        let is_stub = |kind| matches!(kind, MethodKind::IlStub | MethodKind::Dynamic);
        // Code without metadata looks like the code around it, unless a call reports it.
        let is_nameless = match code {
            ActivationCode::Unmanaged => true,
            ActivationCode::Managed(_, kind) => is_stub(kind),
        };
        match (frame.kind, code) {
            (FrameKind::Managed(found), ActivationCode::Managed(id, kind)) => {
                found == id && !is_stub(kind)
            }
            (FrameKind::Hidden(Some(found)), ActivationCode::Managed(id, kind)) => {
                found == id && is_stub(kind)
            }
            (FrameKind::Hidden(None), _) => is_nameless && known.unwinds && !known.in_image,
            (FrameKind::Native { image, rva }, _) => {
                is_nameless && known.in_image && image + u64::from(rva) == frame.ip
            }
            (FrameKind::Unknown, _) => {
                is_nameless && !known.unwinds || self.truth.refuses_lookups(self.policy)
            }
            _ => false,
        }
    }

    /// Checks that rows which the walk left out before a frame may be missing.
    fn missing(&self, activations: std::ops::Range<usize>, frame: usize) -> Result<(), Wrong> {
        if activations.is_empty() || self.has_gap(frame) {
            return Ok(());
        }
        let hides =
            !matches!(self.found.completeness, Completeness::Whole | Completeness::Guessed(_));
        // The native leaf runs on while the runtime is suspended.
        let leaf_runs = frame == 0 && self.policy == Policy::RuntimeSuspended;
        for activation in activations {
            if leaf_runs && self.activation(activation).is_some_and(|leaf| !leaf.is_managed()) {
                continue;
            }
            let is_hidden = self.activation(activation).is_some_and(is_hidden);
            if !(hides && (is_hidden || is_excepted(&self.truth.seen))) {
                return Err(Wrong::Missing { activation, frame });
            }
        }
        Ok(())
    }

    /// Checks that all properties of a frame are those of `activation`.
    fn is_fact(&self, frame: usize, activation: usize) -> Result<(), Wrong> {
        let found = &self.found.frames[frame];
        let truth = &self.truth.seen.activations[activation];
        if !self.is_kind(found, activation, truth.code) {
            return Err(Wrong::Kind { frame, found: found.kind, truth: truth.code });
        }
        // Callbacks do not report the position (C-091).
        if self.truth.redirected.is_some_and(|redirected| redirected + 1 == activation) {
            return Ok(());
        }
        if found.source != Source::Snapshot && found.position != truth.position {
            return Err(Wrong::Position(frame, found.position));
        }
        let is_so = match found.source {
            Source::Context => frame == 0 && activation == 0,
            // The frame is the caller of the frame before it, with no row between.
            Source::Unwound(trust) => {
                let callee =
                    self.activations.last().copied().filter(|callee| callee + 1 == activation);
                callee.is_some_and(|callee| !self.has_gap(frame) && self.gives(callee, trust))
            }
            Source::Snapshot => found.reported,
            // A Frame of the runtime has led on from code that has no unwind data.
            Source::CallFrame => self.has_gap(frame),
        };
        if is_so { Ok(()) } else { Err(Wrong::Source(frame, found.source)) }
    }

    /// Returns true if a row's caller can be found with this trust.
    fn gives(&self, activation: usize, trust: Trust) -> bool {
        let Some(callee) = self.activation(activation) else { return false };
        let interrupted = callee.position == Position::Interrupted;
        let is_elf = self.truth.seen.generation.is_unix() && !callee.is_managed();
        let caller_interrupted = self
            .activation(activation + 1)
            .is_some_and(|caller| caller.position == Position::Interrupted);
        let probing =
            activation.checked_sub(1).is_some_and(|callee| self.truth.known[callee].probes);
        let rule = match trust {
            Trust::Body => true,
            Trust::Prologue => interrupted || probing,
            Trust::EpilogueCodes | Trust::EpilogueInstructions | Trust::Leaf | Trust::KnownCode => {
                interrupted
            }
            Trust::Cfi => is_elf,
            Trust::SignalFrame => is_elf && caller_interrupted,
            Trust::Stub => activation == 0 && (self.truth.is_in_stub() || self.truth.dispatches),
            Trust::StackTop => activation == 0 && self.truth.is_entered_by_a_method(),
            // Code of a stub that no map has.
            Trust::FollowedCode => activation == 0 && self.truth.is_in_stub(),
            // The simulator makes no Mach-O images, and its call frame information is right.
            Trust::FramePointer
            | Trust::Compact
            | Trust::CompactAssumed
            | Trust::ReturnInstruction => false,
        };
        // The walk has resolved the hijack (C-077).
        let hijacked = self.truth.hijacked.is_some_and(|(at, _)| at == activation);
        rule && (matches!(trust, Trust::Stub | Trust::StackTop | Trust::FollowedCode)
            || self.truth.can_be_left(activation)
            || hijacked && self.found.snapshot.is_some())
    }

    /// Checks that the reason of each gap is the true one.
    fn reasons(&self) -> Result<(), Wrong> {
        for gap in &self.found.gaps {
            if !self.is_true(gap) {
                return Err(Wrong::Untrue { frame: gap.at, reason: gap.reason });
            }
        }
        Ok(())
    }

    fn is_true(&self, gap: &Gap) -> bool {
        let truth = self.truth;
        // The row at which unwinding ended, and the row before which the gap ends.
        let before = gap.at.checked_sub(1);
        let leaf = before.and_then(|frame| self.activations.get(frame).copied());
        let next = self.activations.get(gap.at).copied().unwrap_or(truth.seen.activations.len());
        let is_missing = next > leaf.map_or(0, |activation| activation + 1);
        match gap.reason {
            Reason::NotUnwound => {
                let marker = before.and_then(|frame| self.found.frames.get(frame));
                let marker = marker.is_none_or(|frame| {
                    frame.reported && !matches!(frame.kind, FrameKind::Managed(_))
                });
                self.policy == Policy::Unseeded && marker
            }
            Reason::FramePointers => self.policy == Policy::FramePointers && gap.at == 0,
            Reason::Unwind(UnwindError::UnknownCode { address }) => leaf.is_some_and(|leaf| {
                !truth.known[leaf].unwinds && truth.seen.activations[leaf].registers.rip == address
            }),
            Reason::Unwind(UnwindError::LostRegister { register, address }) => {
                let at = before.filter(|frame| self.found.frames[*frame].ip == address);
                at.is_some_and(|frame| self.is_lost(frame, register))
            }
            // Three kinds of addresses do not follow a call: a hijacked return address; the word on
            // the stack at the target of a hijacked return, which is no return address yet; and
            // the interrupted instruction that a redirected thread pretends to have come from.
            Reason::NotACall { address } => leaf.is_some_and(|leaf| {
                let pretends = truth.redirected == Some(leaf)
                    && self
                        .activation(leaf + 1)
                        .is_some_and(|activation| activation.registers.rip == address);
                // The return address of the pretended caller need not follow a call either, since
                // the caller's registers are wrong.
                let pretended = before.is_some_and(|frame| self.is_misplaced(frame));
                let trips = truth.tripped == Some(leaf);
                truth.hijacked == Some((leaf, address)) || trips || pretends || pretended
            }),
            Reason::Snapshot(result) => {
                is_missing && result != HResult::OK && self.found.snapshot == Some(result)
            }
            Reason::Suspend(result) => {
                self.policy == Policy::RuntimeSuspended && truth.suspend == Some(result)
            }
            Reason::Unreported => is_missing && gap.at == self.found.frames.len(),
            Reason::Lookup(result) => {
                result == HResult::ASYNCHRONOUS_UNSAFE && truth.refuses_lookups(self.policy)
            }
            Reason::BufferFull => self.found.frames.len() >= self.capacity,
            // None of these occurs in a world.
            Reason::NotStopped
            | Reason::StaleContext
            | Reason::Unwind(_)
            | Reason::OutsideStack { .. }
            | Reason::Disagreement { .. }
            | Reason::Seed(_) => false,
        }
    }

    /// Returns true if no source gives a register's value in a frame. The runtime reports only rsp
    /// and rbp of the first method that a Frame leads to, which matters until a frame after it has
    /// saved the register (contract §3.7); and no source gives a volatile register.
    fn is_lost(&self, frame: usize, register: Gpr) -> bool {
        let generation = self.truth.seen.generation;
        let convention = if generation.is_unix() {
            CallingConvention::SystemV
        } else {
            CallingConvention::WindowsX64
        };
        let activation = self.activations[frame];
        if !convention.is_nonvolatile(register) {
            return self.truth.seen.activations[activation].position == Position::ReturnAddress;
        }
        let frames = &self.found.frames;
        let reported = frames[..=frame].iter().rposition(|frame| frame.source == Source::Snapshot);
        let Some(reported) = reported else { return false };
        let last = frames[..reported].iter().rfind(|frame| frame.reported);
        let follows_managed = last.is_some_and(|last| matches!(last.kind, FrameKind::Managed(_)));
        let is_marker = !matches!(frames[reported].kind, FrameKind::Managed(_));
        let bit = 1 << register as u16;
        let mut between =
            self.truth.seen.activations[self.activations[reported]..activation].iter();
        // A method may have saved nothing yet where it was interrupted.
        let saved = between.any(|activation| {
            activation.position == Position::ReturnAddress && activation.saves.0 & bit != 0
        });
        !(follows_managed || is_marker || saved || [Gpr::Rsp, Gpr::Rbp].contains(&register))
    }

    /// Checks that the walk has all callbacks that the runtime must make, and no others.
    fn snapshot(&self) -> Result<(), Wrong> {
        let Some(found) = self.found.snapshot else { return Ok(()) };
        let stub = [Trust::Stub, Trust::StackTop, Trust::FollowedCode].map(Source::Unwound);
        let left = self.found.frames.get(1).is_some_and(|frame| stub.contains(&frame.source));
        // A walk is free to make or not to make a seed from code that it knows nothing about.
        let ways: &[Leaf] = if left {
            &[Leaf::StubThenSeeds, Leaf::CallerSeeds, Leaf::Stub]
        } else {
            &[Leaf::Seeds, Leaf::Unknown]
        };
        let first = self.snapshot_from(ways[0], found);
        let mut others = ways[1..].iter().map(|way| self.snapshot_from(*way, found));
        first.or_else(|wrong| others.find(Result::is_ok).unwrap_or(Err(wrong)))
    }

    fn snapshot_from(&self, leaf: Leaf, found: HResult) -> Result<(), Wrong> {
        let Some(expected) = self.truth.expected(self.policy, leaf) else { return Ok(()) };
        if expected.outcome != Outcome::Returned(found) {
            let found = Some(found);
            return Err(Wrong::Snapshot { found, expected: expected.outcome });
        }
        if self.found.gaps.iter().any(|gap| gap.reason == Reason::BufferFull) {
            return Ok(());
        }
        let reported = self.found.frames.iter().zip(&self.activations);
        let mut reported = reported.filter(|(frame, _)| frame.reported);
        for (number, callback) in expected.callbacks.iter().enumerate() {
            let ExpectedReport { function, activation, context } = callback;
            let is = |frame: &MixedFrame| {
                let is_kind = match (frame.kind, function) {
                    (FrameKind::Managed(found), Some(function)) => found == *function,
                    (kind, None) => !matches!(kind, FrameKind::Managed(_)),
                    _ => false,
                };
                is_kind && frame.sp == context.registers.rsp()
            };
            if !reported.next().is_some_and(|(frame, at)| at == activation && is(frame)) {
                return Err(Wrong::Reported(number));
            }
        }
        match reported.next() {
            Some(_) => Err(Wrong::Reported(expected.callbacks.len())),
            None => Ok(()),
        }
    }

    /// Returns true if unwinding ended at jitted code that the runtime never names, or for a
    /// register that the runtime does not report after such code.
    fn is_beyond(&self, reason: Reason) -> bool {
        let address = match reason {
            Reason::Unwind(UnwindError::UnknownCode { address }) => address,
            Reason::Unwind(UnwindError::LostRegister { .. }) => return true,
            _ => return false,
        };
        let mut activations = self.truth.seen.activations.iter();
        activations.find(|activation| activation.registers.rip == address).is_some_and(
            |activation| activation.code == ActivationCode::Unmanaged || is_hidden(activation),
        )
    }

    /// Returns true if a walk that asks the runtime nothing claims what it can: everything, unless
    /// the stack misleads it or the leaf is in unknown code that has more on the stack than its
    /// return address.
    fn is_all_without_the_runtime(&self, claim: Completeness) -> bool {
        let Truth { redirected, hijacked, tripped, ref seen, .. } = *self.truth;
        match claim {
            Completeness::Whole
            | Completeness::Guessed(Trust::StackTop)
            | Completeness::Partial(Reason::BufferFull) => true,
            Completeness::Partial(Reason::NotACall { .. }) => {
                redirected.is_some() || hijacked.is_some() || tripped.is_some()
            }
            Completeness::Partial(Reason::Unwind(UnwindError::UnknownCode { address })) => {
                let mut rows = seen.activations.iter().enumerate();
                let row = rows.find(|(_, activation)| activation.registers.rip == address);
                row.is_some_and(|(row, _)| {
                    let is_left = row == 0 && self.truth.is_entered_by_a_method();
                    !self.truth.known[row].unwinds && !is_left
                })
            }
            _ => false,
        }
    }

    /// Checks that the walk claims what it can: all of a Windows stack; and on Unix at least the
    /// reportable frames, if the stack has no jitted code that is never named. Only the runtime
    /// knows the caller of a redirected thread's code, and the target of a hijacked return.
    fn completeness(&self) -> Result<(), Wrong> {
        let seen = &self.truth.seen;
        let unix = seen.generation.is_unix();
        let calm = self.found.snapshot == Some(HResult::OK) && !is_excepted(seen);
        let claim = self.found.completeness;
        let Truth { redirected, hijacked, tripped, .. } = self.truth;
        let misleads = redirected.is_some() || hijacked.is_some() || tripped.is_some();
        // In cooperative mode the runtime accepts the seed that is the pretended caller.
        let calm = calm && !(redirected.is_some() && seen.cooperative);
        let enough = match (self.policy, claim) {
            (_, Completeness::WithoutLeaf) => self.policy == Policy::RuntimeSuspended,
            (Policy::Signal, _) => self.is_all_without_the_runtime(claim),
            _ if !calm => true,
            (_, Completeness::Partial(Reason::NotACall { .. })) if misleads => true,
            (_, Completeness::Whole) => true,
            (Policy::Seeded, _) | (Policy::SignalSnapshot, Completeness::Reportable) => unix,
            (Policy::SignalSnapshot, Completeness::Partial(reason)) => {
                unix && self.is_beyond(reason)
            }
            _ => true,
        };
        if enough { Ok(()) } else { Err(Wrong::Incomplete(claim)) }
    }
}
