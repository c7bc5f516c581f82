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
            if self.is_wanted(&situation, call, &chain, answer) {
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
