//! `schema.md` describes the JSON output.

use super::*;
use crate::tests::fields::{described, fields};

fn printed(folder: &Folder, args: &[&str]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for line in folder.clrsim(args).out.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["schema"], "clrsim/1", "{line}");
        fields(&object, &mut all);
    }
    assert!(!all.is_empty(), "{args:?}");
    all
}

/// Every printed field is described, and every described field is printed.
#[test]
fn every_field_is_described() {
    let folder = Folder::new();
    let wrong = BARRIER.replace("\"E_NOTIMPL\"", "\"S_OK\"");
    let wrong = folder.write("wrong/barrier.kdl", wrong.as_bytes());
    folder.write(
        "wrong/unreached.kdl",
        ALLOCATION.replace("Allocated\"", "Allocated\" visit=2").as_bytes(),
    );
    let program = String::from_utf8(fixture("programs/alloca.kdl").to_vec()).unwrap();
    let program = program.replace("frame \"main\" trust=\"body\"", "frame \"main\" rbx=1");
    folder.write("wrong/walk.kdl", program.as_bytes());
    let right = folder.write("right.kdl", BARRIER.as_bytes());
    // A thread that waits for ever beside two whose locks cross.
    let history = super::histories::CROSSED.replace(
        "    thread \"x\"",
        "    event \"never\"\n    thread \"idle\" { wait \"never\" }\n    thread \"x\"",
    );
    let history = folder.write("history.kdl", history.as_bytes());
    let all = folder.path("wrong");
    for (section, args) in [
        ("matrix", &["matrix", "--json", &right][..]),
        ("compare", &["compare", "--json", &right]),
        ("list", &["list", "--json"]),
        (
            "explore",
            &["explore", "--json", "--on", "windows", "--strategy", "exhaustive", &history],
        ),
        (
            "explore --shard",
            &[
                "explore",
                "--json",
                "--on",
                "windows",
                "--strategy",
                "exhaustive",
                "--keep-going",
                "--shard",
                "1/1",
                &history,
            ],
        ),
        // A clause, and a rule of another kind.
        ("rules", &["rules", "--json", "C-044", "H-08"]),
        ("runtimes", &["runtimes", "--json", "net8"]),
        ("runtimes, compared", &["runtimes", "--json", "--diff", "net9-unix", "net10-unix"]),
        ("explain, of a text", &["explain", "--json", &wrong]),
        ("lint", &["lint", "--json", "win64/img/gcc_O2.dll"]),
        ("gen words", &["gen", "words", "--json", "SIGUSR1"]),
        ("run --bless", &["run", "--bless", "--dry-run", "--json", &wrong]),
    ] {
        assert_eq!(printed(&folder, args), described(section), "{section}");
    }
    // Fields that are described elsewhere: every printed one is described there.
    let said = |what: &str, printed: BTreeSet<String>, in_page: &str| {
        let is_word = |name: &String| {
            let mut words = in_page.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
            name == "schema" || words.any(|word| word == name)
        };
        let missing: Vec<_> = printed.into_iter().filter(|name| !is_word(name)).collect();
        assert_eq!(missing, [""; 0], "{what}");
    };
    let help = |command: &str| {
        let help = super::clrsim(&[command, "--help"]).out;
        help.split("JSON").skip(1).collect::<String>()
    };
    let stacks = ["trace", "programs/interrupted_epilogue.kdl", "--json", "--stack"];
    said("trace", printed(&folder, &stacks), &help("trace"));
    said(
        "trace",
        printed(&folder, &["trace", "programs/tail_call.kdl", "--json", "--limit", "1"]),
        &help("trace"),
    );
    let walk = ["explain", "clr/win31-async-alloc.walks.jsonl.gz", "--walk", "12", "--json"];
    said("explain", printed(&folder, &walk), &help("explain"));
    let fields_of_run: Vec<_> = described("run").into_iter().collect();
    let dump = printed(&folder, &["show", "win64/img/gcc_O2.dll", "--json"]);
    said("show", dump, &fields_of_run.join(" "));
    let unix = folder.write("unix.kdl", format!("{}thread \"t\"", super::images::UNIX).as_bytes());
    let unix_traced = printed(&folder, &["trace", &unix, "--cfi", "--json"]);
    let is_register = |name: &String| Gpr::ALL.iter().any(|register| register.name() == name);
    let but_registers = |names: BTreeSet<String>| {
        names.into_iter().filter(|name| !is_register(name)).collect::<BTreeSet<_>>()
    };
    said("trace", but_registers(unix_traced), &help("trace"));
    assert_eq!(folder.clrsim(&["emit", &unix, "-o", &folder.path("out")]).code, 0);
    let elf = printed(&folder, &["show", &folder.path("out/libnative.so"), "--json"]);
    said("show", but_registers(elf), &help("show"));
    let run = described("run");
    for args in [&["run", "--json", &all][..], &["run", "--json", "--filter", "clr/"]] {
        let missing: Vec<_> = printed(&folder, args).difference(&run).cloned().collect();
        assert_eq!(missing, [""; 0], "{args:?}");
    }
    let [all, errors] = recorded();
    assert_eq!(all, run);
    assert_eq!(errors, described("errors"));
}

/// Returns the fields of recorded results, and those of recorded errors.
fn recorded() -> [BTreeSet<String>; 2] {
    let recorded = super::snapshots_of(&[
        include_str!("snapshots/clrsim_tool__tests__run__failure_json.snap"),
        include_str!("snapshots/clrsim_tool__tests__programs__failures_json.snap"),
        include_str!("snapshots/clrsim_tool__tests__recordings__differences_json.snap"),
        include_str!("snapshots/clrsim_tool__tests__recordings__skipped_json.snap"),
        include_str!("snapshots/clrsim_tool__tests__texts__failures_json.snap"),
        include_str!("snapshots/clrsim_tool__tests__images__version_3_json.snap"),
    ]);
    let (mut all, mut errors) = (BTreeSet::new(), BTreeSet::new());
    for line in recorded {
        let object: Value = serde_json::from_str(line).unwrap();
        let is_error = object["kind"] == "diagnostic";
        fields(&object, if is_error { &mut errors } else { &mut all });
    }
    [all, errors]
}

fn schema_of(what: &str) -> Value {
    serde_json::from_str(&super::printed("gen", &["schema", what])).unwrap()
}

/// Returns the validator of a printed schema, which is one.
fn validator(what: &str) -> jsonschema::Validator {
    let schema = schema_of(what);
    assert!(jsonschema::meta::is_valid(&schema));
    jsonschema::validator_for(&schema).unwrap()
}

/// The printed schema accepts what all commands print, and nothing with another field.
#[test]
fn output_is_as_its_schema_says() {
    let schema = validator("output");
    let folder = Folder::new();
    let right = folder.write("right.kdl", BARRIER.as_bytes());
    let wrong = BARRIER.replace("\"E_NOTIMPL\"", "\"S_OK\"");
    let wrong = folder.write("wrong.kdl", wrong.as_bytes());
    let history = folder.write("history.kdl", super::histories::CROSSED.as_bytes());
    let searched = folder.clrsim(&["explore", "--json", "--on", "net8-windows", &history]);
    let failed: Value = serde_json::from_str(searched.out.lines().next().unwrap()).unwrap();
    let replay = failed["replay"]
        .as_str()
        .unwrap()
        .replace("DIR", folder.path("").trim_end_matches(['/', '\\']));
    let program = String::from_utf8(fixture("programs/alloca.kdl").to_vec()).unwrap();
    let program = program.replace("frame \"main\" trust=\"body\"", "frame \"main\" rbx=1");
    let walk = folder.write("walk.kdl", program.as_bytes());
    let bless = ["run", "--bless", "--dry-run", "--json", &wrong];
    let mut count = 0;
    for args in [
        &["run", "--json", &right, &wrong, &walk, "nowhere.kdl"][..],
        &["run", "--json", "--limit", "2", &history],
        &["run", "--json", WALKS],
        &["run", "--json", "win64/vec/gcc_O2.vec.gz"],
        &bless,
        &["matrix", "--json", &right],
        &["matrix", "--json", "nowhere.kdl"],
        &["matrix", "--json", "--nope"],
        &["nonsense", "--json"],
        &["compare", "--json", &right],
        &["list", "--json", "lock"],
        &["explain", "--json", &right],
        &["explain", "--json", WALKS],
        &[
            "explore",
            "--json",
            "--on",
            "net8-windows",
            "--keep-going",
            "--schedules",
            "50",
            &history,
        ],
        &["explore", "--json", "--on", "net8-windows", "--schedules", "5", &right],
        &["explore", "--json", "--on", "net8-windows", "--shard", "1/2", &history],
        &["replay", "--json", &replay],
        &["trace", "--json", "programs/tail_call.kdl"],
        &["trace", "--json", "--stack", "--cfi", "--limit", "9", "programs/alloca.kdl"],
        &["show", "--json", "win64/img/gcc_O2.dll"],
        &["rules", "--json"],
        &["rules", "--json", "C-044", "H-08"],
        &["runtimes", "--json", "net8"],
        &["runtimes", "--json", "--diff", "net9-unix", "net10-unix"],
        &["lint", "--json", "win64/img/gcc_O2.dll"],
        &["gen", "words", "--json"],
    ] {
        let before = count;
        for line in folder.clrsim(args).out.lines() {
            let mut object: Value =
                serde_json::from_str(line).unwrap_or_else(|_| panic!("{args:?}: {line}"));
            assert!(schema.is_valid(&object), "{args:?}: {line}");
            object["no_such_field"] = Value::Null;
            assert!(!schema.is_valid(&object), "{args:?}");
            count += 1;
        }
        assert!(count > before, "{args:?} prints nothing");
    }
}

/// The schema of texts knows the nodes of the grammar with their values.
#[test]
fn nodes_are_as_their_schema_says() {
    let schema = validator("text");
    let snapshot = |by: Value, frame: &str| {
        serde_json::json!([
            { "name": "function", "arguments": ["App.Main"], "properties": { "kind": "jit" },
              "children": [{ "name": "body", "children": [{ "name": "new" }] }] },
            { "name": "stop", "properties": { "at": "App.Main", "instruction": 1 }, "children": [
                { "name": "snapshot", "properties": { "by": by }, "children": [
                    { "name": "expect", "properties": { "on": "windows" }, "children": [
                        { "name": frame, "arguments": ["App.Main"], "properties": { "stale": true } },
                        { "name": "result", "arguments": ["S_OK"] },
                    ] },
                ] },
            ] },
        ])
    };
    let accepted = |value: &Value| schema.is_valid(value);
    assert!(accepted(&snapshot("native-walker".into(), "frame")));
    assert!(!accepted(&snapshot(7.into(), "frame")), "a number");
    assert!(!accepted(&snapshot("native-walker".into(), "farme")), "another node");
    assert!(!accepted(&serde_json::json!([{ "name": "function" }])), "no name");
    assert!(!accepted(&serde_json::json!([{ "name": "hooks", "arguments": ["quick"] }])), "a word");
    assert!(accepted(&serde_json::json!([{ "name": "hooks", "arguments": ["slow"] }])));
}
