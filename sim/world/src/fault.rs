//! Hardware faults in managed code, which become exceptions (C-160).

use super::{StepEvent, World, WorldError};
use crate::stubs::{RuntimeFunction, Shared};
use clr_machine::StopReason;
use clr_runtime::frame::layout;
use clr_unwind::{Gpr, Registers};

impl World<'_> {
    /// Handles a hardware fault in managed code as system and runtime do: it becomes an exception.
    pub(super) fn hardware_fault(
        &mut self,
        thread: usize,
        stop: StopReason,
    ) -> Result<StepEvent, WorldError> {
        const CS: u64 = 0x33;
        const SS: u64 = 0x2B;
        /// The red zone: memory below rsp may be in use on Unix.
        const RED_ZONE: u64 = 0x80;
        let registers = self.runtime.memory.borrow().cpu().registers();
        let helper = self.expanded.find(RuntimeFunction::Shared(Shared::HardwareFault));
        let entry = helper.and_then(|helper| self.linked.entries.get(helper.index()).copied());
        let (Some(entry), true) = (entry, self.runtime.code.find(registers.rip).is_some()) else {
            return Err(stop.into());
        };
        let below = if self.runtime.generation.is_unix() { RED_ZONE } else { 0 };
        let machine = &mut *self.runtime.memory.borrow_mut();
        let words = [registers.rip, CS, machine.cpu().rflags(), registers.rsp(), SS];
        let rsp = (registers.rsp().wrapping_sub(below) & !15).wrapping_sub(40);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if machine.write(rsp, &bytes).is_err() {
            return Err(stop.into());
        }
        machine.cpu_mut().set(Gpr::Rsp, rsp);
        machine.cpu_mut().set_rip(entry);
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.shadow_stack.interrupt(registers, None);
            executed.fault = registers;
        }
        Ok(StepEvent::Stepped)
    }

    /// Writes the registers of a fault into the Frame that describes it.
    pub(super) fn capture_fault(&mut self, thread: usize) {
        let flags = self.runtime.generation.faulting_context_flags();
        let Some(registers) = self.threads.get(thread).map(|thread| thread.fault) else { return };
        let machine = &mut *self.runtime.memory.borrow_mut();
        let context = machine.cpu().get(Gpr::R10);
        for (offset, bytes) in context_bytes(&registers, flags) {
            // The Frame is in the locals of the code that has called the service.
            let _ = machine.write(context.wrapping_add(offset), &bytes);
        }
    }
}

/// Returns the known fields of a CONTEXT, by offset.
fn context_bytes(registers: &Registers, flags: u32) -> Vec<(u64, Vec<u8>)> {
    let word = |value: u64| value.to_le_bytes().to_vec();
    let mut fields = vec![
        (layout::CONTEXT_FLAGS, word(flags.into())),
        (layout::CONTEXT_RIP, word(registers.rip)),
    ];
    for register in Gpr::ALL {
        let at = layout::CONTEXT_RAX + 8 * u64::from(register.number());
        fields.push((at, word(registers.get(register))));
    }
    for (value, n) in registers.xmm.iter().zip(0..) {
        fields.push((layout::CONTEXT_XMM6 + 16 * n, value.to_le_bytes().to_vec()));
    }
    fields
}
