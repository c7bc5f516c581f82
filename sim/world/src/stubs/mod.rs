//! The runtime's own code between managed and unmanaged functions of a program.
//!
//! [`expand`] takes a program whose functions go through the runtime
//! ([`Statement::Runtime`](clr_codegen::Statement)) and inserts the code of a generation's runtime:
//! stubs made for one target, and helpers shared by all. This code links Frames and switches modes
//! with single instructions, so that a thread can be stopped between any two of them. Everything
//! else that the runtime does, such as compiling or collecting, is a [`Service`] of the world
//! outside.

mod arranged;
mod calls;
mod collected;
mod compilation;
mod delegates;
mod details;
mod exceptions;
mod fixups;
mod frames;
mod helpers;
mod hooks;
mod inlining;
mod library;
mod names;
mod needs;
mod properties;
mod reflection;
mod shared;
mod suspension;
mod transitions;
mod unloading;

pub(crate) use arranged::first_of;
use clr_codegen::{
    CodeKind, Exit, Function, FunctionIndex, FunctionShape, Program, ReturnForm, RuntimeCall,
    Service, Statement, StubCode, UnwindData,
};
pub(crate) use frames::TRAP_RETURNING_THREADS;
pub(crate) use helpers::EMPTY_HANDLE;
pub use hooks::Hooks;
pub use inlining::with_refusable;
pub(crate) use inlining::words;
pub use names::{RuntimeFunction, Shared, Stub};

use clr_runtime::code_manager::StubKind;
use clr_runtime::generation::Generation;
use clr_runtime::{FrameKind, MethodKind};
use clr_unwind::Gpr;
use details::Detail;
use fixups::{DELAY_LOAD, PRECODE, RESOLVE};
use frames::Frames;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a function, from the runtime's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Unmanaged code.
    Native,
    /// A method's code.
    Method(MethodKind),
    /// A block of a code heap that is not a method.
    Stub(StubKind),
}

/// A program with the runtime's code in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The program, in the calling convention of the generation.
    pub program: Program,
    /// Identity of each function.
    pub identities: Vec<Identity>,
    /// New index of each function of the source.
    pub placed: Vec<FunctionIndex>,
    /// Indices of the helpers.
    pub shared: BTreeMap<Shared, FunctionIndex>,
    /// Indices of the stubs, by their targets in the source.
    pub stubs: BTreeMap<(FunctionIndex, Stub), FunctionIndex>,
    /// The function of the source that [`Shared::CallEntryPoint`] calls, if the runtime has that method.
    pub entry_point: Option<FunctionIndex>,
}

impl Expanded {
    /// Returns the index of a function of the runtime, if the program needs it.
    pub fn find(&self, function: RuntimeFunction) -> Option<FunctionIndex> {
        match function {
            RuntimeFunction::Shared(shared) => self.shared.get(&shared).copied(),
            RuntimeFunction::Stub(stub, target) => {
                let found = |stub| self.stubs.get(&(target, stub)).copied();
                found(stub).or_else(|| found(Stub::PInvokeMethod).filter(|_| stub == Stub::PInvoke))
            }
        }
    }
}

/// First FunctionID of methods; the ids are 16 apart, in the order of the functions.
const METHODS: u64 = 0x7FF8_3000_0000;

/// Returns the FunctionID of a method, given its function in the expanded program.
pub const fn method_id(function: FunctionIndex) -> u64 {
    METHODS + 0x10 * function.0 as u64
}

/// Returns the method with this FunctionID, if it is a method of the program.
pub const fn method_of(id: u64) -> Option<FunctionIndex> {
    match id.checked_sub(METHODS) {
        Some(offset) if offset % 0x10 == 0 && offset / 0x10 <= u32::MAX as u64 => {
            Some(FunctionIndex((offset / 0x10) as u32))
        }
        _ => None,
    }
}

/// Inserts the code of a generation's runtime into a program, whose methods call these hooks.
/// `methods` has the kinds of the methods of the source that are not ordinary.
pub fn expand(
    source: &Program,
    methods: &BTreeMap<FunctionIndex, MethodKind>,
    generation: Generation,
    hooks: Hooks,
) -> Expanded {
    let source = &calls::without_inlined_in_funclets(source);
    let mut wanted = BTreeSet::new();
    for function in &source.functions {
        wants(&function.body, generation, &mut wanted);
    }
    let mut plan = Plan {
        generation,
        hooks,
        throws: arranged::calls(source, &|call| call.kind.may_throw()),
        roots: arranged::roots(source, generation.thread_start_path()),
        details: Detail::said_by(source),
        frames: Frames::of(generation),
        library: methods
            .iter()
            .filter(|(_, kind)| **kind == MethodKind::ClassLibrary)
            .map(|(function, _)| *function)
            .collect(),
        entry_point: methods
            .iter()
            .find(|(_, kind)| **kind == MethodKind::EntryPoint)
            .map(|(function, _)| *function)
            .filter(|_| generation.has_managed_entry_points()),
        placed: Vec::new(),
        stubs: BTreeMap::new(),
        shared: BTreeMap::new(),
    };
    // The stub of a method that only unmanaged code calls is the method itself.
    let is_direct = |index: usize, stub: Stub| {
        let kind = methods.get(&FunctionIndex(index as u32));
        let function = source.functions.get(index);
        let can_call = function.is_some_and(|function| {
            function.kind != CodeKind::Native && function.shape.unwind != UnwindData::None
        });
        stub == Stub::ReversePInvoke
            && kind == Some(&MethodKind::UnmanagedCallersOnly)
            && !generation.has_um_thunk_stub()
            && can_call
    };
    let mut next = 0;
    let mut take = || {
        next += 1;
        FunctionIndex(next - 1)
    };
    for index in 0..source.functions.len() {
        let id = FunctionIndex(index as u32);
        let of_this = wanted.range((id, Stub::FIRST)..).take_while(|(target, _)| *target == id);
        for (target, stub) in of_this.filter(|(_, stub)| !is_direct(index, *stub)) {
            plan.stubs.insert((*target, *stub), take());
        }
        plan.placed.push(take());
        if is_direct(index, Stub::ReversePInvoke) {
            plan.stubs.insert((id, Stub::ReversePInvoke), plan.place(id));
        }
    }
    let first = take();
    let all = Shared::ALL.iter().copied().filter(|shared| shared.exists_in(generation));
    plan.place_helpers(all, first);
    // Helpers that are not called are left out.
    let mut functions = plan.functions(source, methods);
    let needed = plan.needed(functions.iter().map(|(function, _)| function));
    if needed.len() < plan.shared.len() {
        plan.place_helpers(needed, first);
        functions = plan.functions(source, methods);
    }
    plan.finish(functions)
}

fn wants(body: &[Statement], generation: Generation, wanted: &mut BTreeSet<(FunctionIndex, Stub)>) {
    for statement in body {
        if let Statement::Runtime(RuntimeCall { kind, target: Some(target) }) = statement
            && let Some(stub) = Stub::of(*kind, generation)
        {
            wanted.insert((*target, stub));
        }
        for inner in statement.bodies() {
            wants(inner, generation, wanted);
        }
    }
}

/// The method that a statement is in.
#[derive(Clone, Copy)]
struct Caller {
    /// Offset of its InlinedCallFrame in the locals, if it has one.
    frame_at: u32,
    /// True for a method of the class library.
    is_library: bool,
}

/// The placement of all functions.
struct Plan {
    generation: Generation,
    hooks: Hooks,
    /// Something in the source may throw.
    throws: bool,
    /// Helpers that worlds continue with because the source arranges something.
    roots: Vec<Shared>,
    /// The details that the source says.
    details: BTreeSet<Detail>,
    frames: Frames,
    /// The methods of the source that belong to the class library.
    library: BTreeSet<FunctionIndex>,
    entry_point: Option<FunctionIndex>,
    placed: Vec<FunctionIndex>,
    stubs: BTreeMap<(FunctionIndex, Stub), FunctionIndex>,
    shared: BTreeMap<Shared, FunctionIndex>,
}

impl Plan {
    /// Places helpers one after the other.
    fn place_helpers(&mut self, helpers: impl IntoIterator<Item = Shared>, first: FunctionIndex) {
        self.shared = helpers.into_iter().zip((first.0..).map(FunctionIndex)).collect();
        if let Some(rare_disable) = self.shared.get(&Shared::RareDisable) {
            self.frames.wait_in(*rare_disable);
        }
    }

    /// Returns the functions of the source, each after its stubs.
    fn functions(
        &self,
        source: &Program,
        methods: &BTreeMap<FunctionIndex, MethodKind>,
    ) -> Vec<(Function, Identity)> {
        let mut functions = Vec::new();
        for (function, index) in source.functions.iter().zip(0..) {
            let id = FunctionIndex(index);
            let of_this = (id, Stub::FIRST)..(FunctionIndex(index + 1), Stub::FIRST);
            let stubs = self.stubs.range(of_this).filter(|(_, at)| **at != self.place(id));
            functions.extend(stubs.map(|((_, stub), _)| self.stub(*stub, id, function)));
            let identity = match (function.kind, methods.get(&id)) {
                (CodeKind::Native, _) => Identity::Native,
                (
                    _,
                    None
                    | Some(
                        MethodKind::UnmanagedCallersOnly
                        | MethodKind::EntryPoint
                        | MethodKind::ClassLibrary,
                    ),
                ) => Identity::Method(MethodKind::Ordinary),
                (_, Some(kind)) => Identity::Method(*kind),
            };
            functions.push((self.function(function, id, identity), identity));
        }
        functions
    }

    fn finish(self, functions: Vec<(Function, Identity)>) -> Expanded {
        let (mut functions, mut identities): (Vec<_>, Vec<_>) = functions.into_iter().unzip();
        for shared in self.shared.keys() {
            functions.push(self.shared_function(*shared));
            identities.push(if shared.is_managed() {
                Identity::Method(shared.method_kind())
            } else if *shared == Shared::WriteBarrier && self.generation.copies_write_barrier() {
                Identity::Stub(StubKind::WriteBarrier)
            } else {
                Identity::Native
            });
        }
        let convention = self.frames.convention();
        Expanded {
            program: Program { convention, functions, ..Program::default() },
            identities,
            placed: self.placed,
            shared: self.shared,
            stubs: self.stubs,
            entry_point: self.entry_point,
        }
    }

    fn place(&self, source: FunctionIndex) -> FunctionIndex {
        self.placed.get(source.index()).copied().unwrap_or_default()
    }

    fn stub_of(&self, target: FunctionIndex, stub: Stub) -> FunctionIndex {
        self.stubs.get(&(target, stub)).copied().unwrap_or_default()
    }

    fn helper(&self, shared: Shared) -> FunctionIndex {
        self.shared.get(&shared).copied().unwrap_or_default()
    }

    fn stub(&self, stub: Stub, id: FunctionIndex, target: &Function) -> (Function, Identity) {
        let il_stub = Identity::Method(MethodKind::IlStub);
        let delegate = |kind, times| {
            let assembled = self.generation.has_delegate_frames();
            let identity = if assembled { Identity::Stub(StubKind::StubLink) } else { il_stub };
            (self.delegate_stub(stub, id, target, (kind, times)), identity)
        };
        let thunk =
            |(kind, jumps_to)| (self.thunk(stub, id, target, jumps_to), Identity::Stub(kind));
        let jump = |code, kind| (self.stub_to(stub, code, id, target), Identity::Stub(kind));
        match stub {
            Stub::PInvokeMethod => {
                let method = Identity::Method(MethodKind::Ordinary);
                (self.p_invoke_stub(stub, id, target), method)
            }
            Stub::PInvoke | Stub::ComCall => (self.p_invoke_stub(stub, id, target), il_stub),
            Stub::ReversePInvoke => (self.reverse_p_invoke_stub(id, target), il_stub),
            Stub::ComMethod => (self.com_method_stub(id, target), il_stub),
            Stub::Precode => thunk(PRECODE),
            Stub::DelayLoad => thunk(DELAY_LOAD),
            Stub::Resolve => thunk(RESOLVE),
            Stub::Dispatch => jump(StubCode::Dispatch, StubKind::VirtualStubDispatch),
            Stub::Unboxing => jump(StubCode::Unbox, StubKind::StubLink),
            Stub::CallCounting => jump(StubCode::CountCall, StubKind::CallCounting),
            Stub::ShuffleThunk => jump(StubCode::Shuffle, StubKind::StubLink),
            Stub::Multicast => delegate(FrameKind::Multicast, 2),
            Stub::Wrapper => delegate(FrameKind::SecureDelegate, 1),
            Stub::TailCall => {
                let stub = self.tail_call_stub(id, target);
                let native = stub.kind == CodeKind::Native;
                (stub, if native { Identity::Native } else { il_stub })
            }
        }
    }

    /// Returns a function of the source with the runtime's code in place of statements.
    fn function(&self, source: &Function, id: FunctionIndex, identity: Identity) -> Function {
        let mut function = source.clone();
        let is_library = self.library.contains(&id);
        let calls_inline = |statement: &Statement| match statement {
            Statement::Runtime(RuntimeCall { kind, .. }) => calls::is_inline(*kind, is_library),
            _ => false,
        };
        let has_frame = source.body.iter().any(|statement| statement.contains(&calls_inline));
        let frame_at = if has_frame {
            frames::reserve_frame(&mut function.shape, self.frames.convention())
        } else {
            0
        };
        function.body = self.body(&source.body, Caller { frame_at, is_library });
        if let Some(Exit::TailCall(_, callee)) = &mut function.end {
            *callee = self.place(*callee);
        }
        // Methods without metadata have none (recorded on 3.1.3, 8.0.34, 9.0.23 and 10.0.15).
        if identity != Identity::Method(MethodKind::Dynamic)
            && identity != Identity::Method(MethodKind::IlStub)
        {
            self.add_hooks(&mut function);
        }
        if self.stubs.get(&(id, Stub::ReversePInvoke)) == Some(&self.place(id)) {
            self.switch_mode(&mut function);
        }
        function
    }

    fn body(&self, source: &[Statement], caller: Caller) -> Vec<Statement> {
        source.iter().flat_map(|statement| self.statement(statement, caller)).collect()
    }

    fn statement(&self, source: &Statement, caller: Caller) -> Vec<Statement> {
        if let Statement::Runtime(call) = source {
            return self.runtime_call(*call, caller);
        }
        let mut statement = source.clone();
        if let Statement::Call(_, callee)
        | Statement::Exit(Exit::TailCall(_, callee))
        | Statement::Trap(callee)
        | Statement::SwitchStack(callee) = &mut statement
        {
            *callee = self.place(*callee);
        }
        for inner in statement.bodies_mut() {
            *inner = self.body(inner, caller);
        }
        vec![statement]
    }
}

/// Creates a native function of the runtime.
fn native(shared: Shared, shape: FunctionShape, body: Vec<Statement>, end: Exit) -> Function {
    Function { name: shared.name().to_owned(), kind: CodeKind::Native, shape, body, end: Some(end) }
}

/// Returns the shape of a function that pushes registers, and has locals of a size in bytes.
fn saving(pushes: &[Gpr], locals: u32) -> FunctionShape {
    FunctionShape { pushes: pushes.to_vec(), locals, ..FunctionShape::default() }
}

/// Returns the shape of a leaf.
fn leaf() -> FunctionShape {
    FunctionShape { unwind: UnwindData::None, ..FunctionShape::default() }
}

const RETURN: Exit = Exit::Return(ReturnForm::Ret);
