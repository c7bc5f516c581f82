//! The stack need of a call, measured on a painted stack.

use corosensei::stack::{DefaultStack, Stack as _};

pub(super) const SUPPORTED: bool = true;

/// The byte that a stack is filled with.
const PAINT: u8 = 0xA5;

/// Returns the lowest of the `size` bytes that end at the base of `stack`.
fn lowest(stack: &DefaultStack, size: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(stack.base().get() - size)
}

/// Fills the upper `size` bytes of a stack on which nothing runs.
pub(super) fn paint(stack: &mut DefaultStack, size: usize) {
    // SAFETY: a stack has at least the size that was asked for, all of it mapped for reading and
    // writing, below its base. It is borrowed for writing here, so no coroutine runs on it.
    unsafe { lowest(stack, size).write_bytes(PAINT, size) };
}

/// Returns the number of bytes from the lowest one that has changed to the base.
pub(super) fn used(stack: &DefaultStack, size: usize) -> usize {
    // SAFETY: as above; `paint` has initialized all bytes.
    let bytes = unsafe { std::slice::from_raw_parts(lowest(stack, size), size) };
    size - bytes.iter().take_while(|byte| **byte == PAINT).count()
}
