//! A process of our own, dumped by gdb.

use clr_dump::{CoreDump, Files, StoppedProcess as _};
use clr_unwind::{Convention, ElfImage, ImageIdentity, Position, Unwinder};
use std::io::Read as _;
use std::process::{Command, Stdio};

/// Waits in the handler of a signal.
const PROGRAM: &str = r#"
#include <signal.h>
#include <unistd.h>
void handler(int number) { (void)number; if (write(1, "!", 1) == 1) for (;;) pause(); }
void raises(void) { raise(SIGUSR1); }
int main(void) { signal(SIGUSR1, handler); raises(); return 0; }
"#;

/// Runs a program to its end.
fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program}: {output:?}");
}

/// gdb leaves out pages of files that nobody has changed, so that code and unwind data come from the files.
#[test]
#[ignore = "external: needs a C compiler, and gdb"]
fn external_a_walk_goes_through_the_frame_of_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("program.c"), PROGRAM).unwrap();
    run("cc", &["-O0", "-Wl,--build-id", "-o", &path("program"), &path("program.c")]);
    let mut child = Command::new(path("program")).stdout(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let id = child.id();
    run("gcore", &["-o", &path("core"), &id.to_string()]);
    child.kill().unwrap();
    child.wait().unwrap();

    let dump = std::fs::read(path(&format!("core.{id}"))).unwrap();
    let find = |path: &str, _: Option<&ImageIdentity>| Some(&*std::fs::read(path).ok()?.leak());
    let files: &dyn Files<'_> = &find;
    let process = CoreDump::open(&dump, files).unwrap();
    let [thread] = process.threads() else { panic!("{:?}", process.threads()) };
    assert_eq!(thread.id, id);
    let program = process.modules().iter().find(|module| module.name() == "program").unwrap();
    let symbols = ElfImage::parse(program.file.as_deref().unwrap()).unwrap().symbols();
    let map = process.code_map();
    let unwinder = Unwinder::new(&map).with_convention(Convention::SystemV);
    let frames: Vec<_> = unwinder.walk(&thread.registers, &process).map_while(Result::ok).collect();
    let names: Vec<_> = frames
        .iter()
        .filter(|frame| program.range.contains(&frame.registers.rip))
        .filter_map(|frame| {
            let rva = frame.registers.rip - program.range.start;
            Some(symbols.find(rva as u32 - 1)?.0)
        })
        .collect();
    assert_eq!(names, ["handler", "raises", "main", "_start"]);
    let interrupted = frames.iter().filter(|frame| frame.position == Position::Interrupted);
    assert_eq!(interrupted.count(), 2, "the first frame, and the one below the signal");
}
