//! Where the stops and expectations of a text stand.

use super::error::Position;
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
    let named = |node: &&KdlNode, name: &str| node.name().value() == name;
    let stops = document.nodes().iter().filter(|node| named(node, "stop"));
    stops
        .map(|stop| {
            let children = stop.children().map_or(&[][..], KdlDocument::nodes);
            let expect = children.iter().filter(|node| named(node, "expect")).map(of).collect();
            StopPlaces { stop: of(stop), expect }
        })
        .collect()
}
