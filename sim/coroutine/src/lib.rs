//! Stackful coroutines that may borrow from their surroundings.
//!
//! The crate corosensei switches stacks, but its safe interface requires `'static`. Here coroutines
//! belong to a [`Scope`], which cannot be left while one of them is suspended: they borrow any
//! value that outlives the scope, like threads of [`std::thread::scope`].
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

// The processors listed in Cargo.toml. On others `backend.rs` has no coroutines.
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
#[cfg_attr(all(target_arch = "wasm32", feature = "rewriting"), path = "rewriting.rs")]
mod backend;
// On the same processors, but not on Windows, which commits a stack page by page, as it grows.
#[cfg_attr(
    any(
        all(any(target_arch = "x86_64", target_arch = "x86"), not(windows)),
        all(target_arch = "aarch64", not(windows)),
        all(target_arch = "arm", not(windows), not(target_vendor = "apple")),
        all(any(target_arch = "riscv64", target_arch = "riscv32"), not(windows)),
        all(target_arch = "loongarch64", not(windows))
    ),
    path = "painting.rs"
)]
mod painted;

pub use backend::Yielder;

use backend::{Coroutine, Stack};
use std::io;
use std::marker::PhantomData;

/// True if this processor has coroutines.
pub const SUPPORTED: bool = backend::SUPPORTED;

/// A pool of stacks. Stacks are reused because mapping one costs more than running on it.
pub struct Stacks {
    size: usize,
    free: Vec<Stack>,
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let free = self.free.len();
        f.debug_struct("Stacks").field("size", &self.size).field("free", &free).finish()
    }
}

impl Stacks {
    /// Creates an empty pool of stacks of at least `size` bytes, each with an inaccessible guard
    /// page at its end.
    pub const fn new(size: usize) -> Self {
        Self { size, free: Vec::new() }
    }

    /// Calls `body` on a stack, and returns the number of bytes of the stack that it used: from the
    /// base to the lowest byte that it changed, with some 200 bytes of the switch. If its deepest frame does not
    /// write its lowest bytes, they are not counted.
    ///
    /// # Errors
    /// Returns the system's error if it has no memory for a stack, and `Unsupported` on Windows and on
    /// processors whose stacks this crate cannot switch.
    pub fn used_by(&mut self, body: impl FnOnce()) -> io::Result<usize> {
        if !painted::SUPPORTED {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut stack = self.take()?;
        painted::paint(&mut stack, self.size);
        self.free.push(stack);
        scope(self, |scope: &mut Scope<'_, '_, ()>| {
            let id = scope.start(|_| body())?;
            scope.resume(id);
            Ok::<_, io::Error>(())
        })?;
        // The scope has given back the stack that it took.
        Ok(self.free.last().map_or(0, |stack| painted::used(stack, self.size)))
    }

    fn take(&mut self) -> io::Result<Stack> {
        self.free.pop().map_or_else(|| backend::stack(self.size), Ok)
    }
}

/// A coroutine of a scope, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(usize);

/// The state of a coroutine after it was resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<Y> {
    /// The coroutine has yielded this value and can be resumed.
    Yielded(Y),
    /// The coroutine has returned.
    Returned,
}

/// The coroutines that may borrow values that live for `'env`.
pub struct Scope<'stacks, 'env, Y> {
    stacks: &'stacks mut Stacks,
    coroutines: Vec<Option<Coroutine<Y>>>,
    /// Makes the type invariant in `'env`, so that the lifetime can be neither shortened nor
    /// extended.
    env: PhantomData<fn(&'env ()) -> &'env ()>,
}

impl<Y> std::fmt::Debug for Scope<'_, '_, Y> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("coroutines", &self.coroutines.len()).finish_non_exhaustive()
    }
}

/// Calls `body` with a scope. Coroutines that are suspended when it returns are unwound: their
/// destructors run. Of WebAssembly they are forgotten.
///
/// # Errors
/// Returns the error of `body`.
pub fn scope<'stacks, 'env, Y, T>(
    stacks: &'stacks mut Stacks,
    body: impl FnOnce(&mut Scope<'stacks, 'env, Y>) -> T,
) -> T {
    let mut scope = Scope { stacks, coroutines: Vec::new(), env: PhantomData };
    body(&mut scope)
}

impl<'env, Y> Scope<'_, 'env, Y> {
    /// Creates a coroutine, which does not run before it is first resumed.
    ///
    /// # Errors
    /// Returns the system's error if it has no memory for a stack, and `Unsupported` on processors
    /// whose stacks this crate cannot switch.
    pub fn start(&mut self, body: impl FnOnce(&Yielder<Y>) + 'env) -> io::Result<Id> {
        let stack = self.stacks.take()?;
        // SAFETY: everything that the closure borrows lives for `'env`. The coroutine is owned by
        // this scope alone and never handed out: callers have its `Id`. The scope is a local of
        // `scope()`, and callers see it behind a reference: they cannot leak it (swapping it with
        // another one requires the same `'env`). Its drop, also in a panic, unwinds all coroutines
        // before `scope()` returns, and `'env`, in which the scope is invariant, outlives that.
        let coroutine = unsafe { Coroutine::new(stack, body) };
        let free = self.coroutines.iter().position(Option::is_none);
        let index = free.unwrap_or(self.coroutines.len());
        match self.coroutines.get_mut(index) {
            Some(slot) => *slot = Some(coroutine),
            None => self.coroutines.push(Some(coroutine)),
        }
        Ok(Id(index))
    }

    /// Runs a coroutine until it gives control back. Returns `None` if it has already ended. A
    /// panic in the coroutine propagates out of this call and ends the coroutine.
    pub fn resume(&mut self, id: Id) -> Option<State<Y>> {
        let slot = self.coroutines.get_mut(id.0)?;
        let coroutine = slot.as_mut().filter(|coroutine| !coroutine.done())?;
        let state = coroutine.resume();
        if matches!(state, State::Returned) {
            self.end(id);
        }
        Some(state)
    }

    /// Ends a suspended coroutine: its destructors run, but of WebAssembly.
    pub fn end(&mut self, id: Id) {
        if let Some(coroutine) = self.coroutines.get_mut(id.0).and_then(Option::take) {
            self.stacks.free.push(coroutine.end());
        }
    }

    /// Ends all coroutines.
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
