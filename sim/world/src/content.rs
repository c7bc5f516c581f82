//! The contents of a world as hashes: exhaustive searches recognise states by them.
//!
//! The next step of a thread follows from its [own content](World::content_of) and from the parts of the
//! [common content](World::common_content) that it accesses. Two states with equal contents have the same future, whatever
//! has led to them. A hash is the same on every system.

use super::World;
use clr_runtime::thread::THREAD_OBJECT_SIZE;
use clr_runtime::{Lock, Thread};
use clr_unwind::Memory as _;
use core::hash::{Hash, Hasher};

/// Hashes values in the same way on every system.
#[derive(Clone, Copy, Debug)]
pub struct ContentHasher(u64);

impl Default for ContentHasher {
    fn default() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }
}

impl ContentHasher {
    /// Returns the hash of a value.
    pub fn of(value: &impl Hash) -> u64 {
        let mut hasher = Self::default();
        value.hash(&mut hasher);
        hasher.finish()
    }
}

impl Hasher for ContentHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (into, byte) in word.iter_mut().zip(chunk) {
                *into = *byte;
            }
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        // The multiplier of Knuth's MMIX generator.
        let mixed = (self.0 ^ value).wrapping_mul(0x5851_F42D_4C95_7F2D);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        let mixed = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D);
        mixed ^ mixed >> 29
    }
}

/// Contents that the threads of a world have in common, as hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonContent {
    /// Progress of the suspension of the runtime, and on whose behalf it is suspended.
    pub suspension: u64,
    /// The code that was freed, and the writer of the code manager's tables.
    pub code: u64,
    /// The readers of the code manager's tables.
    pub readers: u64,
    /// The runtime's data about the process, and its GCs.
    pub runtime: u64,
    /// The list of threads.
    pub threads: u64,
    /// The objects and handles of the program, its compilations and the requests for them.
    pub objects: u64,
}

impl World<'_> {
    /// Clears what calls and interruptions have left below a thread's rsp. No code reads it, but it would become part of
    /// later frames, in slots that nothing was written to yet: states would differ without a difference in meaning.
    pub fn clear_below(&mut self, thread: usize) {
        const ZEROS: [u8; 256] = [0; 256];
        let Some(executed) = self.threads.get_mut(thread) else { return };
        let mut memory = self.runtime.memory.borrow_mut();
        let rsp = executed.cpu_in(&memory, thread == self.current).rsp();
        let (limit, base) = executed.stack;
        let mut at = core::mem::replace(&mut executed.lowest, rsp).max(limit);
        while at < rsp.min(base) {
            let size = (rsp - at).min(ZEROS.len() as u64);
            // Mostly nothing was left there: then the page need not become one of this interleaving.
            let zeros = ZEROS.get(..size as usize).unwrap_or_default();
            if memory.window(at, zeros.len()) != Some(zeros) {
                // A thread's stack is mapped.
                let _ = memory.write(at, zeros);
            }
            at += size;
        }
    }

    /// Notes how far down a thread's stack has been used.
    pub(super) fn note_depth(&mut self, thread: usize, rsp: u64) {
        // A return address may be written before rsp is set.
        const MARGIN: u64 = 0x40;
        if let Some(executed) = self.threads.get_mut(thread) {
            executed.lowest = executed.lowest.min(rsp.saturating_sub(MARGIN));
        }
    }

    /// Returns the content of a lock of the process: its owner, and how often that has taken it.
    pub fn content_of_lock(&self, lock: Lock) -> u64 {
        let process = self.runtime.process.get();
        ContentHasher::of(&(process.owner(lock), process.locks.count(lock)))
    }

    /// Returns the contents that the threads have in common.
    pub fn common_content(&self) -> CommonContent {
        let process = self.runtime.process.get();
        let known = self.runtime.threads.borrow();
        let by_profiler = (process.suspended_by_profiler, process.profiler_suspensions);
        let listed = |thread: &Thread| {
            (thread.os, thread.object, thread.life, thread.reported_dead, thread.id_is_over)
        };
        CommonContent {
            suspension: ContentHasher::of(&(
                process.suspension,
                by_profiler,
                process.thread_store_forgotten,
            )),
            code: ContentHasher::of(&(&*self.runtime.code.freed(), process.code_manager_writer)),
            readers: ContentHasher::of(
                &known.iter().map(|thread| thread.code_manager_reads).collect::<Vec<_>>(),
            ),
            runtime: ContentHasher::of(&(
                self.common(usize::MAX).runtime,
                self.process_end,
                &*self.runtime.unfinished.borrow(),
            )),
            threads: ContentHasher::of(&known.iter().map(listed).collect::<Vec<_>>()),
            // A request of a ReJIT is for the compilations, which are among these.
            objects: ContentHasher::of(&(&self.made, &*self.runtime.code.il_versions.borrow())),
        }
    }

    /// Returns the content of a thread of the process: its registers and its stack, its Thread object, and what the world
    /// and the runtime know about it. A thread beyond those of the program has no registers and no stack.
    pub fn content_of(&self, thread: usize) -> u64 {
        let mut hasher = ContentHasher::default();
        let machine = self.runtime.memory.borrow();
        let mut memory = |from: u64, to: u64| {
            let mut bytes = [0; 256];
            let mut at = from;
            while at < to {
                let size = (to - at).min(bytes.len() as u64) as usize;
                let Some(part) = bytes.get_mut(..size) else { return };
                if machine.read(at, part).is_ok() {
                    hasher.write(part);
                }
                at += size as u64;
            }
        };
        let known = self.runtime.threads.borrow();
        let known = known.get(thread);
        let executed = self.threads.get(thread);
        if let Some(executed) = executed {
            let cpu = executed.cpu_in(&machine, thread == self.current);
            // Code of programs has no red zone: what is below rsp is not read.
            let (limit, base) = executed.stack;
            let low = cpu.rsp();
            memory(if (limit..base).contains(&low) { low } else { limit }, base);
            // Of its other memory a thread only reads a pointer to the object.
            memory(executed.own, executed.own + THREAD_OBJECT_SIZE);
            cpu.hash(&mut hasher);
            executed.hash_without_registers(&mut hasher);
        } else if let Some(object) = known.and_then(|known| known.object) {
            memory(object.0, object.0 + THREAD_OBJECT_SIZE);
        }
        if let Some(known) = known {
            known.hash_without_registers(&mut hasher);
        }
        hasher.finish()
    }
}
