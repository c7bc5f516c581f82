//! Backtraces of gdb and lldb.

use super::thread::{PastedCode, PastedFrame, PastedThread};
use super::words::{file_name, method_name};

/// Returns the number after a mark.
fn number_after(line: &str, mark: &str) -> Option<u32> {
    let (_, rest) = line.split_once(mark)?;
    let digits = rest.find(|it: char| !it.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

/// Reads lines: those of threads, of which `thread` returns the id, or 0, and those of their frames.
fn backtraces(
    text: &str,
    thread: impl Fn(&str) -> Option<u32>,
    frame: impl Fn(&str) -> Option<PastedFrame>,
) -> Vec<PastedThread> {
    let mut threads: Vec<PastedThread> = Vec::new();
    for line in text.lines() {
        if let Some(id) = thread(line) {
            threads.push(PastedThread { id, ..PastedThread::default() });
        } else if let Some(frame) = frame(line) {
            // A single backtrace has no line of a thread.
            threads.extend(threads.is_empty().then(PastedThread::default));
            if let Some(thread) = threads.last_mut() {
                thread.frames.push(frame);
            }
        }
    }
    threads
}

/// Reads gdb's `thread apply all bt`, or one `bt`.
pub(super) fn gdb(text: &str) -> Vec<PastedThread> {
    // Of a process that gdb runs: `LWP`; of a core: the same.
    let id = |line: &str| number_after(line, "(LWP ").unwrap_or_default();
    backtraces(text, |line| line.starts_with("Thread ").then(|| id(line)), gdb_line)
}

/// Reads a frame of gdb: `#5  0x00007f98198e17d5 in ?? () from target:/opt/libcoreclr.so`.
fn gdb_line(line: &str) -> Option<PastedFrame> {
    let (number, rest) = line.strip_prefix('#')?.split_once(' ')?;
    number.parse::<u32>().ok()?;
    let rest = rest.trim_start();
    let site = match rest.strip_prefix("0x") {
        Some(rest) => rest.split_once(" in ")?.1,
        None => rest,
    };
    let module = site.rsplit_once(" from ").map(|(_, path)| file_name(path));
    // Arguments follow a blank, those of a template do not.
    let function = site.split(" (").next()?.trim();
    Some(native(module, function, None))
}

/// Reads lldb's `thread backtrace all`, or one.
pub(super) fn lldb(text: &str) -> Vec<PastedThread> {
    // The selected ones have a mark.
    fn words(line: &str) -> &str {
        line.trim_start_matches(['*', ' '])
    }
    let id = |words: &str| {
        number_after(words, "tid = ")
            .or_else(|| number_after(words, "thread #"))
            .unwrap_or_default()
    };
    let thread = |line: &str| {
        let words = words(line);
        words.starts_with("thread #").then(|| id(words))
    };
    backtraces(text, thread, |line| lldb_line(words(line)))
}

/// Reads a frame of lldb: ``frame #0: 0x00007ffff libc.so.6`__poll + 79 at poll.c:29:10``.
fn lldb_line(words: &str) -> Option<PastedFrame> {
    let (_, rest) = words.strip_prefix("frame #")?.split_once(": 0x")?;
    let Some((_, site)) = rest.split_once(' ') else { return Some(native(None, "??", None)) };
    let Some((module, function)) = site.trim().split_once('`') else {
        return Some(native(None, "??", None));
    };
    let (function, offset) = match function.rsplit_once(" + ") {
        Some((function, offset)) => {
            let digits = offset.split([' ', ',']).next().unwrap_or(offset);
            (function, digits.parse().ok())
        }
        None => (function, None),
    };
    let function = function.split(" at ").next().unwrap_or(function);
    Some(native(Some(file_name(module)), function, offset))
}

/// Returns a frame of native code, or of code without any name.
fn native(module: Option<&str>, function: &str, offset: Option<u64>) -> PastedFrame {
    let is_named = !function.starts_with("??") && !function.starts_with("___lldb_unnamed");
    let function = if is_named { method_name(function) } else { "unknown".to_owned() };
    let code = if is_named || module.is_some() { PastedCode::Native } else { PastedCode::Unknown };
    let name = module.map_or_else(|| function.clone(), |module| format!("{module}!{function}"));
    PastedFrame { code, name, offset, sp: None }
}
