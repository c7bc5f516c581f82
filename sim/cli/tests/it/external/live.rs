//! Processes that run, stopped by ptrace for as long as they are read.

use super::*;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

/// A process that sends back each line that it is sent.
struct Echo(Child);

impl Echo {
    fn start() -> Self {
        let mut command = Command::new("cat");
        let echo = Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        while !echo.sleeps() {
            std::thread::yield_now();
        }
        echo
    }

    /// Returns true if the process waits in the kernel: for its input, as nothing else that it does takes time.
    fn sleeps(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.contains(") S ")
    }

    fn inspect(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
        command.args(["inspect", "--pid", &self.0.id().to_string()]);
        command
    }

    /// Asserts that the process goes on.
    fn answers(mut self) {
        writeln!(self.0.stdin.take().unwrap(), "on").unwrap();
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "on\n");
        assert!(self.0.wait().unwrap().success());
    }
}

#[test]
#[ignore = "external: stops a process by ptrace"]
fn a_process_is_read_and_goes_on() {
    let echo = Echo::start();
    let Output { status, stdout, .. } = echo.inspect().output().unwrap();
    let out = String::from_utf8(stdout).unwrap();
    assert_eq!(status.code(), Some(0), "{out}");
    // It waits in read(2).
    assert!(out.contains(&format!("thread {}, in system call 0", echo.0.id())), "{out}");
    assert!(out.contains("libc.so.6+"), "{out}");
    echo.answers();
}

#[test]
#[ignore = "external: stops a process by ptrace"]
fn a_process_goes_on_after_its_reader_was_killed() {
    let echo = Echo::start();
    for wait in 0..20 {
        let mut reader = echo.inspect().stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        reader.kill().unwrap();
        reader.wait().unwrap();
    }
    echo.answers();
}
