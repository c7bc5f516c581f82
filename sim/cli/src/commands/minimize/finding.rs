//! The failures of a command, such as a fuzz target, and what makes two of them the same.

use crate::input::slashed;
use crate::output::unwritable;
use crate::render::error::CliError;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command that fails on some inputs, and the file that it is given them in.
pub(super) struct Runner<'a> {
    program: &'a OsString,
    arguments: &'a [OsString],
    file: PathBuf,
}

impl<'a> Runner<'a> {
    /// Creates the runner of a command. Inputs are written to a file beside `output`, whose name
    /// ends with `ending`.
    pub(super) fn new(
        (program, arguments): (&'a OsString, &'a [OsString]),
        output: &Path,
        ending: &str,
    ) -> Result<Self, CliError> {
        let mut file = output.to_owned().into_os_string();
        file.push(".candidate");
        file.push(ending);
        let file = PathBuf::from(file);
        if fs::symlink_metadata(&file).is_ok() {
            return Err(CliError::new(&slashed(&file), "is there already, and would be replaced"));
        }
        Ok(Self { program, arguments, file })
    }

    /// Runs the command on an input. Returns `None` if it succeeds.
    pub(super) fn finding(&self, input: &[u8]) -> Result<Option<String>, CliError> {
        fs::write(&self.file, input).map_err(|error| unwritable(&slashed(&self.file), &error))?;
        let output = Command::new(self.program)
            .args(self.arguments)
            .arg(&self.file)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                let name = slashed(Path::new(self.program));
                CliError::new(&name, format_args!("cannot be run: {}", error.kind()))
            })?;
        if output.status.success() {
            return Ok(None);
        }
        let text =
            [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(Some(key(&text.concat(), &output.status.to_string())))
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        // A file that was never written is not there.
        let _ = fs::remove_file(&self.file);
    }
}

/// Returns what all findings of the same fault have in common: the place and the kind of a panic, or
/// a sanitizer's summary, or else the status.
fn key(output: &str, status: &str) -> String {
    let mut lines = output.lines();
    if let Some(place) = lines.find_map(|line| line.split_once(" panicked at ")) {
        let message = lines.next().unwrap_or_default();
        return format!("{}\n{}", place.1.trim_end_matches(':'), kind(message));
    }
    if let Some(summary) = output.lines().find_map(|line| line.strip_prefix("SUMMARY: ")) {
        return summary.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    }
    status.split(" (core dumped)").next().unwrap_or_default().to_owned()
}

/// Returns a message without the values in it: numbers, words with digits, and quoted text.
fn kind(message: &str) -> String {
    let is_in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut quote = None;
    let mut kind = String::new();
    for part in message.split_inclusive(|c| !is_in_word(c)) {
        let (word, separator) = match part.char_indices().next_back() {
            Some((at, last)) if !is_in_word(last) => (&part[..at], Some(last)),
            _ => (part, None),
        };
        let is_quote = separator.is_some_and(|c| matches!(c, '"' | '`'));
        let was_quoted = quote.is_some();
        if !was_quoted {
            kind += if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word };
        }
        if is_quote && (quote.is_none() || quote == separator) {
            quote = if was_quoted { None } else { separator };
        }
        if !was_quoted || quote.is_none() {
            kind.extend(separator);
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_no_part_of_a_kind() {
        for (message, expected) in [
            (
                "index out of bounds: the len is 3 but the index is 7",
                "index out of bounds: the len is # but the index is #",
            ),
            ("f3 +0x12 of \"App.Foo\": Precise", "# +# of \"\": Precise"),
            ("a `b \"c` d", "a `` d"),
            (
                "assertion failed: two threads own one lock",
                "assertion failed: two threads own one lock",
            ),
            ("", ""),
        ] {
            assert_eq!(kind(message), expected);
        }
    }

    #[test]
    fn the_key_is_the_panic_or_the_summary_or_the_status() {
        let panic = "\nthread 'x' (17) panicked at tests/src/fuzz.rs:7:5:\nfound 3\nnote: …\n\
                     SUMMARY: libFuzzer: deadly signal\n";
        assert_eq!(key(panic, "signal: 6"), "tests/src/fuzz.rs:7:5\nfound #");
        let overflow = "==1==ERROR\nSUMMARY: AddressSanitizer: stack-overflow /a/b.c:1 in f\n";
        assert_eq!(key(overflow, "exit status: 1"), "AddressSanitizer: stack-overflow");
        assert_eq!(key("no\n", "signal: 11 (SIGSEGV) (core dumped)"), "signal: 11 (SIGSEGV)");
    }
}
