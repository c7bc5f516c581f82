//! The walk: the runtime's stack frame iterator, its filter, and what is reported
//! (contract §3.2 to §3.8).

use super::{Answer, Call, Callback, Context, Death, HResult, Outcome, Runtime};
use crate::runtime::frame::FrameReader;
use crate::runtime::{Code, ExplicitFrame, Funclet, FunctionId, MethodKind, Thread};
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::unwind::{Position, UnwindError, Unwinder};

/// More steps than any stack has: what would take more is an endless loop of the runtime.
const STEP_LIMIT: u32 = 1 << 20;

/// What the iterator stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The start of a walk without managed code.
    InitialNative,
    /// An activation of managed code.
    Frameless,
    /// An explicit Frame.
    Frame,
    /// The unmanaged run that the managed frame just left was called from.
    Marker,
    /// Nothing.
    Done,
}

/// Why a walk ends early.
enum Break {
    /// The runtime gives up.
    Fail,
    /// Memory could not be read, by the runtime itself.
    Fault(Unreadable),
}

impl From<Unreadable> for Break {
    fn from(unreadable: Unreadable) -> Self {
        Self::Fault(unreadable)
    }
}

/// Up to where a handler funclet hides what is on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkipTo {
    /// The frame whose caller SP this is.
    CallerSp(u64),
    /// The next managed frame.
    Next,
}

struct FrameIterator<'a, M: ?Sized> {
    runtime: &'a Runtime<'a, M>,
    thread: &'a Thread,
    suspended: bool,
    context: Context,
    /// The caller's, if it has been computed.
    caller: Option<Context>,
    /// What is left of the Frame chain.
    frames: &'a [ExplicitFrame],
    /// The managed code at rip.
    code: Option<&'a Code>,
    /// The method of the current item, or of the managed frame just left.
    method: Option<MethodKind>,
    funclet: Option<Funclet>,
    state: State,
    skip_to: Option<SkipTo>,
    steps: u32,
}

impl<M: Memory + ?Sized> Runtime<'_, M> {
    /// The walk from a seed or from the Frame chain.
    pub(super) fn walk(
        &self,
        target: &Thread,
        call: &Call,
        seed: Option<&Context>,
        callback: &mut impl FnMut(&Callback) -> Answer,
    ) -> Outcome {
        let context = seed.copied().unwrap_or_default();
        let mut iterator = FrameIterator {
            runtime: self,
            thread: target,
            suspended: !call.own_thread && !self.process.suspended_by_profiler,
            context,
            caller: None,
            frames: &target.frames,
            code: self.code.find(context.registers.rip),
            method: None,
            funclet: None,
            state: State::Done,
            skip_to: None,
            steps: 0,
        };
        match iterator.run(call, callback) {
            Ok(result) => Outcome::Returned(result),
            Err(Break::Fail) => Outcome::Returned(HResult::FAIL),
            Err(Break::Fault(unreadable)) => self.fault(unreadable),
        }
    }

    /// What reading an address that cannot be read leads to.
    fn fault(&self, unreadable: Unreadable) -> Outcome {
        let Unreadable { address, .. } = unreadable;
        if !is_surely_unreadable(address) {
            Outcome::Unknown { address }
        } else if self.generation.is_unix() {
            Outcome::Killed(Death::AccessViolation)
        } else {
            Outcome::Returned(HResult::UNEXPECTED)
        }
    }
}

/// Whether no process has memory there.
const fn is_surely_unreadable(address: u64) -> bool {
    let canonical = (address << 16).cast_signed() >> 16 == address.cast_signed();
    address < 0x1_0000 || !canonical || address >= 0x8000_0000_0000
}

impl<'a, M: Memory + ?Sized> FrameIterator<'a, M> {
    fn run(
        &mut self,
        call: &Call,
        callback: &mut impl FnMut(&Callback) -> Answer,
    ) -> Result<HResult, Break> {
        self.initialize()?;
        self.filter()?;
        let mut stopped = false;
        while self.is_valid() {
            stopped = true;
            if let Some(report) = self.report(call.flags) {
                if call.null_callback {
                    return Err(Break::Fault(Unreadable { address: 0, len: 1 }));
                }
                if callback(&report) == Answer::Abort {
                    return Ok(HResult::ABORTED);
                }
            }
            self.advance()?;
            self.filter()?;
        }
        Ok(if stopped { HResult::OK } else { HResult::FAIL })
    }

    const fn is_valid(&self) -> bool {
        !matches!(self.state, State::Done)
            && (self.code.is_some()
                || !self.frames.is_empty()
                || matches!(self.state, State::Marker))
    }

    fn frame(&self) -> Option<FrameReader<'a, M>> {
        let frame = self.frames.first()?;
        let Runtime { generation, memory, .. } = *self.runtime;
        Some(FrameReader { frame, generation, memory })
    }

    fn initialize(&mut self) -> Result<(), Break> {
        if self.code.is_none() {
            self.state = State::InitialNative;
            return Ok(());
        }
        self.enter()
    }

    fn classify(&mut self, ip: u64) {
        self.code = self.runtime.code.find(ip);
    }

    /// Looks at what the iterator has come to.
    fn enter(&mut self) -> Result<(), Break> {
        if let Some(code) = self.code {
            self.method = Some(code.method);
            self.funclet = code.funclet(self.context.registers.rip);
            let caller = match self.caller {
                Some(caller) => caller,
                None => self.unwind()?,
            };
            self.caller = Some(caller);
            // Frames of the method itself and of what it called are dropped unseen.
            while self.frames.first().is_some_and(|frame| frame.at < caller.registers.rsp()) {
                self.frames = &self.frames[1..];
            }
            self.state = State::Frameless;
        } else if self.frames.is_empty() {
            self.state = State::Done;
        } else {
            self.state = State::Frame;
        }
        Ok(())
    }

    fn unwind(&self) -> Result<Context, Break> {
        let mut context = self.context;
        let unwinder = Unwinder::new(self.runtime.code.map())
            .with_rules(self.runtime.generation.unwind_rules());
        match unwinder.step(&mut context.registers, Position::Interrupted, self.runtime.memory) {
            Ok(_) => Ok(context),
            Err(UnwindError::Stack(unreadable)) => Err(Break::Fault(unreadable)),
            // The release build goes on with whatever it has; no recorded code is like that.
            Err(_) => Err(Break::Fail),
        }
    }

    fn advance(&mut self) -> Result<(), Break> {
        self.steps += 1;
        if self.steps > STEP_LIMIT {
            return Err(Break::Fail);
        }
        match self.state {
            State::Frameless => {
                let caller = match self.caller.take() {
                    Some(caller) => caller,
                    None => self.unwind()?,
                };
                self.context = caller;
                let (limit, base) = self.thread.stack;
                let rsp = caller.registers.rsp();
                if rsp < limit || rsp >= base {
                    return Err(Break::Fail);
                }
                self.classify(caller.registers.rip);
                if self.code.is_none() {
                    self.state = State::Marker;
                    return Ok(());
                }
            }
            State::Frame => self.leave_frame()?,
            State::Marker | State::InitialNative | State::Done => {}
        }
        self.enter()
    }

    /// Goes where an explicit Frame leads.
    fn leave_frame(&mut self) -> Result<(), Break> {
        let Some(frame) = self.frame() else { return Ok(()) };
        let return_address = frame.return_address()?;
        let mut stays = frame.is_active_call()?;
        if return_address != 0 {
            self.classify(return_address);
            if self.code.is_some() {
                frame.update(&mut self.context)?;
                if frame.is_resumable() && self.suspended {
                    return Err(Break::Fail);
                }
            } else {
                // An active call that returns to unmanaged code would never be left.
                stays = false;
            }
        }
        if !stays {
            self.frames = &self.frames[1..];
        }
        Ok(())
    }

    /// Passes over what is no internal stop.
    fn filter(&mut self) -> Result<(), Break> {
        while self.is_valid() {
            let stops = match self.state {
                State::Frameless => self.stops_at_method(),
                State::Frame => self.stops_at_frame()?,
                State::Marker => self.skip_to.is_none(),
                State::InitialNative | State::Done => false,
            };
            if stops {
                return Ok(());
            }
            self.advance()?;
        }
        Ok(())
    }

    fn caller_sp(&self) -> u64 {
        self.caller.map_or(0, |caller| caller.registers.rsp())
    }

    fn stops_at_method(&mut self) -> bool {
        let caller_sp = self.caller_sp();
        if self.thread.exception.is_unwound(caller_sp) {
            return false;
        }
        match self.skip_to {
            Some(SkipTo::CallerSp(sp)) if sp != caller_sp => return false,
            _ => self.skip_to = None,
        }
        if self.funclet == Some(Funclet::Handler) {
            self.skip_to = self.parent_of_funclet(caller_sp);
        }
        self.skip_to.is_none() && self.method != Some(MethodKind::IlStub)
    }

    /// Whose frame stands for a handler funclet: what lies between is hidden.
    fn parent_of_funclet(&self, caller_sp: u64) -> Option<SkipTo> {
        let mut funclets = self.thread.exception.funclets.iter();
        if let Some((_, parent)) = funclets.find(|(sp, _)| *sp == caller_sp) {
            return parent.map(SkipTo::CallerSp);
        }
        // Managed code calls finally handlers itself; they hide nothing but themselves (C-084).
        let caller = self.caller.map(|caller| caller.registers.rip)?;
        self.runtime.code.find(caller).map(|_| SkipTo::Next)
    }

    fn stops_at_frame(&self) -> Result<bool, Break> {
        let Some(frame) = self.frame() else { return Ok(false) };
        let hidden = self.skip_to.is_some() || self.thread.exception.is_unwound(frame.frame.at);
        Ok(!hidden && frame.has_function()?)
    }

    /// What the profiler is told of an internal stop, if anything.
    fn report(&self, flags: u32) -> Option<Callback> {
        let hides = self.runtime.generation.hides_exception_handling();
        let handling = matches!(self.method, Some(MethodKind::ExceptionHandling(_)));
        let function: Option<FunctionId> = match self.state {
            State::Marker => {
                // The run that such a method was called from is hidden with it.
                if hides && (handling || self.funclet == Some(Funclet::Filter)) {
                    return None;
                }
                None
            }
            State::Frameless => match self.method? {
                MethodKind::ExceptionHandling(_) if hides => return None,
                MethodKind::Ordinary(function) | MethodKind::ExceptionHandling(function) => {
                    Some(function)
                }
                MethodKind::IlStub | MethodKind::Dynamic => return None,
            },
            State::Frame | State::InitialNative | State::Done => return None,
        };
        let wanted = flags & 1 != 0;
        Some(Callback {
            function,
            ip: self.context.registers.rip,
            context_size: if wanted { self.runtime.generation.context_size() } else { 0 },
            context: wanted.then_some(self.context),
        })
    }
}
