//! Names of commands and options of earlier versions. Nothing answers to an old name, but each says the new one.

use crate::render::error::CliError;
use crate::render::shell::quoted;
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

/// The options that have another name by now, with the present name of their command.
const OPTIONS: [(&str, &str, &str); 7] = [
    ("host", "--timeline", "--draw"),
    ("new", "--program", "--kind program"),
    ("new", "--stack", "--kind stack"),
    ("rules", "--generation", "--on"),
    ("run", "--max-failures", "--limit"),
    ("run", "--rules", "--unwind-rules"),
    ("show", "--rules", "--unwind-rules"),
];

/// Returns the error for arguments with an old name: the command as it is written now.
pub(crate) fn renamed(args: &[OsString]) -> Option<CliError> {
    let [_, command, rest @ ..] = args else { return None };
    let command = command.to_str()?;
    let old_command = COMMANDS.iter().find(|(old, _)| command == *old);
    let now = old_command.map_or(command, |(_, new)| new);
    let mut old_name = old_command.copied();
    let mut line = format!("clrsim {now}");
    for arg in rest {
        let arg = arg.to_string_lossy();
        let (name, value) = arg.split_at(arg.find('=').unwrap_or(arg.len()));
        let old =
            OPTIONS.iter().find(|(of, old, _)| now.split(' ').next() == Some(of) && name == *old);
        let new = |new: &str| match value {
            "" => new.to_owned(),
            value => format!("{new}{}", quoted(value)),
        };
        let arg = old.map_or_else(|| quoted(&arg), |(_, _, name)| new(name));
        old_name = old_name.or(old.map(|(_, old, new)| (*old, *new)));
        line = format!("{line} {arg}");
    }
    let (old, new) = old_name?;
    Some(CliError::new(old, format_args!("is now {new}: {line}")).with_code("renamed"))
}
