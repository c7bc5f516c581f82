//! From a frame to its caller, with doubts.

use super::call_site::{ends_in_call, follows_call};
use super::reason::Reason;
use super::stack::Source;
use crate::cfi::CfiTable;
use crate::profiling::{StackBounds, TargetThread};
use crate::registers::{Gpr, RegisterSet, Registers};
use crate::unwind::{Position, Trust, UnwindError, Unwinder};

/// A frame on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    pub registers: Registers,
    /// Which of them are really its own.
    pub known: RegisterSet,
    pub position: Position,
    pub source: Source,
}

impl Cursor {
    /// Where a thread is stopped, but for the registers.
    pub(super) const NOWHERE: Self = Self {
        registers: Registers { rip: 0, gpr: [0; 16], xmm: [0; 10] },
        known: RegisterSet::ALL,
        position: Position::Interrupted,
        source: Source::Context,
    };

    /// An address within the instruction that the frame is in (VA): the call's, for a return address.
    pub(super) const fn inside(&self) -> u64 {
        inside(self.registers.rip, self.position)
    }
}

/// An address within the instruction that a frame with this `ip` is in (VA).
pub(super) const fn inside(ip: u64, position: Position) -> u64 {
    match position {
        Position::Interrupted => ip,
        Position::ReturnAddress => ip.wrapping_sub(1),
    }
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// The frame is its caller now.
    Caller,
    /// The frame is that of the thread's first function: it stays.
    Root,
}

/// Unwinds the frames of a thread that stands still.
#[derive(Debug)]
pub(super) struct Steps<'s, 'a, T> {
    pub unwinder: Unwinder<'s, 'a>,
    pub target: &'s T,
    pub stack: StackBounds,
}

impl<T: TargetThread> Steps<'_, '_, T> {
    /// Takes a frame to its caller; without one it is not to be used any more.
    pub(super) fn step(&self, frame: &mut Cursor) -> Result<Stepped, Reason> {
        let (rsp, address) = (frame.registers.rsp(), frame.registers.rip);
        let registers = &mut frame.registers;
        let step = match self.unwinder.step(registers, frame.position, self.target) {
            Ok(step) => step,
            Err(UnwindError::EndOfStack { .. }) => return Ok(Stepped::Root),
            Err(error) => return Err(error.into()),
        };
        if let Some(register) = step.needed.difference(frame.known).gprs().next() {
            return Err(UnwindError::LostRegister { register, address }.into());
        }
        frame.known = step.known(frame.known);
        let position = step.caller;
        let (rip, caller_rsp) = (registers.rip, registers.rsp());
        let goes_on = caller_rsp > rsp || position == Position::Interrupted;
        // By call frame information the first frame may leave the stack pointer where it is.
        if !goes_on && step.trust != Trust::Cfi {
            return Err(UnwindError::NoProgress { rsp, caller_rsp }.into());
        }
        // The first function's caller has nothing on the stack: it may lie at the stack's base.
        let is_at_root = rip == self.stack.root && position == Position::ReturnAddress;
        // A signal handler may have a stack of its own.
        let contained =
            self.stack.contain(caller_rsp) || is_at_root && caller_rsp == self.stack.base;
        if self.stack.contain(rsp) && !contained {
            return Err(Reason::OutsideStack { sp: caller_rsp });
        }
        // A word that happens to be 0 is not the root: code without unwind data may have pushed it.
        let is_by_data = !matches!(step.trust, Trust::Leaf | Trust::Stub) || rip != 0;
        if is_at_root && is_by_data {
            return Ok(Stepped::Root);
        }
        let returns = || self.is_return_address(rip) || self.is_signal_return(&frame.registers);
        if position == Position::ReturnAddress && !returns() {
            return Err(Reason::NotACall { address: rip });
        }
        frame.position = position;
        frame.source = Source::Unwound(step.trust);
        Ok(Stepped::Caller)
    }

    /// Whether unwind data show that the stack is not that of a frame in managed code: it has no caller
    /// there, or is the thread's first, which no method is. Data that is not there, or is no good, shows
    /// nothing; and a return address that the GC has hijacked leads to code too (H-15).
    pub(super) fn has_no_caller(&self, mut frame: Cursor) -> bool {
        match self.step(&mut frame) {
            Ok(Stepped::Caller) => false,
            Ok(Stepped::Root) => true,
            Err(Reason::NotACall { address }) => !self.knows(address),
            Err(reason) => matches!(
                reason,
                Reason::OutsideStack { .. }
                    | Reason::Unwind(UnwindError::Stack(_) | UnwindError::NoProgress { .. })
            ),
        }
    }

    /// Takes a frame that has nothing on the stack but its return address to its caller, if that is where a
    /// call returns to.
    pub(super) fn leave_stub(&self, frame: &mut Cursor) -> bool {
        let rsp = frame.registers.rsp();
        let Ok(address) = self.target.read_u64(rsp) else { return false };
        let caller_rsp = rsp.wrapping_add(8);
        if !self.stack.contain(caller_rsp) || follows_call(address, self.target) != Some(true) {
            return false;
        }
        frame.registers.rip = address;
        frame.registers.set(Gpr::Rsp, caller_rsp);
        frame.known = frame.known.intersection(self.unwinder.convention().nonvolatile());
        frame.position = Position::ReturnAddress;
        frame.source = Source::Unwound(Trust::Stub);
        true
    }

    /// Whether the kernel has put rip there for a signal handler to return to: no call comes before it.
    fn is_signal_return(&self, registers: &Registers) -> bool {
        let step = self.unwinder.step(&mut registers.clone(), Position::ReturnAddress, self.target);
        step.is_ok_and(|step| step.trust == Trust::SignalFrame)
    }

    /// Whether `address` (VA) can be one that a call returns to.
    fn is_return_address(&self, address: u64) -> bool {
        follows_call(address, self.target).unwrap_or_else(|| self.has_call(address))
    }

    /// The same by what is known of code that cannot be read: a call, or at least a function.
    fn has_call(&self, address: u64) -> bool {
        let found = self.unwinder.code_map().find(address.wrapping_sub(1));
        let Some((region, rva)) = found else { return false };
        let first = rva.checked_sub(6);
        if let Some(before) = first.and_then(|first| region.bytes_from(first)?.first_chunk()) {
            return ends_in_call(*before);
        }
        let function = |table: &CfiTable<'_>| table.function(rva).is_some();
        region.functions().find(rva).is_some() || region.cfi().is_some_and(function)
    }

    /// Whether native code that the runtime tells of can be at `address` (VA): what does not follow a call,
    /// or is no code at all, is none.
    pub(super) fn is_believable(&self, address: u64) -> bool {
        follows_call(address, self.target).unwrap_or_else(|| self.knows(address.wrapping_sub(1)))
    }

    /// Whether there is unwind data for the code at `address` (VA).
    pub(super) fn knows(&self, address: u64) -> bool {
        self.unwinder.code_map().find(address).is_some()
    }

    /// What the ip of a frame is that only the runtime tells of, which does not say (C-091). An
    /// interrupted instruction that a call comes before unwinds as its return address would.
    pub(super) fn position(&self, ip: u64) -> Position {
        match follows_call(ip, self.target) {
            Some(false) => Position::Interrupted,
            Some(true) | None => Position::ReturnAddress,
        }
    }
}
