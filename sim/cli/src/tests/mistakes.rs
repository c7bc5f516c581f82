//! Mistakes that authors of texts make, each with what the tool says: all of them in one snapshot, to be
//! read as a page.

use super::*;
use clr_scenario::ProblemKind;

/// Codes of mistakes that the page of the trial has (`people.rs`).
const IN_TRIAL: [&str; 2] = ["empty", "function-name"];

/// A mistake: what it is, and a text with it.
type Mistake = (&'static str, &'static str);

/// A program around a mistake.
const MAIN: &str = "function \"App.Main\" kind=\"jit\" { body { new } }\n";
/// A stack around a mistake.
const STACK: &str = "stack { jit \"App.Main+0x20\" rsp=0x1fe000 }\n";

/// Mistakes in whole texts.
const TEXTS: &[Mistake] = &[
    ("a file of another kind", include_str!("mistakes/foreign.toml")),
    ("a string without an end", "function \"App.Main kind=\"jit\"\nstop \"end\"\n"),
    ("a block without an end", "function \"A\" { body {\nstop \"end\"\n"),
    ("a comma between arguments", "function \"A\" { push \"rbx\", \"rsi\" }\nstop \"end\"\n"),
    ("a word instead of a keyword", "thread \"t\" gc=true\nfunction \"A\"\nstop \"end\"\n"),
    (
        "a stack beside a program",
        "function \"A\"\nstack { jit \"B+0x2\" rsp=0x1fe000 }\nsnapshot\n",
    ),
    ("a snapshot of nothing", "function \"A\"\nsnapshot { expect { result \"S_OK\" } }\n"),
    ("nothing that is checked, in a program", "function \"A\"\n"),
    ("nothing that is checked, in a stack", STACK),
    ("a misspelled node", "fuction \"A\"\nstop \"end\"\n"),
    ("a node that is there twice", "shows \"one\"\nshows \"two\"\nfunction \"A\"\nstop \"end\"\n"),
    ("a program that breaks a rule", "function \"A\" { push \"rbx\" \"rbx\" }\nstop \"end\"\n"),
    ("two threads of a name", "function \"A\"\nthread \"t\"\nthread \"t\"\nstop \"end\"\n"),
    (
        "a thread that starts in a handler",
        "function \"A\"\nfunction \"H\" { entry \"interrupt\" }\nthread \"t\" start=\"H\"\nstop \"end\"\n",
    ),
    (
        "an inlined function that returns early",
        "function \"A\" kind=\"jit\" { body { call \"B\"; }; }\nfunction \"B\" kind=\"jit\" on=\"net8\" { body { if #true { return; }; }; }\nstop \"end\"\n",
    ),
    (
        "an export that is managed",
        "function \"A\" kind=\"jit\" { export \"Open\" }\nstop \"end\"\n",
    ),
    (
        "an export that is given a buffer which nobody defines",
        r#"buffer "count" size=4
function "Lib.Ask" { export "Ask" "profile" }
"#,
    ),
    (
        "a buffer with the name of another one",
        r#"buffer "count" size=4
buffer "count" size=8
function "Lib.Ask" { export "Ask" "count" }
"#,
    ),
    (
        "a text that does not fit into its buffer",
        r#"buffer "name" size=4 text="a request"
"#,
    ),
    ("a function that is not there", "function \"A\" { body { call \"B\" } }\nstop \"end\"\n"),
    ("a `catch` alone", "function \"A\" { body { catch { new } } }\nstop \"end\"\n"),
    ("a clause alone", "function \"A\" { body { on-finally { work 1 } } }\nstop \"end\"\n"),
    (
        "a filter without its handler",
        "function \"A\" kind=\"jit\" { body { guarded { work 1 }; on-filter { work 1 } } }\nstop \"end\"\n",
    ),
];

/// Mistakes in stops and snapshots, after [`MAIN`].
const STOPS: &[Mistake] = &[
    ("a stop without a position", "stop\n"),
    ("a stop at a function that is not there", "stop at=\"App.Mian\"\n"),
    ("a stop at a function of the runtime, misspelled", "stop at=\"AllocateObjekt\"\n"),
    ("a stop at an instruction that is not there", "stop at=\"App.Main\" instruction=99\n"),
    ("a callback by half of its name", "stop callback=\"Enter\"\n"),
    ("a property that is not there", "stop at=\"App.Main\" instr=2\n"),
    ("a property that is there twice", "stop at=\"App.Main\" at=\"App.Main\"\n"),
    ("a thread that is not there", "thread \"main\"\nstop \"end\" thread=\"mian\"\n"),
    (
        "an expectation that no runtime is left for",
        "stop callback=\"ObjectAllocated\" { snapshot { expect on=\"windows\" { result \"S_OK\" }; expect on=\"net8-windows\" { result \"E_FAIL\" } } }\n",
    ),
    ("an expectation without a result", "stop \"end\" { snapshot { expect } }\n"),
    ("a result that is not there", "stop \"end\" { snapshot { expect { result \"S_OKAY\" } } }\n"),
    (
        "an argument too many",
        "stop \"end\" { snapshot { expect { result \"S_OK\" \"E_FAIL\" } } }\n",
    ),
    ("an argument too few", "stop \"end\" { snapshot { expect { result } } }\n"),
    ("a number instead of a name", "stop \"end\" { snapshot by=7 }\n"),
    ("a number that is too large", "stop \"end\" { snapshot flags=0x100000000 }\n"),
    ("a seed of a function that is not there", "stop \"end\" { snapshot seed=\"App.Mian\" }\n"),
    (
        "a seed of registers that nobody has taken",
        "stop at=\"App.Main\" { snapshot seed=\"stale\" }\n",
    ),
    (
        "a seed of a function that is not on the stack there",
        "function \"App.Other\" kind=\"jit\"\nstop at=\"AllocateObject\" {\n    \
         snapshot by=\"native-walker\" seed=\"App.Other\" { expect on=\"net8-windows\" { result \"S_OK\" } }\n}\n",
    ),
    (
        "a stop that no thread comes to",
        "stop at=\"App.Main\" visit=2 { snapshot { expect on=\"net8-windows\" { result \"S_OK\" } } }\n",
    ),
    ("a value without what it belongs to", "stop \"end\" { snapshot returns=\"E_FAIL\" }\n"),
    (
        "a gap in a walk that claims to be whole",
        "stop \"end\" { mixed-walk policy=\"seeded\" { expect { gap \"stack\"; complete \"whole\" } } }\n",
    ),
    (
        "a runtime that is not there",
        "stop \"end\" { snapshot { expect on=\"net11\" { result \"S_OK\" } } }\n",
    ),
    (
        "registers and flags that the author never mentioned",
        "function \"App.Caller\" kind=\"jit\" { push \"rbx\" \"rsi\"; body { clobber \"rbx\"; p-invoke \"Lib.Sleep\" } }\n\
         function \"Lib.Sleep\" { body { work 3 } }\n\
         thread \"main\" start=\"App.Caller\"\n\
         stop at=\"Lib.Sleep\" {\n    snapshot by=\"native-walker\" {\n        expect on=\"net8-windows\" {\n            \
         frame \"App.Caller\"; marker; result \"S_OK\"\n        }\n    }\n}\n",
    ),
];

/// Mistakes in stacks placed by hand, whole texts.
const STACKS: &[Mistake] = &[
    (
        "two modes on a runtime",
        "stack { mode \"cooperative\"; mode \"preemptive\"; jit \"A+0x20\" rsp=0x1fe000 }\nsnapshot\n",
    ),
    (
        "a Frame that a runtime does not have",
        "stack { jit \"A+0x20\" rsp=0x1fe000; frame \"HelperMethodFrame\" at=0x1fe100 }\n\
         snapshot { expect on=\"net10\" { result \"S_OK\" } }\n",
    ),
    ("a property that is missing", "stack { jit \"A+0x2\" }\nsnapshot\n"),
    (
        "a block that is not allowed",
        "stack { mode \"preemptive\" { }; jit \"A+0x20\" rsp=0x1fe000 }\nsnapshot\n",
    ),
    (
        "frames out of order",
        "stack { jit \"A+0x20\" rsp=0x1fe000; jit \"B+0x2\" rsp=0x1fd000 }\nsnapshot\n",
    ),
    (
        "a seed that is not on the stack",
        "stack { jit \"A+0x20\" rsp=0x1fe000 }\nsnapshot seed=\"B\"\n",
    ),
    (
        "a seed of an earlier stop",
        "stack { jit \"A+0x20\" rsp=0x1fe000 }\nsnapshot seed=\"stale\"\n",
    ),
    (
        "too many words",
        "stack { word 0x1fe000 value=1 count=4096; word 0x1ee000 value=1 }\nsnapshot\n",
    ),
];

/// Mistakes in profilers, after [`MAIN`].
const PROFILERS: &[Mistake] = &[
    ("a lock that is not there", "profiler { thread \"t\" { lock \"names\" } }\nexplore\n"),
    ("two locks of a name", "profiler { lock \"a\" \"a\" }\nexplore\n"),
    ("two reactions to a callback", "profiler { on \"Shutdown\"; on \"Shutdown\" }\nexplore\n"),
    ("an `else` alone", "profiler { thread \"t\" { else { log } } }\nexplore\n"),
    ("an action that is not there", "profiler { thread \"t\" { unlock } }\nexplore\n"),
    ("an interleaving in another form", "explore { expect { deadlock; replay \"14b3a\" } }\n"),
    ("a hazard in another form", "explore { expect { deadlock; hazard \"H06\" } }\n"),
    ("a callback that nothing raises", "profiler { on \"EventPipeEventDelivered\" }\nexplore\n"),
];

/// Returns what the tool says of a text with a mistake.
fn said(folder: &Folder, text: &str) -> Answer {
    let path = folder.write("my.kdl", text.as_bytes());
    folder.clrsim(&["run", &path])
}

#[test]
fn each_mistake_is_said_with_its_remedy() {
    let folder = Folder::new();
    let mut page = String::new();
    let mut codes = BTreeSet::new();
    let mut count = 0;
    for (before, mistakes) in [("", TEXTS), (MAIN, STOPS), ("", STACKS), (MAIN, PROFILERS)] {
        for (what, text) in mistakes {
            let answer = said(&folder, &format!("{before}{text}"));
            assert_ne!(answer.code, 0, "{what}");
            // A run of a text that can be made prints its table first.
            let failures = answer.out.split_once("\nfailed ").filter(|_| answer.code == 1);
            let failures =
                failures.map_or("", |(_, rest)| rest.split("\n\nfailed:").next().unwrap());
            let shown = if text.lines().count() > 12 { "(a file of another tool)\n" } else { text };
            count += 1;
            let failures = failures.trim_end();
            let end = if failures.is_empty() { "" } else { "\n" };
            writeln!(page, "## {count}. {what}\n\n{shown}\n{}{failures}{end}", answer.err).unwrap();
            let json = folder.clrsim(&["run", "--json", &folder.path("my.kdl")]).out;
            for line in json.lines() {
                let object: serde_json::Value = serde_json::from_str(line).unwrap();
                codes.extend(object["code"].as_str().map(str::to_owned));
            }
        }
    }
    assert!(count >= 43, "{count}");
    insta::assert_snapshot!("mistakes", page);
    codes.extend(IN_TRIAL.map(str::to_owned));
    let unsaid: Vec<_> = ProblemKind::CODES.iter().filter(|code| !codes.contains(**code)).collect();
    assert_eq!(unsaid, [&""; 0], "no mistake has these codes");
}

/// The book explains every code, and no other.
#[test]
fn the_book_explains_the_codes() {
    let page = include_str!("../../../src/book/errors.md");
    let (page, _) = page.split_once("## Error words").unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let explained: BTreeSet<_> = rows.collect();
    let codes = ProblemKind::CODES.iter().chain(&crate::render::error::CODES).copied();
    assert_eq!(explained, codes.collect());
}
