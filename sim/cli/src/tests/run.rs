use super::*;

/// Size of the header of a file of vectors, in bytes.
const HEADER: usize = 32;
/// Offset of the truth in a vector, in bytes.
const TRUTH: usize = 36 + 16 * 8 + 10 * 16;
/// Offset of the return address in an outcome, in bytes.
const OUTCOME_RIP: usize = 8;
/// Offset of the values of registers in an outcome, in bytes.
const OUTCOME_VALUES: usize = 32;

/// The vectors of an image with damage to the truth at some offset of each of the cases.
fn damaged(image: &str, cases: &[usize], offset: usize) -> Vec<u8> {
    let mut bytes = content(&format!("win64/vec/{image}.vec.gz"));
    let mut at = HEADER;
    let mut case = 0;
    while at < bytes.len() {
        let len = u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
        if cases.contains(&case) {
            bytes[at + TRUTH + offset] ^= 0x10;
        }
        at += len;
        case += 1;
    }
    gzip(&bytes)
}

/// A folder with vectors and their image as in the collections.
fn collection(image: &str, vectors: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.write(&format!("vec/{image}.vec.gz"), vectors);
    let dll = format!("img/{image}.dll");
    folder.write(&dll, fixture(&format!("win64/{dll}")));
    folder
}

/// Replaces the counts that each new text changes.
fn without_counts_of_texts(answer: &str) -> String {
    let counts = |line: &str| {
        let totals = line.starts_with("passed:") || line.starts_with("snapshots:");
        totals || line.contains(" gallery/")
    };
    // 0 failed.
    let word = |word: &str| match word.trim_matches(['(', ',']) {
        number if number.parse::<u32>().is_ok_and(|number| number > 0) => word.replace(number, "N"),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    answer.lines().map(|it| if counts(it) { line(it) } else { it.to_owned() } + "\n").collect()
}

#[test]
fn without_paths_the_embedded_fixtures_are_replayed() {
    // The summary without a command, of all runtimes, is compared with the README by another test.
    let answer = clrsim(&["run", "--on", "coreclr-3.1-windows"]);
    insta::assert_snapshot!("one_runtime", without_counts_of_texts(&answer.text()));
}

#[test]
fn precise_rules_go_without_saying() {
    let run = ["run", "--filter", "win64/"];
    let answer = clrsim(&run);
    assert_eq!(clrsim(&[&run[..], &["--unwind-rules", "precise"]].concat()).text(), answer.text());
}

#[test]
fn rules_of_windows_are_held_against_its_answers() {
    let args = ["run", "--unwind-rules", "coreclr", "--filter", "win64/"];
    insta::assert_snapshot!("rules_windows", clrsim(&args).text());
}

#[test]
fn json_has_a_line_for_each_file_and_a_total() {
    let answer = clrsim(&["run", "--json", "--filter", "win64/"]);
    insta::assert_snapshot!("json", answer.text());
    let lines: Vec<serde_json::Value> =
        answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (total, files) = lines.split_last().unwrap();
    assert_eq!(total["kind"], "total");
    assert_eq!(total["files"], files.len());
    for count in ["cases", "passed", "failed", "skipped"] {
        let sum: u64 = files.iter().map(|file| file[count].as_u64().unwrap()).sum();
        assert_eq!(total[count], sum, "{count}");
    }
}

#[test]
fn a_filter_picks_files_by_path() {
    insta::assert_snapshot!("filter", clrsim(&["run", "--filter", "vec/gcc"]).text());
}

#[test]
fn files_and_folders_are_named_as_given() {
    let folder = collection("gcc_O2", fixture("win64/vec/gcc_O2.vec.gz"));
    folder.write("deeper/diff/fuzz.bin.gz", fixture("win64/diff/fuzz.bin.gz"));
    folder.write("deeper/beside.vec.gz", fixture("win64/vec/asm_raw.vec.gz"));
    folder.write("deeper/beside.dll", fixture("win64/img/asm_raw.dll"));
    folder.write("deeper/notes.txt", b"not a fixture");
    let all = folder.clrsim(&["run", &folder.path("")]);
    insta::assert_snapshot!("folder", all.text());
    let (deeper, file) = (folder.path("deeper"), folder.path("vec/gcc_O2.vec.gz"));
    let some = folder.clrsim(&["run", &file, &deeper, "win64/vec/clang_O2.vec.gz"]);
    insta::assert_snapshot!("paths", some.text());
}

#[test]
fn a_wrong_return_address_is_explained() {
    let folder = collection("gcc_O2", &damaged("gcc_O2", &[7], OUTCOME_RIP));
    let answer = folder.clrsim(&["run", &folder.path("vec")]);
    insta::assert_snapshot!("failure_rip", answer.text());
    let json = folder.clrsim(&["run", "--json", &folder.path("vec")]);
    insta::assert_snapshot!("failure_json", json.text());
}

#[test]
fn a_wrong_register_is_explained() {
    let folder = collection("gcc_O2", &damaged("gcc_O2", &[100, 300], OUTCOME_VALUES));
    let answer = folder.clrsim(&["run", &folder.path("vec")]);
    insta::assert_snapshot!("failure_register", answer.text());
}

#[test]
fn cases_are_numbered_throughout_a_large_file() {
    // More cases than are held in memory at a time.
    let folder = collection("asm_raw", &damaged("asm_raw", &[4, 8191, 8192, 10299], OUTCOME_RIP));
    let answer = folder.clrsim(&["run", "--json", &folder.path("vec")]);
    let report = answer.out.lines().next().unwrap();
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    let failures = report["failures"].as_array().unwrap();
    let cases: Vec<_> = failures.iter().map(|failure| failure["case"].as_u64().unwrap()).collect();
    assert_eq!(cases, [4, 8191, 8192, 10299]);
    assert_eq!(report["failed"], 4);
}

#[test]
fn all_failures_are_counted_and_some_explained() {
    let every_ninth: Vec<_> = (0..3326).step_by(9).collect();
    let folder = collection("gcc_O2", &damaged("gcc_O2", &every_ninth, OUTCOME_RIP));
    let vectors = folder.path("vec");
    let explained = |most: &str| {
        let answer = folder.clrsim(&["run", &vectors, "--limit", most]);
        assert_eq!(answer.code, 1);
        answer.out
    };
    insta::assert_snapshot!("failures_unexplained", explained("0"));
    assert_eq!(explained("2").matches("\nfailed DIR").count(), 2);
    // The other 12 are not gold: their truth is not looked at.
    assert_eq!(explained("1000").matches("\nfailed DIR").count(), every_ninth.len() - 12);
    assert!(!explained("1000").contains("more failed"));
}

#[test]
fn threads_show_in_no_output() {
    let every_fifth: Vec<_> = (0..3326).step_by(5).collect();
    let folder = collection("gcc_O2", &damaged("gcc_O2", &every_fifth, OUTCOME_RIP));
    let vectors = folder.path("vec");
    let with = |jobs: &str| {
        let mut text = String::new();
        for most in ["0", "3", "70", "1000"] {
            let args = ["run", &vectors, "win64/diff/fuzz.bin.gz", "--limit", most, "--jobs", jobs];
            write!(text, "{}", folder.clrsim(&args).text()).unwrap();
        }
        text
    };
    let one = with("1");
    for jobs in ["2", "3", "7", "1000000000"] {
        assert!(with(jobs) == one, "{jobs} jobs");
    }
}

/// A run that has nothing to check fails: the text has no expectation, or none for the chosen runtimes.
#[test]
fn a_run_that_checks_nothing_fails() {
    let folder = Folder::new();
    let program = "function \"App.Main\" kind=\"jit\" { body { new } }\n";
    let text = |expect: &str| {
        format!(
            "{program}stop callback=ObjectAllocated {{ snapshot by=native-walker {{ {expect} }} }}"
        )
    };
    let refused = "result CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX";
    folder.write("none.kdl", text("").as_bytes());
    folder.write("windows.kdl", text(&format!("expect on=windows {{ {refused} }}")).as_bytes());
    let run = |name: &str, more: &[&str]| {
        let path = folder.path(name);
        clrsim(&[&["run", &path], more].concat())
    };
    let none = run("none.kdl", &[]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("checks nothing: add an expect"), "{}", none.err);
    assert_eq!(run("windows.kdl", &[]).code, 0);
    let elsewhere = run("windows.kdl", &["--on", "unix"]);
    assert_eq!(elsewhere.code, 1);
    assert!(elsewhere.out.contains("nothing was checked: 1 file"), "{}", elsewhere.out);
    // Each of the chosen runtimes counts.
    let both = run("windows.kdl", &["--on", "net10"]);
    assert_eq!(both.code, 1);
    assert!(both.out.contains("nothing was checked on net10-unix"), "{}", both.out);
    let libtest = run("windows.kdl", &["--on", "net10", "--format", "libtest"]);
    assert_eq!(libtest.code, 1);
    assert!(libtest.out.contains("nothing was checked on net10-unix"), "{}", libtest.out);
    let search = "explore { expect on=unix { survives } }; coverage { call Log on=windows }";
    folder.write("demand.kdl", format!("{program}profiler {{ lock one }}\n{search}").as_bytes());
    let path = folder.path("demand.kdl");
    for command in [&["run"][..], &["explore", "--on", "windows"]] {
        let refused = clrsim(&[command, &[&path]].concat());
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("checks nothing on"), "{}", refused.err);
    }
    for more in [&["--json"][..], &["--format", "junit"]] {
        assert_eq!(run("windows.kdl", &[&["--on", "unix"], more].concat()).code, 1);
    }
}
