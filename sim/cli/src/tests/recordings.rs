use super::*;

/// Ten walks; the last two call back six times.
const ALLOC: &str = "clr/linux31-callbacks-alloc-def.walks.jsonl.gz";
/// Eleven walks, the second of which lacks its stack.
const BAD_SEED: &str = "clr/win31-badseed-rspnoncanonical-alloc.walks.jsonl.gz";

/// The text of an embedded recording with changes to its lines.
fn changed(name: &str, change: impl FnOnce(&mut Vec<Value>)) -> String {
    let text = String::from_utf8(content(name)).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    change(&mut lines);
    lines.iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{line}").unwrap();
        text
    })
}

/// The walk with this number.
fn walk(lines: &mut [Value], n: u32) -> &mut Value {
    lines.iter_mut().find(|line| line["t"] == "walk" && line["n"] == n).unwrap()
}

/// The lines of a JSON answer.
fn objects(answer: &Answer) -> Vec<Value> {
    answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_recording_is_replayed_compressed_or_not() {
    let embedded = clrsim(&["run", ALLOC]);
    insta::assert_snapshot!("one", embedded.text());
    let folder = Folder::new();
    let plain = folder.write("a.walks.jsonl", &content(ALLOC));
    let counts = |answer: Answer| {
        assert_eq!(answer.code, 0, "{}", answer.err);
        answer.out.lines().last().unwrap().to_owned()
    };
    let expected = counts(embedded);
    assert_eq!(counts(folder.clrsim(&["run", &plain])), expected);
    assert_eq!(counts(folder.clrsim(&["run", &folder.path("")])), expected);
}

#[test]
fn a_recording_that_is_cut_is_replayed_up_to_there() {
    let folder = Folder::new();
    let mut text = content(ALLOC);
    let whole = text.len();
    text.extend("{\"t\":\"image\",\"name\":\"é".as_bytes());
    let lines = str::from_utf8(&text[..whole]).unwrap().lines().count();
    // Within the last letter, too.
    for cut in [whole + 1, text.len() - 1, text.len()] {
        let path = folder.write("cut.walks.jsonl", &text[..cut]);
        let answer = folder.clrsim(&["run", &path]);
        assert_eq!(answer.code, 0, "{}", answer.text());
        let said = format!("cut.walks.jsonl ends within line {}; the calls before it", lines + 1);
        assert!(answer.out.contains(&said), "{}", answer.text());
        let report = &objects(&folder.clrsim(&["run", &path, "--json"]))[0];
        assert_eq!((&report["passed"], &report["cut_line"]), (&json!(10), &json!(lines + 1)));
    }
    let within = 7 * whole / 8;
    let path = folder.write("cut.walks.jsonl", &text[..within]);
    let report = &objects(&folder.clrsim(&["run", &path, "--json"]))[0];
    assert!((1..10).contains(&report["passed"].as_u64().unwrap()), "{report}");
    assert!(report["cut_line"].is_u64());
}

#[test]
fn a_thread_whose_exception_has_just_ended_is_unsafe() {
    let folder = Folder::new();
    let result = |unsafe_: bool| {
        let text = changed(ALLOC, |lines| {
            let walk = walk(lines, 9);
            walk["state"]["exception"] = json!({"tracker_gone": unsafe_});
            walk["result"] = json!({"hr": "0x80131360", "callbacks": []});
        });
        folder.write("a.walks.jsonl", text.as_bytes());
        folder.clrsim(&["run", &folder.path("a.walks.jsonl")]).code
    };
    assert_eq!((result(true), result(false)), (0, 1));
}

#[test]
fn recordings_that_pass_share_a_line() {
    let folder = Folder::new();
    folder.write("all/a.walks.jsonl.gz", fixture(ALLOC));
    folder.write("all/b.walks.jsonl.gz", fixture(BAD_SEED));
    folder.write("all/c.walks.jsonl.gz", fixture(ALLOC));
    let wrong = changed(ALLOC, |lines| walk(lines, 1)["result"]["hr"] = json!("0x0"));
    folder.write("all/d.walks.jsonl.gz", &gzip(wrong.as_bytes()));
    folder.write("all/e.walks.jsonl.gz", fixture(ALLOC));
    folder.write("all/f.kdl", fixture("programs/alloca.kdl"));
    folder.write("all/g.walks.jsonl", &content(ALLOC));
    folder.write("all/h.walks.jsonl", &content(ALLOC));
    folder.write("all/deeper/a.walks.jsonl.gz", fixture(ALLOC));
    let all = folder.path("all");
    let table = folder.clrsim(&["run", &all, "--limit", "0"]);
    insta::assert_snapshot!("shared_lines", table.text());
    // Nine files and the total.
    assert_eq!(objects(&folder.clrsim(&["run", &all, "--json"])).len(), 10);
}

#[test]
fn rules_are_not_for_recordings_of_walks() {
    let of =
        |rules| clrsim(&["run", "--filter", "clr/win31", "--unwind-rules", rules, "--json"]).text();
    assert_eq!(of("precise"), of("coreclr"));
}

/// A change to the result of a walk with six callbacks.
type Change = fn(&mut Value);

/// A recording whose walks are one and the same, each with a change to its result.
fn differing() -> String {
    let changes: [Change; 12] = [
        |result| result["hr"] = json!("0x80131360"),
        |result| result["hr"] = json!("0x123456789"),
        |result| {
            result["hr"] = Value::Null;
            result["killed"] = json!("SIGSEGV");
        },
        |result| result["callbacks"][0]["function"] = Value::Null,
        |result| {
            let callback = &mut result["callbacks"][1];
            callback["ip"] = json!("0x1234");
            callback["registers"][3] = json!("0xb");
            callback["registers"][16] = json!("0x1234");
            callback["context_flags"] = json!("0x77");
        },
        |result| result["callbacks"][2]["context_size"] = json!(0),
        |result| result["callbacks"][3]["function"] = json!(4321),
        |result| {
            result["callbacks"].as_array_mut().unwrap().pop();
        },
        |result| {
            let callbacks = result["callbacks"].as_array_mut().unwrap();
            callbacks.push(callbacks[2].clone());
        },
        |result| result["callback_count"] = json!(7),
        |result| result["callback_count"] = json!(5),
        |_| {},
    ];
    changed(ALLOC, |lines| {
        let original = walk(lines, 9).clone();
        lines.retain(|line| line["t"] != "walk");
        for (change, n) in changes.into_iter().zip(1..) {
            let mut line = original.clone();
            line["n"] = json!(n);
            change(&mut line["result"]);
            lines.push(line);
        }
    })
}

#[test]
fn every_difference_is_explained() {
    let folder = Folder::new();
    let path = folder.write("wrong.walks.jsonl", differing().as_bytes());
    let run = |args: &[&str]| folder.clrsim(&[&["run", &path], args].concat());
    insta::assert_snapshot!("differences", run(&["--limit", "100"]).text());
    insta::assert_snapshot!("differences_json", run(&["--limit", "100", "--json"]).text());
    let some = run(&["--limit", "2"]);
    assert_eq!(some.out.matches("\nfailed DIR").count(), 2);
    assert!(some.out.contains("\n9 more failed in DIR/wrong.walks.jsonl"));
}

#[test]
fn a_context_that_is_not_delivered_is_a_difference() {
    let folder = Folder::new();
    // Without COR_PRF_SNAPSHOT_REGISTER_CONTEXT no callback gets a CONTEXT.
    let text = changed(ALLOC, |lines| walk(lines, 10)["call"]["flags"] = json!("0x0"));
    let path = folder.write("none.walks.jsonl", text.as_bytes());
    insta::assert_snapshot!("no_context", folder.clrsim(&["run", &path]).text());
}

#[test]
fn an_unreachable_result_is_reported() {
    let folder = Folder::new();
    let text = changed(ALLOC, |lines| {
        walk(lines, 10)["stack"]["parts"] = json!([]);
        walk(lines, 10)["result"]["callbacks"] = json!([]);
        walk(lines, 10)["result"]["callback_count"] = json!(6);
    });
    let path = folder.write("cut.walks.jsonl", text.as_bytes());
    insta::assert_snapshot!("out_of_reach", folder.clrsim(&["run", &path]).text());
}

#[test]
fn skipped_walks_have_their_reasons() {
    insta::assert_snapshot!("skipped", clrsim(&["run", BAD_SEED]).text());
    insta::assert_snapshot!("skipped_json", clrsim(&["run", BAD_SEED, "--json"]).text());
    let folder = Folder::new();
    let text = changed(BAD_SEED, |lines| {
        for n in 3..=11 {
            walk(lines, n)["replayable"] = json!(false);
            walk(lines, n)["why"] = json!(format!("reason {}", n / 3));
        }
        walk(lines, 2)["why"] = Value::Null;
    });
    let path = folder.write("many.walks.jsonl", text.as_bytes());
    insta::assert_snapshot!("skipped_many", folder.clrsim(&["run", &path]).text());
}

/// A walk that may differ from its recording never fails.
#[test]
fn a_skipped_walk_is_never_a_failure() {
    let folder = Folder::new();
    let text = changed(ALLOC, |lines| {
        walk(lines, 8)["replayable"] = json!(false);
        walk(lines, 9)["replayable"] = json!(false);
        walk(lines, 9)["result"]["hr"] = json!("0x1");
    });
    let path = folder.write("two.walks.jsonl", text.as_bytes());
    let answer = folder.clrsim(&["run", &path, "--json"]);
    let file = &objects(&answer)[0];
    assert_eq!(answer.code, 0);
    assert_eq!([&file["passed"], &file["failed"], &file["skipped"]], [8, 0, 2]);
}

#[test]
fn json_lists_every_recording() {
    let answer = clrsim(&["run", "--json", "--filter", "clr/"]);
    let lines = objects(&answer);
    let (total, files) = lines.split_last().unwrap();
    let embedded = clr_fixtures::all().iter().filter(|fixture| fixture.name.starts_with("clr/"));
    assert!(embedded.map(|fixture| fixture.name).eq(files.iter().map(|file| &file["file"])));
    for file in files {
        assert_eq!(file["kind"], "clr-walks");
        assert!(file["generation"].is_string() && file["failures"] == json!([]), "{file}");
        let skipped = file["skipped_walks"].as_array().unwrap();
        assert_eq!(skipped.len() as u64, file["skipped"].as_u64().unwrap(), "{file}");
        for walk in skipped {
            assert!(walk["n"].is_u64() && walk["reason"].is_string(), "{walk}");
            assert!(walk["situation"].is_string() && walk["variant"].is_string(), "{walk}");
        }
    }
    assert_eq!([&total["files"], &total["passed"], &total["skipped"]], [223, 39988, 79]);
    // With inferred fields of the state, and with the registers of a redirected thread.
    assert_eq!(total["inferred_walks"], 6582);
    let sum: u64 = files.iter().map(|file| file["inferred_walks"].as_u64().unwrap()).sum();
    assert_eq!(sum, 6582);
}

#[test]
fn text_that_is_no_recording_is_refused_with_file_and_line() {
    let folder = Folder::new();
    let gz = fixture(ALLOC);
    let mut broken = gz.to_vec();
    broken[gz.len() / 2] ^= 0x55;
    let edited = |change: fn(&mut Vec<Value>)| changed(ALLOC, change).into_bytes();
    let mut cut = content(ALLOC);
    cut.truncate(cut.len() - 100);
    let files = [
        ("not gzip", "a.walks.jsonl.gz", content(ALLOC)),
        ("cut gzip", "b.walks.jsonl.gz", gz[..gz.len() / 2].to_vec()),
        ("damaged gzip", "c.walks.jsonl.gz", broken),
        ("not UTF-8", "d.walks.jsonl", b"{\"t\":\"recording\xFF".to_vec()),
        ("nothing", "e.walks.jsonl", Vec::new()),
        ("cut line with an end", "f.walks.jsonl", [cut.as_slice(), b"\n"].concat()),
        ("generation", "g.walks.jsonl", edited(|lines| lines[0]["generation"] = json!("net4"))),
        (
            "old exception handling",
            "g2.walks.jsonl",
            edited(|lines| lines[0]["legacy_exception_handling"] = json!(true)),
        ),
        ("format", "h.walks.jsonl", edited(|lines| lines[0]["format"] = json!(2))),
        ("no header", "i.walks.jsonl", edited(|lines| drop(lines.remove(0)))),
        ("two headers", "j.walks.jsonl", edited(|lines| lines.insert(3, lines[0].clone()))),
        ("wrong type", "k.walks.jsonl", edited(|lines| walk(lines, 2)["n"] = json!("two"))),
        ("missing field", "l.walks.jsonl", edited(|lines| walk(lines, 2)["call"] = json!({}))),
        (
            "one code twice",
            "m.walks.jsonl",
            edited(|lines| {
                let code = lines.iter().find(|line| line["t"] == "code").unwrap().clone();
                lines.push(code);
            }),
        ),
    ];
    let mut answers = String::new();
    for (what, name, bytes) in &files {
        let answer = folder.clrsim(&["run", &folder.write(name, bytes), "--limit", "0"]);
        assert_eq!(answer.code, 2, "{what}: {}", answer.text());
        write!(answers, "{what}: {}", answer.err).unwrap();
    }
    insta::assert_snapshot!("refused", answers);
    // The others are replayed all the same.
    folder.write("z.walks.jsonl.gz", gz);
    let all = folder.clrsim(&["run", &folder.path("")]);
    assert_eq!(all.code, 2);
    assert!(all.out.contains("10 cases: 10 passed") && all.out.contains("14 files could not be"));
}

#[test]
fn other_commands_say_what_recordings_are_for() {
    let trace = clrsim(&["trace", ALLOC]);
    assert_eq!(trace.code, 2);
    insta::assert_snapshot!(
        trace.err,
        @"error: clr/linux31-callbacks-alloc-def.walks.jsonl.gz: is not a scenario: *.kdl"
    );
}
