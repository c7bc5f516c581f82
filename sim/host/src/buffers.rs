//! The buffers of a text, which exports of the profiler's library get pointers to.

use clr_scenario::Buffer;
use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The value of the bytes after a buffer.
const BEHIND: u8 = 0xB5;
/// Bytes behind a buffer that are looked at.
const ROOM: usize = 32;

/// Bytes with the alignment of `malloc`.
#[repr(C, align(16))]
struct Block(UnsafeCell<[u8; 16]>);

/// Returns a name of the program's life, as journals and findings have them. There is one of each, however many
/// interleavings have it.
pub(crate) fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

/// The buffers of a text, in its order.
#[derive(Default)]
pub(crate) struct Buffers(Vec<Memory>);

/// The memory of a buffer. A library writes there, at any time.
struct Memory {
    name: &'static str,
    size: usize,
    width: usize,
    blocks: Box<[Block]>,
}

impl Buffers {
    /// Makes the buffers with what they hold at first.
    pub(crate) fn new(buffers: &[Buffer]) -> Self {
        Self(buffers.iter().map(Memory::new).collect())
    }

    /// Returns the address of a buffer.
    pub(crate) fn address(&self, buffer: u32) -> u64 {
        self.0.get(buffer as usize).map_or(0, |memory| memory.start() as u64)
    }

    /// Returns the number that a buffer holds.
    pub(crate) fn number(&self, buffer: u32) -> u64 {
        let mut bytes = [0; 8];
        if let Some(memory) = self.0.get(buffer as usize) {
            for (index, byte) in bytes.iter_mut().enumerate().take(memory.width) {
                *byte = memory.read(index);
            }
        }
        u64::from_le_bytes(bytes)
    }

    /// Writes as many of the low bytes of a number to a buffer as it has.
    pub(crate) fn set_number(&self, buffer: u32, number: u64) {
        if let Some(memory) = self.0.get(buffer as usize) {
            memory.write(number.to_le_bytes().into_iter().take(memory.width), 0);
        }
    }

    /// Returns the name of a buffer.
    pub(crate) fn name(&self, buffer: u32) -> &'static str {
        self.0.get(buffer as usize).map_or("", |memory| memory.name)
    }

    /// Returns the names and sizes of the buffers behind whose end something was written since the last call.
    pub(crate) fn written_behind(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.0.iter().filter(|memory| memory.is_written_behind()).map(|memory| {
            memory.fill_behind();
            (memory.name, memory.size as u32)
        })
    }
}

impl Memory {
    fn new(buffer: &Buffer) -> Self {
        let size = buffer.size as usize;
        let count = (size + ROOM).div_ceil(16);
        let blocks = (0..count).map(|_| Block(UnsafeCell::new([0; 16]))).collect();
        let name = kept(&buffer.name);
        let memory = Self { name, size, width: buffer.width(), blocks };
        memory.write(buffer.number.to_le_bytes().into_iter().take(memory.width), 0);
        if let Some(text) = &buffer.text {
            memory.write(text.bytes().take(size), 0);
        }
        memory.fill_behind();
        memory
    }

    fn start(&self) -> *mut u8 {
        self.blocks.as_ptr().cast_mut().cast()
    }

    /// Returns a byte of the buffer, or of those behind it.
    fn read(&self, index: usize) -> u8 {
        // SAFETY: callers stay within the blocks, which can be written through pointers to them.
        unsafe { self.start().add(index).read_volatile() }
    }

    fn write(&self, bytes: impl IntoIterator<Item = u8>, at: usize) {
        for (index, byte) in (at..self.size + ROOM).zip(bytes) {
            // SAFETY: within the blocks, which can be written through pointers to them.
            unsafe { self.start().add(index).write_volatile(byte) };
        }
    }

    fn fill_behind(&self) {
        self.write(std::iter::repeat_n(BEHIND, ROOM), self.size);
    }

    fn is_written_behind(&self) -> bool {
        (self.size..self.size + ROOM).any(|index| self.read(index) != BEHIND)
    }
}
