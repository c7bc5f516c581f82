//! Ids that code, texts and messages cite, and the rules behind them.
//!
//! ```
//! use clr_sim::book::references::{Kind, find};
//!
//! let reference = find("§2.6")?;
//! assert_eq!((reference.kind, reference.title.as_str()), (Kind::Section, "Managed code by address"));
//! assert_eq!(find("g-17")?.id, "G17");
//! assert_eq!(find("E-22").unwrap_err().to_string(), "there is no E-22; the nearest is E-21");
//! # Ok::<(), clr_sim::book::references::UnknownId>(())
//! ```

use super::contract;
use clr_runtime::clause;
use clr_story::Hazard;
use core::fmt;
use std::sync::LazyLock;

/// A page of the book that defines ids.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// Name of the file, without its ending.
    pub(super) name: &'static str,
    /// Markdown text.
    pub(super) text: &'static str,
}

/// A kind of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A clause: C-014.
    Clause,
    /// A hazard: H-08.
    Hazard,
    /// A section of the contract: §2.6.
    Section,
    /// A row of the entry-check table, contract §2.2: Row 13a.
    Row,
    /// An error of the documentation: D-15.
    Documentation,
    /// A worked stack: E-6.
    Stack,
    /// A field bug: G17.
    FieldBug,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Clause,
        Self::Hazard,
        Self::Section,
        Self::Row,
        Self::Documentation,
        Self::Stack,
        Self::FieldBug,
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clause => "clause",
            Self::Hazard => "hazard",
            Self::Section => "section",
            Self::Row => "row",
            Self::Documentation => "documentation",
            Self::Stack => "stack",
            Self::FieldBug => "field-bug",
        }
    }

    /// Returns the beginning of ids, in lower case.
    const fn start(self) -> &'static str {
        match self {
            Self::Clause => "c",
            Self::Hazard => "h",
            Self::Section => "§",
            Self::Row => "row",
            Self::Documentation => "d",
            Self::Stack => "e",
            Self::FieldBug => "g",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An id with the rule behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Id in the form in which it is cited.
    pub id: String,
    /// Kind of the id.
    pub kind: Kind,
    /// Title of the section, or of the table that has the row.
    pub title: String,
    /// Text in Markdown, without links.
    pub text: String,
    /// Page of the book, or path of the table in the code.
    pub page: &'static str,
}

/// Error for an id that nothing defines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownId {
    /// The id.
    pub id: String,
    /// Ids of the same kind before and after it. Empty if the text is no id of any kind.
    pub nearest: Vec<String>,
}

impl fmt::Display for UnknownId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no {}; ", self.id)?;
        match self.nearest.as_slice() {
            [] => f.write_str("ids are like C-014, H-08, D-15, E-6, G17, §2.6 and \"Row 13a\""),
            [one] => write!(f, "the nearest is {one}"),
            more => write!(f, "the nearest are {}", more.join(" and ")),
        }
    }
}

/// Returns the rule behind an id. Case, spaces, leading zeros and the hyphen do not matter, and a
/// number alone is that of a clause.
///
/// # Errors
///
/// Returns an error with the nearest ids if nothing defines the id.
pub fn find(id: &str) -> Result<&'static Reference, UnknownId> {
    let unknown = |nearest| UnknownId { id: id.to_owned(), nearest };
    let key = Key::of(id).ok_or_else(|| unknown(Vec::new()))?;
    let at = BY_KEY.partition_point(|(known, _)| *known < key);
    match BY_KEY.get(at) {
        Some((known, reference)) if *known == key => Ok(reference),
        after => {
            let before = at.checked_sub(1).and_then(|before| BY_KEY.get(before));
            let nearest = before.into_iter().chain(after);
            let nearest = nearest.filter(|(known, _)| known.kind == key.kind);
            Err(unknown(nearest.map(|(_, known)| known.id.clone()).collect()))
        }
    }
}

/// Returns all references, by kind and in the order of the pages.
pub fn all() -> &'static [Reference] {
    &ALL
}

/// The references of all pages and tables: reading the pages takes milliseconds.
static ALL: LazyLock<Vec<Reference>> = LazyLock::new(|| {
    let clauses = clause::entries().map(|entry| Reference {
        id: entry.clause.to_string(),
        kind: Kind::Clause,
        title: entry.chapter.title().to_owned(),
        text: entry.rule.to_owned(),
        page: "clauses",
    });
    let hazards = Hazard::ALL.into_iter().map(|hazard| Reference {
        id: hazard.to_string(),
        kind: Kind::Hazard,
        title: hazard.title().to_owned(),
        text: hazard_text(hazard),
        page: "clr_story::Hazard",
    });
    let mut defined: Vec<_> = contract::PAGES.iter().flat_map(Page::references).collect();
    defined.sort_by_key(|reference| reference.kind);
    clauses.chain(hazards).chain(defined).collect()
});

/// The references, ordered by their keys.
static BY_KEY: LazyLock<Vec<(Key, &Reference)>> = LazyLock::new(|| {
    let known = all().iter().filter_map(|known| Some((Key::of(&known.id)?, known)));
    let mut known: Vec<_> = known.collect();
    known.sort_by(|(one, _), (other, _)| one.cmp(other));
    known
});

fn hazard_text(hazard: Hazard) -> String {
    let mut text = format!("Avoided by: {}.", hazard.avoided_by());
    if !hazard.clauses().is_empty() {
        let clauses: Vec<_> = hazard.clauses().iter().map(ToString::to_string).collect();
        text.push_str("\nClauses: ");
        text.push_str(&clauses.join(", "));
        text.push('.');
    }
    text
}

/// An id in comparable form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: Kind,
    /// Numbers of sections and rows, and the rest of a row: `13a` is 13, 1.
    numbers: Vec<u32>,
}

impl Key {
    fn of(id: &str) -> Option<Self> {
        let id = id.trim().to_lowercase();
        let kind = Kind::ALL.into_iter().find(|kind| id.starts_with(kind.start()));
        let Some(kind) = kind else {
            // A bare number is a clause.
            return Some(Self { kind: Kind::Clause, numbers: vec![number(&id)?] });
        };
        let rest = id[kind.start().len()..].trim_start();
        let numbers = match kind {
            Kind::Section => rest.split('.').map(number).collect::<Option<_>>()?,
            Kind::Row => {
                let letter = rest.chars().next_back().filter(char::is_ascii_lowercase);
                let digits = rest.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(rest);
                let letter = letter.map_or(0, |letter| letter as u32 - 'a' as u32 + 1);
                vec![number(digits)?, letter]
            }
            _ => vec![number(rest.strip_prefix('-').unwrap_or(rest))?],
        };
        Some(Self { kind, numbers })
    }
}

/// Parses a number of digits only.
fn number(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

impl Page {
    /// Returns what the page defines: sections and stacks by their headings, rows of tables by
    /// their first column.
    fn references(&self) -> Vec<Reference> {
        let mut references: Vec<Reference> = Vec::new();
        let mut rows = Vec::new();
        let mut open = None;
        let mut header: Vec<String> = Vec::new();
        let mut title = String::new();
        for line in self.text.lines() {
            if let Some(heading) = line.strip_prefix("# ").or_else(|| line.strip_prefix("## ")) {
                let (id, rest) = heading.split_once(' ').unwrap_or((heading, ""));
                let kind = Key::of(id).map(|key| key.kind);
                let kind = kind.filter(|kind| matches!(kind, Kind::Section | Kind::Stack));
                if kind.is_some() { rest } else { heading }.clone_into(&mut title);
                open = kind.map(|_| references.len());
                references.extend(kind.map(|kind| self.reference(id, kind, &title)));
                continue;
            }
            let cells = cells(line);
            if cells.is_empty() {
                header.clear();
            } else if header.is_empty() {
                header = cells;
            } else {
                rows.extend(self.row(&header, &cells, &title));
            }
            if let Some(open) = open.and_then(|open| references.get_mut(open)) {
                open.text.push_str(&unlinked(line));
                open.text.push('\n');
            }
        }
        for reference in &mut references {
            reference.text = reference.text.trim().to_owned();
        }
        references.extend(rows);
        references
    }

    fn reference(&self, id: &str, kind: Kind, title: &str) -> Reference {
        Reference {
            id: id.to_owned(),
            kind,
            title: title.to_owned(),
            text: String::new(),
            page: self.name,
        }
    }

    /// Returns the reference of a table's row, if the table defines ids: its first column is `Row`
    /// or `Id`.
    fn row(&self, header: &[String], cells: &[String], title: &str) -> Option<Reference> {
        let (name, id) = (header.first()?, cells.first()?);
        let id = match name.as_str() {
            "Row" => format!("Row {id}"),
            "Id" => id.clone(),
            _ => return None,
        };
        let kind = Key::of(&id)?.kind;
        let columns = header.iter().zip(cells).skip(1);
        let columns: Vec<_> = columns.map(|(name, cell)| format!("{name}: {cell}")).collect();
        Some(Reference { text: columns.join("\n"), ..self.reference(&id, kind, title) })
    }
}

/// Returns the cells of a table's row, without links; none if the line is no row.
fn cells(line: &str) -> Vec<String> {
    let row = line.strip_prefix('|').and_then(|row| row.strip_suffix('|'));
    row.into_iter().flat_map(|row| row.split('|')).map(|cell| unlinked(cell.trim())).collect()
}

/// Returns a line without the targets of its links, and without escapes.
fn unlinked(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, label, after)) = link(rest) {
        plain.push_str(before);
        plain.push_str(label);
        rest = after;
    }
    plain.push_str(rest);
    plain.replace("\\[", "[")
}

/// Returns the text before the first link of a line, the link's label, and the text after the link.
fn link(line: &str) -> Option<(&str, &str, &str)> {
    let (start, rest) = line.split_once("](")?;
    let (_, after) = rest.split_once(')')?;
    let (before, label) = start.rsplit_once('[')?;
    Some((before, label, after))
}
