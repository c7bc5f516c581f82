//! The action for GitHub, as far as it runs elsewhere: its script.

use super::*;

/// A program whose expectation is wrong, and a text that is none.
const TEXTS: [(&str, &str); 2] = [
    (
        "wrong,1.kdl",
        "function \"f\" kind=\"jit\" { body { new } }\nstop callback=\"ObjectAllocated\" {\n    \
         snapshot by=\"native-walker\" { expect on=\"net9-unix\" { result \"S_OK\" } }\n}\n",
    ),
    ("none.kdl", "stop at=\"f\" {\n"),
];

/// Runs the script in a folder.
fn annotate(folder: &Path, paths: &str) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.github/actions/check/annotate.py");
    let mut command = Command::new("python3");
    command.arg(script).current_dir(folder).env("TOOL", env!("CARGO_BIN_EXE_clrsim"));
    command.env("PATHS", paths).env("SARIF", "it.sarif").env("JUNIT", "it.xml");
    command.output().unwrap()
}

#[test]
#[ignore = "external: needs python3"]
fn failures_are_marked_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in TEXTS {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let output = annotate(folder.path(), ".");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    let lines: Vec<_> = printed.lines().collect();
    let [none, wrong] = &lines[..] else { panic!("{printed}") };
    assert!(
        none.starts_with("::error file=none.kdl,line=1,col=13,title=clrsim syntax::"),
        "{none}"
    );
    assert_eq!(
        *wrong,
        "::error file=wrong%2C1.kdl,line=3,col=35,title=clrsim not-as-expected::\
         expected S_OK, found E_NOTIMPL on net9-unix"
    );
    let sarif = std::fs::read(folder.path().join("it.sarif")).unwrap();
    let sarif: Value = serde_json::from_slice(&sarif).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let places: Vec<_> = results
        .iter()
        .map(|it| &it["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        .collect();
    assert_eq!(places, ["none.kdl", "wrong,1.kdl"]);
    let junit = std::fs::read_to_string(folder.path().join("it.xml")).unwrap();
    assert!(junit.contains(r#"tests="2" failures="2" skipped="0""#), "{junit}");
}

/// The tool alone would run its own scenarios, and all would be well.
#[test]
#[ignore = "external: needs python3"]
fn no_path_and_an_empty_folder_are_failures() {
    let folder = tempfile::tempdir().unwrap();
    for (paths, error) in [
        ("", "::error::no path of scenarios is given"),
        (".", "::error file=.,line=1,col=1,title=clrsim input::no fixtures in this folder"),
    ] {
        let output = annotate(folder.path(), paths);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.starts_with(error), "{printed}");
    }
}
