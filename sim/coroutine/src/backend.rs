//! No coroutines: nobody here knows how to switch this processor's stacks.

use super::State;
use std::convert::Infallible;
use std::io;
use std::marker::PhantomData;

pub(super) const SUPPORTED: bool = false;

/// There is none.
pub(super) struct Stack(Infallible);

pub(super) fn stack(_: usize) -> io::Result<Stack> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What a coroutine gives control back with: values of `Y` go out, nothing comes in.
#[derive(Debug)]
pub struct Yielder<'y, Y>(Infallible, PhantomData<&'y Y>);

impl<Y> Yielder<'_, Y> {
    /// Gives control back to whoever has resumed the coroutine, until it is resumed again.
    pub fn suspend(&self, _: Y) {
        match self.0 {}
    }
}

pub(super) struct Coroutine<Y>(Infallible, PhantomData<Y>);

impl<Y> Coroutine<Y> {
    /// # Safety
    /// There is no stack that it could be called with.
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
