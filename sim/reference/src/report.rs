//! The reporting rules (contract §3.3 to §3.9, §3.12) as one pass over the activations on the
//! stack.

use super::activations::{ActivationCode, ReferenceActivation, ThreadFacts};
use super::entry::{Call, Decision, decide};
use super::exceptions::Handler;
use super::frames::{FrameRegisters, FrameTarget, ReferenceFrame};
use super::{CallFacts, runtimes};
use clr_codegen::{CallingConvention, FuncletKind};
use clr_runtime::generation::Os;
use clr_runtime::profiling::HResult;
use clr_runtime::{Context, MethodKind, Outcome};
use clr_unwind::{Gpr, Registers};
use clr_walker::profiling::FunctionId as MethodId;

/// An expected callback.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedReport {
    /// The method; `None` for a marker.
    pub function: Option<MethodId>,
    /// Index of the activation that the callback reports.
    pub activation: usize,
    /// The context: registers that nothing has provided keep the values that they had at the start
    /// (C-158); ContextFlags (C-097).
    pub context: Context,
}

/// The expected result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCall {
    /// The outcome of the call.
    pub outcome: Outcome,
    /// The callbacks of the call (C-057).
    pub callbacks: Vec<ExpectedReport>,
}

impl ExpectedCall {
    const fn of(outcome: Outcome, callbacks: Vec<ExpectedReport>) -> Self {
        Self { outcome, callbacks }
    }
}

/// Returns the result that a call about a thread must have. `None` if the reference model does not
/// cover the case.
pub fn expected(target: &ThreadFacts, question: &CallFacts) -> Option<ExpectedCall> {
    let call = Call { question, target };
    let (start, flags) = match decide(&call) {
        Decision::Return(result) => return Some(ExpectedCall::of(result.into(), Vec::new())),
        Decision::Kill(HResult(code)) => {
            return Some(ExpectedCall::of(Outcome::ProcessKilled { code }, Vec::new()));
        }
        Decision::Unsaid => return None,
        Decision::Chain => (None, 0),
        Decision::Report(activation, flags) => (Some(activation), flags),
    };
    if target.beyond {
        return None;
    }
    let suspended = call.is_other() && !question.suspended_by_profiler;
    let mut pass = Pass::new(target, start, flags);
    let ending = pass.go(start, suspended)?;
    let Pass { mut callbacks, stops, hidden_to, .. } = pass;
    // C-104, C-105.
    if let Some(wanted) = question.stop_at.map(|last| last as usize + 1)
        && wanted <= callbacks.len()
    {
        callbacks.truncate(wanted);
        return Some(ExpectedCall::of(HResult::ABORTED.into(), callbacks));
    }
    match ending {
        Ending::GivesUp => return Some(ExpectedCall::of(HResult::FAIL.into(), callbacks)),
        Ending::Endless => return Some(ExpectedCall::of(Outcome::Endless, callbacks)),
        // A handler's method is always found in a world.
        Ending::Root if hidden_to.is_some() => return None,
        Ending::Root => {}
    }
    // C-106, C-107.
    let is_2 = runtimes::is_framework_2(target.generation.family());
    let started = is_2 && (start.is_some() || !target.frames.is_empty());
    let result = if stops || started { HResult::OK } else { HResult::FAIL };
    Some(ExpectedCall::of(result.into(), callbacks))
}

/// The end of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The walk has reached the root.
    Root,
    /// The walk gives up (C-075).
    GivesUp,
    /// The walk does not end (C-079).
    Endless,
}

struct Pass<'s> {
    target: &'s ThreadFacts,
    convention: CallingConvention,
    /// The registers that the walk knows.
    context: Context,
    /// Masks of the registers that are right for the activation: integer registers, then xmm.
    true_ones: (u16, u16),
    callbacks: Vec<ExpectedReport>,
    /// Index of the activation that is reported in place of a handler: nothing is reported before
    /// it.
    hidden_to: Option<usize>,
    /// The walk met something that it stops at.
    stops: bool,
}

impl<'s> Pass<'s> {
    fn new(target: &'s ThreadFacts, start: Option<usize>, flags: u32) -> Self {
        let windows = target.generation.family().os == Os::Windows;
        let convention =
            if windows { CallingConvention::WindowsX64 } else { CallingConvention::SystemV };
        let activation = start.and_then(|activation| target.activations.get(activation));
        // A walk from the Frame chain starts with all registers zero (contract §3.1).
        let registers =
            activation.map_or_else(Registers::default, |activation| activation.registers);
        let all = if activation.is_some() { u16::MAX } else { 0 };
        Self {
            target,
            convention,
            context: Context { registers, flags },
            true_ones: (all, all),
            callbacks: Vec::new(),
            hidden_to: None,
            stops: false,
        }
    }

    fn go(&mut self, start: Option<usize>, suspended: bool) -> Option<Ending> {
        let ThreadFacts { activations, frames, exceptions, .. } = self.target;
        let mut frames = frames.iter().peekable();
        let mut managed = start;
        loop {
            // In unmanaged code the next Frame that leads to managed code is followed; the others
            // lead nowhere, and report nothing (C-065, C-071, C-078, C-079).
            while managed.is_none() {
                let Some(frame) = frames.next() else { return Some(Ending::Root) };
                self.stops |=
                    frame.has_method && self.hidden_to.is_none() && !exceptions.have_left(frame.at);
                match frame.lead {
                    FrameTarget::Nowhere => {}
                    // C-075: only Framework 2 continues at a thread that the call has suspended.
                    FrameTarget::To { sets: FrameRegisters::Interrupted, .. }
                        if suspended
                            && !runtimes::is_framework_2(self.target.generation.family()) =>
                    {
                        return Some(Ending::GivesUp);
                    }
                    FrameTarget::To { activation, ip, sets } => {
                        self.follow(activations.get(activation)?, ip, sets);
                        managed = Some(activation);
                    }
                    FrameTarget::Unmanaged => return Some(Ending::Endless),
                    FrameTarget::Beyond => return None,
                }
            }
            // Managed activations are reported one by one up to an unmanaged caller.
            while let Some(index) = managed.take() {
                let (activation, caller) = (activations.get(index)?, activations.get(index + 1)?);
                // Frames in this activation or above it have been left (C-056).
                while frames.next_if(|frame| frame.at < activation.caller_sp).is_some() {}
                let is_marked = self.method(index, frames.peek().copied())?;
                self.return_to(activation, caller);
                if caller.is_managed() {
                    managed = Some(index + 1);
                } else if self.hidden_to.is_none() {
                    // C-059, C-061 to C-063, C-153, C-165: one marker for the unmanaged run that
                    // the method was called from, whether the method was reported or not.
                    self.stops = true;
                    if is_marked {
                        self.report(None, index + 1);
                    }
                }
            }
        }
    }

    /// Reports a method if it is to be reported. Returns true if a marker is due for the unmanaged
    /// run that it was called from.
    fn method(&mut self, index: usize, next: Option<&ReferenceFrame>) -> Option<bool> {
        let ThreadFacts { activations, exceptions, generation, .. } = self.target;
        let activation = activations.get(index)?;
        let ActivationCode::Managed(method, kind) = activation.code else { return None };
        // C-163, C-085.
        let handles = kind == MethodKind::ExceptionHandling;
        let managed = runtimes::handles_in_managed_code(generation.family());
        let is_hidden = managed && handles;
        let is_filter = activation.funclet == Some(FuncletKind::Filter);
        let is_called_by_handling = next.is_some_and(|frame| {
            frame.is_of_handling && matches!(frame.lead, FrameTarget::To { .. })
        });
        let is_marked = !(managed && (handles || is_filter || is_called_by_handling));
        // C-086: a second pass has left the frame.
        if exceptions.have_left(activation.caller_sp) {
            return Some(is_marked);
        }
        // C-081, C-082: nothing is reported between a handler and its method.
        if self.hidden_to.is_some_and(|to| to != index) {
            return Some(is_marked);
        }
        self.hidden_to = None;
        match activation.handler {
            Some(Handler::Beyond) => return None,
            Some(Handler::OutOfLine) => {}
            Some(Handler::Of(parent)) => self.hidden_to = Some(parent),
            None => {
                // C-058, C-066, C-067: only methods with metadata are reported, and a walk does not
                // stop at stubs.
                self.stops |= kind != MethodKind::IlStub;
                if !is_hidden && !matches!(kind, MethodKind::IlStub | MethodKind::Dynamic) {
                    self.report(Some(method), index);
                }
            }
        }
        Some(is_marked)
    }

    fn report(&mut self, function: Option<MethodId>, activation: usize) {
        self.callbacks.push(ExpectedReport { function, activation, context: self.context });
    }

    /// Takes over the registers that a Frame provides; the others stay unchanged (C-098, C-158).
    fn follow(&mut self, activation: &ReferenceActivation, ip: u64, sets: FrameRegisters) {
        let family = self.target.generation.family();
        let flags = match sets {
            FrameRegisters::Interrupted => Some(runtimes::redirected_flags(family)),
            FrameRegisters::Faulted => Some(runtimes::faulted_flags(family)),
            FrameRegisters::FramePointer | FrameRegisters::CalleeSaved => None,
        };
        if let Some(flags) = flags {
            self.context = Context { registers: activation.registers, flags };
            self.true_ones = (u16::MAX, u16::MAX);
            return;
        }
        let given: &[Gpr] = match sets {
            FrameRegisters::FramePointer => &[Gpr::Rbp],
            _ => self.convention.nonvolatile(),
        };
        self.true_ones = (0, 0);
        for register in given {
            self.take(activation, *register);
        }
        self.place(ip, activation.registers.rsp());
    }

    /// Restores the registers that a method's frame has saved; the others stay unchanged (C-096,
    /// C-099).
    fn return_to(&mut self, activation: &ReferenceActivation, caller: &ReferenceActivation) {
        for register in self.convention.nonvolatile() {
            if (activation.saves.0 | self.true_ones.0) & bit(*register) != 0 {
                self.take(caller, *register);
            }
        }
        if self.convention.has_nonvolatile_xmm() {
            let values = self.context.registers.xmm.iter_mut().zip(&caller.registers.xmm);
            for (n, (value, its)) in (6..).zip(values) {
                if (activation.saves.1 | self.true_ones.1) & 1 << n != 0 {
                    *value = *its;
                    self.true_ones.1 |= 1 << n;
                }
            }
        }
        self.place(caller.registers.rip, activation.caller_sp);
    }

    fn take(&mut self, activation: &ReferenceActivation, register: Gpr) {
        self.context.registers.set(register, activation.registers.get(register));
        self.true_ones.0 |= bit(register);
    }

    const fn place(&mut self, ip: u64, rsp: u64) {
        self.context.registers.rip = ip;
        self.context.registers.gpr[Gpr::Rsp as usize] = rsp;
    }
}

const fn bit(register: Gpr) -> u16 {
    1 << register as u16
}
