//! Outlines of stacks: the modules whose code a thread is in. Names of functions play no part.

use crate::stack::{CodeKind, Stack, StackFrame, StackWalker};
use clr_dump::{StoppedProcess, Thread};
use clr_unwind::{Gpr, Memory, Position, Registers};
use std::ops::Range;

/// Bytes of an interrupted stack that are searched at most.
const SEARCHED: u64 = 1 << 16;

/// The code that a thread is in.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    /// Paths of the modules whose code has called one another, leafmost first, each once for frames in a row: up to other code, or to
    /// what a signal has interrupted.
    pub(super) modules: Vec<String>,
    /// Number of leafmost frames in the first module.
    pub(super) leaves: usize,
    /// Paths of the modules of all frames.
    pub(super) all: Vec<String>,
    /// True if the stack goes on, from code of a module whose file is missing.
    pub(super) is_cut: bool,
    /// The code that a signal has interrupted, if the thread is in a handler.
    pub(super) interrupted: Option<Interrupted>,
}

/// Code that a signal has interrupted.
#[derive(Clone, Debug)]
pub(super) struct Interrupted {
    pub(super) registers: Registers,
    /// Paths of the modules of the native code, as in an outline.
    pub(super) modules: Vec<String>,
    /// The stack of that code (VA).
    stack: Range<u64>,
}

impl Outline {
    pub(super) fn of<P: StoppedProcess + ?Sized>(
        process: &P,
        walker: &mut StackWalker<'_, '_, P>,
        thread: &Thread,
    ) -> Self {
        let Stack { frames, end } = walker.walk(&thread.registers);
        let is_signals = |frame: &&StackFrame| frame.position == Position::Interrupted;
        let below = frames.iter().skip(1).position(|frame| is_signals(&frame)).map(|at| at + 1);
        let (handler, rest) = frames.split_at(below.unwrap_or(frames.len()));
        let all = named(process, &frames);
        let last = frames.last().and_then(|last| process.module_at(last.registers.rip));
        let is_cut = !end.is_root() && last.is_some_and(|module| module.file.is_err());
        let modules = native(process, handler);
        let leaf = modules.first();
        let is_leaf = |frame: &&StackFrame| path(process, frame).as_ref() == leaf;
        Self {
            leaves: handler.iter().take_while(|frame| leaf.is_some() && is_leaf(frame)).count(),
            modules: in_a_row(modules),
            all,
            is_cut,
            interrupted: rest.first().map(|first| Interrupted::of(process, first, rest)),
        }
    }

    /// Returns true if native code has called the runtime, the module with this path, which has called native code.
    pub(super) fn is_in_call(&self, runtime: &str) -> bool {
        let Some(at) = self.modules.iter().position(|path| path == runtime) else { return false };
        // The system's library waits, and begins threads; what the runtime called is between.
        let system = self.modules.first();
        at >= 2 && self.modules.get(at + 1).is_some_and(|module| Some(module) != system)
    }

    /// Returns the module that has the code of the handler: the one that the system's trampoline returns from.
    pub(super) fn handler(&self) -> Option<&str> {
        self.interrupted.as_ref()?;
        let (_trampoline, handler) = self.modules.split_last()?;
        handler.last().map(String::as_str)
    }
}

impl Interrupted {
    fn of<P: StoppedProcess + ?Sized>(
        process: &P,
        first: &StackFrame,
        rest: &[StackFrame],
    ) -> Self {
        let modules = native(process, rest);
        let start = first.registers.rsp();
        let last = rest.get(modules.len()).or(rest.last());
        let end = last.map_or(start, |frame| frame.registers.rsp());
        let stack = start..end.clamp(start, start.saturating_add(SEARCHED));
        Self { registers: first.registers, modules: in_a_row(modules), stack }
    }

    /// Returns true if the code has the value in a register or in a word of its stack.
    pub(super) fn has<M: Memory + ?Sized>(&self, memory: &M, value: u64) -> bool {
        let is_in_register = Gpr::ALL.into_iter().any(|it| self.registers.get(it) == value);
        let mut words = self.stack.clone().step_by(8);
        is_in_register || words.any(|at| memory.read_u64(at) == Ok(value))
    }
}

fn path<P: StoppedProcess + ?Sized>(process: &P, frame: &StackFrame) -> Option<String> {
    Some(process.module_at(frame.registers.rip)?.path.clone())
}

/// Returns the modules of frames of native code, up to other code.
fn native<P: StoppedProcess + ?Sized>(process: &P, frames: &[StackFrame]) -> Vec<String> {
    let native = frames.iter().take_while(|frame| frame.code == CodeKind::Native);
    native.map_while(|frame| path(process, frame)).collect()
}

fn named<P: StoppedProcess + ?Sized>(process: &P, frames: &[StackFrame]) -> Vec<String> {
    in_a_row(frames.iter().filter_map(|frame| path(process, frame)).collect())
}

fn in_a_row(mut modules: Vec<String>) -> Vec<String> {
    modules.dedup();
    modules
}
