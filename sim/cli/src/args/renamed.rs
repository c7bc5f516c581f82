//! Names of commands of earlier versions. Nothing answers to an old name, but each says the new one.

use crate::render::error::CliError;
use std::ffi::OsString;

/// The commands that have another name by now.
const COMMANDS: [(&str, &str); 9] = [
    ("cat", "list --print"),
    ("clauses", "rules"),
    ("completions", "gen completions"),
    ("dump", "show"),
    ("from-recording", "import"),
    ("man", "gen man"),
    ("schema", "gen schema"),
    ("test-dir", "run --format libtest"),
    ("timeline", "replay --draw"),
];

/// Returns the error for arguments that begin with an old name: the command as it is written now.
pub(crate) fn renamed(args: &[OsString]) -> Option<CliError> {
    let [_, command, rest @ ..] = args else { return None };
    let (old, new) = COMMANDS.iter().find(|(old, _)| command == old)?;
    let rest: Vec<_> = rest.iter().map(|arg| quoted(&arg.to_string_lossy())).collect();
    let command = [&["clrsim".to_owned(), (*new).to_owned()], &*rest].concat().join(" ");
    Some(CliError::new(old, format_args!("is now {new}: {command}")).with_code("renamed"))
}

/// Returns an argument as it is typed.
fn quoted(arg: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./\\:=@,+\u{a7}".contains(letter);
    if !arg.is_empty() && arg.chars().all(is_plain) { arg.to_owned() } else { format!("'{arg}'") }
}
