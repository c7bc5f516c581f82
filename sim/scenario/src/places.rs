//! Where the stops, snapshots and expectations of a text stand.

use super::Scenario;
use super::error::Position;
use super::snapshot::SnapshotCall;
use kdl::{KdlDocument, KdlNode};

/// Where a stop and its expectations stand in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopPlaces {
    /// The stop.
    pub stop: Position,
    /// Its expectations, in order.
    pub expect: Vec<Position>,
}

/// Where the stops of the text of a scenario stand, in order; of a text that is no scenario, those
/// that can be found.
#[must_use]
pub fn stop_places(text: &str) -> Vec<StopPlaces> {
    let Ok(document) = KdlDocument::parse_v2(text) else { return Vec::new() };
    let of = |node: &KdlNode| Position::of(text, node.name().span().offset());
    let stops = named(document.nodes(), "stop");
    let places = stops.map(|stop| StopPlaces {
        stop: of(stop),
        expect: named(inside(stop), "expect").map(of).collect(),
    });
    places.collect()
}

/// A call of a text, and where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotAt<'s> {
    /// The place of its stop in [`Scenario::stops`]; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Its place among the snapshots there.
    pub snapshot: usize,
    /// What it says.
    pub call: &'s SnapshotCall,
}

impl Scenario {
    /// The calls of the text, in its order.
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

/// Where a snapshot, a walk of a whole stack or a search of histories, and its expectations stand in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotPlaces {
    /// The snapshot, the walk or the search.
    pub snapshot: Position,
    /// Its expectations, in order.
    pub expect: Vec<Position>,
}

/// Where the snapshots of the text of a scenario stand, in the order of
/// [`Scenario::snapshots`]; of a text that is no scenario, those that can be found.
#[must_use]
pub fn snapshot_places(text: &str) -> Vec<SnapshotPlaces> {
    places_of(text, "snapshot")
}

/// The same of its walks of whole stacks, in the order of [`Scenario::mixed_walks`].
#[must_use]
pub fn mixed_walk_places(text: &str) -> Vec<SnapshotPlaces> {
    places_of(text, "mixed-walk")
}

/// The same of its searches of histories, in the order of [`Scenario::explore`].
#[must_use]
pub fn explore_places(text: &str) -> Vec<SnapshotPlaces> {
    places_of(text, "explore")
}

fn places_of(text: &str, name: &'static str) -> Vec<SnapshotPlaces> {
    let Ok(document) = KdlDocument::parse_v2(text) else { return Vec::new() };
    let of = |node: &KdlNode| Position::of(text, node.name().span().offset());
    let stops = named(document.nodes(), "stop").flat_map(|stop| named(inside(stop), name));
    let all = stops.chain(named(document.nodes(), name));
    let places = all.map(|node| SnapshotPlaces {
        snapshot: of(node),
        expect: named(inside(node), "expect").map(of).collect(),
    });
    places.collect()
}

/// The nodes of that name.
pub(super) fn named<'d>(
    nodes: &'d [KdlNode],
    name: &'static str,
) -> impl Iterator<Item = &'d KdlNode> {
    nodes.iter().filter(move |node| node.name().value() == name)
}

/// The nodes in a node's block.
pub(super) fn inside(node: &KdlNode) -> &[KdlNode] {
    node.children().map_or(&[], KdlDocument::nodes)
}
