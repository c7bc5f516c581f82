//! Stackful coroutines that may borrow from their surroundings.
//!
//! The crate corosensei switches stacks; what it offers safely has to be `'static`. Here coroutines belong to a
//! [`Scope`], which nobody can leave while one of them still stands somewhere: they borrow whatever
//! outlives the scope, as threads of [`std::thread::scope`] do.
//!
//! ```
//! use clr_coroutine::{Stacks, State, scope};
//!
//! let words = vec!["one".to_owned(), "two".to_owned()];
//! let mut stacks = Stacks::new(64 * 1024);
//! scope(&mut stacks, |scope| {
//!     let id = scope.start(|yielder| {
//!         for word in &words {
//!             yielder.suspend(word.len());
//!         }
//!     })?;
//!     assert_eq!(scope.resume(id), Some(State::Yielded(3)));
//!     assert_eq!(scope.resume(id), Some(State::Yielded(3)));
//!     assert_eq!(scope.resume(id), Some(State::Returned));
//!     assert_eq!(scope.resume(id), None);
//!     Ok::<(), std::io::Error>(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```

// The processors of Cargo.toml. On others `backend.rs` has no coroutines.
#[cfg_attr(
    any(
        target_arch = "x86_64",
        target_arch = "x86",
        all(target_arch = "aarch64", not(windows)),
        all(target_arch = "arm", not(windows), not(target_vendor = "apple")),
        all(any(target_arch = "riscv64", target_arch = "riscv32"), not(windows)),
        all(target_arch = "loongarch64", not(windows))
    ),
    path = "switching.rs"
)]
mod backend;

pub use backend::Yielder;

use backend::{Coroutine, Stack};
use std::io;
use std::marker::PhantomData;

/// Whether there are coroutines on this processor.
pub const SUPPORTED: bool = backend::SUPPORTED;

/// Stacks that are used again: to map one costs more than to run on it.
pub struct Stacks {
    size: usize,
    free: Vec<Stack>,
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stacks").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Stacks {
    /// None yet; each will have at least so many bytes, and a page behind them that nobody can touch.
    #[must_use]
    pub const fn new(size: usize) -> Self {
        Self { size, free: Vec::new() }
    }

    fn take(&mut self) -> io::Result<Stack> {
        self.free.pop().map_or_else(|| backend::stack(self.size), Ok)
    }
}

/// Which coroutine of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(usize);

/// What a coroutine has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<Y> {
    /// It gave control back with this, and can be resumed.
    Yielded(Y),
    /// It is over.
    Returned,
}

/// Coroutines that may borrow what lives for `'env`.
pub struct Scope<'stacks, 'env, Y> {
    stacks: &'stacks mut Stacks,
    coroutines: Vec<Option<Coroutine<Y>>>,
    /// Invariant, so that `'env` cannot be made shorter or longer.
    env: PhantomData<fn(&'env ()) -> &'env ()>,
}

impl<Y> std::fmt::Debug for Scope<'_, '_, Y> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("coroutines", &self.coroutines.len()).finish_non_exhaustive()
    }
}

/// Runs `body` with a scope. What still stands when it is over is unwound: its destructors run.
///
/// # Errors
/// Those of `body`.
pub fn scope<'stacks, 'env, Y, T>(
    stacks: &'stacks mut Stacks,
    body: impl FnOnce(&mut Scope<'stacks, 'env, Y>) -> T,
) -> T {
    let mut scope = Scope { stacks, coroutines: Vec::new(), env: PhantomData };
    body(&mut scope)
}

impl<'env, Y> Scope<'_, 'env, Y> {
    /// A coroutine, which does nothing before it is first resumed.
    ///
    /// # Errors
    /// The system's, if it has no memory for a stack; `Unsupported` on processors whose stacks nobody
    /// here knows how to switch.
    pub fn start(&mut self, body: impl FnOnce(&Yielder<Y>) + 'env) -> io::Result<Id> {
        let stack = self.stacks.take()?;
        // SAFETY: what the closure borrows lives for `'env`. The coroutine is owned by this scope alone
        // and handed out to nobody: callers have its `Id`. The scope is a local of `scope()`, which
        // callers see behind a reference: they cannot leak it (to swap it with another one needs the
        // same `'env`). Its drop, also in a panic, unwinds all coroutines before `scope()` returns, and
        // `'env`, on which the scope is invariant, outlives that.
        let coroutine = unsafe { Coroutine::new(stack, body) };
        let free = self.coroutines.iter().position(Option::is_none);
        let index = free.unwrap_or(self.coroutines.len());
        match self.coroutines.get_mut(index) {
            Some(slot) => *slot = Some(coroutine),
            None => self.coroutines.push(Some(coroutine)),
        }
        Ok(Id(index))
    }

    /// Runs a coroutine until it gives control back; `None` if it is over. A panic in it comes out of
    /// here, and it is over then.
    pub fn resume(&mut self, id: Id) -> Option<State<Y>> {
        let slot = self.coroutines.get_mut(id.0)?;
        let coroutine = slot.as_mut().filter(|coroutine| !coroutine.done())?;
        let state = coroutine.resume();
        if matches!(state, State::Returned) {
            self.end(id);
        }
        Some(state)
    }

    /// Ends a coroutine where it stands: its destructors run.
    pub fn end(&mut self, id: Id) {
        if let Some(coroutine) = self.coroutines.get_mut(id.0).and_then(Option::take) {
            self.stacks.free.push(coroutine.end());
        }
    }

    /// Ends all of them.
    pub fn end_all(&mut self) {
        for index in 0..self.coroutines.len() {
            self.end(Id(index));
        }
    }
}

impl<Y> Drop for Scope<'_, '_, Y> {
    fn drop(&mut self) {
        for index in 0..self.coroutines.len() {
            self.end(Id(index));
        }
    }
}

#[cfg(test)]
mod tests;
