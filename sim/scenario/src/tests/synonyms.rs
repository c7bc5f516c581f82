//! Tests of words of the field.

use super::*;
use crate::synonyms::{SYNONYMS, interface_names, meaning};
use crate::text::grammar::{Kind, Level};

/// The interfaces as a profiler has them.
const INTERFACES: [&str; 2] = [
    include_str!("../../../../walker/com/src/callback.rs"),
    include_str!("../../../../walker/com/src/info.rs"),
];

/// Returns the names of all methods: lines such as `3 Initialize(…`.
fn methods() -> Vec<&'static str> {
    let lines = INTERFACES.iter().flat_map(|source| source.lines());
    let named = lines.filter_map(|line| {
        let (number, rest) = line.trim().split_once(' ')?;
        number.parse::<u8>().ok()?;
        rest.split_once('(').map(|(name, _)| name)
    });
    named.collect()
}

#[test]
fn each_public_name_has_a_meaning() {
    let methods = methods();
    assert!(methods.len() > 200, "{}", methods.len());
    let of_interfaces = methods.into_iter().chain(interface_names());
    for word in of_interfaces.chain(SYNONYMS.iter().flat_map(|synonym| synonym.words).copied()) {
        let meaning = meaning(word).unwrap_or_else(|| panic!("{word}"));
        assert!(!meaning.here.ends_with('.') && !meaning.here.is_empty(), "{word}");
    }
    for word in [
        "ICorProfilerInfo2::DoStackSnapshot",
        "p/invoke",
        "PInvoke",
        "r2r",
        "SIGUSR1",
        "thread.sleep",
    ] {
        assert!(meaning(word).is_some(), "{word}");
    }
    assert_eq!(meaning("App.Main"), None);
    assert_eq!(meaning("--"), None);
}

#[test]
fn no_word_has_two_meanings() {
    let bare = |word: &str| {
        word.to_lowercase().replace(|c: char| !c.is_alphanumeric() && c != '+' && c != '#', "")
    };
    let mut seen = BTreeSet::new();
    for word in SYNONYMS.iter().flat_map(|synonym| synonym.words) {
        assert!(seen.insert(bare(word.rsplit("::").next().unwrap())), "{word}");
    }
}

/// What is named in code exists: nodes, properties, words, commands of the tool, and what they name.
#[test]
fn what_is_written_here_exists() {
    let mut known = BTreeSet::from(
        ["clrsim", "App.Main", "RequestReJIT", "ForceGC", "#true"].map(str::to_owned),
    );
    let words = |kind: Kind, known: &mut BTreeSet<String>| {
        if let Kind::Word(words) = kind {
            known.extend(words.iter().map(|word| (*word).to_owned()));
        }
    };
    for rule in Level::ALL.into_iter().flat_map(Level::nodes) {
        known.insert(rule.name.to_owned());
        rule.kind_of_arg(0).into_iter().for_each(|kind| words(kind, &mut known));
        for property in &rule.properties {
            known.insert(format!("{}=", property.name));
            words(property.kind, &mut known);
        }
    }
    known.extend(["access-violation", "blocked"].map(str::to_owned));
    known.extend(Generations::all_words().map(str::to_owned));
    for synonym in SYNONYMS {
        for code in synonym.here.split('`').skip(1).step_by(2) {
            let code = code.replace(['{', '}', '…', ';', '"'], " ");
            let mut words = code.split_whitespace();
            let first = words.next().unwrap();
            let first = first.split_inclusive('=').next().unwrap();
            assert!(known.contains(first), "`{code}` of {:?}", synonym.words);
        }
    }
}
