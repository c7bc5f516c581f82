//! Entries: CIEs and FDEs of every kind, and faulty ones.

use super::*;

/// Returns the number of problems of the frames, and the first one.
fn problems(frames: &Frames) -> (u32, Option<CfiProblem>) {
    let case = Case::new(frames, 0);
    let table = case.table();
    (table.problems(), table.first_problem().map(|error| error.problem))
}

#[test]
fn pointers_have_many_encodings() {
    let address = PREFERRED + u64::from(CODE);
    let here = PREFERRED + u64::from(EH_FRAME);
    for (name, encoding, base, value_size) in [
        ("absptr", 0x00, 0, 8),
        ("udata4", 0x03, 0, 4),
        ("udata8", 0x04, 0, 8),
        ("sdata4", 0x0B, 0, 4),
        ("sdata8", 0x0C, 0, 8),
        ("uleb128", 0x01, 0, 0),
        ("sleb128", 0x09, 0, 0),
        ("pcrel sdata4", 0x1B, here, 4),
        ("pcrel sdata8", 0x1C, here, 8),
        ("pcrel absptr", 0x10, here, 8),
        ("textrel udata2", 0x22, PREFERRED + u64::from(CODE), 2),
        ("datarel sdata2", 0x3A, PREFERRED + 0x2000, 2),
    ] {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie { data: vec![encoding], ..Cie::default() });
        let base = if base == here { here + frames.bytes.len() as u64 + 8 } else { base };
        let encode = |value: u64| match value_size {
            0 if encoding == 1 => uleb(value),
            0 => sleb(value.cast_signed()),
            size => value.to_le_bytes()[..size].to_vec(),
        };
        let mut content = encode(address.wrapping_sub(base));
        content.extend(encode(0x20));
        content.push(0);
        content.extend(Cfi::DefCfaOffset(24).encode());
        frames.raw_fde(cie, &content);
        assert_eq!(problems(&frames), (0, None), "{name}");
        assert_eq!(Case::new(&frames, 0x1F).changes(), "rip=[2] rsp=3", "{name}");
        let case = Case::new(&frames, 0);
        assert!(case.table().functions().eq(std::iter::once(CODE..CODE + 0x20)), "{name}");
    }
    for encoding in [0x9B, 0x50, 0x4B, 0xFF] {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie { data: vec![encoding], ..Cie::default() });
        frames.raw_fde(cie, &[0; 24]);
        let (count, problem) = problems(&frames);
        assert_eq!(count, 1, "{encoding:#x}");
        let expected = [CfiProblem::Encoding, CfiProblem::Cie];
        assert!(expected.contains(&problem.unwrap()), "{encoding:#x} {problem:?}");
    }
}

#[test]
fn personalities_and_lsdas_are_passed_over() {
    let mut frames = Frames::new();
    let data = [vec![0x9B, 1, 2, 3, 4], vec![0x1B], vec![0x1B]].concat();
    let cie = frames.cie(&Cie { augmentation: "zPLR", data, ..Cie::default() });
    let here = EH_FRAME + frames.bytes.len() as u32 + 8;
    let mut content = CODE.wrapping_sub(here).to_le_bytes().to_vec();
    content.extend(0x40_u32.to_le_bytes());
    content.extend([4, 0xAA, 0xBB, 0xCC, 0xDD]);
    content.extend(Cfi::DefCfaOffset(16).encode());
    frames.raw_fde(cie, &content);
    assert_eq!(Case::new(&frames, 0x3F).changes(), "rip=[1] rsp=2");
}

/// The letters `B` (return addresses are signed with another key) and `G` (memory is tagged) belong to Arm's processors.
#[test]
fn augmentations_of_other_processors_are_passed_over() {
    for augmentation in ["zRB", "zRG", "zBGR"] {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie { augmentation, ..Cie::default() });
        frames.fde(cie, CODE, 0x10, &[Cfi::DefCfaOffset(16)]);
        assert_eq!(Case::new(&frames, 0).changes(), "rip=[1] rsp=2", "{augmentation}");
    }
}

#[test]
fn debug_frame_serves_where_eh_frame_says_nothing() {
    for version in [1, 3, 4] {
        let mut debug = Frames::debug();
        let plain = Cie { version, augmentation: "", data: vec![], ..Cie::default() };
        let cie = debug.cie(&plain);
        debug.fde(cie, CODE, 0x40, &[Cfi::DefCfaOffset(16)]);
        // Assemblers have left lengths of 0.
        debug.bytes.extend([0; 4]);
        debug.fde(cie, CODE + 0x60, 0x20, &[Cfi::DefCfaOffset(24)]);
        assert_eq!(Case::new(&debug, 0x3F).changes(), "rip=[1] rsp=2", "version {version}");
        assert_eq!(Case::new(&debug, 0x60).changes(), "rip=[2] rsp=3", "version {version}");

        let mut frames = Frames::new();
        let cie = frames.cie(&Cie::default());
        frames.fde(cie, CODE, 0x30, &[Cfi::DefCfaOffset(32)]);
        frames.fde(cie, CODE + 0x5F, 2, &[Cfi::DefCfaOffset(40)]);
        let both = |offset| {
            let eh_frame = frames.bytes.clone();
            Case { eh_frame, ..Case::new(&debug, offset) }.changes()
        };
        assert_eq!(both(0), "rip=[3] rsp=4");
        assert_eq!(both(0x60), "rip=[4] rsp=5");
        // An overlapping entry is left out whole.
        assert!(both(0x61).ends_with("has no call frame information"));
    }
}

#[test]
fn the_end_of_eh_frame_is_a_length_of_0() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE, 0x10, &[]);
    frames.bytes.extend([0; 4]);
    frames.fde(cie, CODE + 0x10, 0x10, &[]);
    // A header would list the function after it.
    frames.listed = None;
    assert!(Case::new(&frames, 0).table().functions().eq(std::iter::once(CODE..CODE + 0x10)));
    assert_eq!(problems(&frames), (0, None));
}

#[test]
fn long_lengths_are_read() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    let at = frames.bytes.len() as u32;
    let mut content = (at + 12 - cie as u32).to_le_bytes().to_vec();
    content.extend(CODE.wrapping_sub(EH_FRAME + at + 16).to_le_bytes());
    content.extend(0x10_u32.to_le_bytes());
    content.push(0);
    content.extend(Cfi::DefCfaOffset(24).encode());
    frames.bytes.extend(u32::MAX.to_le_bytes());
    frames.bytes.extend((content.len() as u64).to_le_bytes());
    frames.bytes.extend(content);
    assert_eq!(problems(&frames), (0, None));
    assert_eq!(Case::new(&frames, 0).changes(), "rip=[2] rsp=3");
}

#[test]
fn functions_may_come_in_any_order() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    for n in [5, 1, 9, 3, 7] {
        frames.fde(cie, CODE + 0x10 * n, 0x10, &[Cfi::DefCfaOffset(8 * u64::from(n))]);
    }
    for n in [1, 3, 5, 7, 9] {
        let changes = |offset| Case::new(&frames, offset).changes();
        let expected = format!("rip=[{}] rsp={n}", n - 1);
        assert_eq!(changes(0x10 * n), expected);
        assert_eq!(changes(0x10 * n + 0xF), expected);
        assert!(changes(0x10 * n + 0x10).ends_with("has no call frame information"));
    }
}

#[test]
fn of_functions_that_overlap_the_later_begins_where_it_says() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(
        cie,
        CODE,
        0x100,
        &[Cfi::DefCfaOffset(16), Cfi::Advance1(0x80), Cfi::DefCfaOffset(24)],
    );
    frames.fde(cie, CODE + 0x40, 0x20, &[Cfi::DefCfaOffset(32)]);
    // Begins where another one does: the first counts.
    frames.fde(cie, CODE, 0x10, &[Cfi::DefCfaOffset(40)]);
    let changes = |offset| Case::new(&frames, offset).changes();
    assert_eq!(changes(0), "rip=[1] rsp=2");
    assert_eq!(changes(0x3F), "rip=[1] rsp=2");
    assert_eq!(changes(0x40), "rip=[3] rsp=4");
    assert!(changes(0x60).ends_with("has no call frame information"));
}

#[test]
fn functions_outside_the_code_are_left_out() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    // Where the linker dropped the code, in data, of no length, beyond the end.
    frames.fde(cie, 0, 0x10, &[]);
    frames.fde(cie, EH_FRAME, 0x10, &[]);
    frames.fde(cie, CODE, 0, &[]);
    frames.fde(cie, CODE + 0xFF0, 0x1000, &[Cfi::DefCfaOffset(16)]);
    let case = Case::new(&frames, 0xFFF);
    assert!(case.table().functions().eq(std::iter::once(CODE + 0xFF0..CODE + 0x1000)));
    assert_eq!(case.changes(), "rip=[1] rsp=2");
    assert_eq!(problems(&frames), (0, None));
}

#[test]
fn a_faulty_entry_leaves_the_others_alone() {
    let mut frames = Frames::new();
    let unknown = frames.cie(&Cie { version: 9, ..Cie::default() });
    let strange = frames.cie(&Cie { augmentation: "q", ..Cie::default() });
    let cie = frames.cie(&Cie::default());
    frames.fde(unknown, CODE + 0x20, 0x10, &[]);
    frames.fde(strange, CODE + 0x30, 0x10, &[]);
    // Its CIE is an FDE.
    let function = frames.fde(cie, CODE, 0x10, &[Cfi::DefCfaOffset(16)]);
    frames.fde(function, CODE + 0x40, 0x10, &[]);
    // Cut off in its addresses.
    frames.raw_fde(cie, &[]);
    frames.fde(cie, CODE + 0x10, 0x10, &[Cfi::DefCfaOffset(24)]);
    assert_eq!(problems(&frames), (4, Some(CfiProblem::Cie)));
    assert_eq!(Case::new(&frames, 0).changes(), "rip=[1] rsp=2");
    assert_eq!(Case::new(&frames, 0x10).changes(), "rip=[2] rsp=3");
    assert!(Case::new(&frames, 0x20).changes().ends_with("has no call frame information"));
}

#[test]
fn an_entry_that_is_cut_off_ends_the_section() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    frames.fde(cie, CODE, 0x10, &[Cfi::DefCfaOffset(16)]);
    let whole = frames.bytes.len();
    frames.fde(cie, CODE + 0x10, 0x10, &[]);
    for len in whole + 1..frames.bytes.len() {
        let cut = Frames { bytes: frames.bytes[..len].to_vec(), ..Frames::default() };
        assert_eq!(problems(&cut), (1, Some(CfiProblem::CutOff)), "{len}");
        assert_eq!(Case::new(&cut, 0).changes(), "rip=[1] rsp=2");
    }
    for len in 0..whole {
        let cut = Frames { bytes: frames.bytes[..len].to_vec(), ..Frames::default() };
        let _ = problems(&cut);
        assert!(Case::new(&cut, 0).step().is_err());
    }
}

/// The rows of a program are kept up to the fault.
#[test]
fn a_faulty_program_is_good_up_to_its_fault() {
    for (problem, faulty) in [
        (CfiProblem::Instruction(0x3F), Cfi::Raw(vec![0x3F])),
        (CfiProblem::Instruction(0x17), Cfi::Raw(vec![0x17])),
        (CfiProblem::States, Cfi::RestoreState),
        (CfiProblem::Offset, Cfi::DefCfaOffset(1 << 31)),
        (CfiProblem::Offset, Cfi::Offset(Gpr::Rbx, 1 << 29)),
        (CfiProblem::Number, Cfi::Raw([vec![0x0E], vec![0xFF; 10], vec![0]].concat())),
        // A step back: set_loc of the function's begin.
        (CfiProblem::Context, Cfi::Raw(vec![1, 0xC8, 0xDF, 0xFF, 0xFF])),
    ] {
        let rows = [Cfi::DefCfaOffset(16), Cfi::Advance(8), Cfi::DefCfaOffset(24), faulty];
        let case = |offset| Case::function(&rows, offset);
        assert_eq!(case(7).changes(), "rip=[1] rsp=2", "{problem}");
        let error = CfiError { problem, section: FrameSection::EhFrame, offset: 0x32 };
        assert_eq!(case(8).changes(), error.to_string());
        assert_eq!(case(0xFF).step(), Err(error.into()));
        let table = case(0);
        assert_eq!(table.table().row(CODE + 8), Err(error));
        assert_eq!((table.table().problems(), table.table().first_problem()), (1, Some(error)));
    }
}

/// A program may end in the middle of an instruction.
#[test]
fn a_program_that_is_cut_off_is_faulty() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    let at = frames.bytes.len();
    let mut content = CODE.wrapping_sub(EH_FRAME + at as u32 + 8).to_le_bytes().to_vec();
    content.extend(0x10_u32.to_le_bytes());
    content.push(0);
    // The entry is 8-aligned, so there is no padding: 3 nops, then half an instruction.
    content.extend([0, 0, 0x0C, 7]);
    content.splice(9..9, vec![0; (4 + content.len()).next_multiple_of(8) - 4 - content.len()]);
    frames.raw_fde(cie, &content);
    assert_eq!(problems(&frames), (1, Some(CfiProblem::CutOff)));
}

#[test]
fn set_loc_goes_forward() {
    // The entry's pointer is at .eh_frame+0x2E.
    let target = (CODE + 0x20).wrapping_sub(EH_FRAME + 0x2E).to_le_bytes();
    let rows = [Cfi::Raw([vec![1], target.to_vec()].concat()), Cfi::DefCfaOffset(16)];
    assert_eq!(Case::function(&rows, 0x1F).changes(), "rip=[0] rsp=1");
    assert_eq!(Case::function(&rows, 0x20).changes(), "rip=[1] rsp=2");
    // A target at the function's begin stays there.
    let target = CODE.wrapping_sub(EH_FRAME + 0x2E).to_le_bytes();
    let rows = [Cfi::Raw([vec![1], target.to_vec()].concat()), Cfi::DefCfaOffset(16)];
    assert_eq!(Case::function(&rows, 0).changes(), "rip=[1] rsp=2");
}

#[test]
fn rows_beyond_the_function_do_not_count() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    let rows =
        [Cfi::Advance4(u32::MAX), Cfi::DefCfaOffset(16), Cfi::Advance4(5), Cfi::Raw(vec![0x3F])];
    frames.fde(cie, CODE, 0x10, &rows);
    frames.fde(cie, CODE + 0x10, 0x10, &[Cfi::DefCfaOffset(24)]);
    assert_eq!(problems(&frames), (0, None));
    assert_eq!(Case::new(&frames, 0xF).changes(), "rip=[0] rsp=1");
    assert_eq!(Case::new(&frames, 0x10).changes(), "rip=[2] rsp=3");
}

#[test]
fn rules_of_unusual_form_are_limited() {
    for registers in [15, 13] {
        let mut frames = Frames::new();
        let cie = frames.cie(&Cie::default());
        let columns = (8..16).chain(0..7).take(registers);
        let mut rows: Vec<_> = columns.map(|column| Cfi::Raw(vec![0x14, column, 1])).collect();
        for n in 0..2000_u64 {
            rows.extend([Cfi::Advance(1), Cfi::DefCfaOffset(8 + n)]);
        }
        frames.fde(cie, CODE, 0xF00, &rows);
        let case = Case::new(&frames, 0);
        assert!(case.step().is_ok());
        assert!(case.table().size() < 40 * frames.bytes.len(), "{}", case.table().size());
        let error = case.table().row(CODE + 0xE00).unwrap_err();
        assert_eq!(error.problem, CfiProblem::TooManyRules);
        // What is one too many is one fault, so all of it is one row.
        let [rows, rules] = case.table().counts();
        assert!((4096 / 15..2000 / 3).contains(&rules), "{rules} rules");
        assert_eq!(rows, 1 + rules + 1 + 1);
    }
}

#[test]
fn no_section_is_no_problem() {
    let case = Case::new(&Frames::new(), 0);
    assert_eq!(case.table().functions().count(), 0);
    assert!(case.changes().ends_with("has no call frame information"));
    assert_eq!(case.table().row(0), Ok(None));
}
