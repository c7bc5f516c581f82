//! Words of command lines that people paste into a shell.

/// Returns a word so that a shell takes it as it is: POSIX shells, or on Windows `PowerShell` and `cmd`.
pub(crate) fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if cfg!(windows) && !word.contains(['$', '`', '"']) {
        format!("\"{word}\"")
    } else if cfg!(windows) {
        // Only `PowerShell` can be told.
        format!("'{}'", word.replace('\'', "''"))
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns true for a character that no shell gives a meaning within a word.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || "-_./:=@,+%\u{a7}".contains(char) || cfg!(windows) && char == '\\'
}

#[cfg(all(test, unix))]
mod tests {
    use super::quoted;
    use std::process::Command;

    #[test]
    fn a_shell_takes_each_word_as_it_is() {
        let words = [
            "",
            "plain-1_2./3:4=@,+%\u{a7}",
            "a b",
            "$(touch x)",
            "`x`",
            "a'b",
            "''",
            "\"",
            "\\",
            "*",
            "~",
            "#a",
            "a;b",
            "a|b",
            "a&b",
            "a>b",
            "!x",
            "{a,b}",
            "[a]",
            "a\nb",
            "\u{1b}]0;x\u{7}",
            "$HOME",
            "(a)",
        ];
        let script = format!("printf '%s\\0' {}", words.map(quoted).join(" "));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(out.split_terminator('\0').collect::<Vec<_>>(), words);
        assert_eq!(quoted("a/b.kdl@net8-unix:clr1:-2"), "a/b.kdl@net8-unix:clr1:-2");
    }
}
