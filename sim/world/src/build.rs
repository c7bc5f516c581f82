//! Builds worlds from programs: code for the machine, the runtime and the walker.

use super::arguments::Made;
use super::arrangement::Awaited;
use super::calls::{calls, loaded_by};
use super::step::Step;
use super::suspension::StopBy;
use super::thread::Executed;
use super::{ThreadStart, World};
use crate::stubs::{Expanded, Hooks, Identity, Shared, Stub, expand, method_id};
use clr_codegen::execution::{BASE, ProgramLoadError, STACK_TOP, initial_registers, load};
use clr_codegen::shadow_stack::ShadowStack;
use clr_codegen::{
    CodeKind, FuncletKind, FunctionIndex, LinkError, LinkedProgram, PlacedPart, Program,
    ReadBackError, Service, THREAD_SLOT, Unit, service_address,
};
use clr_machine::{Cpu, Fault, Machine, MapError, PAGE_SIZE, Protection};
use clr_runtime::TargetMemory as _;
use clr_runtime::code_manager::{
    Block, CodeVersion, Funclet, FuncletRange, Method, RangeSection, SectionError,
};
use clr_runtime::generation::Generation;
use clr_runtime::metadata::{MethodCalls, ModuleNames};
use clr_runtime::{
    CodeManager, FRAME_TOP, MethodKind, NativeCode, NativeFunction, OsThreadId, Runtime, Thread,
    ThreadFields,
};
use clr_unwind::{CodeMap, CodeMapError, Gpr, Unreadable};
use clr_walker::profiling::{EventMask, FunctionId as MethodId, ThreadId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use thiserror::Error;

/// All events that a world has: the event mask of a world's profiler unless another one is set.
pub const ALL_EVENTS: EventMask = EventMask(0x1187_FFFF);

/// Distance between stacks in bytes.
const STACK_PITCH: u64 = 0x100_0000;
/// Size of a stack in bytes.
const STACK_SIZE: u64 = 0x4_0000;
/// Bytes of stack above the return address of a thread's first function.
const ABOVE: u64 = 0x100;
/// The trap to which threads' first functions return.
const ENDED: u32 = 0x100;
/// Start of the Thread objects and other memory of threads (VA).
pub(super) const THREADS: u64 = 0x10_0000_0000;
/// Distance between the memory of two threads in bytes.
pub(super) const THREAD_PITCH: u64 = 0x4000;
/// Offset of the memory that gs or fs points to, in a thread's own memory.
const OWN_MEMORY: u64 = 0x800;

/// The reason why a program cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The program cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The program cannot be loaded.
    #[error(transparent)]
    Load(#[from] ProgramLoadError),
    /// The code manager rejects the code.
    #[error(transparent)]
    Section(#[from] SectionError),
    /// Two ranges of code share an address.
    #[error(transparent)]
    Map(#[from] CodeMapError),
}

impl From<MapError> for BuildError {
    fn from(error: MapError) -> Self {
        Self::Load(error.into())
    }
}

impl From<Fault> for BuildError {
    fn from(error: Fault) -> Self {
        Self::Load(error.into())
    }
}

impl From<ReadBackError> for BuildError {
    fn from(error: ReadBackError) -> Self {
        Self::Load(error.into())
    }
}

/// A program linked with the runtime's code, from which worlds are created.
#[derive(Clone, Debug)]
pub struct Build {
    generation: Generation,
    expanded: Expanded,
    linked: LinkedProgram,
    /// Start and end of each function (VA); the end is exclusive.
    ranges: Vec<(u64, u64)>,
    /// Modules and types with names of their own.
    modules: Vec<ModuleNames>,
    /// Which methods call which, for their IL.
    calls: Arc<MethodCalls>,
    /// The methods that the JIT inlines into others.
    inlines: BTreeMap<FunctionIndex, Vec<FunctionIndex>>,
    /// The method whose class a thread loads before it begins with the method.
    first: Option<FunctionIndex>,
    /// Methods whose assemblies the program loads.
    loads: BTreeSet<FunctionIndex>,
}

impl Build {
    /// Returns the generation that the program was built for.
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Builds a program for a generation. `methods` has the kinds of the methods that are not
    /// ordinary.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the program cannot be linked.
    pub fn new(
        program: &Program,
        methods: &BTreeMap<FunctionIndex, MethodKind>,
        generation: Generation,
    ) -> Result<Self, BuildError> {
        Self::with_hooks(program, methods, generation, Hooks::None)
    }

    /// Builds a program with profiler hooks in its methods.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the program cannot be linked.
    pub fn with_hooks(
        program: &Program,
        methods: &BTreeMap<FunctionIndex, MethodKind>,
        generation: Generation,
        hooks: Hooks,
    ) -> Result<Self, BuildError> {
        let expanded = expand(program, methods, generation, hooks);
        let linked = expanded.program.link()?;
        let mut ranges: Vec<_> = linked.entries.iter().map(|entry| (*entry, *entry)).collect();
        for placed in &linked.instructions {
            let range = placed.function.and_then(|id| ranges.get_mut(id.index()));
            if let Some((_, end)) = range {
                *end = (*end).max(placed.address + u64::from(placed.len));
            }
        }
        let (modules, inlines, first) = (Vec::new(), BTreeMap::new(), None);
        let (calls, loads) = (Arc::new(calls(program)), loaded_by(program));
        Ok(Self { generation, expanded, linked, ranges, modules, calls, inlines, first, loads })
    }

    /// Gives the program's types and methods these names.
    #[must_use]
    pub fn with_modules(mut self, modules: &[ModuleNames]) -> Self {
        modules.clone_into(&mut self.modules);
        self
    }

    /// Lets the JIT inline methods of the program into others, as it compiles them.
    #[must_use]
    pub fn inlining(mut self, inlines: &BTreeMap<FunctionIndex, Vec<FunctionIndex>>) -> Self {
        inlines.clone_into(&mut self.inlines);
        self
    }

    /// Lets the thread that begins with a method load its class before that, as it is for the entry point: it is compiled then.
    #[must_use]
    pub const fn beginning_with(mut self, function: FunctionIndex) -> Self {
        self.first = Some(function);
        self
    }

    /// Returns the program with the runtime's code.
    pub const fn expanded(&self) -> &Expanded {
        &self.expanded
    }

    /// Returns the linked code.
    pub const fn linked(&self) -> &LinkedProgram {
        &self.linked
    }

    /// Creates a world with these threads, each before its first instruction.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the code cannot be loaded or is rejected by the code manager.
    pub fn world(&self, threads: &[ThreadStart]) -> Result<World<'_>, BuildError> {
        let mut runtime = Runtime::new(self.generation, self.machine()?);
        runtime.code = self.code()?.on(self.generation);
        runtime.name_code(&self.modules, &self.calls);
        runtime.native = self.native()?;
        runtime.change_process(|process| process.event_mask = ALL_EVENTS);
        let mut executed = Vec::new();
        for (index, start) in threads.iter().enumerate() {
            executed.push(self.thread(&mut runtime, index as u64, *start)?);
        }
        if let Some(first) = executed.first() {
            *runtime.memory.get_mut().cpu_mut() = first.cpu;
        }
        let mut world = World {
            expanded: &self.expanded,
            linked: &self.linked,
            runtime: Rc::new(runtime),
            threads: executed,
            current: 0,
            stop_by: StopBy::default(),
            collections: 0,
            gcs_wanted: 0,
            gcs_made: 0,
            made: Made::default(),
            trap: false,
            process_end: None,
            reported: Vec::new(),
            inlines: BTreeMap::new(),
            late: BTreeSet::new(),
        };
        world.begin_with_class_of(self.first);
        world.inline(&self.inlines);
        world.load_late(self.loads.iter().chain(self.inlines.values().flatten()));
        Ok(world)
    }

    fn machine(&self) -> Result<Machine, BuildError> {
        let mut machine = Machine::new();
        for unit in &self.linked.units {
            load(&mut machine, unit)?;
        }
        machine.add_trap(BASE, ENDED);
        for service in Service::ALL {
            machine.add_trap(service_address(service.number()), service.number().into());
        }
        let data = crate::stubs::TRAP_RETURNING_THREADS;
        machine.map(data, 1, Protection::READ_WRITE)?;
        Ok(machine)
    }

    /// Sets up a thread's stack, its Thread object and its registers.
    fn thread(
        &self,
        runtime: &mut Runtime<'_>,
        index: u64,
        start: ThreadStart,
    ) -> Result<Executed, BuildError> {
        let machine = runtime.memory.get_mut();
        let top = STACK_TOP - STACK_PITCH * index;
        machine.map(top - STACK_SIZE, STACK_SIZE / PAGE_SIZE, Protection::READ_WRITE)?;
        let own = THREADS + THREAD_PITCH * index;
        machine.map(own, THREAD_PITCH / PAGE_SIZE, Protection::READ_WRITE)?;
        let serves_gc = start == ThreadStart::ServerGc;
        let is_finalizer = start == ThreadStart::Finalizer;
        let serves_tiers = start == ThreadStart::Tiering;
        let of_pool = matches!(start, ThreadStart::OfPool(_));
        let by_program = matches!(start, ThreadStart::ByProgram(_)) || of_pool;
        let foreground = matches!(start, ThreadStart::Managed(_) | ThreadStart::ByProgram(_));
        let mut pending = VecDeque::new();
        pending.extend(by_program.then_some(Step::AwaitProgram(Awaited::Start)));
        let (start, entry, object) = match start {
            ThreadStart::Managed(start)
            | ThreadStart::ByProgram(start)
            | ThreadStart::OfPool(start) => {
                let is_entry_point = self.expanded.entry_point == Some(start);
                let root = if is_entry_point { Shared::RunMain } else { Shared::KickOffThread };
                let root = self.expanded.shared.get(&root).copied();
                (start, root, Some(ThreadId(own)))
            }
            ThreadStart::Native(start) => {
                let placed = self.expanded.placed.get(start.index()).copied();
                (start, placed, None)
            }
            ThreadStart::Finalizer => {
                let root = self.expanded.shared.get(&Shared::FinalizerThread).copied();
                if root.is_none() {
                    // A program without finalizers has no code for it: it only removes threads.
                    pending.extend([Step::AwaitProgram(Awaited::Finalizable), Step::TakeFinalizer]);
                }
                (FunctionIndex::default(), root, Some(ThreadId(own)))
            }
            ThreadStart::Tiering => {
                let root = self.expanded.shared.get(&Shared::TieringThread).copied();
                (FunctionIndex::default(), root, Some(ThreadId(own)))
            }
            ThreadStart::ServerGc => {
                let root = self.expanded.shared.get(&Shared::GcThread).copied();
                (FunctionIndex::default(), root, None)
            }
        };
        let own_memory = own + OWN_MEMORY;
        let stack = (top - STACK_SIZE, top);
        if let Some(object) = object {
            write_thread(machine, object, stack).map_err(|_| ProgramLoadError::Start(start))?;
        }
        let mut registers = initial_registers(index);
        registers.set(Gpr::Rsp, top - ABOVE);
        registers.rip = BASE;
        let mut shadow_stack = ShadowStack::new(self.expanded.program.convention);
        shadow_stack.call(registers);
        let rsp = registers.rsp() - 8;
        machine.write(rsp, &BASE.to_le_bytes())?;
        registers.set(Gpr::Rsp, rsp);
        let entry = entry.and_then(|entry| self.linked.entries.get(entry.index()));
        registers.rip = entry.copied().unwrap_or(BASE);
        let mut cpu = Cpu::default();
        cpu.set_registers(&registers);
        cpu.set_gs_base(own_memory);
        cpu.set_fs_base(own_memory);
        let os = OsThreadId(index as u32 + 1);
        let thread = Thread { os, object, handle: 0x100 + 4 * index, ..Thread::default() };
        runtime.threads.borrow_mut().push(thread);
        Ok(Executed {
            os,
            start,
            cpu,
            is_synced: false,
            shadow_stack,
            pending,
            in_callback: None,
            about: None,
            served: None,
            induced: false,
            collection: None,
            object: 0,
            handle: 0,
            carried: None,
            thrown: Default::default(),
            own,
            stack,
            lowest: rsp,
            interrupted: None,
            signalled: None,
            hijack: None,
            was_cooperative: false,
            ended: false,
            dispatches: Vec::new(),
            fault: registers,
            unhandled: false,
            serves_gc,
            by_program,
            of_pool,
            is_finalizer,
            serves_tiers,
            foreground,
        })
    }

    fn unit(&self, kind: CodeKind) -> Option<&Unit> {
        self.linked.units.iter().find(|unit| unit.kind == kind)
    }

    /// Returns start and end of a function (VA); the end is exclusive.
    fn range(&self, function: FunctionIndex) -> (u64, u64) {
        self.ranges.get(function.index()).copied().unwrap_or_default()
    }

    /// Returns the ranges of a function's funclets, for the code manager.
    fn funclets(&self, function: FunctionIndex) -> Vec<FuncletRange> {
        let parts = self.linked.parts.iter().filter(|part| part.function == function);
        let range = |part: &PlacedPart| {
            let funclet = match part.funclet? {
                FuncletKind::Handler => Funclet::Handler,
                FuncletKind::Filter => Funclet::Filter,
            };
            Some(FuncletRange { start: part.begin, end: part.end, funclet })
        };
        parts.filter_map(range).collect()
    }

    /// Returns the code manager with all managed code.
    fn code(&self) -> Result<CodeManager<'_>, BuildError> {
        let mut manager = CodeManager::new();
        let mut blocks = [Vec::new(), Vec::new()];
        let functions = self.expanded.program.functions.iter().zip(&self.expanded.identities);
        for ((function, identity), index) in functions.zip(0..) {
            let id = FunctionIndex(index);
            let (start, end) = self.range(id);
            let block = match identity {
                Identity::Native => continue,
                Identity::Stub(kind) => Block::Stub(*kind),
                Identity::Method(kind) => {
                    let method = manager.add_method(Method {
                        id: MethodId(method_id(id)),
                        name: function.name.clone(),
                        kind: *kind,
                        ..Method::default()
                    });
                    let (size, funclets) = (end - start, self.funclets(id));
                    let code =
                        CodeVersion { method, start, size, funclets, ..CodeVersion::default() };
                    Block::Code(manager.add_code(code))
                }
            };
            let kind = usize::from(function.kind != CodeKind::Jit);
            if let Some(blocks) = blocks.get_mut(kind) {
                blocks.push((start, block));
            }
        }
        self.add_native_methods(&mut manager);
        let [heap, image] = blocks;
        if let Some(unit) = self.unit(CodeKind::Jit) {
            let high = unit.base + unit.bytes.len() as u64;
            manager
                .add_section(RangeSection::code_heap(unit.base, high, &heap)?, unit.region()?)?;
        }
        if let Some(unit) = self.unit(CodeKind::ReadyToRun) {
            let region = unit.region()?;
            let high = unit.base + u64::from(region.size());
            let codes: Vec<_> = image
                .iter()
                .filter_map(|(start, block)| match block {
                    Block::Code(code) => Some((*start, *code)),
                    Block::Stub(_) => None,
                })
                .collect();
            let section = RangeSection::ready_to_run(unit.base, high, &codes)?;
            manager.add_section(section, region)?;
        }
        Ok(manager)
    }

    /// Adds the methods that stand for functions called by P/Invoke or COM: they have a FunctionID and no code.
    fn add_native_methods(&self, manager: &mut CodeManager<'_>) {
        let mut targets: Vec<_> = self
            .expanded
            .stubs
            .keys()
            .filter_map(|(target, stub)| {
                let is_called = matches!(stub, Stub::PInvoke | Stub::PInvokeMethod | Stub::ComCall);
                is_called.then(|| self.expanded.placed.get(target.index()).copied()).flatten()
            })
            .collect();
        targets.dedup();
        for id in targets {
            let function = self.expanded.program.functions.get(id.index());
            let is_native = self.expanded.identities.get(id.index()) == Some(&Identity::Native);
            if let Some(function) = function.filter(|_| is_native) {
                manager.add_method(Method {
                    id: MethodId(method_id(id)),
                    name: function.name.clone(),
                    ..Method::default()
                });
            }
        }
    }

    fn native(&self) -> Result<NativeCode<'_>, BuildError> {
        let mut map = CodeMap::new();
        if let Some(unit) = self.unit(CodeKind::Native) {
            map.insert(unit.region()?)?;
        }
        let mut native = NativeCode::new(map);
        let functions = self.expanded.program.functions.iter().zip(&self.expanded.identities);
        for ((function, identity), index) in functions.zip(0..) {
            if *identity == Identity::Native {
                let (start, end) = self.range(FunctionIndex(index));
                let name = function.name.clone();
                native.add_function(NativeFunction { start, end, name, module: String::new() });
            }
        }
        for (_, id) in self.expanded.shared.iter().filter(|(shared, _)| shared.is_fcall()) {
            native.add_fcall(self.range(*id).0, method_id(*id));
        }
        Ok(native)
    }
}

/// Writes a Thread object, and a pointer to it into the thread's own memory.
pub(super) fn write_thread(
    machine: &mut Machine,
    object: ThreadId,
    stack: (u64, u64),
) -> Result<(), Unreadable> {
    let fields = ThreadFields { top_frame: FRAME_TOP, stack, ..ThreadFields::default() };
    fields.write(machine, object)?;
    machine.write_u64(object.0 + OWN_MEMORY + THREAD_SLOT as u64, object.0)
}
