//! Walks that ended at code which the map does not have yet, made again over a copy of the stack.
//!
//! The runtime publishes a method before it calls `JITCompilationFinished`. Other threads may execute it,
//! and return to it from a stop for the GC, while the thread that has compiled it still waits for a
//! processor or for the code map. The runtime's own state has moved on by then, so the
//! second walk uses only the copied stack and the code. A hijacked return address, for which the first one has
//! asked the Thread object, ends it.

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
pub struct Retry {
    waiting: VecDeque<Waiting>,
    /// The sample that was finished last.
    finished: Sample,
}

/// A sample that waits for code.
#[derive(Debug)]
struct Waiting {
    thread: ThreadId,
    taken_at: u64,
    nanoseconds: u64,
    stack: CopiedStack,
    since: Instant,
    /// Number of changes of the map before the walk that was made last, or fewer.
    changes: u64,
}

/// A thread at the time of its sample: its registers and stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedStack {
    /// The registers.
    pub registers: Registers,
    /// The bounds of the stack.
    pub bounds: StackBounds,
    /// Address (VA) of the first byte of the copy.
    pub from: u64,
    /// The stack from there to its base.
    pub copy: Vec<u8>,
    /// As of the sample.
    pub thread_pointer: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), finished: Sample::new(0) }
    }
}

impl Retry {
    /// Keeps a sample whose walk may succeed later. Returns false if it may not, or if too many wait.
    /// `changes`: of the map, before the walk.
    pub fn keep(&mut self, sample: &Sample, changes: u64) -> bool {
        let is_kept =
            sample.buffer.lacks_code() && !sample.copy.is_empty() && self.waiting.len() < MOST;
        if is_kept {
            let (copy, thread_pointer) = (sample.copy.clone(), sample.thread_pointer);
            let (registers, bounds, from) = (sample.registers, sample.stack, sample.copy_from);
            let stack = CopiedStack { registers, bounds, from, copy, thread_pointer };
            let &Sample { thread, taken_at, nanoseconds, .. } = sample;
            self.waiting.push_back(Waiting {
                thread,
                taken_at,
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
    pub fn finish<I: ProfilerInfo, M: ModuleSource>(
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
        let CopiedStack { registers, bounds, from, copy, thread_pointer } = self.stack;
        sample.thread = self.thread;
        sample.taken_at = self.taken_at;
        sample.nanoseconds = self.nanoseconds;
        sample.registers = registers;
        sample.thread_pointer = thread_pointer;
        sample.stack = bounds;
        sample.copy_from = from;
        sample.copy = copy;
        sample.is_late = true;
    }
}

impl CopiedStack {
    /// Walks the copy by the code map.
    ///
    /// # Errors
    /// The event that ends a simulated process.
    pub fn walk<I: ProfilerInfo, M: ModuleSource>(
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
