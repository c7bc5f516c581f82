//! Coroutines of WebAssembly, for a module that the pass Asyncify of Binaryen rewrites: each function that may be left in the
//! middle writes its variables to memory then, and takes them back when it goes on.
//!
//! `rewriting.wat` beside has what Rust has no words for: the pointer of the stack, and the functions of the pass.
//! `.ci/playground` joins it to the module. Nothing can be unwound here: what a coroutine owns that does not reach its end is
//! forgotten.

use super::State;
use std::cell::Cell;
use std::fmt;
use std::io;

pub(super) const SUPPORTED: bool = true;

/// Number of bytes for the variables of the functions of a suspended coroutine. The pass traps if it needs more.
const VARIABLES: usize = 64 * 1024;

/// Value at the low end of a stack: a coroutine that has changed it has used more than its stack.
const MARK: u128 = 0x5ca1_ab1e_0dd5_eed5_5ca1_ab1e_0dd5_eed5;

#[link(wasm_import_module = "clr-coroutine")]
unsafe extern "C" {
    /// Begins or continues a coroutine. Returns 1 if it has given control back, 0 if it has returned.
    fn resume(switch: *mut Switch) -> u32;
    /// Gives control back to the caller of `resume`.
    fn suspend(switch: *const Switch);
}

/// A stack, and room for variables.
pub(super) struct Stack {
    /// Grows down.
    bytes: Box<[u128]>,
    variables: Box<[u64]>,
}

pub(super) fn stack(size: usize) -> io::Result<Stack> {
    let mut bytes = zeroed(size.div_ceil(size_of::<u128>()).max(2))?;
    if let Some(low) = bytes.first_mut() {
        *low = MARK;
    }
    Ok(Stack { bytes, variables: zeroed(VARIABLES / size_of::<u64>())? })
}

/// Returns memory, or the error if there is none.
fn zeroed<T: Copy + Default>(len: usize) -> io::Result<Box<[T]>> {
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    all.resize(len, T::default());
    Ok(all.into_boxed_slice())
}

/// What `rewriting.wat` reads and writes, at these offsets.
#[repr(C)]
struct Switch {
    /// Bounds of the free room for variables: the pass moves the first one.
    variables: Cell<*const u64>,
    end: *const u64,
    /// The pointer of the stack.
    stack: Cell<*const u128>,
    /// 0 if the code runs, or has not begun; 1 if it is suspended; 2 while it goes on, until it is where it was.
    state: Cell<u32>,
    /// Executes the code of the coroutine, of which it gets the `Switch`.
    enter: unsafe extern "C" fn(*const Switch),
}

/// A coroutine at an address that stays.
#[repr(C)]
struct Placed<Y> {
    switch: Switch,
    /// The value that was yielded.
    value: Cell<Option<Y>>,
    /// `None` after the coroutine has begun.
    body: Cell<Option<Body<'static, Y>>>,
}

type Body<'b, Y> = Box<dyn FnOnce(&Yielder<'_, Y>) + 'b>;

/// The handle with which a coroutine gives control back, with values of `Y`. Resuming passes no
/// value in.
pub struct Yielder<'y, Y>(&'y Placed<Y>);

impl<Y> fmt::Debug for Yielder<'_, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Yielder")
    }
}

impl<Y> Yielder<'_, Y> {
    /// Gives control back to the caller of [`resume`](super::Scope::resume), until the coroutine is
    /// resumed again.
    #[inline(never)]
    pub fn suspend(&self, value: Y) {
        self.0.value.set(Some(value));
        // SAFETY: this code runs on the coroutine's stack: `resume` has begun it, with the same `Switch`.
        unsafe { suspend(&raw const self.0.switch) }
    }
}

/// Executes the code of a coroutine.
///
/// # Safety
/// `switch` must be that of a `Placed<Y>`, which nobody else borrows mutably.
unsafe extern "C" fn enter<Y>(switch: *const Switch) {
    // SAFETY: the `Switch` is the first field of the `Placed`, as the caller says.
    let placed = unsafe { &*switch.cast::<Placed<Y>>() };
    if let Some(body) = placed.body.take() {
        body(&Yielder(placed));
    }
}

pub(super) struct Coroutine<Y> {
    placed: Box<Placed<Y>>,
    stack: Stack,
    is_done: bool,
}

impl<Y> Coroutine<Y> {
    /// Creates a coroutine that has not begun.
    ///
    /// # Safety
    /// The borrows of `body`, and values of `Y`, must live until the coroutine has returned or been
    /// dropped.
    pub(super) unsafe fn new(mut stack: Stack, body: impl FnOnce(&Yielder<'_, Y>)) -> Self {
        let body: Body<'_, Y> = Box::new(body);
        // SAFETY: only the lifetime changes. The caller ensures that it lasts.
        let body = unsafe { std::mem::transmute::<Body<'_, Y>, Body<'static, Y>>(body) };
        let variables = stack.variables.as_mut_ptr_range();
        let switch = Switch {
            variables: Cell::new(variables.start),
            end: variables.end,
            stack: Cell::new(stack.bytes.as_mut_ptr_range().end),
            state: Cell::new(0),
            enter: enter::<Y>,
        };
        let placed = Placed { switch, value: Cell::new(None), body: Cell::new(Some(body)) };
        Self { placed: Box::new(placed), stack, is_done: false }
    }

    pub(super) const fn done(&self) -> bool {
        self.is_done
    }

    pub(super) fn resume(&mut self) -> State<Y> {
        // SAFETY: the stack and the room for variables are this coroutine's alone. It has not begun, or it is suspended, because
        // nobody resumes one that is done.
        let is_suspended = unsafe { resume(std::ptr::from_mut(&mut *self.placed).cast()) } == 1;
        // In place of the page that guards a stack elsewhere: what lies below it is overwritten.
        assert_eq!(self.stack.bytes.first(), Some(&MARK), "a coroutine needs more than its stack");
        let value = self.placed.value.take().filter(|_| is_suspended);
        self.is_done = value.is_none();
        value.map_or(State::Returned, State::Yielded)
    }

    /// Forgets the coroutine, and returns its stack.
    pub(super) fn end(self) -> Stack {
        self.stack
    }
}
