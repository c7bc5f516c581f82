//! Frames as exception handling finds them: by unwinding, as the runtime does.

use super::World;
use crate::stubs::{Identity, Shared, Stub};
use clr_codegen::HandlerKind;
use clr_runtime::{Funclet, MethodKind, Pass, RunningFunclet};
use clr_unwind::{Position, Registers, Unwinder};
use clr_walker::profiling::{EventMask, FunctionId};

/// More frames than a stack has room for.
const LIMIT: u32 = 1 << 16;

/// A managed frame that an exception reaches.
#[derive(Clone, Copy, Debug, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "they decide about callbacks, one by one")]
pub(super) struct Frame {
    pub registers: Registers,
    /// Address by which the EH clauses of the frame are found (VA): in the call instruction; if the
    /// exception comes from a funclet of the frame, in that funclet.
    pub address: u64,
    /// Registers of the caller.
    pub caller: Registers,
    /// Kind of funclet, if the frame is one.
    pub funclet: Option<Funclet>,
    /// Establisher frame, which the funclets get as their argument (VA).
    pub establisher: u64,
    /// The exception comes from a funclet of this frame.
    pub from_funclet: bool,
    /// The frame is reported apart from the funclet that the exception comes from.
    pub is_reported_again: bool,
    /// The frame is a funclet that is reported apart from its method, which has called it.
    pub is_apart: bool,
    /// The method.
    pub method: FunctionId,
    /// The method has metadata, so that exception callbacks are made for it.
    pub has_metadata: bool,
}

impl Frame {
    /// Returns true if the frame is the first one of its method that an exception reaches. A method is reported once,
    /// with the funclets of it that the exception leaves on the way (recorded on 3.1.3, 8.0.34, 9.0.23, 10.0.15 and
    /// 11.0.0 in optimized code), but for funclets that it has called itself on .NET 9
    /// ([`reports_called_funclets`](clr_runtime::generation::Generation::reports_called_funclets)).
    pub(super) const fn is_first_of_method(&self) -> bool {
        !self.from_funclet || self.is_reported_again
    }

    /// Returns true if the frame is the last one of its method.
    pub(super) const fn is_last_of_method(&self) -> bool {
        !matches!(self.funclet, Some(Funclet::Handler)) || self.is_apart
    }

    /// Returns the caller's rsp (VA), which identifies the frame.
    pub(super) const fn caller_sp(&self) -> u64 {
        self.caller.rsp()
    }
}

/// The next thing that an exception reaches after a frame.
pub(super) enum Next {
    /// Another managed frame.
    Frame(Box<Frame>),
    /// The native code that has called a filter: an exception thrown by the filter ends there.
    FilterCaller,
    /// Native code in which the exception is propagated separately (C-166).
    NativeCaller,
    /// Nothing that could handle the exception.
    Nothing,
}

impl World<'_> {
    /// Unwinds registers from a frame to its caller. Returns the position of the caller's rip.
    fn unwind(&self, registers: &mut Registers, position: Position) -> Option<Position> {
        let memory = &*self.runtime.memory.borrow();
        let rules = self.runtime.generation.unwind_rules();
        if let Some(managed) = self.runtime.code.find(registers.rip) {
            self.runtime.code.unwind(managed, rules, registers, memory).ok()?;
            return Some(Position::ReturnAddress);
        }
        let unwinder = Unwinder::new(self.runtime.native.map());
        Some(unwinder.step(registers, position, memory).ok()?.caller)
    }

    /// Returns the managed frame with these registers.
    fn frame(
        &self,
        registers: &Registers,
        position: Position,
        inner: Option<u64>,
    ) -> Option<Frame> {
        let managed = self.runtime.code.find(registers.rip)?;
        let mut caller = *registers;
        let rules = self.runtime.generation.unwind_rules();
        let memory = &*self.runtime.memory.borrow();
        let step = self.runtime.code.unwind(managed, rules, &mut caller, memory).ok()?;
        let own = match position {
            Position::ReturnAddress => registers.rip.wrapping_sub(1),
            Position::Interrupted => registers.rip,
        };
        let funclet = managed.code.funclet(own);
        let is_called = || {
            let running = self.running_funclet(self.current, caller.rsp());
            funclet == Some(Funclet::Handler)
                && running.and_then(|running| running.parent_caller_sp).is_none()
                && !self.is_repeated(own)
        };
        Some(Frame {
            is_reported_again: false,
            is_apart: self.runtime.generation.reports_called_funclets() && is_called(),
            registers: *registers,
            address: inner.unwrap_or(own),
            caller,
            funclet,
            establisher: step.establisher_frame,
            from_funclet: inner.is_some(),
            method: managed.method.id,
            has_metadata: !matches!(managed.method.kind, MethodKind::IlStub | MethodKind::Dynamic),
        })
    }

    /// Returns true if the JIT has repeated the handler at an address in the method (VA), which then calls no funclet of it: in optimized
    /// code, if no guarded statement is in it, and it is in no other handler. Recorded on 9.0.22 and 9.0.23 with one `finally`, and with one
    /// in another; that nothing else decides about it is assumed.
    fn is_repeated(&self, address: u64) -> bool {
        const DISABLES_OPTIMIZATIONS: EventMask = EventMask(0x40_0000);
        let is_optimized = !self.runtime.process.get().event_mask.contains(DISABLES_OPTIMIZATIONS);
        let Some(handler) = self.linked.part(address) else { return false };
        let mut clauses = self.linked.clauses.iter().filter(|clause| !clause.apart);
        is_optimized
            && clauses.all(|clause| {
                let guarded = self.linked.part(clause.begin);
                let is_inside = handler.begin <= clause.begin && clause.begin < handler.end;
                let is_own = clause.handler == handler.begin;
                !(is_inside || is_own && guarded.is_some_and(|part| part.funclet.is_some()))
            })
    }

    /// Returns true if no exception passes through a native function: on Unix, through none of the
    /// program's own.
    fn stops_exceptions(&self, rip: u64, position: Position) -> bool {
        let function = self.linked.function_of(rip, position);
        let native = |id: &clr_codegen::FunctionIndex| {
            self.expanded.identities.get(id.index()) == Some(&Identity::Native)
                && self.expanded.placed.contains(id)
        };
        self.runtime.generation.is_unix() && function.as_ref().is_some_and(native)
    }

    /// Returns true if the runtime's native frame at `rip` catches exceptions of the managed code
    /// it called. Under managed exception handling they have already been caught.
    fn catches(&self, rip: u64, position: Position) -> bool {
        let generation = self.runtime.generation;
        let catches_anything = generation.hides_exception_handling();
        let is = |function, shared| self.expanded.shared.get(&shared) == Some(&function);
        self.linked.function_of(rip, position).is_some_and(|function| {
            is(function, Shared::ClassInit)
                || is(function, Shared::CallUnhandledHandler)
                || is(function, Shared::InvokeMethod)
                    && (catches_anything || generation.catches_in_reflection())
        })
    }

    /// Returns the frame in which an exception that has reached native code ends: a native frame of
    /// the runtime, or the next managed one if no native code in between stops the exception.
    pub(super) fn native_catcher(
        &self,
        mut registers: Registers,
        mut position: Position,
    ) -> Option<Registers> {
        for _ in 0..LIMIT {
            if self.runtime.code.find(registers.rip).is_some()
                || self.catches(registers.rip, position)
            {
                return Some(registers);
            }
            if self.stops_exceptions(registers.rip, position) {
                return None;
            }
            position = self.unwind(&mut registers, position)?;
        }
        None
    }

    /// Returns true if managed handling ends after a frame: the caller is native code that calls
    /// methods, or the frame is the stub of a reverse P/Invoke. Other native code is skipped
    /// (`SfiNext`).
    fn ends_managed_part(&self, frame: &Frame) -> bool {
        if self.runtime.code.find(frame.caller.rip).is_some() {
            return false;
        }
        let function = |rip| self.linked.function_of(rip, Position::ReturnAddress);
        let worker = self.expanded.shared.get(&Shared::CallDescrWorker);
        let own = function(frame.registers.rip);
        let is_stub = self
            .expanded
            .stubs
            .iter()
            .any(|((_, stub), id)| *stub == Stub::ReversePInvoke && Some(*id) == own);
        is_stub
            || own.is_some_and(|own| self.is_entry_of_library(own))
            || function(frame.caller.rip).as_ref() == worker
    }

    /// Returns the next managed frame that is not part of the runtime's own exception handling,
    /// starting at these registers. With `inner`, returns the frame with that caller SP.
    fn managed_from(
        &self,
        mut registers: Registers,
        mut position: Position,
        inner: Option<(u64, u64)>,
        pass: Pass,
    ) -> Option<Frame> {
        let passes = pass == Pass::First && self.runtime.generation.searches_behind_native_code();
        for _ in 0..LIMIT {
            if let Some(managed) = self.runtime.code.find(registers.rip) {
                let frame = self.frame(&registers, position, inner.map(|(_, address)| address))?;
                let wanted = match inner {
                    Some((caller_sp, _)) => frame.caller_sp() == caller_sp,
                    None => managed.method.kind != MethodKind::ExceptionHandling,
                };
                if wanted {
                    return Some(frame);
                }
            } else if inner.is_none() && !passes && self.stops_exceptions(registers.rip, position) {
                return None;
            }
            position = self.unwind(&mut registers, position)?;
        }
        None
    }

    /// Returns the registers of the caller of the service that a thread is in.
    pub(super) fn service_caller(&self) -> Option<Registers> {
        let machine = self.runtime.memory.borrow();
        let mut registers = machine.cpu().registers();
        let rsp = registers.rsp();
        registers.rip = clr_unwind::Memory::read_u64(&*machine, rsp).ok()?;
        registers.set(clr_unwind::Gpr::Rsp, rsp.wrapping_add(8));
        Some(registers)
    }

    /// Returns the throwing frame, found from the service that a thread is in.
    pub(super) fn throwing_frame(&self) -> Option<Frame> {
        self.managed_from(self.service_caller()?, Position::ReturnAddress, None, Pass::Second)
    }

    /// Returns what an exception reaches after a frame that is not a funclet.
    fn behind(&self, frame: &Frame, pass: Pass) -> Next {
        let position = Position::ReturnAddress;
        if self.runtime.generation.hides_exception_handling() {
            // The managed part is unwound even if nothing beyond it catches: the process ends then.
            if self.ends_managed_part(frame) {
                return Next::NativeCaller;
            }
        } else if self
            .native_catcher(frame.caller, position)
            .is_some_and(|native| self.catches(native.rip, position))
        {
            return Next::NativeCaller;
        }
        let found = self.managed_from(frame.caller, position, None, pass);
        found.map_or(Next::Nothing, |frame| Next::Frame(Box::new(frame)))
    }

    /// Returns what an exception reaches after a frame.
    pub(super) fn next_frame(&self, thread: usize, frame: &Frame, pass: Pass) -> Next {
        let position = Position::ReturnAddress;
        let found = match frame.funclet {
            Some(Funclet::Filter) => return Next::FilterCaller,
            Some(Funclet::Handler) => {
                let running = self.running_funclet(thread, frame.caller_sp());
                if let Some(parent) = running.and_then(|running| running.parent_caller_sp) {
                    let origin = Some((parent, frame.address));
                    self.managed_from(frame.caller, position, origin, pass)
                } else {
                    // The funclet was called by its own method.
                    let own = self.frame(&frame.caller, position, Some(frame.address));
                    own.map(|own| Frame { is_reported_again: frame.is_apart, ..own })
                }
            }
            None => return self.behind(frame, pass),
        };
        found.map_or(Next::Nothing, |frame| Next::Frame(Box::new(frame)))
    }

    fn running_funclet(&self, thread: usize, caller_sp: u64) -> Option<RunningFunclet> {
        let os = self.os(thread)?;
        self.runtime.thread(os, |thread| thread.exceptions.running_funclet(caller_sp)).flatten()
    }

    /// Returns the EH clauses that apply to an exception at a frame, by index, in search order.
    /// Clauses that enclose a funclet are handled by the frame that their guarded body is in.
    pub(super) fn clauses_for(&self, frame: &Frame) -> Vec<(usize, HandlerKind)> {
        let root = |address| self.linked.part(address).map(|part| (part.root, part.funclet));
        let own = root(frame.registers.rip.wrapping_sub(1)).or_else(|| root(frame.address));
        let clauses = &self.linked.clauses;
        let found = clauses.iter().enumerate().filter(|(_, clause)| {
            if !clause.protects(frame.address) {
                return false;
            }
            let body = clauses.iter().find(|body| {
                !body.apart
                    && (body.function, body.statement) == (clause.function, clause.statement)
            });
            let home = root(body.unwrap_or(clause).begin);
            if frame.funclet.is_none() {
                return home.is_some_and(|(_, funclet)| funclet.is_none());
            }
            (!frame.from_funclet && !clause.apart)
                || home.map(|(root, _)| root) == own.map(|(root, _)| root)
        });
        found.map(|(index, clause)| (index, clause.kind)).collect()
    }
}
