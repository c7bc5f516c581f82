//! Processes that hang, made here: the collection's program and profiler in each runtime, dumped by the runtime's own tool.

use crate::collection::{folder, output, runtime};
use crate::hangs::diagnose;
use clr_dump::CoreDump;
use clr_inspect::{Cause, Diagnosis, Verdict};
use clr_unwind::ImageIdentity;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const VERSIONS: [&str; 4] = ["8.0.34", "9.0.23", "10.0.15", "11.0.0"];
/// What the program does, how many seconds it wants to run, the kind of dump that shows it, and the mistake. Two others need files at fixed
/// paths (`joined`, `loader`), and two hang only sometimes, or only a full dump shows them (`heap`, `spans`).
const HANGS: [(&str, u32, &str, Cause); 8] = [
    ("walked", 60, "-n", Cause::LockInCallback),
    ("names", 60, "-n", Cause::LockInCallback),
    ("allocated", 60, "-n", Cause::LockOverCollection),
    ("parked", 60, "-n", Cause::ParkedThread),
    ("handler", 60, "-n", Cause::LockInHandler),
    ("spin", 60, "-n", Cause::CooperativeCode),
    ("shutdown", 1, "-n", Cause::JoinUnderLock),
    ("monitors", 60, "-h", Cause::Monitors),
];
/// How often a healthy process is dumped.
const HEALTHY: usize = 5;

/// A program that runs under the profiler.
struct Process {
    child: Child,
    version: &'static str,
    app: TempDir,
}

impl Process {
    fn start(version: &'static str, mode: &str, seconds: u32) -> Self {
        let app = tempfile::tempdir().unwrap();
        let from = folder("CLR_ORACLES").join("dumps/app");
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            match name.strip_suffix(".xz") {
                Some(name) => {
                    std::fs::write(app.path().join(name), output("xz", &["-dc"], &path)).unwrap();
                }
                None => drop(std::fs::copy(&path, app.path().join(name)).unwrap()),
            }
        }
        let child = Command::new(app.path().join("host"))
            .arg(runtime(version))
            .arg(app.path().join("Hang.dll"))
            .args([mode, &seconds.to_string()])
            .env("CORECLR_ENABLE_PROFILING", "1")
            .env("CORECLR_PROFILER", "{3c2a5b7e-6d0f-4f0e-9c51-0a6b9d3f2c12}")
            .env("CORECLR_PROFILER_PATH", app.path().join("libprof.so"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(8));
        Self { child, version, app }
    }

    /// Dumps the process, and diagnoses the dump.
    fn diagnose(&self, kind: &str) -> Diagnosis {
        let path = self.app.path().join("core");
        let tool = runtime(self.version).join("createdump");
        let id = self.child.id().to_string();
        let arguments = [kind, "-f", path.to_str().unwrap()];
        output(tool.to_str().unwrap(), &arguments, Path::new(&id));
        let dump = std::fs::read(path).unwrap();
        let find = |path: &str, _: Option<&ImageIdentity>| Some(&*std::fs::read(path).ok()?.leak());
        let files: &dyn clr_dump::Files<'_> = &find;
        diagnose(&CoreDump::open(&dump, files).unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn hangs_have_their_mistakes() {
    let mut problems = Vec::new();
    for version in VERSIONS {
        for (mode, seconds, kind, cause) in HANGS {
            let found = Process::start(version, mode, seconds).diagnose(kind);
            let causes: Vec<_> = found.circles.iter().map(|circle| circle.cause).collect();
            println!("{version} {mode}: {:?} {causes:?}", found.verdict());
            // The layout of monitors is not known of .NET 8.
            let is_known = (version, mode) != ("8.0.34", "monitors");
            if is_known && causes != [cause] {
                problems.push(format!("{version} {mode}: {causes:?} {:?}", found.unknown));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn busy_processes_are_not_accused() {
    for version in VERSIONS {
        let process = Process::start(version, "busy", 120);
        for _ in 0..HEALTHY {
            let found = process.diagnose("-n");
            println!("{version}: {:?}, waits: {}", found.verdict(), found.edges.len());
            assert_eq!(found.verdict(), Verdict::Nothing, "{version} {found:#?}");
        }
    }
}
