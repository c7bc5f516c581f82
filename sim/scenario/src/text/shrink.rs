//! Steps towards smaller texts, for minimisation, in the tree of nodes that the mutator changes, too.

use crate::text::grammar::{Args, Kind, Level};
use crate::text::mutate::tree::{Block, Node};
use crate::text::parse;
use crate::{Scenario, Stop, StopAt};
use clr_codegen::{FunctionIndex, Program};
use clr_generate::Shrink;
use clr_runtime::generation::{Generation, Generations};
use core::cmp::Reverse;

/// Nodes that are kept: descriptions, and the evidence of expectations.
const KEPT: [&str; 3] = ["shows", "tag", "clause"];

/// A step towards a smaller text. Nodes are meant by their numbers in the tree of the printed text.
#[derive(Clone, Copy, Debug)]
pub enum ScenarioStep {
    /// Restricts the text to one generation.
    Only(Generation),
    /// Removes a number of nodes of a block (second) from one on (first).
    Nodes(usize, usize),
    /// Replaces a node by those of its block.
    Unwrap(usize),
    /// Removes an argument or a property of a node (first), by its index among all (second).
    Value(usize, usize),
    /// Makes a step towards a smaller program.
    Program(<Program as Shrink>::Step),
}

/// The result of a step is always the scenario of a valid text.
impl Shrink for Scenario {
    type Step = ScenarioStep;

    fn steps(&self) -> Vec<ScenarioStep> {
        let mut steps = Vec::new();
        let expected = self.snapshots().flat_map(|at| &at.call.expect);
        if expected.into_iter().any(|expect| expect.on.iter().count() > 1) {
            steps.extend(Generation::ALL.map(ScenarioStep::Only));
        }
        let Some(tree) = self.tree() else { return steps };
        let (mut nodes, mut values, mut first) = (Vec::new(), Vec::new(), 0);
        for block in tree.blocks() {
            let count = block.nodes.len();
            // Steps of the program know its functions.
            let is_code = matches!(block.level, Level::Function | Level::Export | Level::Body);
            for (index, node) in block.nodes.iter().enumerate().filter(|_| !is_code) {
                let sizes = (0..8).map(|power| 1 << power);
                let sizes = sizes.filter(|size| *size <= count && index % size == 0);
                nodes.extend(sizes.map(|size| ScenarioStep::Nodes(first + index, size)));
                nodes.push(ScenarioStep::Unwrap(first + index));
                let all = 0..node.args.len() + node.properties.len();
                values.extend(all.map(|value| ScenarioStep::Value(first + index, value)));
            }
            first += count;
        }
        nodes.sort_by_key(|step| match step {
            ScenarioStep::Nodes(_, size) => Reverse(*size),
            _ => Reverse(0),
        });
        steps.extend(nodes);
        if !self.program.functions.is_empty() {
            steps.extend(Shrink::steps(&self.program).into_iter().map(ScenarioStep::Program));
        }
        steps.extend(values);
        steps
    }

    fn take(&self, step: ScenarioStep) -> Option<Self> {
        let simpler = match step {
            ScenarioStep::Only(generation) => self.only(generation),
            ScenarioStep::Program(step) => {
                let mut simpler = Self { program: self.program.take(step)?, ..self.clone() };
                simpler.rename(&self.program)?;
                simpler
            }
            ScenarioStep::Nodes(mut number, _)
            | ScenarioStep::Unwrap(mut number)
            | ScenarioStep::Value(mut number, _) => {
                let mut tree = self.tree()?;
                let (block, index) = tree.place(&mut number)?;
                remove(block, index, step)?;
                Self::of_nodes(&tree.written()).ok()?
            }
        };
        // Parsing the text checks all its rules.
        let read = Self::parse(&simpler.to_string()).ok()?;
        (simpler != *self && read == simpler).then_some(simpler)
    }
}

fn remove(block: &mut Block, index: usize, step: ScenarioStep) -> Option<()> {
    match step {
        ScenarioStep::Nodes(_, size) => {
            let range = index..block.nodes.len().min(index + size);
            let kept =
                block.nodes.get(range.clone())?.iter().any(|it| KEPT.contains(&it.rule.name));
            (!kept).then(|| drop(block.nodes.drain(range)))
        }
        ScenarioStep::Value(_, value) => {
            let level = block.level;
            block.nodes.get_mut(index).and_then(|node| remove_value(node, level, value))
        }
        _ => block.unwrap(index),
    }
}

/// Removes a value, unless it is a title or belongs to an expectation: somebody wrote that as evidence.
fn remove_value(node: &mut Node, level: Level, value: usize) -> Option<()> {
    let is_title = matches!(node.rule.args, Args::Optional(Kind::Name)) && value < node.args.len();
    let is_expected =
        matches!(level, Level::Expect | Level::Report | Level::MixedReport | Level::History);
    if is_title || is_expected || node.rule.name == "expect" || KEPT.contains(&node.rule.name) {
        return None;
    }
    match value.checked_sub(node.args.len()) {
        None => drop(node.args.remove(value)),
        Some(property) => drop(node.properties.remove(property)),
    }
    Some(())
}

impl Scenario {
    /// Returns the nodes of the printed text.
    fn tree(&self) -> Option<Block> {
        Block::of(&parse::read(&self.to_string()).ok()?, Level::Text)
    }

    /// Keeps the expectations and nodes of one generation only.
    fn only(&self, generation: Generation) -> Self {
        let (mut simpler, one) = (self.clone(), Generations::of(&[generation]));
        for call in simpler.calls_mut() {
            call.expect.retain(|expect| expect.on.contains(generation));
            call.expect.truncate(1);
            call.expect.iter_mut().for_each(|expect| expect.on = one);
        }
        let stops = simpler.stops.iter_mut().flat_map(|stop| &mut stop.mixed_walks);
        let placed = simpler.stack.iter_mut().flat_map(|stack| &mut stack.mixed_walks);
        for walk in stops.chain(placed) {
            walk.expect.retain(|expect| expect.on.contains(generation));
            walk.expect.truncate(1);
            walk.expect.iter_mut().for_each(|expect| expect.on = one);
        }
        if let Some(stack) = &mut simpler.stack {
            stack.items.retain(|item| item.on.contains(generation));
            stack.items.iter_mut().for_each(|item| item.on = Generations::ALL);
        }
        simpler
    }

    /// Renumbers functions, which have the numbers of another program; returns `None` if one is gone.
    fn rename(&mut self, old: &Program) -> Option<()> {
        let new = &self.program.functions;
        let number = |id: FunctionIndex| {
            let name = &old.functions.get(id.index())?.name;
            let at = new.iter().position(|function| function.name == *name)?;
            Some(FunctionIndex(at as u32))
        };
        let place = |at: &mut StopAt| {
            if let StopAt::Instruction { function, .. } = at {
                *function = number(*function)?;
            }
            Some(())
        };
        for thread in &mut self.threads {
            thread.start = number(thread.start)?;
        }
        for Stop { at, expect, others, .. } in &mut self.stops {
            place(at)?;
            others.iter_mut().try_for_each(|(_, at)| place(at))?;
            let frames = expect.iter_mut().flat_map(|expect| &mut expect.frames);
            for function in frames.filter_map(|frame| frame.function.as_mut()) {
                *function = number(*function)?;
            }
        }
        let methods = self.methods.iter();
        self.methods = methods.filter_map(|(id, kind)| Some((number(*id)?, *kind))).collect();
        let only_on = self.only_on.iter();
        self.only_on = only_on.filter_map(|(id, on)| Some((number(*id)?, *on))).collect();
        let inlines = core::mem::take(&mut self.inlines).into_iter();
        self.inlines = inlines
            .filter_map(|(id, callees)| {
                let callees = callees.into_iter().filter_map(number).collect::<Vec<_>>();
                (!callees.is_empty()).then_some((number(id)?, callees))
            })
            .collect();
        self.optional = self.optional.iter().filter_map(|id| number(*id)).collect();
        let exports = core::mem::take(&mut self.exports).into_iter();
        self.exports = exports.filter_map(|(id, export)| Some((number(id)?, export))).collect();
        let attaches = core::mem::take(&mut self.attaches).into_iter();
        self.attaches = attaches.filter_map(|(id, data)| Some((number(id)?, data))).collect();
        Some(())
    }
}
