//! What call frame information says of each instruction: where the caller's registers are when it
//! comes next.
//!
//! Lowering keeps the row up to date while it writes instructions ([`Rows`]); once they have
//! addresses, the rows become CFI ([`write`]).

mod write;

pub(super) use write::{EMPTY_LSDA, EhFrame, FrameRange, write};

use super::marks::CfiMistake;
use super::shape::Entry;
use clr_walker::registers::Gpr;

/// Where the CFA is: the caller's rsp behind the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cfa {
    /// So many bytes above what a register holds.
    Above(Gpr, i32),
    /// The word that lies so many bytes above what a register holds.
    Word(Gpr, i32),
    /// As linkers say it of an entry of the procedure linkage table: 8 bytes above rsp, 16 once the
    /// entry has pushed its number, which the address tells.
    Plt,
}

/// Where the kernel of Linux saves registers for a signal, in bytes behind the trampoline's address:
/// `ucontext_t`.
pub struct SignalContext {
    /// All but rsp.
    pub registers: [(Gpr, i32); 15],
    /// rsp.
    pub rsp: i32,
    /// rip.
    pub rip: i32,
    /// rflags.
    pub rflags: i32,
    /// What it takes with the `siginfo_t` behind it.
    pub size: u64,
}

/// Where they are.
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

/// Where a caller's register is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// Still in the register.
    #[default]
    Same,
    /// So many bytes above the CFA.
    At(i32),
    /// So many bytes above what a register holds.
    By(Gpr, i32),
    /// In another register.
    In(Gpr),
}

/// Where everything is when an instruction comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub cfa: Cfa,
    /// How far the CFA lies above rsp, in bytes; of no meaning while the body moves rsp.
    pub rsp: i32,
    /// By number as in machine code.
    pub registers: [Rule; 16],
    /// The return address.
    pub return_address: Rule,
    /// Bytes of arguments that have been pushed for a call.
    pub arguments: i32,
    /// The frame was entered by an interrupt.
    pub signal: bool,
}

impl Row {
    /// At the first instruction.
    pub(super) fn at_entry(entry: Entry) -> Self {
        // A processor's machine frame: rip, cs, rflags, rsp, ss. The CFA is its end, for rsp may
        // have been anything before.
        let frame = 40;
        let error_code = 8;
        let (rsp, return_address) = match entry {
            Entry::Call | Entry::Signal => (8, -8),
            Entry::Interrupt => (frame, -frame),
            Entry::InterruptWithErrorCode => (frame + error_code, -frame),
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

    /// rsp has been lowered by so many bytes, or raised.
    pub(super) fn moved(&mut self, down: i32) {
        self.at_rsp(self.rsp.wrapping_add(down));
    }

    /// rsp is known again: the CFA lies so far above it.
    pub(super) fn at_rsp(&mut self, cfa: i32) {
        self.rsp = cfa;
        if matches!(self.cfa, Cfa::Above(Gpr::Rsp, _)) {
            self.cfa = Cfa::Above(Gpr::Rsp, cfa);
        }
    }

    /// A register has been pushed; `kept` says that the caller needs it.
    pub(super) fn pushed(&mut self, register: Gpr, kept: bool) {
        self.moved(8);
        if kept {
            self.set(register, Rule::At(-self.rsp));
        }
    }

    /// A register has been popped.
    pub(super) fn popped(&mut self, register: Gpr) {
        self.moved(-8);
        self.set(register, Rule::Same);
        if matches!(self.cfa, Cfa::Above(base, _) if base == register) {
            self.cfa = Cfa::Above(Gpr::Rsp, self.rsp);
        }
    }

    /// Arguments have been pushed for a call, or given back.
    pub(super) fn passed(&mut self, bytes: i32) {
        self.moved(bytes);
        self.arguments = self.arguments.wrapping_add(bytes);
    }

    /// At the return address of a signal's handler: above rsp lies what the kernel has saved.
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

    /// A register holds rsp and so many bytes more, and will keep it.
    pub(super) fn framed(&mut self, register: Gpr, above: i32) {
        self.cfa = Cfa::Above(register, self.rsp.wrapping_sub(above));
    }
}

/// What happens to the row before an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// It becomes this.
    Row(Row),
    /// An epilogue begins.
    Remember,
    /// Behind the epilogue the row is what it was before, which is this.
    Restore(Row),
}

/// What is said of a place, and what is true there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rowed {
    said: Row,
    truth: Row,
}

impl Rowed {
    const fn truly(row: Row) -> Self {
        Self { said: row, truth: row }
    }

    /// What is wrong in what is said.
    fn mistake(&self) -> Option<CfiMistake> {
        let Self { said, truth } = self;
        if said.cfa != truth.cfa {
            Some(CfiMistake::Cfa)
        } else if said.registers != truth.registers {
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
    /// With the index of the instruction before which it happens, ascending.
    events: Vec<(u32, Event)>,
    /// From which instruction on what is said is so wrong, or right again, ascending.
    mistakes: Vec<(u32, Option<CfiMistake>)>,
}

impl Default for Rows {
    fn default() -> Self {
        let now = Rowed::truly(Row::at_entry(Entry::Call));
        Self { now, events: Vec::new(), mistakes: Vec::new() }
    }
}

impl Rows {
    /// The row here.
    pub(super) const fn now(&self) -> Rowed {
        self.now
    }

    /// Bytes of arguments that have been pushed for a call.
    pub(super) const fn arguments(&self) -> i32 {
        self.now.truth.arguments
    }

    /// Changes the row from the instruction `before` on.
    pub(super) fn change(&mut self, before: u32, change: impl Fn(&mut Row)) {
        let mut row = self.now;
        change(&mut row.said);
        change(&mut row.truth);
        if row != self.now {
            self.go_on(before, &row);
        }
    }

    /// Lets the row be this from the instruction `before` on.
    pub(super) fn begin(&mut self, before: u32, row: Row) {
        self.go_on(before, &Rowed::truly(row));
    }

    /// The same with a row of another place.
    pub(super) fn go_on(&mut self, before: u32, row: &Rowed) {
        let Rowed { said, .. } = *row;
        match self.events.last_mut() {
            Some((at, Event::Row(last))) if *at == before => *last = said,
            _ => self.events.push((before, Event::Row(said))),
        }
        self.set(before, row);
    }

    /// An epilogue begins: gives the row that comes back behind it.
    pub(super) fn remember(&mut self, before: u32) -> Rowed {
        self.events.push((before, Event::Remember));
        self.now
    }

    /// The epilogue has ended.
    pub(super) fn restore(&mut self, before: u32, row: &Rowed) {
        self.events.push((before, Event::Restore(row.said)));
        self.set(before, row);
    }

    /// An epilogue has ended that nothing was remembered before: what it has left is said on.
    pub(super) fn leave_wrong(&mut self, before: u32, row: &Rowed) {
        self.set(before, &Rowed { said: self.now.said, truth: row.truth });
    }

    fn set(&mut self, before: u32, row: &Rowed) {
        self.now = *row;
        let mistake = row.mistake();
        if self.mistakes.last().and_then(|(_, last)| *last) != mistake {
            self.mistakes.push((before, mistake));
        }
    }

    /// What is wrong in the row at this instruction.
    pub(super) fn mistake(&self, instruction: u32) -> Option<CfiMistake> {
        let behind = self.mistakes.partition_point(|(before, _)| *before <= instruction);
        self.mistakes.get(behind.checked_sub(1)?)?.1
    }

    /// The row at the instruction `begin`, and what happens behind it, up to `end`.
    pub(super) fn of(&self, begin: u32, end: u32) -> (Row, &[(u32, Event)]) {
        let first = self.events.partition_point(|(before, _)| *before <= begin);
        let behind = self.events.partition_point(|(before, _)| *before < end);
        let row = self.events.get(..first).and_then(|events| {
            events.iter().rev().find_map(|(_, event)| match event {
                Event::Row(row) | Event::Restore(row) => Some(*row),
                Event::Remember => None,
            })
        });
        let row = row.unwrap_or_else(|| Row::at_entry(Entry::Call));
        (row, self.events.get(first..behind).unwrap_or_default())
    }
}
