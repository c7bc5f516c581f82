//! `generate` and `minimize`.

use super::*;

#[test]
fn the_same_number_makes_the_same_text() {
    for kind in ["scenario", "stack", "program"] {
        let of = |seed: &str| clrsim(&["generate", "--kind", kind, "--seed", seed]);
        let (one, other) = (of("3"), of("4"));
        assert_eq!((one.code, one.err.as_str()), (0, ""));
        assert_eq!(one.text(), of("3").text());
        assert_ne!(one.out, other.out);
        assert!(one.out.contains("no evidence of what a runtime does"), "{}", one.out);
        assert!(!one.out.contains("from="), "{}", one.out);
    }
}

#[test]
fn generated_texts_pass() {
    let folder = Folder::new();
    let mut written = 0;
    for seed in 0..40 {
        for kind in ["scenario", "stack", "program"] {
            let path = folder.path(&format!("{kind}{seed}.kdl"));
            let seed = seed.to_string();
            let answer = folder.clrsim(&["generate", "--kind", kind, "--seed", &seed, "-o", &path]);
            written += usize::from(answer.code == 0);
        }
    }
    assert!(written > 110, "{written}");
    let run = folder.clrsim(&["run", &folder.path("")]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(run.out.contains(&format!("passed: {written} files")), "{}", run.out);
    let again = folder.clrsim(&["generate", "--seed", "4", "-o", &folder.path("stack3.kdl")]);
    assert_eq!(again.code, 2);
}

/// The default kind is a program with threads, stops and calls.
#[test]
fn scenarios_have_threads_stops_and_calls() {
    let texts: Vec<_> =
        (0..24).map(|seed| clrsim(&["generate", "--seed", &seed.to_string()])).collect();
    assert!(texts.iter().all(|answer| answer.code == 0));
    let count = |what: &str| texts.iter().filter(|answer| answer.out.contains(what)).count();
    assert!(count("\nstop ") == 24 && count("    snapshot") == 24 && count("expect on=") > 18);
    assert!(count("\nthread ") > 3 && count("    other ") > 0 && count("        frame ") > 3);
    // Which functions, in which order, and nothing of where code lies.
    assert_eq!((count("+0x"), count("rsp=")), (0, 0));
}

/// The number of lines that are left.
fn smaller(folder: &Folder, args: &[&str]) -> (u8, String) {
    let small = folder.path("small.kdl");
    let _ = fs::remove_file(&small);
    let answer = folder.clrsim(&[&["minimize", "-o", &small][..], args].concat());
    (answer.code, fs::read_to_string(&small).unwrap_or(answer.out + &answer.err))
}

#[test]
fn a_failure_is_kept_while_the_rest_goes() {
    let folder = Folder::new();
    let wrong = BARRIER.replace("frame \"App.Main+0x30\"", "frame \"App.Bar\"");
    let path = folder.write("wrong.kdl", wrong.as_bytes());
    let (code, text) = smaller(&folder, &[&path]);
    assert_eq!(code, 0, "{text}");
    insta::assert_snapshot!("failure", text);
    let run = folder.clrsim(&["run", &folder.path("small.kdl")]);
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.out.contains("App.Bar"), "{}", run.out);
}

#[test]
fn an_ending_is_kept_while_the_rest_goes() {
    let folder = Folder::new();
    let path = folder.write("right.kdl", BARRIER.as_bytes());
    let ending = ["--hresult", "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX", "--clause", "C-044"];
    let (code, text) = smaller(&folder, &[&[path.as_str()][..], &ending].concat());
    assert_eq!(code, 0, "{text}");
    insta::assert_snapshot!("ending", text);
    assert_eq!(folder.clrsim(&["run", &folder.path("small.kdl")]).code, 0);
    let nothing = "DIR/right.kdl: nothing in it fails, so there is nothing to keep\n";
    assert_eq!(smaller(&folder, &[&path]), (1, nothing.to_owned()));
    assert_eq!(smaller(&folder, &[&path, "--hresult", "E_FAIL"]).0, 1);
    // Whatever way it is said.
    for way in ["0x8013135f", "0X8013135F", "UNMANAGED_CTX", "STACKSNAPSHOT_UNMANAGED_CTX"] {
        let said = smaller(&folder, &[&path, "--hresult", way, "--clause", "C-044"]);
        assert_eq!(said, (0, text.clone()), "{way}");
    }
    for way in ["UNMANAGED", "E_FAIR", "", "0x18013135F", "CTX"] {
        let (code, refused) = smaller(&folder, &[&path, "--hresult", way]);
        assert!(code == 2 && refused.contains("there is no such HRESULT"), "{way}: {refused}");
    }
}

/// Another clause can give the same HRESULT.
#[test]
fn the_reason_is_kept_and_the_text_does_not_grow() {
    let folder = Folder::new();
    let text = "\
stack {
    mode \"cooperative\"
    jit \"App.Foo+0x20\" rsp=0x1fe000
    jit \"App.Main+0x20\" rsp=0x1fe050
}
snapshot by=\"native-walker\" suspended=#true
snapshot \"other\" by=\"native-walker\"
";
    let path = folder.write("reason.kdl", text.as_bytes());
    let (code, small) = smaller(&folder, &[&path, "--hresult", "E_NOTIMPL"]);
    assert_eq!(code, 0, "{small}");
    insta::assert_snapshot!("reason", small);
    let explained = folder.clrsim(&["explain", &folder.path("small.kdl"), "--on", "net10-unix"]);
    assert!(explained.out.contains("C-020"), "{}", explained.out);
}

/// Evidence is kept or dropped, and what was dropped is named.
#[test]
fn expectations_are_not_changed() {
    let folder = Folder::new();
    let observed = BARRIER
        .replace("expect on=\"windows\" {", "expect on=\"windows\" from=\"documentation\" {");
    assert_ne!(observed, BARRIER);
    let path = folder.write("observed.kdl", observed.as_bytes());
    let small = folder.path("small.kdl");
    let args = ["minimize", &path, "-o", &small, "--hresult", "UNMANAGED_CTX"];
    let answer = folder.clrsim(&args);
    insta::assert_snapshot!("dropped", answer.text());
    let small = fs::read_to_string(&small).unwrap();
    assert!(small.contains("from=\"documentation\""), "{small}");
}

/// The command of step 5 of the chapter.
#[test]
fn the_text_of_a_field_bug_is_made_small() {
    let folder = Folder::new();
    let chapter = include_str!("../../../../src/book/field_bug.md");
    let text = chapter.split("```kdl\n").nth(1).unwrap().split("```").next().unwrap();
    let path = folder.write("my.kdl", text.as_bytes());
    let command = chapter.split("`clrsim minimize my.kdl ").nth(1).unwrap().split('`').next();
    let args: Vec<_> = command.unwrap().split_whitespace().collect();
    let args = args.strip_suffix(&["-o", "small.kdl"]).unwrap();
    let (code, small) = smaller(&folder, &[&[path.as_str()], args].concat());
    assert_eq!(code, 0, "{small}");
    assert!(small.lines().count() < text.lines().count(), "{small}");
    assert!(small.contains("CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX"), "{small}");
}

#[test]
fn walks_of_programs_are_made_smaller() {
    let folder = Folder::new();
    let text = String::from_utf8(super::super::fixture("programs/tail_call.kdl").to_vec()).unwrap();
    let wrong =
        text.replace("frame \"worker\" trust=\"prologue\"", "frame \"worker\" trust=\"body\"");
    let path = folder.write("wrong.kdl", wrong.as_bytes());
    let (code, small) = smaller(&folder, &[&path]);
    assert_eq!(code, 0, "{small}");
    assert!(small.lines().count() < wrong.lines().count() / 2 + 5, "{small}");
    assert_eq!(folder.clrsim(&["run", &folder.path("small.kdl")]).code, 1);
}

/// Returns the number of lines, and of bytes.
fn size(text: &str) -> (usize, usize) {
    (text.lines().count(), text.len())
}

/// Texts of a few lines, each with a result that another reason gives, too, and the clause that
/// decides it. What is written has neither more lines nor more bytes.
#[test]
fn small_texts_do_not_grow_and_keep_their_reason() {
    const STACK: &str = "\
stack {
    mode \"cooperative\"
    jit \"App.Foo+0x20\" rsp=0x1fe000
    jit \"App.Main+0x20\" rsp=0x1fe050
}
";
    let compact = STACK.replace('\n', "; ").replace("{; ", "{ ").replace("}; ", "}\n");
    let table: &[(&str, &str, &str, &str)] = &[
        // (stack, calls, result, clause)
        (
            STACK,
            "snapshot by=\"native-walker\" suspended=#true\nsnapshot \"other\" by=\"native-walker\"\n",
            "E_NOTIMPL",
            "C-020",
        ),
        (STACK, "snapshot by=\"native-walker\"\nsnapshot \"other\"\n", "E_NOTIMPL", "C-019"),
        (&compact, "snapshot by=\"native-walker\" suspended=#true\n", "E_NOTIMPL", "C-020"),
        (&compact, "snapshot by=\"native-walker\"; snapshot flags=0\n", "E_NOTIMPL", "C-019"),
        ("stack {}\n", "snapshot by=\"native-walker\"\n", "E_NOTIMPL", "C-019"),
    ];
    let folder = Folder::new();
    for (stack, calls, result, clause) in table {
        let text = format!("{stack}{calls}");
        let path = folder.write("small.in.kdl", text.as_bytes());
        let (code, small) = smaller(&folder, &[&path, "--hresult", result, "--on", "net10-unix"]);
        assert_eq!(code, 0, "{text}\n{small}");
        let (lines, bytes) = size(&small);
        assert!(lines <= size(&text).0 && bytes <= size(&text).1, "{text}\n{small}");
        let small = folder.path("small.kdl");
        let why = folder.clrsim(&["explain", &small, "--on", "net10-unix"]).out;
        assert!(why.contains(result) && why.contains(clause), "{text}\n{why}");
    }
}

/// A text from which nothing can be removed is written as it is, and that is printed.
#[test]
fn a_text_that_is_small_stays_as_it_is() {
    let folder = Folder::new();
    let text = "// mine\nstack {}\nsnapshot by=\"native-walker\"\n";
    let path = folder.write("small.in.kdl", text.as_bytes());
    let small = folder.path("small.kdl");
    let args = ["minimize", &path, "-o", &small, "--hresult", "E_NOTIMPL", "--on", "net10-unix"];
    insta::assert_snapshot!(folder.clrsim(&args).text(), @"
    exit code 0
    -- stdout
    written: DIR/small.kdl, unchanged: nothing smaller was found than its 3 lines
    ");
    assert_eq!(fs::read_to_string(&small).unwrap(), text);
}

/// Mixed walks fail, too; the kind of the difference is kept.
#[test]
fn mixed_walks_are_made_smaller() {
    let folder = Folder::new();
    let text = "\
// two walks, one of them wrong
stack {
    mode \"cooperative\"
    jit \"App.Foo+0x20\" rsp=0x1fe000
    jit \"App.Bar+0x20\" rsp=0x1fe050
    jit \"App.Main+0x20\" rsp=0x1fe0a0
}
snapshot
mixed-walk policy=\"unseeded\"
mixed-walk policy=\"seeded\" {
    expect on=\"net10-windows\" {
        complete \"whole\"
        result \"E_FAIL\"
    }
}
";
    let path = folder.write("mixed.in.kdl", text.as_bytes());
    let small = folder.path("small.kdl");
    let answer = folder.clrsim(&["minimize", &path, "-o", &small, "--on", "net10-windows"]);
    insta::assert_snapshot!(answer.text() + &fs::read_to_string(&small).unwrap(), @r#"
    exit code 0
    -- stdout
    written: DIR/small.kdl, 11 lines of 15
      dropped: 1 comment, 1 node of the stack, 1 snapshot, 1 mixed walk
    // Made smaller by clrsim minimize, from 15 lines.
    stack {
        mode "cooperative"
        jit "App.Bar+0x20" rsp=0x1fe050
        jit "App.Main+0x20" rsp=0x1fe0a0
    }

    mixed-walk policy="seeded" {
        expect on="net10-windows" {
            complete "whole"
        }
    }
    "#);
}
