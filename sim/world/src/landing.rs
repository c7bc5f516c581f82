//! The place where a thread goes on after an exception: the stack below it is gone.

use super::World;
use clr_runtime::FRAME_TOP;
use clr_runtime::frame::layout;
use clr_runtime::thread::{ThreadObject, offset};
use clr_unwind::{Gpr, Memory as _, Registers};

impl World<'_> {
    /// Cuts the shadow stack after the frame whose caller has this rsp (VA), keeping `more` further
    /// callers.
    pub(super) fn cut(&mut self, thread: usize, caller_sp: u64, more: usize) {
        if let Some(executed) = self.threads.get_mut(thread) {
            let callers = executed.shadow_stack.callers();
            let own = callers.iter().rposition(|caller| caller.registers.rsp() == caller_sp);
            if let Some(own) = own {
                executed.shadow_stack.cut(own + more);
            }
        }
    }

    /// Continues with a function (VA) as if a frame with these registers had called it.
    pub(super) fn call_from(&mut self, thread: usize, from: &Registers, function: u64) {
        let mut registers = *from;
        let sp = registers.rsp();
        let return_address = registers.rip.to_le_bytes();
        // The slot is writable: the frame has made a call before.
        let _ = self.runtime.memory.borrow_mut().write(sp.wrapping_sub(8), &return_address);
        registers.set(Gpr::Rsp, sp.wrapping_sub(8));
        registers.rip = function;
        self.go_on_with(thread, &registers, sp);
    }

    /// Continues with these registers; Frames below `limit` (VA) are gone.
    pub(super) fn go_on_with(&mut self, thread: usize, registers: &Registers, limit: u64) {
        let sp = registers.rsp();
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.pending.clear();
            executed.dispatches.retain(|dispatch| dispatch.sp >= sp);
        }
        self.runtime.memory.borrow_mut().cpu_mut().set_registers(registers);
        self.pop_frames(thread, limit);
        self.set_cooperative(thread, true);
        self.publish(thread);
    }

    /// Removes the Frames from the chain whose stack is gone.
    fn pop_frames(&mut self, thread: usize, limit: u64) {
        let Some(object) = self.object(thread) else { return };
        let memory = &mut *self.runtime.memory.borrow_mut();
        let top = object.0.wrapping_add(offset::TOP_FRAME);
        let Ok(first) = ThreadObject(object).top_frame(memory) else { return };
        let mut frame = first;
        while frame != FRAME_TOP && frame < limit {
            let Ok(next) = memory.read_u64(frame.wrapping_add(layout::NEXT)) else { return };
            frame = next;
        }
        if frame != first {
            // A Thread object of the world is always there.
            let _ = memory.write(top, &frame.to_le_bytes());
        }
    }
}
