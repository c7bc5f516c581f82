//! A trace as text, a line for each call or callback.

use crate::line::{Arguments, Line};
use crate::trace::{TraceError, names, parse};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Returns a trace, lines of JSON, as text with names.
///
/// # Errors
/// Returns [`TraceError`] with the line.
pub fn as_text(trace: &str) -> Result<String, TraceError> {
    let lines = parse(trace)?;
    let mut writer = TextWriter { names: names(&lines), ..TextWriter::default() };
    let shown: Vec<_> = lines.iter().filter(|line| !matches!(line, Line::Name { .. })).collect();
    let mut at = shown.iter().peekable();
    while let Some(line) = at.next() {
        if let Some(end) = at.next_if(|next| is_end(line, next)) {
            writer.whole(line, end);
        } else {
            writer.line(line);
        }
    }
    Ok(writer.text)
}

/// Returns true if a call has ended with nothing between.
fn is_end(line: &Line, next: &Line) -> bool {
    match (line, next) {
        (Line::Calls { thread, method, .. }, Line::Returns { thread: same, method: name, .. })
        | (
            Line::Enters { thread, callback: method, .. },
            Line::Leaves { thread: same, callback: name, .. },
        ) => thread == same && method == name,
        _ => false,
    }
}

#[derive(Default)]
struct TextWriter {
    names: HashMap<String, String>,
    /// Number of calls in progress, by thread.
    depths: HashMap<String, usize>,
    text: String,
}

impl TextWriter {
    fn named<'n>(&'n self, text: &'n str) -> &'n str {
        self.names.get(text).map_or(text, String::as_str)
    }

    fn list(&self, arguments: &Arguments) -> String {
        let named = arguments.0.iter().map(|(name, text)| (name.clone(), self.named(text).into()));
        Arguments(named.collect()).to_string()
    }

    fn push(&mut self, thread: &str, what: &str) {
        let depth = self.depths.get(thread).copied().unwrap_or_default();
        // An OS thread has the text of its ThreadID as its name.
        let (thread, indent) = (self.named(self.named(thread)).to_owned(), depth * 2);
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{thread:<12} {:indent$}{}", "", what.trim_end());
    }

    fn deeper(&mut self, thread: &str) {
        *self.depths.entry(thread.to_owned()).or_default() += 1;
    }

    /// Writes a call in which nothing happened.
    fn whole(&mut self, line: &Line, end: &Line) {
        let (Line::Calls { thread, method: name, arguments }
        | Line::Enters { thread, callback: name, arguments }) = line
        else {
            return;
        };
        let (Line::Returns { result, arguments: written, .. }
        | Line::Leaves { result, arguments: written, .. }) = end
        else {
            return;
        };
        let (given, written) = (self.list(arguments), self.list(written));
        let what = format!("{name} {given}");
        self.push(thread, &format!("{} -> {result} {written}", what.trim_end()));
    }

    fn line(&mut self, line: &Line) {
        match line {
            Line::Name { .. } => {}
            Line::Trace { runtime, .. } => {
                let _ = writeln!(self.text, "{runtime}");
            }
            Line::Lost { calls } => {
                let _ = writeln!(self.text, "{calls} calls were lost");
            }
            Line::Enters { thread, callback: name, arguments }
            | Line::Calls { thread, method: name, arguments } => {
                self.push(thread, &format!("{name} {}", self.list(arguments)));
                self.deeper(thread);
            }
            Line::Leaves { thread, callback: name, result, arguments }
            | Line::Returns { thread, method: name, result, arguments } => {
                if let Some(depth) = self.depths.get_mut(thread) {
                    *depth = depth.saturating_sub(1);
                }
                self.push(thread, &format!("{name} -> {result} {}", self.list(arguments)));
            }
            Line::Frame { thread, function, answer } => {
                let answer = if answer == "S_OK" { "" } else { answer };
                self.push(thread, &format!("frame {} {answer}", self.named(function)));
            }
        }
    }
}
