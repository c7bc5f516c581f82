//! Processes of .NET for Windows, under wine, dumped by a writer of our own: wine's leaves out most.

use crate::collection::{folder, unpacked};
use crate::minidumps::cut_down;
use clr_dump::{CoreDump, Files, StoppedProcess as _, System};
use clr_inspect::{
    Cause, CodeKind, Diagnosis, InspectError, MethodNames, Mode, Runtime, Stack, StackWalker,
    Verdict,
};
use clr_unwind::{ImageIdentity, Memory as _};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// Where Debian's wine has its images.
const IMAGES: &str = "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows";
/// The native library of the program, as far as it is called here.
const NATIVE: &str =
    "#include <windows.h>\n__declspec(dllexport) void nap(int time) { Sleep(time); }\n";

/// A folder with the program, and with a prefix of wine.
struct Wine {
    folder: TempDir,
}

impl Wine {
    fn new() -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(this.path("")).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workloads = root.join("walker/recorder/workloads");
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps");
        this.run("wineboot", &["--init"], "mscoree,mshtml=");
        // Paths in the process are below X:\app, wherever the folder is.
        let drive = this.path("wine/dosdevices/x:");
        std::os::unix::fs::symlink(this.folder.path(), drive).unwrap();
        let system = this.path("wine/drive_c/windows/system32/bcryptprimitives.dll");
        let random = root.join(".ci/bcryptprimitives.c");
        std::fs::write(this.path("native.c"), NATIVE).unwrap();
        let compile = |out: PathBuf, sources: &[PathBuf], flags: &[&str]| {
            let mut command = Command::new(COMPILER);
            let made = command.arg("-O2").arg("-o").arg(out).args(sources).args(flags).output();
            let made = made.unwrap_or_else(|error| panic!("{COMPILER}: {error}"));
            assert!(made.status.success(), "{made:?}");
        };
        let sources = [workloads.join("host.c"), workloads.join("wine.c")];
        compile(this.path("host.exe"), &sources, &[]);
        compile(this.path("native.dll"), &[this.path("native.c")], &["-shared"]);
        compile(system, &[random], &["-shared", "-ladvapi32"]);
        compile(this.path("dump.exe"), &[here.join("minidump.c")], &["-lpsapi", "-lversion"]);
        let program = folder("CLR_RUNTIMES").join("programs/Hang.dll");
        std::fs::copy(program, this.path("Hang.dll")).unwrap();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("app").join(name)
    }

    fn command(&self, program: &str, overrides: &str) -> Command {
        let mut command = Command::new(program);
        // Nothing of the user's environment gets into fixtures.
        command
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path(""))
            .env("USER", "user")
            .env("WINEPREFIX", self.path("wine"))
            .env("WINEARCH", "win64")
            .env("WINEDEBUG", "-all")
            .env("WINEDLLOVERRIDES", overrides)
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        command
    }

    fn run(&self, program: &str, arguments: &[&str], overrides: &str) {
        let made = self.command(program, overrides).args(arguments).output();
        let made = made.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(made.status.success(), "{program} {arguments:?}: {made:?}");
    }

    /// Returns what no fixture may have: the folder's path, and the name of the machine as wine tells it.
    fn hidden(&self) -> Vec<String> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().to_uppercase();
        let names = ["COMPUTERNAME=", "USERDOMAIN=", "LOGONSERVER=\\\\"];
        let folder = self.folder.path().to_str().unwrap().to_owned();
        names.map(|name| format!("{name}{host}")).into_iter().chain([folder]).collect()
    }

    /// Starts the program, and dumps it: all of its memory, and without what images have.
    fn dumps(&self, version: &str, mode: &str) -> [Dump; 2] {
        let runtime = unpacked(&format!("win-x64-{version}"));
        let mut command = self.command("wine", USUAL);
        copy(&runtime, &self.path(version));
        command.args(["host.exe", version, "Hang.dll", mode, "300"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let _running = Running(child);
        assert_eq!(first.trim(), "ready", "{version} {mode}");
        std::thread::sleep(Duration::from_secs(8));
        self.run("wine", &["dump.exe", "host.exe", "full.dmp"], USUAL);
        self.run("wine", &["dump.exe", "host.exe", "small.dmp", "small"], USUAL);
        let folders = [runtime, self.path(""), IMAGES.into()];
        ["full.dmp", "small.dmp"].map(|name| {
            let bytes = std::fs::read(self.path(name)).unwrap();
            Dump { bytes, folders: folders.clone(), files: BTreeMap::new() }.with_files()
        })
    }
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// As for `.ci/live`.
const USUAL: &str = "mshtml=;winedbg.exe=";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A minidump, with the files of its process.
struct Dump {
    bytes: Vec<u8>,
    folders: [PathBuf; 3],
    files: BTreeMap<String, Vec<u8>>,
}

impl Dump {
    /// Finds the files of images by their names.
    fn with_files(self) -> Self {
        let alone = CoreDump::open(&self.bytes, &clr_dump::NoFiles).unwrap();
        let files = alone.modules().iter().filter_map(|module| {
            let mut candidates = self.folders.iter().map(|it| it.join(module.name()));
            let found = candidates.find_map(|path| std::fs::read(path).ok())?;
            Some((module.path.clone(), found))
        });
        let files = files.collect();
        Self { files, ..self }
    }

    fn open(&self) -> CoreDump<'_> {
        let find = |path: &str, _: Option<&ImageIdentity>| self.files.get(path).map(Vec::as_slice);
        let files: &dyn Files<'_> = &find;
        CoreDump::open(&self.bytes, files).unwrap()
    }
}

/// Returns the stacks of the threads that the runtime knows, by their numbers, with the names of managed frames.
fn stacks(process: &CoreDump<'_>) -> BTreeMap<u32, (Mode, Stack, Vec<String>)> {
    let runtime = Runtime::find(process).unwrap();
    let list = runtime.threads(process).unwrap();
    assert_eq!((list.end, list.threads.len()), (Ok(()), list.store.count as usize));
    let mut walker = StackWalker::new(process, process.code_map(), Some(&runtime));
    let mut names = MethodNames::new(process, &runtime).unwrap();
    let mut of = |id: u32| {
        let stack = walker.walk(&process.thread(id).unwrap().registers);
        let methods = stack.frames.iter().filter_map(|frame| match frame.code {
            CodeKind::Jitted { method, .. } | CodeKind::ReadyToRun { method, .. } => Some(method),
            CodeKind::Native | CodeKind::Stub | CodeKind::Unknown => None,
        });
        let methods = methods.map(|method| names.name(method).unwrap().to_string()).collect();
        (stack, methods)
    };
    let threads = list.threads.iter().filter(|thread| thread.os_id != 0);
    let all = threads.map(|thread| {
        assert_eq!(thread.frames_end, Ok(()));
        let (stack, methods) = of(thread.os_id);
        (thread.id, (thread.mode, stack, methods))
    });
    all.collect()
}

/// Returns what is found of a hang.
fn diagnose(process: &CoreDump<'_>) -> Diagnosis {
    let runtime = Runtime::find(process).unwrap();
    let mut walker = StackWalker::new(process, process.code_map(), Some(&runtime));
    Diagnosis::of(process, Ok(&runtime), &mut walker)
}

/// Each word of an image that is in the dump, and known from its file, must be the same. One is not: `s_gsCookie` (vars.hpp of
/// dotnet/runtime), a constant that the runtime fills in by making its page writable for a moment. A minidump does not show that.
fn pages_are_those_of_the_dump(process: &CoreDump<'_>) {
    let (mut same, mut unknown, mut changed) = (0_u64, 0_u64, Vec::new());
    for module in process.modules().iter().filter(|module| module.file.is_ok()) {
        for address in module.range.clone().step_by(8) {
            let mut word = [0; 8];
            match (process.is_dumped(address), process.read_file(address, &mut word)) {
                (true, Ok(())) => {
                    let dumped = process.read_u64(address).unwrap();
                    let of_file = u64::from_le_bytes(word);
                    if dumped != of_file {
                        changed.push((module.name(), of_file));
                    }
                    same += 1;
                }
                (true, Err(_)) => unknown += 1,
                (false, _) => {}
            }
        }
    }
    println!("{same} words are the same, {unknown} are not known from files");
    assert!(same > 1_000_000);
    assert_eq!(changed, [("coreclr.dll", 0)]);
}

#[test]
#[ignore = "needs wine, mingw, and packs of runtimes in the folder that CLR_RUNTIMES names"]
fn threads_that_enter_monitors_in_two_orders_are_proved_to_hang() {
    let wine = Wine::new();
    for version in ["10.0.15", "11.0.0"] {
        let [full, small] = wine.dumps(version, "monitors");
        cut_down(&format!("{version}-monitors"), &full.bytes, &wine.hidden());
        let (full, small) = (full.open(), small.open());
        pages_are_those_of_the_dump(&full);
        let (of_full, of_small) = (stacks(&full), stacks(&small));
        let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
        for (id, (mode, stack, methods)) in &of_full {
            assert!(stack.end.is_root(), "{version} thread {id}: {:?}", stack.end);
            assert_eq!(*mode, Mode::Preemptive);
            // A thread of the runtime may end between the dumps.
            if let Some((_, other, names)) = of_small.get(id) {
                assert_eq!((&stack.frames, methods), (&other.frames, names), "{version} {id}");
            }
            for name in methods.iter().filter(|name| name.starts_with("Shop.")) {
                *ends.entry(name).or_default() += 1;
            }
        }
        let expected = ["Alice", "Bob", "Main", "Run", "TakeBill", "TakeStock", "Wait"];
        let expected = expected.map(|name| format!("Shop.Program.{name}"));
        assert_eq!(ends.keys().copied().collect::<Vec<_>>(), expected, "{version}");
        for process in [&full, &small] {
            let found = diagnose(process);
            assert_eq!(found.verdict(), Verdict::Proved, "{version} {found:#?}");
            let causes: Vec<_> = found.circles.iter().map(|circle| circle.cause).collect();
            assert_eq!(causes, [Cause::Monitors]);
        }
    }
}

#[test]
#[ignore = "needs wine, mingw, and packs of runtimes in the folder that CLR_RUNTIMES names"]
fn healthy_processes_of_windows_are_not_accused() {
    let wine = Wine::new();
    for version in ["9.0.22", "10.0.15", "11.0.0"] {
        for dump in wine.dumps(version, "idle") {
            let process = dump.open();
            assert_eq!(process.system(), System::Windows);
            let found = diagnose(&process);
            assert_eq!((found.circles.len(), found.verdict()), (0, Verdict::Open), "{found:#?}");
            let runtime = Runtime::find(&process).unwrap();
            let threads = runtime.threads(&process).unwrap();
            assert_eq!((threads.end, threads.threads.is_empty()), (Ok(()), false));
            let names = MethodNames::new(&process, &runtime);
            let is_known = !matches!(names, Err(InspectError::Contract(_)));
            assert_eq!(is_known, version != "9.0.22", "its contracts are those of threads alone");
        }
    }
}
