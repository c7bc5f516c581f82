//! Tables as a whole: which entries are in them, and the size of what they keep.

use super::*;

/// Returns a case of `count` functions of 16 bytes each, one after the other, with these programs.
fn functions(count: u32, program: impl Fn(u32) -> Vec<Cfi>) -> Case {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    for n in 0..count {
        frames.fde(cie, CODE + 0x10 * n, 0x10, &program(n));
    }
    Case::new(&frames, 0)
}

#[test]
fn each_kind_of_content_adds_its_size() {
    const COUNT: usize = 200;
    let size = |count: usize, program: &dyn Fn(u32) -> Vec<Cfi>| {
        functions(count as u32, program).table().size()
    };
    let same = |_: u32| vec![Cfi::DefCfaOffset(16)];
    let half = size(COUNT / 2, &same);
    let whole = size(COUNT, &same);
    // They share a row.
    let ranges = COUNT / 2 * size_of::<std::ops::Range<u32>>();
    assert!(whole.abs_diff(half + ranges) < 64, "{half} and {whole}");
    let offset = |n: u32| Cfi::DefCfaOffset(8 * u64::from(n + 2));
    // A row, and a rule of 24 bytes; a general rule, and one for a register; an error.
    let general = size_of::<CfaRule>() + size_of::<Option<RegisterRule>>();
    let simple = |n: u32| vec![offset(n)];
    let unusual = |n: u32| vec![offset(n), Cfi::ValOffset(Gpr::Rbx, 2)];
    let faulty = |_: u32| vec![Cfi::Raw(vec![0x3F])];
    for (what, program, least) in [
        ("simple rules", &simple as &dyn Fn(u32) -> Vec<Cfi>, 24),
        ("general rules", &unusual, general + size_of::<(Gpr, RegisterRule)>()),
        ("faults", &faulty, size_of::<CfiError>()),
    ] {
        let added = size(COUNT, program) - whole;
        let least = COUNT * (8 + least);
        assert!((least..2 * least).contains(&added), "{what}: {added}, at least {least}");
    }
}

#[test]
fn neighbouring_rows_with_one_rule_are_one_row() {
    let counts = |program: &dyn Fn(u32) -> Vec<Cfi>| functions(2, program).table().counts();
    // Rows before and after the functions.
    assert_eq!(counts(&|_| vec![Cfi::DefCfaOffset(16)]), [3, 1]);
    assert_eq!(counts(&|n| vec![Cfi::DefCfaOffset(16 + 8 * u64::from(n))]), [4, 2]);
    // Of three rules, one is of unusual form.
    let program = |n| {
        let value = Cfi::ValOffset(Gpr::Rbx, 2);
        let twice = vec![Cfi::Advance(4), Cfi::DefCfaOffset(16)];
        if n == 0 { twice } else { vec![value] }
    };
    assert_eq!(counts(&program), [5, 3]);
    // Where the program goes on by nothing, there is no row.
    let stays = |_| vec![Cfi::DefCfaOffset(16), Cfi::Advance(0), Cfi::DefCfaOffset(24)];
    assert_eq!(counts(&stays), [3, 1]);
    let lazy = functions(2, |_| vec![]);
    assert_eq!(CfiTable::lazy(&lazy.cfi(), &lazy.sections()).counts(), [0; 2]);
}

/// Two rules that differ in a register alone, and one that comes twice.
#[test]
fn rules_of_unusual_form_have_their_own_registers() {
    let value = |register, units| Cfi::ValOffset(register, units);
    let program = [
        value(Gpr::Rbx, 2),
        Cfi::Advance(4),
        value(Gpr::Rbx, 3),
        Cfi::Advance(4),
        value(Gpr::Rbx, 3),
        Cfi::Advance(4),
        value(Gpr::Rbp, 4),
    ];
    let case = Case::function(&program, 0);
    assert_eq!(case.table().counts(), [5, 3]);
    for table in case.tables() {
        let rule = |offset, register| {
            let row = table.row(CODE + offset).unwrap().unwrap();
            row.registers[register as usize]
        };
        let value = |units: i32| Some(RegisterRule::ValOffset(-8 * units));
        assert_eq!([0, 4, 8, 12].map(|at| rule(at, Gpr::Rbx)), [2, 3, 3, 3].map(value));
        let of_rbp = [0, 4, 8, 12].map(|at| rule(at, Gpr::Rbp));
        assert_eq!(of_rbp, [None, None, None, value(4)]);
    }
}

/// The second function begins where the first one has another row.
#[test]
fn a_row_that_begins_in_the_next_function_is_none() {
    let mut frames = Frames::new();
    let cie = frames.cie(&Cie::default());
    let rows = [Cfi::DefCfaOffset(16), Cfi::Advance(0x10), Cfi::DefCfaOffset(24)];
    frames.fde(cie, CODE, 0x20, &rows);
    frames.fde(cie, CODE + 0x10, 0x10, &rows[..1]);
    let case = Case::new(&frames, 0);
    assert_eq!(case.table().counts()[0], 3);
    assert_eq!(case.table().row(CODE).unwrap().unwrap().range, CODE..CODE + 0x20);
}

#[test]
fn a_function_of_debug_frame_may_begin_where_one_of_eh_frame_ends() {
    let mut debug = Frames::debug();
    let cie = debug.cie(&Cie { augmentation: "", ..Cie::default() });
    debug.fde(cie, CODE + 0x10, 0x10, &[Cfi::DefCfaOffset(16)]);
    let frames = functions(1, |_| vec![Cfi::DefCfaOffset(24)]);
    let both = |offset| Case { eh_frame: frames.eh_frame.clone(), ..Case::new(&debug, offset) };
    assert_eq!(both(0xF).changes(), "rip=[2] rsp=3");
    assert_eq!(both(0x10).changes(), "rip=[1] rsp=2");
}

/// The column of the return address: a byte in version 1, and a number of any length in the others.
#[test]
fn the_version_says_how_long_the_return_address_column_is() {
    let usual = || vec![Cfi::DefCfa(Gpr::Rsp, 8)];
    // In version 1 it is 0x90, and a nop and offset_extended of 0x90 follow; in the others it is 0x10.
    let byte = Cfi::Raw(vec![0, 5, 0x90, 1, 1]);
    let number = Cfi::Raw(vec![0, 0x80 | 16, 1]);
    for (version, rest) in [(1, &byte), (3, &number), (4, &number)] {
        let instructions = [vec![rest.clone()], usual()].concat();
        let (augmentation, data) = ("", vec![]);
        let mut debug = Frames::debug();
        let cie = Cie {
            version,
            augmentation,
            data,
            return_address: 0x90,
            instructions,
            ..Cie::default()
        };
        let cie = debug.cie(&cie);
        debug.fde(cie, CODE, 0x10, &[]);
        assert_eq!(Case::new(&debug, 0).changes(), "rip=[0] rsp=1", "version {version}");
    }
}

/// Returns a CIE of more than 200 bytes, which says that the stack pointer is `words` below the
/// canonical frame address.
fn long_cie(words: u64) -> Cie {
    let nops = Cfi::Raw(vec![0; 200]);
    let rules = [Cfi::DefCfa(Gpr::Rsp, 8 * words), Cfi::Raw(vec![0x80 | 16, 1])];
    Cie { instructions: [&rules[..], &[nops]].concat(), ..Cie::default() }
}

#[test]
fn functions_may_take_turns_with_their_cies() {
    let mut frames = Frames::new();
    let cies = [1, 2].map(|words| frames.cie(&long_cie(words)));
    for n in 0..64 {
        frames.fde(cies[n as usize % 2], CODE + 0x10 * n, 0x10, &[]);
    }
    let case = Case::new(&frames, 0);
    let table = case.table();
    assert_eq!((table.problems(), table.functions().count()), (0, 64));
    for n in 0..64 {
        let words = n % 2 + 1;
        let expected = format!("rip=[{}] rsp={words}", words - 1);
        assert_eq!(Case::new(&frames, 0x10 * n).changes(), expected, "{n}");
    }
}

/// A CIE of `.debug_frame` may come after its functions. It is read anew when they take turns, which
/// the size of the section limits: a hostile one could have as many CIEs as it has functions.
#[test]
fn cies_may_come_after_their_functions() {
    const COUNT: usize = 16;
    let cie = |words| Cie { augmentation: "", data: vec![], ..long_cie(words) };
    let len_of = |add: &dyn Fn(&mut Frames)| {
        let mut frames = Frames::debug();
        add(&mut frames);
        frames.bytes.len()
    };
    let len_of_cie = len_of(&|frames| _ = frames.cie(&cie(1)));
    let len_of_fde = len_of(&|frames| _ = frames.fde(0, CODE, 0x10, &[]));
    let section = |of: &dyn Fn(usize) -> usize| {
        let mut frames = Frames::debug();
        for n in 0..COUNT {
            let at = COUNT * len_of_fde + of(n) * len_of_cie;
            frames.fde(at, CODE + 0x10 * n as u32, 0x10, &[]);
        }
        for words in [1, 2] {
            frames.cie(&cie(words));
        }
        frames
    };
    let found = |frames: &Frames| {
        let case = Case::new(frames, 0);
        (case.table().problems() as usize, case.table().functions().count())
    };
    let frames = section(&|n| n / 8);
    assert_eq!(found(&frames), (0, COUNT));
    for n in 0..COUNT {
        let words = n / 8 + 1;
        let expected = format!("rip=[{}] rsp={words}", words - 1);
        assert_eq!(Case::new(&frames, 0x10 * n as u32).changes(), expected, "{n}");
    }
    let frames = section(&|n| n % 2);
    let turns = frames.bytes.len() / len_of_cie;
    // The one that was read last stays.
    let lost = (COUNT - turns) / 2;
    assert_eq!(found(&frames), (lost, COUNT - lost));
}
