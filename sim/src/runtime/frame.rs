//! Explicit Frames: objects in the target's stack memory, and the registers they lead to
//! (contract §3.5).

use crate::generation::Generation;
use crate::profiling::Context;
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::registers::Gpr;

/// A kind of Frame, as far as walks tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Around a P/Invoke; active while its return address is not 0.
    InlinedCall,
    /// The method of a TransitionBlock: Prestub, External, StubDispatch, DynamicHelper,
    /// CallCounting and PInvokeCalli Frames.
    FramedMethod,
    /// A TransitionBlock without method: StubHelper and delegate Frames.
    Transition,
    /// Of an FCall or a JIT helper, with machine state that is captured and completed later.
    HelperMethod,
    /// Behind a hijacked return address.
    Hijack,
    /// Of a thread that was interrupted and redirected: a whole CONTEXT.
    RedirectedThread,
    /// Of a fault in managed code: a whole CONTEXT.
    FaultingException,
    /// Of an exception thrown by managed code, newest.
    SoftwareException,
    /// One that leads nowhere: GC, debugger and context marks, unmanaged-to-managed Frames.
    Mark,
}

/// A Frame of a thread's chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplicitFrame {
    /// Its address (VA).
    pub at: u64,
    /// Its kind.
    pub kind: FrameKind,
    /// The registers that it leads to, where its own memory does not say: a HelperMethodFrame that
    /// has not been completed, a CONTEXT in the heap.
    pub completed: Option<Completed>,
}

/// Registers that a Frame leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// rip (VA).
    pub rip: u64,
    /// Integer registers, rsp among them; the others stay as they are.
    pub registers: Vec<(Gpr, u64)>,
    /// ContextFlags, if the Frame has a whole CONTEXT.
    pub context_flags: Option<u32>,
}

/// CalleeSavedRegisters in memory order.
const CALLEE_SAVED_WINDOWS: &[Gpr] =
    &[Gpr::Rdi, Gpr::Rsi, Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];
const CALLEE_SAVED_UNIX: &[Gpr] = &[Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15, Gpr::Rbx, Gpr::Rbp];

const fn callee_saved(generation: Generation) -> &'static [Gpr] {
    if generation.is_unix() { CALLEE_SAVED_UNIX } else { CALLEE_SAVED_WINDOWS }
}

/// Offset of `ContextFlags`, rax and rip in a CONTEXT.
const CONTEXT_FLAGS: u64 = 0x30;
const CONTEXT_RAX: u64 = 0x78;
const CONTEXT_RIP: u64 = 0xF8;

/// A Frame's memory, to be read by the layout of a generation.
pub(crate) struct FrameReader<'a, M: ?Sized> {
    pub frame: &'a ExplicitFrame,
    pub generation: Generation,
    pub memory: &'a M,
}

impl<M: Memory + ?Sized> FrameReader<'_, M> {
    fn field(&self, offset: u64) -> Result<u64, Unreadable> {
        self.memory.read_u64(self.frame.at.wrapping_add(offset))
    }

    /// Whether it is an InlinedCallFrame whose call is active.
    pub(crate) fn is_active_call(&self) -> Result<bool, Unreadable> {
        Ok(self.frame.kind == FrameKind::InlinedCall && self.return_address()? != 0)
    }

    /// Whether it stands for a thread that was interrupted.
    pub(crate) const fn is_resumable(&self) -> bool {
        matches!(self.frame.kind, FrameKind::RedirectedThread)
    }

    /// Whether it has a method: only then is it an internal stop of the walk.
    pub(crate) fn has_function(&self) -> Result<bool, Unreadable> {
        Ok(match self.frame.kind {
            // m_Datum is a method, unless it is marked as a stub's.
            FrameKind::InlinedCall if self.is_active_call()? => {
                let datum = self.field(0x10)?;
                datum != 0 && datum & 1 == 0
            }
            FrameKind::FramedMethod => self.field(0x18)? != 0,
            FrameKind::HelperMethod => self.field(0x10)? != 0,
            _ => false,
        })
    }

    /// Where the walk goes on: 0 for nowhere.
    pub(crate) fn return_address(&self) -> Result<u64, Unreadable> {
        if let Some(completed) = &self.frame.completed {
            return Ok(completed.rip);
        }
        match self.frame.kind {
            FrameKind::InlinedCall => {
                self.field(self.generation.inlined_call_frame().return_address)
            }
            FrameKind::FramedMethod | FrameKind::Transition => {
                let block = self.field(0x10)?;
                self.memory.read_u64(block.wrapping_add(self.transition_block_size() - 8))
            }
            FrameKind::HelperMethod => self.field(0x30),
            FrameKind::Hijack | FrameKind::SoftwareException => self.field(0x10),
            FrameKind::RedirectedThread => {
                self.memory.read_u64(self.field(0x10)?.wrapping_add(CONTEXT_RIP))
            }
            FrameKind::FaultingException => self.field(0x20 + CONTEXT_RIP),
            FrameKind::Mark => Ok(0),
        }
    }

    /// Sets the registers that it leads to.
    pub(crate) fn update(&self, context: &mut Context) -> Result<(), Unreadable> {
        context.registers.rip = self.return_address()?;
        if let Some(completed) = &self.frame.completed {
            for (register, value) in &completed.registers {
                context.registers.set(*register, *value);
            }
            context.flags = completed.context_flags.unwrap_or(context.flags);
            return Ok(());
        }
        let saved = callee_saved(self.generation);
        let saved_size = 8 * saved.len() as u64;
        match self.frame.kind {
            FrameKind::InlinedCall => {
                let layout = self.generation.inlined_call_frame();
                context.registers.set(Gpr::Rsp, self.field(layout.call_site_sp)?);
                context.registers.set(Gpr::Rbp, self.field(layout.frame_pointer)?);
                Ok(())
            }
            FrameKind::FramedMethod | FrameKind::Transition => {
                let end = self.field(0x10)?.wrapping_add(self.transition_block_size());
                context.registers.set(Gpr::Rsp, end);
                self.load(context, end.wrapping_sub(8 + saved_size))
            }
            FrameKind::HelperMethod => self.update_from_machine_state(context),
            FrameKind::Hijack => {
                // HijackArgs: one return register, or two, then the saved ones and rip.
                let args = self.field(0x20)?;
                let returned = if self.generation.is_unix() { 0x10 } else { 8 };
                let first = args.wrapping_add(returned);
                context.registers.set(Gpr::Rsp, first.wrapping_add(saved_size + 8));
                self.load(context, first)
            }
            FrameKind::RedirectedThread => self.load_context(context, self.field(0x10)?),
            FrameKind::FaultingException => {
                self.load_context(context, self.frame.at.wrapping_add(0x20))?;
                context.flags &= !self.generation.faulting_context_flags_lost();
                Ok(())
            }
            FrameKind::SoftwareException => {
                let source = self.frame.at.wrapping_add(0x120);
                for register in saved.iter().chain(&[Gpr::Rsp]) {
                    let at = source.wrapping_add(CONTEXT_RAX + 8 * u64::from(register.number()));
                    context.registers.set(*register, self.memory.read_u64(at)?);
                }
                Ok(())
            }
            FrameKind::Mark => Ok(()),
        }
    }

    const fn transition_block_size(&self) -> u64 {
        if self.generation.is_unix() { 0x68 } else { 0x48 }
    }

    /// Loads the callee-saved registers that lie in memory from `first` on.
    fn load(&self, context: &mut Context, first: u64) -> Result<(), Unreadable> {
        for (register, n) in callee_saved(self.generation).iter().zip(0..) {
            let value = self.memory.read_u64(first.wrapping_add(8 * n))?;
            context.registers.set(*register, value);
        }
        Ok(())
    }

    /// From a completed MachState: pointers to where the callee-saved registers lie; on Unix a null
    /// pointer stands for the value that was unwound.
    fn update_from_machine_state(&self, context: &mut Context) -> Result<(), Unreadable> {
        let unix = self.generation.is_unix();
        let (pointers, values) = if unix { (0x70, 0xA8) } else { (0x80, 0x40) };
        context.registers.set(Gpr::Rsp, self.field(0x38)?);
        for (register, n) in callee_saved(self.generation).iter().zip(0..) {
            let pointer = self.field(pointers + 8 * n)?;
            let value = if pointer == 0 {
                self.field(values + 8 * n)?
            } else {
                self.memory.read_u64(pointer)?
            };
            context.registers.set(*register, value);
        }
        Ok(())
    }

    fn load_context(&self, context: &mut Context, source: u64) -> Result<(), Unreadable> {
        let mut flags = [0; 4];
        self.memory.read(source.wrapping_add(CONTEXT_FLAGS), &mut flags)?;
        context.flags = u32::from_le_bytes(flags);
        for register in Gpr::ALL {
            let at = source.wrapping_add(CONTEXT_RAX + 8 * u64::from(register.number()));
            context.registers.set(register, self.memory.read_u64(at)?);
        }
        Ok(())
    }
}
