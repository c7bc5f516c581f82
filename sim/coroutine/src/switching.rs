//! Coroutines by corosensei.

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

/// What a coroutine gives control back with: values of `Y` go out, nothing comes in.
pub struct Yielder<'y, Y>(&'y corosensei::Yielder<(), Y>);

impl<Y> fmt::Debug for Yielder<'_, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Yielder")
    }
}

impl<Y> Yielder<'_, Y> {
    /// Gives control back to whoever has resumed the coroutine, until it is resumed again.
    pub fn suspend(&self, value: Y) {
        self.0.suspend(value);
    }
}

pub(super) struct Coroutine<Y>(corosensei::Coroutine<(), Y, ()>);

impl<Y> Coroutine<Y> {
    /// A coroutine that has not begun.
    ///
    /// # Safety
    /// What `body` borrows, and values of `Y`, must live until the coroutine has returned or been
    /// dropped, and it must not be leaked.
    pub(super) unsafe fn new(stack: Stack, body: impl FnOnce(&Yielder<'_, Y>)) -> Self {
        // SAFETY: the same is asked of the caller.
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

    /// Unwinds it, and gives its stack back.
    pub(super) fn end(mut self) -> Stack {
        self.0.force_unwind();
        self.0.into_stack()
    }
}
