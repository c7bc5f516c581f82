//! Version 2 with its EPILOG codes, and versions that do not exist.

use super::*;

const FUNCTION: [u32; 3] = [0x100, 0x400, 0x800];

const BODY: &str = "Body rbx=[5] r12=[4] rip=[6] rsp=7";

/// Returns a function of version 2 with these EPILOG codes, which pushes rbx and r12 and allocates.
fn function(epilogs: &[(u8, Op)]) -> Case {
    let prologue = [(7, Small(0x20)), (3, Push(R12)), (1, Push(Rbx))];
    let info = Info::new(7, &[epilogs, &prologue].concat()).version(2);
    Case::new().function(FUNCTION, &info)
}

/// Returns the step, which must be the same under all rules.
fn at(case: &Case, rva: u32) -> String {
    let precise = case.at(rva);
    assert_eq!(precise, case.coreclr().at(rva), "{rva:#x}");
    assert_eq!(precise, case.rules(Rules::CoreClrUnix).at(rva), "{rva:#x}");
    assert_eq!(precise, case.rules(Rules::Ntdll).at(rva), "{rva:#x}");
    precise
}

/// Checks the steps from the byte before an epilogue of 4 bytes to the byte after it.
fn assert_epilogue(case: &Case, start: u32) {
    let steps = [
        BODY,
        // pop r12 of 2 bytes, pop rbx, ret
        "EpilogueCodes rbx=[1] r12=[0] rip=[2] rsp=3",
        "EpilogueCodes rbx=[0] rip=[1] rsp=2",
        "EpilogueCodes rbx=[0] rip=[1] rsp=2",
        "EpilogueCodes rip=[0] rsp=1",
    ];
    for (offset, expected) in (0..).zip(steps) {
        assert_eq!(at(case, start - 1 + offset), expected, "{offset}");
    }
    if start + 4 < FUNCTION[1] {
        assert_eq!(at(case, start + 4), BODY);
    }
}

#[test]
fn an_epilogue_may_be_at_the_end() {
    let case = function(&[(4, Epilog(1)), (0, Epilog(0))]);
    assert_epilogue(&case, 0x3FC);
    assert_eq!(at(&case, 0x200), BODY);
}

#[test]
fn epilogues_are_listed_by_their_distance_from_the_end() {
    let case = function(&[(4, Epilog(0)), (0x50, Epilog(0)), (0x34, Epilog(1)), (0, Epilog(2))]);
    assert_epilogue(&case, 0x400 - 0x50);
    assert_epilogue(&case, 0x400 - 0x134);
    assert_epilogue(&case, 0x400 - 0x200);
    assert_eq!(at(&case, 0x3FC), BODY, "none at the end");
}

#[test]
fn a_listed_distance_of_0_is_padding() {
    let case = function(&[(4, Epilog(0)), (0x50, Epilog(0)), (0, Epilog(0)), (0x60, Epilog(0))]);
    assert_epilogue(&case, 0x400 - 0x50);
    assert_eq!(at(&case, 0x400 - 0x60), BODY, "nothing is read after padding");
}

#[test]
fn only_bit_0_of_the_first_info_counts() {
    for info in 0..16 {
        let case = function(&[(4, Epilog(info)), (0, Epilog(0))]);
        let expected = if info & 1 == 1 { "EpilogueCodes rip=[0] rsp=1" } else { BODY };
        assert_eq!(at(&case, 0x3FF), expected, "{info}");
    }
}

#[test]
fn epilogues_by_codes_do_not_look_at_the_code() {
    let case = function(&[(4, Epilog(1)), (0, Epilog(0))]).put(0x200, &[0x41, 0x5C, 0x5B, 0xC3]);
    assert_eq!(at(&case, 0x200), BODY);
}

#[test]
fn a_handler_is_not_for_an_epilogue() {
    let codes = [(2, Epilog(1)), (0, Epilog(0)), (1, Push(Rbx))];
    let info = Info::new(1, &codes).version(2).handler(3, 0x1510);
    let case = Case::new().function(FUNCTION, &info);
    assert_eq!(at(&case, 0x3FD), "Body rbx=[0] rip=[1] rsp=2 handler=1510/810");
    assert_eq!(at(&case, 0x3FE), "EpilogueCodes rbx=[0] rip=[1] rsp=2");
    assert_eq!(at(&case, 0x3FF), "EpilogueCodes rip=[0] rsp=1");
}

#[test]
fn epilog_codes_are_no_part_of_the_prologue() {
    // Two slots at a time, with offsets that mean something else.
    let case = function(&[(4, Epilog(1)), (0, Epilog(0)), (0x50, Epilog(0)), (0xFF, Epilog(15))]);
    assert_eq!(at(&case, 0x100), "Prologue rip=[0] rsp=1");
    assert_eq!(at(&case, 0x103), "Prologue rbx=[1] r12=[0] rip=[2] rsp=3");
    assert_eq!(at(&case, 0x107), BODY);
}

#[test]
fn a_pushfq_is_an_allocation_behind_the_pushes() {
    let codes = [(3, Epilog(1)), (0, Epilog(0)), (2, Push(Rbx)), (1, Small(8)), (1, Small(8))];
    let info = Info::new(2, &codes).version(2);
    let case = Case::new().function(FUNCTION, &info);
    assert_eq!(at(&case, 0x3FD), "EpilogueCodes rbx=[0] rip=[2] rsp=3");
    assert_eq!(at(&case, 0x3FE), "EpilogueCodes rip=[1] rsp=2");
    assert_eq!(at(&case, 0x3FF), "EpilogueCodes rip=[0] rsp=1");
    let other_size = [(3, Epilog(1)), (0, Epilog(0)), (2, Push(Rbx)), (1, Small(16))];
    let case = Case::new().function(FUNCTION, &Info::new(2, &other_size).version(2));
    assert_eq!(at(&case, 0x3FD), "EpilogueCodes rbx=[0] rip=[1] rsp=2");
}

#[test]
fn only_the_first_run_of_pushes_is_popped() {
    let codes = [
        (3, Epilog(1)),
        (0, Epilog(0)),
        (9, Save(Rdi, 0x40)),
        (9, Small(0x20)),
        (4, Push(Rsi)),
        (3, Push(Rbx)),
        (2, Small(0x10)),
        (1, Push(Rdi)),
    ];
    let case = Case::new().function(FUNCTION, &Info::new(9, &codes).version(2));
    assert_eq!(at(&case, 0x3FD), "EpilogueCodes rbx=[1] rsi=[0] rip=[2] rsp=3");
}

#[test]
fn a_popped_rsp_is_the_value_read() {
    let codes = [(2, Epilog(1)), (0, Epilog(0)), (1, Push(Rsp))];
    let case = Case::new().function(FUNCTION, &Info::new(1, &codes).version(2));
    assert_eq!(at(&case.with_slot(0, slot(7)), 0x3FE), "EpilogueCodes rip=[7] rsp=8");
}

#[test]
fn an_epilogue_may_end_in_a_machine_frame() {
    for frame in [MachineFrame, Op::MachineFrameWithError] {
        let codes = [(3, Epilog(1)), (0, Epilog(0)), (1, Push(Rbx)), (0, frame)];
        let case = Case::new().function(FUNCTION, &Info::new(1, &codes).version(2));
        // An error code has been popped before.
        let first = case.clone().with_slot(4, slot(50));
        assert_eq!(at(&first, 0x3FD), "EpilogueCodes rbx=[0] rip=[1] rsp=50 interrupted");
        let second = case.with_slot(3, slot(50));
        assert_eq!(at(&second, 0x3FE), "EpilogueCodes rip=[0] rsp=50 interrupted");
    }
    let alone = Info::new(1, &[(2, Epilog(1)), (0, Epilog(0)), (0, MachineFrame)]).version(2);
    let case = Case::new().function(FUNCTION, &alone).with_slot(3, slot(50));
    assert_eq!(at(&case, 0x3FE), "EpilogueCodes rip=[0] rsp=50 interrupted");
}

#[test]
fn a_chunks_epilogue_pops_the_registers_of_its_nearest_parent() {
    let chunk = [0x500, 0x580, 0x900];
    let epilogs = [(4, Epilog(1)), (0, Epilog(0))];
    let own = [&epilogs[..], &[(4, Push(Rsi))]].concat();
    for (codes, expected) in [
        (&epilogs[..], "EpilogueCodes rbx=[1] r12=[0] rip=[2] rsp=3"),
        (&own, "EpilogueCodes rsi=[0] rip=[1] rsp=2"),
    ] {
        let info = Info::new(4, codes).version(2).parent(FUNCTION);
        // The end that counts is the chunk's.
        let case = function(&[]).function(chunk, &info);
        assert_eq!(at(&case, 0x57C), expected);
    }
}

/// Bytes after the codes may look like more of them.
#[test]
fn bytes_behind_the_codes_are_no_codes() {
    let codes = [(4, Epilog(1)), (0, Epilog(0)), (3, Push(R12)), (1, Push(Rbx))];
    for (other, count) in [(Push(Rdi), 4), (Small(8), 4), (MachineFrame, 4)] {
        let info = Info::new(4, &[&codes[..], &[(0, other)]].concat()).version(2);
        let case = Case::new().function(FUNCTION, &info);
        let case = case.put(FUNCTION[2], &info.bytes_with_count(count));
        assert_eq!(at(&case, 0x3FC), "EpilogueCodes rbx=[1] r12=[0] rip=[2] rsp=3", "{other:?}");
    }
    let info = Info::new(4, &[(4, Epilog(1)), (0, Epilog(0)), (0x50, Epilog(0))]).version(2);
    let case = Case::new().function(FUNCTION, &info);
    let case = case.put(FUNCTION[2], &info.bytes_with_count(2));
    assert_eq!(at(&case, 0x400 - 0x50), "Body rip=[0] rsp=1");
    // The parent's begin, 0x10, would be a push of rax.
    let parent = [0x10, 0x400, 0x800];
    let chunk = Info::new(4, &codes[..2]).version(2).parent(parent);
    let case = Case::new().function(parent, &Info::new(4, &codes[2..]));
    let case = case.function([0x500, 0x580, 0x900], &chunk);
    assert_eq!(at(&case, 0x57C), "EpilogueCodes rbx=[1] r12=[0] rip=[2] rsp=3");
}

#[test]
fn an_epilogue_without_any_push_only_returns() {
    let info = Info::new(4, &[(1, Epilog(1)), (0, Epilog(0)), (4, Small(8))]).version(2);
    let case = Case::new().function(FUNCTION, &info);
    assert_eq!(at(&case, 0x3FF), "EpilogueCodes rip=[0] rsp=1");
    assert_eq!(at(&case, 0x3FE), "Body rip=[1] rsp=2");
}

#[test]
fn version_2_without_epilog_codes_may_have_epilogues_all_the_same() {
    let case = function(&[]).put(0x200, &[0x41, 0x5C, 0x5B, 0xC3]);
    let expected = "EpilogueInstructions rbx=[1] r12=[0] rip=[2] rsp=3";
    assert_eq!(case.at(0x200), expected);
    assert_eq!(case.coreclr().at(0x200), BODY, "Windows believes that there is none");
    // The first code decides, not any of the others.
    let codes = [(7, Small(0x20)), (4, Epilog(1)), (0, Epilog(0)), (3, Push(R12)), (1, Push(Rbx))];
    let late = Case::new().function(FUNCTION, &Info::new(7, &codes).version(2));
    assert_eq!(at(&late, 0x3FC), BODY);
}

#[test]
fn version_1_has_no_epilog_codes() {
    let codes = [(4, Epilog(1)), (0, Epilog(0)), (1, Push(Rbx))];
    let case = Case::new().function(FUNCTION, &Info::new(1, &codes).version(1));
    assert_eq!(at(&case, 0x3FC), "Body rbx=[0] rip=[1] rsp=2");
}

#[test]
fn versions_that_do_not_exist_are_unsupported() {
    for version in [0, 4, 5, 6, 7] {
        let codes = [(2, Epilog(1)), (0, Epilog(0)), (1, Push(Rbx))];
        let info = Info::new(1, &codes).version(version);
        let case = Case::new().function(FUNCTION, &info);
        let error = UnwindError::UnsupportedVersion { version, rva: FUNCTION[2] };
        for case in [case.clone(), case.returned_to()] {
            assert_eq!(case.step(0x200), Err(error));
        }
        // Windows treats 0 as 1, and all above 2 as 2.
        let expected = match version {
            0 => "Body rbx=[0] rip=[1] rsp=2",
            _ => "EpilogueCodes rip=[0] rsp=1",
        };
        assert_eq!(case.coreclr().at(0x3FF), expected, "{version}");
        assert_eq!(case.rules(Rules::Ntdll).at(0x3FF), expected, "{version}");
    }
    // CoreCLR's source does not know version 3.
    let codes = [(2, Epilog(1)), (0, Epilog(0)), (1, Push(Rbx))];
    let case = Case::new().function(FUNCTION, &Info::new(1, &codes).version(3));
    assert_eq!(case.coreclr().at(0x3FF), "EpilogueCodes rip=[0] rsp=1");
}

#[test]
fn a_parents_version_counts_too() {
    let chunk = [0x500, 0x580, 0x900];
    let epilogs = [(4, Epilog(1)), (0, Epilog(0))];
    let parent = Info::new(7, &[&epilogs[..], &[(7, Small(0x20)), (1, Push(Rbx))]].concat());
    let of_version = |version, chunk_info: &Info| {
        let chunk_info = chunk_info.clone().parent(FUNCTION);
        Case::new()
            .function(FUNCTION, &parent.clone().version(version))
            .function(chunk, &chunk_info)
    };
    let error = UnwindError::UnsupportedVersion { version: 4, rva: FUNCTION[2] };
    // By the codes.
    let case = of_version(4, &Info::new(2, &[(2, Push(Rsi))]));
    assert_eq!(case.step(0x540), Err(error));
    assert_eq!(case.returned_to().step(0x540), Err(error));
    // To Windows it is a later version 2, whose EPILOG codes undo nothing.
    let expected = "Body rbx=[5] rsi=[0] rip=[6] rsp=7";
    assert_eq!(case.coreclr().at(0x540), expected);
    assert_eq!(at(&of_version(2, &Info::new(2, &[(2, Push(Rsi))])), 0x540), expected);
    // In an epilogue, which pops what the parent pushed.
    let chunk_info = Info::new(0, &epilogs).version(2);
    let case = of_version(4, &chunk_info);
    assert_eq!(case.step(0x57C), Err(error));
    // Version 3 has other codes, which the EPILOG codes of version 2 do not count.
    let unsupported = UnwindError::UnsupportedVersion { version: 3, rva: FUNCTION[2] };
    assert_eq!(of_version(3, &chunk_info).step(0x57C), Err(unsupported));
    let expected = "EpilogueCodes rbx=[0] rip=[1] rsp=2";
    assert_eq!(case.coreclr().at(0x57C), expected);
    assert_eq!(at(&of_version(2, &chunk_info), 0x57C), expected);
}
