//! Circles of waits.

use super::Edge;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Returns circles that have no thread in common, the shortest first: those without doubt, else those with.
pub(super) fn circles(edges: &[Edge]) -> Vec<Vec<Edge>> {
    let certain: Vec<_> = edges.iter().copied().filter(|edge| edge.doubt.is_none()).collect();
    let found = apart(certain);
    if found.is_empty() { apart(edges.to_vec()) } else { found }
}

fn apart(mut edges: Vec<Edge>) -> Vec<Vec<Edge>> {
    let mut found = Vec::new();
    while let Some(circle) = shortest(&mut edges) {
        let threads: BTreeSet<_> = circle.iter().map(|edge| edge.from).collect();
        edges.retain(|edge| !threads.contains(&edge.from) && !threads.contains(&edge.to));
        found.push(circle);
    }
    found
}

/// Returns a shortest circle, from its thread with the least id on. Removes the edges that are in none.
fn shortest(edges: &mut Vec<Edge>) -> Option<Vec<Edge>> {
    trim(edges);
    let mut from = BTreeMap::<u32, Vec<Edge>>::new();
    for edge in edges.iter() {
        from.entry(edge.from).or_default().push(*edge);
    }
    let circles = from.keys().filter_map(|start| through(*start, &from));
    circles.min_by_key(Vec::len)
}

/// Removes edges to threads that do not wait, and from threads that nobody waits for, until there are none.
fn trim(edges: &mut Vec<Edge>) {
    loop {
        let count = edges.len();
        let waiting: BTreeSet<_> = edges.iter().map(|edge| edge.from).collect();
        let wanted: BTreeSet<_> = edges.iter().map(|edge| edge.to).collect();
        edges.retain(|edge| waiting.contains(&edge.to) && wanted.contains(&edge.from));
        if edges.len() == count {
            return;
        }
    }
}

/// Returns a shortest circle through a thread.
fn through(start: u32, from: &BTreeMap<u32, Vec<Edge>>) -> Option<Vec<Edge>> {
    let mut reached = BTreeMap::<u32, Edge>::new();
    let mut queue = VecDeque::from([start]);
    while !reached.contains_key(&start) {
        for edge in from.get(&queue.pop_front()?).into_iter().flatten() {
            if let Entry::Vacant(place) = reached.entry(edge.to) {
                place.insert(*edge);
                queue.push_back(edge.to);
            }
        }
    }
    let mut circle = Vec::new();
    let mut at = start;
    loop {
        let edge = reached.get(&at)?;
        circle.push(*edge);
        at = edge.from;
        if at == start {
            circle.reverse();
            return Some(circle);
        }
    }
}
