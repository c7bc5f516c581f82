//! Walks of the threads of texts by a walker under test.

use super::{Found, StackFrame, StackWalker, StoppedThread, WalkerVerdict};
use clr_codegen::execution::BASE;
use clr_runtime::MethodKind;
use clr_runtime::generation::Generation;
use clr_scenario::{PlacedStack, RunOnError, Scenario, ScenarioError, StackNode, ThreadAtStop};
use clr_walker::profiling::FunctionId as MethodId;
use clr_world::World;
use clr_world::stubs::{Identity, method_id};
use clr_world::synthetic::{
    CodeLocation, NATIVE_WALKER, SELF, SELF_OBJECT, SyntheticError, SyntheticProcess,
};
use thiserror::Error;

/// The reason why a text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JudgeError {
    /// The text is not a scenario.
    #[error(transparent)]
    Text(#[from] ScenarioError),
    /// The threads of the program cannot be brought to their stops.
    #[error(transparent)]
    Run(#[from] RunOnError),
    /// The stack of the text cannot be set up.
    #[error(transparent)]
    Stage(#[from] SyntheticError),
}

/// Runs a walker on the threads of a text, on all generations.
///
/// A generation is skipped if no call of the program is made on it. A text is skipped if its shadow
/// stack is not usable: stacks in which words are overwritten by hand, and threads that are
/// handling an exception. If the ip of a frame lies in the method's code, only the method is compared: for some
/// P/Invokes the runtime itself reports an ip other than that of the call (C-156).
///
/// # Errors
/// Returns [`JudgeError`].
pub fn judge(
    walker: &(impl StackWalker + ?Sized),
    text: &str,
) -> Result<Vec<WalkerVerdict>, JudgeError> {
    let scenario: Scenario = text.parse()?;
    let mut verdicts = Vec::new();
    let is_walked = scenario.stops.iter().any(|stop| !stop.expect.is_empty());
    if is_walked && scenario.snapshots().next().is_none() {
        // The text is for walks without a runtime; the program may not even be executable with one.
        return Ok(verdicts);
    }
    for generation in Generation::ALL {
        if let Some(stack) = &scenario.stack {
            if is_whole(stack) && stack.generations().contains(generation) {
                let set = stack.synthetic_thread(generation).build()?;
                let runtime = set.runtime();
                let registers = set.registers(0).unwrap_or_default();
                let ids = [SELF, NATIVE_WALKER];
                let target = StoppedThread::new(&runtime, ids, SELF_OBJECT, &registers, 0);
                verdicts.push(walk(walker, (generation, None), &target, of_set(&set)));
            }
            continue;
        }
        if !is_for(&scenario, generation) {
            continue;
        }
        scenario.at_stops(generation, |at_stop| {
            let ThreadAtStop { stop, world, thread, walkers } = at_stop;
            world.sync();
            let Some(object) = world.object(thread) else { return };
            let activations = world.activations(thread);
            let known = world.as_synced().thread_of(object, |thread| thread.exceptions.clone());
            if known.is_none_or(|exceptions| !exceptions.trackers.is_empty()) {
                return;
            }
            let registers = activations.first().map(|leaf| leaf.registers).unwrap_or_default();
            let frames = of_world(world, thread);
            let Some(os) = world.os(thread) else { return };
            let runtime = world.as_synced();
            let target = StoppedThread::new(runtime, [os, walkers[0]], object, &registers, BASE);
            verdicts.push(walk(walker, (generation, Some(stop)), &target, frames));
        })?;
    }
    Ok(verdicts)
}

/// Returns true if a program is executed on a generation. Its calls determine the generations that
/// it is for.
fn is_for(scenario: &Scenario, generation: Generation) -> bool {
    let snapshots = scenario.snapshots().map(|at| at.call.applies_to(generation));
    let walks = scenario.mixed_walks().map(|at| at.says.applies_to(generation));
    let mut calls = snapshots.chain(walks).peekable();
    calls.peek().is_none() || calls.any(|is_made| is_made)
}

/// Returns true if a correct process could have the stack.
fn is_whole(stack: &PlacedStack) -> bool {
    stack
        .items
        .iter()
        .all(|item| !matches!(item.node, StackNode::Word { .. } | StackNode::Exception(_)))
}

/// Walks a thread, and compares the frames found with those on its stack.
fn walk(
    walker: &(impl StackWalker + ?Sized),
    place: (Generation, Option<usize>),
    target: &StoppedThread<'_, '_>,
    on_stack: Vec<StackFrame>,
) -> WalkerVerdict {
    let mut found = Vec::new();
    let gave_up = walker.walk(target, &mut found).err();
    WalkerVerdict::new(place, on_stack, found, gave_up, |true_one, one| {
        true_one.function == one.function
            && (true_one.ip == one.ip || target.method_at(one.ip) == Some(one.function))
    })
}

/// Returns the frames of a stack placed by hand.
fn of_set(set: &SyntheticProcess) -> Vec<StackFrame> {
    let activations = set.synthetic_thread().activations.iter().enumerate();
    let known = activations
        .filter(|(_, row)| row.place != CodeLocation::Native && has_function_id(row.kind));
    let frames = known.filter_map(|(index, row)| {
        let name = row.function.split('@').next().unwrap_or(&row.function);
        let frame = Found { function: set.function(name)?, ip: set.registers(index)?.rip };
        let is_reported = row.funclet.is_none() && row.kind == MethodKind::Ordinary;
        Some(StackFrame { frame, name: name.to_owned(), is_reported })
    });
    frames.collect()
}

/// Returns true if methods of a kind have a FunctionID that a profiler gets to know.
const fn has_function_id(kind: MethodKind) -> bool {
    matches!(kind, MethodKind::Ordinary | MethodKind::ExceptionHandling)
}

/// Returns the frames of a simulated thread.
fn of_world(world: &World<'_>, thread: usize) -> Vec<StackFrame> {
    let expanded = world.expanded();
    let frames = world.activations(thread).into_iter().filter_map(|activation| {
        let id = activation.function?;
        let Some(&Identity::Method(kind)) = expanded.identities.get(id.index()) else {
            return None;
        };
        let ip = activation.registers.rip;
        let is_funclet = world.linked().part(ip).is_some_and(|part| part.funclet.is_some());
        let is_reported = kind == MethodKind::Ordinary && !is_funclet;
        let name = expanded.program.functions.get(id.index())?.name.clone();
        let frame = Found { function: MethodId(method_id(id)), ip };
        has_function_id(kind).then_some(StackFrame { frame, name, is_reported })
    });
    frames.collect()
}
