use super::*;
use clr_recording::vectors::decompress;
use clr_recording::{RecordedCode, Recording, RecordingReplay, WalkLine};
use clr_scenario::{ExpectedOutcome, Provenance, RecordingRefusal as Refusal, Scenario};

const ASYNC: &str = "clr/win31-async-alloc.walks.jsonl.gz";
const BAD_SEED: &str = "clr/win8-badseed-rspplus1-rev.walks.jsonl.gz";

/// Numbers of walks by the reason why they are no texts, with some names.
#[derive(Default)]
struct Converted {
    passed: usize,
    refused: BTreeMap<&'static str, Vec<String>>,
}

impl Converted {
    /// Converts each `every`th walk of a recording, and holds the text against the recording.
    fn add(&mut self, name: &str, bytes: &[u8], every: usize) {
        let text = String::from_utf8(decompress(bytes, 1 << 30).unwrap()).unwrap();
        let recording = Recording::parse(&text).unwrap();
        let code = RecordedCode::new(&recording);
        let mut replay = RecordingReplay::new(&recording, &code).unwrap();
        for walk in recording.walks.iter().step_by(every) {
            let name = format!("{name} walk {}", walk.n);
            match Scenario::from_recorded(&recording, &mut replay, walk) {
                Ok(scenario) => {
                    self.passed += 1;
                    is_as_recorded(&name, &recording, walk, &scenario);
                }
                Err(refusal) => {
                    let seed = walk.call.seed.as_ref().map_or("no seed", |seed| &seed.made);
                    let refused = self.refused.entry(reason(&refusal)).or_default();
                    refused.push(format!("{name}: {refusal} [{seed}]"));
                }
            }
        }
    }

    fn refused(&self) -> usize {
        let other = self.refused.iter().filter(|(reason, _)| **reason != "not replayable");
        other.map(|(_, walks)| walks.len()).sum()
    }

    fn table(&self) -> String {
        let mut table = format!("{:6}  texts\n", self.passed);
        for (reason, walks) in &self.refused {
            writeln!(table, "{:6}  {reason}", walks.len()).unwrap();
            for walk in walks.iter().step_by(walks.len().div_ceil(5)) {
                writeln!(table, "          {walk}").unwrap();
            }
        }
        table
    }
}

fn reason(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NotReplayable(_) => "not replayable",
        Refusal::ReplayDiffers => "replay differs",
        Refusal::Load(_) => "cannot be loaded",
        Refusal::FrameKind(_) => "kind of a Frame",
        Refusal::Descends => "rsp does not ascend by words",
        Refusal::SetUp(_) => "cannot be set up",
        Refusal::State => "state",
        Refusal::Differs(_) => "another result",
    }
}

/// Holds the printed text against the recording: methods, markers and result.
fn is_as_recorded(name: &str, recording: &Recording, walk: &WalkLine, scenario: &Scenario) {
    let read: Scenario = scenario.to_string().parse().unwrap();
    let snapshots: Vec<_> = read.snapshots().collect();
    assert_eq!(snapshots.len(), 1, "{name}");
    let [expected] = &*snapshots[0].call.expect else { panic!("{name}: no expectation") };
    assert_eq!(expected.from, Provenance::Observed(None), "{name}");
    let on: Vec<_> = expected.on.iter().collect();
    assert_eq!(on, [recording.generation], "{name}");
    let methods = expected.frames.iter().map(|frame| {
        let label = frame.label.as_deref().unwrap_or_default();
        let function = label.rsplit_once("+0x").map_or(label, |(function, _)| function);
        (!frame.marker).then(|| function.split('@').next().unwrap().to_owned())
    });
    let recorded = walk.result.callbacks.iter().map(|callback| {
        let function = recording.function(callback.function?);
        Some(function.map_or_else(String::new, |function| function.name.clone()))
    });
    let count = walk.result.callbacks.len();
    assert_eq!(methods.take(count).collect::<Vec<_>>(), recorded.collect::<Vec<_>>(), "{name}");
    match (walk.result.hr, expected.result) {
        (Some(hr), ExpectedOutcome::Returned(result)) => {
            assert_eq!(hr.0, u64::from(result.0), "{name}");
        }
        (None, ExpectedOutcome::AccessViolation { .. } | ExpectedOutcome::Killed { .. }) => {}
        (hr, other) => panic!("{name}: {hr:?}, but {other}"),
    }
    let registers = expected.frames.iter().flat_map(|frame| &frame.registers);
    for (register, value) in registers.filter(|(register, _)| *register == Gpr::Rsp) {
        assert!(*value < 1 << 32, "{name}: {register:?} {value:#x}");
    }
}

#[test]
fn most_recorded_walks_become_texts_with_the_recorded_result() {
    let mut converted = Converted::default();
    for fixture in clr_fixtures::all().iter().filter(|it| it.name.ends_with(".walks.jsonl.gz")) {
        converted.add(fixture.name, fixture.bytes, 12);
    }
    let table = converted.table();
    assert!(converted.passed > 1000, "{table}");
    assert!(converted.refused() * 50 < converted.passed, "{table}");
    // Only seeds that are wrong on purpose are refused, and what texts have no word for: a Frame around a call of a handler.
    let refused = converted.refused.iter().filter(|(reason, _)| **reason != "not replayable");
    for walk in refused.flat_map(|(_, walks)| walks) {
        let wrong = [
            "bad-seed:",
            "[sp-",
            "[ip-of-a-caller]",
            "ip in an IL stub",
            "net9.0.22-windows-exceptions",
        ];
        assert!(wrong.iter().any(|seed| walk.contains(seed)), "{walk}\n{table}");
    }
}

/// Converts all walks of the recordings in the folder `CLR_RECORDINGS`, or of the embedded ones.
#[test]
#[ignore = "a campaign: prints a table"]
fn the_share_of_recorded_walks_that_become_texts() {
    let mut converted = Converted::default();
    let Ok(folder) = std::env::var("CLR_RECORDINGS") else {
        for fixture in clr_fixtures::all().iter().filter(|it| it.name.ends_with(".walks.jsonl.gz"))
        {
            converted.add(fixture.name, fixture.bytes, 1);
        }
        eprintln!("{}", converted.table());
        return;
    };
    let entries = fs::read_dir(Path::new(&folder)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.to_string_lossy().ends_with(".walks.jsonl.gz")) {
        let name = path.file_name().unwrap().to_string_lossy();
        converted.add(&name, &fs::read(path).unwrap(), 1);
    }
    eprintln!("{}", converted.table());
}

#[test]
fn a_written_walk_passes_and_fails_if_the_result_is_changed() {
    let folder = Folder::new();
    let recording = folder.write("my.walks.jsonl", &content(ASYNC));
    let text = folder.path("my.kdl");
    let printed = folder.clrsim(&["import", &recording, "--walk", "12"]);
    insta::assert_snapshot!("text", printed.text());
    let named = format!("{recording} walk 12");
    let written = folder.clrsim(&["import", &recording, "--walk", &named, "--output", &text]);
    insta::assert_snapshot!("written", written.text());
    let written = fs::read_to_string(&text).unwrap();
    assert_eq!(printed.out, written);
    assert_eq!(folder.clrsim(&["fmt", "--check", &text]).code, 0);
    assert_eq!(folder.clrsim(&["run", &text]).code, 0);
    let changed = written.replace("UNMANAGED_CTX", "UNSAFE");
    assert_ne!(changed, written);
    let changed = folder.write("changed.kdl", changed.as_bytes());
    assert_eq!(folder.clrsim(&["run", &changed]).code, 1);
}

#[test]
fn without_a_number_the_walks_are_listed() {
    insta::assert_snapshot!("list", clrsim(&["import", super::WALKS]).text());
}

#[test]
fn walks_without_a_text_and_wrong_arguments_are_errors() {
    let folder = Folder::new();
    folder.write("there.kdl", b"");
    folder.write("bad.walks.jsonl.gz", fixture(BAD_SEED));
    let cut = &content(ASYNC)[..3000];
    folder.write("cut.walks.jsonl", &[cut, b"\n"].concat());
    let killed = folder.clrsim(&["import", &folder.write("killed.walks.jsonl", cut)]);
    assert!(killed.code == 0 && killed.out.contains("; the file ends within line "));
    let there = folder.path("there.kdl");
    let (bad, cut) = (folder.path("bad.walks.jsonl.gz"), folder.path("cut.walks.jsonl"));
    let mut answers = String::new();
    for arguments in [
        &[ASYNC, "--walk", "1000"][..],
        &[ASYNC, "--walk", "first"],
        &[ASYNC, "--walk", "12", "-o", &there],
        &[ASYNC, "--walk", "12", "-o", "my.txt"],
        &[ASYNC, "-o", "my.kdl"],
        &["programs/alloca.kdl", "--walk", "1"],
        &[&bad, "--walk", "3"],
        &[&cut],
        &["clr/linux31-danger-nullcb.walks.jsonl.gz", "--walk", "5"],
    ] {
        let arguments: Vec<_> = ["import"].iter().chain(arguments).copied().collect();
        let answer = folder.clrsim(&arguments);
        assert_eq!((answer.code, &*answer.out), (2, ""), "{arguments:?}");
        writeln!(answers, "{}", answer.err).unwrap();
    }
    insta::assert_snapshot!("errors", answers);
}

/// The program of a trace that was recorded in .NET 8.0.34 is a scenario.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_trace_of_a_real_runtime_becomes_a_program() {
    let folder = "../../walker/trace/src/program";
    let file = format!("{folder}/thrown_on_two_threads.8.0.34.jsonl");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = printed("import", &[path.to_str().unwrap()]);
    let scenario = Scenario::parse(&text).unwrap();
    let names: Vec<_> = scenario.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["main", "thread 1", "finalizer"]);
}
