//! Tests that the grammar's document agrees with the tables.

use super::{DOCUMENT, examples, parse, round_trip};
use crate::grammar::{Args, Kind, Level, NodeRule};
use crate::keywords::Keyword;
use clr_runtime::FrameKind;
use clr_runtime::profiling::CallbackKind;
use clr_walker::registers::Gpr;

/// Returns the heading of a level in the document.
fn heading(level: Level) -> &'static str {
    match level {
        Level::Text => "## The text",
        Level::Module => "## In a `module`",
        Level::Type => "## In a `type`",
        Level::Method => "## In a `method`",
        Level::Function => "## In a `function`",
        Level::Body => "## In a `body`, and in the block of a statement",
        Level::Stop => "## In a `stop`",
        Level::Expect => "## In an `expect`",
        Level::Stack => "## In a `stack`",
        Level::Activation => "## In an activation of a `stack`",
        Level::Snapshot => "## In a `snapshot`",
        Level::Seed => "## In a `seed`",
        Level::Report => "## In the `expect` of a `snapshot`",
        Level::MixedWalk => "## In a `mixed-walk`",
        Level::MixedReport => "## In the `expect` of a `mixed-walk`",
        Level::Profiler => "## In a `profiler`",
        Level::Action => "## Actions",
        Level::Explore => "## In an `explore`",
        Level::History => "## In the `expect` of an `explore`",
    }
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Name => "name".to_owned(),
        Kind::Function => "function".to_owned(),
        Kind::Code => "function or runtime function".to_owned(),
        Kind::Thread => "thread".to_owned(),
        Kind::Number(0, u64::MAX) => "number (64 bits)".to_owned(),
        Kind::Number(0, most) if most == u64::from(u32::MAX) => "number (32 bits)".to_owned(),
        Kind::Number(1, most) if most == u64::from(u32::MAX) => {
            "number (32 bits, not 0)".to_owned()
        }
        Kind::Number(least, most) => format!("number ({least} to {most})"),
        Kind::Flag => "`#true` `#false`".to_owned(),
        Kind::Word(words) if words == FrameKind::WORDS => "kind of Frame".to_owned(),
        Kind::Word(words) if words == CallbackKind::WORDS => "callback".to_owned(),
        Kind::Word(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ")
        }
        Kind::Gpr => "register".to_owned(),
        Kind::Slot => "register or `none`".to_owned(),
        Kind::Register => "register or vector register".to_owned(),
        Kind::Saved => "register but rsp, or `all`".to_owned(),
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
        Kind::Hazard => "hazard".to_owned(),
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
    let all_registers = rule.properties.iter().any(|property| property.name == "rax");
    for property in rule.properties {
        // All registers share an entry.
        if property.name == "rax" {
            properties.push("`rax=` … `r15=` number (64 bits)".to_owned());
        }
        if all_registers && Gpr::from_word(property.name).is_some() {
            continue;
        }
        let needed = if property.required { ", required" } else { "" };
        properties.push(format!("`{}=` {}{needed}", property.name, kind(property.kind)));
    }
    let properties = if properties.is_empty() { "–".to_owned() } else { properties.join("; ") };
    let name = node_name(rule);
    let block = if rule.block.is_some() { " `{ }`" } else { "" };
    format!("| {name}{block} | {args} | {properties} | ")
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

/// Returns the part of the document below the level's heading.
fn section(level: Level) -> &'static str {
    let (_, section) = DOCUMENT.split_once(&format!("{}\n", heading(level))).unwrap();
    section.split_once("\n## ").map_or(section, |(section, _)| section)
}

#[test]
fn the_document_has_a_row_for_each_node_and_no_other() {
    let mut wanted = String::new();
    let mut missing = false;
    for level in Level::ALL {
        let rows: Vec<_> = section(level).lines().filter(|line| line.starts_with("| `")).collect();
        for rule in rows_of(level) {
            let row = row(rule);
            missing |=
                !rows.iter().any(|line| line.starts_with(&row) && line.len() > row.len() + 8);
            wanted.push_str(&row);
            wanted.push('\n');
        }
        missing |= rows.len() != rows_of(level).count();
    }
    assert!(!missing, "the rows should be\n{wanted}");
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
        let shown: String = examples().filter(|example| section(level).contains(example)).collect();
        let words: Vec<_> = shown.split([' ', '\n', ';', '=']).collect();
        for rule in level.nodes() {
            let register = Gpr::from_word(rule.name).is_some();
            assert!(register || words.contains(&rule.name), "{level:?}: {}", rule.name);
            for property in rule.properties {
                let register = Gpr::from_word(property.name).is_some();
                let shown = shown.contains(&format!(" {}=", property.name));
                assert!(register || shown, "{level:?}: {} {}", rule.name, property.name);
            }
        }
    }
}
