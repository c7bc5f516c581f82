//! Execution of a program on the machine, with the shadow stack and the outside world: services,
//! interrupts, the end.

use crate::shadow_stack::{Broken, ShadowStack};
use crate::{
    CodeKind, EntryForm, Format, FunctionIndex, LinkedProgram, MAX_SIGNAL_STACK, Program,
    ReadBackError, SIGNAL_CONTEXT, THROW, Unit,
};
use clr_machine::{
    Access, Cause, Fault, Machine, MapError, Observer as _, PAGE_SIZE, Protection, SplitMix64,
    StopReason,
};
use clr_unwind::{ElfImage, Gpr, Memory as _, PeImage, Registers, Section};
use thiserror::Error;

/// Return address of a thread's first function (VA): an address without code.
pub const BASE: u64 = 0x1_6000_0000;

/// End of a thread's stack, exclusive (VA).
pub const STACK_TOP: u64 = 0x7F_F000_0000;

/// End of the alternate stack for signals, exclusive (VA). It is above the thread's stack, so a
/// walk that returns from it goes down.
pub const SIGNAL_STACK_TOP: u64 = STACK_TOP + 0x800_0000;

const RETURNED: u32 = 0;
const THROWN: u32 = 1;

/// Size of the stack above the first function's return address, for its home space.
const ABOVE: u64 = 0x80;

/// The exit of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExecutionEnd {
    /// The first function returned.
    #[error("returned")]
    Returned,
    /// The program stopped with a `Stop` statement.
    #[error("stopped")]
    Stopped,
    /// An exception was not caught.
    #[error("an exception was not caught")]
    Uncaught,
    /// The code cannot continue, mostly because the stack is exhausted.
    #[error("{0}")]
    Fault(#[from] StopReason),
    /// The stack has no room for an interrupt.
    #[error("an interrupt {0}")]
    NoStack(Fault),
    /// A function violated the calling convention, which is a bug in the code generator.
    #[error("{0}")]
    Broken(Broken),
}

/// The reason why a program cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramLoadError {
    /// The images cannot be read back.
    #[error(transparent)]
    ReadBack(#[from] ReadBackError),
    /// The memory cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The memory cannot be written.
    #[error(transparent)]
    Write(#[from] Fault),
    /// The function does not exist, or is entered by interrupts.
    #[error("there is no function {} that can be called", .0.0)]
    Start(FunctionIndex),
}

/// A thread of a program that is being executed.
#[derive(Debug)]
pub struct Execution<'p> {
    program: &'p Program,
    linked: &'p LinkedProgram,
    machine: Machine,
    shadow_stack: ShadowStack,
    next_interrupt: usize,
}

impl<'p> Execution<'p> {
    /// Loads a program and calls its function `start`. `seed` determines the initial register
    /// values.
    ///
    /// # Errors
    /// Returns [`ProgramLoadError`] if the program cannot be loaded.
    pub fn new(
        program: &'p Program,
        linked: &'p LinkedProgram,
        start: FunctionIndex,
        seed: u64,
    ) -> Result<Self, ProgramLoadError> {
        let callable = program.functions.get(start.index());
        let entry = linked.entries.get(start.index());
        let (Some(EntryForm::Call), Some(&entry)) = (callable.map(|f| f.shape.entry), entry) else {
            return Err(ProgramLoadError::Start(start));
        };
        let mut machine = Machine::new();
        for unit in &linked.units {
            load(&mut machine, unit)?;
        }
        let stride = linked.stack_stride;
        machine.map(STACK_TOP - stride, stride / PAGE_SIZE, Protection::READ_WRITE)?;
        let alternate = u64::from(program.signal_stack.min(MAX_SIGNAL_STACK)).div_ceil(PAGE_SIZE);
        if alternate > 0 {
            let start = SIGNAL_STACK_TOP - alternate * PAGE_SIZE;
            machine.map(start, alternate, Protection::READ_WRITE)?;
        }
        for unit in &linked.units {
            // One more stack, since the first switch leaves room above itself.
            let size = (program.other_stacks(unit.kind) + 1) * stride;
            if size > stride {
                let start = unit.kind.other_stacks() - size;
                machine.map(start, size / PAGE_SIZE, Protection::READ_WRITE)?;
            }
        }
        machine.add_trap(BASE, RETURNED);
        machine.add_trap(THROW, THROWN);
        let mut registers = initial_registers(seed);
        registers.set(Gpr::Rsp, STACK_TOP - ABOVE);
        registers.rip = BASE;
        let mut shadow_stack = ShadowStack::new(program.convention);
        shadow_stack.call(registers);
        let rsp = registers.rsp() - 8;
        machine.write(rsp, &BASE.to_le_bytes())?;
        registers.set(Gpr::Rsp, rsp);
        registers.rip = entry;
        machine.cpu_mut().set_registers(&registers);
        Ok(Self { program, linked, machine, shadow_stack, next_interrupt: 0 })
    }

    /// Returns the machine.
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns a mutable reference to the machine.
    pub const fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Returns the shadow stack.
    pub const fn shadow_stack(&self) -> &ShadowStack {
        &self.shadow_stack
    }

    /// Returns the linked program.
    pub const fn linked(&self) -> &'p LinkedProgram {
        self.linked
    }

    /// Proceeds to the next instruction boundary in the program's code: executes an instruction, or
    /// enters the handler of an interrupt that is due.
    ///
    /// # Errors
    /// Returns [`ExecutionEnd`] at the end. After a fault, a stop or an interrupt without stack, the
    /// machine is unchanged; otherwise it is at the place that control reached.
    pub fn step(&mut self) -> Result<(), ExecutionEnd> {
        if let Some(interrupt) = self.program.interrupts.get(self.next_interrupt)
            && interrupt.after <= self.machine.executed()
        {
            self.next_interrupt += 1;
            let registers = self.machine.cpu().registers();
            return self.interrupt(&registers, None, interrupt.handler);
        }
        let stop = match self.machine.step_with(&mut self.shadow_stack) {
            Ok(()) => match self.machine.cpu().rip() {
                THROW => return self.throw(),
                BASE => return Err(self.check(ExecutionEnd::Returned)),
                _ => {
                    return self
                        .shadow_stack
                        .broken()
                        .map_or(Ok(()), |b| Err(ExecutionEnd::Broken(b)));
                }
            },
            Err(stop) => stop,
        };
        match stop {
            StopReason::Int3 { address } => {
                let placed = self.linked.instruction(address);
                let Some(handler) = placed.and_then(|placed| placed.handler) else {
                    return Err(ExecutionEnd::Fault(stop));
                };
                let mut registers = self.machine.cpu().registers();
                registers.rip = address + 1;
                self.interrupt(&registers, Some(address), handler)
            }
            StopReason::System { address } if self.ends_signal(address) => {
                self.end_signal(address).map_err(ExecutionEnd::NoStack)?;
                self.shadow_stack
                    .broken()
                    .map_or(Ok(()), |broken| Err(ExecutionEnd::Broken(broken)))
            }
            StopReason::System { .. } => Err(self.check(ExecutionEnd::Stopped)),
            StopReason::Trap { id: RETURNED, .. } => Err(self.check(ExecutionEnd::Returned)),
            StopReason::Trap { id: THROWN, .. } => self.throw(),
            stop => Err(ExecutionEnd::Fault(stop)),
        }
    }

    /// Calls code from the current position, as if the next instruction followed a call of it. This
    /// is how a runtime calls funclets. Arguments are set in the registers before.
    ///
    /// # Errors
    /// Returns [`ExecutionEnd::NoStack`] if there is no room for the return address. Nothing has changed
    /// then.
    pub fn call(&mut self, target: u64) -> Result<(), ExecutionEnd> {
        let registers = self.machine.cpu().registers();
        let rsp = registers.rsp().wrapping_sub(8);
        self.machine.write(rsp, &registers.rip.to_le_bytes()).map_err(ExecutionEnd::NoStack)?;
        self.shadow_stack.call(registers);
        let cpu = self.machine.cpu_mut();
        cpu.set(Gpr::Rsp, rsp);
        cpu.set_rip(target);
        Ok(())
    }

    fn check(&self, outcome: ExecutionEnd) -> ExecutionEnd {
        self.shadow_stack.broken().map_or(outcome, ExecutionEnd::Broken)
    }

    /// Pushes a machine frame, as a processor does, and continues in the handler.
    fn interrupt(
        &mut self,
        registers: &Registers,
        from: Option<u64>,
        handler: FunctionIndex,
    ) -> Result<(), ExecutionEnd> {
        const CS: u64 = 0x33;
        const SS: u64 = 0x2B;
        let entry = self.linked.entries.get(handler.index()).copied().unwrap_or(BASE);
        let function = self.program.functions.get(handler.index());
        if function.is_some_and(|function| function.shape.entry == EntryForm::Signal) {
            return self.signal(registers, from, entry).map_err(ExecutionEnd::NoStack);
        }
        let error_code =
            function.is_some_and(|f| f.shape.entry == EntryForm::InterruptWithErrorCode);
        let flags = self.machine.cpu().rflags();
        let words = [0xE44, registers.rip, CS, flags, registers.rsp(), SS];
        let words = if error_code { &words[..] } else { &words[1..] };
        let rsp = (registers.rsp() & !15).wrapping_sub(8 * words.len() as u64);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.machine.write(rsp, &bytes).map_err(ExecutionEnd::NoStack)?;
        self.shadow_stack.interrupt(*registers, from);
        let cpu = self.machine.cpu_mut();
        cpu.set(Gpr::Rsp, rsp);
        cpu.set_rip(entry);
        Ok(())
    }

    /// Returns the address of the kernel's signal frame: below the red zone, or on the alternate
    /// stack if there is one and the thread is not on it already.
    fn signal_context(&self, rsp: u64) -> Result<u64, Fault> {
        const RED_ZONE: u64 = 128;
        let size = u64::from(self.program.signal_stack.min(MAX_SIGNAL_STACK));
        let alternate = SIGNAL_STACK_TOP - size..=SIGNAL_STACK_TOP;
        let on_it = size > 0 && alternate.contains(&rsp);
        let from = if size > 0 && !on_it { SIGNAL_STACK_TOP } else { rsp.wrapping_sub(RED_ZONE) };
        let context = from.wrapping_sub(SIGNAL_CONTEXT.size) & !15;
        let slot = context.wrapping_sub(8);
        if size > 0 && !alternate.contains(&slot) {
            return Err(Fault { address: slot, access: Access::Write, cause: Cause::Unmapped });
        }
        Ok(context)
    }

    /// Saves all registers, as Linux does, and calls the handler.
    fn signal(
        &mut self,
        registers: &Registers,
        from: Option<u64>,
        entry: u64,
    ) -> Result<(), Fault> {
        let trampoline = self.linked.signal_return.unwrap_or(BASE);
        let context = self.signal_context(registers.rsp())?;
        let mut bytes = vec![0; SIGNAL_CONTEXT.size as usize];
        let flags = self.machine.cpu().rflags();
        let saved = SIGNAL_CONTEXT.registers.map(|(register, at)| (at, registers.get(register)));
        let others = [
            (SIGNAL_CONTEXT.rsp, registers.rsp()),
            (SIGNAL_CONTEXT.rip, registers.rip),
            (SIGNAL_CONTEXT.rflags, flags),
        ];
        for (at, value) in saved.into_iter().chain(others) {
            let slot =
                bytes.get_mut(at.cast_unsigned() as usize..).and_then(<[u8]>::first_chunk_mut);
            if let Some(slot) = slot {
                *slot = value.to_le_bytes();
            }
        }
        self.machine.write(context, &bytes)?;
        self.machine.write(context.wrapping_sub(8), &trampoline.to_le_bytes())?;
        self.shadow_stack.interrupt(*registers, from);
        let cpu = self.machine.cpu_mut();
        // The signal's number, its siginfo_t, its ucontext_t.
        cpu.set(Gpr::Rdi, 10);
        cpu.set(Gpr::Rsi, context.wrapping_add(304));
        cpu.set(Gpr::Rdx, context);
        cpu.set(Gpr::Rsp, context);
        cpu.set_rip(trampoline);
        self.shadow_stack.call(cpu.registers());
        cpu.set(Gpr::Rsp, context.wrapping_sub(8));
        cpu.set_rip(entry);
        Ok(())
    }

    /// Returns true if the system call at `address` is rt_sigreturn.
    fn ends_signal(&self, address: u64) -> bool {
        let placed = |address| self.linked.instruction(address);
        self.linked.signal_return.is_some_and(|trampoline| {
            placed(trampoline).is_some_and(|first| address == trampoline + u64::from(first.len))
        })
    }

    /// Restores the registers that were saved for a signal.
    fn end_signal(&mut self, from: u64) -> Result<(), Fault> {
        let context = self.machine.cpu().rsp();
        let read = |at: i32| self.machine.read_u64(context.wrapping_add(at.cast_unsigned().into()));
        let refused = |_| Fault { address: context, access: Access::Read, cause: Cause::Unmapped };
        let mut registers = self.machine.cpu().registers();
        for (register, at) in SIGNAL_CONTEXT.registers {
            registers.set(register, read(at).map_err(refused)?);
        }
        registers.set(Gpr::Rsp, read(SIGNAL_CONTEXT.rsp).map_err(refused)?);
        registers.rip = read(SIGNAL_CONTEXT.rip).map_err(refused)?;
        let flags = read(SIGNAL_CONTEXT.rflags).map_err(refused)?;
        let cpu = self.machine.cpu_mut();
        cpu.set_registers(&registers);
        cpu.set_rflags(flags);
        self.shadow_stack.on_interrupt_return(cpu, from);
        Ok(())
    }

    /// Cuts the stack to the innermost frame that catches, and restores that frame's own registers,
    /// as exception handling does.
    fn throw(&mut self) -> Result<(), ExecutionEnd> {
        let caught =
            self.shadow_stack.callers().iter().enumerate().rev().find_map(|(index, caller)| {
                let placed = self.linked.instruction(caller.from?)?;
                let mut registers = caller.registers;
                registers.set(Gpr::Rsp, registers.rsp().wrapping_add(placed.arguments.into()));
                Some((index, placed.landing?, registers))
            });
        let Some((index, landing, mut registers)) = caught else {
            return Err(self.check(ExecutionEnd::Uncaught));
        };
        registers.rip = landing;
        self.leave_stacks(index).map_err(ExecutionEnd::NoStack)?;
        self.shadow_stack.cut(index);
        self.machine.cpu_mut().set_registers(&registers);
        Ok(())
    }
}

impl Execution<'_> {
    /// Releases the stacks that were switched to by frames beyond the `kept` outermost callers.
    fn leave_stacks(&mut self, kept: usize) -> Result<(), Fault> {
        let stride = self.linked.stack_stride;
        let dropped = self.shadow_stack.callers().get(kept..).unwrap_or_default();
        for from in dropped.iter().filter_map(|caller| caller.from) {
            if !self.linked.instruction(from).is_some_and(|placed| placed.switches_stack) {
                continue;
            }
            let here = |unit: &&Unit| from.wrapping_sub(unit.base) < CodeKind::SPACING;
            if let Some(unit) = self.linked.units.iter().find(here)
                && let Ok(end) = self.machine.read_u64(unit.stack_cell)
            {
                self.machine.write(unit.stack_cell, &(end + stride).to_le_bytes())?;
            }
        }
        Ok(())
    }
}

/// Maps a unit of a linked program into a machine: an image by its sections, code of a heap with its cells.
///
/// # Errors
/// [`ProgramLoadError`] if the image cannot be read back, or its pages are mapped already.
pub fn load(machine: &mut Machine, unit: &Unit) -> Result<(), ProgramLoadError> {
    let sections = match unit.format {
        Format::Heap => None,
        Format::Pe => {
            Some(PeImage::parse(&unit.bytes).map_err(ReadBackError::Image)?.sections().clone())
        }
        Format::Elf => {
            Some(ElfImage::parse(&unit.bytes).map_err(ReadBackError::Elf)?.sections().clone())
        }
    };
    if let Some(sections) = sections {
        for &Section { rva, bytes, executable } in sections.as_slice() {
            let protection =
                if executable { Protection::READ_EXECUTE } else { Protection::READ_WRITE };
            put(machine, unit.base + u64::from(rva), bytes, protection)?;
        }
        return Ok(());
    }
    put(machine, unit.base, &unit.bytes, Protection::READ_EXECUTE)?;
    put(machine, unit.cells.0, &unit.cells.1, Protection::READ_WRITE)
}

fn put(
    machine: &mut Machine,
    start: u64,
    bytes: &[u8],
    protection: Protection,
) -> Result<(), ProgramLoadError> {
    machine.map(start, (bytes.len() as u64).div_ceil(PAGE_SIZE), protection)?;
    machine.write(start, bytes)?;
    Ok(())
}

/// Returns arbitrary register values, all different.
pub fn initial_registers(seed: u64) -> Registers {
    let mut random = SplitMix64(seed);
    let gpr = core::array::from_fn(|_| random.draw());
    let xmm = core::array::from_fn(|_| u128::from(random.draw()) << 64 | u128::from(random.draw()));
    Registers { rip: 0, gpr, xmm }
}
