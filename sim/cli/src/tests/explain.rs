use super::*;

/// Walks of another thread in CoreCLR 3.1 on Windows.
const ASYNC: &str = "clr/win31-async-alloc.walks.jsonl.gz";
/// Ten walks.
const ALLOC: &str = "clr/linux31-callbacks-alloc-def.walks.jsonl.gz";

#[track_caller]
fn explained(fixture: &str, walk: u32) -> String {
    let answer = clrsim(&["explain", fixture, "--walk", &walk.to_string()]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{fixture} walk {walk}");
    answer.out
}

fn object(answer: &Answer) -> Value {
    serde_json::from_str(&answer.out).unwrap()
}

/// The recording's text with changes to its lines.
fn changed(name: &str, change: impl Fn(&mut Value)) -> String {
    let text = String::from_utf8(content(name)).unwrap();
    text.lines().fold(String::new(), |mut text, line| {
        let mut line = serde_json::from_str(line).unwrap();
        change(&mut line);
        writeln!(text, "{line}").unwrap();
        text
    })
}

/// Walks that show between them each kind of step, of every generation that was recorded.
const WALKS: [(&str, &[(&str, u32)]); 5] = [
    (
        "win31",
        &[
            ("async-alloc", 5),
            ("async-alloc", 12),
            ("async-alloc", 13),
            ("async-alloc", 14),
            ("async-alloc", 15),
            ("async-alloc", 18),
            ("async-alloc", 27),
            ("async-alloc", 46),
            ("async-alloc", 48),
            ("async-alloc", 64),
            ("badseed-rspnoncanonical-alloc", 1),
            ("error-dead", 1),
            ("error-nullcb-own", 1),
            ("suspendruntime-mix", 30),
            ("sync-gc", 30),
        ],
    ),
    (
        "linux31",
        &[
            ("trans-excep", 2),
            ("callbacks-exc-tc0", 97),
            ("callbacks-exc-tc0", 109),
            ("callbacks-exc-tc0", 218),
            ("callbacks-jit-tc0", 17),
            ("dead1", 1),
            ("signals-tc0", 32),
        ],
    ),
    (
        "linux9",
        &[
            ("allthreads-def", 2),
            ("api-excep", 5),
            ("api-excep", 12),
            ("elt-fast-tc0", 80),
            ("nosnapshotflag-xt", 3),
            ("pinvoke-dyn-def", 181),
            ("seedsize-alloc-100", 3),
            ("seedsize-alloc-4d0", 3),
        ],
    ),
    (
        "legacyeh",
        &[
            ("crossthread-legacyeh", 6),
            ("crossthread-legacyeh", 12),
            ("crossthread-legacyeh", 35),
            ("crossthread-legacyeh", 60),
            ("exc-legacyeh", 243),
            ("exc-legacyeh", 256),
            ("reverse-legacyeh", 46),
        ],
    ),
    ("net10win", &[("many1", 15), ("many1", 24), ("sync-loading", 111), ("tools", 112)]),
];

#[test]
fn stories_of_every_generation() {
    for (generation, walks) in WALKS {
        let mut stories = String::new();
        for (name, walk) in walks {
            let end = format!("{name}.walks.jsonl.gz");
            let fixture = clr_fixtures::all()
                .iter()
                .find(|fixture| {
                    fixture.name.contains(os(generation)) && fixture.name.ends_with(&end)
                })
                .unwrap_or_else(|| panic!("{generation}: {name}"));
            writeln!(stories, "{}", explained(fixture.name, *walk)).unwrap();
        }
        insta::assert_snapshot!(generation, stories);
    }
}

/// Returns the prefix of the names of a generation's recordings.
fn os(generation: &str) -> &str {
    if generation == "legacyeh" { "linux9" } else { generation }
}

#[test]
fn without_a_number_it_is_the_first_walk() {
    let first = clrsim(&["explain", ALLOC]);
    assert_eq!(first.code, 0);
    assert_eq!(first.out, explained(ALLOC, 1));
}

#[test]
fn differences_are_explained() {
    let folder = Folder::new();
    let text = changed(ALLOC, |line| {
        if line["n"] == 9 {
            line["result"]["hr"] = json!("0x80131360");
        }
        if line["n"] == 10 {
            line["replayable"] = json!(false);
            line["why"] = json!("for a test");
        }
    });
    let path = folder.write("a.walks.jsonl", text.as_bytes());
    let of = |walk| {
        let answer = folder.clrsim(&["explain", &path, "--walk", walk]);
        assert_eq!(answer.code, 0, "{}", answer.err);
        let (_, verdict) = answer.out.rsplit_once("\n\n").unwrap();
        verdict.to_owned()
    };
    insta::assert_snapshot!(of("9") + &of("10"), @r"
    not as recorded
      recorded: CORPROF_E_STACKSNAPSHOT_UNSAFE after 6 callbacks
              expected                        got
      result  CORPROF_E_STACKSNAPSHOT_UNSAFE  S_OK
    as recorded
    not expected to come out as recorded: for a test
    ");
    let json = |walk| object(&folder.clrsim(&["explain", &path, "--walk", walk, "--json"]));
    let (different, unsure) = (json("9"), json("10"));
    assert_eq!([&different["as_recorded"], &different["replayable"]], [false, true]);
    assert_eq!(different["differences"]["differences"][0]["of"], "result");
    assert_eq!([&unsure["as_recorded"], &unsure["replayable"]], [true, false]);
    assert_eq!([&unsure["why"], &unsure["differences"]], [&json!("for a test"), &Value::Null]);
}

#[test]
fn json_has_the_whole_story() {
    let answer = clrsim(&["explain", ASYNC, "--walk", "64", "--json"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let story = object(&answer);
    assert_eq!(story["file"], ASYNC);
    assert_eq!([&story["walk"], &story["variant"]], [&json!(64), &json!("nested")]);
    assert_eq!(story["call"]["thread"], "other");
    let lines = story["story"].as_array().unwrap();
    let text = explained(ASYNC, 64).split_whitespace().collect::<Vec<_>>().join(" ");
    for line in lines {
        assert!(text.contains(line["text"].as_str().unwrap()), "{line}");
        assert!(line["clauses"].as_array().unwrap().iter().all(Value::is_string), "{line}");
        assert!(line["kind"].is_string() && line["depth"].is_u64(), "{line}");
    }
    let callbacks: Vec<_> =
        lines.iter().filter(|line| line["depth"] == 0 && line["callback"].is_u64()).collect();
    let numbers = callbacks.iter().map(|line| line["callback"].as_u64().unwrap());
    assert!(numbers.eq(0..7));
    assert!(callbacks.iter().all(|line| line["kind"] == "callback"));
    assert!(lines.iter().any(|line| line["depth"] == 1 && line["kind"] == "refusal"));
    assert_eq!([&lines[0]["kind"], &lines[lines.len() - 1]["kind"]], ["call", "end"]);
}

#[test]
fn walks_that_are_not_there_and_files_that_are_none() {
    let folder = Folder::new();
    let header = r#"{"t":"recording","format":1,"generation":"net9-unix","name":"x"}"#;
    let empty = folder.write("empty.walks.jsonl", header.as_bytes());
    let broken = folder.write("broken.walks.jsonl", b"{}");
    let mut text = String::new();
    for args in [
        &["explain", ASYNC, "--walk", "0"][..],
        &["explain", ASYNC, "--walk", "4000"],
        &["show", ASYNC, "--walk", "4000"],
        &["show", ASYNC, "--walk", "4294967301"],
        &["explain", "programs/tail_call.kdl"],
        &["explain", "win64/vec/gcc_O2.vec.gz"],
        &["explain", "nowhere.walks.jsonl"],
        &["explain", &empty],
        &["explain", &broken],
        &["explain", ALLOC, "--walk", "one"],
        &["explain"],
    ] {
        let answer = folder.clrsim(args);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{args:?}");
        text += &answer.err;
    }
    insta::assert_snapshot!("refusals", text);
}

/// Explains each snapshot of a text, once for runtimes with the same story.
#[test]
fn the_snapshots_of_texts_are_explained() {
    let folder = super::Folder::new();
    let path = folder.write("barrier.kdl", super::texts::BARRIER.as_bytes());
    insta::assert_snapshot!("text", folder.clrsim(&["explain", &path]).text());
    let one = folder.clrsim(&["explain", &path, "--snapshot", "seeded", "--on", "net9 windows"]);
    assert_eq!(one, folder.clrsim(&["explain", &path, "--snapshot", "2", "--on", "windows,net9"]));
    assert!(
        one.out.contains("snapshot 2 seeded") && !one.out.contains("snapshot 1"),
        "{}",
        one.out
    );
    assert!(!one.out.contains("coreclr-3.1-unix"), "{}", one.out);
    let wrong = super::texts::BARRIER.replace("\"E_NOTIMPL\"", "\"S_OK\"");
    let wrong = folder.write("wrong.kdl", wrong.as_bytes());
    let answer = folder.clrsim(&["explain", &wrong, "--snapshot", "1", "--on", "unix", "--json"]);
    insta::assert_snapshot!("text_json", answer.text());
    let shown = folder.clrsim(&["explain", &wrong, "--snapshot", "1", "--on", "unix"]);
    assert!(
        shown.out.contains("not as expected\n    expected: S_OK; found: E_NOTIMPL\n"),
        "{}",
        shown.out
    );
}

/// Addresses of programs differ on each runtime and do not part stories.
#[test]
fn stories_of_programs_are_shared() {
    let folder = super::Folder::new();
    let path = folder.write("allocation.kdl", super::texts::ALLOCATION.as_bytes());
    let answer = folder.clrsim(&["explain", &path]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("; numbers of "), "{}", answer.out);
    let json = folder.clrsim(&["explain", &path, "--json"]).out;
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let snapshots = lines.iter().map(|line| line["snapshot"].as_u64().unwrap()).max().unwrap();
    for snapshot in 1..=snapshots {
        let own = lines.iter().filter(|line| line["snapshot"] == snapshot);
        let runtimes: Vec<_> = own.flat_map(|line| line["runtimes"].as_array().unwrap()).collect();
        assert_eq!(runtimes.len(), Generation::ALL.len(), "{snapshot}");
    }
    assert!((lines.len() as u64) < Generation::ALL.len() as u64 * snapshots, "{json}");
    // A snapshot whose stop is not reached is explained too.
    let never = super::texts::ALLOCATION.replace("Allocated\"", "Allocated\" visit=2");
    let never = folder.write("never.kdl", never.as_bytes());
    let answer = folder.clrsim(&["explain", &never, "--snapshot", "1"]);
    let not_reached = "cannot be made: thread main does not come to its stop in ObjectAllocated";
    assert!(answer.out.contains(not_reached), "{}", answer.out);
}

#[test]
fn options_for_texts_or_recordings_only_are_errors_elsewhere() {
    let folder = super::Folder::new();
    let path = folder.write("barrier.kdl", super::texts::BARRIER.as_bytes());
    let mut all = String::new();
    for args in [
        &["explain", &path, "--walk", "1"][..],
        &["explain", &path, "--snapshot", "3"],
        &["explain", ALLOC, "--snapshot", "1"],
        &["explain", ALLOC, "--on", "windows"],
    ] {
        all += &folder.clrsim(args).text();
    }
    insta::assert_snapshot!("text_errors", all);
}
