use super::*;
use crate::input::read_up_to;

/// The answers to several calls, all of which must be refused.
#[derive(Default)]
struct Refusals(String);

impl Refusals {
    #[track_caller]
    fn add(&mut self, call: &str, answer: &Answer) {
        assert_eq!(answer.code, 2, "{call}: {}", answer.text());
        writeln!(self.0, "$ clrsim {call}\n{}", answer.text()).unwrap();
    }
}

#[test]
fn wrong_arguments() {
    let cases: &[&[&str]] = &[
        &["fly"],
        &["run", "--jobs", "0"],
        &["run", "--unwind-rules", "linux"],
        &["run", "--limit", "-1"],
        &["show"],
        &["show", "win64/vec/gcc_O2.vec.gz", "--case", "first"],
        &["show"],
    ];
    let mut refusals = Refusals::default();
    for args in cases {
        refusals.add(&args.join(" "), &clrsim(args));
    }
    insta::assert_snapshot!("arguments", refusals.0);
}

#[test]
fn inputs_that_cannot_be_used() {
    let folder = Folder::new();
    let vectors = content("win64/vec/gcc_O2.vec.gz");
    let dll = fixture("win64/img/gcc_O2.dll");
    let bad_kind = {
        let mut bytes = vectors.clone();
        bytes[32 + 10] = 99;
        gzip(&bytes)
    };
    let gz = fixture("win64/vec/gcc_O2.vec.gz");
    folder.write("empty/readme.txt", b"nothing here");
    folder.write("img/not_pe.dll", b"MZ, but no more");
    folder.write("img/other.dll", fixture("win64/img/clang_O2.dll"));
    folder.write("beside/gcc.dll", dll);
    let missing = folder.path("missing.vec.gz");
    let files = [
        ("missing file", missing.clone()),
        ("empty folder", folder.path("empty")),
        ("not gzip", folder.write("plain.vec.gz", b"not gzip at all")),
        ("cut gzip", folder.write("cut.vec.gz", &gz[..gz.len() / 2])),
        ("wrong signature", folder.write("magic.bin.gz", &gzip(b"W64UVEC2 and so on"))),
        ("cut vectors", folder.write("short.vec.gz", &gzip(&vectors[..vectors.len() - 100]))),
        ("cut header", folder.write("header.vec.gz", &gzip(&vectors[..20]))),
        ("wrong kind", folder.write("beside/gcc.vec.gz", &bad_kind)),
        ("missing image", folder.write("vec/no_image.vec.gz", gz)),
        ("missing image beside", folder.write("no_image.vec.gz", gz)),
        ("image not PE", folder.write("vec/not_pe.vec.gz", gz)),
        ("another image", folder.write("vec/other.vec.gz", gz)),
    ];
    let mut refusals = Refusals::default();
    for (name, path) in &files {
        for command in ["run", "show"] {
            refusals.add(&format!("{command} ({name})"), &folder.clrsim(&[command, path]));
        }
    }
    refusals.add("run --filter", &clrsim(&["run", "--filter", "no such text"]));
    insta::assert_snapshot!("inputs", refusals.0);
}

#[test]
fn a_text_that_checks_nothing_does_not_pass() {
    let folder = Folder::new();
    let program = folder.write("program.kdl", b"function \"main\"\n");
    let stack = folder.write("stack.kdl", b"stack { jit \"App.Main+0x20\" rsp=0x1fe000 }\n");
    let run = folder.clrsim(&["run", &program, &stack]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.err, @r"
    error: DIR/program.kdl: checks nothing: add a stop or an explore
    error: DIR/stack.kdl: checks nothing: add a snapshot or a mixed-walk
    ");
}

#[test]
fn files_are_not_read_beyond_a_limit() {
    let folder = Folder::new();
    let path = folder.write("ten", b"0123456789");
    let read = |limit| read_up_to(Path::new(&path), limit).unwrap();
    assert_eq!(read(10).as_deref(), Some(&b"0123456789"[..]));
    assert_eq!(read(u64::MAX).as_deref(), Some(&b"0123456789"[..]));
    assert_eq!(read(9), None);
}

#[test]
fn the_readable_files_are_replayed_all_the_same() {
    let folder = Folder::new();
    folder.write("a.bin.gz", b"damaged");
    folder.write("b.bin.gz", fixture("win64/diff/fuzz.bin.gz"));
    let mut refusals = Refusals::default();
    refusals.add("run", &folder.clrsim(&["run", &folder.path("")]));
    refusals.add("run --json", &folder.clrsim(&["run", "--json", &folder.path("")]));
    insta::assert_snapshot!("one_file_of_two", refusals.0);
}

/// Missing files are reported, and the others are run.
#[test]
fn files_beside_missing_ones_are_run() {
    let folder = Folder::new();
    let there = folder.write("there.bin.gz", fixture("win64/diff/fuzz.bin.gz"));
    folder.write("empty/readme.txt", b"nothing here");
    let (missing, empty) = (folder.path("missing.kdl"), folder.path("empty"));
    let mut refusals = Refusals::default();
    refusals.add("run", &folder.clrsim(&["run", &missing, &there, &empty]));
    refusals.add("run --json", &folder.clrsim(&["run", "--json", &missing, &there]));
    refusals.add("run (none)", &folder.clrsim(&["run", &missing, &empty]));
    refusals.add("run --bless", &folder.clrsim(&["run", "--bless", &missing, &there]));
    for name in ["gallery/hazards", "fixtures/gallery", "clr/nowhere.walks.jsonl"] {
        refusals.add(&format!("run {name}"), &folder.clrsim(&["run", name]));
    }
    insta::assert_snapshot!("missing_files", refusals.0);
}

#[test]
fn cases_that_are_not_there() {
    let mut refusals = Refusals::default();
    for file in ["win64/vec/gcc_O2.vec.gz", "win64/diff/fuzz.bin.gz"] {
        for case in ["1000000", "18446744073709551615"] {
            let args = ["show", file, "--case", case];
            refusals.add(&args.join(" "), &clrsim(&args));
        }
    }
    let folder = Folder::new();
    let none = folder.write("none.bin.gz", &gzip(b"W64UFUZ1\0\0\0\0\0\0\0\0"));
    refusals.add("show (no cases)", &folder.clrsim(&["show", &none]));
    insta::assert_snapshot!("cases", refusals.0);
    insta::assert_snapshot!("run_without_cases", folder.clrsim(&["run", &none]).text());
}

#[test]
fn images_that_cannot_be_shown() {
    let folder = Folder::new();
    let dll = fixture("win64/img/gcc_O2.dll");
    let mut arm = dll.to_vec();
    let headers = u32::from_le_bytes(*arm[0x3C..].first_chunk().unwrap()) as usize;
    arm[headers + 4..headers + 6].copy_from_slice(&0xAA64_u16.to_le_bytes());
    let mut refusals = Refusals::default();
    for (name, path) in [
        ("missing", folder.path("missing.dll")),
        ("folder", folder.path("")),
        ("not PE", folder.write("text.dll", b"no image")),
        ("cut", folder.write("cut.dll", &dll[..dll.len() / 2])),
        ("another machine", folder.write("arm.dll", &arm)),
    ] {
        refusals.add(&format!("show ({name})"), &folder.clrsim(&["show", &path]));
    }
    for function in ["t_nowhere", "0xffffff", "0xtreme"] {
        let args = ["show", "win64/img/gcc_O2.dll", "--function", function];
        refusals.add(&args.join(" "), &clrsim(&args));
    }
    insta::assert_snapshot!("images", refusals.0);
}

/// Long lines are not shown, neither for a mistake far to the right nor for one beside the line.
#[test]
fn a_mistake_in_a_long_line_is_printed_without_the_line() {
    let folder = Folder::new();
    let work = "work 1; ".repeat(20_000);
    let far = format!("function \"A\" kind=\"jit\" {{ body {{ {work}wrok 1 }} }}\n");
    let beside = format!("function \"A\" kind=\"jit\" {{ body {{ {work} }} }}\nfuction \"B\"\n");
    let mut refusals = Refusals::default();
    for (name, text) in [("far.kdl", far), ("beside.kdl", beside)] {
        let path = folder.write(name, text.as_bytes());
        refusals.add(&format!("run {name}"), &folder.clrsim(&["run", &path]));
    }
    insta::assert_snapshot!("long_lines", refusals.0);
}
