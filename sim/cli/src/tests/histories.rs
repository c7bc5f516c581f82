//! Searching, replaying and drawing interleavings.

use super::*;

/// The callback of a walk waits for a lock that the walked thread owns in a callback.
pub(super) const CALLBACK: &str = include_str!("texts/callback.kdl");

/// Two locks in different order, and a rule that is broken without harm.
pub(super) const CROSSED: &str = "function \"App.Main\" kind=\"jit\" { body { work 9 } }
profiler {
    lock \"a\" \"b\"
    thread \"x\" { resume \"main\"; lock \"a\" { lock \"b\" } }
    thread \"y\" { lock \"b\" { lock \"a\" } }
}
";

/// A lock is taken while a thread is suspended, which does no harm.
const BROKEN: &str = "function \"App.Main\" kind=\"jit\" { body { work 9 } }
profiler {
    lock \"a\"
    thread \"sampler\" { suspend \"main\" { lock \"a\" } }
}
";

/// Returns the arguments of the printed command that replays an interleaving.
fn again(text: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.split_once("again: clrsim ")).unwrap().1;
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs the printed command, which must fail, and returns its arguments.
fn fails_again(text: &str) -> Vec<String> {
    let args = again(text);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let answer = super::clrsim(&args);
    assert_eq!(answer.code, 1, "{args:?}: {}", answer.text());
    let timeline = super::clrsim(&[&args[..], &["--draw"]].concat());
    assert_eq!(timeline.code, 0, "{args:?}: {}", timeline.text());
    let last = timeline.out.lines().last().unwrap().to_owned();
    assert_eq!(last, args.join(" "));
    args[1..].iter().map(|arg| (*arg).to_owned()).filter(|arg| arg.starts_with('-')).collect()
}

/// Returns the string of the first failed interleaving on a runtime.
fn failing(path: &str, runtime: &str) -> String {
    let answer = super::clrsim(&["explore", path, "--on", runtime, "--json"]);
    let line: Value = serde_json::from_str(answer.out.lines().next().unwrap()).unwrap();
    line["replay"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_history_that_fails_is_printed() {
    let folder = Folder::new();
    let path = folder.write("callback.kdl", CALLBACK.as_bytes());
    insta::assert_snapshot!("explore", folder.clrsim(&["explore", &path]).text());
    let json = folder.clrsim(&["explore", &path, "--on", "net10-windows", "--json"]);
    insta::assert_snapshot!("explore_json", json.text());
    let safe = CALLBACK.replace("snapshot \"main\" { lock \"names\" }", "snapshot \"main\"");
    let path = folder.write("safe.kdl", safe.as_bytes());
    let few = ["explore", &path, "--on", "net10-windows", "--schedules", "50"];
    insta::assert_snapshot!("survives", folder.clrsim(&few).text());
    let all = ["--strategy", "exhaustive", "--preemptions", "1", "--schedules", "20000"];
    let all = [&few[..4], &all].concat();
    let all = folder.clrsim(&all).out;
    assert!(all.contains(", which are all with at most 1 preemptions"), "{all}");
}

/// The result of a search depends neither on the number of threads nor on how the interleavings are
/// shared.
#[test]
fn the_number_of_threads_does_not_show() {
    let folder = Folder::new();
    // Found late: three threads in a ring.
    let text = "function \"App.Main\" kind=\"jit\" { body { work 9 } }
profiler {
    lock \"a\" \"b\" \"c\" \"d\"
    thread \"x\" { repeat 3 { lock \"a\" { sleep 1 } }; lock \"a\" { lock \"b\" } }
    thread \"y\" { repeat 3 { lock \"b\" { sleep 1 } }; lock \"b\" { lock \"c\" } }
    thread \"z\" { repeat 3 { lock \"c\" { sleep 1 } }; lock \"c\" { lock \"d\" } }
    thread \"w\" { repeat 3 { lock \"d\" { sleep 1 } }; lock \"d\" { lock \"a\" } }
}
";
    let path = folder.write("ring.kdl", text.as_bytes());
    for strategy in ["random", "pct"] {
        let with = |jobs: &str| {
            let args = ["--on", "net10-windows", "--schedules", "20000", "--json", "--jobs", jobs];
            let args = [&["explore", &path, "--strategy", strategy][..], &args].concat();
            folder.clrsim(&args)
        };
        let one = with("1");
        assert_eq!(one, with("3"), "{strategy}");
        let line: Value = serde_json::from_str(&one.out).unwrap();
        assert_eq!(line["ends"], "deadlock", "{strategy}");
        // The same interleaving is found by a search that begins with it.
        let number = line["number"].as_u64().unwrap();
        let first = number.to_string();
        let args = ["--on", "net10-windows", "--schedules", "1", "--json", "--first", &first];
        let args = [&["explore", &path, "--strategy", strategy][..], &args].concat();
        let again: Value = serde_json::from_str(&folder.clrsim(&args).out).unwrap();
        assert_eq!((&again["replay"], &again["number"]), (&line["replay"], &line["number"]));
    }
}

#[test]
fn a_history_is_replayed_by_its_string() {
    let folder = Folder::new();
    let path = folder.write("callback.kdl", CALLBACK.as_bytes());
    let string = failing(&path, "net10-windows");
    insta::assert_snapshot!("replay", folder.clrsim(&["replay", &string]).text());
    let (name, _) = string.rsplit_once("clr1:").unwrap();
    let well = folder.clrsim(&["replay", &format!("{name}clr1:")]);
    assert_eq!(well.code, 0, "{}", well.text());
    assert!(well.out.contains("ends well"), "{}", well.out);
    let mut refusals = String::new();
    for wrong in [
        format!("{name}clr1:9999b"),
        format!("{name}clr1:b"),
        path,
        format!("{name}clr2:1b"),
        "nowhere.kdl@net10-windows:clr1:".to_owned(),
        "a.kdl@net11:clr1:".to_owned(),
    ] {
        refusals += &folder.clrsim(&["replay", &wrong]).text();
    }
    insta::assert_snapshot!("replay_refusals", refusals);
}

/// The printed command has the flags that it needs, whatever flags found the interleaving.
#[test]
fn the_printed_arguments_replay_the_history() {
    let folder = Folder::new();
    let path = folder.write("broken.kdl", BROKEN.as_bytes());
    let on = ["--on", "net10-windows"];
    let explore =
        |path: &str, flags: &[&str]| super::clrsim(&[&["explore", path], &on[..], flags].concat());
    let survives = explore(&path, &[]);
    assert_eq!(survives.code, 0, "{}", survives.out);
    assert!(survives.out.contains(" sampler breaks a rule: "), "{}", survives.out);
    assert_eq!(fails_again(&explore(&path, &["--rules"]).out), ["--rules"]);
    let both = explore(&path, &["--rules", "--instructions"]);
    assert_eq!(fails_again(&both.out), ["--rules", "--instructions"]);
    for (flags, failing) in [(&[][..], "/broken/0"), (&["--rules"][..], "")] {
        let line = explore(&path, &[&["--json"], flags].concat()).out;
        let line: Value = serde_json::from_str(&line).unwrap();
        let found = line.pointer(failing).unwrap();
        assert_eq!(found["replay_flags"], serde_json::json!(["--rules"]), "{line}");
        let replay = found["replay"].as_str().unwrap();
        assert_eq!(super::clrsim(&["replay", replay]).code, 0);
        assert_eq!(super::clrsim(&["replay", "--rules", replay]).code, 1);
    }
    // A path of several words is one argument.
    let spaced = folder.write("a b/broken.kdl", BROKEN.as_bytes());
    let spaced = explore(&spaced, &["--rules"]).out;
    let quote = if cfg!(windows) { '"' } else { '\'' };
    assert!(spaced.contains(&format!("clrsim replay --rules {quote}")), "{spaced}");
    // A text that says so itself.
    let says = format!("{BROKEN}explore rules=#true {{ expect {{ survives }} }}\n");
    let says = folder.write("says.kdl", says.as_bytes());
    assert_eq!(fails_again(&explore(&says, &[]).out), [""; 0]);
    let well = super::clrsim(&["replay", "--draw", "--rules=false", &says]);
    let last = well.out.lines().last().unwrap();
    assert!(last.contains('@') && last.contains(":clr1::"), "{}", well.out);
}

/// An interleaving of another explore node than the first, which `replay` uses.
#[test]
fn the_arguments_that_a_run_prints_replay_the_history() {
    let folder = Folder::new();
    let survives = "{ expect on=\"net10-windows\" { survives } }";
    let run = |name: &str, first: &str, second: &str| {
        let text = format!("{CROSSED}explore {first} {survives}\nexplore {second} {survives}\n");
        let path = folder.write(name, text.as_bytes());
        let answer = super::clrsim(&["run", &path]);
        assert_eq!(answer.code, 1, "{}", answer.text());
        let second = answer.out.split(" search 1\n").nth(1).unwrap_or_default().to_owned();
        fails_again(&second)
    };
    let none: &[&str] = &[];
    assert_eq!(run("same.kdl", "", "seed=2"), none);
    assert_eq!(run("more.kdl", "", "instructions=#true"), ["--instructions"]);
    assert_eq!(run("fewer.kdl", "instructions=#true", ""), ["--instructions=false"]);
    let text = format!("{BROKEN}explore {survives}\nexplore rules=#true {survives}\n");
    let path = folder.write("rules.kdl", text.as_bytes());
    assert_eq!(fails_again(&super::clrsim(&["run", &path]).out), ["--rules"]);
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let folder = Folder::new();
    let path = folder.write("callback.kdl", CALLBACK.as_bytes());
    let mut refusals = String::new();
    for args in [
        &["--depth", "4"][..],
        &["--depth", "256", "--strategy", "pct"],
        &["--preemptions", "1"],
        &["--preemptions", "256", "--strategy", "exhaustive"],
        &["--first", "1", "--strategy", "exhaustive"],
        &["--first", "1", "--strategy", "guided"],
        &["--first", "18446744073709551615"],
        &["--minimize", &path],
        &["--minimize", &folder.path("nowhere/small.kdl")],
    ] {
        let answer = folder.clrsim(&[&["explore", &path], args].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{args:?}");
        refusals += &answer.err;
    }
    insta::assert_snapshot!("explore_refusals", refusals);
}

#[test]
fn a_history_is_printed_as_a_timeline() {
    let folder = Folder::new();
    let path = folder.write("callback.kdl", CALLBACK.as_bytes());
    let drawn = folder.clrsim(&["replay", "--draw", &path, "--on", "net10-windows"]);
    insta::assert_snapshot!("timeline", drawn.text());
    let page = folder.path("page.html");
    let written = folder.clrsim(&["replay", &path, "--html", &page]);
    assert_eq!(written.code, 0, "{}", written.text());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("JITCompilationFinished"));
}

#[test]
fn a_page_replaces_nothing_but_a_page() {
    let folder = Folder::new();
    let path = folder.write("callback.kdl", CALLBACK.as_bytes());
    let page = folder.path("page.html");
    for _ in 0..2 {
        assert_eq!(folder.clrsim(&["replay", &path, "--html", &page]).code, 0);
    }
    let over_text = folder.clrsim(&["replay", &path, "--html", &path]);
    assert_eq!(over_text.code, 2);
    insta::assert_snapshot!(over_text.err, @"error: DIR/callback.kdl: is the input, which is not replaced, not even with --force");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), CALLBACK);
    let other = folder.write("other.html", b"<!doctype html><p>mine");
    assert_eq!(folder.clrsim(&["replay", &path, "--html", &other]).code, 2);
    assert_eq!(folder.clrsim(&["replay", &path, "--html", &other, "--force"]).code, 0);
    assert!(std::fs::read_to_string(other).unwrap().contains("JITCompilationFinished"));
}

/// No command writes over its input, however the path is written.
#[test]
fn the_input_is_never_replaced() {
    let folder = Folder::new();
    let text = folder.write("callback.kdl", CALLBACK.as_bytes());
    let detour = folder.path("./callback.kdl");
    for command in [
        &["minimize", &text, "--on", "net10-windows", "--force", "-o", &text][..],
        &["explore", &text, "--on", "net10-windows", "--force", "--minimize", &detour],
        &["replay", &text, "--force", "--html", &text],
        &["replay", &text, "--force", "--html", &detour],
    ] {
        let refused = folder.clrsim(command);
        assert_eq!(refused.code, 2, "{command:?}: {}", refused.text());
        assert!(refused.err.contains("is the input"), "{command:?}: {}", refused.err);
        assert_eq!(std::fs::read_to_string(&text).unwrap(), CALLBACK, "{command:?}");
    }
    let walks = folder.write("some.kdl", super::fixture(super::WALKS));
    let over = folder.clrsim(&["import", &walks, "--walk", "1", "--force", "-o", &walks]);
    assert_eq!(over.code, 2, "{}", over.text());
    assert_eq!(std::fs::read(&walks).unwrap(), super::fixture(super::WALKS));
}

/// A search that keeps going prints each fault once, with the first interleaving that has it.
#[test]
fn a_search_keeps_going_after_a_failure() {
    let folder = Folder::new();
    let text = "function \"App.Main\" kind=\"jit\" { body { work 9 } }
profiler {
    lock \"a\" \"b\" \"c\" \"d\" \"e\"
    thread \"v\" { lock \"a\" { lock \"b\" } }
    thread \"w\" { lock \"b\" { lock \"a\" } }
    thread \"x\" { lock \"c\" { lock \"d\" } }
    thread \"y\" { lock \"d\" { lock \"e\" } }
    thread \"z\" { lock \"e\" { lock \"c\" } }
}
";
    let path = folder.write("two.kdl", text.as_bytes());
    let args = ["explore", &path, "--on", "net10-windows", "--schedules", "600", "--json"];
    let search = |more: &[&str]| -> Value {
        let answer = folder.clrsim(&[&args[..], more].concat());
        assert_eq!(answer.code, 1, "{}", answer.text());
        serde_json::from_str(&answer.out).unwrap()
    };
    let (first, all) = (search(&[]), search(&["--keep-going"]));
    assert_eq!(first["number"], all["number"]);
    assert_eq!(first["key"], all["key"]);
    assert_eq!((&first["times"], &first["further"]), (&Value::from(1), &Value::Array(vec![])));
    assert_eq!(all["schedules"], 600);
    let further = all["further"].as_array().unwrap();
    assert!(!further.is_empty());
    let mut keys: Vec<_> = further.iter().map(|one| one["key"].as_str().unwrap()).collect();
    keys.push(all["key"].as_str().unwrap());
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "each once");
    assert!(all["times"].as_u64().unwrap() > 1);
    // The result does not depend on the number of threads, and each interleaving can be replayed.
    assert_eq!(all, search(&["--keep-going", "--jobs", "1"]));
    let replay = folder.path("").trim_end_matches(['/', '\\']).replace('\\', "/");
    for one in further {
        let replay = one["replay"].as_str().unwrap().replace("DIR", &replay);
        let again = folder.clrsim(&["replay", &replay, "--json"]);
        let again: Value = serde_json::from_str(&again.out).unwrap();
        assert_eq!(again["key"], one["key"]);
    }
    let shown = folder.clrsim(&[&args[..6], &["--keep-going"]].concat()).out;
    assert_eq!(shown.matches("again: ").count(), count, "{shown}");
}

/// Each command that writes a file keeps the one that is there, and says how it is replaced.
#[test]
fn files_are_replaced_by_force_alone() {
    let folder = Folder::new();
    let text = folder.write("callback.kdl", CALLBACK.as_bytes());
    let commands: &[&[&str]] = &[
        &["new", "FILE"],
        &["generate", "--seed", "1", "-o", "FILE"],
        &["minimize", &text, "--on", "net10-windows", "-o", "FILE"],
        &["explore", &text, "--on", "net10-windows", "--minimize", "FILE"],
        &["import", super::WALKS, "--walk", "1", "-o", "FILE"],
        &["replay", &text, "--html", "FILE"],
    ];
    for command in commands {
        let file = folder.write("there.kdl", b"// mine");
        let arguments: Vec<_> =
            command.iter().map(|one| if *one == "FILE" { file.as_str() } else { one }).collect();
        let refused = folder.clrsim(&arguments);
        assert_eq!(refused.code, 2, "{command:?}: {}", refused.text());
        assert_eq!(
            refused.err, "error: DIR/there.kdl: is there already; --force replaces it\n",
            "{command:?}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "// mine", "{command:?}");
        let replaced = folder.clrsim(&[&arguments[..], &["--force"]].concat());
        assert!(replaced.code < 2, "{command:?}: {}", replaced.text());
        assert_ne!(std::fs::read_to_string(&file).unwrap(), "// mine", "{command:?}");
    }
}

#[test]
fn a_history_is_made_smaller() {
    let folder = Folder::new();
    let path = folder.write("callback.kdl", CALLBACK.as_bytes());
    let small = folder.path("small.kdl");
    let args = ["explore", &path, "--on", "net10-windows", "--minimize", &small];
    assert_eq!(folder.clrsim(&args).code, 1);
    insta::assert_snapshot!("smaller", std::fs::read_to_string(&small).unwrap());
    let well = folder.write("well.kdl", CALLBACK.replace("lock \"names\"", "").as_bytes());
    let none = folder.path("none.kdl");
    let answer = folder.clrsim(&["explore", &well, "--on", "net10-windows", "--minimize", &none]);
    assert!(
        answer.out.ends_with("DIR/none.kdl is not written: no interleaving fails\n"),
        "{}",
        answer.out
    );
    // The search of the written text finds the interleaving, and so does the string.
    assert_eq!(folder.clrsim(&["run", &small]).code, 0);
    let other = folder.path("other.kdl");
    assert_eq!(folder.clrsim(&["minimize", &path, "-o", &other]).code, 0);
}

#[test]
fn a_replay_says_that_its_text_was_edited() {
    let folder = Folder::new();
    let path = folder.write("crossed.kdl", CROSSED.as_bytes());
    let string = failing(&path, "net10-windows");
    let (old, digest) = string.rsplit_once(':').unwrap();
    let replay = |string: &str| {
        let answer = folder.clrsim(&["replay", string]);
        assert!(answer.code < 2, "{}", answer.text());
        let json = folder.clrsim(&["replay", string, "--json"]);
        let json: Value = serde_json::from_str(&json.out).unwrap();
        (answer.err, json["text_edited"].clone())
    };
    assert_eq!(replay(&string), (String::new(), Value::Bool(false)));
    assert_eq!(replay(old), (String::new(), Value::Null));
    // Layout, comments and expectations do not count.
    let same = format!("// Twice.\n\n{CROSSED}\nexplore {{ expect {{ survives }} }}\n");
    folder.write("crossed.kdl", same.as_bytes());
    assert_eq!(replay(&string), (String::new(), Value::Bool(false)));
    folder.write("crossed.kdl", CROSSED.replace("work 9", "work 8").as_bytes());
    let note = "note: DIR/crossed.kdl: the scenario was edited after this interleaving was found; this is \
                another one\n";
    assert_eq!(replay(&string), (note.to_owned(), Value::Bool(true)));
    assert_eq!(replay(old), (String::new(), Value::Null));
    let timeline = folder.clrsim(&["replay", "--draw", &string]);
    assert_eq!((timeline.code, &*timeline.err), (0, note));
    assert!(!timeline.out.contains(digest), "{}", timeline.out);
    let lost = folder.clrsim(&["replay", &string.replace("clr1:", "clr1:9999b")]);
    assert_eq!(lost.code, 2, "{}", lost.text());
    let wrong = folder.clrsim(&["replay", &format!("{old}:5D0C71E2")]);
    assert_eq!(wrong.code, 2, "{}", wrong.text());
    assert!(wrong.err.contains("8 hexadecimal digits"), "{}", wrong.err);
}
