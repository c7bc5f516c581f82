//! Programs as a strategy of proptest.

use super::choices::Seeded;
use super::generate;
use super::shrink::Search;
use super::size::Size;
use crate::code::Program;
use proptest::arbitrary::any;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Programs of a size. They shrink on the model: see [`simpler`](super::simpler).
#[must_use]
pub const fn programs(size: Size) -> Programs {
    Programs { size }
}

/// The strategy of [`programs`].
#[derive(Clone, Copy, Debug)]
pub struct Programs {
    size: Size,
}

impl Strategy for Programs {
    type Tree = ProgramTree;
    type Value = Program;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        // All that is random is one number, so that a program costs proptest as little as that.
        let seed = any::<u64>().new_tree(runner)?.current();
        Ok(ProgramTree::new(generate::program(&mut Seeded::new(seed), &self.size)))
    }
}

/// A program and the smaller ones that may take its place.
#[derive(Clone, Debug)]
pub struct ProgramTree {
    /// Steps are listed once shrinking begins.
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Fresh(Program),
    /// The search's best program fails; a candidate stands before it if it is being tried.
    Searching(Box<Search>, Option<Program>),
}

impl ProgramTree {
    /// A tree that shrinks this program.
    #[must_use]
    pub const fn new(program: Program) -> Self {
        Self { state: State::Fresh(program) }
    }
}

impl ValueTree for ProgramTree {
    type Value = Program;

    fn current(&self) -> Program {
        match &self.state {
            State::Fresh(program) | State::Searching(_, Some(program)) => program.clone(),
            State::Searching(search, None) => search.best().clone(),
        }
    }

    /// What is current fails: goes on from there.
    fn simplify(&mut self) -> bool {
        match &mut self.state {
            State::Fresh(program) => {
                let mut search = Search::new(std::mem::take(program));
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

    /// What is current does not fail: drops it, and tries another. When none is left, what failed
    /// last is current again.
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
