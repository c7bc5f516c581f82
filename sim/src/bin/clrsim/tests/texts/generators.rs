//! `generate` and `minimize`.

use super::super::clrsim;
use super::{BARRIER, Folder};
use std::fs;

#[test]
fn the_same_number_makes_the_same_text() {
    for kind in ["stack", "program"] {
        let of = |seed: &str| clrsim(&["generate", "--kind", kind, "--seed", seed]);
        let (one, other) = (of("3"), of("4"));
        assert_eq!((one.code, one.err.as_str()), (0, ""));
        assert_eq!(one.text(), of("3").text());
        assert_ne!(one.out, other.out);
        assert!(one.out.contains("no evidence of what a runtime does"), "{}", one.out);
        assert!(!one.out.contains("from="), "{}", one.out);
    }
}

#[test]
fn generated_texts_pass() {
    let folder = Folder::new();
    let mut written = 0;
    for seed in 0..40 {
        for kind in ["stack", "program"] {
            let path = folder.path(&format!("{kind}{seed}.kdl"));
            let seed = seed.to_string();
            let answer = folder.clrsim(&["generate", "--kind", kind, "--seed", &seed, "-o", &path]);
            written += usize::from(answer.code == 0);
        }
    }
    assert!(written > 70, "{written}");
    let run = folder.clrsim(&["run", &folder.path("")]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(run.out.contains(&format!("passed: {written} files")), "{}", run.out);
    let again = folder.clrsim(&["generate", "--seed", "3", "-o", &folder.path("stack3.kdl")]);
    assert_eq!(again.code, 2);
}

/// The number of lines that are left.
fn smaller(folder: &Folder, args: &[&str]) -> (u8, String) {
    let small = folder.path("small.kdl");
    let _ = fs::remove_file(&small);
    let answer = folder.clrsim(&[&["minimize", "-o", &small][..], args].concat());
    (answer.code, fs::read_to_string(&small).unwrap_or(answer.out + &answer.err))
}

#[test]
fn a_failure_is_kept_while_the_rest_goes() {
    let folder = Folder::new();
    let wrong = BARRIER.replace("frame \"App.Main+0x30\"", "frame \"App.Bar\"");
    let path = folder.write("wrong.kdl", wrong.as_bytes());
    let (code, text) = smaller(&folder, &[&path]);
    assert_eq!(code, 0, "{text}");
    insta::assert_snapshot!("failure", text);
    let run = folder.clrsim(&["run", &folder.path("small.kdl")]);
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.out.contains("App.Bar"), "{}", run.out);
}

#[test]
fn an_ending_is_kept_while_the_rest_goes() {
    let folder = Folder::new();
    let path = folder.write("right.kdl", BARRIER.as_bytes());
    let ending = ["--hresult", "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX", "--clause", "C-044"];
    let (code, text) = smaller(&folder, &[&[path.as_str()][..], &ending].concat());
    assert_eq!(code, 0, "{text}");
    insta::assert_snapshot!("ending", text);
    assert_eq!(folder.clrsim(&["run", &folder.path("small.kdl")]).code, 0);
    let nothing = "DIR/right.kdl: nothing in it fails, so there is nothing to keep\n";
    assert_eq!(smaller(&folder, &[&path]), (1, nothing.to_owned()));
    assert_eq!(smaller(&folder, &[&path, "--hresult", "E_FAIL"]).0, 1);
}

#[test]
fn walks_of_programs_are_made_smaller() {
    let folder = Folder::new();
    let text = String::from_utf8(super::super::fixture("programs/tail_call.kdl").to_vec()).unwrap();
    let wrong =
        text.replace("frame \"worker\" trust=\"prologue\"", "frame \"worker\" trust=\"body\"");
    let path = folder.write("wrong.kdl", wrong.as_bytes());
    let (code, small) = smaller(&folder, &[&path]);
    assert_eq!(code, 0, "{small}");
    assert!(small.lines().count() < wrong.lines().count() / 2 + 5, "{small}");
    assert_eq!(folder.clrsim(&["run", &folder.path("small.kdl")]).code, 1);
}

/// A fuzzer's bytes become a text that ends as they did.
#[test]
fn bytes_become_texts() {
    let folder = Folder::new();
    let mut state = 7_u64;
    let mut made = 0;
    for _ in 0..20 {
        let bytes: Vec<u8> = (0..2000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let path = folder.write("bytes", &bytes);
        let (code, text) = smaller(&folder, &[&path]);
        if code != 0 {
            continue;
        }
        made += 1;
        assert!(text.contains("no evidence of what a runtime does"), "{text}");
        assert_eq!(folder.clrsim(&["run", &folder.path("small.kdl")]).code, 0, "{text}");
    }
    assert!(made > 15, "{made}");
}
