//! A synthetic thread that has been set up: memory, code and threads of a process.

use super::code::{Layout, Unit, register_values};
use super::{
    CodeLocation, MANAGED_WALKER, NATIVE_WALKER, SELF, SELF_OBJECT, SyntheticActivation,
    SyntheticFrame, SyntheticThread, WALKER_OBJECT,
};
use clr_machine::{MAX_PAGES, Machine, PAGE_SIZE, Protection};
use clr_runtime::frame::layout::COOKIE;
use clr_runtime::frame::{FrameFields, FrameWriter};
use clr_runtime::profiling::SnapshotRequest;
use clr_runtime::{
    Context, FRAME_TOP, FrameIdentities, FrameKind, MethodKind, Runtime, TargetMemory, Thread,
    ThreadFields, ThreadLife,
};
use clr_unwind::{Gpr, Memory, Registers, Unreadable};
use clr_walker::profiling::{FunctionId, SnapshotFlags, ThreadId};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Start of the CONTEXTs that Frames point to (VA).
const CONTEXTS: u64 = 0x10_0001_0000;
/// Distance between two CONTEXTs in bytes.
const CONTEXT_PITCH: u64 = 0x800;
/// Distance in bytes from a CONTEXT to rsp of a Frame that leads nowhere.
const APART: u64 = 0x700;
/// First FunctionID.
const METHODS: u64 = 0x7FF8_3000_0000;
/// The address that replaces a hijacked return address (VA).
const HIJACK_TRIP: u64 = 0x7FF8_2030_0000;
/// rip of a thread without activations (VA).
const NOWHERE: u64 = 0x7FF8_2031_0000;

/// The reason why a synthetic thread cannot be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SyntheticError {
    /// The frame of an activation is too small or too large for the registers it saves, or differs
    /// from the frame of another activation of the function, or its offset is within the prologue.
    #[error(
        "activation {index} does not fit its function: check its rsp, its offset and the rsp of the next activation"
    )]
    Activation {
        /// Index of the activation, from the leaf.
        index: usize,
    },
    /// A function is named that has no activation below the Frame.
    #[error("Frame {index} names a function that has no activation below it")]
    Frame {
        /// Index of the Frame, from the top.
        index: usize,
    },
    /// The function whose return address is hijacked is not on the stack.
    #[error("the function whose return address is hijacked is not on the stack")]
    Hijacked,
    /// An address is not in memory.
    #[error("address {at:#x} is not in the memory of the process")]
    Memory {
        /// The address (VA).
        at: u64,
    },
    /// There are too many functions.
    #[error("there are too many functions")]
    Size,
}

/// A process set up by hand. [`runtime`](Self::runtime) creates any number of runtimes from it.
#[derive(Clone, Debug)]
pub struct SyntheticProcess {
    pub(super) thread: SyntheticThread,
    pub(super) layout: Layout,
    /// FunctionIDs by name.
    pub(super) methods: BTreeMap<String, FunctionId>,
    /// Registers of each activation.
    registers: Vec<Registers>,
    identities: FrameIdentities,
}

impl SyntheticThread {
    /// Sets up the process.
    ///
    /// # Errors
    /// Returns [`SyntheticError`] if the description is inconsistent.
    pub fn build(&self) -> Result<SyntheticProcess, SyntheticError> {
        let layout = Layout::new(self)?;
        if layout.units.iter().any(|unit| unit.bytes.len() > Unit::UNWIND_DATA as usize) {
            return Err(SyntheticError::Size);
        }
        let mut methods = BTreeMap::new();
        let managed = layout
            .functions
            .iter()
            .filter(|function| function.place != CodeLocation::Native && function.stub.is_none());
        for function in managed {
            let id = FunctionId(METHODS + 0x10 * methods.len() as u64);
            methods.entry(function.method_name().to_owned()).or_insert(id);
        }
        // A Frame's method need not be on the stack.
        for method in self.frames.iter().filter_map(|frame| frame.method.as_ref()) {
            let id = FunctionId(METHODS + 0x10 * methods.len() as u64);
            methods.entry(method.clone()).or_insert(id);
        }
        let values = register_values(self);
        let registers = self.activations.iter().zip(values).map(|(activation, gpr)| {
            let start = layout.function_of(activation).map_or(0, |function| function.start);
            Registers { rip: start + u64::from(activation.offset), gpr, ..Registers::default() }
        });
        let registers = registers.collect();
        let identities = FrameIdentities::of(self.generation);
        let process =
            SyntheticProcess { thread: self.clone(), layout, methods, registers, identities };
        // A write that fails now would always fail.
        process.fill(&mut Bounds::new(process.ranges())?)?;
        Ok(process)
    }
}

impl SyntheticProcess {
    /// Creates the runtime of the process.
    pub fn runtime(&self) -> Runtime<'_> {
        self.runtime_in(|memory| memory)
    }

    /// Creates the runtime of the process, with `wrap` around its memory.
    pub fn runtime_in<M: TargetMemory>(&self, wrap: impl FnOnce(Machine) -> M) -> Runtime<'_, M> {
        let thread = &self.thread;
        // Setting up has checked that both can be created.
        let mut runtime = Runtime::new(thread.generation, wrap(self.memory().unwrap_or_default()));
        runtime.code = self.code().unwrap_or_default().on(thread.generation);
        runtime.name_code(&thread.modules, &Arc::default());
        runtime.native = self.native();
        runtime.process.set(thread.process);
        runtime.threads.replace(self.threads());
        runtime
    }

    /// Returns the synthetic thread.
    pub const fn thread(&self) -> ThreadId {
        SELF_OBJECT
    }

    /// Returns a call about the synthetic thread, with contexts.
    pub fn call(&self) -> SnapshotRequest<'static> {
        SnapshotRequest {
            thread: self.thread(),
            flags: SnapshotFlags::REGISTER_CONTEXT,
            ..SnapshotRequest::default()
        }
    }

    /// Returns the address of a label `FUNCTION+0xOFFSET` (VA).
    pub fn address(&self, label: &str) -> Option<u64> {
        let (name, offset) = label.rsplit_once("+0x").unwrap_or((label, "0"));
        let mut functions = self.layout.functions.iter();
        let function = functions.find(|function| function.name == name)?;
        Some(function.start + u64::from_str_radix(offset, 16).ok()?)
    }

    /// Returns the label of an address, such as `App.Foo+0x40`, or the number.
    pub fn label(&self, address: u64) -> String {
        match self.layout.find(address) {
            Some((function, offset)) => format!("{}+{offset:#x}", function.name),
            None => format!("{address:#x}"),
        }
    }

    /// Returns the FunctionID of a method.
    pub fn function(&self, name: &str) -> Option<FunctionId> {
        self.methods.get(name).copied()
    }

    /// Returns the name of a method.
    pub fn name(&self, id: FunctionId) -> Option<&str> {
        self.methods.iter().find(|(_, other)| **other == id).map(|(name, _)| name.as_str())
    }

    /// Returns the registers of an activation, given its index from the leaf.
    pub fn registers(&self, activation: usize) -> Option<Registers> {
        self.registers.get(activation).copied()
    }

    /// Returns a seed at the first activation of a function, as a profiler gets by unwinding.
    pub fn seed(&self, function: &str) -> Option<Context> {
        let activation = self
            .thread
            .activations
            .iter()
            .position(|activation| activation.function == function)?;
        Some(Context { registers: self.registers(activation)?, flags: 0x10_000B })
    }

    fn leaf(&self) -> Registers {
        let nowhere = Registers { rip: NOWHERE, ..Registers::default() };
        let mut registers = self.registers.first().copied().unwrap_or(nowhere);
        if self.registers.is_empty() {
            registers.set(Gpr::Rsp, self.thread.stack.1.saturating_sub(0x100));
        }
        registers
    }

    fn threads(&self) -> Vec<Thread> {
        let thread = &self.thread;
        let flags = thread.generation.own_context_flags();
        let target = Thread {
            os: SELF,
            object: Some(SELF_OBJECT),
            life: thread.life,
            current: Context { registers: self.leaf(), flags },
            safety: thread.safety,
            handle: 0x104,
            is_gc_special: thread.gc_special,
            resists_suspension: thread.resists_suspension,
            leaves_cooperative_mode: thread.leaves_cooperative_mode,
            exceptions: thread.exceptions.clone(),
            ..Thread::default()
        };
        let native = Thread { os: NATIVE_WALKER, handle: 0x108, ..Thread::default() };
        let managed = Thread {
            os: MANAGED_WALKER,
            object: Some(WALKER_OBJECT),
            handle: 0x10C,
            ..Thread::default()
        };
        vec![target, native, managed]
    }

    /// Returns the memory ranges of the process: the used part of the stack, the Thread objects,
    /// CONTEXTs and code. Each has the first address of a page (VA) and a size in bytes.
    fn ranges(&self) -> Vec<(u64, u64)> {
        let thread = &self.thread;
        let (limit, base) = thread.stack;
        let activations = thread.activations.iter().map(|activation| activation.sp);
        let lowest =
            activations.chain(thread.frames.iter().map(|frame| frame.at)).min().unwrap_or(base);
        let lowest = lowest.saturating_sub(PAGE_SIZE).max(limit).min(base) / PAGE_SIZE * PAGE_SIZE;
        let mut ranges = vec![
            (lowest, base.saturating_sub(lowest)),
            (SELF_OBJECT.0, PAGE_SIZE),
            (CONTEXTS, CONTEXT_PITCH * thread.frames.len() as u64),
        ];
        ranges.extend(&thread.blocks);
        ranges.extend(self.layout.units.iter().map(|unit| (unit.base, unit.bytes.len() as u64)));
        ranges.retain(|(_, size)| *size > 0);
        ranges
    }

    fn memory(&self) -> Result<Machine, SyntheticError> {
        let mut machine = Machine::new();
        for (start, size) in self.ranges() {
            let mapped = machine.map(start, size.div_ceil(PAGE_SIZE), Protection::READ_WRITE);
            mapped.map_err(|_| SyntheticError::Memory { at: start })?;
        }
        for unit in self.layout.units.iter().filter(|unit| !unit.bytes.is_empty()) {
            let written = machine.write(unit.base, &unit.bytes);
            written.map_err(|_| SyntheticError::Memory { at: unit.base })?;
        }
        self.fill(&mut machine)?;
        Ok(machine)
    }

    /// Writes the stack and the Thread objects.
    fn fill<M: TargetMemory>(&self, memory: &mut M) -> Result<(), SyntheticError> {
        let thread = &self.thread;
        let unwritable = |error: Unreadable| SyntheticError::Memory { at: error.address };
        for (index, activation) in thread.activations.iter().enumerate() {
            let Some(caller) = self.registers(index + 1) else { break };
            let slot = caller.rsp().wrapping_sub(8);
            memory.write_u64(slot, caller.rip).map_err(unwritable)?;
            for (register, n) in activation.saves.iter().zip(1..) {
                let saved = memory.write_u64(slot.wrapping_sub(8 * n), caller.get(*register));
                saved.map_err(unwritable)?;
            }
        }
        self.write_frames(memory)?;
        for at in self.cookies() {
            let cookie = thread.process.gs_cookie.unwrap_or_default();
            memory.write_u64(at, cookie).map_err(unwritable)?;
        }
        let fields = ThreadFields {
            cooperative: thread.cooperative,
            gc_special: thread.gc_special,
            top_frame: thread.frames.first().map_or(FRAME_TOP, |frame| frame.at),
            hijack_locked: thread.hijack_locked,
            forbid_suspend: thread.forbid_suspend,
            external_count: u32::from(thread.life == ThreadLife::Running),
            stack: thread.stack,
            hijacked: self.hijack(memory)?,
            debugger_context: thread.debugger_context,
        };
        fields.write(memory, SELF_OBJECT).map_err(unwritable)?;
        ThreadFields::default().write(memory, WALKER_OBJECT).map_err(unwritable)?;
        for (at, value) in &thread.overwritten {
            memory.write_u64(*at, *value).map_err(unwritable)?;
        }
        Ok(())
    }

    /// Returns the addresses of the GS cookies (VA), if the process has a cookie: in frames that
    /// have one, and below Frames.
    fn cookies(&self) -> impl Iterator<Item = u64> {
        let thread = &self.thread;
        let callers = self.registers.iter().skip(1).map(Registers::rsp);
        let activations =
            thread.activations.iter().zip(callers).filter_map(|(activation, caller_sp)| {
                activation.gs_cookie.map(|below| caller_sp.wrapping_sub(u64::from(below)))
            });
        let below_frames = thread.generation.frames_have_cookies();
        let frames = thread.frames.iter().filter(move |_| below_frames);
        let frames = frames.map(|frame| frame.at.wrapping_add(COOKIE));
        activations.chain(frames).filter(|_| thread.process.gs_cookie.is_some())
    }

    /// Overwrites the hijacked return address. Returns its slot and the old content.
    fn hijack<M: TargetMemory>(
        &self,
        memory: &mut M,
    ) -> Result<Option<(u64, u64)>, SyntheticError> {
        let Some(function) = &self.thread.hijacked else { return Ok(None) };
        let activation =
            self.thread.activations.iter().position(|activation| activation.function == *function);
        let caller = activation
            .and_then(|activation| self.registers(activation + 1))
            .ok_or(SyntheticError::Hijacked)?;
        let slot = caller.rsp().wrapping_sub(8);
        let written = memory.write_u64(slot, HIJACK_TRIP);
        written.map_err(|_| SyntheticError::Memory { at: slot })?;
        Ok(Some((slot, caller.rip)))
    }

    /// Returns the activation of a function that a Frame leads to: the first that ends above the
    /// Frame.
    fn activation_below(&self, frame: &SyntheticFrame, function: &str) -> Option<usize> {
        let ends = self
            .thread
            .activations
            .iter()
            .skip(1)
            .map(|activation| activation.sp)
            .chain([u64::MAX]);
        let mut activations = self.thread.activations.iter().zip(ends);
        activations.position(|(activation, end)| activation.function == function && frame.at < end)
    }

    /// Returns the method of a Frame, or the mark of a call of exception handling; 0 without.
    fn word(&self, frame: &SyntheticFrame) -> u64 {
        let method = frame.method.as_ref().and_then(|name| self.function(name));
        let handles = |name: &String| {
            self.thread.activations.iter().any(|activation| {
                activation.function == *name && activation.kind == MethodKind::ExceptionHandling
            })
        };
        let is_helper =
            frame.kind == FrameKind::InlinedCall && frame.leads_to.as_ref().is_some_and(handles);
        let helper = || self.thread.generation.exception_helper().datum().filter(|_| is_helper);
        method.map(|id| id.0).or_else(helper).unwrap_or_default()
    }

    fn write_frames<M: TargetMemory>(&self, memory: &mut M) -> Result<(), SyntheticError> {
        let thread = &self.thread;
        let nexts = thread.frames.iter().skip(1).map(|frame| frame.at).chain([FRAME_TOP]);
        for (index, (frame, next)) in thread.frames.iter().zip(nexts).enumerate() {
            let error = SyntheticError::Frame { index };
            let activation = |name: &String| self.activation_below(frame, name).ok_or(error);
            let leads_to = frame.leads_to.as_ref().map(activation).transpose()?;
            let captured = frame.captured_in.as_ref();
            let captured_activation = captured.map(|(name, _)| activation(name)).transpose()?;
            let from = captured_activation.or(leads_to);
            let mut registers =
                from.and_then(|activation| self.registers(activation)).unwrap_or_default();
            if captured.is_some() {
                // The captured rsp points at the helper's return address.
                let slot = registers.rsp().wrapping_sub(8);
                registers.set(Gpr::Rsp, slot);
            }
            let context_at = CONTEXTS + CONTEXT_PITCH * index as u64;
            if from.is_none() {
                // What the Frame points to is apart from the stack.
                registers.set(Gpr::Rsp, context_at + APART);
            }
            let fields = FrameFields {
                method: self.word(frame),
                registers,
                context_flags: frame.context_flags,
                context_at,
                lazy: captured.map(|(_, fields)| *fields),
            };
            let mut writer = FrameWriter {
                generation: thread.generation,
                identities: &self.identities,
                memory: &mut *memory,
            };
            let written = writer.write(frame.at, next, frame.kind, &fields);
            written.map_err(|error| SyntheticError::Memory { at: error.address })?;
        }
        Ok(())
    }

    /// Returns the activation with this ip and rsp, if there is one.
    pub fn activation_of(&self, ip: u64, rsp: u64) -> Option<&SyntheticActivation> {
        let index = self
            .registers
            .iter()
            .position(|activation| activation.rip == ip && activation.rsp() == rsp)?;
        self.thread.activations.get(index)
    }

    /// Returns the description that was set up.
    pub const fn synthetic_thread(&self) -> &SyntheticThread {
        &self.thread
    }
}

/// The bounds of memory without its content: a write succeeds if it would in the machine.
struct Bounds(Vec<(u64, u64)>);

impl Bounds {
    /// Creates ranges that can be mapped together: few enough, and without a common page.
    fn new(ranges: Vec<(u64, u64)>) -> Result<Self, SyntheticError> {
        let mut free: u64 = MAX_PAGES;
        for (n, (start, size)) in ranges.iter().enumerate() {
            let error = SyntheticError::Memory { at: *start };
            let pages = size.div_ceil(PAGE_SIZE);
            free = free.checked_sub(pages).ok_or(error)?;
            let end = start.checked_add(PAGE_SIZE * pages).ok_or(error)?;
            let others = ranges.get(..n).unwrap_or_default();
            if others.iter().any(|(other, size)| *start < other + size && *other < end) {
                return Err(error);
            }
        }
        Ok(Self(ranges))
    }
}

impl Memory for Bounds {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        Err(Unreadable { address, len: buffer.len() as u32 })
    }
}

impl TargetMemory for Bounds {
    fn write_u64(&mut self, address: u64, _: u64) -> Result<(), Unreadable> {
        // Only whole pages are mapped.
        let fits = self.0.iter().any(|(start, size)| {
            let size = size.next_multiple_of(PAGE_SIZE);
            address >= *start && address - start <= size - 8
        });
        if fits { Ok(()) } else { Err(Unreadable { address, len: 8 }) }
    }
}
