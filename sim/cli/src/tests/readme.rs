//! The README shows the output of the tool.

use super::clrsim;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

#[test]
fn the_main_command_prints_what_the_readme_shows() {
    assert_eq!(clrsim(&[]).out, main_output());
}

/// Returns the output of the main command in the README.
pub(super) fn main_output() -> String {
    let readme = readme();
    let (_, block) = readme.split_once("```console\n$ cargo run --release\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.to_owned()
}

/// Compares the first block of the README for this command with the output of the command.
fn is_as_shown(command: &str) {
    let readme = readme();
    let (_, block) = readme.split_once(&format!("```console\n$ clrsim {command} ")).unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let (args, output) = block.split_once('\n').unwrap();
    let args: Vec<_> = [command].into_iter().chain(args.split_whitespace()).collect();
    assert_eq!(clrsim(&args).out, output);
}

#[test]
fn the_explanation_is_what_the_readme_shows() {
    is_as_shown("explain");
}

#[test]
fn the_search_is_what_the_readme_shows() {
    is_as_shown("explore");
}

#[test]
fn the_comparison_is_what_the_readme_shows() {
    is_as_shown("compare");
}

/// The README shows the matrix of the text that `clrsim new` writes.
#[test]
fn the_matrix_is_what_the_readme_shows() {
    let readme = readme();
    let (_, block) = readme.split_once("```console\n$ clrsim matrix my.kdl\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let folder = super::Folder::new();
    let path = folder.path("my.kdl");
    assert_eq!(folder.clrsim(&["new", &path]).code, 0);
    let matrix = folder.clrsim(&["matrix", &path]).out.replace("DIR/", "");
    assert_eq!(matrix, block);
    // The book shows the same.
    assert!(include_str!("../../../src/book/matrix.md").contains(&matrix));
}

#[test]
fn the_trace_prints_what_the_readme_shows() {
    is_as_shown("trace");
}

#[test]
fn the_other_commands_of_the_readme_work() {
    let fixtures = root().join("fixtures/win64");
    let images = super::Folder::new();
    let images = images.path("images");
    let readme = readme();
    let commands: Vec<_> =
        readme.lines().filter_map(|line| line.strip_prefix("$ clrsim ")).collect();
    // Another test checks the matrix of `my.kdl`.
    let commands: Vec<_> =
        commands.into_iter().filter(|command| *command != "matrix my.kdl").collect();
    assert_eq!(commands.len(), 12);
    for command in commands {
        // The search finds a failed history.
        let code = u8::from(command.starts_with("explore "));
        let (command, _comment) = command.split_once('#').unwrap_or((command, ""));
        let args: Vec<&str> = command
            .split_whitespace()
            .map(|arg| match arg {
                "fixtures/win64" => fixtures.to_str().unwrap(),
                "images" => &images,
                arg => arg,
            })
            .collect();
        let answer = clrsim(&args);
        assert_eq!(answer.code, code, "{command}: {}", answer.err);
    }
}
