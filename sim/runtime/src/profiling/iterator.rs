//! The walk: the runtime's stack frame iterator and its filter (contract §3.2, §3.3, §3.8, §3.9).

use super::entry::Target;
use super::report::Reporter;
use super::{CallFault, Caller, HResult, SnapshotRequest};
use crate::context::Context;
use crate::explain::{DropReason, Event};
use crate::frame::{FrameReader, LazyStateError, layout};
use crate::generation::{EmptyWalk, StackCheck};
use crate::{
    FAIL_FAST, FRAME_TOP, Funclet, Lock, Managed, MethodKind, Outcome, Runtime, TargetMemory,
};
use clr_unwind::{Unreadable, UnwindError};
use clr_walker::profiling::SnapshotCallback;

/// Limit on the managed frames of a walk: no stack has more, so a longer walk is a cycle.
const STEP_LIMIT: u32 = 1 << 20;
/// Limit on the Frames of a walk: a stack of 8 MiB has no room for more.
const FRAME_LIMIT: u32 = 1 << 17;

/// Kind of the iterator's current item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The start of a walk without managed code.
    InitialNative,
    /// An activation of managed code.
    Frameless,
    /// An explicit Frame.
    Frame,
    /// The unmanaged run that called the last managed frame.
    Marker,
    /// The end of the walk.
    Done,
}

/// Reason why a walk ends early.
pub(super) enum Break {
    /// The runtime gives up.
    Fail,
    /// Memory could not be read.
    Fault(Unreadable),
    /// The call ends with this outcome.
    End(Outcome),
}

impl From<Unreadable> for Break {
    fn from(unreadable: Unreadable) -> Self {
        Self::Fault(unreadable)
    }
}

impl From<LazyStateError> for Break {
    fn from(error: LazyStateError) -> Self {
        match error {
            LazyStateError::Fault(unreadable) => Self::Fault(unreadable),
            LazyStateError::Native { .. } => Self::End(Outcome::ProcessKilled { code: FAIL_FAST }),
        }
    }
}

/// End of the part of the stack that a handler funclet hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SkipTo {
    /// The frame with this caller SP.
    CallerSp(u64),
    /// The next managed frame.
    Next,
}

/// A walk that is about to start.
pub(super) struct Walk<'w, 'r, 'a, M> {
    pub caller: Caller<'r, 'a, M>,
    pub target: Target,
    pub call: &'w SnapshotRequest<'w>,
    /// Registers at the start.
    pub context: Context,
    /// The walk starts from the seed that the caller gave.
    pub seeded: bool,
    /// The call has suspended the target.
    pub suspended: bool,
    /// The failure that the search has chosen.
    pub fault: Option<CallFault>,
}

pub(super) struct FrameIterator<'r, 'a, M> {
    pub runtime: &'r Runtime<'a, M>,
    /// The thread that walks.
    walker: Caller<'r, 'a, M>,
    pub(super) target: Target,
    suspended: bool,
    /// The bounds of the target's stack (VA).
    stack: (u64, u64),
    pub context: Context,
    /// The caller's context, if it has been computed.
    pub(super) caller: Option<Context>,
    /// The next Frame of the chain (VA).
    pub(super) frame: u64,
    /// The managed code at rip.
    code: Option<Managed<'r>>,
    /// Kind of the method of the current item, or of the last managed frame.
    pub method: Option<MethodKind>,
    pub funclet: Option<Funclet>,
    pub state: State,
    pub(super) skip_to: Option<SkipTo>,
    steps: u32,
    frame_steps: u32,
    /// Address of the GS cookie of the current item (VA).
    cookie: Option<u64>,
}

impl<M: TargetMemory> Walk<'_, '_, '_, M> {
    /// Executes the walk, inside the guard that turns faults into a result on Windows.
    pub(super) fn run(self, callback: Option<&mut SnapshotCallback<'_>>) -> Outcome {
        match self.make(callback) {
            Ok(result) => result.into(),
            Err(Break::Fail) => HResult::FAIL.into(),
            Err(Break::Fault(unreadable)) => self.caller.runtime.fault_in_walk(unreadable),
            Err(Break::End(outcome)) => outcome,
        }
    }

    fn make(&self, callback: Option<&mut SnapshotCallback<'_>>) -> Result<HResult, Break> {
        let runtime = self.caller.runtime;
        self.caller.wait_for_code_manager().map_err(Break::End)?;
        let object = self.target.object;
        let unhijacked = object.unhijack(&mut *runtime.memory.borrow_mut())?;
        if let Some((slot, address)) = unhijacked {
            runtime.record(|| Event::Unhijacked { slot, address });
        }
        let (frame, stack) = {
            let memory = &*runtime.memory.borrow();
            (object.top_frame(memory)?, object.stack(memory)?)
        };
        let mut iterator = FrameIterator {
            runtime,
            walker: self.caller,
            target: self.target,
            suspended: self.suspended,
            stack,
            context: self.context,
            caller: None,
            frame,
            code: runtime.code.find(self.context.registers.rip),
            method: None,
            funclet: None,
            state: State::Done,
            skip_to: None,
            steps: 0,
            frame_steps: 0,
            cookie: None,
        };
        let seed = self.call.seed.filter(|_| self.seeded);
        iterator.run(Reporter::new(runtime, self.call, seed, callback), self.fault)
    }
}

impl<M: TargetMemory> FrameIterator<'_, '_, M> {
    fn run(
        &mut self,
        mut reporter: Reporter<'_, '_>,
        fault: Option<CallFault>,
    ) -> Result<HResult, Break> {
        self.see_frame_cookie()?;
        // Framework 2 counts any start as success (C-107).
        let mut found = self.runtime.generation.empty_walk() == EmptyWalk::FailsWithoutFrame
            && (self.code.is_some() || self.frame != FRAME_TOP);
        if self.code.is_none() {
            self.runtime.record(|| Event::InitialNative);
            self.state = State::InitialNative;
        } else {
            self.enter()?;
        }
        self.filter()?;
        while self.is_valid() {
            found = true;
            if self.code.is_some() {
                self.walker.look_up_image(self.context.registers.rip).map_err(Break::End)?;
            }
            self.check_cookie()?;
            if let Some(result) = reporter.report(self)? {
                self.runtime.record(|| Event::Aborted(result));
                return Ok(HResult::ABORTED);
            }
            if let Some(fault) = fault.filter(|fault| reporter.reported >= fault.frames) {
                self.runtime.record(|| Event::Injected(fault.result));
                return Ok(fault.result);
            }
            self.check_cookie()?;
            self.advance()?;
            self.filter()?;
        }
        if found {
            return Ok(HResult::OK);
        }
        self.runtime.record(|| Event::Empty);
        Ok(HResult::FAIL)
    }

    pub(super) const fn is_valid(&self) -> bool {
        !matches!(self.state, State::Done)
            && (self.code.is_some()
                || self.frame != FRAME_TOP
                || matches!(self.state, State::Marker))
    }

    /// Applies `look` to the next Frame of the chain. A word that identifies no Frame is used as a
    /// vtable all the same, which faults at that address.
    fn visit_frame<T>(
        &self,
        look: impl FnOnce(&FrameReader<'_, M>) -> Result<T, Unreadable>,
    ) -> Result<T, Break> {
        let runtime = self.runtime;
        let memory = &*runtime.memory.borrow();
        let frame = FrameReader::new(self.frame, runtime.generation, &runtime.identities, memory)?;
        let Some(frame) = frame else {
            let word = memory.read_u64(self.frame)?;
            runtime.record(|| Event::NoFrame { at: self.frame, word });
            return Err(Break::Fault(Unreadable { address: word, len: 8 }));
        };
        Ok(look(&frame)?)
    }

    /// Advances to the next Frame on the chain.
    fn drop_frame(&mut self, why: Option<DropReason>) -> Result<(), Break> {
        self.frame_steps += 1;
        if self.frame_steps > FRAME_LIMIT {
            return Err(Break::End(Outcome::Endless));
        }
        let at = self.frame;
        let memory = &*self.runtime.memory.borrow();
        self.frame = memory.read_u64(at.wrapping_add(layout::NEXT))?;
        self.see_frame_cookie()?;
        if let Some(why) = why {
            self.runtime.record(|| {
                let word = memory.read_u64(at).ok();
                let kind = word.and_then(|word| self.runtime.identities.kind(word));
                Event::FrameDropped { at, kind, why }
            });
        }
        Ok(())
    }

    /// Returns true if the next Frame is around a call that managed exception handling is making. A word that identifies no
    /// Frame is only compared.
    pub(super) fn is_in_exception_helper(&self) -> Result<bool, Break> {
        let runtime = self.runtime;
        if self.frame == FRAME_TOP || runtime.generation.exception_helper().datum().is_none() {
            return Ok(false);
        }
        let memory = &*runtime.memory.borrow();
        let frame = FrameReader::new(self.frame, runtime.generation, &runtime.identities, memory)?;
        Ok(frame.map_or(Ok(false), |frame| frame.is_exception_helper())?)
    }

    /// Returns true if the next Frame has a method.
    pub(super) fn frame_has_function(&self) -> Result<bool, Break> {
        self.complete_frame()?;
        self.visit_frame(|frame| Ok(frame.function()? != 0))
    }

    /// Classifies the item that the iterator has reached.
    fn enter(&mut self) -> Result<(), Break> {
        let Some(managed) = self.code else {
            self.state = if self.frame == FRAME_TOP { State::Done } else { State::Frame };
            return Ok(());
        };
        let (ip, rsp) = (self.context.registers.rip, self.context.registers.rsp());
        self.method = Some(managed.method.kind);
        self.funclet = managed.code.funclet(ip);
        let caller_sp = self.caller(managed)?.registers.rsp();
        let function = managed.method.id;
        self.runtime.record(|| Event::Managed { function, ip, rsp, caller_sp });
        // Frames of the method itself and of its callees are dropped (C-056).
        while self.frame != FRAME_TOP && self.frame < caller_sp {
            self.drop_frame(Some(DropReason::BelowCallerSp(caller_sp)))?;
        }
        self.frame_steps = 0;
        if let Some(below) = managed.code.gs_cookie {
            let at = caller_sp.wrapping_sub(u64::from(below));
            if at >= rsp || self.runtime.generation.checks_cookies_below_rsp() {
                self.cookie = Some(at);
                self.check_cookie()?;
            }
        }
        self.state = State::Frameless;
        Ok(())
    }

    /// Returns the caller's context. The context is large, so it is computed once and in place.
    fn caller(&mut self, managed: Managed<'_>) -> Result<&Context, Break> {
        if self.caller.is_some() {
            return self.caller.as_ref().ok_or(Break::Fail);
        }
        let caller = self.caller.insert(self.context);
        let Runtime { generation, code, memory, .. } = self.runtime;
        let rules = generation.unwind_rules();
        match code.unwind(managed, rules, &mut caller.registers, &*memory.borrow()) {
            Ok(_) => Ok(caller),
            Err(UnwindError::Stack(unreadable)) => Err(Break::Fault(unreadable)),
            // Compilers do not emit broken unwind data, and the behavior of a runtime with it is
            // unknown.
            Err(_) => {
                self.runtime.record(|| Event::CannotUnwind { ip: self.context.registers.rip });
                Err(Break::Fail)
            }
        }
    }

    pub(super) fn advance(&mut self) -> Result<(), Break> {
        self.steps += 1;
        if self.steps > STEP_LIMIT {
            return Err(Break::End(Outcome::Endless));
        }
        match self.state {
            State::Frameless => {
                let Some(managed) = self.code else { return Ok(()) };
                self.context = *self.caller(managed)?;
                self.caller = None;
                self.check_stack()?;
                self.code = self.runtime.code.find(self.context.registers.rip);
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

    /// Fails if the stack pointer is no longer on the stack (C-109, C-110).
    fn check_stack(&self) -> Result<(), Break> {
        let registers = &self.context.registers;
        let rsp = registers.rsp();
        let on_stack = match self.runtime.generation.stack_check() {
            StackCheck::Bounds => {
                let (limit, base) = self.stack;
                limit <= rsp && rsp < base
            }
            StackCheck::Readable => {
                let memory = &*self.runtime.memory.borrow();
                let slot = rsp.wrapping_sub(8);
                memory.read_u64(slot).is_ok() && memory.read(registers.rip, &mut [0]).is_ok()
            }
        };
        if on_stack {
            return Ok(());
        }
        self.runtime.record(|| Event::OffStack { rsp, stack: self.stack });
        Err(Break::Fail)
    }

    /// Completes a HelperMethodFrame with its managed caller, unless it is complete.
    fn complete_frame(&self) -> Result<(), Break> {
        let Runtime { generation, identities, native, code, memory, .. } = self.runtime;
        let missing = {
            let memory = &*memory.borrow();
            match FrameReader::new(self.frame, *generation, identities, memory)? {
                Some(frame) => frame.missing(native, code).inspect_err(|error| {
                    if let LazyStateError::Native { at: ip } = *error {
                        self.runtime.record(|| Event::CannotUnwindHelper { ip });
                    }
                })?,
                None => None,
            }
        };
        if let Some(completion) = missing {
            // Windows unwinds native code with the system's tables (H-11), Unix with libunwind
            // (`LazyMachState::unwindLazyState` in vm/amd64/gmsamd64.cpp; H-28).
            let tables =
                if generation.is_unix() { Lock::NativeUnwinder } else { Lock::FunctionTables };
            self.walker.go_through(&[tables]).map_err(Break::End)?;
            completion.write(&mut *memory.borrow_mut())?;
            self.runtime.record(|| Event::FrameCompleted { at: self.frame });
        }
        Ok(())
    }

    /// Continues at the caller that an explicit Frame leads to.
    fn leave_frame(&mut self) -> Result<(), Break> {
        let at = self.frame;
        let identities = &self.runtime.identities;
        self.complete_frame()?;
        let (kind, ip, active) = self.visit_frame(|frame| {
            Ok((frame.kind, frame.return_address(identities)?, frame.is_active_call()?))
        })?;
        self.code = self.runtime.code.find(ip);
        if self.code.is_none() {
            // Only a method drops the Frame of its active call, so the walk comes back to this one
            // without end.
            if active {
                self.runtime.record(|| Event::NeverLeft { at, ip });
                return Err(Break::End(Outcome::Endless));
            }
            return self.drop_frame(Some(match ip {
                0 => DropReason::LeadsNowhere,
                ip => DropReason::LeadsToUnmanagedCode(ip),
            }));
        }
        let mut context = self.context;
        let resumable = self.visit_frame(|frame| {
            frame.update(&mut context, identities)?;
            Ok(frame.is_resumable())
        })?;
        self.context = context;
        self.caller = None;
        let rsp = context.registers.rsp();
        self.runtime.record(|| Event::FrameFollowed { at, kind, ip, rsp });
        if resumable && self.suspended && self.runtime.generation.stops_at_resumable_frames() {
            self.runtime.record(|| Event::ResumableFrame { at });
            return Err(Break::Fail);
        }
        // The Frame of an active call is dropped by the method that contains it.
        if active { Ok(()) } else { self.drop_frame(None) }
    }

    /// Returns the method at rip.
    pub(super) const fn managed(&self) -> Option<Managed<'_>> {
        self.code
    }

    /// Makes the cookie of the next Frame the current one, if Frames have cookies. It is checked
    /// when the walk reaches the Frame, even if the Frame is dropped afterwards (contract §3.2).
    fn see_frame_cookie(&mut self) -> Result<(), Break> {
        if !self.runtime.generation.frames_have_cookies() || self.frame == FRAME_TOP {
            return Ok(());
        }
        self.cookie = Some(self.frame.wrapping_add(layout::COOKIE));
        self.check_cookie()
    }

    /// Ends the process if the GS cookie is wrong (C-112).
    fn check_cookie(&self) -> Result<(), Break> {
        let (Some(at), Some(cookie)) = (self.cookie, self.runtime.process.get().gs_cookie) else {
            return Ok(());
        };
        if self.runtime.memory.borrow().read_u64(at)? == cookie {
            return Ok(());
        }
        self.runtime.record(|| Event::BadCookie { at });
        Err(Break::End(Outcome::ProcessKilled { code: FAIL_FAST }))
    }
}
