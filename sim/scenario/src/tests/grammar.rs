//! Tests that the grammar's document agrees with the codecs.

use super::*;
use crate::model::MixedFrameKind;
use crate::text::document::Node;
use crate::text::grammar::{Args, Kind, Level, NodeRule};
use clr_codegen::RuntimeCallKind;
use clr_runtime::FrameKind;

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Name => "name".to_owned(),
        Kind::Function => "function".to_owned(),
        Kind::Code => "function, runtime function or wait".to_owned(),
        Kind::Thread => "thread".to_owned(),
        Kind::Number(0, u64::MAX, _) => "number (64 bits)".to_owned(),
        Kind::Number(0, most, _) if most == u64::from(u32::MAX) => "number (32 bits)".to_owned(),
        Kind::Number(1, most, _) if most == u64::from(u32::MAX) => {
            "number (32 bits, not 0)".to_owned()
        }
        Kind::Number(least, most, _) => format!("number ({least} to {most})"),
        Kind::Flag => "`#true` `#false`".to_owned(),
        Kind::Word(words) if words == FrameKind::WORDS => "kind of Frame".to_owned(),
        Kind::Word(words) if words == CallbackKind::WORDS => "callback".to_owned(),
        Kind::Word(words) if words == Gpr::WORDS => "register".to_owned(),
        Kind::Word(words) if words == SLOTS => "register or `none`".to_owned(),
        Kind::Word(words) if words == REGISTERS => "register or vector register".to_owned(),
        Kind::Word(words) if words == SAVED => "register but rsp, or `all`".to_owned(),
        Kind::Word(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ")
        }
        Kind::Tag => "tag".to_owned(),
        Kind::Label => "label".to_owned(),
        Kind::Address => "label or number (64 bits)".to_owned(),
        Kind::Generations => "generations".to_owned(),
        Kind::Caller => "`self` `native-walker` `managed-walker` or thread".to_owned(),
        Kind::Target => "`own` `null` number (64 bits) or thread".to_owned(),
        Kind::Seed => "`none` `leaf` `top-managed` `stale` `bytes` or function".to_owned(),
        Kind::HResult => "HRESULT".to_owned(),
        Kind::Outcome => "HRESULT or `killed` `access-violation` `blocked` `endless`".to_owned(),
        Kind::Flags => "number (32 bits) or `own`".to_owned(),
        Kind::Stale => "`#true` `#false` or registers".to_owned(),
        Kind::Clause => "clause".to_owned(),
        Kind::Party => "`own` or thread".to_owned(),
        Kind::Lock => "lock".to_owned(),
        Kind::AnyLock => "lock or process lock".to_owned(),
        Kind::Event => "event".to_owned(),
        Kind::Buffer => "buffer".to_owned(),
        Kind::ExportArgument => {
            "number (64 bits), buffer, or `*` and the name of a buffer".to_owned()
        }
        Kind::Hazard => "hazard".to_owned(),
        Kind::Faults => "calls".to_owned(),
        Kind::Schedule => "schedule string".to_owned(),
    }
}

/// Returns the first columns of the node's row.
fn row(rule: &NodeRule) -> String {
    let args = match rule.args {
        Args::None => "–".to_owned(),
        Args::One(one) => kind(one),
        Args::Optional(one) => format!("{}, optional", kind(one)),
        Args::Many(many, _) => format!("{}, any number", kind(many)),
        Args::Named(many, limit) => format!("name, then {}, at most {limit}", kind(many)),
    };
    let mut properties = Vec::new();
    let has_registers = rule.kind_of("rax").is_some();
    for property in &rule.properties {
        // All registers share an entry.
        if property.name == "rax" {
            properties.push("`rax=` … `r15=` number (64 bits)".to_owned());
        }
        if !has_registers || Gpr::from_word(property.name).is_none() {
            let needed = if property.required { ", required" } else { "" };
            properties.push(format!("`{}=` {}{needed}", property.name, kind(property.kind)));
        }
    }
    let properties = if properties.is_empty() { "–".to_owned() } else { properties.join("; ") };
    let block = if rule.block.is_some() { " `{ }`" } else { "" };
    format!("| {}{block} | {args} | {properties} | ", node_name(rule))
}

/// Returns the name of a node. All registers share a row.
fn node_name(rule: &NodeRule) -> String {
    if rule.name == "rax" { "`rax` … `r15`".to_owned() } else { format!("`{}`", rule.name) }
}

/// Returns the level's nodes that have a row.
fn rows_of(level: Level) -> impl Iterator<Item = &'static NodeRule> {
    let has_row = |name| name == "rax" || Gpr::from_word(name).is_none();
    level.nodes().iter().filter(move |rule| has_row(rule.name))
}

/// Returns a section with the rows of its table made again. The last column, the meaning, is kept.
fn with_rows(section: &str, level: Level) -> String {
    let (before, rest) = section.split_once("| --- | --- | --- | --- |\n").unwrap();
    let end = rest.find("\n\n").unwrap() + 1;
    let meaning = |rule: &NodeRule| {
        let start = format!("| {} ", node_name(rule));
        let old = rest[..end].lines().find(|line| line.starts_with(&start));
        let meaning = old.and_then(|line| line.trim_end_matches(" |").rsplit(" | ").next());
        meaning.unwrap_or(NO_MEANING)
    };
    let rows = rows_of(level).map(|rule| format!("{}{} |\n", row(rule), meaning(rule)));
    let rows: String = rows.collect();
    format!("{before}| --- | --- | --- | --- |\n{rows}{}", &rest[end..])
}

/// The meaning of a node until somebody writes one.
const NO_MEANING: &str = "?";

/// The tables are made from the codecs: `CLR_BLESS=1` writes them again.
#[test]
fn the_document_has_a_row_for_each_node_and_no_other() {
    let mut document = DOCUMENT.to_owned();
    for level in Level::ALL {
        document = document.replacen(level.section(), &with_rows(level.section(), level), 1);
    }
    if document != DOCUMENT && std::env::var_os("CLR_BLESS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/text/grammar.md");
        std::fs::write(file, &document).unwrap();
    } else {
        let differs = |(new, old): &(&str, &str)| new != old;
        let mut lines = document.lines().zip(DOCUMENT.lines());
        assert_eq!(lines.find(differs), None, "the first row that differs, and the one before");
        assert_eq!(document, DOCUMENT);
    }
    let unclear = document.lines().filter(|line| line.ends_with(&format!("| {NO_MEANING} |")));
    assert_eq!(unclear.collect::<Vec<_>>(), [""; 0], "rows without a meaning");
}

/// Each node that a codec prints or reads is listed: the blank values of lists have all of them.
#[test]
fn no_node_is_without_codec() {
    let names = |level: Level| level.nodes().iter().map(|rule| rule.name).collect::<Vec<_>>();
    let calls = RuntimeCallKind::ALL.iter().map(|kind| kind.word());
    let frames = MixedFrameKind::WORDS.iter().copied();
    let missing = calls.filter(|name| !names(Level::Body).contains(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    let missing = frames.filter(|name| !names(Level::MixedReport).contains(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    for level in Level::ALL {
        assert!(!names(level).is_empty(), "{level:?} has no nodes");
    }
    // A node is in the text of some fixture, or in an example of the document.
    let texts = clr_fixtures::gallery().iter().map(|text| str::from_utf8(text.bytes).unwrap());
    let mut unlisted = BTreeSet::new();
    for text in texts.chain(examples()) {
        let nodes = crate::text::parse::read(text).unwrap();
        unlisted_in(&nodes, Level::Text, &mut unlisted);
    }
    assert_eq!(unlisted, BTreeSet::new(), "nodes of texts without a codec");
}

fn unlisted_in(nodes: &[Node<'_>], level: Level, unlisted: &mut BTreeSet<String>) {
    for node in nodes {
        match level.node(&node.name.text) {
            Some(rule) => {
                let inner = rule.block.into_iter();
                inner.for_each(|level| unlisted_in(node.children(), level, unlisted));
            }
            None => drop(unlisted.insert(node.name.text.to_string())),
        }
    }
}

#[test]
fn the_examples_of_the_document_are_scenarios() {
    assert!(examples().count() >= 5);
    for example in examples() {
        round_trip(&parse(example));
    }
}

/// Each node and each property must occur in an example below the heading of its level.
#[test]
fn the_examples_show_everything() {
    for level in Level::ALL {
        let shown: String = level.examples().collect();
        let words: Vec<_> = shown.split([' ', '\n', ';', '=']).collect();
        for rule in level.nodes() {
            let register = Gpr::from_word(rule.name).is_some();
            assert!(register || words.contains(&rule.name), "{level:?}: {}", rule.name);
            for property in &rule.properties {
                let register = Gpr::from_word(property.name).is_some();
                let shown = shown.contains(&format!(" {}=", property.name));
                assert!(register || shown, "{level:?}: {} {}", rule.name, property.name);
            }
        }
    }
}
