//! A model of calls for whole stages, from the table of their rows: it reads no memory and unwinds
//! nothing.
//!
//! The rules are those of contract §2.2 and §3.12, applied to the table. Cases that would need a
//! second implementation of the frame iterator are left out ([`expected`] returns `None`): a writer
//! of the code manager, a seed that is not a row's, an exception handler whose parent's row is not
//! reached, or one that meets a region that the current exception has unwound. Refusals of calls
//! are modelled for misplaced Frames, too. A [`Mistake`] can be planted.

use super::Mistake;
use super::runtimes::{hides_exception_handling, is_framework_2};
use super::whole::{self, is_told};
use clr_generate::SyntheticCall;
use clr_runtime::Outcome;
use clr_runtime::frame::FrameShape;
use clr_runtime::generation::Os;
use clr_runtime::profiling::HResult;
use clr_runtime::{
    ContextSafety, Funclet, MethodKind, Pass, ProfilerStatus, Suspension, ThreadLife,
};
use clr_walker::profiling::{EventMask, ThreadId};
use clr_world::synthetic::{
    CodeLocation, MANAGED_WALKER, SELF, SELF_OBJECT, SyntheticFrame, SyntheticThread, WALKER_OBJECT,
};

/// Expectation for a call whose callback accepts all frames.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// The reported rows: as a frame if they are managed, else as a marker.
    pub activations: Vec<usize>,
    /// Number of rows before the first Frame, whose registers are all known.
    pub certain: usize,
    /// Outcome of the call.
    pub outcome: Outcome,
}

impl Expected {
    const fn refused(outcome: Outcome) -> Self {
        Self { activations: Vec::new(), certain: 0, outcome }
    }
}

enum Start {
    Chain,
    Row(usize),
}

/// Returns the expectation for a call, if the model has one.
pub(super) fn expected(case: &SyntheticCall, mistake: Option<Mistake>) -> Option<Expected> {
    if !case.target.overwritten.is_empty() {
        return None;
    }
    let writer = case.target.process.code_manager_writer;
    if writer.is_some_and(|writer| writer != case.caller) {
        return None;
    }
    let (start, suspended) = match enter(case)? {
        Ok(start) => start,
        Err(outcome) => return Some(Expected::refused(outcome)),
    };
    let is_own = case.thread == SELF_OBJECT || case.thread == ThreadId(0) && case.caller == SELF;
    if !is_own {
        // The other thread of the runtime has never run any code.
        return Some(Expected::refused(HResult::FAIL.into()));
    }
    walk(&case.target, &whole::targets(&case.target)?, &start, suspended, mistake)
}

/// Performs the ordered checks. Returns the start of the walk, with true if the call suspends the
/// target; or the outcome of a refused call; or `None` if the model does not cover the call.
fn enter(case: &SyntheticCall) -> Option<Result<(Start, bool), Outcome>> {
    let (synthetic, process) = (&case.target, &case.target.process);
    let is_2 = is_framework_2(synthetic.generation.family());
    let is_unix = synthetic.generation.family().os == Os::Unix;
    let refuse = |result: HResult| Some(Err(result.into()));
    if process.profiler == ProfilerStatus::Detaching && !is_2 {
        return refuse(HResult::PROFILER_DETACHING);
    }
    if !process.started {
        return refuse(HResult::UNSAFE);
    }
    let asked = process.event_mask.contains(EventMask::ENABLE_STACK_SNAPSHOT);
    if !asked || process.profiler == ProfilerStatus::None {
        let wrong = if is_2 { HResult::INVALID_ARGUMENT } else { HResult::INCONSISTENT_WITH_FLAGS };
        return refuse(wrong);
    }
    if !matches!(case.flags.0, 0 | 1) {
        return refuse(HResult::INVALID_ARGUMENT);
    }
    let caller = match case.caller {
        SELF => Some(SELF_OBJECT),
        MANAGED_WALKER => Some(WALKER_OBJECT),
        _ => None,
    };
    let target = if case.thread == ThreadId(0) { caller } else { Some(case.thread) };
    let Some(target) = target else { return refuse(HResult::OK) };
    let is_own = target == SELF_OBJECT;
    if !is_own && target != WALKER_OBJECT {
        return None;
    }
    if is_own && synthetic.gc_special && !is_2 || !process.gc_initialized {
        return refuse(HResult::OK);
    }
    let other = caller != Some(target);
    let suspending = matches!(process.suspension, Suspension::Suspending(_));
    if is_own && synthetic.hijack_locked
        || other && caller.is_some() && suspending
        || is_own && synthetic.forbid_suspend != 0
    {
        return refuse(HResult::UNSAFE);
    }
    let suspends = other && !process.suspended_by_profiler;
    if suspends && is_unix {
        return refuse(HResult::NOT_IMPLEMENTED);
    }
    if suspends && is_own && synthetic.life != ThreadLife::Running {
        let code = HResult::INVALID_TARGET_THREAD.0;
        return Some(Err(Outcome::ProcessKilled { code }));
    }
    let unreadable = is_own && synthetic.safety == ContextSafety::Unreadable;
    if is_2 && other && case.seed.is_none() && unreadable {
        return refuse(HResult::FAIL);
    }
    let start = if is_own && synthetic.cooperative {
        match cooperative(case, other, is_2, is_unix)? {
            Ok(start) => start,
            Err(result) => return refuse(result),
        }
    } else {
        Start::Chain
    };
    let current = synthetic.exceptions.trackers.first().filter(|_| is_own);
    let natively = current
        .is_some_and(|tracker| tracker.pass == Pass::Second && !tracker.entered_managed_code);
    if natively && matches!(start, Start::Chain) {
        return refuse(HResult::UNMANAGED_CONTEXT);
    }
    if is_own && synthetic.exceptions.inconsistent {
        return refuse(HResult::UNSAFE);
    }
    Some(Ok((start, suspends)))
}

/// Returns the start of the walk of a cooperative target.
fn cooperative(
    case: &SyntheticCall,
    other: bool,
    is_2: bool,
    is_unix: bool,
) -> Option<Result<Start, HResult>> {
    let synthetic = &case.target;
    if other && is_unix {
        return Some(Err(HResult::NOT_IMPLEMENTED));
    }
    if other && !is_2 {
        let rsp = synthetic
            .activations
            .first()
            .map_or(synthetic.stack.1 - 0x100, |activation| activation.sp);
        let below = synthetic.frames.first().is_some_and(|frame| frame.at < rsp);
        if synthetic.safety != ContextSafety::Safe || below {
            return Some(Err(HResult::UNSAFE));
        }
    }
    let activation = match &case.seed {
        Some(seed) => seed.whole()?,
        None if other => 0,
        None => return Some(Ok(Start::Chain)),
    };
    let managed = synthetic
        .activations
        .get(activation)
        .is_some_and(|activation| activation.place != CodeLocation::Native);
    Some(if managed { Ok(Start::Row(activation)) } else { Err(HResult::UNMANAGED_CONTEXT) })
}

/// Iterates over the table: managed rows one after the other up to a native one, and from there to
/// the row that the next Frame leads to.
fn walk(
    synthetic: &SyntheticThread,
    targets: &[Option<usize>],
    start: &Start,
    suspended: bool,
    mistake: Option<Mistake>,
) -> Option<Expected> {
    let hides = hides_exception_handling(synthetic.generation.family());
    let is_2 = is_framework_2(synthetic.generation.family());
    let (mut shown, mut certain) = (Vec::new(), None);
    let mut stops = is_2 && (!synthetic.frames.is_empty() || matches!(start, Start::Row(_)));
    let mut skip_to = None;
    let (mut next, mut above) = match *start {
        Start::Chain => (None, 0),
        Start::Row(activation) => (Some(activation), 0),
    };
    loop {
        let activation = if let Some(activation) = next.take() {
            activation
        } else {
            certain.get_or_insert(shown.len());
            let frames = synthetic.frames.iter().zip(targets);
            let mut leading = None;
            for (frame, to) in frames.filter(|(frame, _)| frame.at >= above) {
                let hidden = skip_to.is_some() || is_unwound(synthetic, frame.at, mistake);
                stops |= !hidden && has_method(frame);
                if to.is_some_and(|activation| is_native(synthetic, activation)) {
                    if mistake == Some(Mistake::ActiveCallIsDropped) {
                        continue;
                    }
                    // The Frame of an active call is left in its method alone.
                    let certain = certain?;
                    let outcome = Outcome::Endless;
                    return Some(Expected { activations: shown, certain, outcome });
                }
                leading = to.map(|activation| (frame, activation));
                if leading.is_some() {
                    break;
                }
            }
            let Some((frame, activation)) = leading else { break };
            if frame.kind.shape() == FrameShape::Resumable && suspended && !is_2 {
                let outcome = HResult::FAIL.into();
                return Some(Expected { activations: shown, certain: certain?, outcome });
            }
            activation
        };
        let end = synthetic.activations.get(activation + 1)?.sp;
        let this = synthetic.activations.get(activation)?;
        let mut hidden = is_unwound(synthetic, end, mistake);
        if !hidden {
            skip_to = skip_to.filter(|to| *to != activation);
            hidden = skip_to.is_some();
            if !hidden && this.funclet == Some(Funclet::Handler) {
                (skip_to, hidden) = handler(synthetic, activation)?;
            }
        }
        let stub = this.kind == MethodKind::IlStub;
        stops |= !hidden && !stub;
        if !hidden && is_told(this.kind, hides) {
            shown.push(activation);
        }
        if synthetic.activations.get(activation + 1)?.place == CodeLocation::Native {
            let handling =
                this.kind == MethodKind::ExceptionHandling || this.funclet == Some(Funclet::Filter);
            stops |= skip_to.is_none();
            if skip_to.is_none() && !(hides && handling) {
                shown.push(activation + 1);
            }
            above = end;
        } else {
            next = Some(activation + 1);
        }
    }
    if skip_to.is_some() {
        return None;
    }
    let outcome = if stops { HResult::OK } else { HResult::FAIL }.into();
    Some(Expected { certain: certain.unwrap_or(shown.len()), activations: shown, outcome })
}

fn is_native(synthetic: &SyntheticThread, activation: usize) -> bool {
    let activation = synthetic.activations.get(activation);
    activation.is_some_and(|activation| activation.place == CodeLocation::Native)
}

/// Returns true if a Frame counts as a stop: it has a method, though no callback reports it.
fn has_method(frame: &SyntheticFrame) -> bool {
    let has = match frame.kind.shape() {
        FrameShape::InlinedCall => frame.leads_to.is_some(),
        shape => matches!(shape, FrameShape::FramedMethod | FrameShape::HelperMethod),
    };
    has && frame.method.is_some()
}

/// Returns true if the second pass of the current exception has unwound the row with this caller
/// SP, or the Frame there (VA).
fn is_unwound(synthetic: &SyntheticThread, caller_sp: u64, mistake: Option<Mistake>) -> bool {
    let count = if mistake == Some(Mistake::AnyExceptionHides) { usize::MAX } else { 1 };
    synthetic.exceptions.trackers.iter().take(count).any(|one| {
        let (low, high) = one.unwound.unwrap_or_default();
        one.pass == Pass::Second && low < caller_sp && caller_sp <= high
    })
}

/// Returns the row up to which a handler hides the frames above, and true if the handler itself is
/// hidden.
fn handler(synthetic: &SyntheticThread, activation: usize) -> Option<(Option<usize>, bool)> {
    let end = |activation: usize| {
        synthetic.activations.get(activation + 1).map(|activation| activation.sp)
    };
    let running = synthetic.exceptions.trackers.iter().filter_map(|tracker| tracker.funclet);
    let running = running.clone().find(|funclet| Some(funclet.caller_sp) == end(activation));
    let current = synthetic.exceptions.trackers.first();
    if current.is_some_and(|tracker| tracker.unwound.is_some()) {
        return None;
    }
    match running {
        Some(funclet) => {
            let Some(sp) = funclet.parent_caller_sp else { return Some((None, false)) };
            let parent = (activation + 1..synthetic.activations.len())
                .find(|activation| end(*activation) == Some(sp))?;
            Some((Some(parent), true))
        }
        // The funclet was called by its own method.
        None => {
            Some((None, synthetic.activations.get(activation + 1)?.place != CodeLocation::Native))
        }
    }
}
