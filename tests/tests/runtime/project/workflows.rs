//! Tests of the workflow files: they call scripts that are there, with arguments that these know, by the compiler of the
//! manifest.

use super::*;

/// Returns the workflow files, with their names.
fn workflows() -> Vec<(String, String)> {
    let files = std::fs::read_dir(path(".github/workflows")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let with_text = names.map(|name| {
        let text = read(&format!(".github/workflows/{name}"));
        (name, text)
    });
    with_text.collect()
}

#[test]
fn workflows_call_scripts_that_are_there() {
    let mut called = BTreeSet::new();
    for (_, text) in workflows() {
        let words = text.split_whitespace().filter(|word| word.starts_with(".ci/"));
        called.extend(words.map(|word| word.trim_end_matches(['.', ',', ':']).to_owned()));
    }
    for script in &called {
        assert!(path(script).is_file(), "{script}");
    }
    for script in [".ci/run", ".ci/cross", ".ci/live", ".ci/release", ".ci/record-windows"] {
        assert!(called.contains(script), "{called:?}");
    }
}

#[test]
fn workflows_build_for_known_targets_with_the_minimum_version_of_rust() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    let version = format!("{}.0", version.trim_matches('"'));
    let cross = read(".ci/cross");
    let mut targets = 0;
    for (name, text) in workflows() {
        for line in text.lines().map(str::trim) {
            if let Some(rest) = line.split("rustup toolchain install ").nth(1) {
                assert!(rest.starts_with(&version), "{name}: {line}");
            }
            if name == "ci.yml"
                && let Some(list) = line.strip_prefix("target: [")
            {
                for target in list.trim_end_matches(']').split(", ") {
                    assert!(cross.contains(&format!("  {target} ")), "{name}: {target}");
                    targets += 1;
                }
            }
        }
    }
    assert!(targets > 1, "{targets}");
}
