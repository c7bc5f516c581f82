//! Calls in a signal handler, for the thread that it interrupts in a method.
//!
//! There no lock of the runtime is held. In native code the thread may hold one that a call takes, or
//! wait for the end of a suspension, in which a call waits a second time and for ever.

use super::call::INTERRUPTED;
use super::capture::{Capture, Stop};
use super::managed::ManagedCode;
use super::recording::Record;
use super::walk::{Situation, Suspension, Thread};
use clr_sampler::{Process, RED_ZONE, Slot, threads};
use clr_unwind::Registers;
use clr_walker::profiling::ModuleSource as _;

/// DoStackSnapshot and the kernel's frame need this much of a stack, in bytes.
const ROOM: u64 = 96 << 10;

/// Room for the calls of a handler.
pub(super) type Signals = Slot<Interrupted>;

/// The calls of a handler.
#[derive(Debug)]
pub(super) struct Interrupted {
    capture: Capture,
    /// The bases of images with managed code (VA), ascending.
    images: Vec<u64>,
}

impl Interrupted {
    pub(super) fn new() -> Self {
        Self { capture: Capture::new(), images: Vec::new() }
    }
}

impl Record {
    /// Interrupts each thread, and writes its calls.
    pub(super) fn interrupt_all(&self, process: &Process) {
        let (Some(signals), Some(vtables)) = (&self.signals, self.vtables()) else { return };
        for index in 0..threads::MOST {
            // The thread's end waits for this.
            let _walking = process.walking();
            let Some(thread) = process.threads.get(index) else { continue };
            let quiet = self.suspensions.quiet();
            let images = process.code.managed_images();
            let prepare = |room: &mut Interrupted| {
                room.capture.clear();
                room.images = images;
            };
            // SAFETY: only the recorder's own thread asks, and is done with an answer before the next one.
            let room = unsafe { signals.ask(thread.tid(), index, prepare) };
            let Some(Interrupted { capture, .. }) = room else { continue };
            let name = if capture.is_cooperative(&self.layout) {
                "signal:coop-managed"
            } else {
                "signal:preemptive-managed"
            };
            let situation = Situation {
                name,
                is_own: true,
                is_managed_walker: true,
                suspended: Suspension::Nothing,
            };
            self.write_capture(process, vtables, situation, capture, quiet);
        }
    }

    /// Makes calls in the handler that has interrupted the calling thread with these registers.
    pub(super) fn in_signal(
        &self,
        process: &Process,
        number: u32,
        thread: &threads::Thread,
        registers: &Registers,
    ) {
        let (Some(signals), Some(vtables)) = (&self.signals, self.vtables.get()) else { return };
        signals.fill(number, |room| {
            let map = process.code.code_map();
            let code = ManagedCode::new(&map, &room.images);
            let (stack, sp) = (thread.stack(), registers.rsp());
            let has_room = stack.contain(sp) && sp - stack.limit > ROOM;
            let is_suspending = process.is_suspending();
            if has_room && !is_suspending && code.find(registers.rip).is_some() {
                let stop = Stop {
                    target: thread.id(),
                    thread: Thread::Null,
                    stack,
                    registers,
                    low: sp - RED_ZONE,
                    origin: &INTERRUPTED,
                };
                // SAFETY: the calling thread, which the handler has interrupted above these bytes.
                unsafe { room.capture.take(&process.info, code, &stop, (&self.layout, vtables)) };
            }
        });
    }
}
