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
    assert_eq!(Generations::ALL.to_string(), "clr4 framework-2");
    assert_eq!(Generations::NEW.to_string(), "new");
    let two = Generations::WINDOWS.with(Generations::CORECLR_31);
    assert_eq!(two.to_string(), "windows coreclr-3.1-unix");
    assert_eq!(Generations::from_word("net4"), None);
}

#[test]
fn sets_have_their_members() {
    assert_eq!(Generations::ALL.iter().count(), Generation::ALL.len());
    assert_eq!(Generations::UNIX.iter().count(), 4);
    assert!(Generations::NEW.contains(Generation::Net10Unix));
    assert!(!Generations::NEW.contains(Generation::CoreClr31Unix));
    let both = Generations::NEW.without(Generations::WINDOWS);
    assert_eq!(
        both.iter().collect::<Vec<_>>(),
        [Generation::Net9Unix, Generation::Net9UnixLegacyExceptions, Generation::Net10Unix,]
    );
}
