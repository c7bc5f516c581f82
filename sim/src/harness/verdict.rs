//! Verdicts: the frames that a walker found, compared with the shadow stack.

use super::{Found, StackWalker, StoppedThread};
use clr_codegen::FunctionIndex;
use clr_runtime::MethodKind;
use clr_runtime::generation::Generation;
use clr_scenario::{PlacedStack, RunOnError, Scenario, ScenarioError, StackNode, ThreadAtStop};
use clr_walker::profiling::FunctionId as MethodId;
use clr_world::World;
use clr_world::stubs::{Identity, method_id};
use clr_world::synthetic::{
    CodeLocation, NATIVE_WALKER, SELF_OBJECT, SyntheticError, SyntheticProcess,
};
use core::fmt;
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

/// The result of walking one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkerResult {
    /// The walker found every managed frame that is reported to profilers.
    Complete,
    /// The walker gave up and reported the reason; the frames found before were right.
    GaveUp(String),
    /// The walker missed frames without an error: the name of the first missing one.
    Lost(String),
    /// The walker found a frame that is not on the stack, or is out of order. If the ip lies in the
    /// method's code, only the method is compared: for some P/Invokes the runtime itself reports an
    /// ip other than that of the call (C-156).
    Wrong(Found),
}

/// The result of walking one thread, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkerVerdict {
    /// The generation that the thread was walked on.
    pub generation: Generation,
    /// Index of the stop in the text; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Result of the walk.
    pub outcome: WalkerResult,
}

impl WalkerVerdict {
    /// Returns true if the walker found every frame.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.outcome == WalkerResult::Complete
    }

    /// Returns true if the walker was not wrong: it found every frame, or reported that it gave up.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        matches!(self.outcome, WalkerResult::Complete | WalkerResult::GaveUp(_))
    }
}

impl fmt::Display for WalkerVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.generation)?;
        if let Some(stop) = self.stop {
            write!(f, ", stop {stop}")?;
        }
        match &self.outcome {
            WalkerResult::Complete => f.write_str(": complete"),
            WalkerResult::GaveUp(why) => write!(f, ": gave up: {why}"),
            WalkerResult::Lost(name) => write!(f, ": {name} is missing, and no error was reported"),
            WalkerResult::Wrong(found) => {
                write!(f, ": {:#x} with ip {:#x} is not on the stack", found.function.0, found.ip)
            }
        }
    }
}

/// A managed frame of the shadow stack.
struct True {
    found: Found,
    name: String,
}

/// Runs a walker on the threads of a text, on all generations.
///
/// A generation is skipped if no call of the program is made on it. A text is skipped if its shadow
/// stack is not usable: stacks in which words are overwritten by hand, and threads that are
/// handling an exception.
///
/// # Errors
/// Returns [`JudgeError`].
pub fn judge(walker: &impl StackWalker, text: &str) -> Result<Vec<WalkerVerdict>, JudgeError> {
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
                let target = StoppedThread::new(&runtime, NATIVE_WALKER, SELF_OBJECT, &registers);
                let outcome = outcome(walker, &target, &of_set(&set));
                verdicts.push(WalkerVerdict { generation, stop: None, outcome });
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
            let target = StoppedThread::new(world.as_synced(), walkers[0], object, &registers);
            let outcome = outcome(walker, &target, &frames);
            verdicts.push(WalkerVerdict { generation, stop: Some(stop), outcome });
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

fn outcome(
    walker: &impl StackWalker,
    target: &StoppedThread<'_, '_>,
    truth: &[True],
) -> WalkerResult {
    let mut found = Vec::new();
    let result = walker.walk(target, &mut found);
    let mut rest = truth.iter();
    let is_same = |true_one: Found, one: Found| {
        true_one.function == one.function
            && (true_one.ip == one.ip || target.method_at(one.ip) == Some(one.function))
    };
    for one in &found {
        match rest.next() {
            Some(next) if is_same(next.found, *one) => {}
            // Search the remaining frames: either some were lost in between, or the found one is
            // wrong.
            Some(next) => {
                let later = rest.any(|later| is_same(later.found, *one));
                return if later {
                    WalkerResult::Lost(next.name.clone())
                } else {
                    WalkerResult::Wrong(*one)
                };
            }
            None => return WalkerResult::Wrong(*one),
        }
    }
    match (result, rest.next()) {
        (Err(why), _) => WalkerResult::GaveUp(why),
        (Ok(()), Some(next)) => WalkerResult::Lost(next.name.clone()),
        (Ok(()), None) => WalkerResult::Complete,
    }
}

/// Returns the frames of a stack placed by hand that are reported to profilers.
fn of_set(set: &SyntheticProcess) -> Vec<True> {
    let activations = set.synthetic_thread().activations.iter().enumerate();
    let ordinary = activations.filter(|(_, row)| {
        row.place != CodeLocation::Native
            && row.kind == MethodKind::Ordinary
            && row.funclet.is_none()
    });
    let frames = ordinary.filter_map(|(index, row)| {
        let name = row.function.split('@').next().unwrap_or(&row.function);
        let found = Found { function: set.function(name)?, ip: set.registers(index)?.rip };
        Some(True { found, name: name.to_owned() })
    });
    frames.collect()
}

/// Returns the frames of a simulated thread that are reported to profilers.
fn of_world(world: &World<'_>, thread: usize) -> Vec<True> {
    let expanded = world.expanded();
    let ordinary = |id: &FunctionIndex| {
        let identity = expanded.identities.get(id.index());
        identity == Some(&Identity::Method(MethodKind::Ordinary))
    };
    let frames = world.activations(thread).into_iter().filter_map(|activation| {
        let id = activation.function.filter(ordinary)?;
        let ip = activation.registers.rip;
        let funclet = world.linked().part(ip).is_some_and(|part| part.funclet.is_some());
        let name = expanded.program.functions.get(id.index())?.name.clone();
        let found = Found { function: MethodId(method_id(id)), ip };
        (!funclet).then_some(True { found, name })
    });
    frames.collect()
}

/// Runs a walker on the threads of all texts, given as pairs of name and text.
///
/// # Errors
/// Returns a message with one line for each text and thread that the walker was wrong about.
pub fn assert_all<'t>(
    walker: &impl StackWalker,
    texts: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (name, text) in texts {
        match judge(walker, text) {
            Ok(verdicts) => {
                let bad = verdicts.iter().filter(|verdict| !verdict.is_right());
                wrong.extend(bad.map(|verdict| format!("{name}: {verdict}")));
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
