//! The runtime's own code: what lies between managed and unmanaged functions of a program.
//!
//! [`expand`] takes a program whose functions go through the runtime
//! ([`Statement::Runtime`](crate::code::Statement)) and puts in the code that a generation has there:
//! stubs that are made for a target, and helpers that all share. It links Frames and switches modes by
//! instructions, so that a thread can be stopped between any two of them. What the runtime does
//! besides, such as compiling or collecting, are [`Service`]s of the world outside.

mod frames;
mod helpers;
mod names;
mod prestub;
mod service;
mod transitions;

pub(crate) use frames::TRAP_RETURNING_THREADS;
pub use names::{RuntimeFunction, Shared, Stub};
pub use service::Service;

use crate::code::{
    CodeKind, Convention, Exit, Function, FunctionId, FunctionShape, Program, ReturnForm,
    RuntimeCall, RuntimeCallKind, Statement, UnwindData,
};
use crate::generation::Generation;
use crate::runtime::MethodKind;
use crate::runtime::code::StubKind;
use frames::Frames;
use std::collections::{BTreeMap, BTreeSet};

/// What the runtime takes a function for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Unmanaged code.
    Native,
    /// A method's code.
    Method(MethodKind),
    /// A block of a code heap that is no method.
    Stub(StubKind),
}

/// A program with the runtime's code in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The program, by the calling convention of the generation.
    pub program: Program,
    /// What each function is.
    pub identities: Vec<Identity>,
    /// Where each function of the source is in the program.
    pub placed: Vec<FunctionId>,
    /// Where the helpers are.
    pub shared: BTreeMap<Shared, FunctionId>,
    /// Where the stubs are, by their targets in the source.
    pub stubs: BTreeMap<(FunctionId, Stub), FunctionId>,
}

impl Expanded {
    /// Where a function of the runtime is, if the program needs it.
    #[must_use]
    pub fn find(&self, function: RuntimeFunction) -> Option<FunctionId> {
        match function {
            RuntimeFunction::Shared(shared) => self.shared.get(&shared).copied(),
            RuntimeFunction::Stub(stub, target) => self.stubs.get(&(target, stub)).copied(),
        }
    }
}

/// FunctionIDs of methods begin here, 16 apart by the method's place in the program.
const METHODS: u64 = 0x7FF8_3000_0000;

/// The FunctionID of a method: of a function of the expanded program.
#[must_use]
pub const fn method_id(function: FunctionId) -> u64 {
    METHODS + 0x10 * function.0 as u64
}

/// Puts the code of a generation's runtime into a program. `methods` says what kind the methods of the
/// source are; what it does not name is an ordinary one.
#[must_use]
pub fn expand(
    source: &Program,
    methods: &BTreeMap<FunctionId, MethodKind>,
    generation: Generation,
) -> Expanded {
    let mut wanted = BTreeSet::new();
    for function in &source.functions {
        wants(&function.body, &mut wanted);
    }
    let mut plan = Plan {
        generation,
        frames: Frames::of(generation),
        placed: Vec::new(),
        stubs: BTreeMap::new(),
        shared: BTreeMap::new(),
    };
    let mut next = 0;
    let mut take = || {
        next += 1;
        FunctionId(next - 1)
    };
    for index in 0..source.functions.len() as u32 {
        for (target, stub) in wanted.range((FunctionId(index), Stub::PInvoke)..) {
            if target.0 != index {
                break;
            }
            plan.stubs.insert((*target, *stub), take());
        }
        plan.placed.push(take());
    }
    for shared in Shared::ALL.iter().filter(|shared| shared.exists_in(generation)) {
        plan.shared.insert(*shared, take());
    }
    plan.build(source, methods)
}

fn wants(body: &[Statement], wanted: &mut BTreeSet<(FunctionId, Stub)>) {
    for statement in body {
        if let Statement::Runtime(RuntimeCall { kind, target: Some(target) }) = statement
            && let Some(stub) = Stub::of(*kind)
        {
            wanted.insert((*target, stub));
        }
        for inner in statement.bodies() {
            wants(inner, wanted);
        }
    }
}

/// Where everything goes.
struct Plan {
    generation: Generation,
    frames: Frames,
    placed: Vec<FunctionId>,
    stubs: BTreeMap<(FunctionId, Stub), FunctionId>,
    shared: BTreeMap<Shared, FunctionId>,
}

impl Plan {
    fn build(self, source: &Program, methods: &BTreeMap<FunctionId, MethodKind>) -> Expanded {
        let convention =
            if self.generation.is_unix() { Convention::SystemV } else { Convention::WindowsX64 };
        let mut functions = Vec::new();
        let mut identities = Vec::new();
        for (index, function) in source.functions.iter().enumerate() {
            let id = FunctionId(index as u32);
            for ((_, stub), _) in self.stubs.range((id, Stub::PInvoke)..=(id, Stub::Precode)) {
                let (stub, identity) = self.stub(*stub, id, function);
                functions.push(stub);
                identities.push(identity);
            }
            functions.push(self.function(function, convention));
            identities.push(match function.kind {
                CodeKind::Native => Identity::Native,
                CodeKind::Jit | CodeKind::ReadyToRun => {
                    Identity::Method(methods.get(&id).copied().unwrap_or_default())
                }
            });
        }
        for shared in self.shared.keys() {
            functions.push(self.shared_function(*shared));
            identities.push(Identity::Native);
        }
        Expanded {
            program: Program { convention, functions, interrupts: Vec::new() },
            identities,
            placed: self.placed,
            shared: self.shared,
            stubs: self.stubs,
        }
    }

    fn place(&self, source: FunctionId) -> FunctionId {
        self.placed.get(source.index()).copied().unwrap_or_default()
    }

    fn stub_of(&self, target: FunctionId, stub: Stub) -> FunctionId {
        self.stubs.get(&(target, stub)).copied().unwrap_or_default()
    }

    fn helper(&self, shared: Shared) -> FunctionId {
        self.shared.get(&shared).copied().unwrap_or_default()
    }

    fn stub(&self, stub: Stub, id: FunctionId, target: &Function) -> (Function, Identity) {
        match stub {
            Stub::PInvoke => (self.p_invoke_stub(id, target), Identity::Method(MethodKind::IlStub)),
            Stub::ReversePInvoke => {
                (self.reverse_p_invoke_stub(id, target), Identity::Method(MethodKind::IlStub))
            }
            Stub::Precode => (self.precode(id, target), Identity::Stub(StubKind::Precode)),
        }
    }

    /// A function of the source, with the runtime's code in place of statements.
    fn function(&self, source: &Function, convention: Convention) -> Function {
        let mut function = source.clone();
        let calls_inline = |statement: &Statement| {
            matches!(
                statement,
                Statement::Runtime(RuntimeCall { kind: RuntimeCallKind::PInvoke, .. })
            )
        };
        let has_frame = source.body.iter().any(|statement| statement.contains(&calls_inline));
        let frame_at =
            if has_frame { frames::reserve_frame(&mut function.shape, convention) } else { 0 };
        function.body = self.body(&source.body, frame_at);
        if let Some(Exit::TailCall(_, callee)) = &mut function.end {
            *callee = self.place(*callee);
        }
        function
    }

    fn body(&self, source: &[Statement], frame_at: u32) -> Vec<Statement> {
        source.iter().flat_map(|statement| self.statement(statement, frame_at)).collect()
    }

    fn statement(&self, source: &Statement, frame_at: u32) -> Vec<Statement> {
        if let Statement::Runtime(call) = source {
            return self.runtime_call(*call, frame_at);
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
            *inner = self.body(inner, frame_at);
        }
        vec![statement]
    }

    fn runtime_call(&self, call: RuntimeCall, frame_at: u32) -> Vec<Statement> {
        let target = call.target.unwrap_or_default();
        match call.kind {
            RuntimeCallKind::PInvoke => {
                // Such a call is told by a token, which is no method.
                self.frames.inlined_call(frame_at, 1, frames::call(self.place(target)))
            }
            RuntimeCallKind::PInvokeStub => {
                vec![frames::call(self.stub_of(target, Stub::PInvoke))]
            }
            RuntimeCallKind::ReversePInvoke => self.reverse_p_invoke(target),
            RuntimeCallKind::FirstCall => vec![frames::call(self.stub_of(target, Stub::Precode))],
            RuntimeCallKind::New => vec![frames::call(self.helper(Shared::New))],
            RuntimeCallKind::NewFast => vec![frames::call(self.helper(Shared::NewFast))],
            RuntimeCallKind::WriteBarrier => {
                vec![frames::call(self.helper(Shared::WriteBarrier))]
            }
        }
    }

    fn shared_function(&self, shared: Shared) -> Function {
        match shared {
            Shared::KickOffThread => self.kick_off_thread(),
            Shared::CallDescrWorker => transitions::call_descr_worker(),
            Shared::UmThunkStub => transitions::um_thunk_stub(),
            Shared::ReversePInvokeEnter => transitions::reverse_p_invoke_enter(),
            Shared::ReversePInvokeExit => transitions::reverse_p_invoke_exit(),
            Shared::ThePreStub => self.the_pre_stub(),
            Shared::PreStubWorker => self.pre_stub_worker(),
            Shared::Jit => prestub::jit(),
            Shared::New => self.new_helper(),
            Shared::NewWorker => self.new_worker(),
            Shared::Allocate => helpers::allocate(),
            Shared::NewFast => helpers::leaf_helper(Shared::NewFast),
            Shared::WriteBarrier => helpers::leaf_helper(Shared::WriteBarrier),
        }
    }
}

/// A native function of the runtime.
fn native(shared: Shared, shape: FunctionShape, body: Vec<Statement>, end: Exit) -> Function {
    Function { name: shared.name().to_owned(), kind: CodeKind::Native, shape, body, end: Some(end) }
}

/// The shape of a leaf.
fn leaf() -> FunctionShape {
    FunctionShape { unwind: UnwindData::None, ..FunctionShape::default() }
}

const RETURN: Exit = Exit::Return(ReturnForm::Ret);
