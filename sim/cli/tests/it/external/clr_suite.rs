//! The CLR's own profiler tests, transcribed: `sim/host/tests/guests/clr`. Which pass, and that each can fail.

use super::*;
use crate::external::tool::{Host, guest, sources};

const RUNTIMES: [&str; 3] = ["net8-unix", "net10-unix", "net11-unix"];
const PASSES: &str = "the test passes\n";
/// The program that does nothing.
const IDLE: &str = "idle.kdl";
/// Tests whose profilers call the runtime on threads of their own: they run in an interleaving.
const THREADED: [&str; 1] = ["getappdomainstaticaddress"];
/// Columns of the text, and of the results here.
const TEXT: usize = 1;
const HERE: usize = 4;
/// The text in place of one that cannot be written.
const NONE: &str = "-";

fn folder_of_suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/guests/clr")
}

/// A row of `results.tsv`.
struct Row<'t> {
    cells: Vec<&'t str>,
}

impl Row<'_> {
    /// Returns true if the test passes on a runtime, as it is or broken.
    fn passes(&self, library: &Path, runtime: &str, is_broken: bool) -> bool {
        let [test, program, broken, ..] = self.cells[..] else { panic!("{:?}", self.cells) };
        let program = if is_broken && broken == "program" { IDLE } else { program };
        let path = folder_of_suite().join(program);
        let value = if is_broken { "another" } else { "Hello, friend!" };
        let mut host = Host::new(library, path.to_str().unwrap()).args(&["--on", runtime]);
        host = host.env("GUEST_TEST", test).env("GUEST_VALUE", value);
        if is_broken {
            host = host.env("GUEST_BROKEN", broken);
        }
        if THREADED.contains(&test) {
            return host.args(&["--schedules", "1"]).noted().1.contains(PASSES);
        }
        let (_, account) = host.objects();
        account[0]["printed"].as_str().unwrap().ends_with(PASSES)
    }

    /// Returns the results, and complains of a test that passes although it is broken.
    fn results(&self, library: &Path, wrong: &mut Vec<String>) -> String {
        let words = RUNTIMES.map(|runtime| {
            let passes = self.passes(library, runtime, false);
            if passes && self.passes(library, runtime, true) {
                wrong.push(format!("{} passes on {runtime} although it is broken", self.cells[0]));
            }
            if passes { "passes" } else { "fails" }
        });
        words.join(" ")
    }
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn the_tests_of_the_clr_pass_as_listed_and_fail_when_broken() {
    let include = format!("-I{}", sources().display());
    let library = guest("../../../host/tests/guests/clr/suite", &[&include]);
    let path = folder_of_suite().join("results.tsv");
    let table = std::fs::read_to_string(&path).unwrap();
    let (mut found, mut wrong) = (String::new(), Vec::new());
    for line in table.lines() {
        let mut cells: Vec<_> = line.split('\t').collect();
        let has_text = cells.get(TEXT).is_some_and(|text| *text != NONE);
        if has_text && !line.starts_with('#') {
            let results = Row { cells: cells.clone() }.results(&library, &mut wrong);
            cells[HERE] = &results;
            found += &(cells.join("\t") + "\n");
        } else {
            found += &(line.to_owned() + "\n");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap());
}
