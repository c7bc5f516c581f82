//! Dumps as scenarios.

use crate::collection::{Dump, folder, number};
use crate::hangs::{circle, diagnose};
use clr_dump::{CoreDump, StoppedProcess as _};
use clr_import::{
    HangScenario, ImportError, Paste, PasteFormat, ThreadReader, generation_of_process,
};
use clr_inspect::{Runtime, StackWalker};
use clr_runtime::Outcome;
use clr_runtime::generation::Generation;
use clr_scenario::{Scenario, SnapshotCall, SnapshotCaller};
use clr_walker::profiling::HResult;
use serde_json::Value;
use std::fs;

const NEEDS: &str = "what the dumps have of the machine that must not be in a text";

/// Words of the environments, arguments and paths of the collection's processes.
const PRIVATE: [&str; 8] =
    ["/app", "/opt", "/lib", "CORECLR_", "DOTNET_", "PATH=", "Hang.dll", "./Hang.cs"];

fn check_is_clean(text: &str, name: &str) {
    for private in PRIVATE {
        assert!(!text.contains(private), "{name}: {private}, {NEEDS}:\n{text}");
    }
    let body: String = text.lines().filter(|line| !line.starts_with("//")).collect();
    assert!(!body.contains('/'), "{name}: a path, {NEEDS}:\n{text}");
    // An address of the process has at least nine digits. The events that searches replay have none.
    let digits = text.split("0x").skip(1);
    for number in digits.map(|rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count()) {
        assert!(number < 9, "{name}: an address of the process:\n{text}");
    }
}

/// Makes the scenario of the hang of a process.
pub(crate) fn hang(process: &CoreDump<'_>) -> Result<HangScenario, ImportError> {
    let runtime = Runtime::find(process).ok();
    let mut walker = StackWalker::new(process, process.code_map(), runtime.as_ref());
    let on = generation_of_process(process).unwrap();
    HangScenario::new(process, runtime.as_ref(), &diagnose(process), &mut walker, on)
}

/// Takes the locks out of a text, and leaves what was done under them. The search expects nothing then.
fn without_locks(text: &str, on: Generation) -> String {
    let (program, search) = text.split_once("\nexplore").unwrap();
    let mut left = String::new();
    // Whether each open block is that of a lock.
    let mut blocks = Vec::new();
    for line in program.lines() {
        let words = line.trim();
        let is_lock = ["lock ", "acquire ", "release "].iter().any(|it| words.starts_with(it));
        let is_end_of_lock = words == "}" && blocks.pop() == Some(true);
        if words.ends_with('{') {
            blocks.push(is_lock);
        }
        if !is_lock && !is_end_of_lock {
            left.push_str(line);
            left.push('\n');
        }
    }
    let seed = search.split_once('{').unwrap().0;
    format!("{left}explore{seed}{{\nexpect on=\"{}\" {{ survives }}\n}}\n", on.name())
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn a_search_finds_the_circle_of_a_hang_again_and_none_without_its_lock() {
    let mut hangs = 0;
    for dump in Dump::all() {
        let process = dump.open();
        let expected = dump.json("expected");
        let made = match hang(&process) {
            Ok(made) => made,
            Err(error) => {
                assert_eq!(error, ImportError::NoCircle, "{}", dump.name);
                assert_eq!(expected["hang"], Value::Bool(false), "{}", dump.name);
                continue;
            }
        };
        hangs += 1;
        let text = made.text("Made by a test.");
        check_is_clean(&text, &dump.name);
        let on = generation_of_process(&process).unwrap();
        let read = Scenario::parse(&text).unwrap();
        let found = read.explore_on(on).unwrap();
        assert!(found[0].is_right(), "{}: {:?}", dump.name, found[0].differences);
        let waits = text.matches("waits ").count();
        assert_eq!(waits, circle(&expected).len(), "{}:\n{text}", dump.name);
        let free = without_locks(&text, on);
        let free = Scenario::parse(&free).unwrap_or_else(|error| panic!("{error}:\n{free}"));
        let found = free.explore_on(on).unwrap();
        assert!(found[0].is_right(), "{}: {:?}", dump.name, found[0].differences);
    }
    assert!(hangs >= 5, "{hangs}");
}

/// Reads the methods of a thread as ClrMD has them, with their stack pointers. Where a method is there twice, it is one.
fn methods(thread: &Value) -> Vec<(String, u64)> {
    let frames = thread["stack"].as_array().unwrap().iter();
    let methods =
        frames.filter(|frame| frame["kind"] == "method" && frame["method"] != Value::Null);
    let mut methods: Vec<_> = methods
        .map(|frame| {
            let name = frame["method"].as_str().unwrap().split('(').next().unwrap();
            (name.to_owned(), number(&frame["sp"]))
        })
        .collect();
    methods.dedup();
    methods
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn a_snapshot_gives_the_methods_of_clrmd() {
    let (mut threads, mut frames, mut refused) = (0, 0, 0);
    let (mut unknown, mut cooperative) = (0, 0);
    for dump in Dump::all() {
        let process = dump.open();
        let Ok(runtime) = Runtime::find(&process) else { continue };
        let walker = StackWalker::new(&process, process.code_map(), Some(&runtime));
        let Ok(mut reader) = ThreadReader::new(&process, &runtime, walker, None) else { continue };
        for thread in dump.json("clrmd")["threads"].as_array().unwrap() {
            let id = thread["os_id"].as_u64().unwrap() as u32;
            if process.thread(id).is_none() {
                continue;
            }
            let observation = match reader.read(id) {
                Ok(observation) => observation,
                Err(ImportError::Exception(_)) => {
                    refused += 1;
                    continue;
                }
                // Where .NET 8 has exceptions in progress is not known, and a HelperMethodFrame of .NET 9 may have no state yet.
                Err(ImportError::Runtime(_) | ImportError::Unreadable(_))
                    if dump.name.starts_with(['8', '9']) =>
                {
                    unknown += 1;
                    continue;
                }
                Err(error) => panic!("{} {id}: {error}", dump.name),
            };
            let call = SnapshotCall {
                by: SnapshotCaller::NativeWalker,
                suspended: true,
                ..SnapshotCall::default()
            };
            let text = observation.text("Made by a test.", vec![call]).unwrap();
            check_is_clean(&text, &dump.name);
            let read = Scenario::parse(&text).unwrap();
            let reports = read.run_on(reader.generation()).unwrap();
            assert!(reports.iter().all(clr_scenario::SnapshotReport::is_right), "{text}");
            if reports[0].found.outcome == Outcome::Returned(HResult::NOT_IMPLEMENTED) {
                // On Unix no other thread is walked while it is cooperative (C-020).
                assert_eq!(thread["mode"], "cooperative", "{} {id}", dump.name);
                cooperative += 1;
                continue;
            }
            let found = reports[0].found.frame_reports.iter().map(|it| &it.frame_report);
            let managed = found.filter(|report| report.function.is_some());
            let found: Vec<_> = managed
                .map(|report| {
                    let name = report.label.rsplit_once("+0x").unwrap().0;
                    let name = name.split('@').next().unwrap().to_owned();
                    (name, report.context.as_ref().unwrap().registers.rsp())
                })
                .collect();
            let expected: Vec<_> = methods(thread)
                .into_iter()
                .map(|(name, sp)| (name, observation.small(sp).unwrap()))
                .collect();
            assert_eq!(found, expected, "{} {id}", dump.name);
            threads += 1;
            frames += found.len();
        }
    }
    println!(
        "{frames} frames of {threads} threads; {refused} with exceptions, of {unknown} not known"
    );
    println!("{cooperative} threads are cooperative");
    assert!(threads >= 23 && unknown <= 6 && frames >= 41, "{threads} {frames}");
}

/// What people paste: each thread gives a text that comes out as it says, or a reason why not.
#[test]
#[ignore = "needs the collection, in the folder that CLR_ORACLES names"]
fn stacks_of_debuggers_are_placed() {
    let folder = folder("CLR_ORACLES").join("dumps");
    let texts = fs::read_dir(folder.join("text")).unwrap().map(|entry| entry.unwrap().path());
    let gdb = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let gdb = gdb.filter(|path| path.to_str().unwrap().ends_with(".gdb.txt"));
    let mut texts: Vec<_> = texts.chain(gdb).collect();
    texts.sort();
    let (mut made, mut managed, mut refused) = (0, 0, Vec::new());
    for path in &texts {
        let name = path.file_name().unwrap().to_str().unwrap();
        let paste = Paste::read(&fs::read_to_string(path).unwrap()).unwrap();
        let is_gdb = name.ends_with(".gdb.txt");
        let format = match path.extension().and_then(|it| it.to_str()) {
            Some("json") => PasteFormat::CrashReport,
            _ if is_gdb => PasteFormat::Gdb,
            _ => PasteFormat::ClrStack,
        };
        assert_eq!(paste.format, format, "{name}");
        if format != PasteFormat::ClrStack {
            let version = format!("net{}-unix", name.split('.').next().unwrap());
            assert_eq!(paste.version.map(Generation::name), Some(version.as_str()), "{name}");
        }
        for thread in &paste.threads {
            let observation = match paste.observation(thread, None) {
                Ok(observation) => observation,
                Err(error) => {
                    refused.push(format!("{name} {:#x}: {error}", thread.id));
                    continue;
                }
            };
            let text = observation.text("Made by a test.", paste.calls(thread, None)).unwrap();
            check_is_clean(&text, name);
            let read =
                Scenario::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            for generation in observation.on.iter() {
                let reports = read.run_on(generation).unwrap();
                assert!(reports.iter().all(clr_scenario::SnapshotReport::is_right), "{text}");
            }
            made += 1;
            managed += text.matches("    jit ").count();
        }
    }
    println!("{made} texts with {managed} methods; refused: {refused:#?}");
    assert!(texts.len() >= 11 && made >= 100 && managed >= 50, "{made} {managed}");
    // A thread in a handler, and finalizers' threads without a method.
    assert!(refused.len() <= 6, "{refused:#?}");
}
