//! `clrsim test-dir`.

use super::texts::BARRIER;
use super::{Answer, Folder, WALKS, fixture};
use std::fs;

/// Returns a folder with a test of each result.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("texts/deep/right.kdl", BARRIER.as_bytes());
    folder.write("texts/wrong.kdl", BARRIER.replace("\"E_NOTIMPL\"", "\"S_OK\"").as_bytes());
    let silent = "stack { native \"Root+0x20\" rsp=0x1fe100 }\nsnapshot by=\"native-walker\"\n";
    folder.write("texts/silent.kdl", silent.as_bytes());
    folder.write("texts/broken & odd.kdl", b"stack { jit \"A+0x1\" }\n");
    folder.write("texts/notes.txt", b"no test");
    folder.write("recorded/some.walks.jsonl.gz", fixture(WALKS));
    folder
}

/// Runs the command on the folder's texts.
fn test_dir(folder: &Folder, args: &[&str]) -> Answer {
    folder.clrsim(&[&["test-dir", &folder.path("texts")], args].concat())
}

#[test]
fn each_file_is_a_test() {
    let folder = folder();
    let answer = test_dir(&folder, &["--on", "net9-unix,net9-windows"]);
    insta::assert_snapshot!("test_dir", answer.text());
    assert_eq!(test_dir(&folder, &["--on", "net9-unix,net9-windows", "--jobs", "1"]), answer);
    let passes = folder.clrsim(&["test-dir", &folder.path("recorded"), &folder.path("texts/deep")]);
    assert_eq!(passes.code, 0, "{}", passes.text());
    assert!(passes.out.contains("test result: ok. 2 passed; 0 failed;"), "{}", passes.out);
}

#[test]
fn tests_are_chosen_by_parts_of_their_names() {
    let folder = folder();
    let listed = |args: &[&str]| test_dir(&folder, &[&["--list"], args].concat()).text();
    insta::assert_snapshot!("test_dir_list", listed(&[]));
    insta::assert_snapshot!(listed(&["--filter", "wrong", "--filter", "deep"]), @r"
    exit code 0
    -- stdout
    DIR/texts/deep/right.kdl: test
    DIR/texts/wrong.kdl: test

    2 tests
    ");
    insta::assert_snapshot!(listed(&["--filter", "wrong", "--skip", "texts"]), @"
    exit code 2
    -- stderr
    error: --filter wrong --skip texts: leaves none of 4 tests; --list prints their names
    ");
    let two = test_dir(&folder, &["--filter", "right", "--filter", "silent"]);
    assert_eq!(two.code, 0);
    assert!(two.out.ends_with("1 passed; 0 failed; 1 ignored; 2 filtered out\n"), "{}", two.out);
    let gone = folder.clrsim(&["test-dir", &folder.path("texts"), &folder.path("gone")]);
    assert_eq!((gone.code, gone.out.as_str()), (2, ""), "{}", gone.text());
}

#[test]
fn results_are_written_as_xml_of_junit() {
    let folder = folder();
    let path = folder.path("results.xml");
    let args = ["--on", "net9-unix", "--junit", &path];
    assert_eq!(test_dir(&folder, &args).code, 1);
    let written = fs::read_to_string(&path).unwrap();
    insta::assert_snapshot!("junit", written.replace(&folder.path("").replace('\\', "/"), "DIR/"));
    // Nothing is run if the file cannot be written.
    let again = test_dir(&folder, &args);
    assert_eq!((again.code, again.out.as_str()), (2, ""), "{}", again.text());
    assert_eq!(test_dir(&folder, &[&args[..], &["--force"]].concat()).code, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), written);
    let mut reader = quick_xml::Reader::from_str(&written);
    while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
}
