use super::*;
use std::fmt::Write as _;

/// Returns the table of this module's documentation.
fn table() -> String {
    let mut table = String::from("\n| question |");
    for generation in Generation::ALL {
        write!(table, " {generation} |").unwrap();
    }
    table.push_str("\n| --- |");
    table.push_str(&" --- |".repeat(Generation::ALL.len()));
    for question in QUESTIONS {
        write!(table, "\n| `{}` |", question.name).unwrap();
        for generation in Generation::ALL {
            write!(table, " {} |", (question.answer)(generation)).unwrap();
        }
    }
    table.push('\n');
    table
}

/// `CLR_BLESS=1` writes the table.
#[test]
fn the_documentation_has_all_answers() {
    if std::env::var_os("CLR_BLESS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/generation/table.md");
        std::fs::write(file, table()).unwrap();
    }
    assert_eq!(table(), include_str!("table.md"), "CLR_BLESS=1 writes it anew");
}

#[test]
fn every_question_distinguishes_generations() {
    for question in QUESTIONS {
        let answers = Generation::ALL.map(question.answer);
        assert!(answers.iter().any(|answer| *answer != answers[0]), "{}", question.name);
        assert!(!question.meaning.is_empty(), "{}", question.name);
    }
}

#[test]
fn names_are_unique_and_found() {
    for generation in Generation::ALL {
        assert_eq!(Generation::from_name(generation.name()), Some(generation));
    }
    assert_eq!(Generation::from_name("net4"), None);
}

#[test]
fn words_name_their_sets() {
    for bits in 0..=Generations::ALL.0 {
        let set = Generations(bits);
        let words = set.words();
        let read = words.iter().map(|word| Generations::from_word(word).unwrap());
        assert_eq!(read.fold(Generations::NONE, Generations::with), set, "{words:?}");
    }
    assert_eq!(Generations::ALL.to_string(), "all");
    assert_eq!(Generations::NEW.to_string(), "new");
    let two = Generations::WINDOWS.with(Generations::CORECLR_31);
    assert_eq!(two.to_string(), "windows coreclr-3.1-unix");
    assert_eq!(Generations::from_word("net4"), None);
}

#[test]
fn words_name_families_and_properties() {
    let word = |word| Generations::from_word(word).unwrap();
    assert_eq!(word("linux"), word("unix"));
    assert_eq!(word("all"), Generations::ALL);
    assert_eq!(word("newest"), word("net11"));
    assert_eq!(word("core"), Generations::FRAMEWORK.inverse());
    let native = word("hides_exception_handling=no");
    assert!(native.contains(Generation::Net9UnixLegacyExceptions));
    assert_eq!(native.inverse(), word("hides_exception_handling=yes"));
    let large = word("context_size=0xca0").iter().collect::<Vec<_>>();
    assert_eq!(large, [Generation::Net11Unix, Generation::Net10Unix]);
    for none in ["hides_exception_handling=maybe", "context_size", "=", "no_question=no"] {
        assert_eq!(Generations::from_word(none), None, "{none}");
    }
}

#[test]
fn sets_have_their_members() {
    assert_eq!(Generations::ALL.iter().count(), Generation::ALL.len());
    assert!(Generations::NEW.contains(Generation::Net10Unix));
    assert!(!Generations::NEW.contains(Generation::CoreClr31Unix));
    let both = Generations::NEW.without(Generations::WINDOWS);
    assert_eq!(
        both.iter().collect::<Vec<_>>(),
        [
            Generation::Net11Unix,
            Generation::Net10Unix,
            Generation::Net9Unix,
            Generation::Net9UnixLegacyExceptions
        ]
    );
    let net8 = Generations::NET_8.iter().collect::<Vec<_>>();
    assert_eq!(net8, [Generation::Net8Windows, Generation::Net8Unix]);
}

#[test]
fn answers_have_words_and_sources() {
    for (known, word, source) in [
        (Known::Observed, "observed", None),
        (Known::Read("a.cpp: F"), "read", Some("a.cpp: F")),
        (Known::Documented("page"), "documented", Some("page")),
        (Known::Assumed("as 3.1"), "assumed", Some("as 3.1")),
    ] {
        assert_eq!((known.word(), known.source()), (word, source));
        let expected = source.map_or(word.to_owned(), |source| format!("{word} ({source})"));
        assert_eq!(known.to_string(), expected);
    }
    assert_eq!(Version(3, 1).to_string(), "3.1");
}

#[test]
fn products_are_reported_by_their_names() {
    for generation in Generation::ALL {
        assert_eq!(
            generation.is_core(),
            !generation.name().starts_with("framework"),
            "{generation}"
        );
    }
}

/// Tests contract §3.5: six registers that callees save on Unix, eight on Windows, and the return address
/// after them.
#[test]
fn fields_of_hijack_arguments_follow_each_other() {
    use values::{HijackArgsLayout, InlinedCallFrameLayout};
    // The tables of runtimes are made by the compiler; here the functions run.
    for returned in [8, 16, 32_u64].map(core::hint::black_box) {
        let unix = HijackArgsLayout::unix(returned);
        assert_eq!(
            (unix.registers, unix.rsp, unix.return_address),
            (returned, None, returned + 48)
        );
        let windows = HijackArgsLayout::windows(returned);
        assert_eq!(
            (windows.registers, windows.rsp, windows.return_address),
            (returned, None, returned + 64)
        );
        let with_rsp = HijackArgsLayout::windows_with_rsp(returned);
        assert_eq!(
            (with_rsp.registers, with_rsp.rsp, with_rsp.return_address),
            (returned, Some(returned + 64), returned + 72)
        );
        let call = InlinedCallFrameLayout::after(returned);
        assert_eq!(
            (call.call_site_sp, call.return_address, call.frame_pointer),
            (returned, returned + 8, returned + 16)
        );
    }
}
