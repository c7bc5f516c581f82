//! Steps from a frame to its caller, with checks that the result is plausible.

use super::called;
use super::hijacked::true_return_address;
use super::reason::Reason;
use super::redirected::Redirected;
use super::stack::Source;
use super::stub;
use crate::profiling::{StackBounds, TargetThread};
use clr_unwind::cfi::CfiTable;
use clr_unwind::x64::{ends_in_call, epilogue_len, follows_call};
use clr_unwind::{
    CodeMap, CodeRegion, Gpr, Position, RegisterSet, Registers, Trust, UnwindError, Unwinder,
};
use core::cell::Cell;

/// Maximum number of registers that an epilogue restores.
const MOST_POPS: usize = 8;

/// A frame on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    pub registers: Registers,
    /// The registers whose values are the frame's own.
    pub known: RegisterSet,
    pub position: Position,
    pub source: Source,
}

impl Cursor {
    /// A stopped thread's first frame, with all registers 0.
    pub(super) const NOWHERE: Self = Self {
        registers: Registers { rip: 0, gpr: [0; 16], xmm: [0; 10] },
        known: RegisterSet::ALL,
        position: Position::Interrupted,
        source: Source::Context,
    };

    /// Returns an address within the frame's current instruction (VA), which is the call for a
    /// return address.
    pub(super) const fn inside(&self) -> u64 {
        inside(self.registers.rip, self.position)
    }
}

/// Returns an address within the current instruction of a frame with this `ip` (VA).
pub(super) const fn inside(ip: u64, position: Position) -> u64 {
    match position {
        Position::Interrupted => ip,
        Position::ReturnAddress => ip.wrapping_sub(1),
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// The frame is now its caller.
    Caller,
    /// The frame is the thread's first function, and is left as it is.
    Root,
}

/// An unwinder of the frames of a stopped thread.
#[derive(Debug)]
pub(super) struct Steps<'s, 'a, T> {
    pub unwinder: Unwinder<'s, 'a>,
    pub target: &'s T,
    pub stack: StackBounds,
    /// The region that was found last: that of the next frame, often.
    last: Cell<Option<&'s CodeRegion<'a>>>,
}

impl<'s, 'a, T: TargetThread> Steps<'s, 'a, T> {
    pub(super) fn new(map: &'s CodeMap<'a>, target: &'s T) -> Self {
        let (unwinder, stack) = (Unwinder::new(map), target.stack());
        Self { unwinder, target, stack, last: Cell::new(None) }
    }

    /// Returns the region that contains `address` (VA), and the RVA of `address` there.
    #[inline]
    fn find(&self, address: u64) -> Option<(&'s CodeRegion<'a>, u32)> {
        if let Some(region) = self.last.get()
            && let Some(rva) = region.rva(address)
        {
            return Some((region, rva));
        }
        let found = self.unwinder.code_map().find(address);
        if let Some((region, _)) = found {
            self.last.set(Some(region));
        }
        found
    }

    /// Reads the thread's registers. Not inlined: a handler's stack may have no room for a second
    /// copy during the walk.
    #[inline(never)]
    pub(super) fn read_registers(&self, registers: &mut Registers) -> Result<(), Reason> {
        let context = self.target.context().map_err(|_| Reason::NotStopped)?;
        if context.may_be_stale() {
            return Err(Reason::StaleContext);
        }
        *registers = context.registers;
        Ok(())
    }

    /// Moves a frame to its caller. After an error the frame must not be used any more.
    pub(super) fn step(&self, frame: &mut Cursor) -> Result<Stepped, Reason> {
        let (rsp, address) = (frame.registers.rsp(), frame.registers.rip);
        let (rbp, inside) = (frame.registers.get(Gpr::Rbp), frame.inside());
        let found = self.find(inside);
        let registers = &mut frame.registers;
        let step = match self.unwinder.step_at(found, registers, frame.position, self.target) {
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
        // With call frame information the first frame may leave the stack pointer where it is.
        if !goes_on && !matches!(step.trust, Trust::Cfi | Trust::ReturnInstruction) {
            return Err(UnwindError::NoProgress { rsp, caller_rsp }.into());
        }
        // The first function's caller has nothing on the stack: its stack pointer may be the
        // stack's base.
        let is_at_root = position == Position::ReturnAddress && self.stack.end_at(rip, caller_rsp);
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
        let redirected = || Redirected::at(self.unwinder.code_map(), inside);
        if frame.position == Position::Interrupted
            && matches!(step.trust, Trust::Prologue | Trust::Body)
            && redirected() == Some(Redirected::Entered)
        {
            return Err(Reason::NotACall { address: rip });
        }
        let returns =
            |caller: &Registers| self.is_return_address(rip) || self.is_signal_return(caller);
        let is_called_by_data = position == Position::ReturnAddress && step.trust == Trust::Cfi;
        // Calls are made with an aligned stack (System V psABI, section 3.2.2). A row that contradicts this may name
        // an old return address.
        if is_called_by_data
            && (caller_rsp % 16 != 0 || !returns(&frame.registers))
            && self.leave_by_row_before_epilogue(inside, (rsp, rbp), frame)
        {
            return Ok(Stepped::Caller);
        }
        if position == Position::ReturnAddress && !returns(&frame.registers) {
            // The runtime's handler of faults was not called.
            if is_called_by_data && self.is_interrupted_method(&frame.registers) {
                frame.position = Position::Interrupted;
                frame.source = Source::Unwound(Trust::Cfi);
                return Ok(Stepped::Caller);
            }
            // Where heaps are known to the system, a stub that has pushed a word is taken for a leaf.
            if step.trust == Trust::Leaf && self.leave_pushing_stub(address, rsp, frame) {
                return Ok(Stepped::Caller);
            }
            if self.leave_hijacked(caller_rsp, frame) {
                frame.source = Source::Unwound(step.trust);
                return Ok(Stepped::Caller);
            }
            if redirected() == Some(Redirected::Stored)
                && self.is_interrupted_method(&frame.registers)
            {
                frame.position = Position::Interrupted;
                frame.source = Source::Unwound(step.trust);
                return Ok(Stepped::Caller);
            }
            return Err(Reason::NotACall { address: rip });
        }
        frame.position = position;
        frame.source = Source::Unwound(step.trust);
        Ok(Stepped::Caller)
    }

    /// Corrects the caller of a frame whose return address, below `caller_rsp` (VA), the runtime has hijacked.
    /// Returns true if the Thread object has the true one, and a call in known code returns there.
    fn leave_hijacked(&self, caller_rsp: u64, frame: &mut Cursor) -> bool {
        let thread = self.target.id().0;
        let found = true_return_address(self.target, thread, caller_rsp.wrapping_sub(8));
        let Some(address) = found.filter(|address| self.knows(address.wrapping_sub(1))) else {
            return false;
        };
        if !self.is_return_address(address) {
            return false;
        }
        frame.registers.rip = address;
        frame.position = Position::ReturnAddress;
        true
    }

    /// Moves a frame of native code at `inside` (VA), of which `frame` has the caller that its row names, to the
    /// caller that the row before an epilogue names. Returns true if it did. `own` are the frame's rsp and rbp.
    #[cold]
    #[inline(never)]
    fn leave_by_row_before_epilogue(
        &self,
        inside: u64,
        own: (u64, u64),
        frame: &mut Cursor,
    ) -> bool {
        let Some(caller) = self.by_row_before_epilogue(inside, own, &frame.registers) else {
            return false;
        };
        frame.registers = caller;
        frame.position = Position::ReturnAddress;
        frame.source = Source::Unwound(Trust::Cfi);
        true
    }

    /// Returns the caller of a frame at `inside` (VA) behind an epilogue, in a row of call frame
    /// information that begins in the epilogue: by the row before the epilogue, if a call in known code returns
    /// to the address that this names. `named` are the registers of the caller that the epilogue's row
    /// names, `own` the frame's rsp and rbp.
    ///
    /// `UMThunkStub` of CoreCLR 3.1 is so: its rare parts come after its `ret`, and the assembler was not
    /// asked to restore the rules. Threads wait there for the end of a suspension.
    #[inline(never)]
    fn by_row_before_epilogue(
        &self,
        inside: u64,
        (rsp, rbp): (u64, u64),
        named: &Registers,
    ) -> Option<Registers> {
        let map = self.unwinder.code_map();
        let (region, rva) = map.find(inside)?;
        let end_of = |start: u32| start.checked_add(epilogue_len(region.bytes_from(start)?)?);
        let mut start = region.cfi()?.row_start(rva)?;
        let end = end_of(start).filter(|end| *end <= rva)?;
        // Each `pop` may have a row of its own.
        for _ in 0..MOST_POPS {
            let Some(before) = region.cfi()?.row_start(start.checked_sub(1)?) else { break };
            if end_of(before) != Some(end) {
                break;
            }
            start = before;
        }
        // The epilogue restores what the function saves, so the rest is the caller's already.
        let mut caller = *named;
        caller.set(Gpr::Rsp, rsp);
        caller.set(Gpr::Rbp, rbp);
        caller.rip = region.base().wrapping_add(start.into());
        let step = self.unwinder.step(&mut caller, Position::ReturnAddress, self.target).ok()?;
        let needs = step.needed.difference(RegisterSet::of(&[Gpr::Rsp, Gpr::Rbp]));
        let is_known = map.find(caller.rip.wrapping_sub(1)).is_some();
        let is_above = caller.rsp() > rsp && self.stack.contain(caller.rsp());
        let is_call = is_known && is_above && self.is_return_address(caller.rip);
        (is_call && needs.gprs().next().is_none()).then_some(caller)
    }

    /// Returns true if the thread was interrupted in a method: rip is in one, and a step from there leads
    /// to a return address. The runtime's handler of faults on Unix pretends that it was called from
    /// the faulting instruction, and on Windows a stub does so with the one at which the GC stopped a thread.
    fn is_interrupted_method(&self, registers: &Registers) -> bool {
        let mut caller = *registers;
        let step = self.unwinder.step(&mut caller, Position::Interrupted, self.target);
        let is_method = self.unwinder.code_map().find_function(registers.rip).is_some();
        is_method && step.is_ok() && self.is_return_address(caller.rip)
    }

    /// Returns true if unwind data show that the stack is not that of a frame in managed code: the
    /// frame has no caller there, or is the thread's first, which no method is. Missing or faulty
    /// data show nothing, and a return address that the GC has hijacked leads to code too (H-15).
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

    /// Moves a frame that has only its return address on the stack to its caller. Returns true if a
    /// call returns to that address.
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

    /// Moves a frame that was interrupted in unknown code to its caller, if the word on top of the
    /// stack is a return address in a method: a call comes before it, and UNWIND_INFO describes
    /// the function that makes it. Returns true if it is.
    fn leave_by_stack_top(&self, frame: &mut Cursor) -> bool {
        let rsp = frame.registers.rsp();
        let Ok(address) = self.target.read_u64(rsp) else { return false };
        if frame.position != Position::Interrupted || !self.is_call_of_method(address) {
            return false;
        }
        self.leave_stub(frame)
    }

    /// Returns true if the code that `frame` was interrupted in can have been entered by the call which returns
    /// to the word on top of the stack: the stack is aligned as at a function's start (System V psABI,
    /// section 3.2.2; the convention of Windows has the same), and the call leads there, or can.
    pub(super) fn may_be_entered(&self, frame: &Cursor) -> bool {
        let Registers { rip, .. } = frame.registers;
        let rsp = frame.registers.rsp();
        let Ok(address) = self.target.read_u64(rsp) else { return false };
        rsp % 16 == 8 && called::may_lead(address, rip, |to| self.stays(to), self.target)
    }

    /// Returns true if a call in a method returns to `address` (VA): UNWIND_INFO describes its function.
    pub(super) fn is_call_of_method(&self, address: u64) -> bool {
        self.unwinder.code_map().find_function(address.wrapping_sub(1)).is_some()
            && self.is_return_address(address)
    }

    /// Moves a frame in unknown code to its caller, by what the code does or by the top of the stack.
    /// Returns true if it did. Not inlined: no step is under way, so the stack need is not added up.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_unknown(&self, frame: &mut Cursor) -> bool {
        let jumps_on = stub::target(&frame.registers, self.target);
        let is_left = jumps_on.is_some_and(|to| self.knows(to)) && self.leave_stub(frame)
            || self.leave_by_code(frame)
            || self.leave_pushing_stub(frame.registers.rip, frame.registers.rsp(), frame);
        if is_left || !self.may_be_entered(frame) || !self.leave_by_stack_top(frame) {
            return is_left;
        }
        frame.source = Source::Unwound(Trust::StackTop);
        true
    }

    /// Moves a frame that was interrupted in unknown code to its caller, if its instructions lead to a return, and
    /// a call comes before the word that this takes. Returns true if they do.
    #[inline(never)]
    fn leave_by_code(&self, frame: &mut Cursor) -> bool {
        let rip = frame.registers.rip;
        let mut code = [0; 64];
        // The code may be at a mapping's end.
        let len = [64, 16, 4, 1].into_iter().find(|len| {
            let room = code.get_mut(..*len);
            room.is_some_and(|room| self.target.read(rip, room).is_ok())
        });
        let Some(code) = len.and_then(|len| code.get(..len)) else { return false };
        if frame.position != Position::Interrupted {
            return false;
        }
        let mut registers = frame.registers;
        let Some(step) = Unwinder::step_by_code(code, &mut registers, self.target) else {
            return false;
        };
        let is_caller =
            self.stack.contain(registers.rsp()) && self.is_return_address(registers.rip);
        if !is_caller || !frame.known.contains_all(step.needed) {
            return false;
        }
        frame.known = step.known(frame.known);
        frame.registers = registers;
        frame.position = Position::ReturnAddress;
        frame.source = Source::Unwound(step.trust);
        true
    }

    /// Moves a frame that was interrupted at `rip` and `rsp` (VA) in a stub which has pushed words to
    /// its caller, if the stub's code pops them before it jumps, and the next word is a return address
    /// in a method. Returns true if it is.
    #[cold]
    #[inline(never)]
    fn leave_pushing_stub(&self, rip: u64, rsp: u64, frame: &mut Cursor) -> bool {
        let Some(words @ 1..) = stub::popped(rip, self.target) else { return false };
        let mut caller = *frame;
        // A failed step has moved these.
        caller.registers.rip = rip;
        caller.registers.set(Gpr::Rsp, rsp.wrapping_add(words * 8));
        let is_left = self.may_be_entered(&caller) && self.leave_by_stack_top(&mut caller);
        if is_left {
            caller.source = Source::Unwound(Trust::Stub);
            *frame = caller;
        }
        is_left
    }

    /// Returns true if the kernel made rip the return address of a signal handler: no call comes
    /// before it.
    fn is_signal_return(&self, registers: &Registers) -> bool {
        let step = self.unwinder.step(&mut registers.clone(), Position::ReturnAddress, self.target);
        step.is_ok_and(|step| step.trust == Trust::SignalFrame)
    }

    /// Returns true if a call can return to `address` (VA).
    fn is_return_address(&self, address: u64) -> bool {
        let found = self.find(address.wrapping_sub(1));
        if found.is_some_and(|(region, rva)| region.is_known_call(rva)) {
            return true;
        }
        let in_image = self.code_before(address).map(ends_in_call);
        in_image
            .or_else(|| follows_call(address, self.target))
            .unwrap_or_else(|| self.has_function(address))
    }

    /// Returns the seven bytes before `address` (VA) if the code map has them. Reading them from
    /// the process may cost a system call.
    fn code_before(&self, address: u64) -> Option<[u8; 7]> {
        let (region, rva) = self.find(address.wrapping_sub(1))?;
        region.bytes_from(rva.checked_sub(6)?)?.first_chunk().copied()
    }

    /// Returns true if there is a function in an image whose code cannot be read, before `address`
    /// (VA).
    fn has_function(&self, address: u64) -> bool {
        self.describes(address.wrapping_sub(1))
    }

    /// Returns true if the function at `address` (VA) makes no tail call: no jump leaves it. `None` if there is no
    /// function.
    fn stays(&self, address: u64) -> Option<bool> {
        let (region, rva) = self.find(address)?;
        let function = region.functions().find(rva).map(|function| function.begin..function.end);
        let function = function.or_else(|| region.cfi()?.function(rva))?;
        Some(called::stays(region, &function))
    }

    /// Returns true if there is unwind data for a function at `address` (VA).
    fn describes(&self, address: u64) -> bool {
        let Some((region, rva)) = self.find(address) else { return false };
        let function = |table: &CfiTable<'_>| table.function(rva).is_some();
        region.functions().find(rva).is_some() || region.cfi().is_some_and(function)
    }

    /// Returns true if native code that the runtime reports can be at `address` (VA): an address
    /// that is not after a call, or not in code, is no return address.
    pub(super) fn is_believable(&self, address: u64) -> bool {
        follows_call(address, self.target).unwrap_or_else(|| self.knows(address.wrapping_sub(1)))
    }

    /// Returns true if there is unwind data for the code at `address` (VA).
    pub(super) fn knows(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    /// Returns the kind of address in the `ip` of a frame that only the runtime reports, because
    /// the runtime does not say (C-091). An interrupted instruction that follows a call unwinds as
    /// its return address would.
    pub(super) fn position(&self, ip: u64) -> Position {
        match follows_call(ip, self.target) {
            Some(false) => Position::Interrupted,
            Some(true) | None => Position::ReturnAddress,
        }
    }
}
