//! Errors: their messages, and that a failed step changes nothing.

use super::*;

const FUNCTION: [u32; 3] = [0x100, 0x180, 0x800];
const BODY: u32 = 0x140;

fn function(info: &Info) -> Case {
    Case::new().function(FUNCTION, info)
}

#[test]
fn every_read_may_fail() {
    // Every kind of read there is in a step.
    let everything = Info::new(
        9,
        &[
            (9, Xmm(6, 0x20)),
            (9, XmmFar(2, 0x40)),
            (9, Save(Rsi, 0x30)),
            (5, Small(0x20)),
            (2, Push(Rbx)),
            (1, Push(R12)),
        ],
    );
    let machine = Info::new(1, &[(1, Push(Rbx)), (0, MachineFrame)]);
    let codes = Info::new(1, &[(4, Epilog(1)), (0, Epilog(0)), (1, Push(Rbx)), (1, Push(R12))]);
    let parent = [0x300, 0x380, 0x900];
    let chained =
        function(&Info::new(1, &[(1, Push(Rdi))]).parent(parent)).function(parent, &everything);
    let chkstk = [
        0x51, 0x50, 0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x48, 0x8D, 0x4C, 0x24, 0x18, 0x72, 0x19,
        0x48, 0x81, 0xE9, 0x00, 0x10, 0x00, 0x00, 0x48, 0x83, 0x09, 0x00, 0x48, 0x2D, 0x00, 0x10,
        0x00, 0x00, 0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x77, 0xE7, 0x48, 0x29, 0xC1, 0x48, 0x83,
        0x09, 0x00, 0x58, 0x59, 0xC3,
    ];
    let cases = [
        ("codes", function(&everything), BODY, 6),
        ("return address", function(&everything).returned_to(), BODY, 6),
        ("chain", chained.clone(), BODY, 7),
        ("chain, return address", chained.returned_to(), BODY, 7),
        ("no vector registers", function(&Info::new(1, &[(1, Push(Rcx))])).returned_to(), BODY, 2),
        ("machine frame", function(&machine), BODY, 3),
        ("EPILOG codes", function(&codes.version(2)), 0x17C, 3),
        ("epilogue", function(&everything).put(BODY, &[0x5B, 0x41, 0x5C, 0xC3]), BODY, 3),
        ("leaf", Case::new(), BODY, 1),
        ("chkstk", Case::new().put(0x100, &chkstk), 0x102, 3),
    ];
    for (name, case, rva, reads) in cases {
        for limit in 0..reads + 2 {
            case.stack.reads_left.set(limit);
            // That the registers stay as they were is checked with every step.
            let answer = case.step(rva);
            let failed = matches!(answer, Err(UnwindError::Stack(Unreadable { .. })));
            assert_eq!(failed, limit < reads, "{name}: {limit} reads: {answer:x?}");
            assert_eq!(answer.is_ok(), limit >= reads, "{name}: {limit} reads");
        }
    }
}

#[test]
fn an_unreadable_stack_has_address_and_length() {
    let info = Info::new(9, &[(9, Xmm(6, 0x20)), (5, Push(Rbx))]);
    let case = function(&info);
    let reads = [(slot(4), 16), (slot(0), 8), (slot(1), 8)];
    for (limit, (address, len)) in (0..).zip(reads) {
        case.stack.reads_left.set(limit);
        let error = UnwindError::Stack(Unreadable { address, len });
        assert_eq!(case.step(BODY), Err(error));
        assert_eq!(error.to_string(), format!("cannot read {len} bytes at {address:#x}"));
    }
}

#[test]
fn an_address_may_wrap_but_not_be_read_there() {
    let info = Info::new(4, &[(4, SetFrame)]).frame(Rbp, 0x10);
    let case = function(&info).with(Rbp, 8);
    let error = UnwindError::Stack(Unreadable { address: u64::MAX - 7, len: 8 });
    assert_eq!(case.step(BODY), Err(error));
    assert_eq!(case.returned_to().step(BODY), Err(error));
}

#[test]
fn unwind_data_may_lie_outside_the_image() {
    let unmapped = |rva| Err(UnwindError::UnwindDataUnmapped { rva });
    let steps = |case: Case| {
        let plain = case.step(BODY);
        let others = [case.coreclr(), case.returned_to(), case.rules(Rules::CoreClrUnix)];
        for case in others {
            assert_eq!(case.step(BODY), plain);
        }
        plain
    };
    for rva in [SIZE, SIZE - 2, 0xFFFF_FFFC] {
        assert_eq!(steps(Case::new().entry([0x100, 0x180, rva])), unmapped(rva));
        // After an indirect entry.
        let entry = [0x100, 0x180, rva | 1];
        assert_eq!(steps(Case::new().entry(entry)), unmapped(rva));
    }
    // An indirect entry that is cut off.
    assert_eq!(steps(Case::new().entry([0x100, 0x180, SIZE - 8 + 1])), unmapped(SIZE - 8));
    // Cut off: a code, the operand of a code, a parent, a handler.
    let codes = Info::new(4, &[(4, Push(Rbx)), (4, LargeFar(8)), (1, Push(Rbx))]);
    let cut = |info: &Info, at| function(info).cut(FUNCTION[2] + at);
    for (at, missing) in [(2, 0), (4, 4), (5, 4), (7, 6), (8, 8), (10, 10), (12, 12), (13, 12)] {
        assert_eq!(steps(cut(&codes, at)), unmapped(FUNCTION[2] + missing), "cut at {at}");
    }
    let parent = Info::new(4, &[(4, Push(Rbx))]).parent([0x100, 0x180, 0x900]);
    for at in [8, 12, 19] {
        assert_eq!(steps(cut(&parent, at)), unmapped(FUNCTION[2] + 8), "cut at {at}");
    }
    let handler = Info::new(4, &[(4, Push(Rbx))]).handler(1, 0x1510);
    assert_eq!(steps(cut(&handler, 8)), unmapped(FUNCTION[2] + 8));
    assert_eq!(steps(cut(&handler, 10)), unmapped(FUNCTION[2] + 10));
    assert!(steps(cut(&handler, 12)).is_ok());
}

#[test]
fn errors_after_some_codes_leave_everything_as_it_was() {
    // Case::step compares the registers.
    let infos = [
        Info::new(4, &[(4, Push(Rbx)), (4, Xmm(6, 0)), (4, Raw(15, 0, &[]))]),
        Info::new(4, &[(4, Push(Rbx)), (4, Xmm(6, 0)), (4, SetFrame)]),
        Info::new(4, &[(4, Push(Rbx)), (4, Xmm(6, 0))]).parent([0x100, 0x180, SIZE]),
        Info::new(4, &[(4, Push(Rbx)), (4, Xmm(6, 0))]).parent(FUNCTION),
    ];
    for info in infos {
        let case = function(&info);
        assert!(case.step(BODY).is_err());
        assert!(case.returned_to().step(BODY).is_err());
    }
}

#[test]
fn errors_have_texts() {
    let cases = [
        (UnwindError::UnknownCode { address: BASE }, "0x140000000 is in no known code"),
        (
            UnwindError::CallerWithoutEntry { address: BASE },
            "the code before return address 0x140000000 made a call, but has no function entry",
        ),
        (UnwindError::CodeUnmapped { rva: 0x10 }, "the code at RVA 0x10 is not in the image"),
        (
            UnwindError::UnwindDataUnmapped { rva: 0x10 },
            "the unwind data at RVA 0x10 is not in the image",
        ),
        (
            UnwindError::UnsupportedVersion { version: 3, rva: 0x10 },
            "UNWIND_INFO version 3 at RVA 0x10 is unsupported",
        ),
        (
            UnwindError::InvalidOperation { operation: 12, rva: 0x10 },
            "the unwind code at RVA 0x10 has the unknown operation 12",
        ),
        (
            UnwindError::NoFrameRegister { rva: 0x10 },
            "the unwind code at RVA 0x10 sets a frame register, but the header names none",
        ),
        (
            UnwindError::ChainTooLong { rva: 0x10 },
            "the chain of unwind data that leads to RVA 0x10 has more than 32 links",
        ),
        (
            UnwindError::NoProgress { rsp: 0x20, caller_rsp: 0x10 },
            "the caller's stack pointer 0x10 is not above 0x20",
        ),
        (UnwindError::TooManyFrames { limit: 7 }, "the stack has more than 7 frames"),
    ];
    for (error, text) in cases {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn the_helper_counts_reads() {
    let case = function(&Info::new(1, &[(1, Push(Rbx))]));
    case.stack.reads_left.set(5);
    assert!(case.step(BODY).is_ok());
    assert_eq!(case.stack.reads_left, Cell::new(3));
}
