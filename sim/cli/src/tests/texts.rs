//! Texts with snapshots.

use crate::tests::texts::Folder;
use crate::tests::{clrsim, *};
use serde_json::{Value, json};
use std::fs;

mod bless;
mod files;
mod generators;
mod matrix;

/// A stack placed by hand.
pub(super) const BARRIER: &str = include_str!("texts/barrier.kdl");
/// A program with a runtime.
pub(super) const ALLOCATION: &str = include_str!("texts/allocation.kdl");

/// The text with a `#` for each number that depends on how code is laid out or what registers begin
/// with: places of programs' code, and how far a thread has come.
fn without_layout(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(at) =
        ["+0x", " 0x", "\"0x", " did "].iter().filter_map(|mark| rest.find(mark)).min()
    {
        let digits = at + if rest[at..].starts_with(" did ") { 5 } else { 3 };
        masked += &rest[..digits];
        rest = rest[digits..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
        masked.push('#');
    }
    masked + rest
}

/// A folder with both as a chapter.
fn chapter() -> Folder {
    let folder = Folder::new();
    folder.write("helpers/allocation.kdl", ALLOCATION.as_bytes());
    folder.write("helpers/barrier.kdl", BARRIER.as_bytes());
    folder
}

#[test]
fn snapshots_are_made_on_all_runtimes() {
    let folder = chapter();
    insta::assert_snapshot!("pass", folder.clrsim(&["run", &folder.path("helpers")]).text());
    let json = folder.clrsim(&["run", "--json", &folder.path("helpers")]);
    insta::assert_snapshot!("pass_json", json.text());
}

#[test]
fn the_runtimes_can_be_chosen() {
    let folder = chapter();
    let cases = |on: &str| {
        let answer = folder.clrsim(&["run", "--json", "--on", on, &folder.path("helpers")]);
        let total: Value = serde_json::from_str(answer.out.lines().last().unwrap()).unwrap();
        (total["cases"].as_u64().unwrap(), total["runtimes"].as_array().unwrap().len())
    };
    // Five cases on Windows, four on Unix.
    for on in ["all", "windows", "linux", "net8", "newest", "net9-unix,framework-2", "unix net9"] {
        let words = on.split([',', ' ']).map(|word| Generations::from_word(word).unwrap());
        let set = words.fold(Generations::NONE, Generations::with);
        let windows = set.both(Generations::WINDOWS).iter().count() as u64;
        let count = set.iter().count();
        assert_eq!(cases(on), (4 * count as u64 + windows, count), "{on}");
    }
    let answer = folder.clrsim(&["run", "--on", "net4", &folder.path("helpers")]);
    assert_eq!(answer.code, 2);
    assert!(
        answer
            .err
            .contains("there is no runtime net4; did you mean net8? clrsim runtimes lists all"),
        "{}",
        answer.err
    );
    assert_eq!(folder.clrsim(&["run", "--on", ",", &folder.path("helpers")]).code, 2);
}

#[test]
fn unmet_expectations_are_shown_side_by_side() {
    let folder = Folder::new();
    let wrong = BARRIER
        .replace("frame \"App.Main+0x30\" rsp=0x1fe050", "frame \"App.Bar\" rsi=1")
        .replace("\"E_NOTIMPL\"", "\"S_OK\"");
    folder.write("wrong/barrier.kdl", wrong.as_bytes());
    let wrong = ALLOCATION
        .replace("            frame \"App.Foo\"\n            frame", "            frame")
        .replace(" stale=#true", "")
        .replace("stop at=\"Lib.Sleep\"", "stop at=\"Lib.Sleep\" visit=2");
    folder.write("wrong/not_reached.kdl", wrong.as_bytes());
    let wrong = ALLOCATION.replace(" stale=#true", " rbx=1");
    folder.write("wrong/registers.kdl", wrong.as_bytes());
    let walk = "mixed-walk \"a sampler\" policy=\"signal\" {
    expect on=\"windows\" from=\"observed\" count=2 {
        native \"JIT_WriteBarrier\" trust=\"leaf\"
        managed \"App.Bar\" seen-by=\"both\"
        gap \"snapshot\" result=\"E_FAIL\"
        complete \"snapshot\"
        result \"E_FAIL\"
        clause \"C-044\"
    }
}
";
    let wrong = format!("{}{walk}", BARRIER.split_once("snapshot").unwrap().0);
    folder.write("wrong/whole.kdl", wrong.as_bytes());
    let wrong =
        super::histories::CALLBACK.replace("\"H-08\"\n        clause", "\"H-06\"\n        clause");
    folder.write("wrong/search.kdl", wrong.as_bytes());
    let all = folder.path("wrong");
    let shown = folder.clrsim(&["run", &all]).text();
    insta::assert_snapshot!("failures", without_layout(&shown));
    let shown = folder.clrsim(&["run", "--json", &all]).text();
    insta::assert_snapshot!("failures_json", without_layout(&shown));
    let some = folder.clrsim(&["run", "--limit", "1", &folder.path("wrong/barrier.kdl")]);
    // One failure stands for the six runtimes on Unix.
    assert!(some.out.contains("\n13 more failed in"), "{}", some.out);
}

/// A stop with snapshots only is not walked without a runtime, where it may never be reached.
#[test]
fn walks_and_snapshots_of_a_program_are_both_held_against_the_text() {
    let folder = Folder::new();
    let text = "function \"main\" { body { call \"leaf\" } }
function \"leaf\" { unwind \"none\" }
stop at=\"leaf\" {
    expect { frame \"leaf\"; frame \"main\" }
    snapshot by=\"native-walker\" thread=0x10 { expect on=\"net10-windows\" { result \"access-violation\" } }
}
stop after=2000
stop after=1000 { snapshot { expect on=\"net10-windows\" { result \"S_OK\" } } }
";
    let path = folder.write("both.kdl", text.as_bytes());
    let answer = folder.clrsim(&["run", &path]);
    assert_eq!(answer.code, 1);
    let row = "FAILED  program              3        2        1        0";
    assert!(answer.out.contains(row), "{}", answer.out);
    let not_reached =
        "cannot be made: thread main does not come to its stop after 1000 instructions";
    assert!(answer.out.contains(not_reached), "{}", answer.out);
}
