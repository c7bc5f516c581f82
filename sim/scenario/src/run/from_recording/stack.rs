//! The stack of a recorded walk.

use crate::run::observed::{ObservedActivation, ObservedFrame, ObservedStack};
use clr_recording::{
    CALLER, RecordedNames, Recording, RecordingLoadError, RecordingReplay, StackLine, TARGET,
    WalkLine,
};
use clr_runtime::explain::{NamedAddress, Names as _};
use clr_runtime::frame::layout::{self, FrameConvention};
use clr_runtime::frame::{FrameReader, FrameShape};
use clr_runtime::{Context, ExceptionState, MethodKind};
use clr_unwind::{Gpr, Memory as _, Registers};
use clr_walker::profiling::FunctionId;
use clr_world::synthetic::CodeLocation;

/// Name of the unknown code at the leaf of a thread that walks itself.
const PROFILER: &str = "profiler";
/// Name of other unknown code at the leaf.
const NATIVE: &str = "native";
/// Name of methods without a name.
const NAMELESS: &str = "(dynamic method)";
/// Name of a Frame's method that was not recorded.
const UNKNOWN: &str = "(unknown method)";
/// Size in bytes of a stack whose lower bound was not recorded.
const UNKNOWN_SIZE: u64 = 8 << 20;
/// Space in bytes for the code at the leaf, of which nothing was recorded.
const LEAF_ROOM: u64 = 0x40;

/// Reads the stack of a walk, still at its recorded addresses, as the runtime sees it in a replay.
pub(super) fn read(
    recording: &Recording,
    replay: &mut RecordingReplay<'_>,
    walk: &WalkLine,
) -> Result<ObservedStack, RecordingLoadError> {
    let reached = replay.stops(walk)?;
    let reader = Reader { recording, replay, walk };
    let frames = reader.frames();
    let mut activations: Vec<ObservedActivation> = Vec::new();
    let mut elsewhere: Vec<ObservedActivation> = Vec::new();
    for frame in &reached {
        let activation = reader.managed(&frame.registers);
        // A seed can be anywhere, off the stack and in the middle of a word.
        if reader.is_off(frame.registers.rsp()) {
            elsewhere.push(activation);
            continue;
        }
        if activations.last().is_some_and(|last| last.sp >= activation.sp) {
            elsewhere.extend(activations.drain(..).filter(ObservedActivation::is_managed));
        }
        activations.push(activation);
        activations.extend(frame.native_caller.map(|caller| reader.native(&caller)));
    }
    if let Some(seed) = &walk.call.seed {
        let activation = reader.managed(&seed.registers());
        elsewhere.extend(Some(activation).filter(ObservedActivation::is_managed));
    }
    let ends = activations.last().is_some_and(ObservedActivation::is_managed);
    if let Some(last) = reached.last().filter(|_| ends) {
        activations.push(ObservedActivation::native(NATIVE.to_owned(), 0, last.caller_sp));
    }
    // Of a call that was refused the Frames alone say which methods are on the stack.
    for (ip, sp) in frames.iter().filter_map(|frame| frame.target) {
        if activations.last().is_none_or(|last| last.sp < sp) && !reader.is_off(sp) {
            let mut registers = Registers { rip: ip, ..Registers::default() };
            registers.set(Gpr::Rsp, sp);
            activations.push(reader.managed(&registers));
        }
    }
    reader.add_code(&mut activations, elsewhere, &frames);
    reader.add_leaf(&mut activations, &frames);
    Ok(ObservedStack { activations, frames, exceptions: reader.exceptions() })
}

/// Returns the lower and the upper bound of a recorded stack (VA).
pub(super) fn bounds(stack: &StackLine) -> (u64, u64) {
    let base = stack.base.0;
    (stack.limit.map_or(base.saturating_sub(UNKNOWN_SIZE), |limit| limit.0), base)
}

struct Reader<'s, 'r> {
    recording: &'s Recording,
    replay: &'s RecordingReplay<'r>,
    walk: &'s WalkLine,
}

impl Reader<'_, '_> {
    fn exceptions(&self) -> ExceptionState {
        let os = if self.walk.relation == "self" { CALLER } else { TARGET };
        let threads = self.replay.runtime().threads.borrow();
        threads.iter().find(|it| it.os == os).map(|it| it.exceptions.clone()).unwrap_or_default()
    }

    fn frames(&self) -> Vec<ObservedFrame> {
        let runtime = self.replay.runtime();
        let memory = &*runtime.memory.borrow();
        let mut frames = Vec::new();
        for line in &self.walk.frames {
            let at = line.at.0;
            let read = FrameReader::new(at, runtime.generation, &runtime.identities, memory);
            let Ok(Some(frame)) = read else { continue };
            let mut context = Context::default();
            let updated = frame.update(&mut context, &runtime.identities).is_ok();
            let registers = context.registers;
            let leads = updated && registers.rip != 0;
            frames.push(ObservedFrame {
                kind: frame.kind,
                at,
                target: leads.then(|| (registers.rip, registers.rsp())),
                method: self.method(at, frame.kind.shape()),
                context_flags: if updated { context.flags } else { 0 },
            });
        }
        frames
    }

    /// Returns the name of the method in a Frame at `at` (VA), if there is one.
    fn method(&self, at: u64, shape: FrameShape) -> Option<String> {
        let offset = match shape {
            FrameShape::InlinedCall => layout::DATUM,
            FrameShape::FramedMethod => layout::METHOD,
            FrameShape::HelperMethod => layout::HELPER_METHOD,
            _ => return None,
        };
        let memory = &*self.replay.runtime().memory.borrow();
        let word = memory.read_u64(at.wrapping_add(offset)).ok()?;
        let marks = if offset == layout::DATUM { layout::DATUM_MARKS } else { 0 };
        let id = Some(word & !marks).filter(|id| *id != 0)?;
        let function = self.recording.function_by_id(FunctionId(id));
        Some(function.map_or_else(|| UNKNOWN.to_owned(), |function| method_name(&function.name)))
    }

    fn managed(&self, registers: &Registers) -> ObservedActivation {
        let runtime = self.replay.runtime();
        let (ip, sp) = (registers.rip, registers.rsp());
        let Some(managed) = runtime.code.find(ip) else { return self.native(registers) };
        let kind = managed.method.kind;
        let is_in_image = kind == MethodKind::Ordinary && runtime.code.is_in_image(ip);
        let place = if kind == MethodKind::ExceptionHandling || is_in_image {
            CodeLocation::ReadyToRun
        } else {
            CodeLocation::Heap
        };
        ObservedActivation {
            function: method_name(&managed.method.name),
            offset: ip.wrapping_sub(managed.code.start),
            place,
            kind,
            funclet: managed.code.funclet(ip),
            saves: self.saves(registers),
            ip,
            sp,
        }
    }

    /// Returns the registers that unwinding restores: those whose values in the caller do not depend
    /// on the values here.
    fn saves(&self, registers: &Registers) -> Vec<Gpr> {
        let runtime = self.replay.runtime();
        let memory = &*runtime.memory.borrow();
        let rules = runtime.generation.unwind_rules();
        let caller = |registers: &Registers| {
            let mut caller = *registers;
            let managed = runtime.code.find(registers.rip)?;
            runtime.code.unwind(managed, rules, &mut caller, memory).ok()?;
            Some(caller)
        };
        let Some(usual) = caller(registers) else { return Vec::new() };
        let saved = FrameConvention::of(runtime.generation).callee_saved.iter().copied();
        let is_saved = |register: &Gpr| {
            let mut other = *registers;
            other.set(*register, !registers.get(*register));
            // A frame register is saved, too.
            caller(&other).is_none_or(|other| {
                other.get(*register) == usual.get(*register) || other.rip != usual.rip
            })
        };
        saved.filter(is_saved).collect()
    }

    fn native(&self, registers: &Registers) -> ObservedActivation {
        let (ip, sp) = (registers.rip, registers.rsp());
        let runtime = self.replay.runtime();
        let named = RecordedNames::new(self.recording, runtime).place(ip);
        let function = match named {
            NamedAddress::Native(place) => match place.rsplit_once("+0x") {
                Some((module, offset)) => {
                    let offset = u64::from_str_radix(offset, 16).unwrap_or_default();
                    format!(
                        "{module}!{:#x}",
                        offset.saturating_sub(ObservedActivation::NATIVE_OFFSET)
                    )
                }
                None => place,
            },
            _ => NATIVE.to_owned(),
        };
        ObservedActivation::native(function, ip, sp)
    }

    /// Returns true if no activation of a text can have this rsp (VA).
    fn is_off(&self, sp: u64) -> bool {
        let unknown = (u64::MAX - UNKNOWN_SIZE, u64::MAX);
        let (limit, base) = self.walk.stack.as_ref().map_or(unknown, bounds);
        sp >= base || sp < limit || !sp.is_multiple_of(8)
    }

    /// Adds methods whose code a seed names, although they are not on the stack, at its leaf.
    fn add_code(
        &self,
        activations: &mut Vec<ObservedActivation>,
        elsewhere: Vec<ObservedActivation>,
        frames: &[ObservedFrame],
    ) {
        for mut activation in elsewhere {
            if activations.iter().any(|it| it.ip == activation.ip) {
                continue;
            }
            let base = self.walk.stack.as_ref().map(|stack| stack.base.0);
            let Some(lowest) = lowest(activations, frames).or(base) else { return };
            activation.saves.clear();
            activation.sp = lowest.saturating_sub(LEAF_ROOM) & !7;
            activations.insert(0, activation);
        }
    }

    /// Adds the activation in which the thread is, unless it is the first one already.
    fn add_leaf(&self, activations: &mut Vec<ObservedActivation>, frames: &[ObservedFrame]) {
        let first = activations.first().map(|first| (first.ip, first.sp));
        let lowest = lowest(activations, frames);
        let leaf = self.walk.target_registers();
        if let Some(registers) = leaf {
            let (ip, sp) = (registers.rip, registers.rsp());
            if first == Some((ip, sp)) {
                return;
            }
            if first.is_none_or(|(_, first)| sp.is_multiple_of(8) && sp < first) {
                let is_managed = self.replay.runtime().code.find(ip).is_some();
                let leaf =
                    if is_managed { self.managed(&registers) } else { self.native(&registers) };
                activations.insert(0, leaf);
                return;
            }
        }
        let Some(lowest) = lowest else { return };
        let name = if self.walk.relation == "self" { PROFILER } else { NATIVE };
        let sp = lowest.saturating_sub(LEAF_ROOM) & !7;
        activations.insert(0, ObservedActivation::native(name.to_owned(), 0, sp));
    }
}

/// Returns the lowest address of a stack (VA).
fn lowest(activations: &[ObservedActivation], frames: &[ObservedFrame]) -> Option<u64> {
    activations.iter().map(|it| it.sp).chain(frames.iter().map(|it| it.at)).min()
}

/// Returns the name of a method as a label.
fn method_name(name: &str) -> String {
    if name.is_empty() { NAMELESS.to_owned() } else { ObservedActivation::label(name) }
}
