//! A runtime is one file: no other source decides by the name of a runtime.

use super::*;

/// The folder of the runtimes' answers.
const FOLDER: &str = "sim/runtime/src/generation/";

/// Returns the tokens of a source: words, and other characters one by one, without comments and
/// white space.
fn tokens(source: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for line in source.lines() {
        let mut rest = line.split("//").next().unwrap_or_default().trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (token, others) = rest.split_at(if word > 0 { word } else { first.len_utf8() });
            tokens.push(token);
            rest = others.trim_start();
        }
    }
    tokens
}

/// Returns the runtimes that a source decides by: those in patterns and comparisons, and those in
/// lists of several.
fn decided_by(source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let is_runtime =
        |token: &str| Generation::ALL.iter().any(|generation| format!("{generation:?}") == token);
    let mut found = Vec::new();
    let mut use_depth = None;
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate() {
        match *token {
            "use" => use_depth = Some(depth),
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            ";" if use_depth == Some(depth) => use_depth = None,
            _ => {}
        }
        if use_depth.is_some() || !is_runtime(token) {
            continue;
        }
        // `Generation::` before the name does not matter.
        let qualified = i >= 3 && tokens[i - 3] == "Generation" && tokens[i - 1] == ":";
        let start = if qualified { i - 3 } else { i };
        let before = tokens[..start].iter().rev().take(2).rev().copied().collect::<String>();
        let after = tokens[i + 1..].iter().take(3).copied().collect::<String>();
        let in_pattern = after.starts_with("=>") || after.starts_with('|') || before.ends_with('|');
        let compared = ["==", "!="].iter().any(|sign| before == *sign || after.starts_with(sign));
        let in_tuple_pattern = after.starts_with(",_)");
        let in_list = before.ends_with(',') && after.starts_with("].");
        if in_pattern && !after.starts_with("||") || compared || in_tuple_pattern || in_list {
            found.push(format!("{before} {token} {after}"));
        }
    }
    found
}

#[test]
fn no_source_decides_by_the_name_of_a_runtime() {
    for folder in ["walker", "sim", "tests", "fuzz", "fixtures"] {
        for (name, source) in files(folder, &[".rs"]) {
            if name.starts_with(FOLDER) || name == "tests/tests/runtime/project/runtimes.rs" {
                continue;
            }
            let found = decided_by(&source);
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}

#[test]
fn decisions_by_runtime_are_recognized() {
    for source in [
        "match generation { Generation::Net9Unix => 1, _ => 2 }",
        "matches!(generation, Net9Unix | Generation::Net10Unix)",
        "if generation == Generation::Framework2 { 1 }",
        "if Net10Windows != generation { 1 }",
        "match (generation, kind) { (Net9Unix, _) => 1, _ => 2 }",
        "[Framework2, Framework4].contains(&generation)",
    ] {
        assert!(!decided_by(source).is_empty(), "{source}");
    }
    for source in [
        "use Generation::{Net9Unix, Net10Unix};",
        "let build = Build::new(&program, Generation::Net9Unix);",
        "for generation in [Generation::Net9Unix, Generation::Net10Windows] {}",
        "// match generation { Generation::Net9Unix => 1 }",
    ] {
        assert_eq!(decided_by(source), Vec::<String>::new(), "{source}");
    }
}

/// Each file of the folder answers for one runtime, without an answer taken from another one, or
/// from a default.
#[test]
fn each_runtime_is_a_whole_file() {
    let shared = ["mod", "answers", "questions", "sets", "tests", "values"];
    let mut names = Vec::new();
    for (path, source) in files(FOLDER.trim_end_matches('/'), &[".rs"]) {
        let file = path.trim_start_matches(FOLDER).trim_end_matches(".rs").to_owned();
        if shared.contains(&&*file) {
            continue;
        }
        assert!(!source.contains("..") && !source.contains("match"), "{path}");
        let name = source.lines().find_map(|line| line.trim().strip_prefix("name: \""));
        names.push(name.unwrap_or_else(|| panic!("{path}")).trim_end_matches("\",").to_owned());
    }
    names.sort_unstable();
    let mut known = Generation::ALL.map(|generation| generation.name().to_owned());
    known.sort_unstable();
    assert_eq!(names, known);
}

/// Returns true if a source names a file inside the repository of the runtime, and a function,
/// type, constant or option of it: `src/vm/stackwalk.cpp: StackFrameIterator::NextRaw`.
fn is_place(generation: Generation, source: &str) -> bool {
    let Some((path, name)) = source.split_once(": ") else { return false };
    let Family { product, version, .. } = generation.family();
    let is_in_root = match product {
        Product::Framework => path.starts_with("clr/src/"),
        Product::Core if version.0 >= 5 => path.starts_with("src/coreclr/"),
        Product::Core => {
            path.starts_with("src/") && !path.starts_with("src/coreclr/")
                || path == "clrdefinitions.cmake"
        }
    };
    let extensions = [".cpp", ".h", ".hpp", ".inl", ".idl", ".asm", ".S", ".cmake"];
    let is_file = extensions.iter().any(|extension| path.ends_with(extension));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.split("::").all(|part| !part.is_empty() && part.chars().all(is_word));
    is_in_root && is_file && path.chars().all(is_plain) && is_name
}

/// A reader can open the place where an answer was read.
#[test]
fn answers_that_were_read_name_a_file_and_a_function() {
    for question in QUESTIONS {
        for generation in Generation::ALL {
            if let Known::Read(source) = (question.known)(generation) {
                assert!(is_place(generation, source), "{generation}: {}: {source}", question.name);
            }
        }
    }
}

#[test]
fn places_are_recognized() {
    let place = "src/vm/stackwalk.cpp: StackFrameIterator::NextRaw";
    assert!(is_place(Generation::CoreClr31Unix, place));
    assert!(!is_place(Generation::Net9Unix, place));
    assert!(!is_place(Generation::Framework2, place));
    assert!(is_place(Generation::Net9Unix, "src/coreclr/vm/frames.h: Frame"));
    for none in
        ["stackwalk.cpp: NextRaw", "src/vm/stackwalk.cpp", "src/vm/a.cpp: A; src/vm/b.cpp: B"]
    {
        assert!(!is_place(Generation::CoreClr31Unix, none), "{none}");
    }
}
