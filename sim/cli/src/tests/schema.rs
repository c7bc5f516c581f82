//! `schema.md` describes the JSON output.

use super::fields::{described, fields};
use super::texts::{ALLOCATION, BARRIER};
use super::{Folder, fixture};
use clr_walker::registers::Gpr;
use serde_json::Value;
use std::collections::BTreeSet;

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
    let history = folder.write("history.kdl", super::histories::CROSSED.as_bytes());
    let all = folder.path("wrong");
    for (section, args) in [
        ("matrix", &["matrix", "--json", &right][..]),
        ("compare", &["compare", "--json", &right]),
        ("list", &["list", "--json"]),
        (
            "explore",
            &["explore", "--json", "--on", "windows", "--strategy", "exhaustive", &history],
        ),
        // A clause, and a rule of another kind.
        ("clauses", &["clauses", "--json", "C-044", "H-08"]),
        ("runtimes", &["runtimes", "--json", "net8"]),
        ("runtimes, compared", &["runtimes", "--json", "--diff", "net9-unix", "net10-unix"]),
        ("explain, of a text", &["explain", "--json", &wrong]),
        ("lint", &["lint", "--json", "win64/img/gcc_O2.dll"]),
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
    let dump = printed(&folder, &["dump", "win64/img/gcc_O2.dll", "--json"]);
    said("dump", dump, &fields_of_run.join(" "));
    let unix = folder.write("unix.kdl", format!("{}thread \"t\"", super::dump::UNIX).as_bytes());
    let unix_traced = printed(&folder, &["trace", &unix, "--cfi", "--json"]);
    let is_register = |name: &String| Gpr::ALL.iter().any(|register| register.name() == name);
    let but_registers = |names: BTreeSet<String>| {
        names.into_iter().filter(|name| !is_register(name)).collect::<BTreeSet<_>>()
    };
    said("trace", but_registers(unix_traced), &help("trace"));
    assert_eq!(folder.clrsim(&["emit", &unix, "-o", &folder.path("out")]).code, 0);
    let elf = printed(&folder, &["dump", &folder.path("out/libnative.so"), "--json"]);
    said("dump", but_registers(elf), &help("dump"));
    let run = described("run");
    for args in [&["run", "--json", &all][..], &["run", "--json", "--filter", "clr/"]] {
        let missing: Vec<_> = printed(&folder, args).difference(&run).cloned().collect();
        assert_eq!(missing, [""; 0], "{args:?}");
    }
    let recorded = super::snapshots_of(&[
        include_str!("snapshots/clrsim__tests__run__failure_json.snap"),
        include_str!("snapshots/clrsim__tests__programs__failures_json.snap"),
        include_str!("snapshots/clrsim__tests__recordings__differences_json.snap"),
        include_str!("snapshots/clrsim__tests__recordings__skipped_json.snap"),
        include_str!("snapshots/clrsim__tests__texts__failures_json.snap"),
        include_str!("snapshots/clrsim__tests__dump__version_3_json.snap"),
    ]);
    let mut all = BTreeSet::new();
    for line in recorded {
        fields(&serde_json::from_str(line).unwrap(), &mut all);
    }
    assert_eq!(all, run);
}
