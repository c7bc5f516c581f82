//! The allocations that are made while none is allowed: in a signal handler, or while another thread is
//! suspended, which may hold the heap's lock. A profiler that checks itself makes [`Counting`] its allocator.

use crate::os;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The thread that must not allocate, or 0.
static WATCHED: AtomicI32 = AtomicI32::new(0);
/// Number of its calls to the allocator.
static MADE: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, which counts.
#[derive(Debug)]
pub struct Counting;

fn count() {
    let watched = WATCHED.load(Ordering::Relaxed);
    if watched != 0 && watched == os::own_tid() {
        MADE.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: all calls are the system's allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// The time in which the calling thread must not allocate: until this value is dropped.
#[derive(Debug)]
pub struct Watch(());

impl Watch {
    /// Begins it. Allowed in a signal handler.
    pub fn this_thread() -> Self {
        WATCHED.store(os::own_tid(), Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED.store(0, Ordering::Relaxed);
    }
}

/// Returns the number of allocations that were not allowed, so far.
pub fn made() -> u64 {
    MADE.load(Ordering::Relaxed)
}
