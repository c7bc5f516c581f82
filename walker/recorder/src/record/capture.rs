//! Calls for a stopped thread, which may hold any lock: while they are made nothing is allocated, and no
//! lock of the recorder is taken. All that is needed of the thread is copied, to be written afterwards.

use super::call::{self, Origin};
use super::frames::{self, Chain};
use super::layout::{Layout, Shape, field};
use super::managed::ManagedCode;
use super::recording::Record;
use super::vtables::Vtables;
use super::walk::{Answer, Call, Situation, Suspension, Thread, Walk};
use clr_com::RuntimeInfo;
use clr_sampler::{
    Process,
    os::{self, OwnProcess},
};
use clr_unwind::{Memory, Registers, Unreadable};
#[cfg(any(windows, test))]
use clr_walker::mixed::Stopped;
#[cfg(any(windows, test))]
use clr_walker::profiling::TargetThread;
use clr_walker::profiling::{HResult, StackBounds, StackRoot, ThreadId};

/// Maximum number of bytes of a stack.
const MOST_BYTES: usize = 512 << 10;
/// Number of bytes of a Thread object that are read.
const OBJECT: usize = 0x20;
/// Number of bytes of a CONTEXT that walks read.
const CONTEXT: usize = 0x100;
/// Maximum number of calls.
const CALLS: usize = 7;

/// A piece of memory that was copied.
#[derive(Debug)]
struct Copy {
    /// Address of the first byte (VA).
    from: u64,
    /// The bytes, within the capacity that the copy was made with.
    bytes: Vec<u8>,
}

impl Copy {
    fn new(room: usize) -> Self {
        Self { from: 0, bytes: Vec::with_capacity(room) }
    }

    /// Makes room for bytes from an address (VA) on; `None` if there is not enough.
    fn room(&mut self, from: u64, len: usize) -> Option<&mut [u8]> {
        self.from = from;
        self.bytes.clear();
        if len > self.bytes.capacity() {
            return None;
        }
        self.bytes.resize(len, 0);
        Some(&mut self.bytes)
    }

    /// Copies memory, if it can be read.
    fn take(&mut self, from: u64, len: usize) {
        let is_read =
            self.room(from, len).is_some_and(|bytes| OwnProcess.read(from, bytes).is_ok());
        if !is_read {
            self.bytes.clear();
        }
    }

    fn get(&self, address: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(address.checked_sub(self.from)?).ok()?;
        self.bytes.get(start..start.checked_add(len)?)
    }
}

/// Calls for a stopped thread, and the memory that they read.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) target: ThreadId,
    pub(super) stack: StackBounds,
    /// The thread's registers.
    pub(super) leaf: Registers,
    object: Copy,
    used: Copy,
    /// The CONTEXT that a ResumableFrame points to.
    context: Copy,
    /// The calls, the first `count` of which were made.
    calls: Vec<(Call, Answer)>,
    count: usize,
}

/// The thread of a capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop<'r> {
    pub(super) target: ThreadId,
    /// The argument for it.
    pub(super) thread: Thread,
    pub(super) stack: StackBounds,
    pub(super) registers: &'r Registers,
    /// The lowest byte of the stack that is in use (VA).
    pub(super) low: u64,
    pub(super) origin: &'static Origin,
}

impl Capture {
    pub(super) fn new() -> Self {
        let unused = Call::unseeded(Thread::Null);
        Self {
            target: ThreadId(0),
            stack: StackBounds { limit: 0, base: 0, root: StackRoot::Undefined },
            leaf: Registers::default(),
            object: Copy::new(OBJECT),
            used: Copy::new(MOST_BYTES),
            context: Copy::new(CONTEXT),
            calls: (0..CALLS).map(|_| (unused, Answer::with_room())).collect(),
            count: 0,
        }
    }

    /// Forgets the last calls.
    pub(super) const fn clear(&mut self) {
        self.count = 0;
    }

    /// Returns true if the thread is in cooperative mode.
    #[cfg(target_os = "linux")]
    pub(super) fn is_cooperative(&self, layout: &Layout) -> bool {
        let mode = self.read_u64(self.target.0.wrapping_add(layout.cooperative));
        mode.is_ok_and(|mode| mode as u32 != 0)
    }

    /// Returns the calls that were made.
    pub(super) fn calls(&self) -> &[(Call, Answer)] {
        self.calls.get(..self.count).unwrap_or_default()
    }

    /// Suspends a thread while `take` makes calls for it, with the registers that it was stopped with. Keeps no call
    /// if these are others afterwards: a thread that suspends the runtime has redirected this one meanwhile, and some
    /// calls have found other registers than the recorder.
    #[cfg(any(windows, test))]
    pub(super) fn take_stopped<T: TargetThread>(
        &mut self,
        target: &T,
        take: impl FnOnce(&mut Self, &Registers),
    ) {
        self.clear();
        let Ok(stopped) = Stopped::suspend(target) else { return };
        let Ok(context) = stopped.context() else { return };
        take(self, &context.registers);
        let is_same = stopped.context().is_ok_and(|now| now.registers == context.registers);
        if !is_same {
            self.clear();
        }
    }

    /// Makes the calls, and copies the memory.
    ///
    /// # Safety
    /// The thread is stopped, or is the calling one. From `low` on its stack is in use.
    #[inline(never)]
    pub(super) unsafe fn take(
        &mut self,
        info: &RuntimeInfo,
        code: ManagedCode<'_, '_>,
        stop: &Stop<'_>,
        (layout, vtables): (&Layout, &Vtables),
    ) {
        (self.target, self.stack, self.leaf) = (stop.target, stop.stack, *stop.registers);
        self.count = 0;
        self.object.take(stop.target.0, OBJECT);
        // SAFETY: as the caller promises.
        if !unsafe { self.copy_stack(stop.low) } {
            return;
        }
        let seeds = call::seeds(code, stop.registers, self, stop.origin);
        let seeded = seeds.into_iter().flatten().map(|seed| Call::seeded(stop.thread, seed));
        let calls = Call::all_unseeded(stop.thread).into_iter().chain(seeded);
        for ((place, answer), call) in self.calls.iter_mut().zip(calls) {
            *place = call;
            call.make_into(info, stop.target, answer);
            self.count += 1;
        }
        // The calls complete Frames.
        // SAFETY: as before.
        unsafe { self.copy_stack(stop.low) };
        let resumable = frames::iterate(stop.target, layout, vtables, self)
            .find(|frame| frame.kind.shape == Shape::Resumable);
        let context = resumable.and_then(|frame| self.read_u64(frame.at + field::FIRST).ok());
        self.context.bytes.clear();
        if let Some(context) = context {
            self.context.take(context, CONTEXT);
        }
    }

    /// Copies the stack from `low` (VA) on. Returns false if it is too large.
    ///
    /// # Safety
    /// As of [`take`](Self::take).
    unsafe fn copy_stack(&mut self, low: u64) -> bool {
        let len = usize::try_from(self.stack.base.saturating_sub(low)).unwrap_or(usize::MAX);
        let Some(bytes) = self.used.room(low, len) else { return false };
        // SAFETY: from the lowest byte in use to the base.
        unsafe { os::copy_stack(low, bytes) };
        true
    }
}

impl Record {
    /// Writes the calls of a stopped thread. `quiet`: of suspensions, from before the first call.
    pub(super) fn write_capture(
        &self,
        process: &Process,
        vtables: &Vtables,
        situation: Situation,
        capture: &Capture,
        quiet: Option<u32>,
    ) {
        let (target, stack) = (capture.target, capture.stack);
        let chain = Chain::of(target, stack, &self.layout, vtables, capture);
        let Some(chain) = chain else { return };
        let was_quiet = quiet.is_some() && quiet == self.suspensions.quiet();
        if !was_quiet && !chain.is_cooperative {
            return;
        }
        for (call, answer) in capture.calls() {
            self.note_start(answer);
            if self.wanted.takes(&situation, call, &chain, answer) {
                let (chain, answer) = (chain.clone(), answer.clone());
                let number = self.number(target);
                let mut walk = Walk::new(situation, call, number, stack, chain, answer);
                walk.leaf = (situation.suspended == Suspension::Target).then_some(capture.leaf);
                self.write(process, &self.complete(walk, process, capture));
            }
        }
    }
}

impl Answer {
    /// Makes an empty one whose callbacks need no more room.
    pub(super) fn with_room() -> Self {
        Self { result: HResult::OK, reports: Vec::with_capacity(call::MOST_REPORTS), count: 0 }
    }
}

/// Copied memory, and other memory as it is now.
impl Memory for Capture {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let copies = [&self.object, &self.used, &self.context];
        match copies.into_iter().find_map(|copy| copy.get(address, buffer.len())) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => OwnProcess.read(address, buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_walker::profiling::ThreadContext;
    use std::cell::{Cell, RefCell};

    /// A thread with the addresses (VA) at which it is found, one after the other.
    struct Target {
        found_at: RefCell<Vec<u64>>,
        suspended: Cell<i32>,
    }

    impl Memory for Target {
        fn read(&self, _address: u64, _buffer: &mut [u8]) -> Result<(), Unreadable> {
            Ok(())
        }
    }

    impl TargetThread for Target {
        type Error = i32;

        fn id(&self) -> ThreadId {
            ThreadId(0)
        }

        fn stack(&self) -> StackBounds {
            StackBounds { limit: 0, base: 0, root: StackRoot::Undefined }
        }

        fn suspend(&self) -> Result<(), i32> {
            self.suspended.set(self.suspended.get() + 1);
            Ok(())
        }

        fn resume(&self) -> Result<(), i32> {
            self.suspended.set(self.suspended.get() - 1);
            Ok(())
        }

        fn context(&self) -> Result<ThreadContext, i32> {
            let rip = self.found_at.borrow_mut().pop().ok_or(5)?;
            let registers = Registers { rip, ..Registers::default() };
            Ok(ThreadContext { registers, flags: ThreadContext::FULL })
        }
    }

    /// Returns the number of calls that are kept of a thread that is found at these addresses.
    fn kept(found_at: &[u64]) -> usize {
        let found_at = RefCell::new(found_at.iter().rev().copied().collect());
        let target = Target { found_at, suspended: Cell::new(0) };
        let mut capture = Capture::new();
        capture.count = 3;
        capture.take_stopped(&target, |capture, registers| {
            assert_eq!((registers.rip, target.suspended.get()), (7, 1));
            assert!(capture.calls().is_empty(), "calls of the last thread");
            capture.count = 2;
        });
        assert_eq!(target.suspended.get(), 0);
        capture.calls().len()
    }

    #[test]
    fn calls_for_a_thread_that_was_redirected_meanwhile_are_forgotten() {
        assert_eq!(kept(&[7, 7]), 2);
        assert_eq!(kept(&[7, 8]), 0);
        assert_eq!(kept(&[7]), 0, "its registers cannot be read any more");
        assert_eq!(kept(&[]), 0, "they never could");
    }

    #[test]
    fn a_capture_keeps_what_was_there_when_it_was_copied() {
        let mut stack = [1_u64, 2, 3];
        let from = (&raw const stack) as u64;
        let mut capture = Capture::new();
        capture.stack = StackBounds { limit: 0, base: from + 16, root: StackRoot::Undefined };
        // SAFETY: the bytes are those of a local.
        assert!(unsafe { capture.copy_stack(from) });
        stack = stack.map(|word| word + 10);
        assert_eq!(capture.read_u64(from), Ok(1));
        assert_eq!(capture.read_u64(from + 8), Ok(2));
        assert_eq!(capture.read_u64(from + 16), Ok(13), "beyond the base memory is as it is");
        capture.stack.base = from + MOST_BYTES as u64 + 8;
        // SAFETY: nothing is copied.
        assert!(!unsafe { capture.copy_stack(from) }, "there is no room");
        assert_eq!(capture.read_u64(from), Ok(stack[0]));
    }

    #[test]
    fn memory_that_cannot_be_read_is_not_copied() {
        let mut copy = Copy::new(16);
        copy.take(8, 16);
        assert_eq!(copy.get(8, 8), None);
    }
}
