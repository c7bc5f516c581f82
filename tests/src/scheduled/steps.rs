//! Steps of interleavings in another order.

use clr_explore::{Choice, Ending, Footprint, Observer, Search, Step as Turn, ThreadIndex};

/// A thread's turn, and its accesses.
pub type Step = (ThreadIndex, Footprint);

/// A search that notes the steps of another one.
#[derive(Clone, Debug)]
pub struct Noted<S> {
    search: S,
    /// The steps so far.
    pub steps: Vec<Step>,
}

impl<S: Search> Noted<S> {
    /// Notes the steps of the interleaving with this number.
    pub fn new(mut search: S, number: u64) -> Self {
        search.begin(number);
        Self { search, steps: Vec::new() }
    }
}

impl<S: Search> Search for Noted<S> {
    fn begin(&mut self, number: u64) -> bool {
        self.search.begin(number)
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        self.search.choose(at)
    }

    fn end(&mut self, ending: &Ending) {
        self.search.end(ending);
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }
}

impl<S: Search> Observer for Noted<S> {
    fn stepped(&mut self, turn: &Turn<'_>) {
        self.steps.push((turn.thread, turn.footprint));
        if let Some(observer) = self.search.observer() {
            observer.stepped(turn);
        }
    }
}

/// A search that gives each turn to the next thread of a sequence.
#[derive(Clone, Debug)]
pub struct Sequence {
    threads: Vec<ThreadIndex>,
    next: usize,
    /// Number of the turn for which the sequence has no thread that can run.
    pub strayed: Option<usize>,
}

impl Sequence {
    /// Returns the sequence of these steps with two neighbours in each other's place: the one with this number, and
    /// the next one.
    #[must_use]
    pub fn swapped(steps: &[Step], at: usize) -> Self {
        let mut threads: Vec<_> = steps.iter().map(|(thread, _)| *thread).collect();
        threads.swap(at, at + 1);
        Self { threads, next: 0, strayed: None }
    }
}

impl Search for Sequence {
    fn begin(&mut self, number: u64) -> bool {
        number == 0
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        let next = self.threads.get(self.next).filter(|next| at.runnable.contains(next));
        if next.is_none() {
            self.strayed = Some(self.next);
        }
        self.next += 1;
        next.copied()
    }

    fn end(&mut self, _: &Ending) {}
}

/// Returns the numbers of the steps that can change places with the next one: those of two threads whose accesses do
/// not meet.
#[must_use]
pub fn independent(steps: &[Step]) -> Vec<usize> {
    let pairs = (0..).zip(steps.iter().zip(steps.iter().skip(1)));
    let independent = pairs
        .filter(|(_, ((one, of_one), (other, of_other)))| one != other && !of_one.meets(*of_other));
    independent.map(|(at, _)| at).collect()
}
