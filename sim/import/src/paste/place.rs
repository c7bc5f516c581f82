//! A thread that was printed as an observation.

use super::thread::{PastedCode, PastedFrame, PastedThread};
use super::{Paste, PasteFormat};
use crate::error::ImportError;
use crate::note::Note;
use crate::observation::{Observation, bounds_of};
use clr_runtime::frame::FrameShape;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::{ExceptionState, FrameKind, MethodKind};
use clr_scenario::{
    ObservedActivation, ObservedFrame, ObservedStack, SeedSource, SnapshotCall, SnapshotCaller,
    SnapshotSeed,
};
use clr_world::synthetic::CodeLocation;

/// Name of code whose name cannot be read.
const UNNAMED: &str = "unnamed";
/// Size of a frame whose stack pointer was not printed, in bytes.
const FRAME: u64 = 0x40;
/// Where stacks begin whose stack pointers were not printed (VA).
const START: u64 = 0x7FFF_0010_0000;

impl Paste {
    /// Returns the thread as an observation. It is of the runtime `on`, or of the version in the text, or of all runtimes that have
    /// what is shown.
    ///
    /// # Errors
    /// [`ImportError`] if it has no frames, or if an exception is in progress.
    pub fn observation(
        &self,
        thread: &PastedThread,
        on: Option<Generation>,
    ) -> Result<Observation, ImportError> {
        let mut notes = vec![Note::Profiler, Note::Bounds];
        let kinds = |frame: &PastedFrame| match frame.code {
            PastedCode::Frame(kind) => Some(kind),
            _ => None,
        };
        let kinds: Vec<_> = thread.frames.iter().filter_map(kinds).collect();
        let is_exception =
            |kind: &FrameKind| matches!(kind.shape(), FrameShape::Software | FrameShape::Faulting);
        if kinds.iter().any(is_exception) {
            return Err(ImportError::Exception(thread.id));
        }
        let on = self.runtimes(on, &kinds, &mut notes)?;
        let mut stack = activations(thread, &mut notes);
        if stack.activations.is_empty() {
            return Err(ImportError::NoFrames);
        }
        add_frames(thread, &mut stack, &mut notes);
        if !self.has_frames() {
            notes.push(Note::Frames);
        }
        add_ends(&mut stack, &mut notes);
        if thread.is_cooperative.is_none() {
            notes.push(Note::Mode);
        }
        notes.sort_unstable();
        notes.dedup();
        let thread_name = match thread.id {
            0 => "a thread".to_owned(),
            id => format!("thread {id:#x}"),
        };
        Ok(Observation {
            thread: thread_name,
            bounds: bounds_of(&stack),
            stack,
            is_cooperative: thread.is_cooperative == Some(true),
            suspension: None,
            on,
            notes,
        })
    }

    /// Returns true if what printed the stacks prints the runtime's Frames.
    pub fn has_frames(&self) -> bool {
        self.format == PasteFormat::ClrStack
    }

    /// Returns the calls that make sense on a thread: `given`, if there is one; else one from the Frames, if they are known, or
    /// with a seed, if there are managed frames; else none.
    pub fn calls(&self, thread: &PastedThread, given: Option<SnapshotCall>) -> Vec<SnapshotCall> {
        let is_managed = |frame: &PastedFrame| frame.code == PastedCode::Managed;
        let has_code = thread.frames.iter().any(is_managed);
        let seed = (!self.has_frames()).then(|| SnapshotSeed::new(SeedSource::TopManaged));
        let usual = SnapshotCall {
            by: SnapshotCaller::NativeWalker,
            suspended: true,
            seed,
            ..SnapshotCall::default()
        };
        let usual = (has_code || self.has_frames()).then_some(usual);
        given.or(usual).into_iter().collect()
    }

    /// Returns the runtimes that the stack can be of.
    fn runtimes(
        &self,
        on: Option<Generation>,
        kinds: &[FrameKind],
        notes: &mut Vec<Note>,
    ) -> Result<Generations, ImportError> {
        if let Some(known) = on.or(self.version) {
            return Ok(Generations::of(&[known]));
        }
        notes.push(Note::Version);
        let is_windows = self.format == PasteFormat::WinDbg;
        let has = |generation: &Generation| {
            // SuspendRuntime, and the programs that print, are those of .NET Core.
            generation.is_unix() != is_windows
                && kinds.iter().all(|kind| kind.exists_in(*generation))
        };
        let known: Vec<_> = Generation::ALL.into_iter().filter(has).collect();
        if known.is_empty() { Err(ImportError::NoGeneration) } else { Ok(Generations::of(&known)) }
    }
}

/// Returns the frames of code. A debugger that has lost its way prints words of the stack: they end it.
fn activations(thread: &PastedThread, notes: &mut Vec<Note>) -> ObservedStack {
    let mut activations: Vec<ObservedActivation> = Vec::new();
    let code = thread.frames.iter().filter(|it| !matches!(it.code, PastedCode::Frame(_)));
    let code: Vec<_> = code.collect();
    let has_addresses = code.iter().all(|frame| frame.sp.is_some());
    notes.extend((!has_addresses).then_some(Note::Addresses));
    for (index, frame) in code.into_iter().enumerate() {
        let kind = match frame.code {
            PastedCode::Unknown => {
                notes.push(Note::Lost { frames: thread.frames.len() as u32 - index as u32 });
                break;
            }
            PastedCode::Managed => kind(&frame.name),
            _ => MethodKind::Ordinary,
        };
        let invented = START + FRAME * index as u64;
        let sp = frame.sp.filter(|_| has_addresses).unwrap_or(invented);
        // Functions that were inlined have the frame of their caller, which is printed after them.
        if activations.last().is_some_and(|last| last.sp == sp) {
            activations.pop();
        }
        notes.extend(frame.offset.is_none().then_some(Note::Offsets));
        let is_managed = frame.code == PastedCode::Managed;
        notes.extend(is_managed.then_some(Note::Code));
        activations.push(ObservedActivation {
            function: if frame.name.is_empty() { UNNAMED.to_owned() } else { frame.name.clone() },
            offset: frame.offset.unwrap_or(ObservedActivation::NATIVE_OFFSET),
            place: if is_managed { CodeLocation::Heap } else { CodeLocation::Native },
            kind,
            funclet: None,
            saves: Vec::new(),
            ip: index as u64,
            sp,
        });
    }
    ObservedStack { activations, frames: Vec::new(), exceptions: ExceptionState::default() }
}

/// Returns the kind of a method by its name.
fn kind(name: &str) -> MethodKind {
    if name.contains("IL_STUB") {
        MethodKind::IlStub
    } else if name.starts_with("DynamicClass.") {
        MethodKind::Dynamic
    } else if name.starts_with("System.Runtime.EH.") {
        MethodKind::ExceptionHandling
    } else {
        MethodKind::Ordinary
    }
}

/// Adds the Frames. Each leads to the managed frame around it, or to the next one.
fn add_frames(thread: &PastedThread, stack: &mut ObservedStack, notes: &mut Vec<Note>) {
    for frame in &thread.frames {
        let (PastedCode::Frame(kind), Some(at)) = (frame.code, frame.sp) else { continue };
        let ends = stack.activations.iter().skip(1).map(|next| next.sp).chain([u64::MAX]);
        let mut around = stack.activations.iter().zip(ends);
        let target = around.find(|(it, end)| it.is_managed() && *end > at);
        let target = target.filter(|_| kind.shape() != FrameShape::Mark);
        notes.extend(target.is_some().then_some(Note::Leads));
        stack.frames.push(ObservedFrame {
            kind,
            at,
            target: target.map(|(it, _)| (it.ip, it.sp)),
            method: (!frame.name.is_empty()).then(|| frame.name.clone()),
            context_flags: 0,
        });
    }
}

/// Adds native code before the first frame and after the last one, if they are managed.
fn add_ends(stack: &mut ObservedStack, notes: &mut Vec<Note>) {
    let native = |sp, ip| ObservedActivation::native("native".to_owned(), ip, sp);
    let frames = stack.frames.iter().map(|frame| frame.at);
    let first = stack.activations.first().filter(|it| it.is_managed()).map(|it| it.sp);
    if let Some(first) = first {
        let lowest = frames.clone().chain([first]).min().unwrap_or(first);
        stack.activations.insert(0, native(lowest.saturating_sub(FRAME), u64::MAX));
        notes.push(Note::Native);
    }
    let last = stack.activations.last().filter(|it| it.is_managed()).map(|it| it.sp);
    if let Some(last) = last {
        // A Frame of the last method lies in its frame.
        let top = frames.chain([last]).max().unwrap_or(last);
        stack.activations.push(native(top.saturating_add(2 * FRAME) & !7, u64::MAX - 1));
        notes.push(Note::Native);
    }
}
