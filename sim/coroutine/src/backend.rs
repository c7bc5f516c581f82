//! Placeholder for processors whose stacks cannot be switched: there are no coroutines.

use super::State;
use std::convert::Infallible;
use std::io;
use std::marker::PhantomData;

pub(super) const SUPPORTED: bool = false;

/// A stack, of which none can exist.
pub(super) struct Stack(Infallible);

pub(super) fn stack(_: usize) -> io::Result<Stack> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The handle with which a coroutine gives control back, with values of `Y`. Resuming passes no
/// value in.
#[derive(Debug)]
pub struct Yielder<'y, Y>(Infallible, PhantomData<&'y Y>);

impl<Y> Yielder<'_, Y> {
    /// Gives control back to the caller of [`resume`](super::Scope::resume), until the coroutine is
    /// resumed again.
    pub fn suspend(&self, _: Y) {
        match self.0 {}
    }
}

pub(super) struct Coroutine<Y>(Infallible, PhantomData<Y>);

impl<Y> Coroutine<Y> {
    /// # Safety
    /// Without a stack, this function cannot be called.
    pub(super) unsafe fn new(stack: Stack, _: impl FnOnce(&Yielder<'_, Y>)) -> Self {
        match stack.0 {}
    }

    pub(super) fn done(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn resume(&mut self) -> State<Y> {
        match self.0 {}
    }

    pub(super) fn end(self) -> Stack {
        match self.0 {}
    }
}
