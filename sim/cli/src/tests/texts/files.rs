//! `list`, `new` and `fmt`.

use super::*;

#[test]
fn texts_are_listed_by_chapter() {
    let folder = chapter();
    folder.write("early/first.kdl", b"function \"main\"\nstop \"end\"\n");
    let all = folder.path("");
    let list = |args: &[&str]| folder.clrsim(&[&["list", &all][..], args].concat());
    insta::assert_snapshot!("list", list(&[]).text());
    let files = |args: &[&str]| {
        let answer = list(&[args, &["--json"]].concat());
        let lines = answer.out.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.map(|line: Value| line["file"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let [first, allocation, barrier] = ["early/first", "helpers/allocation", "helpers/barrier"]
        .map(|name| format!("DIR/{name}.kdl"));
    assert_eq!(files(&["--chapter", "early"]), [first]);
    assert_eq!(files(&["--tag", "helper"]), [allocation.clone(), barrier.clone()]);
    assert_eq!(files(&["--tag", "callback"]), [allocation]);
    assert_eq!(files(&["--clause", "C-044"]), [barrier]);
    let none = list(&["--clause", "C-044", "--tag", "callback"]);
    assert_eq!((none.code, none.out.as_str()), (2, ""));
    let json = list(&["--json"]).out;
    let barrier: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!(barrier["clauses"], json!(["C-019", "C-044", "C-051"]));
    assert_eq!([&barrier["kind"], &barrier["snapshots"]], [&json!("stack"), &json!(2)]);
    // Without folders, the embedded ones.
    assert!(clrsim(&["list"]).out.contains("\n  programs/alloca.kdl\n"));
}

#[test]
fn new_texts_pass_and_are_laid_out() {
    let folder = Folder::new();
    for (name, args) in
        [("a.kdl", &[][..]), ("b.kdl", &["--kind", "stack"]), ("c.kdl", &["--kind", "program"])]
    {
        let path = folder.path(name);
        let answer = folder.clrsim(&[&["new", &path][..], args].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
        let run = folder.clrsim(&["run", &path]);
        assert_eq!(run.code, 0, "{}", run.out);
        assert!(run.out.contains(" 0 failed, 0 skipped"), "{}", run.out);
        assert_eq!(folder.clrsim(&["fmt", "--check", &path]).code, 0);
        assert_eq!(folder.clrsim(&["matrix", &path]).code, 0);
    }
    let read = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(read("a.kdl"), read("b.kdl"));
    assert!(read("c.kdl").contains("\nfunction \"App.Main\""));
    let mut text = folder.clrsim(&["new", &folder.path("d.kdl")]).text();
    for args in [
        &["new", &folder.path("a.kdl")][..],
        &["new", &folder.path("a.txt")],
        &["new", &folder.path("nowhere/a.kdl")],
        &["new", "--kind", "scenario", &folder.path("e.kdl")],
    ] {
        let answer = folder.clrsim(args);
        assert_eq!(answer.code, 2, "{args:?}");
        text += &answer.err;
    }
    insta::assert_snapshot!("new", text);
}

#[test]
fn texts_are_laid_out() {
    let folder = Folder::new();
    let untidy = BARRIER.replace("    leaf", "leaf").replace("tag \"seed\"", "tag    seed");
    let path = folder.write("untidy.kdl", untidy.as_bytes());
    folder.write("tidy.kdl", ALLOCATION.as_bytes());
    let all = folder.path("");
    let check = folder.clrsim(&["fmt", "--check", &all]);
    insta::assert_snapshot!("fmt_check", check.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), untidy);
    let answer = folder.clrsim(&["fmt", &all]);
    let wanted = (0, "DIR/untidy.kdl\nchanged: 1 of 2 scenarios\n");
    assert_eq!((answer.code, answer.out.as_str()), wanted);
    let tidy = BARRIER.replace("tag \"seed\"", "tag seed");
    assert_eq!(fs::read_to_string(&path).unwrap(), tidy);
    assert_eq!(folder.clrsim(&["fmt", "--check", &all]).code, 0);
    let broken = folder.write("broken.kdl", b"function \"a\" {\n");
    assert_eq!(folder.clrsim(&["fmt", &broken]).code, 2);
    assert!(clrsim(&["fmt"]).code == 2);
}

/// A text that was written for an earlier version of the format is no scenario until it is upgraded.
#[test]
fn fmt_upgrades_old_texts() {
    let folder = Folder::new();
    let old = "function \"f\" { body { work 2; }; }\nstop at=\"f\" {\n    \
        expect rules=\"windows\" ends=\"any\"   { frame \"f\"; }\n}\n";
    let path = folder.write("old.kdl", old.as_bytes());
    let answer = folder.clrsim(&["run", &path]);
    assert_eq!(answer.code, 2, "{}", answer.text());
    assert!(answer.text().contains("clrsim fmt --upgrade"), "{}", answer.text());
    let answer = folder.clrsim(&["fmt", "--upgrade", "--check", &path]);
    assert_eq!(answer.code, 1, "{}", answer.text());
    assert_eq!(folder.clrsim(&["fmt", "--upgrade", &path]).code, 0);
    assert_eq!(folder.clrsim(&["fmt", "--upgrade", "--check", &path]).code, 0);
    let code = folder.clrsim(&["run", &path]).code;
    assert!(code < 2, "it is a scenario now, whatever it expects: {code}");
    // What no upgrade mends is an error.
    let wrong = folder.write("wrong.kdl", old.replace("at=\"f\"", "at=\"g\"").as_bytes());
    assert_eq!(folder.clrsim(&["fmt", "--upgrade", &wrong]).code, 2);
}
