//! The threads of a dump.

use crate::error::ImportError;
use crate::note::Note;
use crate::observation::{Observation, bounds_of};
use crate::version::generation_of_module;
use clr_dump::StoppedProcess;
use clr_inspect::{
    CodeKind, ExplicitFrame, FrameKind as KindInDump, ManagedThread, MethodName, MethodNames, Mode,
    Runtime, StackFrame, StackWalker, ThreadStore,
};
use clr_runtime::frame::layout;
use clr_runtime::frame::{FrameReader, FrameShape};
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::{Context, ExceptionState, FrameIdentities, FrameKind, MethodKind};
use clr_scenario::{ObservedActivation, ObservedFrame, ObservedStack, SuspensionState};
use clr_unwind::{Position, Registers};
use clr_world::synthetic::CodeLocation;

/// Name of code that is in no module, and of stubs.
const NATIVE: &str = "native";
/// Name of a method without a name.
const UNKNOWN: &str = "(unknown method)";
/// The class of methods that handle exceptions.
const EXCEPTION_HANDLING: &str = "System.Runtime.EH";
/// Begin of the names of stubs that are methods.
const IL_STUB: &str = "IL_STUB";

/// Reads threads of a stopped process as observations.
#[derive(Debug)]
pub struct ThreadReader<'r, 'm, 'a, P: ?Sized> {
    process: &'m P,
    runtime: &'r Runtime,
    walker: StackWalker<'m, 'a, P>,
    names: Option<MethodNames<'m, P>>,
    generation: Generation,
}

impl<'r, 'm, 'a, P: StoppedProcess + ?Sized> ThreadReader<'r, 'm, 'a, P> {
    /// Creates a reader. `walker` walks the stacks of the same process. The simulated runtime is `on`, or that of the version of
    /// the process's runtime.
    ///
    /// # Errors
    /// [`ImportError`] if it is not known which simulated runtime that is, or if managed code cannot be found.
    pub fn new(
        process: &'m P,
        runtime: &'r Runtime,
        walker: StackWalker<'m, 'a, P>,
        on: Option<Generation>,
    ) -> Result<Self, ImportError> {
        let generation = on.or_else(|| {
            let mut modules = process.modules().iter();
            generation_of_module(modules.find(|module| module.path == runtime.path())?)
        });
        let generation = generation.ok_or(ImportError::NoGeneration)?;
        if !walker.finds_managed_code() {
            return Err(ImportError::NoCode);
        }
        let names = MethodNames::new(process, runtime).ok();
        Ok(Self { process, runtime, walker, names, generation })
    }

    /// Returns the simulated runtime.
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Reads the thread with this id of the operating system.
    ///
    /// # Errors
    /// [`ImportError`] if there is no such thread, or if the dump lacks something that decides what a snapshot gives.
    pub fn read(&mut self, id: u32) -> Result<Observation, ImportError> {
        let thread = self.process.thread(id).ok_or(ImportError::NoThread(id))?;
        let list = self.runtime.threads(self.process)?;
        let managed = list.threads.iter().find(|managed| managed.os_id == id);
        let managed = match (managed, list.end) {
            (Some(managed), _) => managed,
            (None, Err(error)) => return Err(error.into()),
            (None, Ok(())) => return Err(ImportError::NotManaged(id)),
        };
        managed.frames_end.map_err(ImportError::Frames)?;
        if self.runtime.has_exception(self.process, managed)? {
            return Err(ImportError::Exception(id));
        }
        let mut notes = vec![Note::Profiler, Note::Bounds];
        let frames = managed.frames.iter().map(|frame| self.frame(frame));
        let frames: Vec<_> = frames.collect::<Result<_, _>>()?;
        let walked = self.walk(&thread.registers, &frames, &mut notes);
        let activations: Vec<_> = walked.iter().map(|frame| self.activation(frame)).collect();
        let frames = frames.into_iter().map(|(frame, _)| frame).collect();
        let mut stack =
            ObservedStack { activations, frames, exceptions: ExceptionState::default() };
        self.find_targets(&walked, &mut stack, &mut notes);
        let suspension = suspension(&list.store, managed, &list.threads)?;
        notes.extend(suspension.is_some().then_some(Note::Suspension));
        let is_held = list.store.holder.is_some_and(|holder| holder != id);
        notes.extend((is_held && suspension.is_none()).then_some(Note::Holder));
        notes.sort_unstable();
        Ok(Observation {
            thread: format!("thread {}", managed.id),
            bounds: bounds_of(&stack),
            stack,
            is_cooperative: managed.mode == Mode::Cooperative,
            suspension,
            on: Generations::of(&[self.generation]),
            notes,
        })
    }

    /// Reads a Frame, and the registers that it leads to.
    fn frame(
        &mut self,
        explicit: &ExplicitFrame,
    ) -> Result<(ObservedFrame, Option<Registers>), ImportError> {
        let address = explicit.address;
        let kind = match explicit.kind {
            KindInDump::Named(name) => FrameKind::from_name(name),
            KindInDump::Unnamed(_) => None,
        };
        let kind = kind.ok_or(ImportError::FrameKind { address })?;
        let generation = self.generation;
        let reader = FrameReader { at: address, kind, generation, memory: self.process };
        let mut context = Context::default();
        if kind.shape() != FrameShape::Mark {
            reader.update(&mut context, &FrameIdentities::of(generation))?;
        }
        let registers = Some(context.registers).filter(|registers| registers.rip != 0);
        let frame = ObservedFrame {
            kind,
            at: address,
            target: registers.map(|registers| (registers.rip, registers.rsp())),
            method: self.method(address, kind.shape())?,
            context_flags: context.flags,
        };
        Ok((frame, registers))
    }

    /// Returns the name of the method in a Frame at `at` (VA), if there is one.
    fn method(&mut self, at: u64, shape: FrameShape) -> Result<Option<String>, ImportError> {
        let word = |offset: u64| self.process.read_u64(at.wrapping_add(offset));
        let desc = match shape {
            FrameShape::InlinedCall => {
                let datum = word(layout::DATUM)?;
                // A word with bit 0 set belongs to a stub.
                if datum & 1 == 0 { datum & !layout::DATUM_MARKS } else { 0 }
            }
            FrameShape::FramedMethod => word(layout::METHOD)?,
            _ => 0,
        };
        Ok((desc != 0)
            .then(|| self.name(desc).map_or_else(|| UNKNOWN.to_owned(), |name| label(&name))))
    }

    fn name(&mut self, desc: u64) -> Option<MethodName> {
        self.names.as_mut()?.name(desc).ok()
    }

    /// Walks the stack. Where unwinding ends early, it goes on from the next Frame that leads on.
    fn walk(
        &mut self,
        registers: &Registers,
        frames: &[(ObservedFrame, Option<Registers>)],
        notes: &mut Vec<Note>,
    ) -> Vec<StackFrame> {
        let mut walked = Vec::new();
        let (mut from, mut position) = (*registers, Position::Interrupted);
        loop {
            let stack = self.walker.walk_from(&from, position);
            walked.extend(stack.frames);
            if stack.end.is_root() {
                return walked;
            }
            let sp = walked.last().map_or(0, |last: &StackFrame| last.registers.rsp());
            let next = frames.iter().filter_map(|(_, to)| *to).find(|to| to.rsp() > sp);
            let Some(next) = next else {
                notes.push(Note::Cut { sp });
                return walked;
            };
            notes.push(Note::Gap { from: sp, to: next.rsp() });
            (from, position) = (next, Position::ReturnAddress);
        }
    }

    /// Makes each Frame lead to a frame of the stack: the one with its registers. The call that the Frame is of may be another
    /// one of the same activation (C-156): then the frame is placed where the Frame says.
    fn find_targets(
        &mut self,
        walked: &[StackFrame],
        stack: &mut ObservedStack,
        notes: &mut Vec<Note>,
    ) {
        for frame in &mut stack.frames {
            let Some((ip, sp)) = frame.target else { continue };
            let code = self.walker.code_at(ip, Position::ReturnAddress).ok();
            let is_same = |it: &StackFrame| {
                it.registers.rsp() == sp && (it.registers.rip == ip || Some(it.code) == code)
            };
            let found = walked.iter().position(is_same);
            let Some(activation) = found.and_then(|index| stack.activations.get_mut(index)) else {
                notes.push(Note::Target { at: frame.at });
                frame.target = None;
                continue;
            };
            if activation.ip != ip && activation.is_managed() {
                activation.offset = activation.offset.wrapping_add(ip.wrapping_sub(activation.ip));
                activation.ip = ip;
                notes.push(Note::Moved { sp });
            }
        }
    }

    fn activation(&mut self, frame: &StackFrame) -> ObservedActivation {
        let (ip, sp) = (frame.registers.rip, frame.registers.rsp());
        let (function, offset, place, kind) = match frame.code {
            CodeKind::Jitted { method, start } => {
                let (name, kind) = self.managed(method);
                (name, ip.wrapping_sub(start), CodeLocation::Heap, kind)
            }
            CodeKind::ReadyToRun { method, start } => {
                let (name, kind) = self.managed(method);
                (name, ip.wrapping_sub(start), CodeLocation::ReadyToRun, kind)
            }
            _ => return ObservedActivation::native(self.native(ip), ip, sp),
        };
        let saves = Vec::new();
        ObservedActivation { function, offset, place, kind, funclet: None, saves, ip, sp }
    }

    /// Returns the name and the kind of a method.
    fn managed(&mut self, desc: u64) -> (String, MethodKind) {
        let Some(name) = self.name(desc) else {
            return (UNKNOWN.to_owned(), MethodKind::Ordinary);
        };
        let kind = if name.token == 0 && name.name.starts_with(IL_STUB) {
            MethodKind::IlStub
        } else if name.token == 0 {
            MethodKind::Dynamic
        } else if name.class == EXCEPTION_HANDLING {
            MethodKind::ExceptionHandling
        } else {
            MethodKind::Ordinary
        };
        (label(&name), kind)
    }

    /// Returns a name for native code: its module, and where it is there.
    fn native(&self, ip: u64) -> String {
        match self.process.module_at(ip) {
            Some(module) => {
                let at = ip
                    .saturating_sub(module.range.start)
                    .saturating_sub(ObservedActivation::NATIVE_OFFSET);
                format!("{}!{at:#x}", module.name())
            }
            None => NATIVE.to_owned(),
        }
    }
}

fn label(name: &MethodName) -> String {
    ObservedActivation::label(&name.to_string())
}

/// Returns how far a suspension by another thread has come.
fn suspension(
    store: &ThreadStore,
    of: &ManagedThread,
    threads: &[ManagedThread],
) -> Result<Option<SuspensionState>, ImportError> {
    let Some(suspender) = store.suspender else { return Ok(None) };
    if suspender == of.address {
        return Err(ImportError::State);
    }
    let runs =
        |thread: &ManagedThread| thread.mode == Mode::Cooperative && thread.address != suspender;
    let is_waiting = threads.iter().any(runs);
    Ok(Some(if is_waiting { SuspensionState::Suspending } else { SuspensionState::Suspended }))
}
