//! Call frame information: the locations of the caller's registers at each instruction.
//!
//! Lowering keeps the row up to date while it writes instructions ([`Rows`]); once they have
//! addresses, the rows become CFI ([`write`]).

mod write;

pub(super) use write::{EMPTY_LSDA, EhFrame, FrameRange, write};

use super::marks::CfiMistake;
use super::shape::EntryForm;
use clr_unwind::Gpr;

/// The location of the CFA, which is the caller's rsp after the call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cfa {
    /// The value of a register plus an offset in bytes.
    Above(Gpr, i32),
    /// The word at the value of a register plus an offset in bytes.
    Word(Gpr, i32),
    /// The expression that linkers write for an entry of the procedure linkage table: rsp + 8, and
    /// rsp + 16 once the entry has pushed its number. The address decides which.
    Plt,
}

/// Offsets in bytes at which the Linux kernel saves registers for a signal (`ucontext_t`), counted
/// from the end of the stack word that holds the trampoline's address.
pub struct SignalContext {
    /// Offsets of all registers but rsp.
    pub registers: [(Gpr, i32); 15],
    /// Offset of rsp.
    pub rsp: i32,
    /// Offset of rip.
    pub rip: i32,
    /// Offset of rflags.
    pub rflags: i32,
    /// Size in bytes, including the `siginfo_t` that follows.
    pub size: u64,
}

/// The offsets that Linux uses on x86-64.
pub const SIGNAL_CONTEXT: SignalContext = SignalContext {
    registers: [
        (Gpr::R8, 40),
        (Gpr::R9, 48),
        (Gpr::R10, 56),
        (Gpr::R11, 64),
        (Gpr::R12, 72),
        (Gpr::R13, 80),
        (Gpr::R14, 88),
        (Gpr::R15, 96),
        (Gpr::Rdi, 104),
        (Gpr::Rsi, 112),
        (Gpr::Rbp, 120),
        (Gpr::Rbx, 128),
        (Gpr::Rdx, 136),
        (Gpr::Rax, 144),
        (Gpr::Rcx, 152),
    ],
    rsp: 160,
    rip: 168,
    rflags: 176,
    size: 304 + 128,
};

/// The location of a caller's register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// Still in the register.
    #[default]
    Same,
    /// At the CFA plus an offset in bytes.
    At(i32),
    /// At the value of a register plus an offset in bytes.
    By(Gpr, i32),
    /// In another register.
    In(Gpr),
}

/// The CFA and the locations of all registers before an instruction executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub cfa: Cfa,
    /// Distance from rsp to the CFA in bytes; meaningless while the body moves rsp.
    pub rsp: i32,
    /// Indexed by the register's number in machine code.
    pub registers: [Rule; 16],
    /// Location of the return address.
    pub return_address: Rule,
    /// Bytes of arguments that have been pushed for a call.
    pub arguments: i32,
    /// The frame was entered by an interrupt.
    pub signal: bool,
}

impl Row {
    /// Returns the row at the first instruction of a function.
    pub(super) fn at_entry(entry: EntryForm) -> Self {
        // A processor's machine frame: rip, cs, rflags, rsp, ss. The CFA is the end of the frame,
        // since rsp may have had any alignment before.
        let frame = 40;
        let error_code = 8;
        let (rsp, return_address) = match entry {
            EntryForm::Call | EntryForm::Signal => (8, -8),
            EntryForm::Interrupt => (frame, -frame),
            EntryForm::InterruptWithErrorCode => (frame + error_code, -frame),
        };
        let mut row = Self {
            cfa: Cfa::Above(Gpr::Rsp, rsp),
            rsp,
            registers: [Rule::Same; 16],
            return_address: Rule::At(return_address),
            arguments: 0,
            signal: entry.has_machine_frame(),
        };
        if row.signal {
            row.set(Gpr::Rsp, Rule::At(-16));
        }
        row
    }

    pub(super) fn set(&mut self, register: Gpr, rule: Rule) {
        if let Some(slot) = self.registers.get_mut(usize::from(register.number())) {
            *slot = rule;
        }
    }

    /// Records that rsp has been lowered by `down` bytes (raised if negative).
    pub(super) fn moved(&mut self, down: i32) {
        self.at_rsp(self.rsp.wrapping_add(down));
    }

    /// Records that rsp is known again: the CFA is `cfa` bytes above rsp.
    pub(super) fn at_rsp(&mut self, cfa: i32) {
        self.rsp = cfa;
        if matches!(self.cfa, Cfa::Above(Gpr::Rsp, _)) {
            self.cfa = Cfa::Above(Gpr::Rsp, cfa);
        }
    }

    /// Records a push of `register`. With `kept`, the caller needs the value.
    pub(super) fn pushed(&mut self, register: Gpr, kept: bool) {
        self.moved(8);
        if kept {
            self.set(register, Rule::At(-self.rsp));
        }
    }

    /// Records a pop of `register`.
    pub(super) fn popped(&mut self, register: Gpr) {
        self.moved(-8);
        self.set(register, Rule::Same);
        if matches!(self.cfa, Cfa::Above(base, _) if base == register) {
            self.cfa = Cfa::Above(Gpr::Rsp, self.rsp);
        }
    }

    /// Records that arguments have been pushed for a call, or released if `bytes` is negative.
    pub(super) fn passed(&mut self, bytes: i32) {
        self.moved(bytes);
        self.arguments = self.arguments.wrapping_add(bytes);
    }

    /// Returns the row at the return address of a signal handler: the registers saved by the kernel
    /// are above rsp.
    pub(super) fn of_signal() -> Self {
        let mut row = Self {
            cfa: Cfa::Word(Gpr::Rsp, SIGNAL_CONTEXT.rsp),
            rsp: 0,
            registers: [Rule::Same; 16],
            return_address: Rule::By(Gpr::Rsp, SIGNAL_CONTEXT.rip),
            arguments: 0,
            signal: true,
        };
        for (register, at) in SIGNAL_CONTEXT.registers {
            row.set(register, Rule::By(Gpr::Rsp, at));
        }
        row
    }

    /// Records that `register` holds rsp + `above` and keeps that value.
    pub(super) fn framed(&mut self, register: Gpr, above: i32) {
        self.cfa = Cfa::Above(register, self.rsp.wrapping_sub(above));
    }
}

/// A change of the row before an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The row changes to this one.
    Row(Row),
    /// An epilogue begins; the row is remembered.
    Remember,
    /// The epilogue has ended; the row is again the remembered one, which is this.
    Restore(Row),
}

/// The row that the CFI describes at a place, and the row that is true there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rowed {
    written: Row,
    actual: Row,
}

impl Rowed {
    const fn truly(row: Row) -> Self {
        Self { written: row, actual: row }
    }

    /// Returns the mistake in the described row, if any.
    fn mistake(&self) -> Option<CfiMistake> {
        let Self { written, actual } = self;
        if written.cfa != actual.cfa {
            Some(CfiMistake::Cfa)
        } else if written.registers != actual.registers {
            Some(CfiMistake::Registers)
        } else {
            None
        }
    }
}

/// The rows of a stream of instructions.
#[derive(Debug)]
pub(super) struct Rows {
    now: Rowed,
    /// Each event with the index of the instruction before which it takes effect, ascending.
    events: Vec<(u32, Event)>,
    /// First instruction of each stretch in which the described row has the given mistake (or
    /// none), ascending.
    mistakes: Vec<(u32, Option<CfiMistake>)>,
}

impl Default for Rows {
    fn default() -> Self {
        let now = Rowed::truly(Row::at_entry(EntryForm::Call));
        Self { now, events: Vec::new(), mistakes: Vec::new() }
    }
}

impl Rows {
    /// Returns the current row.
    pub(super) const fn now(&self) -> Rowed {
        self.now
    }

    /// Returns the number of bytes of arguments that have been pushed for a call.
    pub(super) const fn arguments(&self) -> i32 {
        self.now.actual.arguments
    }

    /// Applies `change` to the row from the instruction `before` on.
    pub(super) fn change(&mut self, before: u32, change: impl Fn(&mut Row)) {
        let mut row = self.now;
        change(&mut row.written);
        change(&mut row.actual);
        if row != self.now {
            self.go_on(before, &row);
        }
    }

    /// Sets the row from the instruction `before` on.
    pub(super) fn begin(&mut self, before: u32, row: Row) {
        self.go_on(before, &Rowed::truly(row));
    }

    /// Sets the row from the instruction `before` on to a row saved at another place.
    pub(super) fn go_on(&mut self, before: u32, row: &Rowed) {
        let Rowed { written, .. } = *row;
        match self.events.last_mut() {
            Some((at, Event::Row(last))) if *at == before => *last = written,
            _ => self.events.push((before, Event::Row(written))),
        }
        self.set(before, row);
    }

    /// Begins an epilogue and returns the row that is restored after it.
    pub(super) fn remember(&mut self, before: u32) -> Rowed {
        self.events.push((before, Event::Remember));
        self.now
    }

    /// Ends an epilogue that began with [`remember`](Self::remember).
    pub(super) fn restore(&mut self, before: u32, row: &Rowed) {
        self.events.push((before, Event::Restore(row.written)));
        self.set(before, row);
    }

    /// Ends an epilogue before which no row was remembered: the CFI keeps describing the row at the
    /// end of the epilogue.
    pub(super) fn leave_wrong(&mut self, before: u32, row: &Rowed) {
        self.set(before, &Rowed { written: self.now.written, actual: row.actual });
    }

    fn set(&mut self, before: u32, row: &Rowed) {
        self.now = *row;
        let mistake = row.mistake();
        if self.mistakes.last().and_then(|(_, last)| *last) != mistake {
            self.mistakes.push((before, mistake));
        }
    }

    /// Returns the mistake in the row at this instruction, if any.
    pub(super) fn mistake(&self, instruction: u32) -> Option<CfiMistake> {
        let behind = self.mistakes.partition_point(|(before, _)| *before <= instruction);
        self.mistakes.get(behind.checked_sub(1)?)?.1
    }

    /// Returns the row at the instruction `begin`, and the events after it up to `end`.
    pub(super) fn of(&self, begin: u32, end: u32) -> (Row, &[(u32, Event)]) {
        let first = self.events.partition_point(|(before, _)| *before <= begin);
        let behind = self.events.partition_point(|(before, _)| *before < end);
        let row = self.events.get(..first).and_then(|events| {
            events.iter().rev().find_map(|(_, event)| match event {
                Event::Row(row) | Event::Restore(row) => Some(*row),
                Event::Remember => None,
            })
        });
        let row = row.unwrap_or_else(|| Row::at_entry(EntryForm::Call));
        (row, self.events.get(first..behind).unwrap_or_default())
    }
}
