//! Tests that the scripts which run the fuzz targets elsewhere know all targets, seeds and
//! dictionaries.

use super::*;

/// Returns the names of a folder's entries, without extensions.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(path(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Returns the targets of `fuzz/Cargo.toml`: names and paths.
fn targets() -> Vec<(String, String)> {
    let manifest = read("fuzz/Cargo.toml");
    let value = |table: &str, key: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.unwrap_or_else(|| panic!("no {key} in {table}")).trim_matches('"').to_owned()
    };
    let tables = manifest.split("\n[").filter_map(|table| table.strip_prefix("[bin]]"));
    tables.map(|table| (value(table, "name"), value(table, "path"))).collect()
}

#[test]
fn every_target_is_complete() {
    let targets = targets();
    let list: BTreeSet<_> = targets.iter().map(|(name, _)| name.clone()).collect();
    assert!(list.len() == targets.len() && list.len() >= 11, "{list:?}");
    assert_eq!(names("fuzz/fuzz_targets"), list);
    assert_eq!(names("fuzz/seeds"), list);
    let dictionaries = names("fuzz/dictionaries");
    assert!(!dictionaries.is_empty() && dictionaries.is_subset(&list), "{dictionaries:?}");
    // The page lists the targets in a table, some of them in one row.
    let page = read("fuzz/README.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let reported =
        rows.flat_map(|row| row.split(", ")).map(|name| name.trim_matches('`').to_owned());
    assert_eq!(reported.collect::<BTreeSet<_>>(), list);
    let replayed = read("tests/tests/runtime/properties/fuzz_seeds.rs");
    for (name, path) in targets {
        assert_eq!(path, format!("fuzz_targets/{name}.rs"));
        let body = format!("clr_tests::fuzz::{name}");
        assert!(read(&format!("fuzz/{path}")).contains(&format!("{body}(data)")), "{path}");
        let replay = format!("replay(\"{name}\", {body})");
        assert!(replayed.contains(&replay), "{name} is not replayed");
    }
}

#[test]
fn both_images_have_the_same_compiler() {
    let compiler = |path: &str| {
        let file = read(path);
        let line = file.lines().find_map(|line| line.strip_prefix("ENV RUSTUP_TOOLCHAIN="));
        line.unwrap_or_else(|| panic!("{path} names no compiler")).to_owned()
    };
    let date = compiler(".clusterfuzzlite/Dockerfile");
    assert!(date.starts_with("nightly-20"), "{date}");
    assert_eq!(compiler("fuzz/oss-fuzz/Dockerfile"), date);
}

/// Runs `.clusterfuzzlite/build.sh` with a cargo that builds nothing, and a zip that lists its
/// arguments.
#[cfg(target_os = "linux")]
#[test]
fn images_build_every_target() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    const CARGO: &str = r#"#!/bin/bash -eu
names=$(sed -n '/^\[\[bin/,/^path/s/^name = "\(.*\)"/\1/p' fuzz/Cargo.toml)
if [ "$1 $2" = "fuzz list" ]; then echo "$names"; exit; fi
[ "$1 $2" = "fuzz build" ]
mkdir -p "$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release"
for name in $names; do echo "built $*" > "$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release/$name"; done
"#;
    const ZIP: &str = "#!/bin/bash -eu\n[ \"$1 $2 $3\" = '-q -r -j' ]\nls \"$5\" > \"$4\"\n";

    let place = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    };
    let (source, out, tools) = (folder("src"), folder("out"), folder("tools"));
    symlink(path("").canonicalize().unwrap(), source.join("clr-sim")).unwrap();
    for (name, text) in [("cargo", CARGO), ("zip", ZIP)] {
        let tool = tools.join(name);
        std::fs::write(&tool, text).unwrap();
        std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let programs = std::env::var("PATH").unwrap();
    let status = Command::new("bash")
        .args(["-eu".as_ref(), path(".clusterfuzzlite/build.sh").as_os_str()])
        .env("SRC", &source)
        .env("OUT", &out)
        .env("PATH", format!("{}:{programs}", tools.display()))
        .env("CARGO_TARGET_DIR", place.path().join("target"))
        .status()
        .unwrap();
    assert!(status.success(), "{status}");

    let mut expected = BTreeSet::new();
    for (name, _) in targets() {
        let built = std::fs::read_to_string(out.join(&name)).unwrap();
        for option in ["-O", "--debug-assertions", "--features sanitizer"] {
            assert!(built.contains(option), "{option}: {built}");
        }
        let corpus = format!("{name}_seed_corpus.zip");
        let zipped = std::fs::read_to_string(out.join(&corpus)).unwrap();
        let seeds = std::fs::read_dir(path(&format!("fuzz/seeds/{name}"))).unwrap();
        assert_eq!(zipped.lines().count(), seeds.count(), "{name}");
        let options = format!("{name}.options");
        let given = std::fs::read_to_string(out.join(&options)).unwrap();
        let wanted = "[libfuzzer]\nlen_control = 0\nentropic = 0\n[asan]\n\
                      detect_stack_use_after_return = 0\n";
        assert_eq!(given, wanted);
        expected.extend([name, corpus, options]);
    }
    let dictionaries = names("fuzz/dictionaries").into_iter().map(|name| format!("{name}.dict"));
    expected.extend(dictionaries);
    let found = std::fs::read_dir(&out).unwrap();
    let found: BTreeSet<_> =
        found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, expected);
}
