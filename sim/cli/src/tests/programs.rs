use super::*;

/// The text of an embedded program.
fn program(name: &str) -> String {
    String::from_utf8(fixture(&format!("programs/{name}.kdl")).to_vec()).unwrap()
}

#[test]
fn all_embedded_programs_pass() {
    insta::assert_snapshot!("programs", clrsim(&["run", "--filter", "programs/"]).text());
}

#[test]
fn rules_on_the_command_line_are_for_recordings() {
    let of =
        |rules| clrsim(&["run", "--filter", "programs/", "--unwind-rules", rules, "--json"]).text();
    assert_eq!(of("precise"), of("coreclr"));
}

#[test]
fn every_expectation_that_is_not_met_is_explained() {
    let folder = Folder::new();
    let text = program("tail_call").replace(
        "        frame \"worker\" trust=\"prologue\"\n",
        "        frame \"worker\" trust=\"body\"\n        frame \"wrapper\"\n",
    );
    folder.write("wrong/function.kdl", text.as_bytes());
    let text = program("msvc_region")
        .replace("trust=\"leaf\"\n", "trust=\"leaf\" rbx=1 rsi=2\n")
        .replace("    expect {", "    expect ends=\"stack\" {");
    folder.write("wrong/registers.kdl", text.as_bytes());
    let text =
        program("ryujit_funclet").replace("stop at=\"Dispose\"", "stop at=\"Dispose\" visit=2");
    folder.write("wrong/visit.kdl", text.as_bytes());
    let text = program("ryujit_funclet")
        .replace("stop at=\"Dispose\"", "stop at=\"Dispose\" instruction=7");
    folder.write("wrong/instruction.kdl", text.as_bytes());
    let all = folder.path("wrong");
    insta::assert_snapshot!("failures", folder.clrsim(&["run", &all]).text());
    insta::assert_snapshot!("failures_json", folder.clrsim(&["run", "--json", &all]).text());
    let none = folder.clrsim(&["run", &all, "--limit", "0"]);
    assert_eq!(none.out.matches("more failed in").count(), 3);
    // A stop at an instruction that the function lacks is found before anything is executed.
    assert!(none.err.contains("error[no-instruction]"), "{}", none.err);
    assert!(!none.out.contains("\nfailed DIR"));
}

#[test]
fn wild_answers_of_windows_are_shown_in_full() {
    let folder = Folder::new();
    let text =
        program("call_at_end").replace("rules=\"coreclr\" ends=\"any\"", "rules=\"coreclr\"");
    let path = folder.write("wild.kdl", text.as_bytes());
    insta::assert_snapshot!("wild", folder.clrsim(&["run", &path]).text());
}

#[test]
fn problems_of_a_text_are_shown_in_their_places() {
    let folder = Folder::new();
    let text = "function \"main\" {\n    push \"rbx\" \"rpx\"\n    body { call \"nobody\" }\n}\n";
    let two = folder.write("two.kdl", text.as_bytes());
    let rule = "function \"main\" {\n    locals 7\n}\nstop at=\"main\"\n";
    let rule = folder.write("rule.kdl", rule.as_bytes());
    let syntax = folder.write("syntax.kdl", b"function \"main\" {\n");
    let not_text = folder.write("bytes.kdl", b"function \xFF\n");
    let mut answers = String::new();
    for path in [&two, &rule, &syntax, &not_text] {
        let answer = folder.clrsim(&["run", path]);
        assert_eq!(answer.code, 2);
        answers += &answer.err;
        for args in [&["trace", path][..], &["emit", path, "-o", &folder.path("out")]] {
            let other = folder.clrsim(args);
            assert_eq!((other.code, other.err), (2, answer.err.clone()));
        }
    }
    insta::assert_snapshot!("problems", answers);
    // The others are run all the same.
    folder.write("good.kdl", fixture("programs/alloca.kdl"));
    let all = folder.clrsim(&["run", &folder.path("")]);
    assert_eq!(all.code, 2);
    assert!(all.out.contains("1 cases: 1 passed") && all.out.contains("4 files could not be read"));
}

#[test]
fn a_program_is_no_recording_and_the_other_way_round() {
    let show = clrsim(&["show", "programs/alloca.kdl"]);
    let trace = clrsim(&["trace", "win64/vec/gcc_O2.vec.gz"]);
    assert_eq!((show.code, trace.code), (2, 2));
    insta::assert_snapshot!(show.err + &trace.err, @r"
    error: programs/alloca.kdl: is a scenario, and clrsim show is for images and for recorded walks and unwinds: use clrsim compare or clrsim trace
    error: win64/vec/gcc_O2.vec.gz: is not a scenario: *.kdl
    ");
}
