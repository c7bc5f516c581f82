//! Return addresses that the runtime has hijacked.
//!
//! To stop a thread when a method returns, CoreCLR replaces the method's return address by one of its own,
//! and keeps the true one in the Thread object, which the ThreadID is the address of: `m_pvHJRetAddr`, and
//! behind it `m_ppvHJRetAddrPtr`, the address of the replaced word (`src/vm/threads.h` of dotnet/coreclr
//! 3.1.23). The method may go on for long before it returns. The place of the two words in the
//! object differs between versions, so they are found by the second.

use clr_unwind::Memory;

/// Size in bytes of the part of a Thread object that has the two words: more than any version needs.
const SIZE: u64 = 0x800;
/// Number of words that are read at a time.
const WORDS: usize = 8;

/// Returns the true return address of the word at `slot` (VA), if the Thread object at `thread` (VA) has
/// it: the runtime has replaced the word to stop the thread when it returns.
#[cold]
#[inline(never)]
pub fn true_return_address<M: Memory + ?Sized>(memory: &M, thread: u64, slot: u64) -> Option<u64> {
    let mut before = None;
    for at in (0..SIZE).step_by(WORDS * 8) {
        let mut bytes = [0; WORDS * 8];
        memory.read(thread.checked_add(at)?, &mut bytes).ok()?;
        for word in bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)) {
            if word == slot {
                return before;
            }
            before = Some(word);
        }
    }
    None
}
