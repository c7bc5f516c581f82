//! Tests of what editors ask: names, outlines, meanings and corrections.

use super::*;
use crate::{Level, NameKind, OutlineNode, RenameError, names_of, outline_of, rename};
use std::collections::BTreeMap;

/// Returns a text with changes, which are listed from its end to its start.
fn changed(text: &str, changes: &[(crate::Span, String)]) -> String {
    let mut text = text.to_owned();
    for (span, new) in changes {
        text.replace_range(span.offset..span.end(), new);
    }
    text
}

fn renamed(text: &str, at: &str, new: &str) -> Result<String, RenameError> {
    let changes = rename(text, text.find(at).unwrap(), new)?;
    Ok(changed(text, &changes))
}

/// Returns all texts of the gallery.
fn gallery() -> impl Iterator<Item = &'static str> {
    clr_fixtures::gallery().iter().map(|text| str::from_utf8(text.bytes).unwrap())
}

#[test]
fn names_are_renamed_wherever_they_are_used() {
    let text = r#"
module "m.dll" { type "Main" }
buffer "reply" size=8
function "App.Main" kind="jit" {
    body {
        p-invoke "Lib.Sleep"
        call "App.Main2"
    }
}
function "App.Main2" kind="jit"
function "Lib.Sleep" { export "f" "reply" "*reply" 3 result="reply" { expect "reply" is=3 } }
thread "own"
thread "ui"
stop at="IL_STUB_PInvoke:Lib.Sleep" thread="ui" {
    // App.Main and Lib.Sleep
    snapshot by="own" thread="own" seed="App.Main"
}
"#;
    assert!(Scenario::parse(text).is_ok(), "{:?}", Scenario::parse(text));
    let sleep = renamed(text, "\"Lib.Sleep", "Lib.Wait").unwrap();
    assert_eq!(sleep.matches("Lib.Wait").count(), 3, "{sleep}");
    assert!(
        sleep.contains("at=\"IL_STUB_PInvoke:Lib.Wait\"")
            && sleep.contains("// App.Main and Lib.Sleep")
    );
    let main = renamed(text, "\"App.Main\"", "App.Start").unwrap();
    assert_eq!(main.matches("App.Start").count(), 2, "{main}");
    assert!(main.contains("seed=\"App.Start\"") && main.contains("\"App.Main2\""), "{main}");
    let buffer = renamed(text, "\"reply", "it").unwrap();
    assert!(buffer.contains("\"it\" \"*it\" 3 result=\"it\" { expect \"it\" is=3 }"), "{buffer}");
    // The word hides the thread where both could be meant.
    let own = renamed(text, "\"own\"", "other").unwrap();
    assert!(own.contains("by=\"other\" thread=\"own\""), "{own}");

    let refused = |at, new| renamed(text, at, new).unwrap_err();
    assert_eq!(refused("\"App.Main\"", "App.Main2"), RenameError::Taken("App.Main2".into()));
    assert!(matches!(refused("\"App.Main\"", "a b"), RenameError::Refused { .. }));
    assert!(matches!(refused("\"own\"", "self"), RenameError::Taken(_)));
    assert!(matches!(refused("module", "x"), RenameError::NoName(1)));
    let wrong = rename("stop at=\"f\"", 10, "g");
    assert!(matches!(wrong, Err(RenameError::Problems(_))), "{wrong:?}");
}

#[test]
fn names_of_stacks_keep_versions_and_offsets() {
    let new = renamed(STACK, "\"App.Main+", "App.Start").unwrap();
    let count = |text: &str, part: &str| text.matches(part).count();
    assert_eq!(count(&new, "\"App.Start"), count(STACK, "\"App.Main"), "{new}");
}

/// Renames a name of each kind in each text of the gallery, and gives it its name again.
#[test]
fn names_of_the_gallery_are_renamed_and_back() {
    let mut counts = BTreeMap::new();
    for text in gallery() {
        let before = parse(text);
        let mut seen = BTreeSet::new();
        for name in names_of(text).iter().filter(|it| it.is_definition) {
            if !seen.insert(name.kind) {
                continue;
            }
            // A function's name says the type that it belongs to, and native ones may be known to the runtime.
            let new = format!("{}zz", name.name);
            let changes = rename(text, name.span.offset, &new)
                .unwrap_or_else(|error| panic!("{}: {error}\n{text}", name.name));
            let there = changed(text, &changes);
            let definition =
                names_of(&there).into_iter().find(|it| it.is_definition && it.name == new);
            let back = rename(&there, definition.unwrap().span.offset, &name.name).unwrap();
            assert_eq!(parse(&changed(&there, &back)), before, "{}", name.name);
            *counts.entry(name.kind).or_insert(0) += changes.len();
        }
    }
    // No text of the gallery has a buffer.
    let all = [NameKind::Function, NameKind::Thread, NameKind::Lock, NameKind::Event];
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), all);
}

fn each(node: &OutlineNode, visit: &mut dyn FnMut(&OutlineNode)) {
    visit(node);
    node.children.iter().for_each(|child| each(child, visit));
}

#[test]
fn outlines_have_the_extents_of_nodes() {
    for text in gallery().chain([EVERYTHING, STACK]) {
        for node in outline_of(text) {
            each(&node, &mut |node| {
                let part = &text[node.span.offset..node.span.end()];
                let again = outline_of(part);
                assert_eq!(again.len(), 1, "{part}");
                assert_eq!((&again[0].node, &again[0].title), (&node.node, &node.title), "{part}");
                assert_eq!(again[0].children.len(), node.children.len(), "{part}");
            });
        }
    }
    assert_eq!(outline_of("a {"), []);
}

#[test]
fn each_node_has_a_meaning_and_an_example() {
    for level in Level::ALL {
        for rule in level.nodes() {
            let meaning = rule.meaning(level).unwrap_or_else(|| panic!("{level:?}: {}", rule.name));
            assert!(meaning.len() > 5 && !meaning.contains(" | "), "{}: {meaning}", rule.name);
            // One register stands for all.
            if Gpr::from_word(rule.name).is_none() {
                let example = rule.example(level);
                let example = example.unwrap_or_else(|| panic!("{level:?}: {}", rule.name));
                assert_eq!(outline_of(&example)[0].node, rule.name, "{example}");
            }
        }
    }
}

#[test]
fn corrections_mend_what_they_are_for() {
    let mended = |text: &str| {
        let error = Scenario::parse(text).unwrap_err();
        let mut problems = error.problems().iter();
        let correction = problems.find_map(|it| it.corrections().into_iter().next())?;
        let span = correction.span;
        let mut text = text.to_owned();
        text.replace_range(span.offset..span.end(), &correction.text);
        Some(text)
    };
    let program = |rest: &str| format!("function \"main\" kind=\"jit\"\n{rest}\n");
    for (wrong, right) in [
        ("stop at=\"mian\"", "stop at=\"main\""),
        ("stop at=mian", "stop at=main"),
        ("stop at=\"m\\u{69}an\"", "stop at=\"main\""),
        ("stpo at=main", "stop at=main"),
        ("stop att=main", "stop at=main"),
        ("thread \"a\" start=\"man\"", "thread \"a\" start=\"main\""),
        ("stop end { snapshot by=managed-wlker }", "stop end { snapshot by=managed-wlker }"),
        (
            "stop at=main { expect rules=\"windows\" { frame main; } }",
            "stop at=main { expect rules=\"coreclr\" { frame main; } }",
        ),
        ("stop at=main  at=main", "stop at=main"),
        (
            "stop end { mixed-walk room=3 policy=seeded }",
            "stop end { mixed-walk capacity=3 policy=seeded }",
        ),
        ("stop end { mixed-walk }", "stop end { mixed-walk policy=\"unseeded\" }"),
        (
            "stop end { snapshot { expect on=\"windos\" { result \"S_OK\"; } } }",
            "stop end { snapshot { expect on=\"windows\" { result \"S_OK\"; } } }",
        ),
        (
            "stop end { snapshot { expect { result \"E_FIAL\"; } } }",
            "stop end { snapshot { expect { result \"E_FAIL\"; } } }",
        ),
    ] {
        let text = program(wrong);
        let found = mended(&text).unwrap_or(text);
        assert_eq!(found, program(right));
    }
}
