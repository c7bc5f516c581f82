//! Where the threads of a hang are in code that is neither the system's nor the runtime's.

use crate::input::native::NativeNames;
use clr_dump::{CoreDump, StoppedProcess as _};
use clr_inspect::{CodeKind, Runtime, StackWalker};

/// Frames of a thread at most.
const FRAMES: usize = 4;

/// The code of threads: of profilers, and of other native libraries of the application.
pub(super) struct Places<'p> {
    process: &'p CoreDump<'p>,
    walker: StackWalker<'p, 'p, CoreDump<'p>>,
    names: NativeNames<'p>,
    runtime: Option<String>,
}

impl<'p> Places<'p> {
    pub(super) fn new(process: &'p CoreDump<'p>) -> Self {
        let runtime = Runtime::find(process).ok();
        let walker = StackWalker::new(process, process.code_map(), runtime.as_ref());
        let runtime = runtime.map(|runtime| runtime.path().to_owned());
        Self { process, walker, names: NativeNames::new(process), runtime }
    }

    /// Returns the leafmost frames of a thread's own native code that have names, and lines where they are known.
    pub(super) fn of(&mut self, thread: u32) -> Vec<String> {
        let Some(thread) = self.process.thread(thread) else { return Vec::new() };
        let module = |rip| self.process.module_at(rip).map(|module| module.path.as_str());
        // The library in which threads wait is the system's.
        let system = module(thread.registers.rip).filter(|_| thread.system_call.is_some());
        let stack = self.walker.walk(&thread.registers);
        let own = stack.frames.iter().filter(|frame| {
            let path = module(frame.registers.rip);
            frame.code == CodeKind::Native && path != system && path != self.runtime.as_deref()
        });
        own.filter_map(|frame| self.names.at(frame.registers.rip, frame.position))
            .take(FRAMES)
            .collect()
    }
}
