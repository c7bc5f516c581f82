//! Managed and native frames in one stack, by unwinding alone.

use crate::error::InspectError;
use crate::hijacks::Hijacks;
use crate::ready_to_run::ReadyToRunLayout;
use crate::runtime::Runtime;
use clr_dump::{StoppedProcess, System};
use clr_unwind::{CodeMap, Convention, Position, Registers, UnwindError, Unwinder};
use clr_walker::jitted::JittedMethod;
use clr_walker::jitted::contracts::{CodeAt, ExecutionManager};
use std::collections::BTreeMap;

/// Frames of a stack at most.
const FRAME_LIMIT: usize = 1 << 16;

/// The code of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    /// Code of a module that is not managed.
    Native,
    /// A method that the JIT compiler made, by its MethodDesc (VA).
    Jitted {
        /// Address of the MethodDesc (VA), which the profiling interface calls a FunctionID.
        method: u64,
        /// Start of the method's code (VA).
        start: u64,
    },
    /// A method that was compiled before, in a ready-to-run image.
    ReadyToRun {
        /// Address of the MethodDesc (VA), which the profiling interface calls a FunctionID.
        method: u64,
        /// Start of the method's code (VA).
        start: u64,
    },
    /// A stub of the runtime.
    Stub,
    /// Code that is in no module, and that the runtime does not know by contract.
    Unknown,
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackFrame {
    /// The registers of the frame, as far as unwinding finds them.
    pub registers: Registers,
    /// The kind of address in rip.
    pub position: Position,
    /// The code.
    pub code: CodeKind,
}

/// Why a stack has no more frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEnd {
    /// The unwinder's reason; [`UnwindError::EndOfStack`] is the normal one.
    Unwind(UnwindError),
    /// The runtime's map of code contradicts itself, or is unknown. The last frame is that of the code.
    Code(InspectError),
    /// The stack has more frames than this crate reads.
    TooManyFrames,
}

impl StackEnd {
    /// Returns true if the last frame is the thread's first function: the stack has all frames.
    pub const fn is_root(&self) -> bool {
        matches!(self, Self::Unwind(UnwindError::EndOfStack { .. }))
    }
}

/// A stack.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stack {
    /// The frames, leafmost first.
    pub frames: Vec<StackFrame>,
    /// Why there are no more.
    pub end: StackEnd,
}

/// Walks the stacks of a stopped process. Methods that were found stay in its map of code.
#[derive(Debug)]
pub struct StackWalker<'m, 'a, M: ?Sized> {
    memory: &'m M,
    map: CodeMap<'a>,
    manager: Option<ExecutionManager>,
    ready_to_run: Option<ReadyToRunLayout>,
    hijacks: Hijacks,
    /// Jitted methods of the map, by the start of their code (VA).
    methods: BTreeMap<u64, JittedMethod>,
}

impl<'m, 'a, M: StoppedProcess + ?Sized> StackWalker<'m, 'a, M> {
    /// Creates a walker. `map` has the code of the modules (`clr_dump::CoreDump::code_map`); with a runtime that has the contract
    /// of code, jitted methods are found when a walk meets them.
    pub fn new(memory: &'m M, map: CodeMap<'a>, runtime: Option<&Runtime>) -> Self {
        let descriptor = runtime.map(Runtime::descriptor);
        let manager = descriptor.and_then(|it| ExecutionManager::new(it).ok());
        let ready_to_run = descriptor.and_then(|it| ReadyToRunLayout::new(it).ok());
        let hijacks = runtime.map(|runtime| Hijacks::read(memory, runtime)).unwrap_or_default();
        Self { memory, map, manager, ready_to_run, hijacks, methods: BTreeMap::new() }
    }

    /// Returns the convention of managed code.
    fn convention(&self) -> Convention {
        self.memory.system().convention()
    }

    /// Returns true if managed code can be found: the runtime has the contract of code.
    pub const fn finds_managed_code(&self) -> bool {
        self.manager.is_some()
    }

    /// Walks a stack from the registers of a stopped thread.
    pub fn walk(&mut self, registers: &Registers) -> Stack {
        self.walk_from(registers, Position::Interrupted)
    }

    /// Walks a stack from registers whose rip is of this kind.
    pub fn walk_from(&mut self, registers: &Registers, position: Position) -> Stack {
        let (mut registers, mut position) = (*registers, position);
        let mut frames = Vec::new();
        loop {
            if frames.len() == FRAME_LIMIT {
                return Stack { frames, end: StackEnd::TooManyFrames };
            }
            let code = match self.code_at(registers.rip, position) {
                Ok(code) => code,
                Err(error) => {
                    let code = CodeKind::Unknown;
                    frames.push(StackFrame { registers, position, code });
                    return Stack { frames, end: StackEnd::Code(error) };
                }
            };
            frames.push(StackFrame { registers, position, code });
            let rsp = registers.rsp();
            let unwinder = Unwinder::new(&self.map).with_convention(self.convention());
            match unwinder.step(&mut registers, position, self.memory) {
                // Nothing has called the first function of a thread: its return address is null.
                Ok(_) if registers.rip == 0 && self.memory.system() == System::Windows => {
                    let address = frames.last().map_or(0, |last| last.registers.rip);
                    let end = StackEnd::Unwind(UnwindError::EndOfStack { address });
                    return Stack { frames, end };
                }
                Ok(step) => {
                    position = step.caller;
                    let caller_rsp = registers.rsp();
                    // A signal may have had a stack of its own.
                    if caller_rsp <= rsp && position != Position::Interrupted {
                        let error = UnwindError::NoProgress { rsp, caller_rsp };
                        return Stack { frames, end: StackEnd::Unwind(error) };
                    }
                    if position == Position::ReturnAddress {
                        self.correct(code, &mut registers);
                    }
                }
                Err(error) => return Stack { frames, end: StackEnd::Unwind(error) },
            }
        }
    }

    /// Corrects the caller of a frame with this code if the runtime has replaced a return address.
    fn correct(&mut self, code: CodeKind, caller: &mut Registers) {
        let Ok(found) = self.code_at(caller.rip, Position::ReturnAddress) else { return };
        match (code, found) {
            (CodeKind::Native, CodeKind::Unknown) => {
                self.hijacks.correct_stub(self.memory, caller);
            }
            (CodeKind::Jitted { .. } | CodeKind::ReadyToRun { .. }, CodeKind::Native) => {
                self.hijacks.correct_return(self.memory, caller);
            }
            _ => {}
        }
    }

    /// Returns the kind of code at `rip` (VA), which is of this kind, and adds a jitted method to the map.
    ///
    /// # Errors
    /// [`InspectError`] if the runtime's map of code is unknown there, or contradicts itself.
    pub fn code_at(&mut self, rip: u64, position: Position) -> Result<CodeKind, InspectError> {
        // A return address may lie after the last instruction of its function.
        let address = match position {
            Position::Interrupted => rip,
            Position::ReturnAddress => rip.wrapping_sub(1),
        };
        let before = self.methods.range(..=address).next_back();
        if let Some((start, method)) = before
            && method.code_range().contains(&address)
        {
            return Ok(CodeKind::Jitted { method: method.method_desc(), start: *start });
        }
        let Some(manager) = &self.manager else { return Ok(self.native_at(address)) };
        match manager.find(self.memory, address)? {
            Some(CodeAt::Method(method)) => {
                let (desc, start) = (method.method_desc(), method.code_range().start);
                if let Ok(region) = method.region(self.convention()) {
                    self.map.replace(region);
                }
                self.methods.insert(start, method);
                Ok(CodeKind::Jitted { method: desc, start })
            }
            Some(CodeAt::ReadyToRun { range, module }) => {
                let Some(layout) = &self.ready_to_run else { return Ok(CodeKind::Unknown) };
                let found = layout.find(self.memory, module, range.start, address)?;
                Ok(found.map_or(CodeKind::Stub, |found| CodeKind::ReadyToRun {
                    method: found.desc,
                    start: found.start,
                }))
            }
            Some(CodeAt::StubBlock { .. } | CodeAt::Stubs { .. }) => Ok(CodeKind::Stub),
            None => Ok(self.native_at(address)),
        }
    }

    fn native_at(&self, address: u64) -> CodeKind {
        match self.map.find(address) {
            Some(_) => CodeKind::Native,
            None => CodeKind::Unknown,
        }
    }
}
