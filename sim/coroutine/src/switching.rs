//! Coroutines implemented with corosensei.

use super::State;
use corosensei::CoroutineResult;
use corosensei::stack::DefaultStack;
use std::fmt;
use std::io;

pub(super) const SUPPORTED: bool = true;

pub(super) type Stack = DefaultStack;

pub(super) fn stack(size: usize) -> io::Result<Stack> {
    DefaultStack::new(size)
}

/// The handle with which a coroutine gives control back, with values of `Y`. Resuming passes no
/// value in.
pub struct Yielder<'y, Y>(&'y corosensei::Yielder<(), Y>);

impl<Y> fmt::Debug for Yielder<'_, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Yielder")
    }
}

impl<Y> Yielder<'_, Y> {
    /// Gives control back to the caller of [`resume`](super::Scope::resume), until the coroutine is
    /// resumed again.
    // Where this was inlined into a larger function, interleavings ended with an access violation on Windows (a test of
    // clr-explore, under wine).
    #[inline(never)]
    pub fn suspend(&self, value: Y) {
        self.0.suspend(value);
    }
}

pub(super) struct Coroutine<Y>(corosensei::Coroutine<(), Y, ()>);

impl<Y> Coroutine<Y> {
    /// Creates a coroutine that has not begun.
    ///
    /// # Safety
    /// The borrows of `body`, and values of `Y`, must live until the coroutine has returned or been
    /// dropped, and the coroutine must not be leaked.
    pub(super) unsafe fn new(stack: Stack, body: impl FnOnce(&Yielder<'_, Y>)) -> Self {
        // SAFETY: the caller has to meet the same conditions.
        let coroutine = unsafe {
            corosensei::Coroutine::with_stack_unchecked(stack, |yielder, ()| {
                body(&Yielder(yielder));
            })
        };
        Self(coroutine)
    }

    pub(super) fn done(&self) -> bool {
        self.0.done()
    }

    pub(super) fn resume(&mut self) -> State<Y> {
        match self.0.resume(()) {
            CoroutineResult::Yield(value) => State::Yielded(value),
            CoroutineResult::Return(()) => State::Returned,
        }
    }

    /// Unwinds the coroutine, and returns its stack.
    pub(super) fn end(mut self) -> Stack {
        self.0.force_unwind();
        self.0.into_stack()
    }
}
