//! `clrsim host --trace` and `--compare`: all calls of a guest, and the first difference of two stories.

use super::*;
use crate::external::tool::{Host, guest};
use tempfile::TempDir;

/// The story of a guest on a runtime, and a folder for changed ones.
struct Story {
    folder: TempDir,
    library: PathBuf,
    lines: Vec<String>,
}

impl Story {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let library = guest("sampler", &[]);
        let path = folder.path().join("story.jsonl");
        let trace = ["--on", "net8-unix", "--trace", path.to_str().unwrap()];
        let (code, text) = Host::new(&library, "jumps.kdl").args(&trace).run();
        assert_eq!(code, 0, "{text}");
        let lines = std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        Self { folder, library, lines }
    }

    /// Compares the guest with a changed story, and returns the exit code and the comparison.
    fn compared(&self, lines: &[String]) -> (i32, Value) {
        let path = self.folder.path().join("changed.jsonl");
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let compare = ["--on", "net8-unix", "--compare", path.to_str().unwrap()];
        let (code, mut objects) = Host::new(&self.library, "jumps.kdl").args(&compare).objects();
        (code, objects.pop().unwrap())
    }

    /// Returns the kind and the sentence of the first difference.
    fn first(&self, lines: &[String]) -> (String, String) {
        let (code, comparison) = self.compared(lines);
        assert_eq!(code, 1, "{comparison:#}");
        let first = &comparison["differences"][0];
        let text = |field: &str| first[field].as_str().unwrap().to_owned();
        (text("difference"), text("text"))
    }

    fn line(&self, has: &[&str]) -> usize {
        self.lines.iter().position(|line| has.iter().all(|one| line.contains(one))).unwrap()
    }
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_story_is_the_same_as_itself_and_says_what_was_compared() {
    let story = Story::new();
    let (code, comparison) = story.compared(&story.lines);
    assert_eq!(code, 0, "{comparison:#}");
    assert_eq!(comparison["is_same"], true);
    assert_eq!((&comparison["callbacks"], &comparison["calls"]), (&6.into(), &13.into()));
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn what_is_planted_is_the_first_difference() {
    let story = Story::new();
    // Two callbacks in another order.
    let mut swapped = story.lines.clone();
    let created = story.line(&["\"enters\"", "ThreadCreated"]);
    let assigned = story.line(&["\"enters\"", "ThreadAssignedToOSThread"]);
    assert_eq!(assigned, created + 2);
    swapped[created..created + 4].rotate_left(2);
    let (kind, text) = story.first(&swapped);
    assert_eq!(kind, "order", "{text}");
    // Another HRESULT.
    let mut changed = story.lines.clone();
    let at = story.line(&["\"returns\"", "GetMethodProps"]);
    changed[at] = changed[at].replace("S_OK", "CORPROF_E_DATAINCOMPLETE");
    let (kind, text) = story.first(&changed);
    assert_eq!(kind, "result");
    assert!(text.ends_with("returns CORPROF_E_DATAINCOMPLETE, and here S_OK"), "{text}");
    // A call more there, which is missing here; and one less.
    let mut more = story.lines.clone();
    let mask = story.line(&["\"calls\"", "SetEventMask"]);
    let again = story.lines[mask..mask + 2].to_vec();
    more.splice(mask..mask, again);
    let (kind, text) = story.first(&more);
    assert_eq!((kind.as_str(), text.contains("SetEventMask")), ("missing", true), "{text}");
    let mut less = story.lines.clone();
    less.drain(mask..mask + 2);
    assert_eq!(story.first(&less).0, "extra");
    // Another frame.
    let mut walked = story.lines.clone();
    let frame = story.line(&["\"frame\"", "null"]);
    walked.remove(frame);
    let (kind, text) = story.first(&walked);
    assert_eq!(kind, "frame", "{text}");
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_trace_that_lost_calls_or_is_about_other_code_is_no_success() {
    let story = Story::new();
    let path = story.folder.path().join("lost.jsonl");
    let lost = format!("{}\n{{\"lost\":{{\"calls\":3}}}}\n", story.lines.join("\n"));
    std::fs::write(&path, lost).unwrap();
    let tool = Command::new(env!("CARGO_BIN_EXE_clrsim"))
        .args(["host", story.library.to_str().unwrap()])
        .arg(tool::sources().join("jumps.kdl"))
        .args(["--on", "net8-unix", "--compare", path.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(tool.status.code(), Some(2));
    let text = String::from_utf8_lossy(&tool.stderr).into_owned();
    assert!(text.contains("is not whole: 3 calls are missing, as it says"), "{text}");
    let (code, comparison) = story.compared(&story.lines[..1]);
    assert_eq!((code, &comparison["is_same"]), (1, &false.into()), "{comparison:#}");
    // Where nothing is thrown, a profiler of exceptions has a start and an end, and nothing between.
    let library = guest("traced/exceptions", &[]);
    let [path, idle] = ["idle.jsonl", "idle.kdl"].map(|name| story.folder.path().join(name));
    std::fs::write(&idle, "function \"App.Main\" kind=\"jit\" { body { work 1 } }\n").unwrap();
    let run = |option: &str| {
        let args = ["--on", "net8-unix", option, path.to_str().unwrap()];
        Host::new(&library, idle.to_str().unwrap()).args(&args).run()
    };
    // Such a run is no success by itself, either.
    assert_eq!(run("--trace").0, 1);
    let (code, text) = run("--compare");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("nothing was compared"), "{text}");
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn every_field_of_a_comparison_is_described() {
    let story = Story::new();
    let mut fields = BTreeSet::new();
    let mut lines = story.lines.clone();
    let mask = story.line(&["\"calls\"", "SetEventMask"]);
    lines.drain(mask..mask + 2);
    super::fields::fields(&story.compared(&lines).1, &mut fields);
    assert_eq!(fields, super::fields::described("host --compare"));
}

/// The program of a trace makes the callbacks of the trace.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn an_imported_trace_tells_the_same_story() {
    let story = Story::new();
    let path = story.folder.path().join("story.jsonl");
    let text = story.folder.path().join("imported.kdl");
    let import = Command::new(env!("CARGO_BIN_EXE_clrsim"))
        .args(["import", path.to_str().unwrap(), "-o", text.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(import.status.code(), Some(0), "{}", String::from_utf8_lossy(&import.stderr));
    let compare = ["--on", "net8-unix", "--compare", path.to_str().unwrap()];
    let host = Host::new(&story.library, text.to_str().unwrap()).args(&compare);
    let (code, text) = host.run();
    assert_eq!(code, 0, "{text}");
}
