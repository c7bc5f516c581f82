//! The reference model on synthetic threads: their table says all that the model has to know.
//!
//! Left out ([`expected`] returns `None`) are cases that would need a second implementation of the frame
//! iterator: overwritten memory, a seed that is not a row's, an exception handler whose parent's row is not
//! reached, or one that meets a region that the current exception has unwound; and walks of stages that are
//! not whole. Refusals of calls are modelled for misplaced Frames, too. A [`Mistake`] can be planted.

use super::Mistake;
use super::whole;
use clr_codegen::FuncletKind;
use clr_generate::SyntheticCall;
use clr_reference::{
    self, ActivationCode, CallFacts, CallerKind, Exceptions, ExpectedCall, FrameRegisters,
    FrameTarget, Handler, ReferenceActivation, ReferenceFrame, ThreadFacts,
};
use clr_runtime::frame::FrameShape;
use clr_runtime::{ContextSafety, FrameKind, Funclet, MethodKind, Pass, ThreadLife};
use clr_walker::profiling::{FunctionId, ThreadId};
use clr_world::synthetic::{
    CodeLocation, MANAGED_WALKER, NATIVE_WALKER, SELF, SELF_OBJECT, SyntheticActivation,
    SyntheticFrame, SyntheticProcess, SyntheticThread, WALKER_OBJECT,
};

/// Returns the expectation for a call whose callback accepts all frames, if the model has one.
pub(super) fn expected(
    case: &SyntheticCall,
    set: &SyntheticProcess,
    mistake: Option<Mistake>,
) -> Option<ExpectedCall> {
    if !case.target.overwritten.is_empty() {
        return None;
    }
    let own = match case.caller {
        SELF => SELF_OBJECT,
        MANAGED_WALKER => WALKER_OBJECT,
        _ => ThreadId(0),
    };
    let target = if case.thread == ThreadId(0) { own } else { case.thread };
    let mut facts = match target {
        SELF_OBJECT => facts(set, mistake)?,
        WALKER_OBJECT | ThreadId(0) => bare(&case.target),
        _ => return None,
    };
    let writer = facts.process.code_manager_writer;
    facts.code_busy = writer.is_some_and(|writer| writer != case.caller);
    let seed = case.seed.map(|seed| (seed.whole().unwrap_or(usize::MAX), seed.flags));
    let call = CallFacts {
        caller: match case.caller {
            NATIVE_WALKER => CallerKind::Native,
            _ if target == own => CallerKind::Target,
            _ => CallerKind::Managed,
        },
        unnamed: case.thread == ThreadId(0),
        flags: case.flags,
        seed,
        suspended_by_profiler: facts.process.suspended_by_profiler,
        stop_at: None,
    };
    clr_reference::expected(&facts, &call)
}

/// Returns the facts of a thread that has never run any code.
fn bare(synthetic: &SyntheticThread) -> ThreadFacts {
    ThreadFacts {
        generation: synthetic.generation,
        process: synthetic.process,
        activations: Vec::new(),
        frames: Vec::new(),
        rsp: synthetic.stack.1 - 0x100,
        cooperative: false,
        safety: ContextSafety::default(),
        gc_special: false,
        hijack_locked: false,
        exceptions: Exceptions::default(),
        gone: false,
        forbidden: false,
        code_busy: false,
        beyond: false,
    }
}

/// Returns the facts of the synthetic thread.
fn facts(set: &SyntheticProcess, mistake: Option<Mistake>) -> Option<ThreadFacts> {
    let synthetic = set.synthetic_thread();
    let targets = whole::targets(synthetic);
    let rows = synthetic.activations.iter().enumerate();
    let activations: Vec<_> =
        rows.map(|(index, row)| activation(set, index, row)).collect::<Option<_>>()?;
    let leads = targets.iter().flatten().copied().chain(std::iter::repeat(None));
    let frames = synthetic.frames.iter().zip(leads);
    let mut facts = ThreadFacts {
        frames: frames.map(|(it, to)| frame(it, to, &activations, mistake)).collect(),
        cooperative: synthetic.cooperative,
        safety: synthetic.safety,
        gc_special: synthetic.gc_special,
        hijack_locked: synthetic.hijack_locked,
        exceptions: Exceptions::new(&synthetic.exceptions),
        gone: synthetic.life != ThreadLife::Running,
        forbidden: synthetic.forbid_suspend != 0,
        beyond: targets.is_none(),
        ..bare(synthetic)
    };
    facts.rsp = activations.first().map_or(facts.rsp, |leaf| leaf.registers.rsp());
    facts.activations = activations;
    if mistake == Some(Mistake::AnyExceptionHides) {
        let mut second =
            synthetic.exceptions.trackers.iter().filter(|tracker| tracker.pass == Pass::Second);
        facts.exceptions.left = second.find_map(|tracker| tracker.unwound);
    }
    Some(facts)
}

fn activation(
    set: &SyntheticProcess,
    index: usize,
    row: &SyntheticActivation,
) -> Option<ReferenceActivation> {
    let synthetic = set.synthetic_thread();
    let name = row.function.split('@').next().unwrap_or_default();
    let code = if row.place == CodeLocation::Native {
        ActivationCode::Unmanaged
    } else {
        // A function that the runtime does not report has no id here.
        let id = set.function(name).unwrap_or(FunctionId(0));
        ActivationCode::Managed(id, row.kind)
    };
    let end = synthetic.activations.get(index + 1).map_or(synthetic.stack.1, |next| next.sp);
    let mut activation = ReferenceActivation::new(code, set.registers(index)?, end);
    activation.saves.0 = row.saves.iter().fold(0, |mask, register| mask | 1 << *register as u16);
    activation.funclet = row.funclet.map(|funclet| match funclet {
        Funclet::Handler => FuncletKind::Handler,
        Funclet::Filter => FuncletKind::Filter,
    });
    if row.funclet == Some(Funclet::Handler) {
        activation.handler = handler(synthetic, index, end);
    }
    Some(activation)
}

/// Returns the kind of handler that a row is, by the exceptions in flight; its caller's SP is `end`.
fn handler(synthetic: &SyntheticThread, index: usize, end: u64) -> Option<Handler> {
    let trackers = &synthetic.exceptions.trackers;
    if trackers.first().is_some_and(|tracker| tracker.unwound.is_some()) {
        return Some(Handler::Beyond);
    }
    let mut running = trackers.iter().filter_map(|tracker| tracker.funclet);
    let rows = &synthetic.activations;
    match running.find(|funclet| funclet.caller_sp == end) {
        Some(funclet) => {
            let parent = funclet.parent_caller_sp?;
            let mut ends = rows.iter().skip(1).map(|row| row.sp);
            let parent = ends.position(|end| end == parent).filter(|parent| *parent > index);
            Some(parent.map_or(Handler::Beyond, Handler::Of))
        }
        // The funclet was called by its own method.
        None => rows
            .get(index + 1)
            .filter(|caller| caller.place != CodeLocation::Native)
            .map(|_| Handler::OutOfLine),
    }
}

/// Returns a Frame that leads to this row, if to any.
fn frame(
    synthetic: &SyntheticFrame,
    to: Option<usize>,
    activations: &[ReferenceActivation],
    mistake: Option<Mistake>,
) -> ReferenceFrame {
    let SyntheticFrame { kind, at, .. } = *synthetic;
    let shape = kind.shape();
    // A Frame counts as a stop if it has a method, though no callback reports it.
    let has = match shape {
        FrameShape::InlinedCall => synthetic.leads_to.is_some(),
        shape => matches!(shape, FrameShape::FramedMethod | FrameShape::HelperMethod),
    };
    let lead = match to.and_then(|to| Some((to, activations.get(to)?))) {
        None => FrameTarget::Nowhere,
        Some((activation, row)) if row.is_managed() => FrameTarget::To {
            activation,
            ip: row.registers.rip,
            sets: match shape {
                FrameShape::InlinedCall => FrameRegisters::FramePointer,
                FrameShape::Resumable => FrameRegisters::Interrupted,
                // The table says what ContextFlags these have; they are not compared.
                FrameShape::Faulting | FrameShape::FuncEval => FrameRegisters::Faulted,
                _ => FrameRegisters::CalleeSaved,
            },
        },
        _ if mistake == Some(Mistake::ActiveCallIsDropped) => FrameTarget::Nowhere,
        _ => FrameTarget::Unmanaged,
    };
    let leads_to_handling = to.and_then(|to| activations.get(to)).is_some_and(|row| {
        matches!(row.code, ActivationCode::Managed(_, MethodKind::ExceptionHandling))
    });
    ReferenceFrame {
        at,
        kind,
        has_method: has && synthetic.method.is_some(),
        is_of_handling: kind == FrameKind::InlinedCall
            && synthetic.method.is_none()
            && leads_to_handling,
        lead,
    }
}
