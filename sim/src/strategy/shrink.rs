//! Makes programs smaller as long as they still show something.

use super::edit;
use super::steps::{Step, steps};
use crate::code::Program;

/// The most programs that [`minimize`] tries.
pub const MAX_TRIALS: usize = 50_000;

/// Programs that are one step smaller, those of the largest steps first. All are valid, and less by
/// [`Measure`](super::Measure).
pub fn simpler(program: &Program) -> impl Iterator<Item = Program> + '_ {
    steps(program).into_iter().filter_map(|step| edit::take(program, step))
}

/// The smallest program that still fails, as far as single steps lead.
///
/// `program` itself is taken to fail. At most [`MAX_TRIALS`] programs are tried.
pub fn minimize(program: Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut search = Search::new(program);
    for _ in 0..MAX_TRIALS {
        match search.next() {
            Some(candidate) if fails(&candidate) => search.accept(candidate),
            Some(_) => {}
            None => break,
        }
    }
    search.best
}

/// A search for the smallest program: it goes through all steps, again and again until none helps.
#[derive(Clone, Debug)]
pub(super) struct Search {
    best: Program,
    steps: Vec<Step>,
    next: usize,
    /// A candidate was accepted since the first step was tried.
    improved: bool,
}

impl Search {
    pub(super) fn new(best: Program) -> Self {
        let steps = steps(&best);
        Self { best, steps, next: 0, improved: false }
    }

    /// The smallest program so far.
    #[cfg(feature = "proptest")]
    pub(super) const fn best(&self) -> &Program {
        &self.best
    }

    /// The next candidate; nothing if no step is left.
    pub(super) fn next(&mut self) -> Option<Program> {
        loop {
            if let Some(&step) = self.steps.get(self.next) {
                self.next += 1;
                if let Some(candidate) = edit::take(&self.best, step) {
                    return Some(candidate);
                }
            } else if self.improved {
                self.improved = false;
                self.next = 0;
            } else {
                return None;
            }
        }
    }

    /// Goes on from the candidate that came last.
    pub(super) fn accept(&mut self, candidate: Program) {
        self.steps = steps(&candidate);
        self.best = candidate;
        self.improved = true;
        // The same place in the new list: what lies before it has been tried in this round.
        self.next = self.next.saturating_sub(1);
    }
}
