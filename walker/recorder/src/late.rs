//! Walks that ended at code which the map does not have yet, made again over a copy of the stack.
//!
//! The runtime publishes a method before it calls `JITCompilationFinished`. Other threads may execute it,
//! and return to it from a stop for the GC, while the thread that has compiled it still waits for a
//! processor or for the code map. What the runtime keeps elsewhere about such a thread is that of a later
//! time, so the second walk uses the copy and the code alone: a hijacked return address, for which the first
//! one has asked the Thread object, ends it.

use crate::os::OwnProcess;
use crate::request::Sample;
use clr_unwind::{Memory, Registers, Unreadable};
use clr_walker::mixed::{Policy, WalkBuffer, Walker};
use clr_walker::profiling::{
    HResult, ModuleSource, ProfilerInfo, StackBounds, TargetThread, ThreadContext, ThreadId,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of samples that wait.
const MOST: usize = 64;
/// The time after which the map has the code, or never will.
const PATIENCE: Duration = Duration::from_millis(200);

/// Samples whose walks are made again.
#[derive(Debug)]
pub(crate) struct Late {
    waiting: VecDeque<Waiting>,
    /// The sample that was finished last.
    finished: Sample,
}

/// A sample that waits for code.
#[derive(Debug)]
struct Waiting {
    thread: ThreadId,
    nanoseconds: u64,
    stack: CopiedStack,
    since: Instant,
    /// Number of changes of the map before the walk that was made last, or fewer.
    changes: u64,
}

/// A thread at the time of its sample: its registers and stack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CopiedStack {
    registers: Registers,
    bounds: StackBounds,
    /// Address (VA) of the first byte of the copy.
    from: u64,
    copy: Vec<u8>,
}

impl Late {
    pub(crate) fn new() -> Self {
        Self { waiting: VecDeque::new(), finished: Sample::new(0) }
    }

    /// Keeps a sample whose walk may succeed later. Returns false if it may not, or if too many wait.
    /// `changes`: of the map, before the walk.
    pub(crate) fn keep(&mut self, sample: &Sample, changes: u64) -> bool {
        let is_kept =
            sample.buffer.lacks_code() && !sample.copy.is_empty() && self.waiting.len() < MOST;
        if is_kept {
            let copy = sample.copy.clone();
            let (registers, bounds, from) = (sample.registers, sample.stack, sample.copy_from);
            let stack = CopiedStack { registers, bounds, from, copy };
            let (thread, nanoseconds) = (sample.thread, sample.nanoseconds);
            self.waiting.push_back(Waiting {
                thread,
                nanoseconds,
                stack,
                since: Instant::now(),
                changes,
            });
        }
        is_kept
    }

    /// Makes walks again for which the map has changed. Returns a sample that is finished, well or not:
    /// after some time, or if `is_over`, any is.
    pub(crate) fn finish<I: ProfilerInfo, M: ModuleSource>(
        &mut self,
        info: &I,
        modules: &M,
        changes: u64,
        is_over: bool,
    ) -> Option<&Sample> {
        for _ in 0..self.waiting.len() {
            let mut waiting = self.waiting.pop_front()?;
            let is_final = is_over || waiting.since.elapsed() > PATIENCE;
            if !is_final && waiting.changes == changes {
                self.waiting.push_back(waiting);
                continue;
            }
            let buffer = &mut self.finished.buffer;
            if waiting.stack.walk(info, modules, buffer).is_ok()
                && (is_final || !buffer.lacks_code())
            {
                waiting.fill(&mut self.finished);
                return Some(&self.finished);
            }
            waiting.changes = changes;
            self.waiting.push_back(waiting);
        }
        None
    }
}

impl Waiting {
    /// Moves what belongs to the walk into the sample.
    fn fill(self, sample: &mut Sample) {
        let CopiedStack { registers, bounds, from, copy } = self.stack;
        sample.thread = self.thread;
        sample.nanoseconds = self.nanoseconds;
        sample.registers = registers;
        sample.stack = bounds;
        sample.copy_from = from;
        sample.copy = copy;
        sample.is_late = true;
    }
}

impl CopiedStack {
    fn walk<I: ProfilerInfo, M: ModuleSource>(
        &self,
        info: &I,
        modules: &M,
        buffer: &mut WalkBuffer,
    ) -> Result<(), I::Fatal> {
        Walker::new(info, modules, Policy::Signal).take(self, buffer)
    }
}

impl Memory for CopiedStack {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        if !self.bounds.contain(address) {
            return OwnProcess.read(address, buffer);
        }
        let at = address.checked_sub(self.from).and_then(|at| usize::try_from(at).ok());
        let bytes = at.and_then(|at| self.copy.get(at..)?.get(..buffer.len()));
        let bytes = bytes.ok_or(Unreadable { address, len: buffer.len() as u32 })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

/// The walk needs the thread's registers, stack and memory only.
impl TargetThread for CopiedStack {
    type Error = HResult;

    /// Returns no thread's id: the Thread object is that of a later time.
    fn id(&self) -> ThreadId {
        ThreadId(0)
    }

    fn stack(&self) -> StackBounds {
        self.bounds
    }

    fn suspend(&self) -> Result<(), HResult> {
        Err(HResult::NOT_IMPLEMENTED)
    }

    fn resume(&self) -> Result<(), HResult> {
        Err(HResult::NOT_IMPLEMENTED)
    }

    fn context(&self) -> Result<ThreadContext, HResult> {
        Ok(ThreadContext { registers: self.registers, flags: ThreadContext::FULL })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchdog::Silent;
    use clr_unwind::{CodeMap, CodeRegion, Convention, Gpr, Run, RuntimeFunction, SharedCodeMap};
    use clr_walker::profiling::StackRoot;
    use std::ops::Deref;

    const HEAP: u64 = 0x7F00_0000_0000;
    const STACK: u64 = 0x7FFF_0000_0000;

    struct Modules(SharedCodeMap<'static>);

    impl ModuleSource for Modules {
        fn code_map(&self) -> impl Deref<Target = CodeMap<'_>> {
            self.0.read()
        }
    }

    /// A method at `at`: a call, and 16 bytes of stack.
    fn method(at: u64) -> CodeRegion<'static> {
        let mut code = vec![0x90; 0x40];
        // sub rsp, 16; call
        code[..4].copy_from_slice(&[0x48, 0x83, 0xEC, 0x10]);
        code[0x1B] = 0xE8;
        let rva = (at - HEAP) as u32;
        let unwind_info = vec![1, 4, 1, 0, 4, 0x12, 0, 0];
        let runs = vec![Run { rva, bytes: code }, Run { rva: rva + 0x100, bytes: unwind_info }];
        let function = RuntimeFunction { begin: rva, end: rva + 0x40, unwind_info: rva + 0x100 };
        let region = CodeRegion::generated(at..at + 0x40, HEAP, &[function], runs).unwrap();
        region.with_convention(Convention::SystemV)
    }

    /// A sample of a thread in the method `leaf`, called by `caller`, which the thread's first function
    /// has called, on a stack that has changed since.
    fn sample(modules: &Modules, leaf: u64, caller: u64) -> Sample {
        let mut sample = Sample::new(0x100);
        sample.thread = ThreadId(7);
        sample.nanoseconds = 5;
        sample.stack =
            StackBounds { limit: STACK, base: STACK + 0x80, root: StackRoot::ReturnAddress(0) };
        sample.registers.rip = leaf + 0x10;
        sample.registers.set(Gpr::Rsp, STACK + 0x40);
        sample.copy_from = STACK + 0x40;
        let words = [0, 0, caller + 0x20, 0, 0, 0, 0, 0];
        sample.copy = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let stack = CopiedStack {
            registers: sample.registers,
            bounds: sample.stack,
            from: sample.copy_from,
            copy: sample.copy.clone(),
        };
        stack.walk(&Silent, modules, &mut sample.buffer).unwrap();
        sample
    }

    /// Returns a map that has the method `leaf` alone, and the addresses of `leaf` and its caller.
    fn without_caller() -> (Modules, u64, u64) {
        let (leaf, caller) = (HEAP + 0x1000, HEAP + 0x2000);
        let modules = Modules(SharedCodeMap::default());
        modules.0.update(|map| map.insert(method(leaf))).unwrap();
        (modules, leaf, caller)
    }

    fn frames(modules: &Modules, sample: &Sample) -> Vec<u64> {
        let walker = Walker::new(&Silent, modules, Policy::Signal);
        let Ok(stack) = walker.stitch(&sample.buffer);
        stack.frames.iter().map(|frame| frame.ip).collect()
    }

    #[test]
    fn a_walk_goes_on_when_the_map_has_the_callers_code() {
        let (modules, leaf, caller) = without_caller();
        let sample = sample(&modules, leaf, caller);
        let mut late = Late::new();
        assert!(late.keep(&sample, 1));
        assert!(late.finish(&Silent, &modules, 1, false).is_none(), "the map is the same");
        assert!(late.finish(&Silent, &modules, 2, false).is_none(), "it has got something else");
        modules.0.update(|map| map.insert(method(caller))).unwrap();
        assert!(late.finish(&Silent, &modules, 2, false).is_none(), "nothing is known to be new");
        let finished = late.finish(&Silent, &modules, 3, false).unwrap();
        assert!(finished.is_late && !finished.buffer.lacks_code());
        assert_eq!((finished.thread, finished.nanoseconds), (ThreadId(7), 5));
        assert_eq!((finished.copy_from, &finished.copy), (sample.copy_from, &sample.copy));
        assert_eq!(frames(&modules, finished), [leaf + 0x10, caller + 0x20]);
        assert!(late.finish(&Silent, &modules, 4, true).is_none(), "none waits");
    }

    #[test]
    fn a_sample_that_stays_short_is_finished_in_the_end() {
        let (modules, leaf, caller) = without_caller();
        let sample = sample(&modules, leaf, caller);
        let mut late = Late::new();
        assert!(late.keep(&sample, 1));
        assert!(late.finish(&Silent, &modules, 2, false).is_none());
        let finished = late.finish(&Silent, &modules, 2, true).unwrap();
        assert!(finished.buffer.lacks_code());
    }

    #[test]
    fn whole_walks_and_those_beyond_the_limit_do_not_wait() {
        let (modules, leaf, caller) = without_caller();
        let short = sample(&modules, leaf, caller);
        modules.0.update(|map| map.insert(method(caller))).unwrap();
        let mut late = Late::new();
        assert!(!late.keep(&sample(&modules, leaf, caller), 1));
        let mut without_copy = sample(&Modules(SharedCodeMap::default()), leaf, caller);
        assert!(without_copy.buffer.lacks_code());
        without_copy.copy.clear();
        assert!(!late.keep(&without_copy, 1));
        assert!((0..MOST).all(|_| late.keep(&short, 1)));
        assert!(!late.keep(&short, 1));
    }
}
