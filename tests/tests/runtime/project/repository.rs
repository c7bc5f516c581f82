//! The files of the repository.

use super::*;
use std::process::Command;

/// Folders that builds and fuzzing create.
pub(crate) const CREATED: [&str; 3] = ["target", "corpus", "artifacts"];

/// Returns the path of a file or folder of the repository.
pub(crate) fn path(from_root: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(from_root)
}

/// Returns the text of a file.
pub(crate) fn read(from_root: &str) -> String {
    let path = path(from_root);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files in `folder` and below whose names have one of the endings: their paths from
/// the root, and their texts.
pub(crate) fn files(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let names = names(folder, endings).into_iter();
    names.map(|name| (name.clone(), read(&name))).collect()
}

/// Returns the paths, from the root, of the files in `folder` and below whose names have one of the endings.
pub(crate) fn names(folder: &str, endings: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(path(&folder)).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let from_root =
                if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if entry.file_type().unwrap().is_dir() {
                if name != ".git" && !CREATED.contains(&&*name) {
                    folders.push(from_root);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                names.push(from_root);
            }
        }
    }
    names.sort();
    names
}

/// Returns what cargo prints in the workspace; `None` under wine or in an emulator, where the
/// toolchain does not run.
pub(crate) fn cargo(arguments: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(path("")).output();
    let Ok(output) = output else {
        eprintln!("skipped: cargo of the build does not run here");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns the packages and targets of the workspace; `None` where cargo does not run.
pub(crate) fn cargo_metadata() -> Option<Value> {
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"])?;
    Some(serde_json::from_str(&text).unwrap())
}
