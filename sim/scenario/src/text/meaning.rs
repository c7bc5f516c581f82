//! What the grammar's document says of a node: its meaning, and an example.

use crate::text::grammar::{Level, NodeRule};
use crate::text::keywords::Keyword as _;
use crate::text::outline::{OutlineNode, outline_of};
use clr_unwind::Gpr;

/// The document of the grammar.
const DOCUMENT: &str = include_str!("grammar.md");

impl Level {
    /// Returns the heading of the level in the document of the grammar.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Text => "## The text",
            Self::Module => "## In a `module`",
            Self::Type => "## In a `type`",
            Self::Method => "## In a `method`",
            Self::Function => "## In a `function`",
            Self::Export => "## In an `export`",
            Self::Body => "## In a `body`, and in the block of a statement",
            Self::Stop => "## In a `stop`",
            Self::Expect => "## In an `expect`",
            Self::Stack => "## In a `stack`",
            Self::Activation => "## In an activation of a `stack`",
            Self::Snapshot => "## In a `snapshot`",
            Self::Seed => "## In a `seed`",
            Self::Report => "## In the `expect` of a `snapshot`",
            Self::MixedWalk => "## In a `mixed-walk`",
            Self::MixedReport => "## In the `expect` of a `mixed-walk`",
            Self::Profiler => "## In a `profiler`",
            Self::Action => "## Actions",
            Self::Coverage => "## In a `coverage`",
            Self::Explore => "## In an `explore`",
            Self::History => "## In the `expect` of an `explore`",
        }
    }

    /// Returns the part of the grammar's document below the level's heading, as Markdown.
    pub(crate) fn section(self) -> &'static str {
        let mut parts = DOCUMENT
            .match_indices(self.heading())
            .filter_map(|(at, heading)| DOCUMENT.get(at + heading.len()..)?.strip_prefix('\n'));
        let section = parts.next().unwrap_or_default();
        section.split_once("\n## ").map_or(section, |(section, _)| section)
    }

    /// Returns the example texts below the level's heading.
    pub(crate) fn examples(self) -> impl Iterator<Item = &'static str> {
        self.section().split("```kdl\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0))
    }
}

impl NodeRule {
    /// Returns the meaning of the node in the block of a level, as Markdown: the last column of its row in the document.
    #[must_use]
    pub fn meaning(&self, level: Level) -> Option<&'static str> {
        let is_register = Gpr::from_word(self.name).is_some();
        let is_row = |line: &&str| {
            let names = line.strip_prefix("| `").and_then(|rest| rest.split_once(" |"));
            // All registers share a row.
            names.is_some_and(|(names, _)| match names.split_once("` … `") {
                Some(_) => is_register,
                None => names.trim_end_matches(" `{ }`").trim_end_matches('`') == self.name,
            })
        };
        let row = level.section().lines().find(is_row)?;
        row.strip_suffix(" |")?.rsplit(" | ").next()
    }

    /// Returns an example of the node in the block of a level: its shortest use in the examples of the document, with its
    /// block, as it is written there but for the margin.
    #[must_use]
    pub fn example(&self, level: Level) -> Option<String> {
        let mut uses = Vec::new();
        for text in level.examples() {
            each(&outline_of(text), Level::Text, &mut |at, node| {
                if at == level && node.node == self.name {
                    uses.extend(without_margin(text, node));
                }
            });
        }
        uses.into_iter().min_by_key(String::len)
    }
}

/// Visits nodes with their levels. Blocks that the grammar does not know are left out.
fn each(nodes: &[OutlineNode], level: Level, visit: &mut dyn FnMut(Level, &OutlineNode)) {
    for node in nodes {
        visit(level, node);
        if let Some(inner) = level.node(&node.node).and_then(|rule| rule.block) {
            each(&node.children, inner, visit);
        }
    }
}

/// Returns a node's part of a text, moved to the left.
fn without_margin(text: &str, node: &OutlineNode) -> Option<String> {
    let before = text.get(..node.span.offset)?;
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let margin = before.get(line..).filter(|margin| margin.trim().is_empty()).unwrap_or_default();
    let part = text.get(node.span.offset..node.span.end())?;
    Some(part.replace(&format!("\n{margin}"), "\n"))
}
