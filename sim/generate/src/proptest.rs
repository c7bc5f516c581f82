//! Programs, and calls about synthetic threads, as proptest strategies.

use super::choices::Seeded;
use super::generate;
use super::shrink::{Search, Shrink};
use super::size::Size;
use super::synthetic::{SyntheticCall, synthetic_call};
use super::world::{WorldCase, world_case};
use clr_codegen::Program;
use proptest::arbitrary::any;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::fmt;

/// Returns a strategy for programs of a size. They shrink on the program itself: see
/// [`shrunk`](super::shrunk).
#[must_use]
pub const fn programs(size: Size) -> Generated<Program, Size> {
    Generated { make: |choices, size| generate::program(choices, size), of: size }
}

/// Returns a strategy for synthetic threads with calls about them. They shrink on the value itself:
/// see [`shrunk`](super::shrunk).
#[must_use]
pub const fn synthetic_calls() -> Generated<SyntheticCall> {
    Generated { make: |choices, ()| synthetic_call(choices), of: () }
}

/// Returns a strategy for programs that go through the runtime, with the state they are executed to
/// and a call there. They shrink on the value itself: see [`shrunk`](super::shrunk).
#[must_use]
pub const fn world_cases() -> Generated<WorldCase> {
    Generated { make: |choices, ()| world_case(choices), of: () }
}

/// The strategy of generated values.
#[derive(Clone, Copy, Debug)]
pub struct Generated<T, S = ()> {
    make: fn(&mut Seeded, &S) -> T,
    of: S,
}

impl<T: Shrink + fmt::Debug, S: fmt::Debug> Strategy for Generated<T, S> {
    type Tree = Tree<T>;
    type Value = T;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        // Only one number is random, which keeps the work of proptest small.
        let seed = any::<u64>().new_tree(runner)?.current();
        Ok(Tree::new((self.make)(&mut Seeded::new(seed), &self.of)))
    }
}

/// A value and the smaller ones that may replace it.
#[derive(Clone, Debug)]
pub struct Tree<T: Shrink> {
    /// The steps are listed when shrinking begins.
    state: State<T>,
}

#[derive(Clone, Debug)]
enum State<T: Shrink> {
    Fresh(T),
    /// The best value of the search fails; the candidate, if any, is the one being tried.
    Searching(Box<Search<T>>, Option<T>),
}

impl<T: Shrink> Tree<T> {
    /// Creates a tree that shrinks this value.
    #[must_use]
    pub const fn new(model: T) -> Self {
        Self { state: State::Fresh(model) }
    }
}

impl<T: Shrink + fmt::Debug> ValueTree for Tree<T> {
    type Value = T;

    fn current(&self) -> T {
        match &self.state {
            State::Fresh(model) | State::Searching(_, Some(model)) => model.clone(),
            State::Searching(search, None) => search.best().clone(),
        }
    }

    /// Accepts the current value, which fails, and continues from there.
    fn simplify(&mut self) -> bool {
        match &mut self.state {
            State::Fresh(model) => {
                let mut search = Search::new(model.clone());
                let candidate = search.next();
                let more = candidate.is_some();
                self.state = State::Searching(Box::new(search), candidate);
                more
            }
            State::Searching(search, candidate) => {
                if let Some(candidate) = candidate.take() {
                    search.accept(candidate);
                }
                *candidate = search.next();
                candidate.is_some()
            }
        }
    }

    /// Rejects the current value, which does not fail, and tries another one. When none is left,
    /// the value that failed last is current again.
    fn complicate(&mut self) -> bool {
        match &mut self.state {
            State::Fresh(_) => false,
            State::Searching(search, candidate) => {
                let tried = candidate.is_some();
                *candidate = if tried { search.next() } else { None };
                tried
            }
        }
    }
}
