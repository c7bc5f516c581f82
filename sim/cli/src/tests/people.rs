//! Mistakes that new users make, each with what the tool says: 79 that were made on purpose in a trial, by their numbers
//! there, and forty more. All are one page, to be read.

use super::*;

/// A mistake: its number or letter, what it is, a text (`@` among the arguments), and the arguments.
type Mistake = (&'static str, &'static str, &'static str, &'static [&'static str]);

const RUN: &[&str] = &["run", "@"];
const MAIN: &str = "function \"App.Main\" kind=\"jit\" { body { new } }\n";

/// Mistakes of the trial, by the number in its table. Those about the system (permissions, closed pipes, languages of the
/// shell) are tested elsewhere.
const TRIAL: &[Mistake] = &[
    ("1", "a word of another form", "function \"A\" kind=\"jitted\"\nstop \"end\"\n", RUN),
    ("2", "a misspelled property", "function \"A\" knd=\"jit\"\nstop \"end\"\n", RUN),
    ("3", "locals of an odd size", "function \"A\" { locals 0x21 }\nstop \"end\"\n", RUN),
    (
        "4",
        "a unit of time",
        "function \"A\"\nprofiler { thread \"t\" { sleep 10ms } }\nexplore\n",
        RUN,
    ),
    (
        "5",
        "a statement outside a body",
        "function \"App.Main\" kind=\"jit\" { new }\nstop \"end\"\n",
        RUN,
    ),
    (
        "6",
        "a result in a stop's expectation",
        "function \"A\"\nstop \"end\" { expect { result \"S_OK\" } }\n",
        RUN,
    ),
    ("7", "a snapshot outside a stop", "function \"A\"\nsnapshot\n", RUN),
    (
        "8",
        "a short name of a system",
        "function \"A\"\nstop \"end\" { snapshot { expect on=\"win\" { result \"S_OK\" } } }\n",
        RUN,
    ),
    (
        "9",
        "a runtime by another system's name",
        "function \"A\"\nstop \"end\" { snapshot { expect on=\"net8-linux\" { result \"S_OK\" } } }\n",
        RUN,
    ),
    (
        "10",
        "one of two runtimes is wrong",
        "function \"A\"\nstop \"end\" { snapshot { expect on=\"net10-windows net12-windows\" { result \"S_OK\" } } }\n",
        RUN,
    ),
    ("11", "a quote left out", "function \"A kind=\"jit\"\nstop \"end\"\n", RUN),
    ("12", "single quotes", "function 'App.Main' kind='jit' { body { new } }\nstop 'end'\n", RUN),
    ("15", "UTF-16 without a mark", "f\0u\0n\0c\0t\0i\0o\0n\0 \0\"\0A\0\"\0\n\0", RUN),
    ("16", "a NUL", "function \"A\0\"\nstop \"end\"\n", RUN),
    (
        "17",
        "a Greek letter in a name",
        "function \"App.Main\" kind=\"jit\" { body { call \"\u{391}pp.Other\" } }\nfunction \"App.Other\"\nstop \"end\"\n",
        RUN,
    ),
    (
        "17b",
        "a Greek letter in the name of a function",
        "function \"\u{391}pp.Main\" kind=\"jit\"\nstop \"end\"\n",
        RUN,
    ),
    ("18", "a huge number", "function \"A\"\nstop after=99999999999999999999\n", RUN),
    ("19", "a negative number", "function \"A\" { locals -8 }\nstop \"end\"\n", RUN),
    ("20", "a negative offset", "stack { jit \"App.Foo-0x20\" rsp=0x1fe000 }\nsnapshot\n", RUN),
    ("52", "a decimal offset", "stack { jit \"App.Foo+32\" rsp=0x1fe000 }\nsnapshot\n", RUN),
    (
        "21",
        "a name twice",
        "function \"App.Main\" { body { call \"B\" } }\nfunction \"B\"\nfunction \"App.Main\"\nstop \"end\"\n",
        RUN,
    ),
    ("59", "a name with a space", "function \"App Main\"\nstop \"end\"\n", RUN),
    (
        "60",
        "a generic name in angle brackets",
        "function \"List<int>.Add\" { body { call \"List`1.Grow[T]\" } }\nfunction \"List`1.Grow[T]\"\nstop \"end\"\n",
        RUN,
    ),
    (
        "22",
        "calls in a circle",
        "function \"A\" { body { call \"B\" } }\nfunction \"B\" { body { call \"A\" } }\nstop \"end\"\n",
        RUN,
    ),
    ("24", "an empty text", "", RUN),
    ("25", "only a comment", "// nothing yet\n", RUN),
    ("26", "a folder", "", &["matrix", "%"]),
    ("30", "a command of other tools", "", &["search", "lock"]),
    ("29", "no argument", "", &["matrix"]),
    (
        "31",
        "two results",
        "function \"A\"\nstop \"end\" { snapshot { expect { result \"S_OK\"; result \"E_FAIL\" } } }\n",
        RUN,
    ),
    (
        "31b",
        "an expectation that is dead",
        "function \"App.Main\" kind=\"jit\" { body { new } }\nstop callback=\"ObjectAllocated\" { snapshot by=\"native-walker\" { expect on=\"windows\" { result \"UNMANAGED_CTX\" } ; expect on=\"net8-windows\" { result \"S_OK\" } } }\n",
        RUN,
    ),
    (
        "32",
        "a misspelled register",
        "stack { jit \"A+0x20\" rsp=0x1fe000 }\nsnapshot { seed \"A\" { rpi 7 } }\n",
        RUN,
    ),
    ("33", "misspelled runtimes", MAIN, &["matrix", "@", "--on", "net8-windws"]),
    ("39", "a text from a pipe", "", &["matrix", "-"]),
    ("40", "a pattern in quotes", "", &["run", "*.kdl"]),
    ("42", "a misspelled flag", MAIN, &["run", "--bles", "@"]),
    (
        "43",
        "a search without a profiler",
        MAIN,
        &["explore", "@", "--on", "net8-windows", "--schedules", "5"],
    ),
    (
        "44",
        "a file twice",
        "function \"A\" kind=\"jit\" { body { new } }\nstop \"end\" { snapshot { expect { result \"E_FAIL\" } } }\n",
        &["run", "--limit", "0", "@", "@"],
    ),
    (
        "45",
        "a snapshot that is not there",
        "stack { jit \"A+0x20\" rsp=0x1fe000 }\nsnapshot\n",
        &["matrix", "@", "--snapshot", "9"],
    ),
    ("46", "a clause that is not there", "", &["rules", "C-9999"]),
    (
        "48",
        "an embedded text by a part of its name",
        "",
        &["list", "--print", "gallery/hazards/h-08"],
    ),
    ("50", "a replay string that is none", "", &["replay", "my.kdl@net8:abc"]),
    ("53", "rows without rsp", "stack { jit \"A+0x20\" }\nsnapshot\n", RUN),
    (
        "55",
        "a thread that is not there",
        "function \"A\"\nthread \"main\"\nstop \"end\" thread=\"mian\"\n",
        RUN,
    ),
    (
        "57",
        "an event that is not there",
        "function \"A\"\nprofiler { thread \"t\" { wait \"done\" } }\nexplore\n",
        RUN,
    ),
    ("51", "hexadecimal digits with an h", "stack { jit \"A+0x20\" rsp=1fe000h }\nsnapshot\n", RUN),
    (
        "56",
        "a unit in a property",
        "function \"A\"\nprofiler { event \"e\"; thread \"t\" { wait \"e\" micros=\"5ms\" } }\nexplore\n",
        RUN,
    ),
    (
        "62",
        "an HRESULT without prefix, misspelled",
        "function \"A\"\nstop \"end\" { snapshot { expect { result \"UNMANAGED_CTXT\" } } }\n",
        RUN,
    ),
    (
        "63",
        "a clause in an expectation that is not there",
        "function \"A\"\nstop \"end\" { snapshot { expect { result \"S_OK\"; clause \"C-900\" } } }\n",
        RUN,
    ),
    (
        "64",
        "a clause that decided nothing",
        "function \"App.Main\" kind=\"jit\" { body { new } }\nstop callback=\"ObjectAllocated\" { snapshot by=\"native-walker\" { expect on=\"windows\" { result \"CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX\"; clause \"C-019\" } } }\n",
        RUN,
    ),
    ("66", "capitals", "Function \"A\"\nstop \"end\"\n", RUN),
    (
        "67",
        "a bare truth value",
        "thread \"t\" by-program=true\nfunction \"A\"\nstop \"end\"\n",
        RUN,
    ),
    (
        "68",
        "a misspelled HRESULT",
        MAIN,
        &["minimize", "@", "--hresult", "E_NOTIMP", "-o", "small.kdl"],
    ),
    ("70", "a text that is to be judged as an image", MAIN, &["lint", "@"]),
    (
        "71",
        "a library that is not there",
        "function \"A\" kind=\"jit\" { body { new } }\nstop \"end\"\n",
        &["host", "nope.so", "@"],
    ),
    ("75", "a drawing of nothing", MAIN, &["compare", "@"]),
    (
        "78",
        "a hook as a callback",
        "function \"App.Main\" kind=\"jit\" { body { new } }\nhooks \"slow\"\nstop callback=\"FunctionEnter\" { snapshot }\n",
        RUN,
    ),
];

/// Mistakes that nobody made in the trial.
const MORE: &[Mistake] = &[
    (
        "a",
        "an exception by C#'s name",
        "function \"A\" kind=\"jit\" { body { raise-exception } }\nstop \"end\"\n",
        RUN,
    ),
    (
        "b",
        "a P/Invoke by its attribute",
        "function \"A\" kind=\"jit\" { body { dllimport \"Lib\" } }\nfunction \"Lib\"\nstop \"end\"\n",
        RUN,
    ),
    (
        "c",
        "a call of the system",
        "function \"A\" kind=\"jit\" { body { call \"Thread.Sleep\" } }\nfunction \"B\"\nstop \"end\"\n",
        RUN,
    ),
    (
        "d",
        "a collection by its method",
        "function \"A\" kind=\"jit\" { body { GC.Collect } }\nstop \"end\"\n",
        RUN,
    ),
    ("e", "R2R", "function \"A\" kind=\"R2R\"\nstop \"end\"\n", RUN),
    ("f", "managed as a kind", "function \"A\" kind=\"managed\"\nstop \"end\"\n", RUN),
    (
        "g",
        "hooks by their abbreviation",
        "function \"A\" kind=\"jit\"\nhooks \"ELT3\"\nstop \"end\"\n",
        RUN,
    ),
    (
        "h",
        "a method of the interface that texts do not call",
        "function \"A\"\nprofiler { thread \"t\" { call \"SetILFunctionBody\" } }\nexplore\n",
        RUN,
    ),
    (
        "i",
        "a signal by its number",
        "function \"A\"\nprofiler { thread \"t\" { SIGUSR1 \"main\" } }\nexplore\n",
        RUN,
    ),
    (
        "j",
        "a suspension by the system's name",
        "function \"A\"\nprofiler { thread \"t\" { SuspendThread \"main\" } }\nexplore\n",
        RUN,
    ),
    (
        "k",
        "an APC",
        "function \"A\"\nprofiler { thread \"t\" { QueueUserAPC \"main\" } }\nexplore\n",
        RUN,
    ),
    ("l", "a mutex", "function \"A\"\nprofiler { mutex \"m\" }\nexplore\n", RUN),
    (
        "m",
        "a result as a property",
        "function \"A\"\nstop \"end\" { snapshot { expect result=\"S_OK\" } }\n",
        RUN,
    ),
    ("n", "a property as a node", "function \"A\" { kind \"jit\" }\nstop \"end\"\n", RUN),
    (
        "o",
        "typographic quotes",
        "function \u{201C}A\u{201D} kind=\u{201C}jit\u{201D}\nstop \"end\"\n",
        RUN,
    ),
    ("p", "a number in quotes", "function \"A\" { locals \"32\" }\nstop \"end\"\n", RUN),
    ("q", "a size with a unit", "function \"A\" { locals 4KB }\nstop \"end\"\n", RUN),
    (
        "r",
        "seconds",
        "function \"A\"\nprofiler { event \"e\"; thread \"t\" { wait \"e\" micros=\"2 s\" } }\nexplore\n",
        RUN,
    ),
    (
        "s",
        "runtimes separated by commas",
        "function \"A\"\nstop \"end\" { snapshot { expect on=\"net8-windows,net9-windows\" { result \"S_OK\" } } }\n",
        RUN,
    ),
    (
        "t",
        "a runtime for macOS",
        "function \"A\"\nstop \"end\" { snapshot { expect on=\"macos\" { result \"S_OK\" } } }\n",
        RUN,
    ),
    ("u", "another processor", MAIN, &["matrix", "@", "--on", "arm64"]),
    (
        "v",
        "a runtime in capitals",
        "stack { jit \"A+0x20\" rsp=0x1fe000 }\nsnapshot\n",
        &["matrix", "@", "--on", "WINDWS"],
    ),
    (
        "w",
        "a lock nobody defined",
        "function \"A\"\nprofiler { thread \"t\" { lock \"names\" } }\nexplore\n",
        RUN,
    ),
    ("x", "a buffer nobody defined", "function \"Lib.Ask\" { export \"Ask\" \"profile\" }\n", RUN),
    (
        "y",
        "C# in place of a text",
        "using System;\nclass App {\n    static void Main() { throw new Exception(); }\n}\n",
        RUN,
    ),
    ("z", "a page of HTML", "<!DOCTYPE html>\n<html><head><title>x</title></head></html>\n", RUN),
    ("aa", "a page as an argument", "<!DOCTYPE html>\n<html></html>\n", &["run", "%/page.html"]),
    ("ab", "JSON in place of a text", "{ \"function\": \"A\" }\n", RUN),
    (
        "ac",
        "a hazard that is not there",
        "function \"A\"\nexplore { expect { deadlock; hazard \"H-99\" } }\n",
        RUN,
    ),
    ("ad", "a search that finds nothing", "", &["list", "NativeAOT"]),
    ("ae", "a word of the field in a search", "", &["list", "SetEnterLeaveFunctionHooks3"]),
    (
        "af",
        "a search by a callback that no text has",
        "",
        &["list", "RemotingClientInvocationStarted"],
    ),
    ("ag", "a word that is none", "", &["gen", "words", "gazebo"]),
    (
        "ah",
        "a catch without guarded",
        "function \"A\" kind=\"jit\" { body { catch { work 1 } } }\nstop \"end\"\n",
        RUN,
    ),
    (
        "ai",
        "a frame pointer as a node",
        "stack { jit \"A+0x20\" rsp=0x1fe000 rbp=0x1fe100 }\nsnapshot\n",
        RUN,
    ),
    ("aj", "an address without 0x", "stack { jit \"A+0x20\" rsp=1fe000 }\nsnapshot\n", RUN),
    ("ak", "a Cyrillic letter in a word", "function \"A\" kind=\"j\u{456}t\"\nstop \"end\"\n", RUN),
    (
        "al",
        "Java's word",
        "function \"A\" kind=\"jit\" { body { synchronized } }\nstop \"end\"\n",
        RUN,
    ),
    (
        "am",
        "a thread by its class",
        "function \"A\" kind=\"jit\" { body { Thread.Start } }\nstop \"end\"\n",
        RUN,
    ),
    ("an", "a wrong command with an object for it", "", &["serach", "--json"]),
];

/// Returns what is said of a mistake: errors, and the first lines of the output.
fn said(folder: &Folder, (_, _, text, args): &Mistake) -> String {
    let path = folder.write("my.kdl", text.as_bytes());
    folder.write("page.html", text.as_bytes());
    let inside = folder.path("");
    let args: Vec<_> = args
        .iter()
        .map(|arg| if *arg == "@" { path.clone() } else { (*arg).to_owned() })
        .map(|arg| arg.replace('%', inside.trim_end_matches('/')))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Answer { code, out, err } = folder.clrsim(&args);
    let out: Vec<_> = out.lines().filter(|line| !line.is_empty()).take(6).collect();
    format!("exit code {code}\n{err}{}", out.join("\n"))
}

#[test]
fn each_mistake_leads_on() {
    let folder = Folder::new();
    let mut page = String::new();
    for mistake in TRIAL.iter().chain(MORE) {
        let (number, what, _, args) = mistake;
        // Standard input is that of the test.
        if args.contains(&"-") {
            continue;
        }
        writeln!(page, "## {number}. {what}\n\n{}\n", said(&folder, mistake).trim_end()).unwrap();
    }
    assert!(MORE.len() >= 40, "{}", MORE.len());
    insta::assert_snapshot!("people", page);
}

/// Each word by which a search goes on finds something, and each search for a word of the field says something.
#[test]
fn words_of_the_field_find_texts() {
    let texts = clr_fixtures::gallery().iter();
    let texts: Vec<_> = texts
        .filter_map(|text| Some(text.name.to_owned() + text.text()?))
        .map(|text| text.to_lowercase())
        .collect();
    for word in clr_scenario::SYNONYMS.iter().flat_map(|synonym| synonym.find) {
        assert!(texts.iter().any(|text| text.contains(&word.to_lowercase())), "{word}");
    }
    for word in
        ["FunctionEnter", "malloc", "R2R", "p/invoke", "sleep", "SIGUSR1", "throw", "APC", "hijack"]
    {
        assert_eq!(clrsim(&["list", word]).code, 0, "{word}");
    }
}
