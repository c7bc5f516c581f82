use super::*;

/// A sequence that comes out, and one that is known to differ.
const JIT: &str = "sequences/jit.jit.8.0.34.txt";
const KNOWN: &str = "sequences/dynamic_method.jit-dynamic.11.0.0.txt";

#[test]
fn a_sequence_is_compared_with_what_its_program_makes() {
    let answer = clrsim(&["run", JIT]);
    assert_eq!(answer.code, 0, "{}", answer.out);
    let folder = Folder::new();
    let text = String::from_utf8(clr_fixtures::get(JIT).unwrap().to_vec()).unwrap();
    let other =
        folder.write("jit.other.8.0.34.txt", text.replace("App.JitB", "App.JitC").as_bytes());
    let answer = folder.clrsim(&["run", &other]);
    assert_eq!(answer.code, 1);
    assert!(answer.out.contains("differs\n    expected T1 p JITCompilationStarted App.JitC"));
}

#[test]
fn a_sequence_that_is_known_to_differ_is_no_success() {
    let answer = clrsim(&["run", JIT, KNOWN]);
    let last = answer.out.lines().last().unwrap();
    assert!(
        last.ends_with("0 failed, 0 skipped (no answer is expected), 1 known to differ"),
        "{last}"
    );
    let alone = clrsim(&["run", KNOWN]);
    assert!(alone.out.contains("nothing was checked"), "{}", alone.out);
    assert_eq!(alone.code, 1);
}

#[test]
fn a_sequence_without_a_text_or_a_runtime_fails() {
    let folder = Folder::new();
    let text = String::from_utf8(clr_fixtures::get(JIT).unwrap().to_vec()).unwrap();
    for (changed, said) in [
        (text.replace("# shape: jit", "# shape: none"), "there is no text sequences/none.kdl"),
        (text.replace("8.0.34", "6.0.1"), "6.0.1 is not simulated"),
    ] {
        let path = folder.write("jit.jit.txt", changed.as_bytes());
        let answer = folder.clrsim(&["run", &path]);
        assert_eq!(answer.code, 1, "{}", answer.out);
        assert!(answer.out.contains(said), "{}", answer.out);
    }
}
