//! What findings mean, and how to mend them, in words.

use clr_lint::{Blame, Cause, Finding, Shown, Subject};

/// Returns the consequence for a profiler.
pub(super) fn meaning(finding: &Finding) -> &'static str {
    let is_frame = matches!(finding.subject, Subject::Caller | Subject::StackPointer);
    match (finding.blame, finding.cause) {
        (Blame::WindowsRules, _) => {
            "RtlVirtualUnwind, and with it debuggers, ETW and most profilers, go wrong here; \
             clr-unwind with precise rules does not"
        }
        (Blame::Walker, _) => "clr-unwind goes wrong here, and could know better: please report it",
        (_, Cause::OwnReturnAddress) => {
            "right for code that is entered by a jump, as a hijacked or redirected thread does; if it \
             is called, its callers are lost"
        }
        (_, Cause::HandlerAlone) => {
            "every walk through the function goes wrong: only the dispatch of an exception asks the \
             handler"
        }
        (_, Cause::Refused) => "no unwinder can walk through the function",
        (_, cause) if cause.is_of_tables() => meaning_of_tables(cause),
        _ if !is_frame => {
            "the frames up to here are right, and so is the caller's place; its register is wrong, so a \
             frame further up that is computed from it is lost, and a seed with it is wrong"
        }
        _ if finding.calls > 0 => {
            "every stack that goes through one of the calls ends there or continues with wrong frames"
        }
        _ => {
            "a sample at one of these instructions ends there or continues with wrong frames; stacks that \
             go through calls of the function are right"
        }
    }
}

/// Returns the consequence of a wrong table for a profiler.
const fn meaning_of_tables(cause: Cause) -> &'static str {
    match cause {
        Cause::NoUnwindData => {
            "no stack can be walked through the image: a profiler loses every sample in it, and guesses at \
             best; nothing was judged"
        }
        Cause::NothingJudged => "whether stacks can be walked through the image is not known",
        Cause::Misaligned => {
            "the kernel of Windows ignores such a table or entry: its profiler loses every stack that goes \
             through the functions"
        }
        Cause::Unordered => {
            "tables are searched by halves, so functions that have data are not found, and count as leaves"
        }
        Cause::Overlap => {
            "which entry is found depends on the search: one of the functions has another's data"
        }
        Cause::EmptyRange | Cause::OutsideCode => {
            "the entry is not found for the code that it is meant for"
        }
        Cause::ChainLoop => "unwinders give the frame up, or never come back",
        _ => "the functions behind the fault have no data",
    }
}

/// Returns the change that would make the answer right, in an image with call frame information or with
/// UNWIND_INFO.
pub(super) const fn remedy(blame: Blame, cause: Cause, is_cfi: bool) -> &'static str {
    match (blame, cause, is_cfi) {
        (Blame::WindowsRules, ..) => {
            "end the function in a form that Windows documents for epilogues, or unwind with \
             clr-unwind's precise rules"
        }
        (Blame::Walker, ..) => "nothing in the image",
        (_, Cause::FrameGone, true) => {
            "let the rows end with the frame; in assembly .cfi_def_cfa_offset after each pop"
        }
        (_, Cause::FrameGone, false) => {
            "end the function in a form that Windows documents for epilogues; give code without the \
             frame a range of its own"
        }
        (_, Cause::FrameGrown, true) => {
            "describe each instruction that moves rsp; in assembly .cfi_adjust_cfa_offset"
        }
        (_, Cause::FrameGrown, false) => {
            "move rsp in the prologue alone, and describe it; in assembly .allocstack, .pushreg"
        }
        (_, Cause::RegisterLost, true) => {
            "save the register before it is overwritten, and say where; in assembly .cfi_offset"
        }
        (_, Cause::SavedElsewhere, true) => {
            "name the place that the register is saved in; in assembly .cfi_offset, .cfi_register"
        }
        (_, Cause::RegisterLost | Cause::SavedElsewhere, false) => {
            "save the register on the stack, in the prologue, and say where; in assembly .pushreg, \
             .savereg, .savexmm128"
        }
        (_, Cause::NoData, true) => "describe the function; in assembly .cfi_startproc",
        (_, Cause::NoData, false) => "describe the function; in assembly PROC FRAME",
        (_, Cause::HandlerAlone, _) => "describe the frame by unwind codes, beside the handler",
        (_, Cause::OwnReturnAddress, _) => "nothing, unless the function is called",
        (_, Cause::Refused, _) => "make the data legal; the error says where it is not",
        (_, Cause::NoUnwindData, true) => {
            "compile with -fasynchronous-unwind-tables, and do not strip .eh_frame; if it has to be so: --allow \
             no-unwind-data"
        }
        (_, Cause::NoUnwindData, false) => {
            "let the compiler or linker write .pdata and .xdata; if it has to be so: --allow no-unwind-data"
        }
        (_, Cause::NothingJudged, _) => {
            "give an image with symbols, by which functions are found; if it has to be so: --allow nothing-judged"
        }
        (_, Cause::Misaligned, _) => "align .pdata and .xdata to 4 bytes",
        (_, Cause::Unordered, _) => "sort the table by the begin of the functions",
        (_, Cause::Overlap, _) => "let each entry end where the next begins, or before",
        (_, Cause::EmptyRange, _) => {
            "leave the entry out, or let it end behind the function's last byte"
        }
        (_, Cause::OutsideCode, _) => "let the entry name the bytes of its function",
        (_, Cause::ChainLoop, _) => "let each chain end at an entry that is not chained",
        (_, Cause::Unreadable, _) => "write the table again",
        (_, Cause::Other, _) => "compare the function's unwind data with its code: clrsim show",
    }
}

/// Returns the words for a kind of difference.
pub(super) const fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::FrameGone => "describes a frame, or a part of one, that is not there",
        Cause::FrameGrown => "does not describe that rsp was moved",
        Cause::RegisterLost => "does not say where an overwritten register was saved",
        Cause::SavedElsewhere => "says that a register is in another place than it is",
        Cause::NoData => "is missing, and the code is no leaf",
        Cause::HandlerAlone => "has no codes: only the handler knows the frame",
        Cause::OwnReturnAddress => "names a word that the function pushed itself as return address",
        Cause::Refused => "cannot be used",
        Cause::Other => "leads elsewhere",
        Cause::NoUnwindData => "is missing for the code of the image",
        Cause::NothingJudged => "was not judged at all",
        Cause::Misaligned => "is at an address that is no multiple of 4",
        Cause::Unordered => "has a table that does not ascend",
        Cause::Overlap => "has two entries for the same code",
        Cause::EmptyRange => "has an entry that ends where it begins, or before",
        Cause::OutsideCode => "has an entry for bytes that are not code",
        Cause::ChainLoop => "has a chain of entries that does not end",
        Cause::Unreadable => "has a table that is cut off",
    }
}

/// Returns the heading of findings of a kind.
pub(super) fn heading(blame: Blame, cause: Cause) -> String {
    match blame {
        Blame::WindowsRules => "the rules of Windows give a wrong answer".to_owned(),
        Blame::Walker => "clr-unwind gives a wrong answer".to_owned(),
        Blame::Unknown => format!("perhaps the unwind data {}", words(cause)),
        Blame::Data => format!("the unwind data {}", words(cause)),
    }
}

/// Returns what is right and what is there, where a table is wrong.
pub(super) fn expected_of_tables(finding: &Finding) -> (String, String) {
    let number = finding.found.got;
    let (expected, got) = match finding.cause {
        Cause::NoUnwindData => {
            let size = if let Shown::Number(size) = number { size } else { 0 };
            return ("unwind data for the code".to_owned(), format!("data for {size} bytes"));
        }
        Cause::NothingJudged => {
            return (
                "a function that begins in the code".to_owned(),
                "none that is known".to_owned(),
            );
        }
        Cause::Misaligned => ("an address that is a multiple of 4", ""),
        Cause::Unordered => {
            ("a begin at or after that of the entry before", "the entry before begins at ")
        }
        Cause::Overlap => {
            ("a begin at or after the end of the entry before", "the entry before ends at ")
        }
        Cause::EmptyRange => ("an end after the begin", "the entry ends at "),
        Cause::OutsideCode => ("a range of executable bytes", "the entry begins at "),
        Cause::ChainLoop => ("a chain of at most 32 entries", "the chain comes again to "),
        _ => ("a whole table", "the fault is at "),
    };
    (expected.to_owned(), format!("{got}{number}"))
}
