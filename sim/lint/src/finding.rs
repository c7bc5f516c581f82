//! Findings: unwind data, and answers, that execution shows wrong.

use crate::value::Shown;
use clr_unwind::named;
use clr_unwind::{Gpr, Trust, UnwindError};
use core::fmt;
use core::ops::Range;

/// The wrong part of an answer. If several are, it is the first in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The return address.
    Caller,
    /// The caller's stack pointer.
    StackPointer,
    /// The caller's value of a nonvolatile register.
    Register(Gpr),
    /// The caller's value of xmm*n*.
    Vector(u8),
    /// No answer: the tables that lead to the unwind data of a function are wrong themselves.
    Tables,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller => f.write_str("return address"),
            Self::StackPointer => f.write_str("caller's rsp"),
            Self::Register(register) => write!(f, "caller's {}", register.name()),
            Self::Vector(n) => write!(f, "caller's xmm{n}"),
            Self::Tables => f.write_str("tables of unwind data"),
        }
    }
}

named! {
    /// The thing that is wrong.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Blame {
        /// The unwind data, or code that breaks the rules by which its data is read: every unwinder gives
        /// this answer.
        Data = "data",
        /// The rules of Windows, by which RtlVirtualUnwind and debuggers unwind. Precise rules are right.
        WindowsRules = "windows-rules",
        /// `clr-unwind`: the bytes of the code, or other rules, give the answer that it does not find.
        Walker = "walker",
        /// Not known: the data has a form that `clr-unwind` does not read, or is right if the code is
        /// entered in another way than by a call.
        Unknown = "unknown",
    }
}

named! {
    /// The kind of a difference.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Cause {
        /// The data describes a frame, or a part of one, that is not there: not yet, or, in an epilogue that
        /// is not described or not recognised, no longer.
        FrameGone = "frame-gone",
        /// The data does not describe that rsp was moved, or that a word was pushed.
        FrameGrown = "frame-grown",
        /// A register was overwritten, and by the data the caller's value is still in it, or at a place where
        /// it was never stored.
        RegisterLost = "register-lost",
        /// A register of the caller is in another place than the data says.
        SavedElsewhere = "saved-elsewhere",
        /// Code without unwind data moves rsp, overwrites a nonvolatile register or makes a call: it is no
        /// leaf.
        NoData = "no-data",
        /// UNWIND_INFO without a code and with a handler: the handler finds the frame, and only when an
        /// exception is dispatched.
        HandlerAlone = "handler-alone",
        /// By the data a word that the function stored itself is the return address. This is right for code
        /// that is entered by a jump with a made-up return address, and wrong if it is called.
        OwnReturnAddress = "own-return-address",
        /// The unwinder refuses the data.
        Refused = "refused",
        /// Any other difference.
        Other = "other",
        /// The image has code, and no more than a twentieth of it has unwind data.
        NoUnwindData = "no-unwind-data",
        /// The code has unwind data, and nothing of it was judged: no function is known to begin anywhere in it, or each
        /// switches stacks.
        NothingJudged = "nothing-judged",
        /// The table of functions, or the data of one, is at an address that is no multiple of 4.
        Misaligned = "misaligned",
        /// An entry of a table begins before the one in front of it, so that a binary search misses entries.
        Unordered = "unordered",
        /// An entry of a table of functions begins before the one in front of it ends.
        Overlap = "overlap",
        /// An entry of a table of functions ends where it begins, or before.
        EmptyRange = "empty-range",
        /// An entry of a table of functions describes bytes that are not code.
        OutsideCode = "outside-code",
        /// Entries are chained to one another in a circle, or more often than Windows follows.
        ChainLoop = "chain-loop",
        /// A table is cut off, or says what no table says, so that the rest of it is lost.
        Unreadable = "unreadable",
    }
}

/// The place of a value, as seen from the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In this register.
    Register(Gpr),
    /// In memory, N bytes from rsp.
    Stack(i64),
    /// The address N bytes from rsp itself.
    Address(i64),
    /// In memory, N bytes from rsp as it was at the function's entry; rsp is not known.
    Entry(i64),
}

impl Cause {
    /// Returns true if the tables that lead to unwind data are at fault, which no execution shows.
    pub const fn is_of_tables(self) -> bool {
        matches!(
            self,
            Self::NoUnwindData
                | Self::NothingJudged
                | Self::Misaligned
                | Self::Unordered
                | Self::Overlap
                | Self::EmptyRange
                | Self::OutsideCode
                | Self::ChainLoop
                | Self::Unreadable
        )
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = |n: i64| if n < 0 { '-' } else { '+' };
        match *self {
            Self::Register(register) => write!(f, "{}", register.name()),
            Self::Stack(n) => write!(f, "[rsp{}{:#x}]", sign(n), n.unsigned_abs()),
            Self::Address(n) => write!(f, "rsp{}{:#x}", sign(n), n.unsigned_abs()),
            Self::Entry(n) => {
                write!(f, "[rsp at entry {} {:#x}]", sign(n), n.unsigned_abs())
            }
        }
    }
}

/// The difference at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The place of the right value; `None` if it is nowhere: its register was overwritten and never
    /// saved.
    pub expected: Option<Where>,
    /// The value that the unwinder gives.
    pub got: Shown,
    /// The method by which the unwinder found it.
    pub trust: Option<Trust>,
    /// The unwinder's error, in place of an answer.
    pub error: Option<UnwindError>,
}

/// Instructions of a function with differences of the same kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The range of the function's unwind data, or of the instructions where there is none (RVAs). Where a
    /// table is wrong, the range of the entry, or of the code that lacks one.
    pub function: Range<u32>,
    /// The kind of the difference.
    pub cause: Cause,
    /// The thing that is wrong.
    pub blame: Blame,
    /// The wrong part, at the first of the instructions.
    pub subject: Subject,
    /// The RVAs of the instructions, ascending; none where a table is wrong.
    pub instructions: Vec<u32>,
    /// The number of calls among them whose return address is unwound wrong, too: every stack that
    /// goes through one is.
    pub calls: u32,
    /// The difference at the first of the instructions. Where a table is wrong, `got` is the number that is.
    pub found: Found,
}

impl Finding {
    /// Returns a finding of the tables themselves, for the code in `function`; `number` is what is wrong.
    pub(crate) const fn of_tables(cause: Cause, function: Range<u32>, number: u32) -> Self {
        let got = Shown::Number(number as u64);
        Self {
            function,
            cause,
            blame: Blame::Data,
            subject: Subject::Tables,
            instructions: Vec::new(),
            calls: 0,
            found: Found { expected: None, got, trust: None, error: None },
        }
    }
}
