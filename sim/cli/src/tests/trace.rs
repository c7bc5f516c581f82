use super::*;

#[track_caller]
fn traced(args: &[&str]) -> String {
    let answer = clrsim(&[&["trace"], args].concat());
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{args:?}");
    answer.out
}

fn programs() -> impl Iterator<Item = &'static str> {
    let names = clr_fixtures::all().iter().map(|fixture| fixture.name);
    names.filter(|name| name.starts_with("programs/"))
}

#[test]
fn every_embedded_program_is_traced() {
    for name in programs() {
        let short = name.trim_start_matches("programs/").trim_end_matches(".kdl");
        insta::assert_snapshot!(short.to_owned(), traced(&[name]));
    }
}

/// A program with what the fixtures do not have.
const MUCH: &str = "
function \"main\" {
    home \"rcx\" \"rdi\"
    push \"rbp\" \"rbx\"
    locals 0x40
    save \"rsi\" \"xmm6\"
    frame \"rbp\"
    release \"lea\"
    body {
        clobber \"rdi\"
        clobber \"rsi\"
        try { call \"thrower\" }
        catch { work 1 }
        cold { work 1 }
        trap \"isr\"
        switch-stack \"big\"
        loop 2 { store 8 }
    }
}
function \"big\" { locals 0x1800; allocation \"chkstk\"; return \"rex-ret\" }
function \"thrower\" { push \"rbp\"; body { throw }; no-end }
function \"isr\" { entry \"interrupt-with-error-code\" }
thread \"first\"
thread \"second\" start=\"big\"
stop thread=\"first\" \"end\"
";

fn much() -> (Folder, String) {
    let folder = Folder::new();
    let path = folder.write("much.kdl", MUCH.as_bytes());
    (folder, path)
}

#[test]
fn everything_else_is_traced() {
    let (folder, path) = much();
    insta::assert_snapshot!("much", folder.clrsim(&["trace", &path]).text());
    let inside = ["trace", &path, "--stack", "--limit", "4", "--function", "big", "--from", "20"];
    insta::assert_snapshot!("much_stack", folder.clrsim(&inside).text());
    let second = ["trace", &path, "--thread", "second", "--limit", "2", "--at", "1"];
    insta::assert_snapshot!("much_second", folder.clrsim(&second).text());
}

#[test]
fn call_frame_information_is_traced() {
    let folder = Folder::new();
    let path = folder.write("unix.kdl", format!("{}thread \"t\"", super::images::UNIX).as_bytes());
    insta::assert_snapshot!("cfi", folder.clrsim(&["trace", &path, "--cfi"]).text());
    let json = ["trace", &path, "--cfi", "--json", "--from", "1", "--limit", "2"];
    insta::assert_snapshot!("cfi_json", folder.clrsim(&json).text());
}

/// Call frame information is wrong after an epilogue without a remembered state, until another
/// epilogue restores it.
#[test]
fn wrong_call_frame_information_is_reported() {
    let folder = Folder::new();
    let text = "
        convention \"system-v\"
        function \"main\" {
            push \"rbp\" \"rbx\"
            epilogue-cfi \"continued\"
            body { if #false { return }; call \"leaf\" }
        }
        function \"leaf\" { unwind \"none\" }
        thread \"t\"
    ";
    let path = folder.write("wrong.kdl", text.as_bytes());
    insta::assert_snapshot!("cfi_mistakes", folder.clrsim(&["trace", &path]).text());
    let json = ["trace", &path, "--json", "--from", "5", "--limit", "1"];
    insta::assert_snapshot!("cfi_mistakes_json", folder.clrsim(&json).text());
}

#[test]
fn json_has_a_line_for_each_instruction_and_the_end() {
    let file = "programs/interrupted_epilogue.kdl";
    let text = traced(&[file, "--json", "--from", "7", "--limit", "3"]);
    insta::assert_snapshot!("json", text);
    for name in programs() {
        let lines: Vec<Value> = traced(&[name, "--json"])
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let (end, rows) = lines.split_last().unwrap();
        assert_eq!(end["kind"], "end");
        let executed = rows.iter().filter(|row| row["kind"] == "instruction");
        let numbers: Vec<_> = executed.map(|row| row["number"].as_u64().unwrap()).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{name}");
    }
}

#[test]
fn unknown_names_are_errors() {
    let (folder, path) = much();
    let mut answers = String::new();
    for args in [
        &["trace", &path, "--thread", "third"][..],
        &["trace", &path, "--function", "small"],
        &["trace", "programs/nothing.kdl"],
    ] {
        let answer = folder.clrsim(args);
        assert_eq!(answer.code, 2);
        answers += &answer.err;
    }
    let through = folder.write("through.kdl", super::histories::CALLBACK.as_bytes());
    for args in [&["trace", &through][..], &["emit", &through, "-o", &folder.path("out")]] {
        let answer = folder.clrsim(args);
        assert_eq!(answer.code, 2);
        answers += &answer.err;
    }
    insta::assert_snapshot!("refusals", answers);
}
