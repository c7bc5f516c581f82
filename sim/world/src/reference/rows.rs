//! A thread that stands still, as it really is.

use super::exceptions::Exceptions;
use super::frames::{self, Frame};
use crate::World;
use crate::stubs::{Expanded, Identity, Shared, method_id};
use clr_codegen::{FuncletKind, LinkedProgram, Statement};
use clr_runtime::generation::Generation;
use clr_runtime::thread::ThreadObject;
use clr_runtime::{MethodKind, Suspension, ThreadLife};
use clr_walker::profiling::FunctionId as MethodId;
use clr_walker::registers::Registers;
use clr_walker::unwind::Position;

/// What an activation executes, as the runtime knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Unmanaged code: native functions, helpers and stubs.
    Unmanaged,
    /// A method's code.
    Managed(MethodId, MethodKind),
}

/// What is known of a function before anything runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    code: Code,
    /// The nonvolatile registers that its frames save, a bit each: integer registers, then xmm.
    saves: (u16, u16),
    /// Of these, those that its funclets save: what is pushed.
    pushes: u16,
    /// It is of the program's text, and not the runtime's.
    pub is_source: bool,
    /// It leads from unmanaged code into managed code.
    is_way_in: bool,
    /// It calls unmanaged code between the helpers of ready-to-run code.
    pub begins: bool,
}

/// What is known of a program's functions before anything runs.
#[derive(Clone, Debug)]
pub struct Facts {
    functions: Vec<Fact>,
    /// The unwinder misreads some of the managed code.
    misread: bool,
    /// Some managed code is in funclets.
    funclets: bool,
}

impl Facts {
    /// Of a program and its code.
    #[must_use]
    pub fn new(expanded: &Expanded, linked: &LinkedProgram) -> Self {
        let ways_in = [
            Shared::CallDescrWorker,
            Shared::KickOffThread,
            Shared::UmThunkStub,
            Shared::GenericComCallStub,
            Shared::ComToClrDispatchHelper,
        ];
        let begin = expanded.shared.get(&Shared::PInvokeBegin);
        let begins = |statement: &Statement| match statement {
            Statement::Call(_, callee) => Some(callee) == begin,
            _ => false,
        };
        let ways_in: Vec<_> = ways_in.iter().filter_map(|one| expanded.shared.get(one)).collect();
        let mut functions = Vec::new();
        for ((function, identity), id) in
            expanded.program.functions.iter().zip(&expanded.identities).zip(0..)
        {
            let id = clr_codegen::FunctionId(id);
            let shape = &function.shape;
            let integer =
                shape.pushes.iter().chain(&shape.saves).chain(shape.home.iter().flatten());
            let integer = integer.fold(0, |mask, register| mask | 1 << *register as u16);
            functions.push(Fact {
                code: match identity {
                    Identity::Method(kind) => Code::Managed(MethodId(method_id(id)), *kind),
                    Identity::Native | Identity::Stub(_) => Code::Unmanaged,
                },
                pushes: shape.pushes.iter().fold(0, |mask, register| mask | 1 << *register as u16),
                saves: (integer, shape.xmm_saves.iter().fold(0, |mask, n| mask | 1 << n)),
                is_source: expanded.placed.contains(&id),
                is_way_in: ways_in.contains(&&id),
                begins: function.body.iter().any(|statement| statement.contains(&begins)),
            });
        }
        let misread = linked.instructions.iter().any(|instruction| {
            let function = instruction.function.and_then(|id| functions.get(id.index()));
            instruction.mistake.is_some()
                && function.is_some_and(|fact| fact.code != Code::Unmanaged)
        });
        let funclets = linked.parts.iter().any(|part| part.funclet.is_some());
        Self { functions, misread, funclets }
    }
}

/// An activation.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it executes.
    pub code: Code,
    /// Its registers: where control is, or comes back to.
    pub registers: Registers,
    /// rsp of its caller once it has returned (VA).
    pub caller_sp: u64,
    /// What its frame saves: integer registers, then xmm.
    pub saves: (u16, u16),
    /// What its rip is.
    pub position: Position,
    /// What it is for, if it is a funclet of its method.
    pub funclet: Option<FuncletKind>,
    pub(super) fact: Option<Fact>,
}

impl Row {
    /// Whether it is of managed code.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.code != Code::Unmanaged
    }

    /// Whether it is of the program's own code.
    #[must_use]
    pub fn is_source_code(&self) -> bool {
        self.fact.is_some_and(|fact| fact.is_source)
    }

    /// Whether it is of the runtime's own code between others.
    pub(super) fn is_between(&self) -> bool {
        !self.is_managed() && self.fact.is_none_or(|fact| !fact.is_source && !fact.is_way_in)
    }

    /// Whether it is of a service of the world.
    pub(super) const fn is_service(&self) -> bool {
        self.fact.is_none()
    }
}

/// A thread that stands still.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub struct Seen {
    /// Which runtime it is of.
    pub generation: Generation,
    /// Its activations, innermost first.
    pub rows: Vec<Row>,
    /// Its Frames, the topmost first.
    pub frames: Vec<Frame>,
    /// It is in cooperative mode.
    pub cooperative: bool,
    /// Its exceptions on their way.
    pub exceptions: Exceptions,
    /// It has not begun, or has ended.
    pub gone: bool,
    /// It must not be suspended.
    pub forbidden: bool,
    /// Threads are being stopped for a GC.
    pub suspending: bool,
    /// Another thread writes to the code manager's tables.
    pub code_busy: bool,
    /// It is beyond these rules: it is in code that the unwinder misreads.
    pub beyond: bool,
}

impl Seen {
    /// Looks at a thread. `None` if it is none of the runtime's.
    #[must_use]
    pub fn new(facts: &Facts, world: &mut World<'_>, thread: usize) -> Option<Self> {
        let object = world.object(thread)?;
        let cooperative = world.is_cooperative(thread);
        let linked = world.linked();
        let mut beyond = false;
        let activations = world.activations(thread);
        let rows: Vec<Row> = activations
            .into_iter()
            .map(|activation| {
                let id = activation.function;
                let fact = id.and_then(|id| facts.functions.get(id.index())).copied();
                let code = fact.map_or(Code::Unmanaged, |fact| fact.code);
                beyond |= facts.misread
                    && code != Code::Unmanaged
                    && linked
                        .windows_mistake(activation.registers.rip, activation.position)
                        .is_some();
                let inside = match activation.position {
                    Position::Interrupted => activation.registers.rip,
                    Position::ReturnAddress => activation.registers.rip.wrapping_sub(1),
                };
                let part = if facts.funclets { linked.part(inside) } else { None };
                let funclet = part.and_then(|part| part.funclet);
                let saves = fact.map_or((0, 0), |fact| match funclet {
                    Some(_) => (fact.pushes, 0),
                    None => fact.saves,
                });
                Row {
                    code,
                    registers: activation.registers,
                    caller_sp: activation.caller_sp,
                    saves,
                    position: activation.position,
                    funclet,
                    fact,
                }
            })
            .collect();
        let runtime = world.runtime();
        let (exceptions, gone) = {
            let threads = runtime.threads.borrow();
            let known = threads.iter().find(|known| known.object == Some(object));
            known.map_or_else(Default::default, |known| {
                (Exceptions::new(&known.exceptions), known.life != ThreadLife::Running)
            })
        };
        let generation = runtime.generation;
        let memory = runtime.memory.borrow();
        let top = ThreadObject(object).top_frame(&*memory).ok()?;
        let forbidden = ThreadObject(object).forbid_suspend(&*memory).ok()? != 0;
        let writer = runtime.process.get().code_manager_writer;
        let code_busy = writer.is_some_and(|writer| runtime.object_of(writer) != Some(object));
        let suspending = matches!(runtime.process.get().suspension, Suspension::Suspending(_));
        let frames = frames::chain(generation, &runtime.identities, &*memory, top, &rows)?;
        Some(Self {
            generation,
            rows,
            frames,
            cooperative,
            exceptions,
            gone,
            forbidden,
            suspending,
            code_busy,
            beyond,
        })
    }
}
