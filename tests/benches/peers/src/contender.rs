//! The contenders of the benchmark.

use crate::Program;
use crate::summary::Summary;
use std::fmt;
use std::time::Instant;

/// A function that executes schedules in round `n` and returns their number.
type Run = Box<dyn FnMut(u64) -> usize>;

pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Way of choosing schedules.
    pub(crate) way: &'static str,
    pub(crate) program: Program,
    run: Run,
    /// Number of schedules in a sample.
    pub(crate) schedules: usize,
    /// Schedules per second.
    rates: Vec<f64>,
}

impl Contender {
    pub(crate) fn new(
        name: &'static str,
        way: &'static str,
        program: Program,
        run: impl FnMut(u64) -> usize + 'static,
    ) -> Self {
        Self { name, way, program, run: Box::new(run), schedules: 0, rates: Vec::new() }
    }

    pub(crate) fn sample(&mut self, round: u64) {
        let start = Instant::now();
        self.schedules = (self.run)(round);
        let seconds = start.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        self.rates.push(self.schedules as f64 / seconds);
    }

    /// Returns the duration of a sample at the median rate.
    pub(crate) fn milliseconds(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a time")]
        let schedules = self.schedules as f64;
        schedules / self.rate().median * 1e3
    }

    fn rate(&self) -> Summary {
        Summary::of(self.rates.iter().copied())
    }
}

/// Formats a row of a table.
impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, way, program, schedules, .. } = self;
        write!(f, "| {name} | {program} | {way} ")?;
        write!(f, "| {schedules} | {:.0} |", self.rate())
    }
}
