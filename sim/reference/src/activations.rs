//! A stopped thread, as the shadow stack has it.

use super::exceptions::{self, Exceptions, Handler};
use super::frames::{self, ReferenceFrame};
use clr_codegen::{FuncletKind, LinkedProgram, Statement};
use clr_runtime::generation::Generation;
use clr_runtime::thread::ThreadObject;
use clr_runtime::{ContextSafety, MethodKind, Process, ThreadLife};
use clr_unwind::{Position, Registers};
use clr_walker::profiling::FunctionId as MethodId;
use clr_world::World;
use clr_world::stubs::{Expanded, Identity, Shared, method_id};

/// The code of an activation, from the runtime's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationCode {
    /// Unmanaged code: native functions, helpers and stubs.
    Unmanaged,
    /// A method's code.
    Managed(MethodId, MethodKind),
}

/// Properties of a function that are known before execution.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub(crate) struct Fact {
    code: ActivationCode,
    /// Masks of the nonvolatile registers that the function's frames save: integer registers, then
    /// xmm.
    saves: (u16, u16),
    /// Mask of the registers that its funclets save: the pushed ones.
    pushes: u16,
    /// The function is part of the program's text, not of the runtime.
    pub is_source: bool,
    /// The function leads from unmanaged code into managed code.
    is_way_in: bool,
    /// The function waits for the end of a suspension on the way back from unmanaged code.
    waits: bool,
    /// The function calls unmanaged code between the helpers of ready-to-run code.
    pub begins: bool,
}

/// Properties of a program's functions that are known before execution.
#[derive(Clone, Debug)]
pub struct ProgramFacts {
    functions: Vec<Fact>,
    /// The unwinder misreads some of the managed code.
    misread: bool,
    /// Some managed code is in funclets.
    funclets: bool,
}

impl ProgramFacts {
    /// Collects the properties of a program and its code.
    pub fn new(expanded: &Expanded, linked: &LinkedProgram) -> Self {
        let ways_in = [
            Shared::CallDescrWorker,
            Shared::KickOffThread,
            Shared::RunMain,
            Shared::UmThunkStub,
            Shared::GenericComCallStub,
            Shared::ComToClrDispatchHelper,
        ];
        let waits = expanded.shared.get(&Shared::RareDisable);
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
            let id = clr_codegen::FunctionIndex(id);
            let shape = &function.shape;
            let integer =
                shape.pushes.iter().chain(&shape.saves).chain(shape.home.iter().flatten());
            let integer = integer.fold(0, |mask, register| mask | 1 << *register as u16);
            functions.push(Fact {
                code: match identity {
                    Identity::Method(kind) => {
                        ActivationCode::Managed(MethodId(method_id(id)), *kind)
                    }
                    Identity::Native | Identity::Stub(_) => ActivationCode::Unmanaged,
                },
                pushes: shape.pushes.iter().fold(0, |mask, register| mask | 1 << *register as u16),
                saves: (integer, shape.xmm_saves.iter().fold(0, |mask, n| mask | 1 << n)),
                is_source: expanded.placed.contains(&id),
                is_way_in: ways_in.contains(&&id),
                waits: waits == Some(&id),
                begins: function.body.iter().any(|statement| statement.contains(&begins)),
            });
        }
        let misread = linked.instructions.iter().any(|instruction| {
            let function = instruction.function.and_then(|id| functions.get(id.index()));
            instruction.mistake.is_some()
                && function.is_some_and(|fact| fact.code != ActivationCode::Unmanaged)
        });
        let funclets = linked.parts.iter().any(|part| part.funclet.is_some());
        Self { functions, misread, funclets }
    }
}

/// An activation on the stack of a stopped thread.
#[derive(Clone, Debug)]
pub struct ReferenceActivation {
    /// Code of the activation.
    pub code: ActivationCode,
    /// Registers at the current instruction, or after the return to the activation.
    pub registers: Registers,
    /// Caller's rsp after the function has returned (VA).
    pub caller_sp: u64,
    /// Masks of the registers that the frame saves: integer registers, then xmm.
    pub saves: (u16, u16),
    /// Position of rip in the activation.
    pub position: Position,
    /// Kind of funclet, if the activation is one.
    pub funclet: Option<FuncletKind>,
    /// Kind of handler, if the activation is one.
    pub handler: Option<Handler>,
    pub(crate) fact: Option<Fact>,
}

impl ReferenceActivation {
    /// Creates an activation that saves no register.
    pub const fn new(code: ActivationCode, registers: Registers, caller_sp: u64) -> Self {
        let (position, saves) = (Position::ReturnAddress, (0, 0));
        Self {
            code,
            registers,
            caller_sp,
            saves,
            position,
            funclet: None,
            handler: None,
            fact: None,
        }
    }

    /// Returns true if the activation is of managed code.
    pub fn is_managed(&self) -> bool {
        self.code != ActivationCode::Unmanaged
    }

    /// Returns true if the activation is of the program's own code.
    pub fn is_source_code(&self) -> bool {
        self.fact.is_some_and(|fact| fact.is_source)
    }

    /// Returns true if the activation is of the runtime's own code between others.
    pub(crate) fn is_between(&self) -> bool {
        !self.is_managed() && self.fact.is_none_or(|fact| !fact.is_source && !fact.is_way_in)
    }

    /// Returns true if the activation waits for the end of a suspension, on the way back from unmanaged code: it is of a service of
    /// the world, or on Unix of the runtime's function around it.
    pub(crate) fn waits_to_come_back(&self) -> bool {
        self.fact.is_none_or(|fact| fact.waits)
    }
}

/// A stopped thread.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub struct ThreadFacts {
    /// Generation of the runtime.
    pub generation: Generation,
    /// State of the process.
    pub process: Process,
    /// Activations of the thread, innermost first.
    pub activations: Vec<ReferenceActivation>,
    /// Frames of the thread, the topmost first.
    pub frames: Vec<ReferenceFrame>,
    /// rsp of the thread (VA).
    pub rsp: u64,
    /// The thread is in cooperative mode.
    pub cooperative: bool,
    /// Usability of the thread's context.
    pub safety: ContextSafety,
    /// The thread belongs to the GC.
    pub gc_special: bool,
    /// Another call walks the thread.
    pub hijack_locked: bool,
    /// Exceptions in flight.
    pub exceptions: Exceptions,
    /// The thread has not begun, or has ended.
    pub gone: bool,
    /// The thread must not be suspended.
    pub forbidden: bool,
    /// Another thread writes to the code manager's tables.
    pub code_busy: bool,
    /// The reference model does not cover the thread: it is in code that the unwinder misreads.
    pub beyond: bool,
}

impl ThreadFacts {
    /// Describes a thread. Returns `None` if the runtime does not know the thread.
    pub fn new(facts: &ProgramFacts, world: &mut World<'_>, thread: usize) -> Option<Self> {
        let object = world.object(thread)?;
        let cooperative = world.is_cooperative(thread);
        let linked = world.linked();
        let mut beyond = false;
        let activations = world.activations(thread);
        let mut activations: Vec<ReferenceActivation> = activations
            .into_iter()
            .map(|activation| {
                let id = activation.function;
                let fact = id.and_then(|id| facts.functions.get(id.index())).copied();
                let code = fact.map_or(ActivationCode::Unmanaged, |fact| fact.code);
                beyond |= facts.misread
                    && code != ActivationCode::Unmanaged
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
                ReferenceActivation {
                    code,
                    registers: activation.registers,
                    caller_sp: activation.caller_sp,
                    saves,
                    position: activation.position,
                    funclet,
                    handler: None,
                    fact,
                }
            })
            .collect();
        if facts.funclets {
            exceptions::find_handlers(&mut activations);
        }
        let runtime = world.runtime();
        let known = runtime.thread_of(object, |known| {
            let gone = known.life != ThreadLife::Running;
            (Exceptions::new(&known.exceptions), gone, known.safety)
        });
        let (exceptions, gone, safety) = known.unwrap_or_default();
        let generation = runtime.generation;
        let memory = runtime.memory.borrow();
        let top = ThreadObject(object).top_frame(&*memory).ok()?;
        let forbidden = ThreadObject(object).forbid_suspend(&*memory).ok()? != 0;
        let process = runtime.process.get();
        let writer = process.code_manager_writer;
        let code_busy = writer.is_some_and(|writer| runtime.object_of(writer) != Some(object));
        let frames = frames::chain(generation, &runtime.identities, &*memory, top, &activations)?;
        Some(Self {
            generation,
            process,
            rsp: activations.first().map_or(u64::MAX, |leaf| leaf.registers.rsp()),
            activations,
            frames,
            cooperative,
            safety,
            gc_special: false,
            hijack_locked: false,
            exceptions,
            gone,
            forbidden,
            code_busy,
            beyond,
        })
    }
}
