//! Names that terminals, pages and shells would obey: no command lets one out.

use super::*;
use clr_explore::is_visible;

/// What a terminal, a page or a reader's eye would obey, and no name needs.
const NASTY: &str =
    "n\u{1b}]0;T\u{7}\u{1b}[31m\u{9b}2J\r\u{7f}\u{202e}\u{2066}\u{200b}<b>&\"'\u{fdd1}\u{ffff}";

/// Returns a text as the format has it in quotes.
fn for_text(text: &str) -> String {
    text.chars().map(|c| c.escape_unicode().to_string()).collect()
}

/// A text in which everything that may have such a name has one.
fn text() -> String {
    let n = for_text(NASTY);
    format!(
        "shows \"{n}.\"\ntag \"x\"
function \"App.Main\" kind=\"jit\" {{ body {{ new; first-call \"App.Late\"; }} }}
function \"App.Late\" kind=\"jit\"
thread \"{n}\" start=\"App.Main\"
stop at=\"AllocateObject\" {{
    snapshot \"t{n}\" by=\"native-walker\" {{ expect on=\"windows\" {{ result \"S_OK\"; }} }}
}}
profiler {{
    lock \"l{n}\"
    thread \"s{n}\" {{ prepare; snapshot \"{n}\" {{ lock \"l{n}\"; }} }}
    on \"JITCompilationFinished\" {{ lock \"l{n}\"; }}
}}
explore {{ expect on=\"windows\" {{ survives; }} }}
"
    )
}

/// Returns the characters of an output that are not visible, but for line ends and tabs.
fn escaped(answer: &Answer) -> Vec<char> {
    let all = answer.out.chars().chain(answer.err.chars());
    all.filter(|char| !is_visible(*char) && !matches!(char, '\n' | '\t')).collect()
}

/// Runs the tool as on a terminal, and returns the sequences that it would obey.
fn sequences(args: &[&str]) -> BTreeSet<String> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut console =
        Console { out: &mut out, err: &mut err, progress: false, json: false, owns_signals: false };
    run_tool(["clrsim"].iter().chain(args).map(OsString::from), &mut console);
    let text = String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap();
    let parts = text.split('\u{1b}').skip(1);
    parts.map(|part| part.chars().take_while(|char| *char != 'm').collect()).collect()
}

#[test]
fn no_command_lets_a_name_control_a_terminal() {
    let folder = Folder::new();
    let good = folder.write("good.kdl", text().as_bytes());
    let bad = folder.write("bad.kdl", text().replace("explore {", "explor {").as_bytes());
    let native = format!("shows \"{}.\"\nfunction \"main\"\n", for_text(NASTY));
    let native = folder
        .write(if cfg!(windows) { "n.kdl" } else { "n\u{9b}\u{1b}[31m.kdl" }, native.as_bytes());
    let page = folder.path("page.html");
    let walks = folder.write("n.walks.jsonl", recording().as_bytes());
    let small = folder.path("small.kdl");
    let commands: Vec<Vec<&str>> = vec![
        vec!["run", &good],
        vec!["run", &good, "--json"],
        vec!["run", &good, "--format", "junit"],
        vec!["run", &good, "--format", "libtest"],
        vec!["run", &bad],
        vec!["run", &bad, "--json"],
        vec!["run", &good, "--bless", "--dry-run"],
        vec!["fmt", "--check", &good],
        vec!["fmt", "--check", &bad],
        vec!["list", &good],
        vec!["list", &good, "--json"],
        vec!["matrix", &good],
        vec!["matrix", &good, "--json"],
        vec!["explain", &good, "--on", "net8-windows"],
        vec!["explain", &good, "--on", "net8-windows", "--json"],
        vec!["compare", &good],
        vec!["compare", &good, "--json"],
        vec!["trace", &native],
        vec!["trace", &native, "--json"],
        vec!["explore", &good, "--on", "net8-windows", "--schedules", "50"],
        vec!["explore", &good, "--on", "net8-windows", "--schedules", "50", "--json"],
        vec!["explore", &good, "--on", "net8-windows", "--minimize", &small],
        vec!["replay", &good, "--on", "net8-windows", "--draw"],
        vec!["replay", &good, "--on", "net8-windows", "--html", &page, "--force"],
        vec!["run", &walks],
        vec!["run", &walks, "--json"],
        vec!["explain", &walks],
        vec!["explain", &walks, "--json"],
        vec!["show", &walks],
        vec!["show", &walks, "--case", "1"],
        vec!["import", &walks],
        vec!["import", &walks, "--walk", "1"],
        vec!["show", NASTY],
        vec!["run", NASTY],
        vec!["run", NASTY, "--json"],
        vec!["run", "--filter", NASTY],
        vec![NASTY],
        vec!["new", NASTY],
        vec!["run", "--on", NASTY],
        vec!["rules", NASTY],
        vec!["runtimes", NASTY],
        vec!["replay", NASTY],
        vec!["list", NASTY],
        vec!["lint", NASTY],
        vec!["from-recording", NASTY],
    ];
    let ours: BTreeSet<_> = sequences(&["--help"])
        .into_iter()
        .chain(["[0", "[1", "[2"].map(str::to_owned))
        .chain((30..38).chain(90..98).map(|colour| format!("[{colour}")))
        .collect();
    for args in &commands {
        let answer = clrsim(args);
        assert!(answer.code < 2 || !args.contains(&&*good), "{args:?}: {}", answer.text());
        assert_eq!(escaped(&answer), ['\0'; 0], "{args:?}: {}", answer.text().escape_debug());
        let foreign: Vec<_> = sequences(args).difference(&ours).cloned().collect();
        assert_eq!(foreign, [""; 0], "{args:?}");
        if args.contains(&"--json") {
            for line in answer.out.lines() {
                serde_json::from_str::<Value>(line)
                    .unwrap_or_else(|error| panic!("{args:?}: {error}"));
            }
        }
    }
    for file in [page, small] {
        let text = fs::read_to_string(&file).unwrap();
        let raw: Vec<_> =
            text.chars().filter(|c| !is_visible(*c) && !matches!(c, '\n' | '\t')).collect();
        assert_eq!(raw, ['\0'; 0], "{file}");
    }
}

/// A recording of a walk that has such names in all of its texts.
fn recording() -> String {
    let lines = String::from_utf8(content(WALKS)).unwrap();
    let nasty = |value: &mut Value| {
        if let Value::Object(fields) = value {
            for name in ["runtime", "os", "name", "note", "module", "path", "symbol"] {
                if let Some(Value::String(text)) = fields.get_mut(name) {
                    text.push_str(NASTY);
                }
            }
        }
    };
    let lines = lines.lines().map(|line| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        nasty(&mut value);
        value.to_string() + "\n"
    });
    lines.collect()
}

/// XML has no control characters, not even as references: a text has them in words.
#[test]
fn junit_is_xml_for_any_name() {
    let folder = Folder::new();
    let name =
        if cfg!(windows) { "n\u{202e}&'.kdl" } else { "n\u{1b}]0;x\u{7}\u{9b}\u{202e}<&\">'.kdl" };
    let path =
        folder.write(name, text().replace("survives", "survives everything=#true").as_bytes());
    let answer = folder.clrsim(&["run", &path, "--format", "junit"]);
    assert_eq!(answer.code, 1, "{}", answer.text());
    let is_xml = |c: char| matches!(c, '\t' | '\n' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(answer.out.chars().all(is_xml));
    assert!(answer.out.contains("\\u{202e}"), "{}", answer.out);
    assert_eq!(escaped(&answer), ['\0'; 0]);
    // Each < begins a tag of the format, and each & a reference.
    for tag in answer.out.split('<').skip(1) {
        let name: String = tag.chars().take_while(|c| !matches!(c, ' ' | '>' | '/')).collect();
        let known = ["?xml", "testsuites", "testsuite", "testcase", "failure", "skipped", ""];
        assert!(known.contains(&&*name), "{tag}");
    }
    for reference in answer.out.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;"];
        assert!(known.iter().any(|name| reference.starts_with(name)), "{reference}");
    }
}

/// What is printed for a shell is one command there, whatever a file is called.
#[cfg(unix)]
#[test]
fn lines_to_paste_are_quoted() {
    let folder = Folder::new();
    let text = fixture("gallery/hazards/h-08-callback-takes-a-lock.kdl");
    let path = folder.write("a $(touch x) 'b'.kdl", text);
    let quoted = "'DIR/a $(touch x) '\\''b'\\''.kdl";
    let answer = folder.clrsim(&["explore", &path, "--on", "net8-windows"]);
    assert!(
        answer.out.contains(&format!("again: clrsim replay {quoted}@net8-windows:clr1:")),
        "{}",
        answer.out
    );
    let forged = folder.clrsim(&["show", "a\nerror: b"]);
    assert!(forged.err.starts_with("error: a\\u{a}error: b: no such file"), "{}", forged.err);
    let new = folder.clrsim(&["new", &folder.path("a;b.kdl")]);
    assert!(new.out.contains("  clrsim run 'DIR/a;b.kdl'  "), "{}", new.out);
}

/// A text may want more interleavings than anybody has time for.
#[test]
fn a_search_that_does_not_end_fails_by_name() {
    let name = "gallery/hazards/h-08-callback-takes-a-lock-avoided.kdl";
    let answer = clrsim(&["run", "--filter", name, "--timeout", "0", "--on", "net8-windows"]);
    assert_eq!(answer.code, 1, "{}", answer.text());
    assert!(answer.out.contains("the search had not ended in its time, after "), "{}", answer.out);
    assert!(answer.out.contains(name), "{}", answer.out);
    let folder = Folder::new();
    let path = folder.write("avoided.kdl", fixture(name));
    let blessed = clrsim(&["run", &path, "--bless", "--timeout", "0", "--on", "net8-windows"]);
    assert_eq!(blessed.code, 2, "{}", blessed.text());
    assert!(blessed.err.contains("the search had not ended in its time"), "{}", blessed.err);
}

/// Each verb that searches takes a time, and says which search has not ended in it.
#[test]
fn verbs_that_search_end_in_their_time() {
    let avoided = "gallery/hazards/h-08-callback-takes-a-lock-avoided.kdl";
    let two = ["--timeout", "0", "--on", "net8-windows,net10-windows"];
    for jobs in ["1", "3"] {
        let answer = clrsim(&[&["explore", avoided, "--jobs", jobs][..], &two].concat());
        assert_eq!(answer.code, 1, "{}", answer.text());
        for on in ["net8-windows", "net10-windows"] {
            let line = answer.out.lines().find(|line| line.contains(&format!(" {on} ")));
            let line = line.unwrap_or_else(|| panic!("{}", answer.out));
            assert!(line.contains("has not ended in its time, after "), "{line}");
        }
        assert_eq!(answer.out.matches("to go on:").count(), 2, "{}", answer.out);
        let json = [&["explore", avoided, "--json", "--jobs", jobs][..], &two].concat();
        let answer = clrsim(&json);
        assert_eq!(answer.out.matches("\"timed_out\":true").count(), 2, "{}", answer.out);
        assert!(!answer.out.contains("\"interrupted\":true"), "{}", answer.out);
    }
    let folder = Folder::new();
    let path = folder.write("avoided.kdl", fixture(avoided));
    let small = folder.path("small.kdl");
    for command in [&["minimize", &path, "-o", &small][..], &["replay", &path, "--draw"]] {
        let answer =
            folder.clrsim(&[command, &["--timeout", "0", "--on", "net8-windows"]].concat());
        assert_eq!(answer.code, 2, "{}", answer.text());
        assert!(answer.err.contains("the search on net8-windows has not ended"), "{}", answer.err);
        assert!(answer.err.contains("avoided.kdl"), "{}", answer.err);
    }
    let stack = folder.write("stack.kdl", fixture("gallery/seeds/c-039-stubs.kdl"));
    let answer =
        folder.clrsim(&["minimize", &stack, "-o", &small, "--clause", "C-039", "--timeout", "0"]);
    assert_eq!(answer.code, 3, "what was not finished is not green: {}", answer.text());
    assert!(answer.out.contains("out of time: DIR/small.kdl is what was found"), "{}", answer.out);
}

/// The rest of a text that is too long is not quoted, nor is a block that does not end.
#[test]
fn an_error_quotes_a_few_lines() {
    let folder = Folder::new();
    let long = "function \"F\" kind=\"jit\"\n".repeat(100_000);
    let path = folder.write("long.kdl", long.as_bytes());
    let open = format!("function \"main\" {{ body {{\n{}", "work 1\n".repeat(5000));
    let block = folder.write("open.kdl", open.as_bytes());
    let text = folder.write("text.kdl", format!("shows \"a\n{}", "b\n".repeat(5000)).as_bytes());
    for path in [path, block, text] {
        for command in [&["fmt", "--check"][..], &["run"], &["list"]] {
            let answer = clrsim(&[command, &[&path]].concat());
            assert!(answer.code > 0, "{command:?} {path}");
            assert!(
                answer.err.len() + answer.out.len() < 8000,
                "{command:?} {path}: {}",
                answer.err.len()
            );
        }
    }
}
