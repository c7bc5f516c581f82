//! Consistency checks of stacks placed by hand, on every generation with an expectation. Problems
//! are reported at the inconsistent node.

use crate::model::{PlacedItem, PlacedStack, StackNode};
use crate::model::{SeedAddress, SeedSource, SnapshotCall};
use crate::text::document::{Node, named};
use crate::text::error::Span;
use crate::text::grammar::{Level, MAX_STACK_NODES, MAX_WORDS};
use crate::text::problem::ProblemKind;
use clr_runtime::generation::{Generation, Generations};
use clr_world::synthetic::{SyntheticError, SyntheticProcess};

/// The nodes of a text with a stack.
struct StackPlaces<'n>(&'n [Node<'n>]);

impl StackPlaces<'_> {
    fn stack(&self) -> Span {
        named(self.0, "stack").next().map_or_else(Span::default, |stack| stack.name.span)
    }

    /// Returns the names and ranges of the nodes in the stack's block, in the order of the items.
    fn items(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let nodes = named(self.0, "stack").flat_map(Node::children);
        nodes.filter_map(|node| Some((Level::Stack.node(&node.name.text)?.name, node.name.span)))
    }
}

type Problems = Vec<(Span, ProblemKind)>;

/// Reports the inconsistencies of a stack.
pub(super) fn check(stack: &PlacedStack, nodes: &[Node<'_>], problems: &mut Problems) {
    let places = &StackPlaces(nodes);
    let words = stack.items.iter().map(|item| match item.node {
        StackNode::Word { count, .. } => u64::from(count),
        _ => 0,
    });
    if stack.items.len() > MAX_STACK_NODES || words.sum::<u64>() > u64::from(MAX_WORDS) {
        problems.push((places.stack(), ProblemKind::LargeStack));
        return;
    }
    let generations = stack.generations();
    twice(stack, places, problems);
    frames(stack, generations, places, problems);
    if !problems.is_empty() {
        return;
    }
    for generation in generations.iter() {
        match stack.synthetic_thread(generation).build() {
            Ok(set) => {
                for (call, node) in stack.snapshots.iter().zip(named(nodes, "snapshot")) {
                    let made = call.applies_to(generation);
                    let problem = made.then(|| seed(call, &set)).flatten();
                    problems.extend(problem.map(|problem| (node.name.span, problem)));
                }
            }
            Err(error) => {
                let span = place_of(error, stack, generation, places);
                problems.push((span, ProblemKind::Synthetic { error, generation }));
            }
        }
        // A problem on one generation is mostly one on the others too.
        if !problems.is_empty() {
            return;
        }
    }
}

/// Reports nodes that appear twice on a generation although a stack has only one of them.
fn twice(stack: &PlacedStack, places: &StackPlaces<'_>, problems: &mut Problems) {
    let mut seen: Vec<(&'static str, Generations)> = Vec::new();
    for (item, (name, span)) in stack.items.iter().zip(places.items()) {
        if item.node.repeats() {
            continue;
        }
        let before = seen.iter_mut().find(|(other, _)| *other == name);
        let Some((_, on)) = before else {
            seen.push((name, item.on));
            continue;
        };
        if let Some(generation) = on.both(item.on).iter().next() {
            problems.push((span, ProblemKind::Again { node: name, generation }));
        }
        *on = on.with(item.on);
    }
}

/// Reports Frames of kinds that a generation does not have.
fn frames(
    stack: &PlacedStack,
    generations: Generations,
    places: &StackPlaces<'_>,
    problems: &mut Problems,
) {
    for (item, (_, span)) in stack.items.iter().zip(places.items()) {
        let StackNode::Frame(frame) = &item.node else { continue };
        let missing = item.on.both(generations).iter();
        let missing = missing.filter(|generation| !frame.kind.exists_in(*generation));
        let missing_on = Generations::of(&missing.collect::<Vec<_>>());
        if !missing_on.is_empty() {
            let kind = frame.kind;
            problems.push((span, ProblemKind::NoSuchFrame { kind, missing_on }));
        }
    }
}

/// Returns the problem of a seed that names something that is not on the stack.
fn seed(call: &SnapshotCall, set: &SyntheticProcess) -> Option<ProblemKind> {
    let seed = call.seed.as_ref()?;
    let activations = || set.synthetic_thread().activations.iter();
    let missing = match (&seed.from, &seed.rip) {
        (SeedSource::Stale, _) => return Some(ProblemKind::NotOnStack("stale registers")),
        (SeedSource::Leaf, _) if activations().next().is_none() => {
            return Some(ProblemKind::NotOnStack("leaf: it has no activations"));
        }
        (SeedSource::TopManaged, _) if seed.bytes(set).is_none() => {
            return Some(ProblemKind::NotOnStack("managed activation"));
        }
        (SeedSource::Function(function), _) if set.seed(function).is_none() => function,
        (_, Some(SeedAddress::Label(label))) if set.address(label).is_none() => label,
        _ => return None,
    };
    let allowed: Vec<_> = activations().map(|activation| activation.function.clone()).collect();
    Some(ProblemKind::NotOnThisStack {
        found: missing.clone(),
        generation: set.synthetic_thread().generation,
        allowed: allowed.into(),
    })
}

/// Returns the range of the node that an error is about.
fn place_of(
    error: SyntheticError,
    stack: &PlacedStack,
    generation: Generation,
    places: &StackPlaces<'_>,
) -> Span {
    let there = stack.items.iter().zip(places.items());
    let mut there = there.filter(|(item, _)| item.on.contains(generation));
    let mut activations = 0;
    let mut frames = 0;
    let is_it = |item: &PlacedItem| match (&item.node, error) {
        (StackNode::Activation { .. }, SyntheticError::Activation { index }) => {
            activations += 1;
            activations == index + 1
        }
        (StackNode::Frame(_), SyntheticError::Frame { index }) => {
            frames += 1;
            frames == index + 1
        }
        (StackNode::Hijacked(_), SyntheticError::Hijacked) => true,
        (StackNode::Frame(frame), SyntheticError::Memory { at }) => {
            at.wrapping_sub(frame.at).cast_signed().unsigned_abs() < 0x200
        }
        (StackNode::Block { at: block, .. }, SyntheticError::Memory { at }) => *block == at,
        (StackNode::Word { at: word, count, .. }, SyntheticError::Memory { at }) => {
            at.wrapping_sub(*word) < 8 * u64::from(*count)
        }
        _ => false,
    };
    let mut is_it = is_it;
    there.find(|(item, _)| is_it(item)).map_or_else(|| places.stack(), |(_, (_, span))| span)
}
