use super::*;
use clr_recording::vectors::fuzz::{FuzzFile, FuzzKind};
use clr_recording::vectors::win64::{Vector, VectorFile, VectorKind};

/// The number of the first vector of the file for which `is_wanted` holds.
fn find(file: &str, is_wanted: Wanted) -> String {
    let bytes = content(file);
    let file = VectorFile::parse(&bytes).unwrap();
    let case = file.iter().position(|vector| is_wanted(&vector.unwrap())).unwrap();
    case.to_string()
}

/// The condition of the wanted vector.
type Wanted = fn(&Vector<'_>) -> bool;

fn body(vector: &Vector<'_>) -> bool {
    vector.kind == VectorKind::Body && vector.flags.is_gold()
}

#[test]
fn vectors_of_every_kind() {
    let (asm, gcc, clang, cpp) = (
        "win64/vec/asm_raw.vec.gz",
        "win64/vec/gcc_O2.vec.gz",
        "win64/vec/clang_O2.vec.gz",
        "win64/vec/cpp_gcc_O2.vec.gz",
    );
    let cases: &[(&str, &str, Wanted)] = &[
        ("prologue", gcc, |v| {
            v.kind == VectorKind::Prologue && v.rva > v.begin_address + 6 && v.flags.is_gold()
        }),
        ("body", clang, |v| body(v) && v.attrs.frame_register() && !v.attrs.alloc_large()),
        ("epilogue by code", clang, |v| {
            v.kind == VectorKind::CodeEpilogue && v.attrs.frame_register() && !v.attrs.alloc_large()
        }),
        ("epilogue by EPILOG codes", asm, |v| {
            v.kind == VectorKind::CodesEpilogue && !v.attrs.machine_frame()
        }),
        ("leaf", gcc, |v| v.kind == VectorKind::Leaf && v.flags.is_gold()),
        ("many callers", gcc, |v| v.flags.is_gold() && v.chain.len() > 3),
        ("chained", asm, |v| body(v) && v.attrs.chained() && v.attrs.save_nonvol()),
        ("chained frame register", asm, |v| {
            body(v) && v.attrs.chained() && v.attrs.frame_register()
        }),
        ("machine frame", asm, |v| body(v) && v.attrs.machine_frame() && v.registers.rip % 16 != 0),
        ("xmm", gcc, |v| body(v) && v.attrs.save_xmm()),
        ("xmm in a prologue", clang, |v| {
            v.attrs.save_xmm() && v.kind == VectorKind::Prologue && v.rva > v.begin_address + 10
        }),
        ("handler", cpp, |v| body(v) && v.attrs.handler() && v.flags.has_chain()),
        ("large frame", asm, |v| body(v) && v.truth.gpr[4] > v.registers.rsp() + 0x1000),
        ("not gold", gcc, |v| !v.flags.is_gold()),
    ];
    for (name, file, wanted) in cases {
        let case = find(file, *wanted);
        insta::assert_snapshot!(name.replace(' ', "_"), printed("show", &[file, "--case", &case]));
    }
}

#[test]
fn vectors_under_rules_of_windows() {
    // Wine is wrong about these, and so is Windows about some.
    let file = "win64/vec/gcc_O2.vec.gz";
    let case = find(file, |vector| vector.flags.is_gold() && !vector.flags.coreclr_right());
    insta::assert_snapshot!(
        "windows",
        printed("show", &[file, "--case", &case, "--unwind-rules", "coreclr"])
    );
}

#[test]
fn fuzz_records_of_every_kind() {
    let file = "win64/diff/fuzz.bin.gz";
    let bytes = content(file);
    let records: Vec<_> =
        FuzzFile::parse(&bytes).unwrap().iter().collect::<Result<_, _>>().unwrap();
    for kind in [
        FuzzKind::Plain,
        FuzzKind::EpilogueLike,
        FuzzKind::Malformed,
        FuzzKind::Chained,
        FuzzKind::EpilogCodes,
        FuzzKind::AnyOrder,
        FuzzKind::MachineFrame,
    ] {
        let case = records.iter().position(|record| record.kind == kind).unwrap().to_string();
        insta::assert_snapshot!(
            format!("fuzz_{kind:?}"),
            printed("show", &[file, "--case", &case])
        );
    }
}

#[test]
fn every_case_can_be_shown() {
    for file in ["win64/vec/asm_raw.vec.gz", "win64/vec/cpp_gcc_O2.vec.gz"] {
        let bytes = content(file);
        let len = VectorFile::parse(&bytes).unwrap().len();
        for case in (0..len).step_by(71) {
            for rules in ["precise", "coreclr"] {
                let text =
                    printed("show", &[file, "--case", &case.to_string(), "--unwind-rules", rules]);
                assert!(
                    text.contains("return address") || text.contains("machine frame"),
                    "{text}"
                );
            }
        }
    }
    for case in 0..409 {
        printed("show", &["win64/diff/fuzz.bin.gz", "--case", &case.to_string()]);
    }
}

#[test]
fn damaged_data_is_shown_or_refused() {
    let folder = Folder::new();
    folder.write("v.dll", fixture("win64/img/clang_O2.dll"));
    let mut numbers = Numbers(1);
    for (name, fixture) in
        [("v.vec.gz", "win64/vec/clang_O2.vec.gz"), ("f.bin.gz", "win64/diff/fuzz.bin.gz")]
    {
        // The first few records are enough, and quicker.
        let mut good = content(fixture);
        let (header, count_at) = if name.starts_with('v') { (32, 20) } else { (16, 8) };
        let mut end = header;
        for _ in 0..3 {
            end += u32::from_le_bytes(*good[end..].first_chunk().unwrap()) as usize;
        }
        good.truncate(end);
        good[count_at..count_at + 4].copy_from_slice(&3_u32.to_le_bytes());
        for _ in 0..300 {
            let mut bytes = good.clone();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(bytes.len());
                bytes[at] = numbers.below(256) as u8;
            }
            let path = folder.write(name, &gzip(&bytes));
            let case = numbers.below(3).to_string();
            assert!([0, 2].contains(&folder.clrsim(&["show", &path, "--case", &case]).code));
            assert!(folder.clrsim(&["run", &path]).code <= 2);
        }
    }
}

#[test]
fn stacks_of_recorded_walks() {
    for (name, file, walk) in [
        // An active P/Invoke: its Frame lies in the frame that it leads to.
        ("walk_inlined_call", "win31-async-alloc", "5"),
        ("walk_helper", "win31-async-alloc", "6"),
        ("walk_seeded", "win31-async-alloc", "13"),
        ("walk_refused", "win31-async-alloc", "12"),
        ("walk_redirected", "win31-async-alloc", "46"),
        ("walk_bad_flags", "win31-async-alloc", "18"),
        ("walk_off_the_stack", "win31-sync-gc", "30"),
        ("walk_funclet", "linux31-callbacks-trans-excep", "2"),
        ("walk_faulting", "linux9-callbacks-exc-legacyeh", "256"),
        ("walk_exception_handling", "linux9-api-excep", "5"),
        ("walk_dynamic", "net10win-sync-loading", "111"),
    ] {
        let file = format!("clr/{file}.walks.jsonl.gz");
        insta::assert_snapshot!(name, printed("show", &[&file, "--walk", walk]));
    }
    let first = printed("show", &["clr/win31-async-alloc.walks.jsonl.gz"]);
    assert_eq!(first, printed("show", &["clr/win31-async-alloc.walks.jsonl.gz", "--walk", "1"]));
}

/// Whatever a walk met, it can be drawn; each callback stands beside what it reports.
#[test]
fn every_walk_of_some_recordings_is_shown() {
    let mut drawn = 0;
    for file in [
        "win31-async-mon",
        "win31-badseed-rspnoncanonical-alloc",
        "linux31-danger-seed",
        "linux31-states",
        "linux9-api-excep",
        "linux9-crossthread-legacyeh",
        "net10win-many1",
    ] {
        let file = format!("clr/{file}.walks.jsonl.gz");
        let text = String::from_utf8(content(&file)).unwrap();
        let recording = clr_recording::Recording::parse(&text).unwrap();
        for walk in recording.walks.iter().filter(|walk| walk.replayable) {
            let picture = printed("show", &[&file, "--walk", &walk.n.to_string()]);
            assert!(picture.ends_with("\n\nas recorded\n"), "{file} {}", walk.n);
            for n in 0..walk.result.callbacks.len() {
                let named = picture.lines().filter(|line| {
                    line.ends_with(&format!(": callback {n}"))
                        || line.ends_with(&format!(": callback {n}, marker"))
                });
                assert_eq!(named.count(), 1, "{file} {}: callback {n}", walk.n);
            }
            drawn += 1;
        }
    }
    assert!(drawn > 150, "{drawn}");
}
