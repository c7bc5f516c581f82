//! Generation of programs.

use super::body;
use super::choices::Choices;
use super::repair;
use super::size::Size;
use clr_codegen::estimate::{self, Estimate};
use clr_codegen::{
    CallingConvention, CodeKind, EntryForm, Function, FunctionIndex, Interrupt, Program,
};

/// The features that a program uses. Each program lacks some of them, so that the others occur more
/// often.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub(super) struct Features {
    pub(super) exceptions: bool,
    pub(super) handlers: bool,
    pub(super) dynamic: bool,
    pub(super) apart: bool,
    pub(super) funclets: bool,
    pub(super) tail_calls: bool,
    pub(super) stops: bool,
}

impl Features {
    fn draw<C: Choices>(choices: &mut C) -> Self {
        Self {
            exceptions: choices.chance(1, 3),
            handlers: choices.chance(1, 2),
            dynamic: choices.chance(1, 2),
            apart: choices.chance(1, 2),
            funclets: choices.chance(1, 2),
            tail_calls: choices.chance(1, 2),
            stops: choices.chance(1, 8),
        }
    }
}

/// The surroundings that a function is generated for.
pub(super) struct Surroundings<'a> {
    pub(super) size: &'a Size,
    pub(super) convention: CallingConvention,
    pub(super) features: Features,
    pub(super) entries: &'a [EntryForm],
    /// Estimates of the functions with higher indices.
    pub(super) estimates: &'a [Estimate],
    pub(super) index: u32,
    pub(super) kind: CodeKind,
    /// Maximum cost of the function including all that it calls.
    pub(super) instructions: u64,
    pub(super) stack: u64,
    /// Maximum cost of the function itself, in addition to its callees.
    pub(super) own_instructions: u64,
    pub(super) own_stack: u64,
}

/// Generates a valid program within the limits of a size.
///
/// The program depends only on the choices, and is the same on all platforms.
pub fn program<C: Choices>(choices: &mut C, size: &Size) -> Program {
    let (least, most) = size.functions();
    let count = choices.between(least, most);
    let conventions =
        [CallingConvention::WindowsX64, CallingConvention::WindowsX64, CallingConvention::SystemV];
    let convention = size.convention.unwrap_or_else(|| choices.one(conventions));
    let features = Features::draw(choices);
    let entries = entries(choices, size, features, count, convention);
    let kind = match size.convention {
        None => choices.one([CodeKind::Native, CodeKind::Jit, CodeKind::ReadyToRun]),
        Some(_) => CodeKind::Native,
    };
    let mixed = choices.chance(1, 2);

    // A quarter of each limit is reserved for interrupts.
    let (instructions, stack) = (size.instructions / 4 * 3, size.stack / 4 * 3);
    let own_instructions = instructions / u64::from(count);
    let own_stack = stack / u64::from(count);
    let mut estimates = vec![Estimate::default(); entries.len()];
    let mut called = vec![false; entries.len()];
    let mut functions = Vec::with_capacity(entries.len());
    for index in (0..count).rev() {
        let kind = match (mixed, size.convention) {
            (false, _) => kind,
            (true, None) => choices.one(CodeKind::ALL),
            (true, Some(_)) => choices.one([
                CodeKind::Native,
                CodeKind::Native,
                CodeKind::Jit,
                CodeKind::ReadyToRun,
            ]),
        };
        let is_signal = entries.get(index as usize) == Some(&EntryForm::Signal);
        let kind = if is_signal { CodeKind::Native } else { kind };
        let callers_and_self = u64::from(count - index);
        let surroundings = Surroundings {
            size,
            convention,
            features,
            entries: &entries,
            estimates: &estimates,
            index,
            kind,
            instructions: own_instructions * callers_and_self,
            stack: own_stack * callers_and_self,
            own_instructions,
            own_stack,
        };
        let function = body::function(choices, &surroundings, &mut called);
        estimates[index as usize] = estimate::function(&function, &estimates);
        functions.push(function);
    }
    functions.reverse();
    name(&mut functions, &entries);
    let interrupts = interrupts(choices, size, &entries, &estimates);
    let mut program = Program { convention, functions, interrupts, signal_stack: 0 };
    if let Some(least) = repair::least_signal_stack(&program)
        && choices.chance(1, 2)
    {
        program.signal_stack = least;
    }
    program
}

/// Draws the entry of each function: the first one is called.
fn entries<C: Choices>(
    choices: &mut C,
    size: &Size,
    features: Features,
    count: u32,
    convention: CallingConvention,
) -> Vec<EntryForm> {
    let mut entry = |index: u32| {
        // A handler in the middle would break a chain.
        let possible = index > 0 && (!size.chain || index + 1 == count);
        let likely = if size.chain { 2 } else { 1 };
        if features.handlers && possible && choices.chance(likely, 3) {
            match convention {
                CallingConvention::WindowsX64 => {
                    choices.one([EntryForm::Interrupt, EntryForm::InterruptWithErrorCode])
                }
                CallingConvention::SystemV => choices.one([
                    EntryForm::Interrupt,
                    EntryForm::InterruptWithErrorCode,
                    EntryForm::Signal,
                    EntryForm::Signal,
                ]),
            }
        } else {
            EntryForm::Call
        }
    };
    (0..count).map(&mut entry).collect()
}

fn name(functions: &mut [Function], entries: &[EntryForm]) {
    let (mut called, mut handlers) = (0, 0);
    for (function, entry) in functions.iter_mut().zip(entries) {
        let (prefix, number) = match entry {
            EntryForm::Call => ("f", &mut called),
            EntryForm::Interrupt | EntryForm::InterruptWithErrorCode | EntryForm::Signal => {
                ("isr", &mut handlers)
            }
        };
        function.name = format!("{prefix}{number}");
        *number += 1;
    }
}

/// Draws interrupts from outside, as many as the reserved quarter of the limits allows.
fn interrupts<C: Choices>(
    choices: &mut C,
    size: &Size,
    entries: &[EntryForm],
    estimates: &[Estimate],
) -> Vec<Interrupt> {
    let handlers: Vec<u32> = (0..entries.len() as u32)
        .filter(|&index| entries[index as usize] != EntryForm::Call)
        .collect();
    if handlers.is_empty() {
        return Vec::new();
    }
    let (mut instructions, mut stack) = (size.instructions / 4, size.stack / 4);
    let mut interrupts = Vec::new();
    for _ in 0..choices.between(0, size.interrupts) {
        let Some(handler) = choices.pick(&handlers).map(FunctionIndex) else { break };
        let cost = estimate::of(estimates, handler);
        if cost.instructions <= instructions && cost.stack <= stack {
            instructions -= cost.instructions;
            stack -= cost.stack;
            let latest = choices.one([20, 80, 400]);
            interrupts.push(Interrupt { after: choices.below(latest).into(), handler });
        }
    }
    interrupts.sort_by_key(|interrupt| interrupt.after);
    interrupts
}
