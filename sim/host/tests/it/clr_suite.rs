//! The CLR's own profiler tests, as the book lists them. Which pass is found by `clr_suite` of the tool's external tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const TABLE: &str = include_str!("../guests/clr/results.tsv");
const PAGE: &str = "../src/book/clr_suite.md";
/// Lines around the table.
const BEGIN: &str = "<!-- clr-suite -->\n";
const END: &str = "<!-- /clr-suite -->\n";
/// Tests that are several programs of one profiler.
const PROGRAMS_OF: [&str; 2] = ["elt", "gcheapenumeration"];
/// Number of the CLR's profilers.
const PROFILERS: usize = 30;

/// A row: a test, its text, how it is broken, the results in CLRs and here, what it checks, and why it does not pass here.
struct Row<'t> {
    test: &'t str,
    in_clr: Vec<&'t str>,
    here: Vec<&'t str>,
    checks: &'t str,
    why: &'t str,
}

impl<'t> Row<'t> {
    fn read(line: &'t str) -> Self {
        let cells: Vec<_> = line.split('\t').collect();
        let [test, _, _, in_clr, here, checks, why] = cells[..] else { panic!("{line}") };
        let words = |cell: &'t str| cell.split(' ').collect::<Vec<_>>();
        Self { test, in_clr: words(in_clr), here: words(here), checks, why }
    }

    fn profiler(&self) -> &str {
        let base = self.test.split('-').next().unwrap();
        if PROGRAMS_OF.contains(&base) { base } else { self.test }
    }

    /// Returns true if it passes here wherever it passes in a CLR.
    fn passes(&self) -> bool {
        let both = self.in_clr.iter().zip(&self.here);
        self.in_clr.contains(&"passes")
            && both.clone().all(|(in_clr, here)| *in_clr != "passes" || *here == "passes")
    }
}

fn list() -> String {
    let rows: Vec<_> = TABLE.lines().filter(|line| !line.starts_with('#')).map(Row::read).collect();
    let mut profilers = BTreeMap::new();
    for row in &rows {
        assert_eq!((row.in_clr.len(), row.here.len()), (3, 3), "{}", row.test);
        *profilers.entry(row.profiler()).or_insert(true) &= row.passes();
    }
    assert_eq!(profilers.len(), PROFILERS);
    let passing = profilers.values().filter(|passes| **passes).count();
    let mut text = format!(
        "**{passing} of {PROFILERS}** pass here on each of the three runtimes on which they pass in a CLR.\n\n\
         | test | checks | CLR 8, 10, 11 | net8-unix, net10-unix, net11-unix | why not here |\n|---|---|---|---|---|\n"
    );
    for row in &rows {
        let cells = |words: &[&str]| match words {
            [first, rest @ ..] if rest.iter().all(|word| word == first) => match *first {
                "-" => "–".to_owned(),
                all => all.to_owned(),
            },
            words => words.join(", ").replace('-', "–"),
        };
        let why = if row.why == "-" { "" } else { row.why };
        let (in_clr, here) = (cells(&row.in_clr), cells(&row.here));
        let (name, checks) = (row.test, row.checks);
        writeln!(text, "| `{name}` | {checks} | {in_clr} | {here} | {why} |").unwrap();
    }
    text
}

#[test]
fn the_book_lists_the_tests_of_the_clr() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{}{END}{after}", list());
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert!(page == wanted, "CLR_BLESS=1 writes it anew");
}

/// A test that does not pass here says why.
#[test]
fn each_failure_has_its_reason() {
    for row in TABLE.lines().filter(|line| !line.starts_with('#')).map(Row::read) {
        assert!(row.passes() || row.why != "-", "{}", row.test);
    }
}
