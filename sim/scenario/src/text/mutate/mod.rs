//! Changes of texts at random, for searches of inputs that find new behaviour.
//!
//! A mutant is made from the nodes of a text and their rules in the grammar, not from its
//! characters: values are of the kind that their place wants, nodes are of the level of their block,
//! and names are defined. Most such texts are scenarios, and a mutant always is.

mod names;
pub(crate) mod tree;
mod value;

use crate::Scenario;
use crate::text::grammar::{Args, Kind, Level, MAX_BLOCKS};
use crate::text::parse;
use clr_generate::Choices;
use tree::{Block, Node};
use value::{Pool, draw, nudge};

/// Number of tries to make a mutant that is a scenario.
const TRIES: u32 = 8;

/// Maximum number of changes of one mutant.
const CHANGES: u32 = 3;

/// Maximum number of nodes of a mutant. Larger texts are slow to run and seldom find more.
const NODES: usize = 400;

/// A scenario from which mutants are made, with the nodes that its text has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    scenario: Scenario,
    nodes: Block,
}

impl Parent {
    /// Reads a text. Returns `None` if it is not a scenario.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let nodes = parse::read(text).ok()?;
        let scenario = Scenario::of_nodes(&nodes).ok()?;
        Some(Self { scenario, nodes: Block::of(&nodes, Level::Text)? })
    }

    /// Returns the scenario. The text that it prints can differ from the one that was read.
    #[must_use]
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns a scenario that differs from this one in a few nodes or values. Those of `other` are
    /// taken over, too, if there is one. Returns `None` if all that was tried is invalid or the
    /// same.
    #[must_use]
    pub fn mutant<C: Choices>(&self, other: Option<&Self>, choices: &mut C) -> Option<Self> {
        (0..TRIES).find_map(|number| {
            // A stack and a program have little that fits into the other.
            let other = other.filter(|_| number < TRIES / 2);
            let mutant = self.changed(other, choices)?;
            (mutant.scenario != self.scenario).then_some(mutant)
        })
    }

    /// Returns a scenario made by a single try. It may be the same.
    pub(crate) fn changed<C: Choices>(
        &self,
        other: Option<&Self>,
        choices: &mut C,
    ) -> Option<Self> {
        let nodes = changed(&self.nodes, other.map(|other| &other.nodes), choices);
        // Deeper blocks could not be read from a text.
        let can_be_read = nodes.depth() <= MAX_BLOCKS as usize;
        let scenario = can_be_read.then(|| Scenario::of_nodes(&nodes.written()).ok())??;
        Some(Self { scenario, nodes })
    }
}

/// Makes some changes, and gives each name a meaning.
fn changed<C: Choices>(own: &Block, other: Option<&Block>, choices: &mut C) -> Block {
    let mut text = own.clone();
    let mut pool = Pool::new();
    for text in [Some(own), other].into_iter().flatten() {
        text.clone().each_value(&mut |kind, value| pool.push((kind, value.clone())));
    }
    let count = choices.between(1, CHANGES);
    let mut made = 0;
    // A change may have no place in this text.
    for _ in 0..4 * CHANGES {
        let is_crossing = other.filter(|_| made == 0);
        let donor = is_crossing.unwrap_or(own);
        if is_crossing.is_some() || choices.chance(1, 4) {
            made += u32::from(splice(&mut text, donor, choices).is_some());
        } else {
            made += u32::from(change(&mut text, &pool, choices).is_some());
        }
        if made >= count {
            break;
        }
    }
    names::repair(&mut text, choices);
    text
}

/// Takes a node of another text over, beside the nodes of its level or in place of one.
fn splice<C: Choices>(text: &mut Block, donor: &Block, choices: &mut C) -> Option<()> {
    let mut donor = donor.clone();
    let (block, index) = any(&mut donor, choices)?;
    let (level, node) = (block.level, block.nodes.get(index)?.clone());
    let count = text.count_of(level) as u32;
    if count == 0 {
        return None;
    }
    let room = NODES.saturating_sub(text.count());
    let block = text.of_level(level, &mut (choices.below(count) as usize))?;
    let alike = block.nodes.iter().position(|other| other.rule.name == node.rule.name);
    let is_only = node.rule.once && alike.is_some();
    let at = choices.below(block.nodes.len() as u32 + 1) as usize;
    match alike.filter(|_| is_only || choices.chance(1, 3)) {
        Some(alike) => *block.nodes.get_mut(alike)? = node,
        None if room > 0 => block.nodes.insert(at, node),
        None => return None,
    }
    Some(())
}

/// Returns a node, by its block and its index there. Returns `None` for what is only read by people.
fn any<'b, C: Choices>(text: &'b mut Block, choices: &mut C) -> Option<(&'b mut Block, usize)> {
    let count = text.count() as u32;
    let (block, index) = text.place(&mut (choices.below(count) as usize))?;
    let is_description = matches!(block.nodes.get(index)?.rule.name, "shows" | "tag");
    (!is_description).then_some((block, index))
}

/// Changes one node or value. Returns `None` if the chosen change cannot be made there.
fn change<C: Choices>(text: &mut Block, pool: &Pool, choices: &mut C) -> Option<()> {
    let room = NODES.saturating_sub(text.count());
    let (block, index) = any(text, choices)?;
    match choices.below(16) {
        0 | 1 => drop(block.nodes.remove(index)),
        2 if room > 0 => {
            let copy = block.nodes.get(index)?.clone();
            block.nodes.insert(index, copy);
        }
        3 => {
            let other = choices.below(block.nodes.len() as u32) as usize;
            block.nodes.swap(index, other);
        }
        4 => block.unwrap(index)?,
        5 | 6 if room > 0 => {
            let node = block.nodes.get_mut(index)?;
            let inner = node.rule.block.filter(|_| choices.chance(1, 2));
            match inner {
                Some(level) => {
                    let block = node.block.get_or_insert(Block { level, nodes: Vec::new() });
                    insert(block, 0, pool, choices)?;
                }
                None => insert(block, index, pool, choices)?,
            }
        }
        7 | 8 => property(block.nodes.get_mut(index)?, pool, choices)?,
        _ => value(block.nodes.get_mut(index)?, pool, choices)?,
    }
    Some(())
}

/// Inserts a new node of the block's level.
fn insert<C: Choices>(block: &mut Block, at: usize, pool: &Pool, choices: &mut C) -> Option<()> {
    let rules = block.level.nodes();
    let rule = rules.get(choices.below(rules.len() as u32) as usize)?;
    if rule.once && block.nodes.iter().any(|node| node.rule.name == rule.name) {
        return None;
    }
    let count = match rule.args {
        Args::None => 0,
        Args::One(_) => 1,
        Args::Optional(_) => usize::from(choices.chance(1, 2)),
        Args::Many(..) | Args::Named(..) => 1 + choices.below(2) as usize,
    };
    let args = (0..count).map(|index| draw(rule.kind_of_arg(index)?, pool, choices));
    let args = args.collect::<Option<Vec<_>>>()?;
    let mut properties = Vec::new();
    for property in &rule.properties {
        if property.required || choices.chance(1, 8) {
            properties.push((property.name, draw(property.kind, pool, choices)?));
        }
    }
    block.nodes.insert(at, Node { rule, args, properties, block: None });
    Some(())
}

/// Adds a property, or removes one.
fn property<C: Choices>(node: &mut Node, pool: &Pool, choices: &mut C) -> Option<()> {
    let rules = &node.rule.properties;
    let rule = rules.get(choices.below(rules.len() as u32) as usize)?;
    match node.properties.iter().position(|(name, _)| *name == rule.name) {
        Some(index) if !rule.required => drop(node.properties.remove(index)),
        Some(_) => return None,
        None => node.properties.push((rule.name, draw(rule.kind, pool, choices)?)),
    }
    Some(())
}

/// Changes a value of a node.
fn value<C: Choices>(node: &mut Node, pool: &Pool, choices: &mut C) -> Option<()> {
    let args = node.args.len();
    let count = (args + node.properties.len()) as u32;
    let index = choices.below(count) as usize;
    let (kind, value) = match index.checked_sub(args) {
        None => (node.rule.kind_of_arg(index)?, node.args.get_mut(index)?),
        Some(index) => {
            let (name, value) = node.properties.get_mut(index)?;
            (node.rule.kind_of(name)?, value)
        }
    };
    // Names of what is defined here are changed with their uses, and without effect.
    if kind == Kind::Name && node.rule.block.is_some() {
        return None;
    }
    let near = if choices.chance(1, 2) { nudge(kind, value, choices) } else { None };
    *value = match near {
        Some(near) => near,
        None => draw(kind, pool, choices)?,
    };
    Some(())
}
