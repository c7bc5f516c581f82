//! The names that a text defines and uses, with their places, and renaming.

use crate::Scenario;
use crate::text::codec::{CONTENT, is_fixed_word, quoted};
use crate::text::document::{Entry, Literal, Node};
use crate::text::error::{ScenarioError, Span};
use crate::text::grammar::{Kind, Level, NodeRule};
use crate::text::parse;
use core::fmt;
use std::collections::BTreeSet;
use thiserror::Error;

/// The kind of thing that has a name. Names of one kind are different from each other; those of two kinds need not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameKind {
    /// A function of a program, or one on a stack placed by hand.
    Function,
    /// A thread of the program or of the profiler.
    Thread,
    /// A lock of the profiler.
    Lock,
    /// An event of the profiler.
    Event,
    /// Memory that exports get a pointer to.
    Buffer,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function => "function",
            Self::Thread => "thread",
            Self::Lock => "lock",
            Self::Event => "event",
            Self::Buffer => "buffer",
        })
    }
}

/// A place in a text where a name is defined or used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameUse {
    /// The kind of thing that has the name.
    pub kind: NameKind,
    /// The name, as its definition has it.
    pub name: String,
    /// The whole value that has the name in it, with its quotes.
    pub span: Span,
    /// The name is defined here.
    pub is_definition: bool,
    /// The parts of the value before and after the name: `*`, `IL_STUB_PInvoke:`, `@tier1`, `+0x40`.
    around: (String, String),
}

/// Why a name cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RenameError {
    /// The text has problems, so that its names are not sure.
    #[error("the text has problems: {0}")]
    Problems(ScenarioError),
    /// No name that the text defines is at this place.
    #[error("no name that this text defines is at byte {0}")]
    NoName(usize),
    /// The name means something else in this text already, or wherever it would be used.
    #[error("`{0}` already means something else in this text")]
    Taken(String),
    /// The text would have problems with this name.
    #[error("with the name `{name}` the text has problems: {error}")]
    Refused {
        /// The new name.
        name: String,
        /// The problems.
        error: ScenarioError,
    },
}

/// Returns the places of all names that a text defines, in the order of the text: first all definitions, then all uses. A
/// text that is not KDL has none.
#[must_use]
pub fn names_of(text: &str) -> Vec<NameUse> {
    let Ok(nodes) = parse::read(text) else { return Vec::new() };
    let mut values = Vec::new();
    collect(&nodes, Level::Text, &mut values);
    let mut found: Vec<_> = values.iter().filter_map(definition).collect();
    // A function is on a stack once or more: the first place stands for its definition.
    let mut seen = BTreeSet::new();
    found.retain(|it| seen.insert((it.kind, it.name.clone())));
    let places: BTreeSet<_> = found.iter().map(|it| it.span.offset).collect();
    let is_other = |value: &&Place<'_>| !places.contains(&value.entry.value_span.offset);
    found.extend(values.iter().filter(is_other).filter_map(|value| used(value, &seen)));
    found
}

/// Returns the changes that give a name another one, from the end of the text to its start: the place of a whole value, and
/// its new text. The name is that of the value at a byte offset.
///
/// # Errors
/// Returns why the name cannot be changed. Nothing is changed unless the text is a scenario before and after, with the same
/// uses of the name.
///
/// ```
/// let text = "function \"f\" { body { call \"g\"; }; }\nfunction g\n";
/// let changes = clr_scenario::rename(text, text.find("\"g").unwrap(), "h").unwrap();
/// assert_eq!(changes.len(), 2);
/// assert_eq!(changes[1].1, "\"h\"");
/// ```
pub fn rename(text: &str, offset: usize, new: &str) -> Result<Vec<(Span, String)>, RenameError> {
    Scenario::parse(text).map_err(RenameError::Problems)?;
    let names = names_of(text);
    let name = names.iter().find(|it| it.is_at(offset)).ok_or(RenameError::NoName(offset))?;
    let is_new = |it: &&NameUse| it.kind == name.kind && it.name == new;
    if new != name.name && names.iter().any(|it| is_new(&it)) {
        return Err(RenameError::Taken(new.to_owned()));
    }
    let uses = names.iter().filter(|it| it.is_of_same(name));
    let mut changes: Vec<_> = uses.map(|it| it.with(new)).collect();
    changes.sort_by_key(|(span, _)| std::cmp::Reverse(span.offset));
    let mut renamed = text.to_owned();
    for (span, value) in &changes {
        renamed.replace_range(span.offset..span.end(), value);
    }
    Scenario::parse(&renamed)
        .map_err(|error| RenameError::Refused { name: new.to_owned(), error })?;
    // Each use is still one, and no other has become one.
    let now = names_of(&renamed);
    if now.len() != names.len() || now.iter().filter(is_new).count() != changes.len() {
        return Err(RenameError::Taken(new.to_owned()));
    }
    Ok(changes)
}

impl NameUse {
    /// Returns true if a byte offset is in the value, or at one of its ends.
    #[must_use]
    pub fn is_at(&self, offset: usize) -> bool {
        (self.span.offset..=self.span.end()).contains(&offset)
    }

    /// Returns true if both are uses of the same name.
    #[must_use]
    pub fn is_of_same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name == other.name
    }

    /// Returns the place of the value, and its text with another name.
    fn with(&self, name: &str) -> (Span, String) {
        let (before, after) = &self.around;
        (self.span, quoted(&format!("{before}{name}{after}")))
    }
}

/// A value of a text, and its place in the grammar.
struct Place<'n> {
    level: Level,
    rule: &'static NodeRule,
    /// The name of the property, if the value is one's.
    property: Option<&'n str>,
    kind: Kind,
    text: &'n str,
    entry: &'n Entry<'n>,
}

/// Collects the texts among the values of nodes, by the grammar. What it does not know is left out.
fn collect<'n>(nodes: &'n [Node<'n>], level: Level, values: &mut Vec<Place<'n>>) {
    for node in nodes {
        let Some(rule) = level.node(&node.name.text) else { continue };
        let mut args = 0..;
        for entry in &node.entries {
            let property = entry.name.as_ref().map(|name| &*name.text);
            let kind = match property {
                Some(name) => rule.kind_of(name),
                None => args.next().and_then(|index| rule.kind_of_arg(index)),
            };
            if let (Some(kind), Literal::Text(text)) = (kind, &entry.value) {
                values.push(Place { level, rule, property, kind, text, entry });
            }
        }
        if let Some(inner) = rule.block {
            collect(node.children(), inner, values);
        }
    }
}

/// Returns the name that a value defines.
fn definition(place: &Place<'_>) -> Option<NameUse> {
    let kind = match (place.level, place.rule.name, place.property) {
        (Level::Text, "function", None) | (Level::Stack, "stub", None) => NameKind::Function,
        (Level::Text | Level::Profiler, "thread", None) => NameKind::Thread,
        (Level::Text, "buffer", None) => NameKind::Buffer,
        (Level::Profiler, "lock", None) => NameKind::Lock,
        (Level::Profiler, "event", None) => NameKind::Event,
        (Level::Stack, _, None) if place.kind == Kind::Label => NameKind::Function,
        _ => return None,
    };
    let end = if place.kind == Kind::Label { ends(place.text)[2] } else { place.text.len() };
    let (name, after) = place.text.split_at_checked(end)?;
    Some(place.of(kind, "", name, after, true))
}

/// Returns the use of a name that is defined, if a value is one.
fn used(place: &Place<'_>, defined: &BTreeSet<(NameKind, String)>) -> Option<NameUse> {
    let is_defined = |kind, name: &str| defined.contains(&(kind, name.to_owned()));
    let plain = |kind| {
        let is_name = !is_fixed_word(place.kind, place.text) && is_defined(kind, place.text);
        is_name.then(|| place.of(kind, "", place.text, "", false))
    };
    match place.kind {
        Kind::Thread | Kind::Party | Kind::Caller | Kind::Target => plain(NameKind::Thread),
        Kind::Lock | Kind::AnyLock => plain(NameKind::Lock),
        Kind::Event => plain(NameKind::Event),
        Kind::Buffer => plain(NameKind::Buffer),
        Kind::ExportArgument => {
            let (before, name) = match place.text.strip_prefix(CONTENT) {
                Some(name) => place.text.split_at(place.text.len() - name.len()),
                None => ("", place.text),
            };
            let kind = NameKind::Buffer;
            is_defined(kind, name).then(|| place.of(kind, before, name, "", false))
        }
        Kind::Name if place.level == Level::Coverage && place.property == Some("by") => {
            plain(NameKind::Thread)
        }
        Kind::Name if !place.is_code() => None,
        Kind::Name | Kind::Function | Kind::Code | Kind::Label | Kind::Address | Kind::Seed => {
            if is_fixed_word(place.kind, place.text) {
                return None;
            }
            let kind = NameKind::Function;
            let mut parts = code_parts(place.text);
            let (before, name, after) = parts.find(|(_, name, _)| is_defined(kind, name))?;
            Some(place.of(kind, before, name, after, false))
        }
        _ => None,
    }
}

/// Returns the ways in which a text can name a function, the longest name first: a stub of the function has its own name
/// before it, a version of its code `@` and a word after it, and a label an offset.
fn code_parts(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let starts = [0].into_iter().chain(text.match_indices(':').map(|(at, _)| at + 1));
    starts.flat_map(move |start| {
        let part = move |end| Some((text.get(..start)?, text.get(start..end)?, text.get(end..)?));
        ends(text).into_iter().filter_map(part)
    })
}

/// Returns where a function's name in a text can end: with the text, before an offset, and before a version of its code.
fn ends(text: &str) -> [usize; 3] {
    let label = text.rfind("+0x").unwrap_or(text.len());
    [text.len(), label, text.find('@').unwrap_or(label)]
}

impl Place<'_> {
    /// Returns true if a name without a kind of its own is a function's.
    fn is_code(&self) -> bool {
        match self.level {
            Level::Stack => matches!(
                (self.rule.name, self.property),
                ("hijacked", None) | ("frame", Some("to" | "method" | "captured-in"))
            ),
            Level::Report => matches!(self.rule.name, "frame" | "marker"),
            Level::MixedReport => {
                matches!(self.rule.name, "managed" | "hidden" | "native" | "unknown")
            }
            _ => false,
        }
    }

    fn of(
        &self,
        kind: NameKind,
        before: &str,
        name: &str,
        after: &str,
        is_definition: bool,
    ) -> NameUse {
        NameUse {
            kind,
            name: name.to_owned(),
            span: self.entry.value_span,
            is_definition,
            around: (before.to_owned(), after.to_owned()),
        }
    }
}
