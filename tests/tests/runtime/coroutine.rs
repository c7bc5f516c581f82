//! Coroutines that borrow, and their stacks.

use clr_coroutine::{Stacks, State, Yielder, scope};
use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

struct Tells<'t>(&'t Cell<u32>);

impl Drop for Tells<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn stands(dropped: &Cell<u32>) -> impl FnOnce(&Yielder<'_, ()>) {
    |yielder| {
        let _tells = Tells(dropped);
        yielder.suspend(());
    }
}

#[test]
fn they_take_turns() -> io::Result<()> {
    let said = RefCell::new(String::new());
    scope(&mut Stacks::new(0x10000), |scope| {
        let speaker = |letter: char| {
            let said = &said;
            move |yielder: &Yielder<'_, ()>| {
                for _ in 0..3 {
                    said.borrow_mut().push(letter);
                    yielder.suspend(());
                }
            }
        };
        let (first, second) = (scope.start(speaker('a'))?, scope.start(speaker('b'))?);
        while scope.resume(first) == Some(State::Yielded(())) {
            scope.resume(second);
        }
        io::Result::Ok(())
    })?;
    assert_eq!(said.into_inner(), "ababab");
    Ok(())
}

#[test]
fn suspended_coroutines_are_unwound_at_the_end() -> io::Result<()> {
    let dropped = Cell::new(0);
    scope(&mut Stacks::new(0x10000), |scope| {
        let id = scope.start(stands(&dropped))?;
        scope.start(stands(&dropped))?;
        scope.resume(id);
        assert_eq!(dropped.get(), 0);
        io::Result::Ok(())
    })?;
    // The other coroutine had not begun.
    assert_eq!(dropped.get(), 1);
    Ok(())
}

#[test]
fn suspended_coroutines_are_unwound_in_a_panic() {
    let dropped = Cell::new(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        scope(&mut Stacks::new(0x10000), |scope| {
            let id = scope.start(stands(&dropped)).expect("a stack");
            scope.resume(id);
            panic!("outside");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(dropped.get(), 1);
}

#[test]
fn a_panic_comes_out_and_the_stack_is_used_again() -> io::Result<()> {
    let mut stacks = Stacks::new(0x10000);
    for _ in 0..3 {
        scope::<(), io::Result<()>>(&mut stacks, |scope| {
            let id = scope.start(|_| panic!("inside"))?;
            let panicked = catch_unwind(AssertUnwindSafe(|| scope.resume(id)));
            let words = panicked.expect_err("it panics");
            assert_eq!(words.downcast_ref(), Some(&"inside"));
            assert_eq!(scope.resume(id), None);
            Ok(())
        })?;
    }
    assert!(format!("{stacks:?}").ends_with("free: 1 }"), "{stacks:?}");
    Ok(())
}

#[test]
#[cfg(not(windows))]
fn the_used_part_of_a_stack_is_measured() {
    fn fill<const N: usize>() {
        std::hint::black_box([1_u8; N]);
    }
    let mut stacks = Stacks::new(64 << 10);
    let nothing = stacks.used_by(|| ()).unwrap();
    assert!(nothing < 1024, "{nothing}");
    for (size, body) in [(4096, fill::<4096> as fn()), (16384, fill::<16384>), (4096, fill::<4096>)]
    {
        let used = stacks.used_by(body).unwrap();
        assert!((size..size + nothing + 1024).contains(&used), "{used} for {size}");
    }
}
