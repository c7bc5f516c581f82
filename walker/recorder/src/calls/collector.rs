//! A thread that forces GCs: `collector=1`.
//!
//! The first JITCompilationFinished of the program's code starts the thread, and waits until it has ended. The line of a
//! call lists the callbacks that were made on the thread during the call.

use super::walks::result;
use super::{Block, NESTED, Trace};
use clr_walker::profiling::ProfilerInfo as _;

impl Trace {
    /// Starts the thread, waits for its end, and writes its block.
    pub(super) fn ask_collector(&self) {
        let mut block = Block::default();
        std::thread::scope(|scope| {
            let _ = scope.spawn(|| self.force_gcs(&mut block)).join();
        });
        self.write("A thread of the profiler", "", &block);
    }

    fn force_gcs(&self, block: &mut Block) {
        NESTED.set(Some(Vec::new()));
        block.add("GetCurrentThreadID", result(&self.info.get_current_thread_id()), "");
        self.force(block, "ForceGC");
        let own = self.info.get_current_thread_id();
        block.add("GetCurrentThreadID afterwards", result(&own), "");
        let own = own.unwrap_or_default();
        let os = self.info.get_thread_info(own);
        block.add("GetThreadInfo(own id)", result(&os), "");
        block.add("GetFunctionFromIP2(0)", result(&self.info.get_function_from_ip2(0)), "");
        let threads = self.info.enum_threads();
        let listed = threads.as_ref().is_ok_and(|threads| threads.contains(&own));
        let listed = if listed { "yes" } else { "no" };
        block.add("EnumThreads with the own one", result(&threads), listed);
        block.add_walk("DoStackSnapshot(NULL, 0)", &self.walk_own());
        self.ask_suspension(block);
        self.force(block, "ForceGC again");
    }

    /// Calls ForceGC, and lists the callbacks that it makes on this thread.
    pub(super) fn force(&self, block: &mut Block, call: &str) {
        let _ = Self::nested();
        // SAFETY: the call has no pointers.
        let forced = unsafe { self.raw.ForceGC() };
        block.add(call, forced, &Self::nested().join(" "));
    }
}
