//! Steps towards smaller texts, for minimisation.

use super::{Scenario, ScriptStep, SnapshotCall, Stop, StopAt};
use clr_codegen::{FunctionIndex, Program};
use clr_generate::{ProgramStep, Shrink};
use clr_runtime::generation::{Generation, Generations};

/// A step towards a smaller text. Indices refer to the text.
#[derive(Clone, Copy, Debug)]
pub enum ScenarioStep {
    /// Removes a snapshot.
    Snapshot(usize),
    /// Removes a mixed walk.
    MixedWalk(usize),
    /// Removes a stop.
    Stop(usize),
    /// Restricts the text to one generation.
    Only(Generation),
    /// Removes a number of nodes of the stack (second) from an index on (first).
    Nodes(usize, usize),
    /// Removes an expectation of a snapshot.
    Expect(usize, usize),
    /// Removes a callback from an expectation of a snapshot.
    Frame(usize, usize, usize),
    /// Sets a property of a snapshot to its default.
    Plain(usize, usize),
    /// Removes the last thread.
    Thread,
    /// Removes a search of histories.
    Explore(usize),
    /// Makes a step towards a smaller profiler.
    Profiler(ScriptStep),
    /// Makes a step towards a smaller program.
    Program(ProgramStep),
}

/// The changes of a call to default values.
const PLAINER: &[fn(&mut SnapshotCall)] = &[
    |call| call.nested.clear(),
    |call| call.stop_at = None,
    |call| call.in_callback = None,
    |call| call.suspended = false,
    |call| call.null_callback = false,
    |call| call.flags = SnapshotCall::default().flags,
    |call| call.seed = None,
    |call| call.thread = SnapshotCall::default().thread,
    |call| call.by = SnapshotCall::default().by,
];

/// The result of a step is always the scenario of a valid text.
impl Shrink for Scenario {
    type Step = ScenarioStep;

    fn steps(&self) -> Vec<ScenarioStep> {
        let calls: Vec<_> = self.snapshots().map(|at| at.call).collect();
        let nodes = self.stack.as_ref().map_or(0, |stack| stack.items.len());
        let mut steps = Vec::new();
        let mixed_walks = self.mixed_walks().count();
        if calls.len() + mixed_walks > 1 {
            steps.extend((0..calls.len()).map(ScenarioStep::Snapshot));
            steps.extend((0..mixed_walks).map(ScenarioStep::MixedWalk));
        }
        steps.extend((0..self.stops.len()).map(ScenarioStep::Stop));
        if calls.iter().any(|call| call.expect.iter().any(|expect| expect.on.iter().count() > 1)) {
            steps.extend(Generation::ALL.map(ScenarioStep::Only));
        }
        let sizes = (0..8).rev().map(|power| 1 << power).filter(|size| *size <= nodes);
        let spans = sizes.flat_map(|size| (0..nodes).step_by(size).map(move |at| (at, size)));
        steps.extend(spans.map(|(at, size)| ScenarioStep::Nodes(at, size)));
        if self.threads.len() > 1 {
            steps.push(ScenarioStep::Thread);
        }
        if self.explore.len() > 1 {
            steps.extend((0..self.explore.len()).map(ScenarioStep::Explore));
        }
        if let Some(profiler) = &self.profiler {
            steps.extend(profiler.steps().into_iter().map(ScenarioStep::Profiler));
        }
        if !self.program.functions.is_empty() {
            steps.extend(Shrink::steps(&self.program).into_iter().map(ScenarioStep::Program));
        }
        for (index, call) in calls.iter().enumerate() {
            steps.extend((0..PLAINER.len()).map(|way| ScenarioStep::Plain(index, way)));
            for (at, expect) in call.expect.iter().enumerate() {
                if call.expect.len() > 1 {
                    steps.push(ScenarioStep::Expect(index, at));
                }
                let frames = 0..expect.frames.len();
                steps.extend(frames.map(|frame| ScenarioStep::Frame(index, at, frame)));
            }
        }
        steps
    }

    fn take(&self, step: ScenarioStep) -> Option<Self> {
        let mut simpler = self.clone();
        match step {
            ScenarioStep::Snapshot(index) => simpler.drop_snapshot(index)?,
            ScenarioStep::MixedWalk(index) => simpler.drop_mixed_walk(index)?,
            ScenarioStep::Stop(index) => drop(simpler.stops.remove(index)),
            ScenarioStep::Only(generation) => simpler.only(generation),
            ScenarioStep::Nodes(at, size) => {
                let items = &mut simpler.stack.as_mut()?.items;
                let end = items.len().min(at + size);
                items.drain(at..end);
            }
            ScenarioStep::Expect(call, at) => {
                simpler.calls_mut().nth(call)?.expect.remove(at);
            }
            ScenarioStep::Frame(call, at, frame) => {
                simpler.calls_mut().nth(call)?.expect.get_mut(at)?.frames.remove(frame);
            }
            ScenarioStep::Plain(call, way) => {
                PLAINER.get(way)?(simpler.calls_mut().nth(call)?);
            }
            ScenarioStep::Thread => {
                simpler.threads.pop();
                if let Some(profiler) = &mut simpler.profiler {
                    profiler.without_thread(simpler.threads.len() as u32);
                }
            }
            ScenarioStep::Explore(index) => drop(simpler.explore.remove(index)),
            ScenarioStep::Profiler(step) => {
                let apps = simpler.threads.len() as u32;
                simpler.profiler = Some(self.profiler.as_ref()?.take(step, apps)?);
            }
            ScenarioStep::Program(step) => {
                let program = self.program.take(step)?;
                simpler.rename(&self.program, &program)?;
                simpler.program = program;
            }
        }
        // Parsing the text checks all its rules.
        let read = Self::parse(&simpler.to_string()).ok()?;
        (simpler != *self && read == simpler).then_some(simpler)
    }
}

impl Scenario {
    fn drop_snapshot(&mut self, index: usize) -> Option<()> {
        let stops = self.stops.iter_mut().map(|stop| &mut stop.snapshots);
        let stack = self.stack.iter_mut().map(|stack| &mut stack.snapshots);
        remove(stops.chain(stack), index)
    }

    fn drop_mixed_walk(&mut self, index: usize) -> Option<()> {
        let stops = self.stops.iter_mut().map(|stop| &mut stop.mixed_walks);
        let stack = self.stack.iter_mut().map(|stack| &mut stack.mixed_walks);
        remove(stops.chain(stack), index)
    }

    /// Keeps the expectations and nodes of one generation only.
    fn only(&mut self, generation: Generation) {
        let one = Generations::of(&[generation]);
        for call in self.calls_mut() {
            call.expect.retain(|expect| expect.on.contains(generation));
            call.expect.truncate(1);
            call.expect.iter_mut().for_each(|expect| expect.on = one);
        }
        let stops = self.stops.iter_mut().flat_map(|stop| &mut stop.mixed_walks);
        let placed = self.stack.iter_mut().flat_map(|stack| &mut stack.mixed_walks);
        for walk in stops.chain(placed) {
            walk.expect.retain(|expect| expect.on.contains(generation));
            walk.expect.truncate(1);
            walk.expect.iter_mut().for_each(|expect| expect.on = one);
        }
        if let Some(stack) = &mut self.stack {
            stack.items.retain(|item| item.on.contains(generation));
            stack.items.iter_mut().for_each(|item| item.on = Generations::ALL);
        }
    }

    /// Renumbers functions as in another program; returns `None` if one is gone.
    fn rename(&mut self, old: &Program, new: &Program) -> Option<()> {
        let number = |id: FunctionIndex| {
            let name = &old.functions.get(id.index())?.name;
            let at = new.functions.iter().position(|function| function.name == *name)?;
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
        let exports = core::mem::take(&mut self.exports).into_iter();
        self.exports = exports.filter_map(|(id, export)| Some((number(id)?, export))).collect();
        Some(())
    }
}

/// Removes an item by its index in all lists together.
fn remove<'a, T: 'a>(lists: impl Iterator<Item = &'a mut Vec<T>>, mut index: usize) -> Option<()> {
    for list in lists {
        if index < list.len() {
            list.remove(index);
            return Some(());
        }
        index -= list.len();
    }
    None
}
