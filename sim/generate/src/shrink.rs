//! Shrinking: makes generated values smaller as long as they still fail.

use core::fmt;

/// Maximum number of candidates that [`minimize`] tries.
pub const MAX_TRIALS: usize = 50_000;

/// A value that can become smaller in steps.
pub trait Shrink: Clone {
    /// A step towards a smaller value.
    type Step: Copy + fmt::Debug;

    /// Returns all steps, the largest first.
    fn steps(&self) -> Vec<Self::Step>;

    /// Returns the value after a step; `None` if it is not valid or not smaller.
    fn take(&self, step: Self::Step) -> Option<Self>;
}

/// Returns all values that are one step smaller, after the largest steps first. All of them are
/// valid.
pub fn shrunk<T: Shrink>(model: &T) -> impl Iterator<Item = T> + '_ {
    model.steps().into_iter().filter_map(|step| model.take(step))
}

/// Returns the smallest value that still fails and can be reached by single steps.
///
/// `model` itself is assumed to fail. At most [`MAX_TRIALS`] candidates are tried.
pub fn minimize<T: Shrink>(model: T, mut fails: impl FnMut(&T) -> bool) -> T {
    let mut search = Search::new(model);
    for _ in 0..MAX_TRIALS {
        match search.next() {
            Some(candidate) if fails(&candidate) => search.accept(candidate),
            Some(_) => {}
            None => break,
        }
    }
    search.best
}

/// A search for the smallest value: it tries all steps repeatedly, until none helps.
#[derive(Clone, Debug)]
pub(super) struct Search<T: Shrink> {
    best: T,
    steps: Vec<T::Step>,
    next: usize,
    /// A candidate was accepted since the first step was tried.
    improved: bool,
}

impl<T: Shrink> Search<T> {
    pub(super) fn new(best: T) -> Self {
        let steps = best.steps();
        Self { best, steps, next: 0, improved: false }
    }

    /// Returns the smallest value so far.
    #[cfg(feature = "proptest")]
    pub(super) const fn best(&self) -> &T {
        &self.best
    }

    /// Returns the next candidate; `None` if no step is left.
    pub(super) fn next(&mut self) -> Option<T> {
        loop {
            if let Some(&step) = self.steps.get(self.next) {
                self.next += 1;
                if let Some(candidate) = self.best.take(step) {
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

    /// Continues with the candidate returned last.
    pub(super) fn accept(&mut self, candidate: T) {
        self.steps = candidate.steps();
        self.best = candidate;
        self.improved = true;
        // The same position in the new list: earlier steps have been tried in this round.
        self.next = self.next.saturating_sub(1);
    }
}
