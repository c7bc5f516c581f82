//! Positions of stops, calls, searches and their expectations in a text.

#[cfg(doc)]
use crate::Scenario;
use crate::text::document::{Node, named};
use crate::text::error::LineColumn;
use crate::text::parse;

/// The positions of a node that has expectations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlaces {
    /// Position of the node.
    pub node: LineColumn,
    /// Positions of its expectations, in order.
    pub expect: Vec<LineColumn>,
}

/// The positions of the nodes of a text that have expectations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceMap {
    /// Stops, in the order of [`Scenario::stops`].
    pub stops: Vec<NodePlaces>,
    /// Snapshots, in the order of [`Scenario::snapshots`].
    pub snapshots: Vec<NodePlaces>,
    /// Mixed walks, in the order of [`Scenario::mixed_walks`].
    pub mixed_walks: Vec<NodePlaces>,
    /// Searches of interleavings, in the order of [`Scenario::explore`].
    pub searches: Vec<NodePlaces>,
}

impl SourceMap {
    /// Finds the nodes of a text that need not be a scenario. The map of a text that is not KDL is
    /// empty.
    #[must_use]
    pub fn of(text: &str) -> Self {
        parse::read(text).map_or_else(|_| Self::default(), |nodes| Self::of_nodes(&nodes, text))
    }

    /// Finds the nodes of a parsed text.
    pub(crate) fn of_nodes(nodes: &[Node<'_>], text: &str) -> Self {
        let of = |node: &Node<'_>| LineColumn::of(text, node.name.span.offset);
        let places = |node: &Node<'_>| NodePlaces {
            node: of(node),
            expect: named(node.children(), "expect").map(of).collect(),
        };
        let all = |name| calls(nodes, name).map(places).collect();
        Self {
            stops: named(nodes, "stop").map(places).collect(),
            snapshots: all("snapshot"),
            mixed_walks: all("mixed-walk"),
            searches: all("explore"),
        }
    }
}

/// Returns the nodes with the given name: those in stops first, then those outside.
pub(crate) fn calls<'d>(
    nodes: &'d [Node<'d>],
    name: &'static str,
) -> impl Iterator<Item = &'d Node<'d>> {
    let stops = named(nodes, "stop");
    let in_stops = stops.flat_map(move |stop| named(stop.children(), name));
    in_stops.chain(named(nodes, name))
}
