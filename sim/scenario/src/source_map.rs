//! Positions of stops, snapshots and expectations in a text.

use super::Scenario;
use super::error::LineColumn;
use super::snapshot::SnapshotCall;
use kdl::{KdlDocument, KdlNode};

/// The positions of a stop and its expectations in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopPlaces {
    /// Position of the stop.
    pub stop: LineColumn,
    /// Positions of the expectations, in order.
    pub expect: Vec<LineColumn>,
}

/// Returns the positions of the stops in a text, in order. If the text is not a scenario, those
/// that can be found are returned.
#[must_use]
pub fn stop_places(text: &str) -> Vec<StopPlaces> {
    let Ok(document) = KdlDocument::parse_v2(text) else { return Vec::new() };
    let of = |node: &KdlNode| LineColumn::of(text, node.name().span().offset());
    let stops = named(document.nodes(), "stop");
    let places = stops.map(|stop| StopPlaces {
        stop: of(stop),
        expect: named(inside(stop), "expect").map(of).collect(),
    });
    places.collect()
}

/// A call of a text, with its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotAt<'s> {
    /// Index of the stop in [`Scenario::stops`]; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Index of the call among the snapshots there.
    pub snapshot: usize,
    /// The call as the text describes it.
    pub call: &'s SnapshotCall,
}

impl Scenario {
    /// Returns the calls of the text, in its order.
    pub fn snapshots(&self) -> impl Iterator<Item = SnapshotAt<'_>> {
        fn at(stop: Option<usize>, calls: &[SnapshotCall]) -> impl Iterator<Item = SnapshotAt<'_>> {
            let calls = calls.iter().enumerate();
            calls.map(move |(snapshot, call)| SnapshotAt { stop, snapshot, call })
        }
        let stops = self.stops.iter().enumerate();
        let stops = stops.flat_map(move |(index, stop)| at(Some(index), &stop.snapshots));
        let stack = self.stack.iter().flat_map(move |stack| at(None, &stack.snapshots));
        stops.chain(stack)
    }
}

/// The positions in a text of a snapshot, a mixed walk or a search of histories, and of its
/// expectations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotPlaces {
    /// Position of the snapshot, the walk or the search.
    pub snapshot: LineColumn,
    /// Positions of the expectations, in order.
    pub expect: Vec<LineColumn>,
}

/// Returns the positions of the snapshots in a text, in the order of [`Scenario::snapshots`]. If
/// the text is not a scenario, those that can be found are returned.
#[must_use]
pub fn snapshot_places(text: &str) -> Vec<SnapshotPlaces> {
    places_of(text, "snapshot")
}

/// Returns the positions of the mixed walks, in the order of [`Scenario::mixed_walks`].
#[must_use]
pub fn mixed_walk_places(text: &str) -> Vec<SnapshotPlaces> {
    places_of(text, "mixed-walk")
}

/// Returns the positions of the searches of histories, in the order of [`Scenario::explore`].
#[must_use]
pub fn explore_places(text: &str) -> Vec<SnapshotPlaces> {
    places_of(text, "explore")
}

fn places_of(text: &str, name: &'static str) -> Vec<SnapshotPlaces> {
    let Ok(document) = KdlDocument::parse_v2(text) else { return Vec::new() };
    let of = |node: &KdlNode| LineColumn::of(text, node.name().span().offset());
    let stops = named(document.nodes(), "stop").flat_map(|stop| named(inside(stop), name));
    let all = stops.chain(named(document.nodes(), name));
    let places = all.map(|node| SnapshotPlaces {
        snapshot: of(node),
        expect: named(inside(node), "expect").map(of).collect(),
    });
    places.collect()
}

/// Returns the nodes with the given name.
pub(super) fn named<'d>(
    nodes: &'d [KdlNode],
    name: &'static str,
) -> impl Iterator<Item = &'d KdlNode> {
    nodes.iter().filter(move |node| node.name().value() == name)
}

/// Returns the nodes in the block of a node.
pub(super) fn inside(node: &KdlNode) -> &[KdlNode] {
    node.children().map_or(&[], KdlDocument::nodes)
}
