//! Tests of upgrades: texts as they were written for earlier versions of the format.

use super::*;

/// As a text of the gallery was, before a claim got another name.
const OLD: &str = r#"function "running" kind="jit" { body { work 4; }; } // "running" here is a name
thread "running" start="running"
stop thread="running" at="running" {
    mixed-walk policy="signal" room=32 {
        expect {
            gap "running"
            complete "running"
        }
    }
}
"#;

#[test]
fn old_words_are_renamed_where_the_new_ones_are_allowed() {
    let (new, renamed) = upgrade_text(OLD);
    let expected = OLD
        .replace("gap \"running\"", "gap \"not-stopped\"")
        .replace("complete \"running\"", "complete \"not-stopped\"")
        .replace("room=32", "capacity=32");
    assert_eq!(new, expected);
    let lines: Vec<_> = renamed.iter().map(|word| (word.line, word.before, word.now)).collect();
    let expected =
        [(4, "room", "capacity"), (6, "running", "not-stopped"), (7, "running", "not-stopped")];
    assert_eq!(lines, expected);
    parse(&new);
    // Nothing is left to do, and a text that needs nothing stays as it is.
    assert_eq!(upgrade_text(&new), (new.clone(), Vec::new()));
}

#[test]
fn the_message_about_an_old_word_says_what_mends_it() {
    let error = Scenario::parse(OLD).unwrap_err();
    let help = |number: usize| error.problems()[number].kind.help().unwrap();
    assert_eq!(help(0), "`room` is `capacity` now: `clrsim fmt --upgrade` rewrites it");
    assert_eq!(help(1), "`running` is `not-stopped` now: `clrsim fmt --upgrade` rewrites it");
}

#[test]
fn what_is_wrong_for_another_reason_stays() {
    let wrong = OLD.replace("at=\"running\"", "at=\"runing\"");
    let (new, renamed) = upgrade_text(&wrong);
    assert!(renamed.len() <= 3 && new.contains("at=\"runing\""));
    assert!(Scenario::parse(&new).is_err());
    assert_eq!(upgrade_text("function {"), ("function {".to_owned(), Vec::new()));
}
