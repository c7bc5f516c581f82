//! Tests of the formatter: it keeps the content of a text.

use super::*;

/// Formats a text. Formatting the result again does not change it, and it has the same meaning.
fn format(text: &str) -> String {
    let formatted = format_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(format_text(&formatted).as_deref(), Ok(formatted.as_str()));
    assert_eq!(parse(&formatted), parse(text));
    formatted
}

#[test]
fn canonical_text_stays() {
    let text = parse(EVERYTHING).to_string();
    assert_eq!(format(&text), text);
}

#[test]
fn comments_blank_lines_and_numbers_stay() {
    let text = "\u{FEFF}/* two\r\n   lines */\r\n\r\n\r\n\
        function main   kind = \"jit\"{//why\n\n  push rbx \\ // goes on\n rsi;locals 0X40 // size\n\
        /-locals 16\n /- body { work 1 }\n\n\n\n  body{work /*two*/ 2;/- work 9\n} /* end */ }\n\
        // last";
    let text = text.replace("0X40", "0x40");
    insta::assert_snapshot!(format(&text));
}

#[test]
fn invalid_kdl_is_not_formatted() {
    let error = format_text("function {\n").unwrap_err();
    assert_eq!(error.to_string(), "1:10: the block does not end");
}

#[test]
fn fixtures_are_scenarios_and_laid_out() {
    let fixtures = clr_fixtures::all().iter().filter(|it| it.name.starts_with("programs/"));
    let mut count = 0;
    for fixture in fixtures {
        let text = core::str::from_utf8(fixture.bytes).unwrap();
        assert_eq!(format(text), text, "{}", fixture.name);
        count += 1;
    }
    assert!(count >= 3, "{count}");
}
