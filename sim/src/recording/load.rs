//! Recorded code and threads as the objects that walks are made over.

use super::{CodeLine, Hex, Recording, SeedLine, WalkLine};
use crate::profiling::{Call, Context};
use crate::runtime::frame::Completed;
use crate::runtime::{
    Code, CodeManager, ExceptionState, Existence, ExplicitFrame, FrameKind, Funclet, FunctionId,
    MethodKind, Process, Thread,
};
use clr_walker::code_map::{CodeMap, CodeMapError, CodeRegion, RegionKind};
use clr_walker::image::{FunctionTable, ImageError, Section, Sections};
use clr_walker::registers::{Gpr, Registers};
use thiserror::Error;

/// Why recorded code cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// Two pieces of code share an address, or one is empty.
    #[error(transparent)]
    Map(#[from] CodeMapError),
    /// A range of code is too large.
    #[error(transparent)]
    Sections(#[from] ImageError),
}

/// Where unwind data is put: behind any code (RVA).
const UNWIND_DATA: u32 = 0x8000_0000;

/// Bytes that stand for a handler's RVA and data, which recordings leave out.
const HANDLER: [u8; 8] = [0; 8];

/// ContextFlags of the context that the runtime takes of a suspended thread (contract §3.7).
const COOKED_FLAGS: u32 = 0xC010_000B;

/// ContextFlags of a redirected thread's CONTEXT that lies in the heap, as observed.
const REDIRECTED_FLAGS: u32 = 0xC010_005B;

/// Code with its tables as bytes, one for each range of addresses.
#[derive(Clone, Debug)]
pub struct RecordedCode {
    ranges: Vec<RangeBytes>,
    codes: Vec<Code>,
}

#[derive(Clone, Debug)]
struct RangeBytes {
    base: u64,
    size: u32,
    /// Runs of machine code that are known, by RVA.
    code: Vec<(u32, Vec<u8>)>,
    unwind_data: Vec<u8>,
    functions: Vec<u8>,
}

impl RecordedCode {
    /// The code of a recording.
    #[must_use]
    pub fn new(recording: &Recording) -> Self {
        let mut known = recording.bytes.clone();
        known.sort();
        let mut loaded = Self { ranges: Vec::new(), codes: Vec::new() };
        for line in &recording.codes {
            for &(Hex(begin), size) in &line.ranges {
                loaded.codes.push(code(recording, line, begin, size));
                loaded.ranges.push(RangeBytes::new(line, begin, size, &known));
            }
        }
        loaded
    }

    /// What is managed code, and how it is unwound.
    ///
    /// # Errors
    /// [`LoadError`] if the code does not fit together.
    pub fn manager(&self) -> Result<CodeManager<'_>, LoadError> {
        let mut map = CodeMap::new();
        for range in &self.ranges {
            map.insert(range.region()?)?;
        }
        Ok(CodeManager::new(self.codes.clone(), map)?)
    }
}

fn code(recording: &Recording, line: &CodeLine, begin: u64, size: u64) -> Code {
    let method = match line.function.and_then(|id| recording.function(id)) {
        None => MethodKind::Dynamic,
        Some(function) if function.dynamic && function.name.contains("IL_STUB") => {
            MethodKind::IlStub
        }
        Some(function) if function.dynamic => MethodKind::Dynamic,
        Some(function) if function.exception_handling => {
            MethodKind::ExceptionHandling(FunctionId(function.id))
        }
        Some(function) => MethodKind::Ordinary(FunctionId(function.id)),
    };
    let at = |rva: u32| line.unwind_base.0.wrapping_add(u64::from(rva));
    let funclets = line.entries.iter().filter_map(|entry| {
        let kind = match entry.funclet.as_deref()? {
            "filter" => Funclet::Filter,
            _ => Funclet::Handler,
        };
        Some((at(entry.begin), at(entry.end), kind))
    });
    Code { begin, end: begin.saturating_add(size), method, funclets: funclets.collect() }
}

impl RangeBytes {
    fn new(line: &CodeLine, base: u64, size: u64, known: &[(u64, Vec<u8>)]) -> Self {
        let size = u32::try_from(size).unwrap_or(u32::MAX).min(UNWIND_DATA);
        let end = base.saturating_add(u64::from(size));
        // RVAs in the recording count from another base.
        let rva = |recorded: u32| {
            let address = line.unwind_base.0.wrapping_add(u64::from(recorded));
            u32::try_from(address.checked_sub(base)?).ok().filter(|rva| *rva <= size)
        };
        let mut entries: Vec<_> = line.entries.iter().collect();
        entries.sort_by_key(|entry| entry.begin);
        let (mut unwind_data, mut functions) = (Vec::new(), Vec::new());
        for entry in entries {
            let (Some(begin), Some(end)) = (rva(entry.begin), rva(entry.end)) else { continue };
            let at = UNWIND_DATA + unwind_data.len() as u32;
            functions.extend([begin, end, at].into_iter().flat_map(u32::to_le_bytes));
            unwind_data.extend_from_slice(&entry.unwind_info.0);
            unwind_data.extend_from_slice(&HANDLER);
            unwind_data.resize(unwind_data.len().next_multiple_of(4), 0);
        }
        let mut code: Vec<(u32, Vec<u8>)> = Vec::new();
        let first = known.partition_point(|(at, _)| *at < base);
        for (at, bytes) in known[first..].iter().take_while(|(at, _)| *at < end) {
            let at = (at - base) as u32;
            match code.last_mut() {
                // Runs overlap where a method is walked at two places close together.
                Some((start, run)) if at <= *start + run.len() as u32 => {
                    let there = (at - *start) as usize;
                    run.extend_from_slice(bytes.get(run.len() - there..).unwrap_or_default());
                }
                _ => code.push((at, bytes.clone())),
            }
        }
        Self { base, size, code, unwind_data, functions }
    }

    fn region(&self) -> Result<CodeRegion<'_>, LoadError> {
        let code =
            self.code.iter().map(|(rva, bytes)| Section { rva: *rva, bytes, executable: true });
        let unwind_data = Section { rva: UNWIND_DATA, bytes: &self.unwind_data, executable: false };
        let sections = Sections::new(code.chain([unwind_data]).collect())?;
        let functions = FunctionTable::new(&self.functions);
        let kind = RegionKind::CodeHeap;
        Ok(CodeRegion::from_sections(self.base, self.size, kind, sections, functions)?)
    }
}

/// rax to r15, then rip.
pub(super) fn registers(values: &[Hex; 17]) -> Registers {
    let mut registers = Registers { rip: values[16].0, ..Registers::default() };
    for register in Gpr::ALL {
        registers.set(register, values[usize::from(register.number())].0);
    }
    registers
}

impl SeedLine {
    fn context(&self) -> Context {
        Context { registers: registers(&self.registers), flags: self.context_flags.0 as u32 }
    }
}

impl WalkLine {
    /// The state of the process.
    #[must_use]
    pub fn process(&self) -> Process {
        Process {
            started: self.state.ee_started.unwrap_or(true),
            snapshot_enabled: self.state.snapshot_enabled.unwrap_or(true),
            suspending: self.state.runtime_suspending,
            suspended_by_profiler: self.state.runtime_suspended_by_profiler,
        }
    }

    /// The call.
    #[must_use]
    pub fn call(&self) -> Call {
        Call {
            own_thread: self.relation == "self",
            caller_is_managed: self.walker == "managed",
            flags: self.call.flags.0 as u32,
            seed: self.call.seed.as_ref().map(SeedLine::context),
            current: self
                .leaf
                .as_ref()
                .map(|leaf| Context { registers: registers(leaf), flags: COOKED_FLAGS }),
            null_callback: self.call.callback.as_deref() == Some("null"),
        }
    }

    /// The target.
    #[must_use]
    pub fn thread(&self) -> Thread {
        /// A stack's size where only its base is known.
        const DEFAULT_STACK: u64 = 8 << 20;
        let exception = &self.state.exception;
        let stack = self.stack.as_ref().map_or((0, u64::MAX), |stack| {
            let limit = stack.limit.map_or(stack.base.0.wrapping_sub(DEFAULT_STACK), |at| at.0);
            (limit, stack.base.0)
        });
        Thread {
            existence: match self.state.target.as_deref() {
                Some("none") => Existence::None,
                Some(_) => Existence::Dead,
                None => Existence::Live,
            },
            cooperative: self.state.mode.as_deref() == Some("coop"),
            hijack_locked: self.state.hijack_lock_held,
            forbids_suspension: self.state.forbid_suspend,
            in_system_call: self.state.in_system_call,
            frames: self.frames.iter().map(frame).collect(),
            stack,
            exception: ExceptionState {
                second_pass_native: exception.second_pass_native,
                unwound: exception
                    .unwound
                    .iter()
                    .map(|(lower, upper)| (lower.0, upper.0))
                    .collect(),
                funclets: exception
                    .funclets
                    .iter()
                    .map(|funclet| (funclet.caller_sp.0, funclet.parent_caller_sp.map(|sp| sp.0)))
                    .collect(),
            },
        }
    }
}

fn frame(line: &super::FrameLine) -> ExplicitFrame {
    let kind = match line.kind.as_str() {
        "InlinedCallFrame" => FrameKind::InlinedCall,
        "PrestubMethodFrame"
        | "ExternalMethodFrame"
        | "StubDispatchFrame"
        | "DynamicHelperFrame"
        | "CallCountingHelperFrame"
        | "PInvokeCalliFrame"
        | "ComPlusMethodFrame" => FrameKind::FramedMethod,
        "StubHelperFrame" | "SecureDelegateFrame" | "MulticastFrame" => FrameKind::Transition,
        "HijackFrame" => FrameKind::Hijack,
        "RedirectedThreadFrame" | "ResumableFrame" => FrameKind::RedirectedThread,
        "FaultingExceptionFrame" => FrameKind::FaultingException,
        "SoftwareExceptionFrame" => FrameKind::SoftwareException,
        kind if kind.starts_with("HelperMethodFrame") => FrameKind::HelperMethod,
        _ => FrameKind::Mark,
    };
    let completed = line.returns.as_ref().map(|returns| Completed {
        rip: returns.get("rip").map_or(0, |rip| rip.0),
        registers: Gpr::ALL
            .into_iter()
            .filter_map(|register| Some((register, returns.get(register.name())?.0)))
            .collect(),
        context_flags: (kind == FrameKind::RedirectedThread).then_some(REDIRECTED_FLAGS),
    });
    ExplicitFrame { at: line.at.0, kind, completed }
}
