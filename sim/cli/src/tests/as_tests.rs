//! `clrsim run --format`.

use super::*;

/// Returns a folder with a test of each result.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("texts/deep/right.kdl", BARRIER.as_bytes());
    folder.write("texts/wrong.kdl", BARRIER.replace("\"E_NOTIMPL\"", "\"S_OK\"").as_bytes());
    let silent = "stack { native \"Root+0x20\" rsp=0x1fe100 }
snapshot by=\"native-walker\" { expect on=\"framework-2\" { result \"E_FAIL\" } }\n";
    folder.write("texts/silent.kdl", silent.as_bytes());
    folder.write("texts/broken & odd.kdl", b"stack { jit \"A+0x1\" }\n");
    folder.write("texts/notes.txt", b"no test");
    folder.write("recorded/some.walks.jsonl.gz", fixture(WALKS));
    folder
}

#[test]
fn each_file_is_a_test() {
    let folder = folder();
    let texts = folder.path("texts");
    let args = ["run", &texts, "--format", "libtest", "--on", "net9-unix,net9-windows"];
    let answer = folder.clrsim(&args);
    insta::assert_snapshot!("libtest", answer.text());
    assert_eq!(folder.clrsim(&[&args[..], &["--jobs", "1"]].concat()), answer);
    let (recorded, deep) = (folder.path("recorded"), folder.path("texts/deep"));
    let passes = folder.clrsim(&["run", "--format", "libtest", &recorded, &deep]);
    assert_eq!(passes.code, 0, "{}", passes.text());
    assert!(passes.out.ends_with("test result: ok. 2 passed; 0 failed; 0 ignored\n"));
    let gone = folder.clrsim(&["run", "--format", "libtest", &texts, &folder.path("gone")]);
    assert_eq!((gone.code, gone.out.as_str()), (2, ""), "{}", gone.text());
}

#[test]
fn results_are_written_as_xml_of_junit() {
    let folder = folder();
    let args = ["run", &folder.path("texts"), "--format", "junit", "--on", "net9-unix"];
    let answer = folder.clrsim(&args);
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    insta::assert_snapshot!("junit", answer.out);
}
